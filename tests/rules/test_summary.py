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


@contextlib.contextmanager
def log_of(*entries):
    with tempfile.NamedTemporaryFile('w', suffix='.json') as log:
        for result, stdout, *name in entries:
            log.write(json.dumps({'name': name[0] if name else 'x', 'result': result, 'stdout': stdout}) + '\n')
        log.flush()
        yield log.name


def printed(function, *paths):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        rc = function(*paths)
    return rc, out.getvalue().splitlines()


def counted(*entries):
    with log_of(*entries) as path:
        rc, lines = printed(summary.count, path)
    return rc, lines[-1]


def second_runs():
    """What failed once is run again, a few end-to-end files at most, and that is said."""
    good, bad, other, unit = (('OK', 'CASES 2 0 0\n', 'gputrace:e2e / a'), ('FAIL', 'CASES 1 1 0\n', 'gputrace:e2e / b'),
                              ('TIMEOUT', '', 'gputrace:e2e / c'), ('FAIL', '', 'gputrace:unit / d'))
    for what, entries, wanted in (('what failed is run again', (good, bad, other), ['b', 'c']), ('nothing failed', (good,), []),
                                  ('a unit test has no bad luck', (bad, unit), []), ('many have no bad luck', (bad, other, bad), [])):
        with log_of(*entries) as path:
            check(what, printed(summary.again, path) == (0, wanted), wanted)
    once = 'FAILED ONCE gputrace:e2e / b: its second run counts'
    for what, entry, wanted in (('the second run counts', ('OK', 'CASES 2 0 0\n', bad[2]), (0, [once, '4 passed, 0 failed, 0 skipped'])),
                                ('what fails twice fails', bad, (1, [once, 'FAILED ' + bad[2], '3 passed, 1 failed, 0 skipped']))):
        with log_of(good, bad) as path, log_of(entry) as path_again:
            check(what, printed(summary.count, path, path_again) == wanted, wanted)
    with log_of(good, bad) as path, contextlib.redirect_stderr(io.StringIO()):
        check('a second run without a log is no success', printed(summary.count, path, '/nonexistent')[0] == 1)


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
    second_runs()
    with contextlib.redirect_stderr(io.StringIO()):
        check('a run without a log is no success', printed(summary.count, '/nonexistent/testlog.json')[0] == 1)
    finish()


main()
