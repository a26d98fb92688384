"""End-to-end scenarios: run a program with and without gputrace on the simulated GPU, and hold the trace against the truth.

A scenario is one file tests/e2e/test_*.py with functions test_*; meson finds it by its name. It looks like this:

    # meson: serial timeout=120        (optional first lines: not beside other tests; seconds)
    from harness import *

    def test_every_launch_is_seen():
        run = traced([program('streams')])
        plain = untraced([program('streams')])
        same_output(plain, run)
        check_launches_against_truth(run)
        check_conservation(run)

    main()

Each test_* gets a fresh scratch folder. A check that fails ends its test_* function; skip('why') ends it as skipped. The last
line that a file prints is `CASES passed failed skipped`; its exit code is 0, 1 when something failed, 77 when all was skipped.
No process outlives a test: what is left after the time limit is killed, and that fails the test.

By hand: GT_BUILD=DIR python3 tests/e2e/test_x.py [test_name...]; GT_KEEP=1 keeps the scratch folders and prints them; GT_FULL=1
raises the counts of the sweeps (1000 kills, 10,000 forks, 300 processes at once, every allocation).
"""
import collections
import ctypes
import fcntl
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

SOURCE = os.path.abspath(os.path.join(os.path.dirname(__file__), '..', '..'))
BUILD = os.path.abspath(os.environ.get('GT_BUILD', os.path.join(SOURCE, 'build', 'debug')))
TIMEOUT = 60            # seconds for one program
FULL = os.environ.get('GT_FULL') == '1'  # the large sweeps, by hand: hours, not minutes
SIDECAR_TIMEOUT = 20    # seconds for the sidecar to end after the program has


# --------------------------------------------------------------------------------------------------- test registry
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


def main():
    """Runs the test_* functions of the calling script, in their order; those named on the command line, if any."""
    global _scratch
    module = sys.modules['__main__']
    tests = [(name, value) for name, value in vars(module).items() if name.startswith('test_') and callable(value)]
    if sys.argv[1:]:
        tests = [(name, value) for name, value in tests if name in sys.argv[1:]]
    counts = collections.Counter()
    become_reaper()
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
        left = _end_orphans()
        if left and outcome != 'failed':
            outcome, detail = 'failed', f': left behind: {left}'
        counts[outcome] += 1
        print(f'{outcome} {name} ({time.monotonic() - began:.1f} s)'.replace('skipped', 'skipped:') + detail, flush=True)
        if os.environ.get('GT_KEEP'):
            print('  kept', _scratch)
        else:
            shutil.rmtree(_scratch, ignore_errors=True)
    print(f"CASES {counts['passed']} {counts['failed']} {counts['skipped']}")
    sys.exit(1 if counts['failed'] else 0 if counts['passed'] else 77)


# --------------------------------------------------------------------------------------------------- what was built
def _artefact(variable, *defaults):
    if os.environ.get(variable):
        return os.environ[variable]
    for pattern in defaults:
        for path in glob.glob(os.path.join(BUILD, pattern)):
            return path
    return None


def _tree():
    """The build's artefacts in the layout of an installed tree (hard links: programs that look beside themselves find the rest)."""
    parts = {'lib/libgputrace.so': _artefact('GT_LIBRARY', 'interpose/libgputrace.so'),
             'bin/gputrace': _artefact('GT_CLI', 'cli/gputrace'),
             'libexec/gputrace/gputrace-sidecar': _artefact('GT_SIDECAR', 'writer/gputrace-sidecar')}
    absent = [name for name, path in parts.items() if not path or not os.path.exists(path)]
    if absent:
        skip(f'not built: {", ".join(absent)}')
    for pattern in ('simgpu/**/lib*.so.*', 'simgpu/**/lib*.so'):
        for path in glob.glob(os.path.join(BUILD, pattern), recursive=True):
            if not path.endswith(('.p', '.symbols')) and os.path.isfile(path):
                parts['lib/gputrace/simgpu/' + os.path.basename(path)] = os.path.realpath(path)
    tree = os.path.join(BUILD, 'e2e-tree')
    os.makedirs(tree, exist_ok=True)
    with open(os.path.join(tree, '.lock'), 'w', encoding='utf-8') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name, path in parts.items():
            link = os.path.join(tree, name)
            if os.path.exists(link) and os.path.samefile(link, path):
                continue
            os.makedirs(os.path.dirname(link), exist_ok=True)
            if os.path.lexists(link):
                os.unlink(link)
            os.link(os.path.realpath(path), link)
    return tree


class _Places:
    """Paths, found when first asked for."""

    @property
    def tree(self):
        if '_found' not in self.__dict__:
            self._found = _tree()
        return self._found

    library = property(lambda self: os.path.join(self.tree, 'lib/libgputrace.so'))
    gputrace = property(lambda self: os.path.join(self.tree, 'bin/gputrace'))
    sidecar = property(lambda self: os.path.join(self.tree, 'libexec/gputrace/gputrace-sidecar'))

    @property
    def simgpu(self):
        folder = os.path.join(self.tree, 'lib/gputrace/simgpu')
        if not os.path.exists(os.path.join(folder, 'libcuda.so.1')):
            skip('not built: simgpu/libcuda.so.1')
        return folder


places = _Places()


def program(name):
    """A test program or example that the build made; the test is skipped where it was not made (no nvcc, say)."""
    for folder in (os.environ.get('GT_PROGRAMS', ''), os.path.join(BUILD, 'tests/programs'), os.path.join(BUILD, 'examples'),
                   os.path.join(BUILD, 'tests/simgpu')):
        path = os.path.join(folder, name)
        if folder and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return skip(f'not built: program {name}' + ('' if os.environ.get('GT_NVCC', '1') == '1' else ' (no nvcc)'))


def program_file(name):
    """A shared object that the build made for test programs."""
    path = os.path.join(os.environ.get('GT_PROGRAMS') or os.path.join(BUILD, 'tests/programs'), name)
    return path if os.path.exists(path) else skip(f'not built: {name}')


def compiled(name, text, *flags):
    """A small C program or library of the test's own, compiled in its scratch folder; -lcuda is the toolkit's stub."""
    compiler = shutil.which('cc') or shutil.which('gcc') or skip('no C compiler')
    source, out = scratch(name), scratch(os.path.splitext(name)[0] + ('.so' if '-shared' in flags else ''))
    with open(source, 'w', encoding='utf-8') as file:
        file.write(text)
    cuda = os.environ.get('GT_CUDA', '/usr/local/cuda')
    stubs = [flag for sub in ('lib64/stubs', 'lib/stubs', 'targets/x86_64-linux/lib/stubs') for flag in ('-L', os.path.join(cuda, sub))]
    done = subprocess.run([compiler, '-O1', '-I', os.path.join(cuda, 'include'), source, '-o', out, *stubs, *flags], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False)
    check(done.returncode == 0, f'{name} compiles', done.stdout.decode(errors='replace')[-1500:])
    return out


# --------------------------------------------------------------------------------------------------- processes
def become_reaper():
    PR_SET_CHILD_SUBREAPER = 36
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


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


_ours = set()  # pids of Popen objects, which reap for themselves


def wait_for_orphans(seconds=SIDECAR_TIMEOUT):
    """Waits until sidecars and other orphans of what ran have ended. Returns those that have not."""
    deadline = time.monotonic() + seconds
    while True:
        left = []
        for pid in children():
            if pid in _ours:
                continue
            try:
                if os.waitpid(pid, os.WNOHANG)[0] == 0:
                    left.append(pid)
            except ChildProcessError:
                pass
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.002)


def _end_orphans():
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


class Run:
    """One program run: how it ended, what it printed, and, when it was traced, where its trace is."""

    def __init__(self, command, returncode, stdout, stderr, seconds, output=None, truth=None):
        self.command, self.returncode, self.stdout, self.stderr, self.seconds = command, returncode, stdout, stderr, seconds
        self.output, self._truth = output, truth

    @property
    def traces(self):
        """The trace files, oldest first."""
        return sorted(glob.glob(os.path.join(self.output, '**', '*.gtrace'), recursive=True), key=os.path.getmtime)

    @property
    def trace(self):
        """The one trace file."""
        check(len(self.traces) == 1, f'one trace file in {self.output}', self.traces, os.listdir(self.output) if os.path.isdir(self.output) else None,
              self.stderr)
        return self.traces[0]

    @property
    def truth(self):
        """What the simulated GPU says that it did: every line of every process, in the order of pid and seq."""
        lines = []
        for path in glob.glob(self._truth.replace('%p', '*')):
            with open(path, encoding='utf-8') as file:
                lines += [json.loads(line) for line in file]
        return sorted(lines, key=lambda line: (line['pid'], line['seq'], line.get('start_ns') or 0))

    def truth_of(self, *ops):
        return [line for line in self.truth if line['op'] in ops]


def environment(**changes):
    """Ours, without what would change a run from outside; a value of None removes a variable."""
    env = {key: value for key, value in os.environ.items()
           if not key.startswith(('GPUTRACE', 'SIMGPU_', 'LD_', 'GT_', 'MESON_', 'RANK', 'LOCAL_RANK', 'SLURM_', 'OMPI_', 'PMI'))}
    env['LD_LIBRARY_PATH'] = places.simgpu
    env.update({key: str(value) for key, value in changes.items() if value is not None})
    for key, value in changes.items():
        if value is None:
            env.pop(key, None)
    return env


def start(command, env=None, **options):
    """A program in the background: a Popen object. The test ends it."""
    options = {'stdin': subprocess.DEVNULL, 'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE, 'cwd': _scratch, **options}
    process = subprocess.Popen(command, env=environment() if env is None else env, **options)
    _ours.add(process.pid)
    return process


def finish(process, timeout=TIMEOUT, stdin=None):
    """(exit code, stdout, stderr) of a process of `start`; one that takes longer is killed, and the test fails."""
    try:
        out, err = process.communicate(input=stdin, timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        _ours.discard(process.pid)
        fail(f'{process.args}: killed after {timeout} s; it printed\n{out!r}\n{err!r}'[:4000])
    _ours.discard(process.pid)
    return process.returncode, out or b'', err or b''


def _run(command, env, timeout, stdin, **options):
    began = time.monotonic()
    process = start(command, env, stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL, **options)
    return finish(process, timeout, stdin), time.monotonic() - began


def untraced(command, env=None, timeout=TIMEOUT, stdin=None, **options):
    """The program on the simulated GPU, without us."""
    (rc, out, err), seconds = _run(command, environment(**(env or {})), timeout, stdin, **options)
    return Run(command, rc, out, err, seconds)


def traced_environment(env=None, output=None):
    """What `traced(mode='preload')` runs a program with: for tests that start and kill it themselves."""
    return environment(**{'LD_PRELOAD': places.library, 'GPUTRACE_OUTPUT': output or scratch('trace'),
                          'SIMGPU_TRUTH': scratch('truth-%p.jsonl'), **(env or {})})


def traced(command, env=None, mode='preload', options=(), timeout=TIMEOUT, stdin=None, output=None, wait=True, **popen):
    """The program under gputrace: mode 'preload' (LD_PRELOAD by hand) or 'run' (`gputrace run OPTIONS -- COMMAND`). Returns
    when the program, and (wait) its sidecar, have ended."""
    output = output or scratch('trace')
    if mode == 'run':
        variables = environment(**{'SIMGPU_TRUTH': scratch('truth-%p.jsonl'), 'LD_LIBRARY_PATH': None, **(env or {})})
        full = [places.gputrace, 'run', '--simgpu', '-o', output, *options, '--', *command]
    else:
        variables, full = traced_environment(env, output), command
    (rc, out, err), seconds = _run(full, variables, timeout, stdin, **popen)
    if wait:
        left = wait_for_orphans()
        check(not left, 'the sidecar ends soon after the program', left)
    return Run(command, rc, out, err, seconds, output, scratch('truth-%p.jsonl'))


def forget_run():
    """Removes the trace and the truth of the runs so far, so that the next `traced` of this test begins anew."""
    shutil.rmtree(scratch('trace'), ignore_errors=True)
    for path in glob.glob(scratch('*.jsonl')):
        os.unlink(path)


def wait_until(condition, what, seconds=10):
    """Polls until `condition()` is true and returns its value."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        check(time.monotonic() < deadline, f'{what}, within {seconds} s')
        time.sleep(0.005)


# --------------------------------------------------------------------------------------------------- the analyzer
def gputrace(*arguments, rc=0, timeout=120, env=None, stdin=None, **options):
    """(stdout, stderr) as text of `gputrace ARGUMENTS`; rc None accepts any exit code, and then (rc, stdout, stderr) comes back."""
    (code, out, err), _ = _run([places.gputrace, *map(str, arguments)], environment(**(env or {})), timeout, stdin, **options)
    out, err = out.decode(errors='replace'), err.decode(errors='replace')
    if rc is None:
        return code, out, err
    check(code == rc, f'gputrace {" ".join(map(str, arguments))}: exit code {code}, wanted {rc}', err[:2000], out[:500])
    return out, err


def report(run, *sections, options=()):
    """The report as JSON: of a Run, a path or a list of paths."""
    paths = [run.output] if isinstance(run, Run) else [run] if isinstance(run, str) else list(run)
    chosen = ['--section', ','.join(sections)] if sections else []
    return json.loads(gputrace('report', *paths, '--json', *chosen, *options)[0])


def rows(run, section):
    return report(run, section)['sections'][section]['rows']


def metrics(run):
    """The overview as {metric: value}."""
    return {row['metric']: row['value'] for row in rows(run, 'overview')}


def dump(run):
    """Every record of a trace as a dict: `record` (its type), `call`, `result`, `tid`, `begin_ns`, `end_ns`, its fields, and `trace` (the file)."""
    paths = run.traces if isinstance(run, Run) else [run] if isinstance(run, str) else list(run)
    records = []
    for path in paths:
        records += [{'trace': path, **json.loads(line)} for line in gputrace('dump', '--json', path)[0].splitlines()]
    return records


def records(run, *types):
    return [record for record in dump(run) if record['record'] in types]


# --------------------------------------------------------------------------------------------------- what a trace must say
def same_output(plain, run):
    """Exit code, stdout and stderr are what they are without us."""
    for what in ('returncode', 'stdout', 'stderr'):
        check(getattr(plain, what) == getattr(run, what), f'{what} is the same with and without us', getattr(plain, what), getattr(run, what))


def _plain_launches(truth):
    """Truth lines of kernels that a launch call of their own started (not a graph, not a capture), in call order."""
    return [line for line in truth if line['op'] == 'kernel' and line.get('graph') is None]


def check_launches_against_truth(run):
    """Call by call and thread by thread: the same launches in the same order, with the same geometry, and times that enclose
    the driver's own. Returns how many there were."""
    wanted = collections.defaultdict(list)
    for line in _plain_launches(run.truth):
        wanted[line['tid']].append(line)
    got = collections.defaultdict(list)
    for record in records(run, 'KernelLaunch'):
        if record.get('result', 0) == 0 and not int(record.get('flags') or 0) & 2:  # 2: captured
            got[record['tid']].append(record)
    check_equal({tid: len(lines) for tid, lines in got.items()}, {tid: len(lines) for tid, lines in wanted.items()}, 'launches per thread')
    total = 0
    for tid, lines in wanted.items():
        lines.sort(key=lambda line: line['seq'])
        for line, record in zip(lines, sorted(got[tid], key=lambda record: record['begin_ns'])):
            geometry = [[record[f'{what}_{axis}'] for axis in 'xyz'] for what in ('grid', 'block')]
            check([list(line['grid']), list(line['block']), line['dynamic_shared_bytes']] == [*geometry, record['dynamic_shared_bytes']],
                  'grid, block and dynamic shared memory of a launch', line, record)
            check_encloses(record, line)
            total += 1
    return total


CLOCK_SLACK_NS = 2000  # TSC to CLOCK_MONOTONIC: the reader interpolates between anchors


def check_encloses(record, line):
    """Trace begin <= truth begin <= truth end <= trace end, within the error of the clock conversion."""
    check(record['begin_ns'] - CLOCK_SLACK_NS <= line['call_begin_ns'] and line['call_end_ns'] <= record['end_ns'] + CLOCK_SLACK_NS,
          'the trace encloses the call as the driver saw it', line, record)


def check_conservation(run):
    """Seen = stored + dropped for every thread, and stored is what the file really holds. Returns (seen, stored, dropped)."""
    threads = rows(run, 'quality')
    check(threads, 'the quality section has a row per thread')
    sums = collections.Counter()
    by_thread = collections.defaultdict(lambda: collections.Counter())
    for row in threads:
        key = (row['pid'], row['tid'], row.get('slot'), row.get('incarnation'))
        by_thread[key]['seen'] = max(by_thread[key]['seen'], row['seen'] or 0)
        by_thread[key]['stored'] = max(by_thread[key]['stored'], row['stored'] or 0)
        by_thread[key]['dropped'] += row['dropped'] or 0
    for key, row in by_thread.items():
        check(row['seen'] == row['stored'] + row['dropped'], f'seen = stored + dropped for thread {key}', dict(row))
        sums.update(row)
    return sums['seen'], sums['stored'], sums['dropped']


def truth_calls(run, pid=None):
    """{documented name: number of successful and failed calls} from the truth. Needs SIMGPU_TRUTH_CALLS=1; one call counts once,
    however many operations it caused."""
    seen = {(line['pid'], line['seq']): line['call'] for line in run.truth if pid in (None, line['pid'])}
    return collections.Counter(seen.values())
