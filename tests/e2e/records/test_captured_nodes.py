# meson: timeout=240
# What replays of CUDA graphs run, told by what was captured: the operation and the line of each node, from the capture's own calls.
import sys

from torch_mock import *

PROGRAM = r'''
import ctypes, sys
sys.path.insert(0, E2E)
from driver import Driver
torch = ctypes.PyDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
Inside = ctypes.CFUNCTYPE(None)
def operation(name, inside): torch.operation(name.encode(), 1, 0, ctypes.c_long(-1), Inside(inside))
d = Driver()
step, reduce, scale = (d.kernel(name) for name in ('step', 'reduce', 'scale'))
stream, memory, host = d.stream(), d.alloc(1 << 20), ctypes.c_void_p()
d('cuMemHostAlloc', ctypes.byref(host), ctypes.c_size_t(1 << 20), 0)
def launches(times, kernel):
    for _ in range(times): d.launch(kernel, stream=stream)
def product(): launches(3, step)
def total():
    launches(1, step)
    launches(2, reduce)
    d('cuMemsetD8Async', memory, 1, ctypes.c_size_t(4096), stream)
    d('cuMemcpyHtoDAsync_v2', memory, host, ctypes.c_size_t(8192), stream)
def nothing():
    d('cuMemcpyHtoDAsync_v2', memory, host, ctypes.c_size_t(0), stream)
def captured(*parts):
    graph = ctypes.c_void_p()
    d('cuStreamBeginCapture_v2', stream, 2)
    for part in parts: part()
    d('cuStreamEndCapture', stream, ctypes.byref(graph))
    return graph
def executable(graph):
    exec = ctypes.c_void_p()
    d('cuGraphInstantiateWithFlags', ctypes.byref(exec), graph, ctypes.c_ulonglong(0))
    d('cuGraphDestroy', graph)
    return exec
def replay(exec, times):
    for _ in range(times): d('cuGraphLaunch', exec, stream)
def linear(): operation('aten::linear', lambda: operation('aten::mm', product))
def bare(): launches(2, scale)
'''.replace('E2E', repr(os.path.join(SOURCE, 'tests', 'e2e')))
REPLAYS = PROGRAM + r'''
replay(executable(captured(linear, lambda: operation('aten::sum', total), lambda: operation('aten::empty', nothing), bare)), 7)
d('cuStreamSynchronize', stream)
print('done')
'''
TIMES = {'SIMGPU_KERNEL_TIME': 'step=30us,reduce=10us,scale=5us', 'SIMGPU_CLOCK': 'monotonic'}


def program_of(text):
    script = scratch('program.py')
    with open(script, 'w') as file:
        file.write(text)
    return [sys.executable, script, torch_library('2.15.0')]


def replays(env):
    forget_run()
    run = traced(program_of(REPLAYS), {**TIMES, **env})
    check_equal((run.returncode, run.stdout), (0, b'done\n'), 'the program')
    check_equal(check_conservation(run)[2], 0, 'nothing was dropped')
    return run


def time_of(run, op):
    return sum(line['end_ns'] - line['start_ns'] for line in run.truth_of(op) if line.get('graph'))


def test_nodes_have_the_operation_and_the_line_that_captured_them():
    run = replays({'GPUTRACE_GRAPHS': 'node'})
    ops = {row['path']: row for row in rows(run, 'ops')}
    sums = 7 * (30_000 + 2 * 10_000) + time_of(run, 'memset') + time_of(run, 'copy')
    check(time_of(run, 'memset') > 0 and time_of(run, 'copy') > 0, 'the graph has a memset and a copy')
    check_equal({path: (row['device_total_ns'], row['device_self_ns'], row['replayed_kernels'], row['count']) for path, row in ops.items()},
                {'aten::linear': (630_000, 0, 21, 1), 'aten::linear / aten::mm': (630_000, 630_000, 21, 1), 'aten::sum': (sums, sums, 21, 1),
                 'aten::empty': (0, 0, 0, 1)}, 'device time and kernels of replays, by the operation that was captured')
    sites = {row['site']: row for row in rows(run, 'sites')}
    everything = sum(time_of(run, op) for op in ('kernel', 'copy', 'memset'))
    check_equal(sum(row['device_total_ns'] for row in sites.values()), everything, 'device time of all lines')
    check_equal(sum(row['replayed_kernels'] for row in sites.values()), 7 * 8, 'kernels of all replays')
    launcher = next(row for site, row in sites.items() if 'driver.py' in site and row['launches'])
    check_equal(launcher['launches'], 7, 'the launches are the line that replays')
    kernels = {row['kernel']: row for row in rows(run, 'kernels')}
    check_equal({name: (row['op'], row['launches'], row['total_ns']) for name, row in kernels.items()},
                {'step': ('aten::mm', 28, 840_000), 'reduce': ('aten::sum', 14, 140_000), 'scale': (None, 14, 70_000)}, 'kernels')


def test_graphs_as_a_whole_tell_what_ran_and_not_how_long():
    run = replays({})
    ops = {row['path']: row for row in rows(run, 'ops')}
    check_equal({path: (row['device_total_ns'], row['device_self_ns'], row['replayed_kernels']) for path, row in ops.items()},
                {'aten::linear': (0, 0, 21), 'aten::linear / aten::mm': (0, 0, 21), 'aten::sum': (0, 0, 21), 'aten::empty': (0, 0, 0)},
                'kernels of replays, by the operation that was captured')
    check_equal({row['kernel']: (row['op'], row['launches'], row['total_ns']) for row in rows(run, 'kernels')},
                {'step': ('aten::mm', 28, None), 'reduce': ('aten::sum', 14, None), 'scale': (None, 14, None)}, 'kernels')
    check(all(row['site'] for row in rows(run, 'kernels')), 'the lines that captured them', rows(run, 'kernels'))


AGAIN = PROGRAM + r'''
# The graph's handle, and its nodes', are given out again: by a second capture, after one that failed, and for nodes made by hand.
first = executable(captured(linear))
d('cuStreamBeginCapture_v2', stream, 2)
operation('aten::sum', total)
d('cuStreamSynchronize', stream, expect=900)
d('cuStreamEndCapture', stream, ctypes.byref(ctypes.c_void_p()), expect=901)
second = executable(captured(bare))
graph, node = ctypes.c_void_p(), ctypes.c_void_p()
d('cuGraphCreate', ctypes.byref(graph), 0)
d('cuGraphAddMemsetNode', ctypes.byref(node), graph, None, ctypes.c_size_t(0), (ctypes.c_uint64 * 5)(memory.value, 0, 1 | 1 << 32, 64, 1), d.context)
third = executable(graph)
for exec in (first, second, third): replay(exec, 5)
d('cuStreamSynchronize', stream)
# Others' nodes take the place of the first one's.
graph = captured(lambda: operation('aten::add', product))
d('cuGraphExecUpdate_v2', first, graph, (ctypes.c_uint64 * 4)())
replay(first, 2)
d('cuStreamSynchronize', stream)
graph = captured(lambda: operation('aten::mul', lambda: launches(1, step)), lambda: operation('aten::sub', lambda: launches(2, step)))
d('cuGraphExecUpdate_v2', first, graph, (ctypes.c_uint64 * 4)())
replay(first, 1)
d('cuStreamSynchronize', stream)
print('done')
'''


def test_handles_that_are_given_out_again():
    for nodes in ('node', 'launch'):
        forget_run()
        run = traced(program_of(AGAIN), {**TIMES, 'GPUTRACE_GRAPHS': nodes})
        check_equal((run.returncode, run.stdout), (0, b'done\n'), run.stderr)
        ops = {row['path']: row['replayed_kernels'] for row in rows(run, 'ops')}
        check_equal(ops, {'aten::linear': 15, 'aten::linear / aten::mm': 15, 'aten::sum': 0, 'aten::add': 6, 'aten::mul': 1, 'aten::sub': 2},
                    f'kernels of replays, {nodes}')
        # Which node of an update is which of those that CUPTI names nobody tells: times are those of all that it may be, or nobody's.
        times = {row['path']: row['device_self_ns'] for row in rows(run, 'ops') if row['device_self_ns']}
        check_equal(times, {'aten::linear / aten::mm': 450_000, 'aten::add': 180_000} if nodes == 'node' else {}, f'device time, {nodes}')
        scale = next(row for row in rows(run, 'kernels') if row['kernel'] == 'scale')
        check_equal((scale['op'], scale['launches']), (None, 10), 'captured outside of any operation')


def test_a_program_without_lines_and_operations_is_asked_nothing():
    run = replays({'GPUTRACE_COLLECT': '-ops,-python'})
    check_equal(records(run, 'CapturedNode'), [], 'no node')
    check_equal(metrics(run)['kernels'], 7 * 8, 'kernels')


main()
