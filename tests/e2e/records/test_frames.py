# meson: timeout=400
# What passes through the frame of an intercepted call: cancellation, exceptions, longjmp, pthread_exit; a signal handler that forks in
# the middle of the hook. The driver is one of our own that calls the program back out of cuStreamSynchronize, so that it is deterministic.
from against_truth import *

DRIVER = r'''
#define _GNU_SOURCE
#include <unistd.h>
#define cuStreamSynchronize plain_stream_synchronize
#include "bench/noop_cuda.c"
#undef cuStreamSynchronize
API void (*callback)(long);
API volatile long spins;
// The stream's handle says what is done: 1 blocks in a cancellation point, 2 spins, others call the program back.
API CUresult cuStreamSynchronize(CUstream stream) {
  const long what = (long)stream;
  if (what == 1) for (;;) pause();
  if (what == 2) for (;;) ++spins;
  if (callback) callback(what);
  return CUDA_SUCCESS;
}
'''

COMMON = r'''
#include <cuda.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <stdexcept>
extern "C" void (*callback)(long);
extern "C" volatile long spins;
static CUfunction function;
static CUcontext context;
static void begin() {
  CUdevice device; CUmodule module;
  if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) || cuCtxSetCurrent(context) ||
      cuModuleLoadData(&module, "x") || cuModuleGetFunction(&function, module, "kernel_07")) exit(70);
}
static void launch(unsigned grid) { cuLaunchKernel(function, grid, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr); }
static void wait_for(long what) { cuStreamSynchronize((CUstream)what); }
'''

THROWING = COMMON + r'''
static jmp_buf out;
static void back(long what) {
  launch(1000 + static_cast<unsigned>(what));
  if (what == 10) throw std::runtime_error("thrown");
  if (what == 11) longjmp(out, 1);
  if (what == 12) wait_for(10);    // two frames of ours
  if (what == 13) wait_for(11);
}
int main() {
  begin();
  callback = back;
  long caught = 0, jumped = 0;
  for (int round = 0; round < 500; ++round) {
    for (long what : {10L, 12L}) {
      launch(1);
      try { wait_for(what); } catch (const std::runtime_error& error) { ++caught; }
      launch(2);
    }
    for (long what : {11L, 13L}) {
      launch(3);
      if (setjmp(out) == 0) wait_for(what); else ++jumped;
      launch(4);
    }
    wait_for(20);
  }
  printf("caught %ld jumped %ld\n", caught, jumped);
  return 5;
}
'''

CANCELLED = COMMON + r'''
static volatile int ready;
static void* blocked(void* how) {
  const long what = (long)how;
  pthread_setcanceltype(what == 2 ? PTHREAD_CANCEL_ASYNCHRONOUS : PTHREAD_CANCEL_DEFERRED, nullptr);
  launch(10);
  ready = 1;
  wait_for(what);
  return nullptr;
}
static void leave(long what) { if (what == 30) pthread_exit((void*)77); }
static void* works(void*) { for (int i = 0; i < 5; ++i) launch(20); return nullptr; }
// Launches, and is cancelled anywhere: in the driver, in the hook, between them.
static volatile long launched;
static void* launches(void*) {
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
  for (int i = 0; i < 4000; ++i) { launch(40); ++launched; }
  for (;;) pause();
}
int main() {
  begin();
  callback = leave;
  long cancelled = 0, left = 0;
  for (int round = 0; round < 100; ++round) {
    for (long what : {1L, 2L, 30L}) {
      pthread_t thread; void* result;
      ready = 0;
      pthread_create(&thread, nullptr, blocked, (void*)what);
      while (!ready) sched_yield();
      if (what != 30) { usleep(300); pthread_cancel(thread); }
      pthread_join(thread, &result);
      cancelled += result == PTHREAD_CANCELED;
      left += result == (void*)77;
      pthread_create(&thread, nullptr, works, nullptr);
      pthread_join(thread, nullptr);
    }
    launch(1);
  }
  long at_random = 0;
  for (int round = 0; round < 60; ++round) {
    pthread_t thread; void* result;
    const long before = launched;
    pthread_create(&thread, nullptr, launches, nullptr);
    while (launched < before + 10) {}
    pthread_cancel(thread);
    pthread_join(thread, &result);
    at_random += result == PTHREAD_CANCELED;
    launch(2);
  }
  printf("cancelled %ld left %ld at random %ld\n", cancelled, left, at_random);
  FILE* file = fopen(getenv("COUNT"), "w");
  fprintf(file, "%ld\n", launched);
  fclose(file);
  return 6;
}
'''


def prepare(name, program_text):
    """(command, environment) of a program on the driver above."""
    folder = scratch('driver')
    if not os.path.isdir(folder):
        driver = compiled('driver.c', DRIVER, '-shared', '-fPIC', '-fexceptions', '-I' + SOURCE, '-Wl,-soname,libcuda.so.1')
        os.makedirs(folder)
        os.rename(driver, os.path.join(folder, 'libcuda.so.1'))
    command = [compiled(name, program_text, os.path.join(folder, 'libcuda.so.1'), '-lstdc++', '-lpthread')]
    return command, {'LD_LIBRARY_PATH': folder, 'SIMGPU_TRUTH': None, 'COUNT': scratch('count')}


def grids(run):
    return collections.Counter(record['grid_x'] for record in records(run, 'KernelLaunch'))


def check_nothing_in_flight(run):
    notes = [row['text'] for row in rows(run, 'quality-notes') if 'in flight' in row['text'] or 'had not returned' in row['text']]
    check_equal(notes, [], 'no call is said to be open at the end')


def test_exceptions_and_longjmp():
    command, env = prepare('throwing.cpp', THROWING)
    run = traced(command, env)
    same_output(untraced(command, env), run)
    check_equal((run.returncode, run.stdout), (5, b'caught 1000 jumped 1000\n'), 'what the program did')
    wanted = {1: 1000, 2: 1000, 3: 1000, 4: 1000, 1010: 1000, 1011: 1000, 1012: 500, 1013: 500, 1020: 500}
    check_equal(dict(grids(run)), wanted, 'every launch, once')
    _, _, dropped = check_conservation(run)
    check_equal(dropped, 0, 'dropped')
    # Of the synchronizations only those that returned have a record.
    check_equal(len(records(run, 'Sync')), 500, 'synchronizations that returned')
    check_nothing_in_flight(run)


def test_cancellation_and_thread_exit():
    command, env = prepare('cancelled.cpp', CANCELLED)
    plain = untraced(command, env)
    run = traced(command, env)
    same_output(plain, run)
    check_equal((run.returncode, run.stdout), (6, b'cancelled 200 left 100 at random 60\n'), 'what the program did')
    with open(scratch('count'), encoding='ascii') as file:
        launched = int(file.read())
    got = grids(run)
    check_equal({grid: got[grid] for grid in (1, 2, 10, 20)}, {1: 100, 2: 60, 10: 300, 20: 1500}, 'launches around')
    # Each of those threads may have been in the middle of a record.
    _, _, dropped = check_conservation(run)
    check(dropped <= 60, 'dropped', dropped)
    # A launch that was cancelled after its call and before the counter, or before its record: one each way per thread.
    check(launched - 60 <= got[40] <= launched + 60, 'launches of the threads that were cancelled at random', launched, got[40])


FORKING = r'''
#define _GNU_SOURCE
#include <cuda.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
static CUfunction function; static CUstream stream;
static volatile int is_child; static volatile long forks, bad; static long most;
static const char ptx[] = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry third() { ret; }\n";
static int stopped(void) { return is_child; }
// clone without anything: what a handler may do where fork is not safe. The child returns into whatever was interrupted.
static void on_signal(int number) {
  (void)number;
  if (is_child || forks >= most) return;
  const int saved = errno;
  const long pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
  if (pid == 0) { is_child = 1; }
  else if (pid > 0) { int status; ++forks; while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {} if (!WIFEXITED(status) || WEXITSTATUS(status) != 9) ++bad; }
  errno = saved;
}
int main(int argc, char** argv) {
  CUdevice device; CUcontext context; CUmodule module; long launches = 0, failed = 0;
  most = argc > 1 ? atol(argv[1]) : 200;
  if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) || cuCtxSetCurrent(context) ||
      cuModuleLoadData(&module, ptx) || cuModuleGetFunction(&function, module, "third") || cuStreamCreate(&stream, 1)) return 70;
  struct sigaction action; memset(&action, 0, sizeof action); action.sa_handler = on_signal; sigaction(SIGALRM, &action, 0);
  const struct itimerval every = {{0, 1000}, {0, 1000}}; setitimer(ITIMER_REAL, &every, 0);
  while (forks < most && !stopped()) {
    for (int i = 0; i < 200 && !stopped(); ++i) { if (cuLaunchKernel(function, 1 + launches % 7, 1, 1, 32, 1, 1, 0, stream, 0, 0)) ++failed; ++launches; }
    if (!stopped()) cuStreamSynchronize(stream);
  }
  if (is_child) {  // calls of a child after the fork: refused by the driver, or not
    for (int i = 0; i < 20; ++i) cuLaunchKernel(function, 99, 1, 1, 32, 1, 1, 0, stream, 0, 0);
    _exit(9);
  }
  const struct itimerval never = {{0, 0}, {0, 0}}; setitimer(ITIMER_REAL, &never, 0);
  FILE* file = fopen(getenv("COUNT"), "w"); fprintf(file, "%ld\n", launches); fclose(file);
  printf("bad %ld failed %ld\n", bad, failed);
  return 4;
}
'''


def test_a_signal_handler_that_forks_in_the_hook():
    # Each child makes a session of its own, whose memory is reserved at once: that is where the time goes.
    forks, buffer, timeout = (10000, '16M', 3600) if FULL else (100, '64M', 600)
    command = [compiled('forking.c', FORKING, '-lcuda'), str(forks)]
    env = {'SIMGPU_CALL_TIME': '0', 'COUNT': scratch('count'), 'GPUTRACE_BUFFER': buffer}
    plain = untraced(command, env, timeout=timeout)
    check_equal((plain.returncode, plain.stdout), (4, b'bad 0 failed 0\n'), 'without us')
    run = traced(command, {**env, 'SIMGPU_TRUTH': None}, timeout=timeout)
    same_output(plain, run)
    with open(scratch('count'), encoding='ascii') as file:
        launched = int(file.read())
    parents = [path for path in run.traces if any(r['grid_x'] != 99 for r in records(path, 'KernelLaunch'))]
    parent = max(run.traces, key=lambda path: metrics(path)['launches'] or 0)
    said = report(parent, 'overview', 'quality')
    dropped = said['coverage']['dropped']
    rows_of_parent = records(parent, 'KernelLaunch')
    check_equal(len(rows_of_parent) + dropped, launched, f'launches of the parent, {dropped} dropped, in {len(parents)} traces')
    check_equal([r for r in rows_of_parent if r['grid_x'] == 99 or r['result']][:3], [], 'nothing of a child in the parent\'s trace')
    stamps = [(r['begin_ns'], r['end_ns']) for r in rows_of_parent]
    check(all(begin <= end for begin, end in stamps) and all(a[1] <= b[0] for a, b in zip(stamps, stamps[1:])), 'no launch has been overwritten by a child')
    if not dropped:
        check_equal([r['grid_x'] for r in rows_of_parent], [1 + n % 7 for n in range(launched)], 'each launch is what it was, in order')


SIGNALS = r'''
#define _GNU_SOURCE
#include <cuda.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static volatile long counts[65], elsewhere; static pid_t self;
static void on_signal(int number) { ++counts[number]; if (gettid() != self) ++elsewhere; }
int main(void) {
  CUdevice device; CUcontext context; CUmodule module; CUfunction function; CUstream stream; long interrupted = 0, installed = 0, refused = 0;
  self = gettid();
  struct sigaction action; memset(&action, 0, sizeof action); action.sa_handler = on_signal;
  for (int n = 1; n <= 64; ++n) installed += n != SIGKILL && n != SIGSTOP && sigaction(n, &action, 0) == 0;
  if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) || cuCtxSetCurrent(context) ||
      cuModuleLoadData(&module, ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry third() { ret; }\n") ||
      cuModuleGetFunction(&function, module, "third") || cuStreamCreate(&stream, 1)) return 70;
  for (int i = 0; i < 2000; ++i) refused += cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, 0, 0) != CUDA_SUCCESS;
  cuStreamSynchronize(stream);
  const struct timespec nap = {0, 2000000};
  for (int i = 0; i < 50; ++i) interrupted += nanosleep(&nap, 0) != 0;
  long uncalled = 0;
  for (int n = 1; n <= 64; ++n) uncalled += counts[n];
  // Blocked here: a thread that did not block them would run the handler now.
  sigset_t all, before; sigfillset(&all); sigprocmask(SIG_BLOCK, &all, &before);
  for (int n = 1; n <= 64; ++n) if (n != SIGKILL && n != SIGSTOP && n != 32 && n != 33) kill(getpid(), n);
  for (int i = 0; i < 20; ++i) { nanosleep(&nap, 0); cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, 0, 0); }
  long early = 0, late = 0;
  for (int n = 1; n <= 64; ++n) early += counts[n];
  sigprocmask(SIG_SETMASK, &before, 0);
  for (int n = 1; n <= 64; ++n) late += counts[n];
  printf("installed %ld refused %ld interrupted %ld uncalled %ld early %ld late %ld elsewhere %ld\n", installed, refused, interrupted, uncalled, early, late, elsewhere);
  return 3;
}
'''


def test_all_signals_are_the_programs():
    command = [compiled('signals.c', SIGNALS, '-lcuda')]
    plain, run = untraced(command), traced(command)
    same_output(plain, run)
    # 59: of SIGCONT and the stop signals, the later ones take SIGCONT back.
    check(plain.stdout.endswith(b'refused 0 interrupted 0 uncalled 0 early 0 late 59 elsewhere 0\n'), 'what the program saw', plain.stdout)
    check_equal(metrics(run)['launches'], 2020, 'launches')


ALLOCATOR = r'''
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
extern void* __libc_malloc(size_t); extern void* __libc_calloc(size_t, size_t); extern void* __libc_realloc(void*, size_t);
static long fail_at = -1, count;
// FAIL_AT=N: the N-th allocation of the process gives NULL. Before the environment is there, none fails.
static int fails(void) {
  if (fail_at < 0) {
    if (!environ) return 0;
    fail_at = 0;
    for (char** e = environ; *e; ++e) if (!strncmp(*e, "FAIL_AT=", 8)) fail_at = atol(*e + 8);
  }
  if (++count != fail_at) return 0;
  errno = ENOMEM;
  return 1;
}
void* malloc(size_t n) { return fails() ? 0 : __libc_malloc(n); }
void* calloc(size_t n, size_t m) { return fails() ? 0 : __libc_calloc(n, m); }
void* realloc(void* p, size_t n) { return fails() ? 0 : __libc_realloc(p, n); }
__attribute__((destructor)) static void tell(void) {
  const char* path = 0;
  for (char** e = environ; *e; ++e) if (!strncmp(*e, "ALLOCATIONS=", 12)) path = *e + 12;
  if (!path) return;
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  char text[24]; int n = 0; long c = count;
  do text[n++] = (char)('0' + c % 10); while (c /= 10);
  for (int i = 0; i < n / 2; ++i) { char t = text[i]; text[i] = text[n - 1 - i]; text[n - 1 - i] = t; }
  (void)!write(fd, text, (size_t)n); close(fd);
}
'''


def test_the_nth_allocation_fails():
    """The library allocates nothing of the program's heap, so every allocation is the program's own, and what it does when one fails
    is the same with us."""
    allocator, command = compiled('allocator.c', ALLOCATOR, '-shared', '-fPIC', '-ldl'), [program('drv_linked'), 'count=1', 'exit=3']
    env = {'SIMGPU_TRUTH': None, 'GPUTRACE_COLLECT': 'api,nvtx', 'ALLOCATIONS': scratch('allocations')}

    def once(preload, fail_at, mode):
        done = finish(start(command, environment(**{**env, 'LD_PRELOAD': preload, 'FAIL_AT': fail_at, 'GPUTRACE_OUTPUT': scratch(f'{mode}{fail_at}')})), 60)
        left = wait_for_orphans()
        check(not left, f'nothing is left, allocation {fail_at}', left)
        return done

    def allocations():
        with open(scratch('allocations'), encoding='ascii') as file:
            return int(file.read())
    both = f'{allocator}:{places.library}'
    check_equal(once(allocator, 0, 'plain')[0], 3, 'exit code')
    alone = allocations()
    check_equal(once(both, 0, 'traced')[0], 3, 'exit code')
    # The loader's own, for one library more, come before the program.
    check(allocations() - alone in range(0, 3), 'allocations in the program that are ours', alone, allocations())
    last = allocations()
    step = 1 if FULL else max(1, last // 40)
    failed = 0
    for n in range(1, last + 2, step):
        plain = once(allocator, max(1, n - (last - alone)), 'plain')
        ours = once(both, n, 'traced')
        check_equal(ours, plain, f'what allocation {n} of {last} means')
        failed += ours[0] != 3
    check(failed > 0, 'some of them matter', failed, last)


if __name__ == '__main__':
    main()
