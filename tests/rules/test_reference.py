"""docs/REFERENCE.md names every section, verb, option of report, variable and part to collect that there is, and none that there is not."""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check import SOURCE, check, finish  # noqa: E402

INTERNAL = {'GPUTRACE_RUN'}  # from `run` to the processes that it starts
NOT_BUILT = {'GPUTRACE_KEEP', 'GPUTRACE_SHM', 'GPUTRACE_SIGNAL', 'GPUTRACE_METRICS', 'GPUTRACE_CONFIG', '--html', '--steps'}


def text(*path):
    with open(os.path.join(SOURCE, *path), encoding='utf-8') as file:
        return file.read()


def folder_text(*path):
    at = os.path.join(SOURCE, *path)
    return '\n'.join(text(folder, name) for folder, _, names in os.walk(at) for name in names if name.endswith(('.cpp', '.h', '.def')))


def compare(what, there, said):
    check(f'REFERENCE names every {what}', not there - said, sorted(there - said))
    check(f'REFERENCE names no {what} that there is not', not said - there, sorted(said - there))


def main():
    reference = text('docs', 'REFERENCE.md')
    sections = reference[reference.index('## Sections'):reference.index('## JSON')]
    # The first column, and what a row adds after a semicolon: "`categories` | …; `category-tree`: …".
    named = set(re.findall(r'`([a-z-]+)`', ' '.join(line.split('|')[1] for line in sections.splitlines() if line.startswith('| `'))))
    named |= set(re.findall(r'; `([a-z-]+)`:', sections))
    compare('section', set(re.findall(r'^GT_REPORT\("([a-z-]+)"', text('analysis', 'reports', 'list.def'), re.M)), named)

    verbs = set(re.findall(r'^\| `([a-z]+)[` ]', reference[:reference.index('Exit codes')], re.M))
    compare('verb', set(re.findall(r'\{"([a-z]+)", "[^"]*", \w+_verb', text('cli', 'main.cpp'))), verbs)

    options = set(re.findall(r'"(?:-\w,)?(--[a-z]+)"', text('cli', 'report_verb.cpp'))) - NOT_BUILT
    row = next(line for line in reference.splitlines() if line.startswith('| `report '))
    compare('option of report', options - {'--output'}, set(re.findall(r'--[a-z]+', row)))

    known = set(re.findall(r'"(GPUTRACE(?:_[A-Z_]+)?)"', text('interpose', 'settings', 'options.cpp'))) - INTERNAL - NOT_BUILT
    compare('variable', known, set(re.findall(r'`(GPUTRACE(?:_[A-Z_]+)?)`', reference)))

    parts = text('base', 'collect_parts.h')
    named = dict(re.findall(r'\{(k\w+), "(\w+)"\}', parts))
    row = next(line for line in reference.splitlines() if line.startswith('| `GPUTRACE_COLLECT`'))
    compare('part of GPUTRACE_COLLECT', {*named.values(), 'all'}, set(re.search(r'a list of `([a-z ]+)`', row)[1].split()))
    default = re.search(r'kDefault = ([^;]+);', parts)[1].split(' | ')
    compare('part that is collected by default', {named[bit] for bit in default}, set(row.split('|')[2].strip(' `').split(',')))

    knobs = set(re.findall(r'"(SIMGPU_[A-Z_]+)"', folder_text('simgpu', 'driver') + folder_text('simgpu', 'cupti')))
    compare('knob of the simulated GPU', knobs, set(re.findall(r'`(SIMGPU_[A-Z_]+)`', reference)))
    finish()


main()
