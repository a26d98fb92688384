# meson: timeout=240
# GPUTRACE_CAPTURE=steps:A-B: exactly what lies between two ends of PyTorch's optimizer is recorded.
from torch_mock import *

PROGRAM = r'''
import ctypes, sys
torch = ctypes.PyDLL(sys.argv[1], ctypes.RTLD_GLOBAL) if sys.argv[1] else None
Inside = ctypes.CFUNCTYPE(None)
cuda = ctypes.CDLL('libcuda.so.1')
buffer, context = ctypes.c_uint64(), ctypes.c_void_p()

def operation(name, inside):
    torch.operation(name.encode(), int(sys.argv[2]), 7, ctypes.c_long(-1), Inside(inside)) if torch else inside()

def set(size): cuda.cuMemsetD8_v2(buffer, 1, ctypes.c_size_t(size))

cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
cuda.cuMemAlloc_v2(ctypes.byref(buffer), ctypes.c_size_t(1 << 20))
for step in range(1, 11):
    set(1000 + step)
    operation('Optimizer.step#SGD.step', lambda: set(2000 + step))
    operation('Optimizer.step#Adam.step', lambda: set(3000 + step))
cuda.cuCtxSynchronize()
print('done')
'''


def sizes(capture, version='2.15.0', broken='', schema=0, **env):
    """The sizes of the memsets that were recorded, and the run."""
    forget_run()
    shutil.rmtree(scratch('torch'), ignore_errors=True)
    script = scratch('program.py')
    with open(script, 'w') as file:
        file.write(PROGRAM)
    library = torch_library(version, broken=broken) if version else ''
    run = traced([sys.executable, script, library, str(schema)], env={'GPUTRACE_CAPTURE': capture, **env})
    check_equal((run.returncode, run.stdout), (0, b'done\n'), 'the program')
    return [record['bytes'] for record in records(run, 'Memset')], run


def between(first, last):
    """Of the steps from the end of the one before to the optimizer's own end; the other optimizer runs after it."""
    wanted = []
    for step in range(1, 11):
        wanted += [(step, 1000 + step), (step, 2000 + step), (step + 1, 3000 + step)]
    return [size for step, size in wanted if first <= step <= last]


def test_exactly_those_steps():
    for first, last in ((1, 2), (3, 5), (7, 7), (10, 10), (9, 99)):
        found, run = sizes(f'steps:{first}-{last}')
        check_equal(found, between(first, last), f'steps {first} to {last}')
        check(f'capture steps:{first}-{last}' in str(report(run)['coverage']), 'the report says so', report(run)['coverage'])


def test_steps_that_never_come():
    found, run = sizes('steps:20-30')
    check_equal(found, [], 'nothing')
    check('made fewer steps than that' in str(report(run)['coverage']), 'the report says why', report(run)['coverage'])


def test_where_nothing_tells_of_steps_all_is_recorded():
    for why in ({'version': None}, {'version': '2.16.0'}, {'GPUTRACE_COLLECT': '-ops'}):
        found, run = sizes('steps:3-5', **why)
        check_equal(len(found), 30, f'all of it: {why}')
        warnings = [finding['text'] for finding in report(run)['findings'] if finding['id'] == 'option']
        check(len(warnings) == 1 and 'steps' in warnings[0] and 'all' in warnings[0], 'a warning', warnings)


def test_a_layout_that_does_not_hold_opens_the_window():
    found, run = sizes('steps:3-5', broken='if (is_schema) function.schema = (void*)16;', schema=1)
    check(len(found) >= 29, 'all but what came before that was noticed', found)


main()
