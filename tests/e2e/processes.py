"""Programs, with gputrace and without: how they end, what they print, where their trace and the truth are."""
import glob
import json
import os
import shutil
import subprocess
import time

import cases
from artefacts import places
from cases import reaped_by_owner, check, fail, scratch, wait_for_orphans

TIMEOUT = 60            # seconds for one program


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
    options = {'stdin': subprocess.DEVNULL, 'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE, 'cwd': cases._scratch, **options}
    process = subprocess.Popen(command, env=environment() if env is None else env, **options)
    reaped_by_owner.add(process.pid)
    return process


def finish(process, timeout=TIMEOUT, stdin=None):
    """(exit code, stdout, stderr) of a process of `start`; one that takes longer is killed, and the test fails."""
    try:
        out, err = process.communicate(input=stdin, timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        reaped_by_owner.discard(process.pid)
        fail(f'{process.args}: killed after {timeout} s; it printed\n{out!r}\n{err!r}'[:4000])
    reaped_by_owner.discard(process.pid)
    return process.returncode, out or b'', err or b''


def run_command(command, env, timeout, stdin, **options):
    began = time.monotonic()
    process = start(command, env, stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL, **options)
    return finish(process, timeout, stdin), time.monotonic() - began


def untraced(command, env=None, timeout=TIMEOUT, stdin=None, **options):
    """The program on the simulated GPU, without us."""
    (rc, out, err), seconds = run_command(command, environment(**(env or {})), timeout, stdin, **options)
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
    (rc, out, err), seconds = run_command(full, variables, timeout, stdin, **popen)
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
