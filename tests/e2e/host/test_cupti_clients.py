# meson: timeout=240
# Another client of CUPTI in the program: it gets all that it would get without us, we are out of its way while it is there and
# back when it has left, and the trace says when.
from harness import *

CLIENT = r'''
#define _GNU_SOURCE
#include <cuda.h>
#include <cupti.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#define MUST(call) do { int r = (call); if (r) { fprintf(stderr, "%s: %d\n", #call, r); exit(70); } } while (0)
#if LINKED
#define CUPTI(name) name
#else
static void* library;
#define CUPTI(name) ((__typeof__(&name))dlsym(library, #name))
#endif
static const char ptx[] = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry step() { ret; }\n";
static long kernels, foreign;
static void requested(uint8_t** buffer, size_t* size, size_t* count) { *size = 65536; *count = 0; *buffer = malloc(*size); }
static void completed(CUcontext context, uint32_t stream, uint8_t* buffer, size_t size, size_t valid) {
  CUpti_Activity* record = 0;
  while (!CUPTI(cuptiActivityGetNextRecord)(buffer, valid, &record)) {
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) ++kernels; else ++foreign;
  }
  free(buffer);  /* of a buffer that is not its own this would be the end */
}
static void callback(void* user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {}
static CUpti_SubscriberHandle subscriber;
static void come(int subscribe) {
  if (subscribe) MUST(CUPTI(cuptiSubscribe)(&subscriber, callback, 0));
  MUST(CUPTI(cuptiActivityRegisterCallbacks)(requested, completed));
  MUST(CUPTI(cuptiActivityEnable)(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
}
static void leave(int subscribe) {
  MUST(CUPTI(cuptiActivityFlushAll)(1));
  MUST(CUPTI(cuptiActivityDisable)(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  if (subscribe) MUST(CUPTI(cuptiUnsubscribe)(subscriber));
}
/* Past everybody who listens to dlsym. */
static void subscribe_unseen(void) {
  void* handle = dlopen("libcupti.so.13", RTLD_NOW);
  CUptiResult (*real)(CUpti_SubscriberHandle*, CUpti_CallbackFunc, void*) = dlvsym(handle, "cuptiSubscribe", "libcupti.so.13");
  if (!real) { fprintf(stderr, "%s\n", dlerror()); exit(72); }
  MUST(real(&subscriber, callback, 0));
}
static void tell(void) { printf("client kernels %ld others %ld\n", kernels, foreign); }
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
/* What CUPTI has one of for all its clients. */
static void tell_settings(void) {
  CUpti_ActivityThreadIdType type;
  uint8_t zeroed;
  size_t size = sizeof zeroed;
  MUST(CUPTI(cuptiGetThreadIdType)(&type));
  MUST(CUPTI(cuptiActivityGetAttribute)(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &size, &zeroed));
  printf("thread ids %d, zeroed %d\n", type, zeroed);
}
static CUfunction step;
static void launch(int count) {
  for (int i = 0; i < count; ++i) MUST(cuLaunchKernel(step, 1, 1, 1, 32, 1, 1, 0, 0, 0, 0));
  MUST(cuCtxSynchronize());
}
int main(int argc, char** argv) {
  int early = !strcmp(argv[1], "early"), subscribe = !strcmp(argv[2], "subscribe"), stay = !strcmp(argv[3], "stay");
#if !LINKED
  library = dlopen("libcupti.so.13", RTLD_NOW);
  if (!library) { fprintf(stderr, "%s\n", dlerror()); return 71; }
#endif
  if (argc > 4 && !strcmp(argv[4], "busy")) atexit(tell);  /* before any of ours: runs after it */
  if (early) come(subscribe);
  CUcontext context; CUmodule module;
  MUST(cuInit(0));
  MUST(cuDevicePrimaryCtxRetain(&context, 0));
  MUST(cuCtxSetCurrent(context));
  MUST(cuModuleLoadData(&module, ptx));
  MUST(cuModuleGetFunction(&step, module, "step"));
  if (argc > 4 && !strcmp(argv[4], "own")) { launch(3); MUST(CUPTI(cuptiSetThreadIdType)(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM)); }
  if (!early) { launch(30); come(subscribe); }
  if (argc > 4 && (!strcmp(argv[4], "settings") || !strcmp(argv[4], "own"))) tell_settings();
  launch(7);
  if (argc > 4 && !strcmp(argv[4], "busy")) {  /* at work while collection comes back; counted when all buffers are there */
    leave(subscribe);
    usleep(950000);
    for (double end = now() + 0.6; now() < end; usleep(1)) launch(1);
    return 0;
  }
  if (!stay) { leave(subscribe); if (argc > 4 && !strcmp(argv[4], "unseen")) subscribe_unseen(); usleep(3500000); launch(20); }
  if (argc > 4 && !strcmp(argv[4], "context")) {
    MUST(CUPTI(cuptiActivityEnableContext)(context, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
    launch(11);
    MUST(CUPTI(cuptiActivityFlushAll)(1));
    MUST(CUPTI(cuptiActivityDisableContext)(context, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  }
  if (stay) MUST(CUPTI(cuptiActivityFlushAll)(1));
  printf("client kernels %ld others %ld\n", kernels, foreign);
  return 0;
}
'''


def client(linked):
    include = '/usr/local/cuda/extras/CUPTI/include'
    flags = ['-lcuda', '-ldl', f'-DLINKED={int(linked)}', '-I', include, '-Wno-unused']
    if linked:
        flags += ['-L', places.simgpu, '-l:libcupti.so.13', '-Wl,--allow-shlib-undefined']
    return compiled(f'client{int(linked)}.c', CLIENT, *flags)


def has_simulated_cupti():
    if not os.path.exists(os.path.join(places.simgpu, 'libcupti.so.13')):
        skip('not built: simgpu/libcupti.so.13')


STATE = {'never': 1, 'on': 2, 'paused': 3, 'yielded': 4, 'failed': 5, 'ended': 6}


def states(run):
    return [record['state'] for record in sorted(records(run, 'DeviceState'), key=lambda record: record['begin_ns'])]


def is_state(value, word):
    return value == STATE[word] or value == word


def check_states(run, *wanted):
    found = states(run)
    check(len(found) == len(wanted) and all(map(is_state, found, wanted)), 'states of device collection', found, wanted)


def both(command, seen_by_client, ours):
    plain = untraced(command)
    check_equal(plain.returncode, 0, plain.stderr)
    check_equal(plain.stdout.decode().strip(), f'client kernels {seen_by_client} others 0', 'without us')
    forget_run()
    run = traced(command)
    same_output(plain, run)
    check_equal(len(records(run, 'DeviceKernel')), ours, 'kernels in the trace')
    check_equal(len(records(run, 'KernelLaunch')), len([1 for line in run.truth_of('kernel')]), 'calls are recorded throughout')
    return run


def test_client_that_comes_later_and_leaves():
    has_simulated_cupti()
    for linked in (False, True):
        for how in ('subscribe', 'register'):
            run = both([client(linked), 'late', how, 'leave'], 7, 50)
            check_states(run, 'on', 'yielded', 'on', 'ended')


def test_client_that_comes_later_and_stays():
    has_simulated_cupti()
    run = both([client(True), 'late', 'subscribe', 'stay'], 7, 30)
    check_states(run, 'on', 'yielded')


def test_client_that_was_there_first():
    has_simulated_cupti()
    run = both([client(True), 'early', 'subscribe', 'stay'], 7, 0)
    check_states(run, 'yielded')
    run = both([client(False), 'early', 'register', 'leave'], 7, 20)
    check_states(run, 'yielded', 'on', 'ended')


def test_client_that_comes_back_by_one_context():
    has_simulated_cupti()
    for linked in (False, True):
        run = both([client(linked), 'late', 'register', 'leave', 'context'], 18, 50)
        check_states(run, 'on', 'yielded', 'on', 'yielded')


def test_client_that_nobody_saw_come_is_told_once():
    has_simulated_cupti()
    run = both([client(False), 'late', 'register', 'leave', 'unseen'], 7, 30)
    check_states(run, 'on', 'yielded')


def test_client_gets_its_records_when_we_have_none():
    has_simulated_cupti()
    command = [client(True), 'late', 'register', 'stay']
    plain = untraced(command)
    check_equal(plain.stdout.decode().strip(), 'client kernels 7 others 0', 'without us')
    for how, variables in ((('on', 'failed'), {'SIMGPU_CUPTI': 'error=cuptiGetTimestamp:1:999'}), (('never',), {'GPUTRACE_CUPTI': '/none/libcupti.so'})):
        forget_run()
        run = traced(command, variables)
        same_output(plain, run)
        check_states(run, *how)


def test_a_client_that_has_left_gets_no_record_of_ours():
    """The program launches all the time while collection comes back: no buffer for what we enable is the old client's."""
    has_simulated_cupti()
    for how in ('register', 'subscribe'):
        forget_run()
        run = traced([client(True), 'early', how, 'leave', 'busy'], {'SIMGPU_TRUTH': None, 'SIMGPU_KERNEL_TIME': '.=1us', 'SIMGPU_CUPTI': 'slow=cuptiActivityEnable:2ms'})
        check_equal(run.stdout.decode().strip(), 'client kernels 7 others 0', 'what the client got')
        check_states(run, 'yielded', 'on', 'ended')
        back = max(record['begin_ns'] for record in records(run, 'DeviceState') if is_state(record['state'], 'on'))
        begins = [record['begin_ns'] for record in records(run, 'KernelLaunch')]
        kernels = len(records(run, 'DeviceKernel'))
        check(kernels >= sum(begin > back for begin in begins) > 100, 'kernels since collection is back', kernels, sum(begin > back for begin in begins))


def test_client_finds_the_settings_as_they_would_be():
    has_simulated_cupti()
    for linked in (False, True):
        for mode, wanted in (('settings', b'thread ids 0, zeroed 0'), ('own', b'thread ids 1, zeroed 0')):
            command = [client(linked), 'late', 'register', 'stay', mode]
            plain = untraced(command)
            check(wanted in plain.stdout, 'without us', plain)
            forget_run()
            same_output(plain, traced(command))


def test_other_profilers_variable():
    has_simulated_cupti()
    forget_run()
    run = traced([program('drv_linked')], {'CUDA_INJECTION64_PATH': '/opt/other/libother.so'})
    check_states(run, 'yielded')
    check_equal(len(records(run, 'DeviceKernel')), 0, 'device records')
    check_equal(len(records(run, 'KernelLaunch')), 21, 'launches')


main(together=True)
