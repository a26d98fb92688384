# A Python program on libcuda.so.1, by dlopen and dlsym, with threads: the trace against the truth, number by number.
import sys

from harness import *

PROGRAM = r'''
import ctypes, sys, threading
sys.path.insert(0, sys.argv[1])
from driver import Driver
d = Driver()
buffers = [d.alloc(n) for n in (1000, 1 << 20, 3 << 20)]
host = bytes(range(256)) * 16
d('cuMemcpyHtoD_v2', buffers[1], host, ctypes.c_size_t(4096))
back = ctypes.create_string_buffer(4096)
d('cuMemcpyDtoH_v2', back, buffers[1], ctypes.c_size_t(4096))
print('copied back', back.raw == host)
d('cuMemsetD8_v2', buffers[0], 7, ctypes.c_size_t(1000))
def work(n):
    d('cuCtxSetCurrent', d.context)
    stream, kernel = d.stream(), d.kernel('step')
    for i in range(n):
        d.launch(kernel, grid=(i + 1, 2, 1), block=(32 * (1 + i % 4), 1, 1), shared=16 * (i % 3), stream=stream)
    d('cuStreamSynchronize', stream)
threads = [threading.Thread(target=work, args=(50 + 10 * t,)) for t in range(4)]
for t in threads: t.start()
for t in threads: t.join()
for i in range(20): d.launch(d.kernel('reduce'), grid=(1, 1, 1), block=(64, 1, 1))
d('cuCtxSynchronize')
ctypes.set_errno(77)
print('bad handle', d('cuMemFree_v2', ctypes.c_uint64(12345), expect=1), ctypes.get_errno())
for b in buffers: d('cuMemFree_v2', b)
print('done')
'''
LAUNCHES = 50 + 60 + 70 + 80 + 20


def command():
    return [sys.executable, '-c', PROGRAM, os.path.join(SOURCE, 'tests', 'e2e')]


def test_the_trace_is_the_truth():
    run = traced(command())
    same_output(untraced(command()), run)
    check(b'done' in run.stdout, 'the program came to its end', run.stdout, run.stderr)
    check_equal(check_launches_against_truth(run), LAUNCHES, 'launches')
    seen, stored, dropped = check_conservation(run)
    check(dropped == 0 and seen == stored > LAUNCHES, 'everything seen is stored', seen, stored, dropped)


def test_the_report_has_the_numbers():
    run = traced(command())
    overview = metrics(run)
    check_equal(overview['launches'], LAUNCHES, 'launches')
    check_equal(overview['kernels'], LAUNCHES, 'kernels')
    api = {row['call']: row for row in rows(run, 'api') if row['level'] == 'driver'}
    check_equal((api['cuMemAlloc']['calls'], api['cuMemFree']['calls'], api['cuMemFree']['errors']), (3, 4, 1), 'cuMemAlloc, cuMemFree, its errors')
    check_equal(api['cuLaunchKernel']['calls'], LAUNCHES, 'cuLaunchKernel')
    copies = {row['kind']: row for row in rows(run, 'copies')}
    check_equal({kind: (row['count'], row['bytes']) for kind, row in copies.items()},
                {'HtoD': (1, 4096), 'DtoH': (1, 4096), 'memset': (1, 1000)}, 'copies')
    memory = rows(run, 'memory')
    check_equal(sum(row['allocations'] for row in memory), 3, 'allocations')
    check_equal(max(row['peak_bytes'] for row in memory), 1000 + (1 << 20) + (3 << 20), 'peak')
    check_equal(sum(row['live_at_end_bytes'] for row in memory), 0, 'live at the end')
    per_kernel = {row['symbol']: row['launches'] for row in rows(run, 'launches')} if 'symbol' in rows(run, 'launches')[0] else \
                 {row['kernel']: row['launches'] for row in rows(run, 'launches')}
    check_equal(per_kernel, {'step': LAUNCHES - 20, 'reduce': 20}, 'launches per kernel')


def test_run_says_the_same_as_preload():
    by_hand, wrapped = traced(command(), output=scratch('a')), traced(command(), mode='run', output=scratch('b'))
    check_equal((wrapped.returncode, wrapped.stdout), (by_hand.returncode, by_hand.stdout), 'exit code and output')
    check_equal(metrics(by_hand)['launches'], metrics(wrapped)['launches'], 'launches')


def test_off_leaves_nothing():
    run = traced(command(), env={'GPUTRACE': '0'})
    same_output(untraced(command()), run)
    check(not os.path.exists(run.output), 'no output directory')


main()
