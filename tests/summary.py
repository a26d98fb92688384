"""Counts the cases of a `meson test` run, and picks tests by name.

  summary.py count TESTLOG.json [AGAIN]   prints what failed and why what was skipped was skipped; the last line is
                                          `N passed, N failed, N skipped`; exit 0 only when nothing failed and something passed.
                                          AGAIN is the log of a second run of what failed: its result counts, and it is said
  summary.py again TESTLOG.json           prints the end-to-end files that failed, where they are few enough to be run again
  summary.py select BUILD REGEX [SUITE]   prints the names of the tests whose SUITE/NAME matches

A test file counts as many cases as it says it ran: by a line `CASES passed failed skipped` (tests/e2e/harness.py), by
GoogleTest's summary, else one. A file that meson calls failed counts at least one failed case, whatever it printed.
"""
import json
import re
import subprocess
import sys

CASES = re.compile(r'^CASES (\d+) (\d+) (\d+)$', re.M)
MOST_AGAIN = 2  # files
GTEST_PASSED = re.compile(r'^\[  PASSED  \] (\d+) tests?', re.M)
GTEST_FAILED = re.compile(r'^\[  FAILED  \] (\d+) tests?, listed below', re.M)
GTEST_SKIPPED = re.compile(r'^\[  SKIPPED \] (\d+) tests?, listed below', re.M)


def cases(entry):
    """(passed, failed, skipped) of one entry of meson's log."""
    out, result = entry.get('stdout', ''), entry['result']
    if found := CASES.search(out):
        counts = [int(n) for n in found.groups()]
    elif found := GTEST_PASSED.search(out):
        failed, skipped = GTEST_FAILED.search(out), GTEST_SKIPPED.search(out)
        counts = [int(found[1]), int(failed[1]) if failed else 0, int(skipped[1]) if skipped else 0]
    else:
        counts = [0, 0, 0]
        counts[{'OK': 0, 'EXPECTEDFAIL': 0, 'SKIP': 2}.get(result, 1)] = 1
    if result not in ('OK', 'EXPECTEDFAIL', 'SKIP') and counts[1] == 0:
        counts[1] = 1
    return counts


def entries_of(path):
    try:
        with open(path, encoding='utf-8', errors='replace') as log:
            return [json.loads(line) for line in log if line.strip()]
    except OSError as error:
        print(f'no test ran: {error}', file=sys.stderr)
        return []


def again(path):
    """Real processes on a machine of which nothing is known: one in thousands of cases may fail by a moment's chance. More than that is no chance."""
    failed = [entry['name'] for entry in entries_of(path) if cases(entry)[1]]
    if len(failed) <= MOST_AGAIN and all(':e2e / ' in name for name in failed):
        for name in failed:
            print(name.split(' / ')[-1])
    return 0


def count(path, path_again=None):
    total, failed_names, reasons = [0, 0, 0], [], []
    second = {entry['name']: entry for entry in entries_of(path_again)} if path_again else {}
    for entry in entries_of(path):
        counts = cases(entry)
        if counts[1] and entry['name'] in second:
            print(f"FAILED ONCE {entry['name']}: its second run counts")
            counts = cases(second[entry['name']])
        total = [a + b for a, b in zip(total, counts)]
        if counts[1]:
            failed_names.append(entry['name'])
        if counts[2]:
            said = re.findall(r'(?i)^.*\bskip(?:ped)?: .*$', entry.get('stdout', '') + entry.get('stderr', ''), re.M)
            reasons.append(f"{entry['name']}: " + ('; '.join(line.strip() for line in said[:4]) or 'no reason given'))
    for line in reasons:
        print('skipped in', line)
    for name in failed_names:
        print('FAILED', name)
    print('{} passed, {} failed, {} skipped'.format(*total))
    return 0 if total[0] and not total[1] else 1


def select(build, pattern, suite=''):
    tests = json.loads(subprocess.run(['meson', 'introspect', '--tests', build], check=True, stdout=subprocess.PIPE).stdout)
    for test in tests:
        suites = [name.split(':')[-1] for name in test['suite']]
        if (not suite or suite in suites) and re.search(pattern, '/'.join([suites[0] if suites else '', test['name']])):
            print(test['name'])
    return 0


if __name__ == '__main__':
    sys.exit({'count': count, 'again': again, 'select': select}[sys.argv[1]](*sys.argv[2:]))
