# meson: timeout=240
# Operations of frameworks: a library that offers at::RecordFunction as PyTorch does, with operations of our own in it, and a program whose
# calls lie within them. What real versions of PyTorch say is compared by `./dev frameworks`.
import sys

from torch_mock import *

PROGRAM = r'''
import ctypes, sys, threading
torch = ctypes.PyDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
Inside = ctypes.CFUNCTYPE(None)
cuda = ctypes.CDLL('libcuda.so.1')
buffer, context = ctypes.c_uint64(), ctypes.c_void_p()

def operation(name, inside, scope=0, sequence=-1, schema=1):
    torch.operation(name.encode(), schema, scope, ctypes.c_long(sequence), Inside(inside))

def set(size): cuda.cuMemsetD8_v2(buffer, 1, ctypes.c_size_t(size))

def linear(step, sequence):
    operation('aten::linear', lambda: operation('aten::addmm', lambda: set(1000 + step), sequence=sequence))

cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
cuda.cuMemAlloc_v2(ctypes.byref(buffer), ctypes.c_size_t(1 << 20))
for step in range(10):
    operation('step#%d' % (step % 2), lambda: linear(step, 2 * step), scope=7, schema=0)

backward = ctypes.CDLL(sys.argv[2])
backward.backward(torch.operation, cuda.cuCtxSetCurrent, context, cuda.cuMemsetD8_v2, buffer, 10)
cuda.cuCtxSynchronize()
print('done', torch.registered())
'''
BACKWARD = r'''
#include <pthread.h>
#include <stddef.h>
typedef void (*Operation)(const char*, int, int, long, void (*)(void));
static Operation operation; static int (*current)(void*); static void* context; static int (*set)(unsigned long, unsigned char, size_t);
static unsigned long buffer; static int steps, step; static void (*is_backward_of)(long); static long forward = 1;
void is_of(void (*f)(long), long thread) { is_backward_of = f, forward = thread; }
static void work(void) { set(buffer, 1, 2000 + step); }
static void inner(void) { operation(forward == 1 ? "aten::mm" : forward == 2 ? "aten::sigmoid_backward" : "aten::relu_backward", 1, 0, 77, work); }
static void outer(void) { operation("AddmmBackward0", 0, 1, 2 * step, inner); }
static void (*forward_again)(void), (*backward_again)(void);
void runs_again(void (*f)(void), void (*b)(void)) { forward_again = f, backward_again = b; }
static void again(void) {
  work();
  forward_again();
  is_backward_of(2);
  backward_again();
  is_backward_of(1);
}
static int sums;  // the engine sums a parameter's gradient right behind the operation that made it, and tells hooks
void sums_gradients(void) { sums = 1; }
static void sum(void) { operation("AccumulateGrad", 0, 1, -1, work); operation("c10d::allreduce_", 1, 0, -1, work); }
static long own;  // the number of the pass's thread: there is a backward pass of its own operations
void twice(long number) { own = number; }
static void far(void) { operation("aten::far", 1, 0, -1, work); }
static void* run(void* none) {
  current(context);
  if (is_backward_of) is_backward_of(forward);
  for (step = steps; step-- > 0;) {
    if (forward_again) operation("CheckpointFunctionBackward", 0, 1, 2 * step, again);
    else operation("evaluate_function: AddmmBackward0", 0, 1, 2 * step, outer);
    if (!sums) continue;
    operation("evaluate_function: AccumulateGrad", 0, 0, -1, sum);
    is_backward_of(1l << 40);  // of a thread beyond those that are counted: nobody knows its line, nor that of the sum behind it
    operation("FarBackward0", 0, 1, 5, far);
    operation("evaluate_function: FarGrad", 0, 0, -1, sum);
    is_backward_of(forward);
  }
  if (own) {
    is_backward_of(own);
    operation("MmBackward0", 0, 1, 77, work);
  }
  return none;
}
void backward(Operation o, int (*c)(void*), void* x, int (*s)(unsigned long, unsigned char, size_t), unsigned long b, int n) {
  pthread_t thread;
  operation = o, current = c, context = x, set = s, buffer = b, steps = n;
  pthread_create(&thread, 0, run, 0);
  pthread_join(thread, 0);
}
'''


# A program without Python: libtorch's users have those.
NATIVE = r'''
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
typedef void (*Operation)(const char*, int, int, long, void (*)(void));
static int (*set)(unsigned long, unsigned char, size_t);
static unsigned long buffer;
static long step;
__attribute__((noinline)) static void forward(void) {
  set(buffer, 1, 1000 + step);
  __asm__ volatile("");
}
int main(int count, char** words) {
  void *const torch = dlopen(words[1], RTLD_NOW | RTLD_GLOBAL), *const pass = dlopen(words[2], RTLD_NOW), *const cuda = dlopen("libcuda.so.1", RTLD_NOW);
  const Operation operation = (Operation)dlsym(torch, "operation");
  void* context = 0;
  int (*const current)(void*) = (int (*)(void*))dlsym(cuda, "cuCtxSetCurrent");
  set = (int (*)(unsigned long, unsigned char, size_t))dlsym(cuda, "cuMemsetD8_v2");
  ((int (*)(unsigned))dlsym(cuda, "cuInit"))(0);
  ((int (*)(void**, int))dlsym(cuda, "cuDevicePrimaryCtxRetain"))(&context, 0);
  current(context);
  ((int (*)(unsigned long*, size_t))dlsym(cuda, "cuMemAlloc_v2"))(&buffer, 1 << 20);
  for (step = 0; step < 10; ++step) operation("aten::addmm", 1, 0, 2 * step, forward);
  ((void (*)(Operation, void*, void*, void*, unsigned long, int))dlsym(pass, "backward"))(operation, current, context, set, buffer, 10);
  ((int (*)(void))dlsym(cuda, "cuCtxSynchronize"))();
  printf("done %d\n", ((int (*)(void))dlsym(torch, "registered"))());
  return count != 3;
}
'''


# The other thread's forward operations have the same numbers, and another line.
SEVERAL = PROGRAM.partition('backward = ')[0] + r'''
def put(): cuda.cuMemsetD8_v2(buffer, 1, ctypes.c_size_t(3000))

def other():
    cuda.cuCtxSetCurrent(context)
    for step in range(10):
        operation('aten::sigmoid', put, sequence=2 * step)

thread = threading.Thread(target=other)
thread.start(); thread.join()
backward = ctypes.CDLL(sys.argv[2])
for forward in (1, 2, 3):
    backward.is_of(torch.is_backward_of, forward)
    backward.backward(torch.operation, cuda.cuCtxSetCurrent, context, cuda.cuMemsetD8_v2, buffer, 10)
cuda.cuCtxSynchronize()
print('done', torch.registered())
'''


# A module of a package runs forward again in the backward pass, and backward through that; both by the thread of the pass, which has no
# Python frames but those.
AGAIN = r'''
import ctypes
step = 0
def bind(torch, Inside, cuda, buffer):
    globals().update(torch=torch, Inside=Inside, put=lambda: cuda.cuMemsetD8_v2(buffer, 1, 4000))
def operation(name, inside, scope=0, sequence=-1, schema=1):
    torch.operation(name.encode(), schema, scope, ctypes.c_long(sequence), Inside(inside))
def forward():
    operation('aten::linear_again', put, sequence=500 + step)
def backward():
    global step
    operation('AgainBackward0', lambda: operation('aten::mm', put), scope=1, sequence=500 + step, schema=0)
    step += 1
'''
CHECKPOINT = PROGRAM.partition('backward = ')[0] + r'''
import again
cuda.cuMemsetD8_v2.argtypes = [ctypes.c_uint64, ctypes.c_ubyte, ctypes.c_size_t]
again.bind(torch, Inside, cuda, buffer)
forward_again, backward_again = Inside(again.forward), Inside(again.backward)
backward = ctypes.CDLL(sys.argv[2])
backward.is_of(torch.is_backward_of, 1)
backward.runs_again(forward_again, backward_again)
backward.backward(torch.operation, cuda.cuCtxSetCurrent, context, cuda.cuMemsetD8_v2, buffer, 10)
cuda.cuCtxSynchronize()
print('done', torch.registered())
'''


SUMS = PROGRAM.replace('backward.backward(', 'backward.is_of(torch.is_backward_of, 1)\nbackward.sums_gradients()\nbackward.backward(')


# Forward operations that make no CUDA call themselves, behind one that makes no node of the backward pass: that has the same number.
VIEWS = PROGRAM.replace('def linear(step, sequence):', """def noise(sequence):
    operation('data::noise', lambda: cuda.cuMemsetD8_v2(buffer, 1, ctypes.c_size_t(3000)), sequence=sequence)

def slice(sequence):
    torch.operation(b'aten::slice', 1, 0, ctypes.c_long(sequence), Inside(lambda: None))

def view(sequence):
    operation('aten::transpose', lambda: None, sequence=sequence)

def of_weights(sequence):
    operation('aten::t', lambda: None, sequence=sequence)
    operation('aten::addmm', lambda: set(1000), sequence=sequence + 1)

def around(sequence):
    operation('aten::linear', lambda: of_weights(sequence), sequence=sequence)

def linear(step, sequence):
    noise(sequence)
    VIEW(sequence)

def direct(step, sequence):""")


TWICE = PROGRAM.replace('backward.backward(', 'backward.is_of(torch.is_backward_of, 1)\nbackward.twice(2)\nbackward.backward(')


def framework(version, long_strings=True, broken='', program=PROGRAM):
    """A program's words, on a PyTorch of that version."""
    library = torch_library(version, long_strings, broken)
    backward = compiled('backward.c', BACKWARD, '-shared', '-fPIC', '-lpthread')
    script = scratch('program.py')
    with open(script, 'w') as file:
        file.write(program)
    packages = scratch('packages/site-packages')
    os.makedirs(packages, exist_ok=True)
    with open(os.path.join(packages, 'again.py'), 'w') as file:
        file.write(AGAIN)
    return ['env', f'PYTHONPATH={packages}', sys.executable, script, library, backward]


def check_operations(run):
    check_equal((run.returncode, run.stdout), (0, b'done 1\n'), 'the program')
    check_equal(check_conservation(run)[2], 0, 'nothing was dropped')
    ops = {row['path']: row for row in rows(run, 'ops')}
    under = 'evaluate_function: AddmmBackward0 / AddmmBackward0'
    counts = {'step#0': 5, 'step#0 / aten::linear': 5, 'step#0 / aten::linear / aten::addmm': 5,
              'step#1': 5, 'step#1 / aten::linear': 5, 'step#1 / aten::linear / aten::addmm': 5,
              'evaluate_function: AddmmBackward0': 10, under: 10, f'{under} / aten::mm': 10}
    check_equal({path: row['count'] for path, row in ops.items()}, counts, 'operations')
    device = lambda sizes: sum(line['end_ns'] - line['start_ns'] for line in run.truth_of('memset') if line['bytes'] in sizes)
    for path, wanted in (('step#0', device(range(1000, 1010, 2))), ('step#1 / aten::linear', device(range(1001, 1010, 2))),
                         (under, device(range(2000, 2010)))):
        check_equal((ops[path]['device_total_ns'], ops[path]['device_self_ns']), (wanted, 0), f'device time within {path}')
    check_equal(ops[f'{under} / aten::mm']['device_self_ns'], device(range(2000, 2010)), 'device time of an operation itself')
    for path, row in ops.items():
        within = sum(other['host_total_ns'] for key, other in ops.items() if key.rpartition(' / ')[0] == path)
        check_equal(row['host_total_ns'] - row['host_self_ns'], within, f'host time of {path}: the rest is what lies within')
    check_equal(ops[f'{under} / aten::mm']['site'], f"program.py:{line_in(PROGRAM, 'def set')} set", 'the line of a backward operation is that of the forward one')


def test_operations_of_both_kinds_of_strings():
    for version, long_strings in (('2.15.0', True), ('2.1.2', False)):
        forget_run()
        shutil.rmtree(scratch('torch'), ignore_errors=True)
        check_operations(traced(framework(version, long_strings)))


def line_in(program, begin):
    return next(i for i, text in enumerate(program.splitlines(), 1) if text.lstrip().startswith(begin))


def test_backward_operations_of_several_forward_threads():
    for version, long_strings in (('2.15.0', True), ('2.3.1', False)):
        forget_run()
        shutil.rmtree(scratch('torch'), ignore_errors=True)
        run = traced(framework(version, long_strings, program=SEVERAL))
        check_equal((run.returncode, run.stdout), (0, b'done 1\n'), 'the program')
        sites = {row['op']: (row['count'], row['site']) for row in rows(run, 'ops') if row['path'].startswith('evaluate_function')}
        check_equal({op: sites[op] for op in ('aten::mm', 'aten::sigmoid_backward', 'aten::relu_backward')},
                    {'aten::mm': (10, f"program.py:{line_in(SEVERAL, 'def set')} set"),
                     'aten::sigmoid_backward': (10, f"program.py:{line_in(SEVERAL, 'def put')} put"),
                     'aten::relu_backward': (10, None)}, 'lines of the thread that ran the forward operation; nobody knows of the third')


def test_sums_of_gradients_have_the_line_of_what_made_them():
    run = traced(framework('2.15.0', program=SUMS))
    check_equal((run.returncode, run.stdout), (0, b'done 1\n'), 'the program')
    sites = {row['path']: (row['count'], row['site']) for row in rows(run, 'ops')}
    made = (10, f"program.py:{line_in(SUMS, 'def set')} set")
    under = 'evaluate_function: AccumulateGrad'
    wanted = {f'{under} / AccumulateGrad': made, f'{under} / c10d::allreduce_': made,
              'FarBackward0 / aten::far': (10, None), 'evaluate_function: FarGrad / AccumulateGrad': (10, None)}
    check_equal({path: sites[path] for path in wanted}, wanted, 'lines')


def test_the_backward_operation_of_a_view_has_its_line_and_no_other_ones():
    under = 'evaluate_function: AddmmBackward0 / AddmmBackward0 / aten::mm'
    for view, site in (('slice', f"program.py:{line_in(VIEWS, 'torch.operation(b')} slice"), ('around', f"program.py:{line_in(VIEWS, 'def set')} set"),
                       ('view', None)):  # nobody reads a stack for what is a view in the backward pass, too
        forget_run()
        run = traced(framework('2.15.0', program=VIEWS.replace('VIEW', view)))
        check_equal((run.returncode, run.stdout), (0, b'done 1\n'), 'the program')
        sites = {row['path']: (row['count'], row['site']) for row in rows(run, 'ops')}
        check_equal(sites[under], (10, site), f'the line of {view}, not of the operation before it')


def test_the_backward_pass_of_a_backward_pass_has_the_line_of_the_forward_one():
    run = traced(framework('2.15.0', program=TWICE))
    check_equal((run.returncode, run.stdout), (0, b'done 1\n'), 'the program')
    sites = {row['path']: (row['count'], row['site']) for row in rows(run, 'ops')}
    check_equal(sites['MmBackward0'], (1, f"program.py:{line_in(TWICE, 'def set')} set"), 'its line')


def test_what_a_backward_pass_runs_again_has_the_line_of_the_first_time():
    run = traced(framework('2.15.0', program=CHECKPOINT))
    check_equal((run.returncode, run.stdout), (0, b'done 1\n'), 'the program')
    line = f"program.py:{line_in(CHECKPOINT, 'def set')} set"
    under = 'CheckpointFunctionBackward'
    sites = {row['path']: (row['count'], row['site']) for row in rows(run, 'ops') if row['path'].startswith(under)}
    check_equal({path: sites[path] for path in (f'{under} / aten::linear_again', f'{under} / AgainBackward0 / aten::mm')},
                {f'{under} / aten::linear_again': (10, line), f'{under} / AgainBackward0 / aten::mm': (10, line)}, 'lines')
    check(not any('again.py' in (row['site'] or '') for row in rows(run, 'sites')), 'no line of the package', rows(run, 'sites'))


KERNELS = PROGRAM.partition('def set')[0] + f"""
sys.path.insert(0, {os.path.join(SOURCE, 'tests', 'e2e')!r})
from driver import Driver
d = Driver()
step, reduce, bare = (d.kernel(name) for name in ('step', 'reduce', 'scale'))
def launches(times, kernel):
    for _ in range(times): d.launch(kernel)
for _ in range(5):
    operation('aten::linear', lambda: operation('aten::mm', lambda: launches(3, step)))
    operation('aten::sum', lambda: (launches(1, step), launches(2, reduce)))
launches(4, bare)
d('cuCtxSynchronize')
"""


def test_kernels_have_the_operation_that_launched_most_of_them():
    library = torch_library('2.15.0')
    script = scratch('program.py')
    with open(script, 'w') as file:
        file.write(KERNELS)
    run = traced([sys.executable, script, library], {'SIMGPU_KERNEL_TIME': 'step=30us,reduce=10us,scale=5us'})
    check_equal(run.returncode, 0, run.stderr)
    kernels = {row['kernel']: row for row in rows(run, 'kernels')}
    check_equal({name: (row['op'], row['launches'], row['total_ns']) for name, row in kernels.items()},
                {'step': ('aten::mm', 20, 600_000), 'reduce': ('aten::sum', 10, 100_000), 'scale': (None, 4, 20_000)}, 'operations of kernels')
    check(all(row['site'].startswith('driver.py:') for row in kernels.values()), 'lines of kernels', kernels)
    ops = {row['path']: row for row in rows(run, 'ops')}
    check_equal({path: row['tensor_core_ratio'] for path, row in ops.items()}, {'aten::linear': 0, 'aten::linear / aten::mm': 0, 'aten::sum': 0},
                'no matrix instruction in their code')
    forget_run()
    run = traced([sys.executable, script, library], {'GPUTRACE_COLLECT': '-code'})
    check_equal({row['tensor_core_ratio'] for row in rows(run, 'ops')}, {None}, 'nothing is known of code that was not collected')


def reason(run):
    return {each['what']: each['why'] for each in report(run)['coverage']['not_collected']}.get('ops', '')


def test_the_backward_pass_of_a_program_without_python_has_the_line_of_the_forward_one():
    words = [compiled('program.c', NATIVE, '-g', '-ldl'), torch_library('2.15.0'), compiled('backward.c', BACKWARD, '-shared', '-fPIC', '-lpthread')]
    run = traced(words, {'GPUTRACE_COLLECT': '+stacks'})
    check_equal((run.returncode, run.stdout), (0, b'done 1\n'), 'the program')
    made = f"program.c:{line_in(NATIVE, 'set(buffer')} forward"
    sites = {row['path']: (row['count'], row['site']) for row in rows(run, 'ops')}
    check_equal((sites['aten::addmm'], sites['evaluate_function: AddmmBackward0 / AddmmBackward0 / aten::mm']), ((10, made), (10, made)), 'lines')
    check_equal({row['site']: row['calls'] for row in rows(run, 'sites')}[made], 20, 'calls of the line, those of the backward pass among them')


def test_an_unknown_version_is_left_alone():
    run = traced(framework('2.16.0'))
    check_equal((run.returncode, run.stdout), (0, b'done 0\n'), 'nobody was asked')
    check('only PyTorch 2.1 to 2.15 is known' in reason(run), 'the reason', reason(run))


def test_a_layout_that_does_not_hold_switches_it_off():
    run = traced(framework('2.15.0', broken='if (is_schema) function.schema = (void*)16;'))
    check_equal(run.returncode, 0, 'the program')
    names = {frame['id']: frame['function'] for frame in records(run, 'StackFrame')}
    check_equal([names[record['frame']] for record in records(run, 'Operation')], ['step#0'], 'none after the first that did not hold')
    check('do not look as this version' in str(rows(run, 'quality-notes')), 'the report says so', rows(run, 'quality-notes'))


def test_left_out():
    run = traced(framework('2.15.0'), env={'GPUTRACE_COLLECT': '-ops'})
    check_equal((run.returncode, run.stdout), (0, b'done 0\n'), 'nobody was asked')
    check_equal(records(run, 'Operation'), [], 'no operation')


main()
