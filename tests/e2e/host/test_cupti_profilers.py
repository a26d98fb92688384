# meson: timeout=240
# Profilers of the program's own, as they are: PyTorch's stays subscribed and leaves its clock in CUPTI; one finalizes CUPTI while records
# are being read; one uses the calls of CUPTI 13.3.
from device_truth import *

PROFILER = r'''
#define _GNU_SOURCE
#include <cuda.h>
#include <cupti.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#define MUST(call) do { int r = (call); if (r) { fprintf(stderr, "%s: %d\n", #call, r); exit(70); } } while (0)
static const char ptx[] = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry step() { ret; }\n";
static long kernels, foreign;
static void requested(uint8_t** buffer, size_t* size, size_t* count) { *size = 65536; *count = 0; *buffer = malloc(*size); }
static void completed(CUcontext context, uint32_t stream, uint8_t* buffer, size_t size, size_t valid) {
  CUpti_Activity* record = 0;
  while (!cuptiActivityGetNextRecord(buffer, valid, &record)) {
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) ++kernels; else ++foreign;
  }
  free(buffer);
}
#if CUPTI_API_VERSION >= 130300
static void requested_v2(uint8_t** b, size_t* s, size_t* c, CUpti_BufferCallbackRequestInfo* i) { requested(b, s, c); }
static void completed_v2(uint8_t* b, size_t s, size_t v, CUpti_BufferCallbackCompleteInfo* i) { completed(0, 0, b, s, v); }
#endif
static void heard(void* user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {}
static CUpti_SubscriberHandle subscriber;
static struct timespec now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t; }
static uint64_t ticks(void) { struct timespec t = now(); return (t.tv_sec * 1000000000ull + t.tv_nsec) * 13 / 5; }  /* 2.6 a ns */
static CUfunction step;
static void launch(int count) {
  for (int i = 0; i < count; ++i) MUST(cuLaunchKernel(step, 1, 1, 1, 32, 1, 1, 0, 0, 0, 0));
  MUST(cuCtxSynchronize());
}
static void profile(int v2, int clock) {
#if CUPTI_API_VERSION >= 130300
  if (v2) {
    MUST(cuptiSubscribe_v2(&subscriber, heard, 0, 0));
    MUST(cuptiActivityRegisterCallbacks_v2(subscriber, requested_v2, completed_v2));
    MUST(cuptiActivityEnable_v2(subscriber, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 0));
    launch(7);
    MUST(cuptiActivityFlushAll(1));
    MUST(cuptiUnsubscribe(subscriber));  /* which ends what it had enabled */
    MUST(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
    return;
  }
#endif
  if (!subscriber) MUST(cuptiSubscribe(&subscriber, heard, 0));
  if (clock) MUST(cuptiActivityRegisterTimestampCallback(ticks));
  MUST(cuptiActivityRegisterCallbacks(requested, completed));
  MUST(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  launch(7);
  CUstream stream;
  MUST(cuStreamCreate(&stream, 0));  /* whose id nobody asks for now */
  MUST(cuptiActivityFlushAll(0));
  MUST(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
}
int main(int argc, char** argv) {
  CUcontext context; CUmodule module;
  MUST(cuInit(0));
  if (!strcmp(argv[1], "import")) MUST(cuptiSubscribe(&subscriber, heard, 0));  /* and nothing else for long */
  MUST(cuDevicePrimaryCtxRetain(&context, 0));
  MUST(cuCtxSetCurrent(context));
  MUST(cuModuleLoadData(&module, ptx));
  MUST(cuModuleGetFunction(&step, module, "step"));
  launch(30);
  if (!strcmp(argv[1], "finalize")) {
    launch(atoi(argv[2]));
    MUST(cuptiFinalize());
    usleep(100000);
    launch(5);
  } else if (!strcmp(argv[1], "import")) {
    usleep(11500000);
    launch(20);
  } else {
    for (int turn = 0; turn < 2; ++turn) {
      profile(!strcmp(argv[1], "v2"), !strcmp(argv[1], "clock"));
      usleep(2500000);
      for (int i = 0; i < 20; ++i) { launch(2); usleep(20000); }
    }
  }
  printf("client kernels %ld others %ld\n", kernels, foreign);
  return 0;
}
'''
STATE = {'never': 1, 'on': 2, 'paused': 3, 'yielded': 4, 'failed': 5, 'ended': 6}


def profiler():
    if not os.path.exists(os.path.join(places.simgpu, 'libcupti.so.13')):
        skip('not built: simgpu/libcupti.so.13')
    include = '/usr/local/cuda/extras/CUPTI/include'
    return compiled('profiler.c', PROFILER, '-lcuda', '-I', include, '-Wno-unused', '-L', places.simgpu, '-l:libcupti.so.13', '-Wl,--allow-shlib-undefined')


def states(run):
    return [record['state_name'] for record in sorted(records(run, 'DeviceState'), key=lambda record: record['begin_ns'])]


def traced_beside(how, kernels, env=None):
    """Traced; the profiler gets what it would get without us."""
    changes = {'SIMGPU_KERNEL_TIME': '.=200us', **(env or {})}
    plain = untraced([profiler(), *how], changes)
    check_equal(plain.returncode, 0, plain.stderr)
    forget_run()
    run = traced([profiler(), *how], changes)
    same_output(plain, run)
    check_equal(len(records(run, 'DeviceKernel')), kernels, 'kernels in the trace')
    return run


def check_times_in_report(run, kernels):
    """Kernel times in all, and from call to start, against the truth: of the kernels that have records."""
    seen = {record['correlation'] for record in records(run, 'DeviceKernel')}
    lines = [line for line in run.truth_of('kernel') if line['correlation'] in seen]
    check_equal(len(lines), kernels, 'each is one of the truth')
    wanted = sum(line['end_ns'] - line['start_ns'] for line in lines)
    found = metrics(run)['kernel_ns']
    check(abs(found - wanted) <= wanted * 1e-4, 'kernel time', found, wanted)
    latency = sum(line['start_ns'] - line['call_begin_ns'] for line in lines) / kernels
    row = rows(run, 'launches')[0]
    check(abs(row['latency_mean_ns'] - latency) <= 20_000, 'call to start', row, latency)
    for loss in records(run, 'DeviceLoss'):
        check(False, 'nothing is lost', loss)


def test_a_profiler_that_stays_subscribed():
    run = traced_beside(['stays'], 30 + 40 + 40)
    check_equal(states(run), ['on', 'yielded', 'on', 'yielded', 'on', 'ended'], 'states')
    check_times_in_report(run, 110)
    created = [record for record in records(run, 'ObjectCall') if record['call'] == 'cuStreamCreate']
    check_equal(len(created), 2, 'streams made while the profiler was there')
    asked = {record['stream'] for record in records(run, 'DeviceStream')}
    check(not asked & {record['object'] for record in created}, 'CUPTI is asked for nothing then', asked, created)


def test_a_profiler_that_leaves_its_clock():
    run = traced_beside(['clock'], 30 + 40 + 40)
    check_equal(states(run), ['on', 'yielded', 'on', 'yielded', 'on', 'ended'], 'states')
    sources = [record['source_name'] if 'source_name' in record else record['source'] for record in records(run, 'DeviceClock')]
    check('client' in sources, 'the trace says whose clock it is', sources)
    check_times_in_report(run, 110)


def test_a_subscriber_that_collects_nothing():
    """PyTorch has subscribed at its import. Ten seconds later it is taken for what it is: callbacks, which we do not touch."""
    run = traced_beside(['import'], 20)
    check_equal(states(run), ['yielded', 'on', 'ended'], 'states')


def test_cupti_is_finalized_while_records_are_read():
    for count in (50, 20000):
        run = traced_beside(['finalize', str(count)], 30 + count, {'SIMGPU_KERNEL_TIME': '.=100ns', 'SIMGPU_CUPTI': 'slow=cuptiFinalize:1500ms'})
        check_equal({record['name'] for record in records(run, 'DeviceKernel')}, {'step'}, 'names, which CUPTI took with it')
        check_equal(states(run), ['on', 'yielded'], 'states')


def test_a_profiler_that_uses_the_calls_of_cupti_13_3():
    header = open(os.path.join(os.environ.get('GT_CUDA', '/usr/local/cuda'), 'include', 'cupti_version.h'), encoding='utf-8').read()
    if int(re.search(r'define CUPTI_API_VERSION\s+(\d+)', header)[1]) < 130300:
        skip('this toolkit has an older CUPTI')
    run = traced_beside(['v2'], 30 + 40 + 40)
    check_equal(states(run), ['on', 'yielded', 'on', 'yielded', 'on', 'ended'], 'states')
    check_times_in_report(run, 110)


main(together=True)
