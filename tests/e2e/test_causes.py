# meson: serial timeout=300
# Why a device was idle: programs with one known trouble each, and the cause that dominates, held against the truth's own gaps.
# Host code of these programs is slow beside CUDA calls, so the troubles are a hundred times larger.
from timeline_truth import *

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
KERNELS = {'SIMGPU_KERNEL_TIME': 'step=200us', 'SIMGPU_TRUTH_CALLS': '1'}


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
    check_equal(sum(row['count'] for row in causes.values()), len(found), 'every gap has one cause')
    shares = sum(row['share'] for row in causes.values())
    check(not causes or abs(shares - 1) < 1e-9, 'shares add up', shares)
    return run, causes, found


def dominates(causes, cause, share=0.8):
    check(cause in causes and causes[cause]['share'] >= share, f'{cause} is the cause of most', causes)


def finding(run, name):
    found = [each for each in report(run)['findings'] if each['id'] == name]
    return found[0] if found else None


def test_a_slow_host():
    run, causes, found = ran('''
for i in range(30):
    d.launch(k)
    nap(0.005)
''')
    dominates(causes, 'host late')
    check_equal(causes['host late']['worst_call'], None, 'no call is to blame')
    gap = finding(run, 'idle-gaps')
    long = [duration for _, _, duration in found if duration >= 1_000_000]
    check_equal(gap['evidence']['count'], len(long), 'gaps of 1 ms')
    check_equal(gap['evidence']['total_ns'], sum(long), 'their sum')
    check_equal(gap['evidence']['cause'], 'host late', 'their cause')


def test_slow_launches():
    run, causes, _ = ran('for i in range(100): d.launch(k)\n', {'SIMGPU_CALL_TIME': '3ms'})
    dominates(causes, 'launch-bound')
    check_equal(causes['launch-bound']['worst_call'], 'cuLaunchKernel', 'the call')
    bound = finding(run, 'launch-bound')
    check_equal(bound['evidence']['gain_ns'], causes['launch-bound']['total_ns'], 'gain')
    check(finding(run, 'short-kernels')['evidence']['short'] >= 99, 'kernels shorter than their launches')


def test_a_wait_in_each_iteration():
    run, causes, _ = ran('''
for i in range(40):
    d.launch(k); d.launch(k)
    d('cuCtxSynchronize')
''', {'SIMGPU_KERNEL_TIME': 'step=20ms'})
    dominates(causes, 'synchronization')
    sync = {row['call']: row for row in rows(run, 'sync')}['cuCtxSynchronize']
    check_equal(sync['gpu_idle_ns'], causes['synchronization']['total_ns'], 'what the wait costs')
    check_equal(finding(run, 'needless-synchronization')['evidence']['gpu_idle_ns'], sync['gpu_idle_ns'], 'finding')


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
    dominates(causes, 'allocation', 0.5)
    check(finding(run, 'allocation-in-loop')['evidence']['gain_ns'] > 0, 'a gain')


def test_pageable_copies():
    run, causes, _ = ran('''
device, host = d.alloc(1 << 22), ctypes.create_string_buffer(1 << 22)
for i in range(40):
    d.launch(k)
    d('cuMemcpyHtoDAsync_v2', device, host, size(1 << 22), None)
''', {'SIMGPU_CALL_TIME': '3ms'})
    check('copy' in causes and causes['copy']['share'] > 0.4, 'copies are a cause', causes)
    check(finding(run, 'pageable-async-copies') is not None, 'finding')


def test_another_device():
    _, causes, _ = ran('''
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
    dominates(causes, 'other stream')


def test_loading_code():
    _, causes, _ = ran('''
from driver import PTX
module = ctypes.c_void_p()
for i in range(30):
    d.launch(k)
    d('cuModuleLoadData', ctypes.byref(module), PTX.encode())
''', {'SIMGPU_CALL_TIME': '3ms'})
    check('module load' in causes and causes['module load']['share'] > 0.4, 'loading is a cause', causes)


def test_repeated_sequences_are_graph_candidates():
    run, _, _ = ran('''
s = d.kernel('scale')
for i in range(30):
    for j in range(6): d.launch(k if j % 2 else s)
    d('cuCtxSynchronize')
''')
    candidate = finding(run, 'graph-candidates')
    check_equal((candidate['evidence']['launches'], candidate['evidence']['times']), (6, 30), 'launches, times')


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


def test_occupancy_is_what_the_driver_says():
    for chip in ('7.5', '8.0', '8.6', '8.9', '9.0', '10.0', '12.0'):
        run, _, _ = ran('''
blocks = ctypes.c_int()
for threads in (32, 96, 256, 1024):
    for shared in (0, 3000, 17000, 40000):
        d('cuOccupancyMaxActiveBlocksPerMultiprocessor', ctypes.byref(blocks), k, threads, size(shared))
        d.launch(k, block=(threads, 1, 1), shared=shared)
        print(threads, shared, blocks.value)
''', {'SIMGPU_CC': chip, 'SIMGPU_KERNEL_TIME': 'step=10us'})
        told = {(f'{threads},1,1', int(shared)): int(blocks) for threads, shared, blocks in map(str.split, run.stdout.decode().split('\n')[:-1])}
        said = {(row['block'], row['dynamic_shared_bytes']): row['blocks_per_sm'] for row in rows(run, 'kernels')}
        if set(said.values()) == {None}:
            skip('the kernel is PTX: its registers are not known')
        check_equal(said, told, f'blocks per multiprocessor on {chip}')


main()
