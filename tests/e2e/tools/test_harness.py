# The harness itself: that it can fail, that it waits for orphans, that it compares what it says it compares.
import subprocess
import sys
import time

import cases
from harness import *


def test_a_false_check_fails():
    try:
        check(1 == 2, 'one is two')
    except Failed as error:
        check('one is two' in str(error))
        return
    raise AssertionError('check(False) did not fail')


def test_same_output_sees_every_difference():
    def run(rc=0, out=b'a', err=b'b'):
        return Run([], rc, out, err, 0.0)
    same_output(run(), run())
    for other in (run(rc=1), run(out=b'x'), run(err=b'')):
        try:
            same_output(run(), other)
        except Failed:
            continue
        raise AssertionError('a difference was not seen')


def test_orphans_are_waited_for():
    began = time.monotonic()
    subprocess.run(['sh', '-c', 'setsid sleep 0.4 & exit 0'], check=True)
    check(not wait_for_orphans(10))
    check(time.monotonic() - began > 0.3, 'the orphan was waited for')


def test_an_orphan_that_stays_is_named():
    subprocess.run(['sh', '-c', 'setsid sleep 60 & exit 0'], check=True)
    left = wait_for_orphans(0.2)
    check_equal(len(left), 1, 'orphans')
    limit, wait_for_orphans.__defaults__ = wait_for_orphans.__defaults__, (0.1,)
    try:
        check('sleep 60' in end_orphans()[0])
    finally:
        wait_for_orphans.__defaults__ = limit


def test_a_program_that_hangs_is_killed():
    try:
        finish(start([sys.executable, '-c', 'import time; time.sleep(60)'], env={}), timeout=0.3)
    except Failed as error:
        check('killed after 0.3 s' in str(error))
        return
    raise AssertionError('the hang was not noticed')


# A harness of its own, which tells how programs end that are sent these signals.
ENDS = """
import os, signal, subprocess
from cases import stop_ignoring_signals
stop_ignoring_signals()
for number in (signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
    os.kill(os.getpid(), number)  # still nothing to us
    print(subprocess.run(['sh', '-c', f'kill -{int(number)} $$'], check=False).returncode)
"""


def test_signals_that_we_ignore_are_not_ignored_in_programs():
    process = start(['sh', '-c', 'trap "" INT HUP USR1 CHLD; exec "$@"', 'sh', sys.executable, '-c', ENDS],
                    env={'PYTHONPATH': os.path.dirname(os.path.abspath(cases.__file__)), 'PATH': os.environ['PATH']})
    code, out, err = finish(process)
    check_equal((code, out), (0, b'-2\n-1\n-10\n'), f'what ends a program ({err!r})')


main()
