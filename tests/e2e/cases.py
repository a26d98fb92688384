"""The test_* functions of one file: checks, skips, their scratch folders, and no process that outlives them."""
import collections
import ctypes
import glob
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

FULL = os.environ.get('GT_FULL') == '1'  # the large sweeps, by hand: hours, not minutes
SIDECAR_TIMEOUT = 20    # seconds for the sidecar to end after the program has


class Failed(Exception):
    pass


class Skipped(Exception):
    pass


def fail(message):
    raise Failed(message)


def skip(reason):
    raise Skipped(reason)


def check(condition, message='', *values):
    """check(a == b, 'what was wanted', a, b): the values are shown when it fails."""
    if not condition:
        raise Failed(f'{message}' + ''.join(f'\n    {value!r}'[:2000] for value in values))


def check_equal(got, wanted, what=''):
    check(got == wanted, f'{what}: got {got!r}, wanted {wanted!r}'[:4000])


_scratch = None


def scratch(*parts):
    """A path in the running test's own folder."""
    return os.path.join(_scratch, *parts)


def main(together=False):
    """Runs the test_* functions of the calling script, in their order; those named on the command line, if any. Together: all at a time, each in
    a process of its own, where most of what they do is to wait."""
    global _scratch
    module = sys.modules['__main__']
    tests = [(name, value) for name, value in vars(module).items() if name.startswith('test_') and callable(value)]
    if sys.argv[1:]:
        tests = [(name, value) for name, value in tests if name in sys.argv[1:]]
    elif together:
        run_together([name for name, _ in tests])
    counts = collections.Counter()
    become_reaper()
    stop_ignoring_signals()
    for name, function in tests:
        _scratch = tempfile.mkdtemp(prefix=f'gputrace-{name}-')
        began, detail = time.monotonic(), ''
        try:
            function()
            outcome = 'passed'
        except Skipped as reason:
            outcome, detail = 'skipped', f': {reason}'
        except Failed as error:
            outcome, detail = 'failed', f': {error}\n' + ''.join(traceback.format_list(traceback.extract_tb(error.__traceback__)[1:]))
        except Exception:
            outcome, detail = 'failed', ':\n' + traceback.format_exc()
        left = end_orphans()
        if left and outcome != 'failed':
            outcome, detail = 'failed', f': left behind: {left}'
        counts[outcome] += 1
        print(f'{outcome} {name} ({time.monotonic() - began:.1f} s)'.replace('skipped', 'skipped:') + detail, flush=True)
        if os.environ.get('GT_KEEP'):
            print('  kept', _scratch)
        else:
            shutil.rmtree(_scratch, ignore_errors=True)
    end_with(counts['passed'], counts['failed'], counts['skipped'])


def end_with(passed, failed, skipped):
    print(f'CASES {passed} {failed} {skipped}')
    sys.exit(1 if failed else 0 if passed else 77)


def run_together(names):
    runs = [subprocess.Popen([sys.executable, sys.argv[0], name], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for name in names]
    sums = [0, 0, 0]
    for name, run in zip(names, runs):
        said, _, cases = run.communicate()[0].decode(errors='replace').rpartition('CASES ')
        counts = [int(word) for word in cases.split()] if said else [0, 1, 0]
        print(said or f'failed {name}: ended by {run.returncode} without a word: {cases}', end='' if said else '\n', flush=True)
        sums = [old + new for old, new in zip(sums, counts)]
    end_with(*sums)


def become_reaper():
    PR_SET_CHILD_SUBREAPER = 36
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def stop_ignoring_signals():
    """What nohup or a shell made us ignore, the programs that we start would ignore too: a handler, unlike that, ends with exec.
    (Python's own SIGPIPE and SIGXFSZ are given back by subprocess.)"""
    for number in signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}:
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


def children():
    """Processes whose parent we are: those that we started, and orphans of theirs (we are their reaper)."""
    found = []
    for path in glob.glob('/proc/self/task/*/children'):
        try:
            with open(path, encoding='utf-8') as file:
                found += [int(pid) for pid in file.read().split()]
        except OSError:
            pass
    return found


reaped_by_owner = set()  # pids of Popen objects, which reap for themselves


def wait_for_orphans(seconds=SIDECAR_TIMEOUT):
    """Waits until sidecars and other orphans of what ran have ended. Returns those that have not."""
    deadline = time.monotonic() + seconds
    while True:
        left, ended = [], False
        for pid in children():
            if pid in reaped_by_owner:
                continue
            try:
                if os.waitpid(pid, os.WNOHANG)[0] == 0:
                    left.append(pid)
                else:
                    ended = True
            except ChildProcessError:
                ended = True
        if ended and time.monotonic() < deadline:
            continue  # what has ended may have left its own children to us after we looked
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.002)


def end_orphans():
    names = []
    for pid in wait_for_orphans():
        try:
            with open(f'/proc/{pid}/cmdline', encoding='utf-8', errors='replace') as file:
                names.append(f"{pid} {file.read().replace(chr(0), ' ')}".strip())
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        except (OSError, ChildProcessError):
            pass
    return names
