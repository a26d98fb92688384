"""What NVTX costs under us: ns per push and pop, beside the same untraced, with NVTX left out, and before any CUDA call is traced.

The goal is a quarter of what nsys takes for a pair of nvtxRangePush and nvtxRangePop, 359 ns by its own users' measurement.
"""
import os

from bench import Table, built, harness, run, scratch

ROUNDS, BATCHES, PAIRS, PAUSE_US = 5, 40, 10000, 6000
NSYS = 359


def main():
    calls, library = built('nvtx_calls'), harness.places.library
    base = {'LD_LIBRARY_PATH': os.path.dirname(calls)}
    traced = {**base, 'LD_PRELOAD': library, 'GPUTRACE_OUTPUT': os.path.join(scratch.name, 'nvtx-%n')}
    modes = {'untraced': base, 'nvtx left out': {**traced, 'GPUTRACE_COLLECT': 'api'}, 'on': {**traced, 'GPUTRACE_COLLECT': 'api,nvtx'},
             'on, outside the window': {**traced, 'GPUTRACE_COLLECT': 'api,nvtx', 'GPUTRACE_CAPTURE': 'profiler-api'},
             'on, ruling the window': {**traced, 'GPUTRACE_COLLECT': 'api,nvtx', 'GPUTRACE_CAPTURE': 'nvtx:nothing'}}
    kinds = {'ascii': 'nvtxRangePushA, nvtxRangePop', 'distinct': 'the same, 64 messages in turn', 'registered': 'nvtxDomainRangePushEx of a registered string, Pop',
             'mark': 'nvtxMarkA alone'}
    best = {}
    for _ in range(ROUNDS):
        for kind in kinds:
            for mode, env in modes.items():
                ns = float(run([calls, kind, BATCHES, PAIRS, PAUSE_US], env).split()[0])
                best[kind, mode] = min(best.get((kind, mode), 1e18), ns)
    table = Table(f'nvtx: ns (fastest of {ROUNDS} x {BATCHES} batches of {PAIRS})')
    for kind, name in kinds.items():
        for mode in modes:
            ns = best[kind, mode]
            judged = mode == 'on' and kind != 'mark'
            table.add(f'{name}: {mode}', f'{ns:.1f} ns', f'<= {NSYS / 4:.0f} ns (a quarter of nsys)' if judged else '', ns <= NSYS / 4 if judged else None)
    table.show()

    output = os.path.join(scratch.name, 'check')
    run([calls, 'distinct', BATCHES, PAIRS, PAUSE_US], {**modes['on'], 'GPUTRACE_OUTPUT': output})
    coverage = harness.report(output)['coverage']
    table = Table('nvtx: what was measured is what was meant')
    table.add('records of one run', f"{coverage['records']:,}", f'>= {2 * BATCHES * PAIRS:,}', coverage['records'] >= 2 * BATCHES * PAIRS)
    table.add('dropped', f"{coverage['dropped']:,}", '0', coverage['dropped'] == 0)
    table.show()


main()
