"""The torture list names every row once, with tests that there are or the reason why there is none; its page is made of it."""
import os
import re
import sys

from check import *

SOURCE = os.environ.get('GT_SOURCE') or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCE, 'tests', 'torture'))
import run  # noqa: E402

table = run.rows()
check('rows T01 to T120, in their order', list(table) == [f'T{i:02}' for i in range(1, 121)], list(table))
wrong = [name for name, row in table.items() if not row.get('fault') or ('tests' in row) == ('none' in row) or not set(row) <= {'fault', 'tests', 'counts', 'part', 'none'}]
check('each row has tests or a reason', not wrong, wrong)


def missing(entry):
    """What of an entry is not there."""
    kind, *names = entry.split()
    if kind == 'fuzz':
        return [] if os.path.exists(os.path.join(SOURCE, 'tests', 'fuzz', f'fuzz_{names[0]}.cpp')) else [entry]
    if kind == 'rules':
        return [] if os.path.exists(os.path.join(SOURCE, 'tests', 'rules', f'test_{names[0]}.py')) else [entry]
    if kind == 'unit':
        with open(os.path.join(SOURCE, 'tests', 'unit', 'meson.build'), encoding='utf-8') as file:
            if f"test('{names[0]}'" not in file.read():
                return [entry]
        folders = {'interleaving': 'ringbuf', 'producer': 'ringbuf'}
        folder = os.path.join(SOURCE, 'tests', 'unit', folders.get(names[0], names[0]))
        if len(names) == 1:
            return [] if os.path.isdir(folder) else [entry]
        text = ''.join(open(os.path.join(folder, name), encoding='utf-8').read() for name in os.listdir(folder))
        known = [f'{suite}.{case}' for suite, case in re.findall(r'^TEST(?:_F)?\((\w+),\s*(\w+)\)', text, re.M)]
        patterns = [re.compile(re.escape(pattern).replace(r'\*', '.*') + '$') for pattern in names[1].split(':')]
        return [f'{entry}: {pattern.pattern}' for pattern in patterns if not any(pattern.match(name) for name in known)]
    path = os.path.join(SOURCE, 'tests', 'e2e', kind + '.py')
    if not os.path.exists(path):
        return [entry]
    with open(path, encoding='utf-8') as file:
        text = file.read()
    known = set(re.findall(r'^def test_(\w+)', text, re.M))
    if 'globals()' in text:  # tests are made of a table there
        known.update(re.findall(r"'(\w+)': \w", text))
    return [f'{kind}: {name}' for name in names if name not in known]


gone = [name for row in table.values() for entry in row.get("tests", []) for name in missing(entry)]
check("the tests that it names are there", not gone, gone)
with open(run.PAGE, encoding='utf-8') as file:
    check('docs/robustness.md is made of it (tests/torture/run.py --page)', file.read() == run.page())
stray = sorted(set(run.results()) - {name for name, row in table.items() if 'tests' in row})
check('results are of rows that have tests', not stray, stray)
finish()
