"""What the report promises, against what one gets: programs with a planted cause on the simulated GPU, and the same programs without it. Both
run nine times (GT_TIMES says another number); medians of the gain that the finding names, and of the span from the first launch to the last operation.
Writes docs/gains.md."""
import os
import shutil
import statistics
import sys
import tempfile

from bench import Table, harness, run, scratch

TIMES = int(os.environ.get('GT_TIMES', '9'))
BEGIN = f'''
import ctypes, sys, time
sys.path.insert(0, {os.path.join(harness.SOURCE, "tests", "e2e")!r})
from driver import Driver, PTX
d = Driver()
k, s = d.kernel('step'), d.kernel('scale')
u64, size = ctypes.c_uint64, ctypes.c_size_t
planted = sys.argv[1] == 'with'
main, second = d.stream(), d.stream()
MiB = 1 << 20
def nap(seconds):  # asleep: a machine with other work to do takes the processor from who computes
    if seconds: time.sleep(seconds)
def pinned(length):
    address = u64()
    d('cuMemAllocHost_v2', ctypes.byref(address), size(length))
    return address
def event():
    made = ctypes.c_void_p()
    d('cuEventCreate', ctypes.byref(made), 2)
    return made
device, result, e = d.alloc(64 * MiB), pinned(64 * MiB), event()
def wait(stream=main): d('cuStreamSynchronize', stream)
def fetch(stream=main):
    d('cuMemcpyDtoHAsync_v2', result, device, size(64), stream)
    wait(stream)
d.launch(k, stream=main)
wait()
'''
# name, finding, environment, what the program does
PROGRAMS = [
    ('the host works between two steps', 'idle-gaps', {}, '''
for i in range(30): d.launch(k, stream=main); fetch(); nap(0.002 if planted else 0)
'''),
    ('a loader is slow in every fourth step', 'idle-gaps', {}, '''
for i in range(32): d.launch(k, stream=main); fetch(); nap(0.012 if planted and i % 4 == 3 else 0)
'''),
    ('sampling between the tokens of an LLM (a replay of a graph each)', 'idle-gaps', {'SIMGPU_KERNEL_TIME': '.*=300us'}, '''
graph, exec_ = ctypes.c_void_p(), ctypes.c_void_p()
d('cuStreamBeginCapture_v2', main, 0)
for i in range(10): d.launch(k, stream=main)
d('cuStreamEndCapture', main, ctypes.byref(graph))
d('cuGraphInstantiateWithFlags', ctypes.byref(exec_), graph, u64(0))
for i in range(25): d('cuGraphLaunch', exec_, main); fetch(); nap(0.002 if planted else 0)
'''),
    ('a training step: batch to the device, ten kernels, the loss to the host, and Python', 'idle-gaps', {'SIMGPU_KERNEL_TIME': '.*=300us'}, '''
for i in range(25):
    d('cuMemcpyHtoDAsync_v2', device, result, size(MiB), main)
    for j in range(10): d.launch(k, stream=main)
    fetch()
    nap(0.002 if planted else 0)
'''),
    ('a wait after each step', 'needless-synchronization', {}, '''
for i in range(40):
    d.launch(k, stream=main)
    if planted: wait()
    nap(0.0008)
wait()
'''),
    ('a wait for everything after each kernel', 'needless-synchronization', {'SIMGPU_CALL_TIME': '100us'}, '''
for i in range(60):
    d.launch(k, stream=main)
    if planted: d('cuCtxSynchronize')
wait()
'''),
    ('a wait for the newest event', 'needless-synchronization', {}, '''
for i in range(40):
    d.launch(k, stream=main)
    d('cuEventRecord', e, main)
    if planted: d('cuEventSynchronize', e)
    nap(0.0007)
wait()
'''),
    ('polling with a nap', 'polling', {}, '''
for i in range(40):
    d.launch(k, stream=main)
    d('cuEventRecord', e, main)
    if planted:
        while d.cuda.cuEventQuery(e): nap(0.0016)
    else: d('cuEventSynchronize', e)
'''),
    ('synchronous copies to the device', 'synchronous-copies', {'SIMGPU_COPY_BANDWIDTH': '10G'}, '''
for i in range(30):
    d.launch(k, stream=main)
    if planted: d('cuMemcpyHtoD_v2', device, result, size(4 * MiB))
    else: d('cuMemcpyHtoDAsync_v2', device, result, size(4 * MiB), None)
    nap(0.0005)
d('cuCtxSynchronize')
'''),
    ('copies to the device on the kernels\' stream', 'exposed-copies', {'SIMGPU_COPY_BANDWIDTH': '10G'}, '''
for i in range(30):
    copies = main if planted else second
    d('cuMemcpyHtoDAsync_v2', device, result, size(6 * MiB), copies)
    d('cuEventRecord', e, copies)
    d('cuStreamWaitEvent', main, e, 0)
    d.launch(k, stream=main)
wait()
'''),
    ('snapshots to the host on the kernels\' stream', 'exposed-copies', {'SIMGPU_COPY_BANDWIDTH': '10G'}, '''
for i in range(30):
    d.launch(k, stream=main)
    copies = main if planted else second
    d('cuEventRecord', e, main)
    d('cuStreamWaitEvent', copies, e, 0)
    d('cuMemcpyDtoHAsync_v2', result, device, size(6 * MiB), copies)
wait(); wait(second)
'''),
    ('allocating and freeing in the loop', 'allocation-in-loop', {'SIMGPU_CALL_TIME': '400us'}, '''
for i in range(40):
    d.launch(k, stream=main)
    if planted: a = d.alloc(MiB); d('cuMemFree_v2', a)
wait()
'''),
    ('modules that are loaded in the loop', 'code-loading', {'SIMGPU_CALL_TIME': '500us'}, '''
module = ctypes.c_void_p()
for i in range(30):
    d.launch(k, stream=main)
    for j in range(4 if planted else 0): d('cuModuleLoadData', ctypes.byref(module), PTX.encode())
wait()
'''),
    ('functions of the host in the stream', 'host-functions', {}, '''
function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: nap(0.0015))
for i in range(30):
    d.launch(k, stream=main)
    if planted: d('cuLaunchHostFunc', main, function, None)
d.launch(k, stream=main)
wait()
'''),
    ('short kernels in the same order again and again', 'graph-candidates', {'SIMGPU_CALL_TIME': '150us', 'SIMGPU_KERNEL_TIME': '.*=20us'}, '''
graph, exec_ = ctypes.c_void_p(), ctypes.c_void_p()
if not planted:
    d('cuStreamBeginCapture_v2', main, 0)
    for j in range(12): d.launch(k if j % 2 else s, stream=main)
    d('cuStreamEndCapture', main, ctypes.byref(graph))
    d('cuGraphInstantiateWithFlags', ctypes.byref(exec_), graph, u64(0))
for i in range(30):
    if planted:
        for j in range(12): d.launch(k if j % 2 else s, stream=main)
    else: d('cuGraphLaunch', exec_, main)
    fetch()
'''),
    ('two devices, one of which waits for the host', 'idle-gaps', {'SIMGPU_DEVICES': '2'}, '''
for i in range(30): d.launch(k, stream=main); fetch(); nap(0.003 if planted else 0)
'''),
]


def span_and_gain(name, body, environment, planted, finding):
    path = os.path.join(scratch.name, 'program.py')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(BEGIN + body)
    output = tempfile.mkdtemp(dir=scratch.name)
    run([sys.executable, path, 'with' if planted else 'without'],
        {'SIMGPU_KERNEL_TIME': '.*=1ms', 'SIMGPU_CLOCK': 'monotonic', 'SIMGPU_COPY_BANDWIDTH': '50G', 'LD_LIBRARY_PATH': harness.places.simgpu,
         'LD_PRELOAD': harness.places.library, 'GPUTRACE_OUTPUT': output, **environment})
    answer = harness.report(output)
    shutil.rmtree(output)
    metrics = {row['metric']: row['value'] for row in answer['sections']['overview']['rows']}
    found = next((each for each in answer['findings'] if each['id'] == finding), None)
    evidence = found['evidence'] if found else {}
    if metrics['replayed_ns'] is None:
        notes = [row['note'] for row in answer['sections']['overview']['rows'] if row['metric'] == 'replayed_ns']
        sys.exit(f'bench: {name}: {notes}')
    return metrics['replayed_ns'], evidence.get('gain_ns'), evidence.get('model_error_ratio')


def ms(value):
    return '-' if value is None else f'{value / 1e6:.2f} ms'


def main():
    table, rows = Table('Gains: promised and real'), []
    wanted = os.environ.get('GT_PROGRAM', '')
    for name, finding, environment, body in PROGRAMS:
        if wanted not in name:
            continue
        with_it = [span_and_gain(name, body, environment, True, finding) for _ in range(TIMES)]
        without = [span_and_gain(name, body, environment, False, finding) for _ in range(TIMES)]
        spans, clean = statistics.median(each[0] for each in with_it), statistics.median(each[0] for each in without)
        gains = [each[1] for each in with_it if each[1] is not None]
        gain = statistics.median(gains) if len(gains) * 2 > TIMES else None
        real = spans - clean
        off = abs(gain - real) / real if gain is not None and real > 0 else None
        table.add(f'{name}: {finding}', f'{ms(gain)} promised, {ms(real)} real, {"-" if off is None else f"{off * 100:.1f} %"}', '<= 10 %', off is not None and off <= 0.1)
        rows.append(f'| {name} | `{finding}` | {ms(spans)} | {ms(clean)} | {ms(real)} | {ms(gain)} | {"-" if off is None else f"{off * 100:.1f} %"} |')
    if not wanted:
        with open(os.path.join(harness.SOURCE, 'docs', 'gains.md'), 'w', encoding='utf-8') as file:
            file.write(PAGE.format(times=TIMES, rows='\n'.join(rows)))
    table.show()
    return 0


PAGE = '''# Gains: what the report promises, and what one gets

Written by `./dev bench gains`: programs with a planted cause on the simulated GPU, and the same programs without it; each runs {times} times, medians. Span: from the
first launch to the end of the last operation. Both programs run in real time: what else the machine does is in the figures. Promised: `gain_ns` of the finding in the report of the first program. The goal is 10 %. How it is
computed: [decision 72](decisions/0072-gains-by-replay.md). `tests/unit/analysis/gains_test.cpp` has more such pairs, and programs that must be promised nothing,
with times that no load disturbs.

| planted | finding | with it | without | real | promised | off by |
|---|---|---|---|---|---|---|
{rows}
'''

if __name__ == '__main__':
    sys.exit(main())
