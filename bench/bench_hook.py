"""What a traced call costs: ns and instructions, beside two bare timestamps and an LTTng-UST event of the same run.

Each figure is that of the fastest of many batches, in several rounds taken in turn: other work on the machine only ever adds. A batch
fits the ring (and walks through a tenth of it, so block borders are in it), and the sidecar empties the ring in the pause after it.
"""
import os
import re
import shutil
import subprocess
import sys
import time

from bench import BUILD, SOURCE, Table, built, harness, run, scratch

ROUNDS, BATCHES, CALLS, PAUSE_US = 5, 40, 20000, 6000
FULL = {'GPUTRACE_SIDECAR': 'off', 'GPUTRACE_BUFFER': '1M'}


def modes(driver, library):
    """name → environment; the driver is a folder with a libcuda.so.1."""
    base = {'LD_LIBRARY_PATH': driver, 'SIMGPU_CALL_TIME': '0'}
    output = os.path.join(scratch.name, 'hook-%n')
    # The hook alone: what device collection adds is `bench device`.
    traced = {**base, 'LD_PRELOAD': library, 'GPUTRACE_OUTPUT': output, 'GPUTRACE_COLLECT': 'api'}
    return {'untraced': base, 'off': {**traced, 'GPUTRACE': '0'}, 'on': traced, 'full': {**traced, **FULL}}


def lttng_event():
    """The peer's program, or None. It is built only where LTTng was there when the build was configured: if it came later, configure again."""
    if not shutil.which('lttng-sessiond'):
        return None
    if not built('lttng_event'):
        for command in (['meson', 'setup', '--reconfigure', BUILD, SOURCE], ['ninja', '-C', BUILD, 'bench/lttng_event']):
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600, check=False)
            if done.returncode:
                print(f'bench: the LTTng event could not be built: {" ".join(command)}\n{done.stdout.decode(errors="replace")[-1000:]}')
                return None
    return built('lttng_event')


def least_ns(output):
    return float(output.split()[0])


class Lttng:
    """A session daemon of our own and a snapshot session, which keeps the newest events in memory: the peer's fastest mode."""

    def __enter__(self):
        self.home = os.path.join(scratch.name, 'lttng')
        os.makedirs(self.home)
        self.env = {**os.environ, 'LTTNG_HOME': self.home, 'HOME': self.home}
        self.daemon = subprocess.Popen(['lttng-sessiond', '--no-kernel'], env=self.env, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        harness.reaped_by_owner.add(self.daemon.pid)
        deadline = time.monotonic() + 10
        while subprocess.run(['lttng', '--no-sessiond', 'list'], env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             timeout=20, check=False).returncode:
            if time.monotonic() > deadline:
                sys.exit('bench: lttng-sessiond does not answer')
            time.sleep(0.1)
        for command in (['create', 'bench', '--snapshot'], ['enable-channel', '--userspace', '--overwrite', '--subbuf-size=1M', '--num-subbuf=4', 'c'],
                        ['enable-event', '--userspace', '--channel=c', 'gputrace_bench:launch'], ['start']):
            subprocess.run(['lttng', '--no-sessiond', *command], env=self.env, stdout=subprocess.DEVNULL, timeout=30, check=True)
        return self

    def __exit__(self, *_):
        subprocess.run(['lttng', '--no-sessiond', 'destroy', 'bench'], env=self.env, stdout=subprocess.DEVNULL, timeout=30, check=False)
        self.daemon.terminate()
        self.daemon.wait(20)


def instructions(command, env):
    """What callgrind counts, in one thread and without a sidecar: it does not move with the weather."""
    variables = {**{key: value for key, value in os.environ.items() if not key.startswith('GPUTRACE')}, **env}
    done = subprocess.run(['valgrind', '--tool=callgrind', '--callgrind-out-file=/dev/null', *command], env=variables, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300, check=False)
    found = re.search(rb'Collected : (\d+)', done.stderr)
    return int(found[1]) if found and done.returncode == 0 else None


def instructions_per_call(calls, env):
    few, many = 1000, 21000
    counts = [instructions([calls, 'launch', '1', str(n), '0'], {**env, 'GPUTRACE_SIDECAR': 'off'}) for n in (few, many)]
    return None if None in counts else (counts[1] - counts[0]) / (many - few)


def main():
    calls, library = built('calls'), harness.places.library
    drivers = {'no-op driver': os.path.dirname(calls), 'simgpu': harness.places.simgpu}
    arguments = [str(BATCHES), str(CALLS), str(PAUSE_US)]
    best = {}

    def keep(name, ns):
        best[name] = min(best.get(name, 1e18), ns)

    bare = modes(drivers['no-op driver'], library)
    for _ in range(ROUNDS):
        for mode in ('untraced', 'off', 'on'):
            keep(('runtime', mode), least_ns(run([calls, 'runtime', *arguments], bare[mode])))
        keep('stamps', least_ns(run([calls, 'stamps', *arguments[:2], '0'])))
        for driver, folder in drivers.items():
            keep((driver, 'stamped'), least_ns(run([calls, 'stamped', *arguments], modes(folder, library)['untraced'])))
            for mode, env in modes(folder, library).items():
                keep((driver, mode), least_ns(run([calls, 'launch', *arguments], env)))
    event = lttng_event()
    if event:
        with Lttng() as lttng:
            for _ in range(ROUNDS):
                minimum, _, enabled = subprocess.run([event, str(BATCHES), str(CALLS)], env=lttng.env, check=True, timeout=120,
                                                          stdout=subprocess.PIPE).stdout.decode().split()
                if enabled != '1':
                    sys.exit('bench: the LTTng event was not enabled')
                keep('lttng', float(minimum))

    table = Table(f'hook: ns per cuLaunchKernel (fastest of {ROUNDS} x {BATCHES} batches of {CALLS} calls)')
    stamps = best['stamps']
    table.add('two timestamps and a record in memory', f'{stamps:.1f} ns')
    lttng = best.get('lttng')
    table.add('LTTng-UST event with two timestamps (snapshot session)', f'{lttng:.1f} ns' if lttng else 'not installed')
    for driver in drivers:
        plain = best[driver, 'untraced']
        table.add(f'{driver}: untraced', f'{plain:.1f} ns')
        floor = best[driver, 'stamped'] - plain
        table.add(f'{driver}: two timestamps around the call, untraced', f'{floor:+.1f} ns')
        off, on, full = (best[driver, mode] - plain for mode in ('off', 'on', 'full'))
        table.add(f'{driver}: off (GPUTRACE=0)', f'{off:+.1f} ns', '<= 2 ns', off <= 2)
        table.add(f'{driver}: on', f'{on:+.1f} ns', f'<= {1.25 * stamps:.1f} ns (1.25 x two timestamps)', on <= 1.25 * stamps)
        table.add(f'{driver}: on', f'{on / floor:.2f} x two timestamps around the call', '<= 1.25', on <= 1.25 * floor)
        if lttng:
            table.add(f'{driver}: on', f'{on / lttng:.2f} of LTTng', '<= 0.25 of LTTng', on <= lttng / 4)
        table.add(f'{driver}: ring full, no sidecar', f'{full:+.1f} ns')
    # What PyTorch does: the shared runtime's call, and the driver's within it.
    plain, floor = best['runtime', 'untraced'], 2 * (best['no-op driver', 'stamped'] - best['no-op driver', 'untraced'])
    off, on = (best['runtime', mode] - plain for mode in ('off', 'on'))
    table.add('cudaLaunchKernel of a no-op shared runtime: off', f'{off:+.1f} ns', '<= 4 ns (two calls)', off <= 4)
    table.add('cudaLaunchKernel of a no-op shared runtime: on, two records', f'{on:+.1f} ns')
    table.add('cudaLaunchKernel of a no-op shared runtime: on', f'{on / floor:.2f} x two timestamps around each of two calls', '<= 1.25',
              on <= 1.25 * floor)
    table.show()

    # The pacing must have worked: a dropped record is a cheaper record.
    output = os.path.join(scratch.name, 'check')
    run([calls, 'launch', *arguments], {**modes(drivers['no-op driver'], library)['on'], 'GPUTRACE_OUTPUT': output})
    coverage = harness.report(output)['coverage']
    table = Table('hook: what was measured is what was meant')
    table.add('records of one run', f"{coverage['records']:,}", f'>= {BATCHES * CALLS:,}', coverage['records'] >= BATCHES * CALLS)
    table.add('dropped', f"{coverage['dropped']:,}", '0', coverage['dropped'] == 0)
    table.show()

    if shutil.which('valgrind'):
        table = Table('hook: instructions per cuLaunchKernel (callgrind, no-op driver)')
        environments = modes(drivers['no-op driver'], library)
        environments['on'] = {**environments['on'], 'GPUTRACE_BUFFER': '16M'}
        counts = {mode: instructions_per_call(calls, env) for mode, env in environments.items()}
        for mode, count in counts.items():
            table.add(mode, 'not countable here' if count is None else f'{count:.0f}')
        table.show()

    without, with_us = (float(ns) for ns in run([built('exec_cost'), library, '1000']).split())
    table = Table('hook: a process that never touches CUDA (/bin/true, 1000 execs each, 10th percentile)')
    table.add('an exec without the library', f'{without / 1e6:.3f} ms')
    table.add('the library adds', f'{(with_us - without) / 1e6:+.3f} ms', '<= 0.1 ms', with_us - without <= 1e5)
    table.show()


main()
