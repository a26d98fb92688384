"""The last line of ./dev test is what CI believes: that it counts right, and cannot pass when something failed."""
import contextlib
import io
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check import SOURCE, check, finish  # noqa: E402

sys.path.insert(0, os.path.join(SOURCE, 'tests'))
import summary  # noqa: E402

GTEST = '[==========] 5 tests from 1 test suite ran.\n[  PASSED  ] 3 tests.\n[  SKIPPED ] 1 test, listed below:\n[  FAILED  ] 1 test, listed below:\n'


def counted(*entries):
    with tempfile.NamedTemporaryFile('w', suffix='.json') as log:
        for result, stdout in entries:
            log.write(json.dumps({'name': 'x', 'result': result, 'stdout': stdout}) + '\n')
        log.flush()
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            rc = summary.count(log.name)
    return rc, out.getvalue().splitlines()[-1]


def main():
    for what, entries, wanted in (
            ('one file is one case', [('OK', '')], (0, '1 passed, 0 failed, 0 skipped')),
            ('a CASES line counts', [('OK', 'x\nCASES 3 0 2\n')], (0, '3 passed, 0 failed, 2 skipped')),
            ('GoogleTest\'s summary counts', [('FAIL', GTEST)], (1, '3 passed, 1 failed, 1 skipped')),
            ('a failed case fails', [('OK', ''), ('FAIL', 'CASES 3 1 0\n')], (1, '4 passed, 1 failed, 0 skipped')),
            ('a crash after a good line fails', [('FAIL', 'CASES 3 0 0\n')], (1, '3 passed, 1 failed, 0 skipped')),
            ('a timeout fails', [('TIMEOUT', '')], (1, '0 passed, 1 failed, 0 skipped')),
            ('an interrupted test fails', [('OK', ''), ('INTERRUPT', '')], (1, '1 passed, 1 failed, 0 skipped')),
            ('all skipped is no success', [('SKIP', 'skipped: x: why\n')], (1, '0 passed, 0 failed, 1 skipped')),
            ('no test at all is no success', [], (1, '0 passed, 0 failed, 0 skipped'))):
        got = counted(*entries)
        check(what, got == wanted, f'{got}, wanted {wanted}')
    with contextlib.redirect_stdout(io.StringIO()):
        missing = summary.count('/nonexistent/testlog.json')
    check('a run without a log is no success', missing == 1)
    finish()


main()
