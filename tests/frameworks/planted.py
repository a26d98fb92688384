"""Planted causes in real PyTorch loops: the first finding names the cause and the line, and says what mending it brings.

    GT_BUILD=DIR python3 tests/frameworks/planted.py [--quick] [--write FILE] [CAUSE...]

Each cause runs planted and mended, untraced, three times each, and planted again under the library, three times, on the simulated GPU. The gain that is told stands beside
what the mended program takes less, both as shares of the planted one's time. That wants an idle machine; `--quick` runs the traced one alone and looks at cause
and line."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'e2e'))
from artefacts import places  # noqa: E402
from processes import environment  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(HERE, 'pytorch', 'planted.py')
PYTHON = os.path.join(HERE, '..', '..', 'build', 'frameworks', 'pytorch', 'bin', 'python')
# The host could keep ahead; where the cause is a wait, much more so: what it does then while the device has nothing is what the wait costs.
KERNELS, LONG_KERNELS = 'gemm=300us', 'gemm=4ms'
# What many launches cost, a device that is busy with products hides. Their gain is that of a graph.
MANY_LAUNCHES, SHORT_KERNELS = {'small-kernels', 'unfused-optimizer', 'small-batch'}, 'gemm=5us'
WAITS = {'item', 'condition', 'print', 'float', 'tolist', 'nan-check', 'synchronize', 'stream-wait', 'event-wait', 'to-cpu'}
LIBRARIES = ('libcuda.so.1 libcudart.so.13 libcupti.so.13 libcublas.so.13 libcublasLt.so.13 libcudnn.so.9 libnccl.so.2 libcufft.so.12 libcusolver.so.12 '
             'libcusparse.so.12 libcurand.so.10 libnvidia-ml.so.1').split()
# cause: findings that name it
READS = {'result-waits'}
WORK = {'idle-gaps'}
LAUNCHES = {'short-kernels', 'launch-bound', 'graph-candidates'}
CAUSES = {
    'slow-data-set': {'input-bound'},
    'slow-worker': {'input-bound'},
    'slow-collate': {'input-bound'},
    'slow-read': {'input-bound'},
    'item': READS,
    'condition': READS,
    'print': READS,
    'float': READS,
    'tolist': READS,
    'nan-check': READS,
    'synchronize': {'needless-synchronization'},
    'stream-wait': {'needless-synchronization'},
    'event-wait': {'needless-synchronization'},
    'pageable-copy': {'pageable-async-copies'},
    'to-cpu': READS,
    'empty-cache': {'allocation-in-loop'},
    'tokenizing': WORK,
    'garbage': WORK,
    'sleep': WORK,
    'lists': WORK,
    'host-product': WORK,
    'logging': WORK,
    'checkpoint': {'idle-gaps', 'synchronous-copies', 'pageable-async-copies'},
    'small-kernels': LAUNCHES,
    'unfused-optimizer': LAUNCHES,
    'small-batch': LAUNCHES,
    'wrong-dtype': {'fp32-matmul'},
    'channels-first': {'layout-conversions'},
    'busy-machine': {'busy-processors'},
    'recompilation': {'recompilation'},
    'straggler': {'straggler'},
    'anomaly': {'anomaly-detection'},
}


def lines_of(cause):
    """The lines that are to blame: 'planted.py:N'."""
    with open(PROGRAM, encoding='utf-8') as file:
        return {f'planted.py:{number}' for number, line in enumerate(file, 1)
                if cause in line.partition('  # ')[2].split()}


def run(cause, how, env):
    command = [PYTHON, PROGRAM, cause, how]
    if cause == 'straggler':
        command[1:1] = ['-m', 'torch.distributed.run', '--standalone', '--nproc-per-node=2']
        env = {**env, 'SIMGPU_DEVICES': '2', 'OMP_NUM_THREADS': '1'}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise RuntimeError(f'{cause} {how}: {done.returncode}\n{done.stderr[-2000:]}')
    return float(done.stdout.split()[-1])


def simulation_of(cause):
    """Variables of the simulated GPU, and PyTorch's."""
    if cause == 'recompilation':
        return {'SIMGPU_KERNEL_TIME': KERNELS, 'TORCHINDUCTOR_FORCE_DISABLE_CACHES': '1'}  # as where it compiles for the first time
    if cause == 'channels-first':
        return {'SIMGPU_KERNEL_TIME': f'nchwToNhwc=150us,{KERNELS}'}
    if cause == 'wrong-dtype':
        return {}  # products take as long as their arithmetic does
    if cause == 'pageable-copy':  # of 4 MiB, which the simulation itself moves in far less
        return {'SIMGPU_KERNEL_TIME': SHORT_KERNELS, 'SIMGPU_COPY_BANDWIDTH': '500M'}
    if cause in MANY_LAUNCHES:
        return {'SIMGPU_KERNEL_TIME': SHORT_KERNELS, 'SIMGPU_GRAPH_NODE_LATENCY': '1.5us'}
    return {'SIMGPU_KERNEL_TIME': LONG_KERNELS if cause in WAITS else KERNELS}


def gained(cause, plain):
    """What the mended program takes less, as a share of the planted one's time, by how it is mended."""
    hows = ('planted', 'mended', *(['graphed'] if cause in MANY_LAUNCHES else []))
    times = {how: statistics.median(run(cause, how, plain) for _ in range(3)) for how in hows}
    return {how: 1 - times[how] / times['planted'] for how in hows[1:]}


def traced(cause, output, env):
    """(what a turn of the loop takes, the findings), in ns"""
    run(cause, 'planted', {**env, 'GPUTRACE_OUTPUT': output})
    report = subprocess.run([places.gputrace, 'report', output, '--json'], capture_output=True, text=True, check=True, timeout=120)
    report = json.loads(report.stdout)
    loop = next(row['value'] for row in report['sections']['overview']['rows'] if row['metric'] == 'loop_ns')
    steps = report['sections']['steps']['rows']
    return loop / sum(row['counted'] for row in steps if row['pid'] == steps[0]['pid']), report['findings']


def judge(cause, folder, quick):
    simulated, simulation = ' '.join(os.path.join(places.simgpu, name) for name in LIBRARIES), simulation_of(cause)
    brought = {} if quick else gained(cause, environment(LD_PRELOAD=simulated, **simulation))
    env = environment(LD_PRELOAD=f'{places.library} {simulated}', **simulation)
    told = [traced(cause, os.path.join(folder, f'{cause}-{i}'), env) for i in range(1 if quick else 3)]
    return brought, *sorted(told, key=lambda one: one[0])[len(told) // 2]


def row_of(cause, brought, step, findings):
    mended, graphed = (f'{brought[how]:.0%}' if how in brought else '' for how in ('mended', 'graphed'))
    true, other = (graphed, mended) if graphed else (mended or '-', '')
    if not findings:
        return cause, 'nothing', '', '-', true, other, ['no finding']
    first = findings[0]
    site = (first.get('site') or '').split(' ')[0]
    after = first.get('evidence', {}).get('pause_after', '').split(' ')[0]  # what took the time lies behind that line
    gain = first.get('gain_ns_per_step')
    wrong = []
    if first['id'] not in CAUSES[cause]:
        others = [finding['id'] for finding in findings if finding['id'] in CAUSES[cause]]
        wrong.append('told later: ' + ', '.join(others) if others else 'not told')
    lines = lines_of(cause)
    if lines and not {site, after} & lines:
        wrong.append('another line')
    return cause, first['id'], site if site in lines or after not in lines else f'after {after}', f'{gain / step:.0%}' if gain and step else '-', true, other, wrong


METHOD = """# Causes planted in real loops

Made by `./dev frameworks planted --write docs/planted.md`: one PyTorch loop (`tests/frameworks/pytorch/planted.py`) with one thing wrong, on the simulated GPU, with
the default collection. First finding and line are those of `gputrace report`; told: the finding's gain, as a share of what a turn of the loop takes; true: what the mended program
takes less, untraced, as a share of the planted one's time (medians of three runs each, told of the traced run whose loop is the median, on an otherwise idle machine).

- `small-batch`, `small-kernels`, `unfused-optimizer`: told is what one graph for all repeated launches brings, and true is that of the planted loop with each step a
  replay of one CUDA graph, whose nodes follow each other after 1.5 us; other: what the change of the program itself brings, batches eight times as large, one call for all tensors.
- `small-batch` copies both halves of its batch before the first launch, so that a step is one graph. It is told somewhat too little: what the host does from a step's last launch to
  the next step's copies is kept as the program's own work, and some of it is the framework's, which a replayed graph does not do.
- `checkpoint`: every fifth turn of the loop. Where the line is told as `after`, it is that behind which the longest pauses lie. (With a sixth of the work it brought 7 % here, most of
  it being hidden by the device's; what tracing adds to the host's time then shows in full: in four runs 12 to 27 % were told, and the mended program took 13 to 26 % less than the traced run.)
- `wrong-dtype`: products of 4096 x 4096 matrices take as long as the simulated GPU's arithmetic does, in all other rows as long as a rule says.
- `channels-first`: three convolutions, whose kernels want channels last; each move of a tensor takes 150 us, each product 300.
- `pageable-copy`: 4 MiB over a bus of 0.5 GB/s.
- `recompilation`: nothing that was compiled before is kept on disk.
- `busy-machine` has no line: twice as many busy processes as there are processors.
- `straggler`: one of two ranks works 10 ms more in each step; both have a processor.

"""


def table(rows):
    lines = [f'| {"cause":<18} | {"first finding":<24} | {"line":<15} | {"told":>5} | {"true":>5} | {"other":>5} | |',
             f'|{"-" * 20}|{"-" * 26}|{"-" * 17}|{"-" * 6}:|{"-" * 6}:|{"-" * 6}:|---|']
    for *cells, wrong in rows:
        lines.append(f'| {cells[0]:<18} | {cells[1]:<24} | {cells[2]:<15} | {cells[3]:>5} | {cells[4]:>5} | {cells[5]:>5} | {"; ".join(wrong)} |')
    named = sum(not row[-1] for row in rows)
    both = [[int(cell[:-1]) for cell in row[3:5]] for row in rows if '-' not in row[3:5]]
    near = sum(abs(told - true) <= 0.1 * true for told, true in both)
    gains = f' Of {len(both)} told gains {near} lie within a tenth of the true one.' if both else ''
    return '\n'.join(lines) + f'\n\n{named} of {len(rows)} name cause and line.{gains}\n'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--quick', action='store_true', help='no gains of mended programs')
    parser.add_argument('--write', metavar='FILE', help='the table, with what it means, into FILE')
    parser.add_argument('causes', nargs='*', metavar='CAUSE', help='one of ' + ' '.join(CAUSES))
    asked = parser.parse_args()
    chosen = asked.causes or list(CAUSES)
    if unknown := set(chosen) - set(CAUSES):
        parser.error(f'no such cause: {", ".join(sorted(unknown))}')
    rows = []
    with tempfile.TemporaryDirectory(prefix='gputrace-planted-') as folder:
        for cause in chosen:
            rows.append(row_of(cause, *judge(cause, folder, asked.quick)))
            print(f'{len(rows)}/{len(chosen)} {cause}: {"; ".join(rows[-1][-1]) or "named"}', file=sys.stderr, flush=True)
    print(table(rows))
    if asked.write:
        with open(asked.write, 'w', encoding='utf-8') as file:
            file.write(METHOD + table(rows))
    return 1 if any(row[-1] for row in rows) else 0


if __name__ == '__main__':
    sys.exit(main())
