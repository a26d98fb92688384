"""What tracing costs a framework: PyTorch's small eager operations (eager_loop.py) on the simulated GPU, bare, under gputrace with parts of what it
collects, with a callback of PyTorch's that does nothing, under PyTorch's own profiler and under py-spy, in one run. Programs take turns GT_TIMES times
(5); a figure is the median of the rounds of all of them, beside bare's. The simulated CUPTI's own work is in it (what reads its records and throws them away shows how much), and each simulated call of
the driver takes 2 us: a GPU's are about as long."""
import os
import re
import statistics
import sys
import tempfile

from bench import SOURCE, Table, built, harness, run, scratch

sys.path.insert(0, os.path.join(SOURCE, 'tests', 'frameworks'))
from environments import ROOT, CannotBeHad, installed, made  # noqa: E402
from running import simulated  # noqa: E402

TIMES = int(os.environ.get('GT_TIMES', '5'))
ROUNDS, OPERATIONS = 10, 10_000
OURS = {'off (GPUTRACE=0)': {'GPUTRACE': '0'}, 'api': {'GPUTRACE_COLLECT': 'api'}, 'default but ops, python': {'GPUTRACE_COLLECT': '-ops,-python'},
        'default': {}}


def operation_ns(command, environment):
    return [float(word) for word in re.findall(r'^[\d.]+$', run(command, environment), re.M)]


def kept(output):
    """(bytes on disk, records dropped) of a trace."""
    size = sum(os.path.getsize(os.path.join(folder, file)) for folder, _, files in os.walk(output) for file in files)
    return size, harness.report(output)['coverage']['dropped']


def py_spy():
    root = os.path.join(ROOT, 'py-spy')
    made(root, os.path.join(SOURCE, 'bench', 'locks', 'py-spy.txt'))
    return os.path.join(root, 'bin', 'py-spy')


def main():
    try:
        framework, spy = installed('pytorch'), py_spy()
    except CannotBeHad as why:
        print(f'\nWhat tracing costs a framework: not measured: {why}')
        return
    loop = [framework.python, os.path.join(SOURCE, 'bench', 'eager_loop.py'), ROUNDS, OPERATIONS]
    bare = {**simulated(framework), 'SIMGPU_KERNEL_TIME': '.*=1us'}
    client, observer = 'a client of CUPTI that only reads', "PyTorch's callback that does nothing"
    ways = ['bare', client, observer, *OURS, 'torch.profiler', 'py-spy record -r 100']
    took, traces = {way: [] for way in ways}, []
    for _ in range(TIMES):
        for way in ways:
            command, environment = loop, bare
            if way in OURS:
                output = tempfile.mkdtemp(dir=scratch.name)
                environment = {**bare, 'LD_PRELOAD': f'{harness.places.library} {bare["LD_PRELOAD"]}', 'GPUTRACE_OUTPUT': output, **OURS[way]}
            elif way == client:
                environment = {**bare, 'LD_PRELOAD': f'{built("libcupti_client.so")} {bare["LD_PRELOAD"]}', 'BENCH_CUPTI_BUFFER': 4 << 20}
            elif way == observer:
                command = [*loop, 'observer', built('libtorch_observer.so')]
            elif way == 'torch.profiler':
                command = [*loop, 'profiler']
            elif way.startswith('py-spy'):
                own = [f'{name}={value}' for name, value in bare.items()]  # not py-spy's
                command = [spy, *way.split()[1:], '--format', 'raw', '--output', os.path.join(scratch.name, 'py-spy'), '--', 'env', *own, *loop]
                environment = None
            took[way] += operation_ns(command, environment)
            if way == 'default':
                traces.append(kept(output))
    middle = {way: statistics.median(rounds) for way, rounds in took.items()}
    share = {way: middle[way] / middle['bare'] - 1 for way in ways}

    table = Table('What tracing costs a framework: small eager operations of PyTorch on the simulated GPU')
    table.add('bare: an operation', f'{middle["bare"] / 1000:.2f} us')
    for way in ways[1:]:
        goal = {'api': 0.01, 'default': 0.05}.get(way)
        table.add(way, f'{share[way]:+.1%}', f'<= {goal:.0%}' if goal else '', share[way] <= goal if goal else None)
    parts = share['default'] - share['default but ops, python']
    table.add('ops and python together', f'{parts:+.1%}', '<= 2%', parts <= 0.02)
    operations = (ROUNDS + 1) * OPERATIONS
    size, dropped = max(size for size, _ in traces) / operations, sum(lost for _, lost in traces)
    table.add('default: on disk, an operation', f'{size:.1f} B', '<= 24 B', size <= 24)
    table.add('default: records dropped', f'{dropped:,} of {TIMES} runs', '0', dropped == 0)
    table.show()


main()
