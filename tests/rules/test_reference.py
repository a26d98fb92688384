"""docs/REFERENCE.md names every verb, option of report, variable and part to collect that there is, and none that there is not; what it
says of sections and findings is what those say of themselves. GT_UPDATE=1 writes that part."""
import difflib
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check import SOURCE, artefact, check, finish, skip  # noqa: E402

INTERNAL = {'GPUTRACE_RUN', 'GPUTRACE_RUN_NOTES', 'GPUTRACE_RUN_MEMORY', 'GPUTRACE_RUN_START'}  # from `run` to the processes that it starts
NOT_BUILT = {'GPUTRACE_KEEP', 'GPUTRACE_SIGNAL', 'GPUTRACE_METRICS', 'GPUTRACE_CONFIG'}


def text(*path):
    with open(os.path.join(SOURCE, *path), encoding='utf-8') as file:
        return file.read()


def folder_text(*path):
    at = os.path.join(SOURCE, *path)
    return '\n'.join(text(folder, name) for folder, _, names in os.walk(at) for name in names if name.endswith(('.cpp', '.c', '.h', '.def', '.py')))


def compare(what, there, said):
    check(f'REFERENCE names every {what}', not there - said, sorted(there - said))
    check(f'REFERENCE names no {what} that there is not', not said - there, sorted(said - there))


def check_generated(reference):
    program = artefact('GT_REFERENCE_DOC', 'analysis/reference_doc')
    if not program:
        return skip('sections of docs/REFERENCE.md', 'the program that prints them is not built yet')
    printed = subprocess.run([program], stdout=subprocess.PIPE, check=True, timeout=60).stdout.decode()
    findings = re.findall(r'^\| `([a-z0-9-]+)` ', printed[printed.index('## Findings'):], re.M)
    tests = folder_text('tests', 'unit') + folder_text('tests', 'e2e')
    untested = [each for each in findings if f'"{each}"' not in tests and f"'{each}'" not in tests]
    check('a test names every finding', not untested, untested)
    begin, end = reference.index('## Sections'), reference.index('## JSON')
    if os.environ.get('GT_UPDATE'):
        with open(os.path.join(SOURCE, 'docs', 'REFERENCE.md'), 'w', encoding='utf-8') as file:
            file.write(reference[:begin] + printed + reference[end:])
        return None
    difference = list(difflib.unified_diff(reference[begin:end].splitlines(), printed.splitlines(), 'docs/REFERENCE.md', 'analysis', lineterm=''))
    return check('sections and findings of docs/REFERENCE.md are as they say themselves', not difference,
                 '\n'.join([''] + difference[:20] + ['fix: GT_UPDATE=1 python3 tests/rules/test_reference.py']))


def main():
    reference = text('docs', 'REFERENCE.md')
    check_generated(reference)

    verbs = set(re.findall(r'^\| `([a-z]+)[` ]', reference[:reference.index('Exit codes')], re.M))
    compare('verb', set(re.findall(r'^GT_VERB\((\w+),', text('cli', 'list.def'), re.M)), verbs)

    options = set(re.findall(r'"(?:-\w,)?(--[a-z-]+)"', text('cli', 'read', 'report_options.cpp')))
    row = next(line for line in reference.splitlines() if line.startswith('| `report '))
    compare('option of report', options - {'--output'}, set(re.findall(r'--[a-z-]+', row)))

    known = set(re.findall(r'"(GPUTRACE(?:_[A-Z_]+)?)"', text('base', 'variables.h'))) - INTERNAL - NOT_BUILT
    compare('variable', known, set(re.findall(r'`(GPUTRACE(?:_[A-Z_]+)?)`', reference)))

    compare('variable in the manual', known, set(re.findall(r'^GT_VARIABLE\((\w+),', text('cli', 'documents', 'variables.def'), re.M)))

    parts = text('base', 'collect_parts.h')
    named = dict(re.findall(r'\{(k\w+), "(\w+)"\}', parts))
    row = next(line for line in reference.splitlines() if line.startswith('| `GPUTRACE_COLLECT`'))
    compare('part of GPUTRACE_COLLECT', {*named.values(), 'all'}, set(re.search(r'a list of `([a-z ]+)`', row)[1].split()))
    default = re.search(r'kDefault = ([^;]+);', parts)[1].split(' | ')
    compare('part that is collected by default', {named[bit] for bit in default}, set(row.split('|')[2].strip(' `').split(',')))

    knobs = set(re.findall(r'"(SIMGPU_[A-Z_]+)"', folder_text('simgpu')))
    compare('knob of the simulated GPU', knobs, set(re.findall(r'`(SIMGPU_[A-Z_]+)`', reference)))
    finish()


main()
