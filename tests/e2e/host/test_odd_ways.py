# meson: timeout=240
# Programs that leave a CUDA call, a thread, a process or a file system in ways of their own: coroutines, cancelled threads, handlers that jump out of a
# call, processes that share their memory, limits that fall in mid-run.
from small_programs import *

OPEN = CUDA + r'''
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
static CUfunction third;
static int open_device(void) {
  CUdevice device; CUcontext context; CUmodule module;
  return cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) || cuCtxSetCurrent(context) ||
         cuModuleLoadData(&module, ptx) || cuModuleGetFunction(&third, module, "third");
}
static int once(void) { return cuLaunchKernel(third, 1, 1, 1, 32, 1, 1, 0, 0, 0, 0) != 0; }
'''


def odd(name, body, launches, wanted=b'', env=None, truth=True, before=()):
    """A program that ends with 0, prints `wanted`, and launches so often: the same with us and without us, each launch stored."""
    command = [*before, compiled(name + '.c', '#define _GNU_SOURCE\n' + OPEN + body, '-lcuda', '-lpthread')]
    plain, run = both(command, {**(env or {}), **({} if truth else {'SIMGPU_TRUTH': None})})
    check_equal((run.returncode, run.stdout), (0, wanted), 'ends as it should')
    check_equal(check_launches_against_truth(run) if truth else metrics(run)['launches'], launches, 'launches')
    check_conservation(run)
    return run


def test_coroutines_that_go_on_on_another_thread():
    # Each launch of a coroutine is on the thread that resumed it, with a stack of its own of 16 KiB.
    odd('coroutines', r'''
#define TASKS 8
static ucontext_t tasks[TASKS], *volatile home[TASKS];
static char stacks[TASKS][32768];
static volatile int bad;
static void task(int self) { for (;;) { bad |= once(); swapcontext(&tasks[self], home[self]); } }
static void* turn(void* shift) {
  CUdevice device; CUcontext context;
  ucontext_t here;
  bad |= cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) || cuCtxSetCurrent(context);
  for (int i = 0; i < TASKS; ++i) {
    home[i] = &here;
    swapcontext(&here, &tasks[i]);
  }
  return shift;
}
int main(void) {
  if (open_device()) return 70;
  for (int i = 0; i < TASKS; ++i) {
    getcontext(&tasks[i]);
    tasks[i].uc_stack.ss_sp = stacks[i]; tasks[i].uc_stack.ss_size = sizeof stacks[i];
    makecontext(&tasks[i], (void (*)(void))task, 1, i);
  }
  for (int round = 0; round < 10; ++round) {
    pthread_t thread;
    pthread_create(&thread, 0, turn, 0);
    pthread_join(thread, 0);
  }
  turn(0);
  printf("%d\n", bad);
  return 0;
}
''', 88, b'0\n')


def test_threads_that_are_cancelled_between_calls():
    # Deferred cancellation: the threads unwind out of a loop of calls, two hundred of them, none of which leaves it in another
    # way. (Without the simulator's truth: it writes, and would be unwound there.)
    odd('cancelled', r'''
static void* work(void* until) {
  for (;;) { if (cuEventQuery(0) == CUDA_SUCCESS) return until; pthread_testcancel(); }
}
int main(void) {
  if (open_device()) return 70;
  for (int i = 0; i < 200; ++i) {
    pthread_t thread;
    void* end = 0;
    pthread_create(&thread, 0, work, 0);
    usleep(200 + i * 7);
    pthread_cancel(thread);
    pthread_join(thread, &end);
    if (end != PTHREAD_CANCELED) return 71;
    if (i % 10 == 0 && once()) return 72;
  }
  puts("all cancelled");
  return 0;
}
''', 20, b'all cancelled\n', env={'SIMGPU_CALL_TIME': '20us'}, truth=False)


def test_a_first_call_with_a_cancellation_pending():
    # Whatever our start does on that thread is no place at which it may be cancelled.
    odd('pending', r'''
static volatile int began;
static void* work(void* until) {
  pthread_cancel(pthread_self());
  if (open_device() || once() || cuCtxSynchronize()) return until;
  began = 1;
  pthread_testcancel();
  return until;
}
int main(void) {
  pthread_t thread;
  void* end = 0;
  pthread_create(&thread, 0, work, 0);
  pthread_join(thread, &end);
  printf("%d %d\n", began, end == PTHREAD_CANCELED);
  return 0;
}
''', 1, b'1 1\n', truth=False)


def test_a_handler_that_jumps_out_of_a_call():
    # SIGSEGV on an alternate stack, in the program's own host function and in arguments that the driver reads; the handler leaves by siglongjmp.
    odd('jumps', r'''
static sigjmp_buf back;
static volatile int jumps;
static void on_fault(int number) { (void)number; ++jumps; siglongjmp(back, 1); }
int main(void) {
  static char alternate[65536];
  stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_fault; action.sa_flags = SA_ONSTACK;
  if (open_device()) return 70;
  sigaltstack(&stack, 0);
  sigaction(SIGSEGV, &action, 0);
  for (int i = 0; i < 40; ++i) {
    if (sigsetjmp(back, 1) == 0) cuModuleGetFunction((CUfunction*)8, (CUmodule)0, (const char*)(unsigned long)(16 + i));
    if (once()) return 71;
    if (sigsetjmp(back, 1) == 0) { CUdevice* nowhere = (CUdevice*)24; cuDeviceGet(nowhere, 0); }
    if (once()) return 72;
  }
  printf("%d\n", jumps > 0);
  return 0;
}
''', 80, b'1\n')


def test_descriptors_closed_in_mid_run():
    odd('closes', r'''
int main(void) {
  if (open_device()) return 70;
  for (int i = 0; i < 50; ++i) if (once()) return 71;
  if (syscall(SYS_close_range, 3, ~0u, 0)) return 72;
  int own[8];
  for (int i = 0; i < 8; ++i) { own[i] = open("/dev/null", O_RDWR); if (own[i] != 3 + i) return 73; }
  for (int i = 0; i < 50; ++i) if (once()) return 74;
  struct rlimit few = {11, 11};
  if (setrlimit(RLIMIT_NOFILE, &few)) return 75;
  for (int i = 0; i < 50; ++i) if (once()) return 76;
  for (int i = 0; i < 8; ++i) { struct stat what; if (fstat(own[i], &what) || !S_ISCHR(what.st_mode)) return 77; }
  puts("done");
  return 0;
}
''', 150, b'done\n')


NO_DESCRIPTOR_LEFT = r'''
int main(int count, char** words) {
  struct rlimit few = {64, 64};
  (void)count;
  if (setrlimit(RLIMIT_NOFILE, &few)) return 75;
  while (open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0) {}
  for (int i = 0; i < atoi(words[1]); ++i) close(63 - i);
  if (open_device()) return 70;
  for (int i = 0; i < 5; ++i) if (once()) return 71;
  puts("done");
  return 0;
}
'''


def test_no_descriptor_left_at_the_first_call():
    # The ring needs one: without it nothing is traced, and the line that says so is written by a process of ours, which has all of them.
    path = compiled('no_descriptor_left.c', '#define _GNU_SOURCE\n' + OPEN + NO_DESCRIPTOR_LEFT, '-lcuda', '-lpthread')
    for left in (1, 2, 3, 0):
        forget_run()
        plain, run = both([path, str(left)], {'SIMGPU_TRUTH': None})
        check_equal((run.returncode, run.stdout), (0, b'done\n'), f'ends as it should with {left} left')
        if left:
            check_equal(metrics(run)['launches'], 5, f'launches with {left} left')
            check_conservation(run)
    check_equal(run.traces, [], 'traces with none left')
    with open(os.path.join(run.output, 'untraced'), encoding='utf-8') as file:
        check('no more open files are allowed' in file.read(), 'the reason is said')


FEW_DESCRIPTORS = r'''
#include <linux/capability.h>
int main(int count, char** words) {
  struct rlimit five = {5, strtol(words[1], 0, 10)};
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct data[2];
  (void)count;
  if (syscall(SYS_capget, &header, data)) return 74;
  if (atoi(words[2])) data[0].effective &= ~(1u << CAP_SYS_RESOURCE), data[0].permitted &= ~(1u << CAP_SYS_RESOURCE);
  if (syscall(SYS_capset, &header, data) || setrlimit(RLIMIT_NOFILE, &five)) return 75;
  if (open_device()) return 70;
  for (int i = 0; i < 5; ++i) if (once()) return 71;
  struct rlimit now;
  if (getrlimit(RLIMIT_NOFILE, &now) || now.rlim_cur != 5 || now.rlim_max != five.rlim_max) return 76;
  puts("done");
  return 0;
}
'''


def test_a_limit_of_five_descriptors():
    # The sidecar needs more than the program may have: it takes them where it may, for itself alone. Where it may not, the line says so.
    path = compiled('few_descriptors.c', '#define _GNU_SOURCE\n' + OPEN + FEW_DESCRIPTORS, '-lcuda', '-lpthread')
    for hard, drop in ((1024, 1), (5, 1)):
        forget_run()
        plain, run = both([path, str(hard), str(drop)], {'SIMGPU_TRUTH': None, 'GPUTRACE_COLLECT': 'api'})
        check_equal((run.returncode, run.stdout), (0, b'done\n'), f'ends as it should below {hard}')
        if hard == 1024:
            check_equal(metrics(run)['launches'], 5, 'launches: the hard limit leaves room')
    check_equal(run.traces, [], 'traces where there is no room')
    with open(os.path.join(run.output, 'untraced'), encoding='utf-8') as file:
        line = file.read()
    check('no more open files are allowed' in line and 'ulimit -n' in line and line.count('\n') == 1, 'the reason and the way out are said', line)


def test_a_process_that_shares_the_memory():
    # clone(CLONE_VM) without CLONE_THREAD: another process, the same memory and the same thread-local words. It makes no CUDA call, then it makes one,
    # which is stored as its parent's, whose words it uses.
    odd('shares', r'''
static int child(void* calls) { return *(int*)calls ? once() : 0; }
int main(void) {
  static char stack[262144] __attribute__((aligned(64)));
  if (open_device()) return 70;
  for (int calls = 0; calls < 2; ++calls)
    for (int i = 0; i < 10; ++i) {
      int status = -1;
      const int pid = clone(child, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, &calls);
      if (pid < 0 || waitpid(pid, &status, 0) != pid || status) return 71;
      if (once()) return 72;
    }
  puts("done");
  return 0;
}
''', 30, b'done\n', truth=False)


def test_vfork_then_exec_of_a_cuda_program():
    # A chain: each one starts the next by vfork and exec, the last by posix_spawn with file actions that close what is ours.
    command = [compiled('chain.c', '#define _GNU_SOURCE\n' + OPEN + r'''
extern char** environ;
int main(int count, char** words) {
  const int left = count > 1 ? atoi(words[1]) : 4;
  int status = 0;
  pid_t pid = -1;
  char next[16];
  char* const arguments[] = {words[0], next, 0};
  if (open_device() || once()) return 70;
  snprintf(next, sizeof next, "%d", left - 1);
  if (left > 1) {
    pid = vfork();
    if (pid == 0) { execv(words[0], arguments); _exit(71); }
  } else if (left == 1) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    for (int fd = 3; fd < 1100; ++fd) posix_spawn_file_actions_addclose(&actions, fd);
    if (posix_spawn(&pid, words[0], &actions, 0, arguments, environ)) return 72;
  }
  if (pid > 0 && (waitpid(pid, &status, 0) != pid || status)) return 73;
  if (once()) return 74;
  printf("%d\n", left);
  return 0;
}
''', '-lcuda')]
    plain, run = both(command)
    check_equal((run.returncode, run.stdout), (0, b'0\n1\n2\n3\n4\n'), 'the chain')
    check_equal(len(run.traces), 5, 'each has a trace of its own')
    check_equal(metrics(run)['launches'], 10, 'launches')
    check_conservation(run)


def test_the_file_system_goes_away():
    # chroot into an empty folder after the first calls, the working directory deleted: what is traced goes on, and a fork starts no second one there.
    if os.geteuid() != 0:
        skip('not root')
    empty = scratch('empty')
    os.mkdir(empty)
    odd('chroots', r'''
int main(void) {
  const char* empty = getenv("EMPTY");
  if (open_device()) return 70;
  for (int i = 0; i < 20; ++i) if (once()) return 71;
  if (chdir(empty) || chroot(".") || rmdir("/") == 0) return 72;
  for (int i = 0; i < 20; ++i) if (once()) return 73;
  const int pid = fork();
  if (pid == 0) _exit(5);
  int status = 0;
  if (waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != 5) return 74;
  puts("done");
  return 0;
}
''', 40, b'done\n', env={'EMPTY': empty})


def test_a_limit_set_from_outside():
    # prlimit of another process takes all descriptors, all new processes and all room in files away between two calls. (Not the simulator's truth,
    # which is a file.)
    odd('limited', r'''
int main(void) {
  if (open_device()) return 70;
  for (int i = 0; i < 20; ++i) if (once()) return 71;
  const pid_t self = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    struct rlimit none = {0, 0}, three = {3, 3};
    _exit(prlimit(self, RLIMIT_NOFILE, &three, 0) || prlimit(self, RLIMIT_NPROC, &none, 0) || prlimit(self, RLIMIT_FSIZE, &none, 0) ||
          prlimit(self, RLIMIT_MEMLOCK, &none, 0) || prlimit(self, RLIMIT_STACK, &(struct rlimit){65536, 65536}, 0));
  }
  int status = 0;
  if (waitpid(pid, &status, 0) != pid || status) return 72;
  signal(SIGXFSZ, SIG_DFL);
  for (int i = 0; i < 20; ++i) if (once()) return 73;
  puts("done");
  return 0;
}
''', 40, b'done\n', truth=False)


def test_a_clock_of_its_own():
    # A time namespace, in which CLOCK_MONOTONIC is 100,000 seconds ahead of the sidecar's and the analyzer's.
    if not shutil.which('unshare'):
        skip('no unshare')
    if subprocess.run(['unshare', '-T', '--monotonic', '100000', 'true'], capture_output=True).returncode:
        skip('no time namespaces here')
    run = odd('clock', r'''
int main(void) {
  if (open_device()) return 70;
  for (int i = 0; i < 50; ++i) if (once()) return 71;
  puts("done");
  return 0;
}
''', 50, b'done\n', before=['unshare', '-T', '--monotonic', '100000'])
    times = [record['begin_ns'] for record in records(run, 'KernelLaunch')]
    check(times == sorted(times) and times[-1] - times[0] < 60e9, 'one after the other, within a minute', times[0], times[-1])


def test_a_program_that_changes_its_name_and_drops_its_environment():
    # In mid-run; it closes its standard streams too and makes itself undumpable.
    odd('renames', r'''
#include <sys/prctl.h>
int main(void) {
  if (open_device()) return 70;
  for (int i = 0; i < 10; ++i) if (once()) return 71;
  clearenv();
  prctl(PR_SET_NAME, "\033[31m\n\"name");
  prctl(PR_SET_DUMPABLE, 0);
  setsid();
  close(0); close(2);
  for (int i = 0; i < 10; ++i) if (once()) return 72;
  puts("done");
  return 0;
}
''', 20, b'done\n')


main()
