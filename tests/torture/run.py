"""The torture list: runs rows of rows.toml and writes down what became of them.

    run.py T13 T28           those rows, at quick counts
    run.py --full [T13]      at nightly counts (GT_FULL=1); --release: ten times those
    run.py --list            the rows
    run.py --page            docs/robustness.md from the table and the results that are kept

Without rows: all that have tests. Results go to tests/torture/results.json, which is kept. Exit code 1: something failed.
"""
import argparse
import datetime
import json
import os
import re
import subprocess
import sys
import time
import tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
RESULTS = os.path.join(HERE, 'results.json')
PAGE = os.path.join(SOURCE, 'docs', 'robustness.md')
E2E = os.path.join(SOURCE, 'tests', 'e2e')
_tests = None
FUZZ_SECONDS = {'quick': 20, 'full': 600, 'release': 86400}


def rows():
    with open(os.path.join(HERE, 'rows.toml'), 'rb') as file:
        return tomllib.load(file)


def results():
    if not os.path.exists(RESULTS):
        return {}
    with open(RESULTS, encoding='utf-8') as file:
        return json.load(file)


def build():
    return os.environ.get('GT_BUILD') or os.path.join(SOURCE, 'build', 'debug')


def as_meson_has_it(suite, name):
    """(command, environment) of that test."""
    global _tests
    if _tests is None:
        _tests = json.loads(subprocess.run(['meson', 'introspect', '--tests', build()], stdout=subprocess.PIPE, check=True).stdout)
    for test in _tests:
        if test['name'] == name and any(each.split(':')[-1] == suite for each in test['suite']):
            return test['cmd'], test['env']
    return None, {}


def command_of(entry, level):
    """(command, environment) of one entry of `tests`; None: it is not built here."""
    kind, *rest = entry.split()
    if kind == 'fuzz':
        target = os.path.join(SOURCE, 'build', 'fuzz', 'tests', 'fuzz', 'fuzz_' + rest[0])
        corpus = os.path.join(SOURCE, 'tests', 'fuzz', 'corpus', rest[0])
        seeds = [corpus] if os.path.isdir(corpus) else []
        return ([target, f'-max_total_time={FUZZ_SECONDS[level]}', '-rss_limit_mb=2048', *seeds], {}) if os.path.exists(target) else None
    if kind in ('unit', 'rules'):
        command, environment = as_meson_has_it(kind, rest[0])
        if not command or not (os.path.exists(command[0]) or kind == 'rules'):
            return None
        return command + [f'--gtest_filter={pattern}' for pattern in rest[1:]], environment
    environment = dict(as_meson_has_it('e2e', kind.split('test_')[1])[1])
    if level != 'quick':
        environment['GT_FULL'] = '1'
    return [sys.executable, os.path.join(E2E, kind + '.py'), *('test_' + name for name in rest)], environment


def counts_of(output, entry):
    """(passed, failed, skipped) as the test says them."""
    cases = re.findall(r'^CASES (\d+) (\d+) (\d+)', output, re.M)
    if cases:
        return tuple(map(int, cases[-1]))
    passed = re.search(r'\[  PASSED  \] (\d+) test', output)
    failed = len(re.findall(r'^\[  FAILED  \] \S+ \(', output, re.M))
    skipped = re.search(r'\[  SKIPPED \] (\d+) test', output)
    if passed:
        return int(passed[1]), failed, int(skipped[1]) if skipped else 0
    runs = re.search(r'^Done (\d+) runs', output, re.M)
    return (1, 0, 0) if entry.startswith('fuzz') and runs else (0, 1, 0)


def run_entry(entry, level):
    made = command_of(entry, level)
    if made is None:
        return (0, 0, 1), f'skipped: {entry} is not built here'
    command, environment = made
    done = subprocess.run(command, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          cwd=SOURCE, check=False)
    output = done.stdout.decode(errors='replace')
    passed, failed, skipped = counts_of(output, entry)
    if done.returncode not in (0, 77) and not failed:
        failed = 1
    return (passed, failed, skipped), output


def run_row(name, row, level):
    began, sums, reasons = time.monotonic(), [0, 0, 0], []
    for entry in row['tests']:
        for _ in range(10 if level == 'release' and not entry.startswith('fuzz') else 1):
            counts, output = run_entry(entry, level)
            sums = [a + b for a, b in zip(sums, counts)]
            reasons += re.findall(r'^skipped:? .*', output, re.M)
            if counts[1]:
                print(output[-4000:], file=sys.stderr)
    passed, failed, skipped = sums
    outcome = 'failed' if failed else 'passed' if passed else 'skipped'
    commit = subprocess.run(['git', '-C', SOURCE, 'rev-parse', '--short', 'HEAD'], stdout=subprocess.PIPE, check=False).stdout.decode().strip()
    print(f'{name}: {outcome} ({passed} passed, {failed} failed, {skipped} skipped, {time.monotonic() - began:.0f} s)', flush=True)
    return {'outcome': outcome, 'passed': passed, 'failed': failed, 'skipped': skipped, 'level': level, 'why_skipped': sorted(set(reasons))[:3],
            'date': datetime.date.today().isoformat(), 'commit': commit}


def how_often(row, result):
    counts = row.get('counts', '')
    if ' / ' not in counts or not result:
        return counts
    quick, full = counts.split(' / ', 1)
    unit = full.split(' ', 1)[1] if ' ' in full and not re.search('[a-z]', quick) else ''
    return full + (', ten times' if result['level'] == 'release' else '') if result['level'] != 'quick' else f'{quick} {unit}'.strip()


def page():
    kept, lines = results(), []
    tested = [name for name, row in rows().items() if 'tests' in row]
    passed = [name for name in tested if kept.get(name, {}).get('outcome') == 'passed']
    for name, row in rows().items():
        if 'none' in row:
            lines.append(f"| {name} | {row['fault']} | no test | {row['none']} |")
            continue
        result = kept.get(name)
        said = 'not run yet' if not result else f"{result['outcome']}, {result['passed']} cases ({result['level']}, {result['date']}, {result['commit']})"
        notes = [how_often(row, result)]
        if result and result['skipped']:
            notes.append(f"{result['skipped']} skipped there")
        if 'part' in row:
            notes.append('left out: ' + row['part'])
        lines.append(f"| {name} | {row['fault']} | {said} | {'; '.join(note for note in notes if note)} |")
    return f"""# The torture list

Made by `tests/torture/run.py --page` from `tests/torture/rows.toml` and the results of `./dev torture`; not written by hand.

{len(tested)} of {len(rows())} rows have tests, {len(passed)} passed the last time that they were run. `./dev torture T13` runs one row, `--full` at nightly, `--release` at
release counts. A row without a test says why.

| row | what is done | result | how often, what is left out |
|---|---|---|---|
""" + '\n'.join(lines) + '\n'


def write_page():
    with open(PAGE, 'w', encoding='utf-8') as file:
        file.write(page())


def main():
    parser = argparse.ArgumentParser(prog='./dev torture', description='Rows of the torture list.')
    parser.add_argument('rows', nargs='*', metavar='ROW')
    parser.add_argument('--full', action='store_true', help='nightly counts')
    parser.add_argument('--release', action='store_true', help='release counts')
    parser.add_argument('--list', action='store_true', help='the rows')
    parser.add_argument('--page', action='store_true', help='docs/robustness.md')
    options = parser.parse_args()
    table = rows()
    for name in options.rows:
        if name not in table:
            parser.error(f'no row {name}: T01 to T{len(table)}')
    if options.list:
        for name, row in table.items():
            print(f"{name}  {row['fault']}" + (f" (no test: {row['none']})" if 'none' in row else ''))
        return 0
    if options.page:
        write_page()
        return 0
    level = 'release' if options.release else 'full' if options.full else 'quick'
    bad = False
    for name in options.rows or table:
        if 'none' in table[name]:
            if options.rows:
                print(f"{name}: no test: {table[name]['none']}")
            continue
        result = run_row(name, table[name], level)
        bad = bad or result['outcome'] == 'failed'
        kept = {**results(), name: result}  # other rows may run beside this one
        with open(RESULTS, 'w', encoding='utf-8') as file:
            json.dump(dict(sorted(kept.items(), key=lambda item: int(item[0][1:]))), file, indent=1)
            file.write('\n')
    write_page()
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
