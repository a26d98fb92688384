# meson: timeout=200
# GPUTRACE_CAPTURE=nvtx:NAME[@DOMAIN]: exactly the launches within the range are recorded.
from against_truth import *


def grids(run, capture, script, **env):
    """Grids of the recorded launches; those in the script are told apart by their grid."""
    command = [program('nvtx_window'), *script.split()]
    run = traced(command, {'GPUTRACE_CAPTURE': capture, **env})
    same_output(untraced(command), run)
    check_conservation(run)
    return [record['grid_x'] for record in records(run, 'KernelLaunch')], run


def check_grids(capture, script, wanted, **env):
    got, run = grids(None, capture, script, **env)
    check_equal(got, wanted, f'{capture}: {script}')
    forget_run()
    return run


def test_push_and_pop():
    check_grids('nvtx:step', 'cuda 1 +step 2 3 -step 4 +step 5 -step 6', [2, 3, 5])


def test_start_and_end():
    check_grids('nvtx:step', 'cuda 1 [step 2 +x 3 -x ]step 4 [step 5 ]step 6', [2, 3, 5])


def test_the_outermost_rules():
    check_grids('nvtx:step', 'cuda +a 1 +step 2 +step 3 -step 4 +b 5 -b 6 -step 7 -a 8', [2, 3, 4, 5, 6])
    check_grids('nvtx:step', 'cuda [step 1 +step 2 -step 3 ]step 4', [1, 2, 3])
    check_grids('nvtx:step', 'cuda +step 1 [step 2 -step 3 ]step 4', [1, 2, 3])


def test_open_before_the_first_call():
    check_grids('nvtx:step', '+epoch +step cuda 1 -step 2 +step 3 -step -epoch 4', [1, 3])
    check_grids('nvtx:step', '[step cuda 1 ]step 2', [1])
    check_grids('nvtx:step', '+step -step cuda 1 +step 2 -step', [2])


def test_domains():
    script = 'cuda +step 1 -step +step@app 2 -step@app +step@other 3 -step@other +x@app 4 -x@app'
    check_grids('nvtx:step', script, [1])
    check_grids('nvtx:step@app', script, [2])
    check_grids('nvtx:step@*', script, [1, 2, 3])
    check_grids('nvtx:nothing', script, [])
    # Each domain has a stack of its own.
    check_grids('nvtx:step@app', 'cuda +step@app 1 +x 2 -step@app 3 -x 4', [1, 2])


def test_any_thread():
    check_grids('nvtx:step', 'cuda 1 ( +step 2 -step 3 ) 4', [2])
    check_grids('nvtx:step', 'cuda +step ( 1 ) -step ( 2 ) 3', [1])
    check_grids('nvtx:step', 'cuda [step 1 ( 2 ]step 3 ) 4', [1, 2])
    # A thread that ends within its range ends it.
    check_grids('nvtx:step', 'cuda ( +step 1 ) 2', [1])


def test_a_child_of_fork():
    got, run = grids(None, 'nvtx:step', '+step { cuda 2 -step 3 +step 4 -step } cuda 5 -step 6')
    check_equal(len(run.traces), 2, 'two processes')
    per_process = sorted([r['grid_x'] for r in records(path, 'KernelLaunch')] for path in run.traces)
    check_equal(per_process, [[2, 4], [5]], 'each has its window')


def test_with_a_duration():
    check_grids('nvtx:step', 'cuda 1 +step 2 ~400 3 -step 4 +step 5 -step', [2, 5], GPUTRACE_DURATION='200ms')


def test_events_of_the_window():
    _, run = grids(None, 'nvtx:step', 'cuda +a 1 +step 2 +b 3 -b -step 4 -a')
    got = [(r['what_name'], r['message']) for r in records(run, 'Nvtx')]
    check_equal(got, [('push', 'step'), ('push', 'b'), ('pop', None), ('pop', None)], 'the range itself and what is in it')
    check_equal(rows(run, 'launches')[0]['launches'] if rows(run, 'launches') else 0, 1, 'of two kernels one launch each')


def test_device_collection_follows():
    if not os.path.exists(os.path.join(places.simgpu, 'libcupti.so.13')):
        skip('not built: libcupti.so.13')
    got, run = grids(None, 'nvtx:step', 'cuda 1 ~200 +step 2 3 -step ~300 4 ~200 +step 5 -step ~300 6')
    check_equal(got, [2, 3, 5], 'launches')
    kernels = sorted(record['grid_x'] for record in records(run, 'DeviceKernel'))
    check_equal(kernels, [2, 3, 5], 'kernels, as CUPTI gave them')
    states = [record['reason'] for record in records(run, 'DeviceState')]
    check(sum('the window is open' in reason for reason in states) == 2, 'switched on twice', states)


def test_values_that_cannot_be_used():
    for value, why in (('nvtx:', 'expected'), ('nvtx:@app', 'expected'), ('nvtx:a@', 'expected')):
        got, run = grids(None, value, 'cuda 1 +step 2 -step 3')
        check_equal(got, [1, 2, 3], f'{value}: all is recorded')
        said = [row['text'] for row in rows(run, 'quality-notes') if row['what'] == 'option']
        check(len(said) == 1 and why in said[0], 'and said', said)
        forget_run()
    got, run = grids(None, 'nvtx:step', 'cuda 1', GPUTRACE_COLLECT='-nvtx')
    check_equal(got, [1], 'without NVTX all is recorded')
    said = [row['text'] for row in rows(run, 'quality-notes') if row['what'] == 'option']
    check(len(said) == 1 and 'leaves nvtx out' in said[0], 'and said', said)


def test_by_the_command():
    command = [program('nvtx_window'), *'cuda 1 +step 2 -step 3'.split()]
    run = traced(command, mode='run', options=['--capture', 'nvtx:step'])
    check_equal(run.returncode, 0, 'exit code')
    check_equal([r['grid_x'] for r in records(run, 'KernelLaunch')], [2], 'launches')
    code, _, err = gputrace('run', '--capture', 'nvtx:', '--', 'true', rc=None)
    check_equal(code, 125, 'an unusable value is a usage error')
    check('nvtx:NAME' in err, 'that names the fix', err)


# The other thread opens its range before the session, which this one begins; it launches within it.
OTHER_THREAD = r"""
#include <cuda.h>
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdlib.h>
static const char ptx[] = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry step() { ret; }\n";
static pthread_barrier_t turn;
static CUcontext context;
static CUfunction step;
static void must(CUresult result) { if (result) exit(70); }
static void launch(unsigned grid) { must(cuLaunchKernel(step, grid, 1, 1, 32, 1, 1, 0, 0, 0, 0)); }
static void* run(void* unused) {
  nvtxRangePushA("epoch");
  nvtxRangePushA("step");
  pthread_barrier_wait(&turn);
  pthread_barrier_wait(&turn);
  must(cuCtxSetCurrent(context));
  launch(2);
  nvtxRangePop();
  launch(3);
  nvtxRangePop();
  return 0;
}
int main(void) {
  pthread_t other;
  CUmodule module;
  pthread_barrier_init(&turn, 0, 2);
  pthread_create(&other, 0, run, 0);
  pthread_barrier_wait(&turn);
  must(cuInit(0));
  must(cuDevicePrimaryCtxRetain(&context, 0));
  must(cuCtxSetCurrent(context));
  must(cuModuleLoadData(&module, ptx));
  must(cuModuleGetFunction(&step, module, "step"));
  launch(1);
  pthread_barrier_wait(&turn);
  pthread_join(other, 0);
  launch(4);
  return 0;
}
"""


def test_open_on_another_thread_before_the_first_call():
    command = [compiled('other_thread.c', OTHER_THREAD, '-lcuda', '-lpthread', '-ldl')]
    run = traced(command, {'GPUTRACE_CAPTURE': 'nvtx:step'})
    same_output(untraced(command), run)
    check_equal([record['grid_x'] for record in records(run, 'KernelLaunch')], [2], 'launches within the range')


main()
