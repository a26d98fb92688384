"""What file calls and waits cost where they are collected (GPUTRACE_COLLECT=io,waits): ns a call, beside the same untraced, traced without
them, and under strace, which counts the calls that reach the kernel.

Who does not ask has none of these wrappers (tests/rules/test_host_library.py holds the names apart): the figure is there to be seen. Who does pays less than half a microsecond a file call, a tenth of it for a lock, and five for opening
a file, whose name the kernel is asked for.
"""
import os
import shutil

from bench import Table, built, harness, run, scratch

ROUNDS, BATCHES = 3, 20
CALLS = {'pread': 5000, 'open': 2000, 'mutex': 50000, 'semaphore': 50000}
NAMES = {'pread': 'pread of 4 KiB', 'open': 'open and close', 'mutex': 'a mutex that is free', 'semaphore': 'sem_post, sem_wait'}
# ns more than untraced
GOALS = {'pread': 500, 'open': 5000, 'mutex': 50, 'semaphore': 50}


def main():
    calls = built('host_calls')
    base = {'LD_LIBRARY_PATH': os.path.dirname(calls)}
    both = f'{harness.places.library} {harness.places.host_library}'
    output = os.path.join(scratch.name, 'host-%n')
    modes = {'untraced': ({**base}, []), 'traced without them': ({**base, 'LD_PRELOAD': harness.places.library, 'GPUTRACE_OUTPUT': output, 'GPUTRACE_COLLECT': 'api'}, []),
             'loaded, not asked for': ({**base, 'LD_PRELOAD': both, 'GPUTRACE_OUTPUT': output, 'GPUTRACE_COLLECT': 'api'}, []),
             'on': ({**base, 'LD_PRELOAD': both, 'GPUTRACE_OUTPUT': output, 'GPUTRACE_COLLECT': 'api,io,waits'}, [])}
    if shutil.which('strace'):
        modes['strace -c'] = (base, ['strace', '-f', '-c', '-o', os.path.join(scratch.name, 'strace.txt')])
    best = {}
    for _ in range(ROUNDS):
        for kind, count in CALLS.items():
            for mode, (env, before) in modes.items():
                ns = float(run([*before, calls, kind, BATCHES // (10 if before else 1), count // (10 if before else 1)], env).split()[0])
                best[kind, mode] = min(best.get((kind, mode), 1e18), ns)
    table = Table(f'host calls: ns (fastest of {ROUNDS} x {BATCHES} batches)')
    for kind, name in NAMES.items():
        bare = best[kind, 'untraced']
        for mode in modes:
            ns, goal = best[kind, mode], f'<= {GOALS[kind]} ns more' if mode == 'on' else ''
            table.add(f'{name}: {mode}', f'{ns:.1f} ns', goal, ns - bare <= GOALS[kind] if goal else None)
    table.show()

    output = os.path.join(scratch.name, 'check')
    run([calls, 'pread', BATCHES, CALLS['pread']], {**modes['on'][0], 'GPUTRACE_OUTPUT': output})
    rows = harness.report(output, 'io')['sections']['io']['rows']
    count = sum(row['count'] for row in rows if row['call'] == 'pread')
    table = Table('host calls: what was measured is what was meant')
    table.add('calls of one run', f'{count:,}', f"{BATCHES * CALLS['pread']:,}", count == BATCHES * CALLS['pread'])
    table.show()


main()
