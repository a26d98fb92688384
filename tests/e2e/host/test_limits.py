# meson: serial timeout=240
# A program under a limit of memory, of its stack, of threads: what lives without us lives with us, and what is not traced says why.
from small_programs import *

# A driver of two functions: the simulated one reserves more addresses than such limits allow.
DRIVER = r'''
int cuInit(unsigned flags) { return (int)flags; }
int cuDriverGetVersion(int* version) { *version = 13000; return 0; }
'''
# Sets a limit (what, MiB), makes its first CUDA calls, and says how much it can still have, of memory that is mapped and touched.
HOG = r'''
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
int cuInit(unsigned); int cuDriverGetVersion(int*);
int main(int argc, char** argv) {
  int what = !strcmp(argv[1], "as") ? RLIMIT_AS : RLIMIT_DATA, version = 0;
  struct rlimit limit = {strtoul(argv[2], 0, 10) << 20, strtoul(argv[2], 0, 10) << 20};
  if (setrlimit(what, &limit)) return 3;
  if (cuInit(0) || cuDriverGetVersion(&version)) return 4;
  unsigned long had = 0;
  for (void* piece; (piece = mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) != MAP_FAILED; had += 65536) *(char*)piece = 1;
  FILE* out = fopen(argv[3], "w");
  if (!out) return 5;
  fprintf(out, "%lu", had);
  fclose(out);
  return cuInit(0);
}
'''


def hog():
    os.rename(compiled('driver.c', DRIVER, '-shared', '-fPIC', '-Wl,-soname,libcuda.so.1'), scratch('libcuda.so.1'))
    return compiled('hog.c', HOG, scratch('libcuda.so.1'))


def can_have(program_, what, mebibytes, **env):
    variables = environment(**{'LD_LIBRARY_PATH': scratch(), 'LD_PRELOAD': places.library, 'GPUTRACE_OUTPUT': scratch('t'), **env})
    code, out, err = finish(start([program_, what, str(mebibytes), scratch('had')], variables))
    check_equal((code, out, err), (0, b'', b''), f'{what} {mebibytes} MiB {env}: the program ends as it does without us')
    wait_for_orphans()
    with open(scratch('had'), encoding='ascii') as file:
        return int(file.read())


def test_memory_limits():
    program_ = hog()
    for what in ('as', 'data'):
        for mebibytes, is_traced in ((64, False), (96, False), (200, False), (400, True), (1000, True), (3000, True)):
            without = can_have(program_, what, mebibytes, GPUTRACE='0')
            with_us = can_have(program_, what, mebibytes)
            held = without - with_us
            check(held <= (mebibytes << 20) // 100, f'{what} {mebibytes} MiB: at most 1 % of the limit is ours', held)
            traces = glob.glob(scratch('t', '*.gtrace'))
            check_equal(bool(traces), is_traced, f'{what} {mebibytes} MiB: traced or not')
            if is_traced:
                calls = {row['call']: row['calls'] for row in rows(scratch('t'), 'api')}
                check_equal(calls, {'cuInit': 2}, f'{what} {mebibytes} MiB: every call')
                said = json.dumps(report(scratch('t'))['coverage']['not_collected'])
                check('leaves too little room for it' in said, 'what there was no room for', said)
            else:
                with open(scratch('t', 'untraced'), encoding='utf-8') as file:
                    said = file.read()
                check(said.count('\n') == 1 and f'ulimit -{"v" if what == "as" else "d"}' in said and 'too little' in said, 'the reason', said)
            shutil.rmtree(scratch('t'))


# All that it will ever map is locked, and little may be.
LOCKED = r'''
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
int cuInit(unsigned); int cuDriverGetVersion(int*);
int main(void) {
  struct rlimit limit = {8 << 20, 8 << 20};
  int version = 0;
  unsigned long had = 0;
  void* volatile first = malloc(1);  // the heap's first piece
  free(first);
  if (setrlimit(RLIMIT_MEMLOCK, &limit) || mlockall(MCL_FUTURE)) return 3;
  if (cuInit(0) || cuDriverGetVersion(&version)) return 4;
  while (mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED) had += 65536;
  printf("%lu\n", had);
  return cuInit(0);
}
'''


def test_a_limit_on_locked_memory():
    without_capability = ['setpriv', '--bounding-set=-ipc_lock'] if os.geteuid() == 0 else []
    if without_capability and not shutil.which('setpriv'):
        skip('no setpriv')
    hog()
    command = [*without_capability, compiled('locked.c', LOCKED, scratch('libcuda.so.1'))]
    env = {'LD_LIBRARY_PATH': scratch(), 'SIMGPU_TRUTH': None}
    plain = untraced(command, env)
    check(plain.returncode == 0 and int(plain.stdout) >= 7 << 20, 'without us', plain.returncode, plain.stdout, plain.stderr)
    run = traced(command, env)
    check_equal((run.returncode, run.stderr), (0, b''), 'its end')
    check(int(plain.stdout) - int(run.stdout) <= (8 << 20) // 100, 'at most 1 % of the limit is ours', plain.stdout, run.stdout)
    with open(os.path.join(run.output, 'untraced'), encoding='utf-8') as file:
        said = file.read()
    check(said.count('\n') == 1 and 'ulimit -l' in said and 'too little' in said, 'the reason', said)


def test_no_limit_no_word():
    run = traced([program('drv_linked')])
    check('too little room' not in json.dumps(report(run)['coverage']['not_collected']), 'nothing was left out')


# A hundred threads make calls; then one of them executes the next image, three times in all.
MANY = CUDA + r'''
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static pthread_barrier_t ready;
static CUfunction kernel;
static CUcontext shared;
static char buffer_of_thread[100][24576];
static void* work(void* data) {
  if (cuCtxSetCurrent(shared)) _exit(75);
  for (int i = 0; i < 20; ++i) if (cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, 0, 0, 0)) _exit(76);
  pthread_barrier_wait(&ready);
  for (;;) pause();
}
int main(int argc, char** argv) {
  CUdevice device; CUmodule module;
  int left = atoi(argv[1]);
  if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&shared, device) || cuCtxSetCurrent(shared) ||
      cuModuleLoadData(&module, ptx) || cuModuleGetFunction(&kernel, module, "third")) return 70;
  pthread_barrier_init(&ready, 0, 101);
  for (int i = 0; i < 100; ++i) {
    pthread_t thread; pthread_attr_t how;
    pthread_attr_init(&how);
    pthread_attr_setstack(&how, (void*)(((unsigned long)buffer_of_thread[i] + 63) & ~63ul), 24000 & ~63);
    if (pthread_create(&thread, &how, work, 0)) return 74;
  }
  pthread_barrier_wait(&ready);
  if (!left) { usleep(1200000); return 9; }
  char next[8];
  snprintf(next, sizeof next, "%d", left - 1);
  usleep(1200000);
  execl("/proc/self/exe", argv[0], next, (char*)0);
  return 73;
}
'''


def test_exec_of_a_hundred_threads_at_the_same_addresses_on_a_small_stack():
    binary = compiled('many.c', MANY, '-lpthread', '-lcuda')
    limited = ['setarch', '-R', 'bash', '-c', 'ulimit -s 16; exec "$0" "$@"', binary, '2']
    run = traced(limited, {'SIMGPU_TRUTH': None, 'GPUTRACE_COLLECT': 'api'}, wait=False)
    check_equal((run.returncode, run.stdout), (9, b''), f'it ends as it does ({run.stderr!r})')
    check(not wait_for_orphans(10), 'all sidecars end')
    traces = run.traces
    check_equal(len(traces), 3, 'a trace for each image')
    ends = [rows(trace, 'run')[0]['end_reason'] for trace in traces]
    check_equal(sorted(ends), ['exec', 'exec', 'exited 9'] if 'exited 9' in ends else ['exec', 'exec', 'exited, code not known'], 'how each ended')
    for trace in traces:
        check_equal(metrics(trace)['launches'], 2000, 'launches of each')
        check_conservation(Run(run.command, 0, b'', b'', 0, os.path.dirname(trace)))


main()
