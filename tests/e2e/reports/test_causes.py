# meson: serial timeout=300
# Why a device was idle: programs with one known trouble each, every gap's parts and the cause that dominates, held against the truth.
# Host code of these programs is slow beside CUDA calls, so the troubles are a hundred times larger.
from gap_truth import *

BEGIN = f'''
import ctypes, sys, time
sys.path.insert(0, {os.path.join(SOURCE, "tests", "e2e")!r})
from driver import Driver
d = Driver()
k = d.kernel('step')
cuda = d.cuda
u64, size = ctypes.c_uint64, ctypes.c_size_t
def nap(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end: pass
'''
KERNELS = {'SIMGPU_KERNEL_TIME': 'step=200us', 'SIMGPU_CLOCK': 'monotonic'}


def ran(body, env=None):
    """The run of BEGIN + body, its idle-causes by cause, and the truth's gaps (device, begin, duration)."""
    path = scratch('program.py')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(BEGIN + body)
    run = traced([sys.executable, path], {**KERNELS, **(env or {})})
    check_equal(run.returncode, 0, 'exit code')
    found = gaps(device_operations(run, True))
    causes = {row['cause']: row for row in rows(run, 'idle-causes')}
    check_equal(sum(row['total_ns'] for row in causes.values()), sum(duration for _, _, duration in found), 'all idle time has a cause')
    shares = sum(row['share'] for row in causes.values())
    check(not causes or abs(shares - 1) < 1e-9, 'shares add up', shares)
    run.causes, run.slack = check_causes(run)
    return run, causes, found


def caused(run, cause, said, what):
    """The idle time that was spent in it, by the truth."""
    wanted = run.causes[cause]
    check(said is not None and abs(said - wanted) <= run.slack, what, said, wanted, run.slack)
    check(wanted > 0, f'{cause} cost something', run.causes)


def dominates(run, cause, share=0.8):
    """By number, not by time: one pause of a loaded test machine is as long as many gaps."""
    table = rows(run, 'idle')
    check(sum(row['cause'] == cause for row in table) >= share * len(table) > 0, f'{cause} is the cause of most', table)


def finding(run, name):
    found = [each for each in report(run)['findings'] if each['id'] == name]
    return found[0] if found else None


def rows_of(run, found, section):
    """Of the steps that a finding speaks of, which leave the start-up out."""
    first, last = (found['evidence'].get(key) for key in ('first_step', 'last_step'))
    return rows(run, section) if first is None else report(run, section, options=['--steps', f'{first}-{last}'])['sections'][section]['rows']


def test_a_slow_host():
    run, causes, found = ran('''
for i in range(30):
    d.launch(k)
    nap(0.005)
''')
    dominates(run, 'host')
    check_equal(causes['host']['worst_call'], None, 'no call is to blame')
    gap = finding(run, 'idle-gaps')
    profiler = causes.get('profiler', {'total_ns': 0})['total_ns']
    check_equal(gap['evidence']['gaps'], len(found), 'gaps')
    check_equal(gap['evidence']['idle_ns'], sum(duration for _, _, duration in found) - profiler, 'their sum')
    check_equal((gap['evidence']['cause'], gap['evidence']['cause_ns']), ('host', causes['host']['total_ns']), 'their cause')
    check(abs(gap['evidence']['gain_ns'] - run.causes['host']) <= 0.1 * run.causes['host'], 'gain', gap, run.causes)


def test_work_of_the_host_lies_between_two_lines():
    """No sample finds what takes a millisecond in every fifth turn: the calls around it have lines."""
    body = """
memory, host, argument = d.alloc(4096), ctypes.create_string_buffer(4096), u64(0)
arguments = (ctypes.c_void_p * 1)(ctypes.addressof(argument))
def save():
    cuda.cuMemcpyDtoH_v2(host, memory, size(4096))
    begin = time.monotonic_ns()
    nap(0.02)
    print('napped', time.monotonic_ns() - begin)
def step():
    cuda.cuLaunchKernel(k, 1, 1, 1, 32, 1, 1, 0, None, arguments, None)
    cuda.cuCtxSynchronize()
for i in range(20):
    step()
    if i % 5 == 4: save()
"""
    run, _, _ = ran(body, {'GPUTRACE_COLLECT': '-samples'})
    told = finding(run, 'idle-gaps')
    lines = [number for number, line in enumerate((BEGIN + body).splitlines(), 1) if 'cuMemcpyDtoH' in line or 'cuLaunchKernel' in line]
    check_equal((told['evidence']['pause_after'], told['evidence']['pause_before']), (f'program.py:{lines[0]} save', f'program.py:{lines[1]} step'), 'the lines around it')
    naps = [int(line.split()[1]) for line in run.stdout.decode().splitlines() if line.startswith('napped')]
    check_equal(len(naps), 4, 'naps')
    caused_by_naps = sum(naps[:-1])  # the last one ends no gap
    check(caused_by_naps <= told['evidence']['pause_ns'] <= 1.5 * caused_by_naps, 'how long', told['evidence']['pause_ns'], naps)
    check(f"between program.py:{lines[0]} save and program.py:{lines[1]} step" in told['text'], 'in words', told['text'])
    after = [row for row in report(run, 'idle')['sections']['idle']['rows'] if row['after_site'] == f'program.py:{lines[0]} save']
    check_equal(len(after), 3, 'the gaps')


def test_a_wait_and_work_of_the_host_are_told_apart():
    run, causes, _ = ran("""
for i in range(100):
    d.launch(k)
    d('cuCtxSynchronize')
    nap(0.00039)
""")
    caused(run, 'host', causes['host']['total_ns'], 'the work')
    caused(run, 'synchronization', causes['synchronization']['total_ns'], 'the waits\' return')
    check(causes['host']['total_ns'] >= 99 * 390_000, 'all of the work', causes)
    check(causes['synchronization']['count'] >= 99, 'each wait', causes)


def test_polling():
    run, causes, _ = ran("""
event = ctypes.c_void_p()
d('cuEventCreate', ctypes.byref(event), 0)
for i in range(30):
    d.launch(k)
    d('cuEventRecord', event, None)
    while cuda.cuEventQuery(event): nap(0.0002)
""")
    dominates(run, 'polling')
    caused(run, 'polling', causes['polling']['total_ns'], 'polling')
    check_equal(causes['polling']['worst_call'], 'cuEventQuery', 'the call')


def test_a_host_function_in_the_stream():
    run, causes, _ = ran("""
function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: nap(0.005))
for i in range(20):
    d.launch(k)
    d('cuLaunchHostFunc', None, function, None)
d.launch(k)
d('cuCtxSynchronize')
""", {'SIMGPU_KERNEL_TIME': 'step=2ms'})
    dominates(run, 'host function')
    caused(run, 'host function', causes['host function']['total_ns'] + causes.get('dispatch', {'total_ns': 0})['total_ns'], 'host functions')
    check(causes['host function']['total_ns'] >= 20 * 4_900_000, 'all of them', causes)
    check_equal(finding(run, 'launch-bound'), None, 'launch-bound')


def test_slow_launches():
    run, causes, _ = ran('for i in range(100): d.launch(k)\n', {'SIMGPU_CALL_TIME': '3ms'})
    dominates(run, 'launch')
    check_equal(causes['launch']['worst_call'], 'cuLaunchKernel', 'the call')
    bound = finding(run, 'launch-bound')
    in_calls = bound['evidence']['idle_ns'] - bound['evidence']['between_launches_ns']
    check_equal(in_calls, causes['launch']['total_ns'], 'idle time')
    caused(run, 'launch', in_calls, 'launches')
    check(finding(run, 'short-kernels')['evidence']['short'] >= 99, 'kernels shorter than their launches')


def test_a_wait_in_each_iteration():
    run, causes, _ = ran('''
for i in range(40):
    d.launch(k); d.launch(k)
    d('cuCtxSynchronize')
''')
    sync = {row['call']: row for row in rows(run, 'sync')}['cuCtxSynchronize']
    caused(run, 'synchronization', sync['gpu_idle_ns'], 'what the wait costs')
    check(sync['gpu_idle_ns'] <= sync['total_ns'], 'no more than the wait itself took', sync)
    needless = finding(run, 'needless-synchronization')
    wanted = {row['call']: row for row in rows_of(run, needless, 'sync')}['cuCtxSynchronize']['gpu_idle_ns']
    check_equal(needless['evidence']['gpu_idle_ns'], wanted, 'finding')


def test_waits_for_results_are_not_called_needless():
    run, _, _ = ran('''
host, device = u64(), d.alloc(64)
d('cuMemAllocHost_v2', ctypes.byref(host), size(64))
for i in range(40):
    d.launch(k)
    d('cuCtxSynchronize')
    d('cuMemcpyDtoHAsync_v2', host, device, size(64), None)
''')
    check_equal(finding(run, 'needless-synchronization'), None, 'finding')


def test_allocation_in_the_loop():
    run, causes, _ = ran('''
for i in range(40):
    d.launch(k)
    a = d.alloc(1 << 20)
    d('cuMemFree_v2', a)
''', {'SIMGPU_CALL_TIME': '3ms'})
    dominates(run, 'allocation', 0.5)
    caused(run, 'allocation', finding(run, 'allocation-in-loop')['evidence']['gpu_idle_ns'], 'allocations')


def test_pageable_copies():
    run, causes, _ = ran('''
device, host = d.alloc(1 << 22), ctypes.create_string_buffer(1 << 22)
for i in range(40):
    d.launch(k)
    d('cuMemcpyHtoDAsync_v2', device, host, size(1 << 22), None)
''', {'SIMGPU_CALL_TIME': '3ms'})
    dominates(run, 'copy', 0.4)
    caused(run, 'copy', causes['copy']['total_ns'], 'copies')
    pageable = finding(run, 'pageable-async-copies')
    wanted = {row['cause']: row['total_ns'] for row in rows_of(run, pageable, 'idle-causes')}['copy']
    check_equal(pageable['evidence']['gpu_idle_ns'], wanted, 'finding')


def test_the_profiler_where_emptying_its_buffer_held_the_host():
    run, causes, _ = ran('''
for i in range(200): d.launch(k)
''', {'SIMGPU_KERNEL_TIME': 'step=1us', 'SIMGPU_CALL_TIME': '0', 'SIMGPU_CUPTI': 'buffer=32'})
    check(run.causes['profiler'] > 0, 'the profiler was the cause of some', run.causes)


def test_another_device():
    run, causes, _ = ran('''
other, event, near, far = ctypes.c_void_p(), ctypes.c_void_p(), d.stream(), None
d('cuDevicePrimaryCtxRetain', ctypes.byref(other), 1)
d('cuCtxSetCurrent', other)
module, slow = ctypes.c_void_p(), ctypes.c_void_p()
from driver import PTX
d('cuModuleLoadData', ctypes.byref(module), PTX.encode())
d('cuModuleGetFunction', ctypes.byref(slow), module, b'reduce')
far = d.stream()
d('cuEventCreate', ctypes.byref(event), 0)
for i in range(20):
    d('cuCtxSetCurrent', other)
    d.launch(slow, stream=far)
    d('cuEventRecord', event, far)
    d('cuCtxSetCurrent', d.context)
    d.launch(k, stream=near)
    d('cuStreamWaitEvent', near, event, 0)
d('cuCtxSetCurrent', other)
d('cuCtxSynchronize')
d('cuCtxSetCurrent', d.context)
d('cuCtxSynchronize')
''', {'SIMGPU_DEVICES': '2', 'SIMGPU_KERNEL_TIME': 'step=100us,reduce=20ms'})
    dominates(run, 'peer')
    check_equal(causes['peer']['total_ns'], sum(row['parts'].get('peer', 0) for row in rows(run, 'idle')), 'all of it')
    said = finding(run, 'idle-gaps')
    check_equal((said['evidence']['device'], said['evidence']['cause']), (0, 'peer'), 'the device that waits, where the other one does not')


def test_loading_code():
    run, _, _ = ran('''
from driver import PTX
module = ctypes.c_void_p()
for i in range(30):
    d.launch(k)
    for j in range(3): d('cuModuleLoadData', ctypes.byref(module), PTX.encode())
''', {'SIMGPU_CALL_TIME': '3ms'})
    dominates(run, 'module load', 0.6)


def test_repeated_sequences_are_graph_candidates():
    run, _, _ = ran('''
s = d.kernel('scale')
for i in range(30):
    for j in range(6): d.launch(k if j % 2 else s)
    d('cuCtxSynchronize')
''', {'SIMGPU_KERNEL_TIME': '.*=5us', 'SIMGPU_CALL_TIME': '100us'})
    candidate = finding(run, 'graph-candidates')
    check_equal((candidate['evidence']['launches'], candidate['evidence']['times']),
                (6, 31 - candidate['evidence'].get('first_step', 1)), 'launches, times')


def test_categories_cover_all_kernel_time():
    run, _, _ = ran('''
s, r = d.kernel('scale'), d.kernel('reduce')
for i in range(10):
    d.launch(k); d.launch(s); d.launch(r); d.launch(r, grid=(7, 1, 1))
d('cuCtxSynchronize')
''')
    table = {row['category']: row for row in rows(run, 'categories')}
    times = collections.Counter()
    for line in run.truth_of('kernel'):
        times[{'step': 'other', 'scale': 'elementwise', 'reduce': 'normalization/reduction'}[line['symbol']]] += line['end_ns'] - line['start_ns']
    check_equal({name: row['total_ns'] for name, row in table.items()}, dict(times), 'time by category')
    check(abs(sum(row['share'] for row in table.values()) - 1) < 1e-9, 'shares add up')
    tree = rows(run, 'category-tree')
    check_equal(sum(row['total_ns'] for row in tree if row['level'] == 2), sum(times.values()), 'leaves of the tree')
    check_equal([row['what'] for row in tree if row['level'] == 2 and '7,1,1' in row['what']], ['grid 7,1,1  block 32,1,1'], 'a shape')


KERNELS_TEXT = r'''
extern "C" __global__ void plain(float* p) { p[threadIdx.x] *= 2; }
extern "C" __global__ void shared(float* p) {
  __shared__ float tile[1700];
  for (int i = threadIdx.x; i < 1700; i += blockDim.x) tile[i] = p[i];
  __syncthreads();
  p[threadIdx.x] = tile[(threadIdx.x * 7) % 1700];
}
extern "C" __global__ void many(float* p) {
  float a[96];
  for (int i = 0; i < 96; ++i) a[i] = p[i * 1024 + threadIdx.x];
  for (int k = 0; k < 50; ++k)
    for (int i = 0; i < 96; ++i) a[i] = a[i] * a[(i + k) % 96] + p[k];
  for (int i = 0; i < 96; ++i) p[i * 1024 + threadIdx.x] = a[i];
}
'''


def test_occupancy_is_what_the_driver_says():
    compiler = os.path.join(os.environ.get('GT_CUDA', '/usr/local/cuda'), 'bin', 'nvcc')
    if not os.access(compiler, os.X_OK):
        skip('no nvcc')
    with open(scratch('kernels.cu'), 'w', encoding='utf-8') as file:
        file.write(KERNELS_TEXT)
    limits = set()
    for chip in ('7.5', '8.0', '8.6', '9.0', '12.0'):
        forget_run()
        cubin = scratch(f'{chip}.cubin')
        subprocess.run([compiler, '-cubin', '-arch', 'sm_' + chip.replace('.', ''), '-o', cubin, scratch('kernels.cu')], check=True, timeout=120)
        run, _, _ = ran(f'''
module, blocks = ctypes.c_void_p(), ctypes.c_int()
d('cuModuleLoad', ctypes.byref(module), {cubin!r}.encode())
d.module = module
for name in ('plain', 'shared', 'many'):
    k = d.kernel(name)
    for threads in (32, 96, 256, 512):
        for shared in (0, 3000, 17000, 40000):
            d('cuOccupancyMaxActiveBlocksPerMultiprocessor', ctypes.byref(blocks), k, threads, size(shared))
            if blocks.value == 0: continue
            d.launch(k, block=(threads, 1, 1), shared=shared)
            print(name, threads, shared, blocks.value)
''', {'SIMGPU_CC': chip, 'SIMGPU_KERNEL_TIME': 'a=10us'})
        wanted = {}
        for line in run.stdout.decode().splitlines():
            name, threads, shared, blocks = line.split()
            wanted[name, f'{threads},1,1', int(shared)] = int(blocks)
        found = rows(run, 'kernels')
        said = {(row['symbol'], row['block'], row['dynamic_shared_bytes']): row['blocks_per_sm'] for row in found}
        check(len(wanted) > 30, 'shapes', len(wanted))
        check_equal(said, wanted, f'blocks per multiprocessor on {chip}')
        limits |= {row['occupancy_limit'] for row in found}
    check_equal(limits, {'warps', 'blocks', 'registers', 'shared memory'}, 'every limit was met')


def test_our_own_questions_are_not_the_programs():
    """At a kernel's first launch the driver is asked for its attributes: that time is the profiler's, as long as the truth says."""
    run, causes, _ = ran("""
kernels = []
for i in range(30):
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    text = '.version 7.0\\n.target sm_52\\n.address_size 64\\n.visible .entry k(.param .u64 p) { fma.rn.f64 %d1, %d1, %d1, %d1; ret; }\\n' + ' ' * i
    d('cuModuleLoadData', ctypes.byref(module), text.encode())
    d('cuModuleGetFunction', ctypes.byref(function), module, b'k')
    kernels.append(function)
d.launch(k)
for function in kernels: d.launch(function)
d('cuCtxSynchronize')
""", {'SIMGPU_KERNEL_TIME': '.*=20us', 'SIMGPU_CALL_TIME': '50us', 'SIMGPU_TRUTH_CALLS': '1'})
    first = min(line['start_ns'] for line in run.truth_of('kernel'))
    asked = [line for line in run.truth_of('call') if line['call'] == 'cuFuncGetAttribute' and line['call_begin_ns'] > first]
    check(len(asked) >= 29 * 8, 'questions at each first launch but that of the last kernel', len(asked))
    spent = sum(line['call_end_ns'] - line['call_begin_ns'] for line in asked[:29 * len(asked) // 30])
    own = causes['profiler']['total_ns']
    check(own >= 0.95 * spent, 'no less than the driver took to answer', own, spent)
    work = [record for record in records(run, 'OwnWork') if record['kind_name'] == 'function']
    check_equal(len(work), 31, 'one for each kernel')
    check(metrics(run)['overhead_ns'] >= sum(record['end_ns'] - record['begin_ns'] for record in work), 'it is in the measured cost')
    precisions = {row['symbol']: row['precision'] for row in rows(run, 'kernels')}
    check_equal((precisions['k'], precisions['step']), ('fp64', None), 'the texts tell what they compute in')
    check_equal({(row['registers'], row['local_bytes']) for row in rows(run, 'kernels')}, {(None, None)}, 'what nobody compiled has no registers')


main()
