# meson: timeout=240
# Programs that a preloaded library meets and that nobody thinks of: other C libraries, sanitizers that are not ready, small stacks, hosts that adopt
# orphans, programs that forbid themselves system calls.
from small_programs import *

def test_another_c_library():
    if not shutil.which('musl-gcc'):
        skip('musl-tools is not installed')
    text = r'''
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int main(int count, char** words) {
  void* self = dlopen(NULL, RTLD_NOW);
  printf("%d %s %s %d\n", count, words[1], getenv("GT_HERE"), dlsym(self, "printf") != NULL);
  printf("%d\n", dlsym(self, "cuInit") == NULL && dlsym(self, "no_such_name") == NULL);
  return 7;
}
'''
    plain, run = both([compiled('musl.c', text, '-rdynamic', compiler='musl-gcc'), 'word'], {'GT_HERE': 'there', 'LD_LIBRARY_PATH': None})
    check_equal((run.returncode, run.stdout), (7, b'2 word there 1\n1\n'), 'arguments, variables and look-ups')
    check(not os.path.exists(run.output), 'nothing was made')
    code, out, err = gputrace('doctor', '--', scratch('musl'), rc=None)
    check(code == 1 and 'another C library than glibc (/lib/ld-musl' in out, 'doctor says so', out)
    code, out, err = gputrace('run', '-o', scratch('none'), '--', scratch('musl'), 'word', rc=None)
    check(code == 7 and 'another C library than glibc' in err, 'run says so', err)


def sanitized(name, compiler, flag, *more):
    if not shutil.which(compiler):
        skip(f'no {compiler}')
    text = CUDA + r'''
#include <dlfcn.h>
#include <pthread.h>
static void* work(void* count) { ++*(int*)count; return 0; }
int main(void) {
  pthread_t thread; int count = 0;
  pthread_create(&thread, 0, work, &count);
  pthread_join(thread, 0);
  printf("%d %d\n", count, dlsym(RTLD_DEFAULT, "printf") != 0);
  return launch(9) ? 1 : 5;
}
'''
    try:
        return compiled(name, text, flag, '-lcuda', *more, compiler=compiler)
    except Failed as error:
        skip(f'{compiler} has no {flag}: {str(error)[:100]}')


def check_sanitized(binary, env):
    # Its runtime wants memory at fixed places.
    command = ['setarch', '-R', binary]
    plain, run = both(command, env)
    check_equal((run.returncode, run.stdout), (5, b'1 1\n'), 'runs as without us')
    check_equal(check_launches_against_truth(run), 9, 'launches')


def test_thread_sanitizer_of_gcc():
    check_sanitized(sanitized('tsan.c', 'gcc', '-fsanitize=thread'), {'TSAN_OPTIONS': 'report_bugs=0'})


def test_thread_sanitizer_of_clang():
    check_sanitized(sanitized('tsan.c', 'clang', '-fsanitize=thread'), {'TSAN_OPTIONS': 'report_bugs=0'})


def test_memory_sanitizer():
    # The driver is not instrumented: what it writes is unknown to the sanitizer.
    check_sanitized(sanitized('msan.c', 'clang', '-fsanitize=memory', '-fsanitize-recover=memory'),
                    {'MSAN_OPTIONS': 'halt_on_error=0:exit_code=0:print_stats=0:log_path=/dev/null'})


# A driver of its own: the simulated one reads variables too.
SMALL_DRIVER = 'int cuInit(unsigned flags) { return 0; }\n'


def test_variables_that_change_during_the_first_call():
    os.makedirs(scratch('driver'))
    os.rename(compiled('small.c', SMALL_DRIVER, '-shared', '-fPIC', '-Wl,-soname,libcuda.so.1'), scratch('driver', 'libcuda.so.1'))
    text = r'''
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
extern int cuInit(unsigned);
static volatile int begun, stop;
static void* change(void* unused) {
  char name[32], value[400];
  for (unsigned i = 0; !stop; ++i) {
    for (unsigned j = 0; j < 60; ++j) {
      sprintf(name, "GT_V%u", j);
      sprintf(value, "%0*u", 10 + (i + j) % 380, i);
      setenv(name, value, 1);
    }
    begun = 1;
    clearenv();
  }
  return 0;
}
int main(void) {
  int bad = 0;
  for (int i = 0; i < 60; ++i) {
    pid_t child = fork();
    if (!child) {
      pthread_t thread;
      pthread_create(&thread, 0, change, 0);
      while (!begun) { }
      int result = cuInit(0);
      stop = 1;
      pthread_join(thread, 0);
      _exit(result);
    }
    int status;
    waitpid(child, &status, 0);
    bad += status != 0;
  }
  printf("%d of 60 died\n", bad);
  return 0;
}
'''
    binary = compiled('changing.c', text, '-pthread', scratch('driver', 'libcuda.so.1'))
    # No CUPTI is to be found: one reads variables itself where it is loaded, as drivers do in cuInit.
    env = {'LD_LIBRARY_PATH': scratch('driver'), 'CUDA_HOME': None}
    check_equal(untraced([binary], env).stdout, b'0 of 60 died\n', 'without us')
    run = traced([binary], env)
    check_equal((run.returncode, run.stdout, run.stderr), (0, b'0 of 60 died\n', b''), 'with us')


def test_a_call_before_any_constructor():
    text = CUDA + r"""
static int early(void) { return launch(3) ? 9 : 0; }
static int result;
static void first(int count, char** words, char** variables) { result = early(); }
__attribute__((section(".preinit_array"), used)) static void (*const entry)(int, char**, char**) = first;
int main(void) { printf("%d\n", result); return launch(2); }
"""
    binary = compiled('preinit.c', text, '-lcuda')
    plain = untraced([binary])
    run = traced([binary], CALLS)
    same_output(plain, run)
    check_equal(metrics(run)['launches'], 5, 'launches, in the directory that the variables name')


def test_small_stacks():
    # How deep each first call goes, on a thread whose stack was painted: without us, and with us at most 6 KiB deeper.
    text = CUDA + r"""
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
enum { kSize = 1 << 20 };
static char* stack;
static CUfunction function;
static void* init(void* unused) { return cuInit(0) ? (void*)1 : 0; }
static void* load(void* unused) {
  CUdevice device; CUcontext context; CUmodule module;
  return (void*)(long)(cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) || cuCtxSetCurrent(context) ||
                       cuModuleLoadData(&module, ptx) || cuModuleGetFunction(&function, module, "third"));
}
static void* work(void* unused) {
  CUdevice device; CUcontext context;
  return (void*)(long)(cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) || cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, 0, 0, 0));
}
static void depth(const char* name, void* (*call)(void*)) {
  pthread_attr_t attributes; pthread_t thread; void* bad = 0;
  memset(stack, 0x5a, kSize);
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack, kSize);
  pthread_create(&thread, &attributes, call, 0);
  pthread_join(thread, &bad);
  int free = 0;
  while (stack[free] == 0x5a) ++free;
  printf("%s %d %d\n", name, (int)(long)bad, kSize - free);
}
int main(void) {
  stack = aligned_alloc(4096, kSize);
  depth("init", init);
  depth("load", load);
  depth("launch", work);
  return 0;
}
"""
    command = [compiled('depth.c', text, '-lcuda', '-pthread')]
    def depths(done):
        check_equal((done.returncode, done.stderr), (0, b''), 'it runs')
        lines = [line.split() for line in done.stdout.decode().splitlines()]
        check_equal([line[1] for line in lines], ['0'] * 3, 'all calls succeed')
        return {name: int(depth) for name, _, depth in lines}
    env = {'LD_BIND_NOW': '1'}  # what binding a function takes is nobody's
    plain, with_us = depths(untraced(command, env)), depths(traced(command, env))
    more = {name: with_us[name] - plain[name] for name in plain}
    check(max(more.values()) <= 6144, 'bytes of stack that we need more', (plain, with_us))


def test_first_call_on_the_smallest_stacks():
    os.makedirs(scratch('driver'))
    os.rename(compiled('small.c', SMALL_DRIVER, '-shared', '-fPIC', '-Wl,-soname,libcuda.so.1'), scratch('driver', 'libcuda.so.1'))
    text = r"""
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
extern int cuInit(unsigned);
static int result = 9;
static void handler(int number) { result = cuInit(0); }
static void* work(void* unused) { result = cuInit(0); return 0; }
int main(int count, char** words) {
  if (words[1][0] == 't') {
    pthread_attr_t attributes; pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 16384);
    pthread_attr_setguardsize(&attributes, 65536);
    pthread_create(&thread, &attributes, work, 0);
    pthread_join(thread, 0);
  } else {
    stack_t stack = {.ss_sp = aligned_alloc(4096, 16384), .ss_size = 16384};
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    sigaltstack(&stack, 0);
    sigaction(SIGUSR1, &action, 0);
    raise(SIGUSR1);
  }
  printf("%d\n", result);
  return 3;
}
"""
    binary = compiled('first.c', text, scratch('driver', 'libcuda.so.1'), '-pthread')
    for where in ('thread', 'signal'):
        plain, run = both([binary, where], {'LD_LIBRARY_PATH': scratch('driver')})
        check_equal((run.returncode, run.stdout), (3, b'0\n'), where)
        check_equal(metrics(run)['api_calls'] if 'api_calls' in metrics(run) else 1, 1, 'the call is there')
        forget_run()


# Waits for any child in every way there is; the host is a subreaper, PID 1 or neither.
WAITING = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
static void start(int code, int after) { if (fork() == 0) { usleep(after); _exit(code); } }
int main(int count, char** words) {
  if (!strcmp(words[1], "subreaper")) prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (launch(2)) return 70;
  int status = 0, found = 0;
  siginfo_t info;
  struct rusage usage;
  errno = 0;
  printf("none %d %d\n", (int)waitpid(-1, &status, WNOHANG), errno);
  for (int i = 0; i < 3; ++i) start(10 + i, 20000 * i);
  while (wait(&status) > 0) found += WEXITSTATUS(status);
  printf("wait %d %d\n", found, errno);
  start(5, 20000);
  int polls = 0;
  while ((found = waitpid(-1, &status, WNOHANG)) == 0) { ++polls; usleep(1000); }
  printf("waitpid %d %d %d\n", found > 0, polls > 0, WEXITSTATUS(status));
  start(6, 0);
  memset(&usage, -1, sizeof usage);
  found = wait3(&status, 0, &usage);  // before what it fills is read: arguments have no order
  printf("wait3 %d %d %d\n", found > 0, WEXITSTATUS(status), usage.ru_utime.tv_usec >= 0);
  start(7, 10000);
  memset(&usage, -1, sizeof usage);
  found = wait4(-1, &status, 0, &usage);
  printf("wait4 %d %d %d\n", found > 0, WEXITSTATUS(status), usage.ru_utime.tv_usec >= 0);
  start(8, 10000);
  memset(&info, 0, sizeof info);
  int kept = waitid(P_ALL, 0, &info, WEXITED | WNOWAIT);
  printf("waitid kept %d %d\n", kept, info.si_status);
  memset(&info, 0, sizeof info);
  int taken = waitid(P_ALL, 0, &info, WEXITED);
  printf("waitid %d %d\n", taken, info.si_status);
  errno = 0;
  printf("last %d %d\n", waitid(P_ALL, 0, &info, WEXITED), errno);
  // An orphan of our own is the host's to reap, where it is one that adopts.
  if (fork() == 0) { start(9, 100000); _exit(3); }
  int exits = 0;
  while (wait(&status) > 0) exits += WEXITSTATUS(status);
  printf("exits %d\n", exits);
  return launch(1) ? 71 : 4;
}
"""


def test_a_host_that_adopts_orphans():
    binary = compiled('waiting.c', CUDA + WAITING, '-lcuda')
    hosts = [[binary, 'plain'], [binary, 'subreaper']]
    if os.geteuid() == 0 and subprocess.run(['unshare', '--pid', '--fork', '--mount-proc', 'true'], check=False, capture_output=True).returncode == 0:
        hosts.append(['unshare', '--pid', '--fork', '--mount-proc', binary, 'first'])
    for command in hosts:
        plain, run = both(command)
        check_equal(run.returncode, 4, 'it ends')
        adopts = command[-1] != 'plain'
        check_equal(run.stdout.decode().split('\n')[-2], f'exits {12 if adopts else 3}', 'orphans')
        if command[-1] != 'first':  # the kernel kills the sidecar with PID 1: docs/LIMITS.md
            check_equal(metrics(run)['launches'], 3, 'launches')
            check_conservation(run)
        forget_run()


# Adds a filter that kills for what a program of its own making needs no more: by prctl, by seccomp, or not at all.
SANDBOX = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
static const int forbidden[] = {SYS_memfd_create, SYS_clone, SYS_clone3, SYS_pidfd_open, SYS_fallocate, SYS_prlimit64, SYS_readlinkat, SYS_readlink,
  SYS_getrandom, SYS_faccessat, SYS_fcntl, SYS_wait4, SYS_munmap, SYS_getcwd, SYS_gettid, SYS_rt_sigprocmask, SYS_openat, SYS_geteuid, SYS_getegid,
  SYS_getpid, SYS_madvise, SYS_mmap, SYS_mprotect, SYS_tgkill, SYS_process_vm_readv, SYS_execve, SYS_prctl, SYS_futex};
static void forbid(int by_prctl, int harmless) {
  struct sock_filter filter[64];
  int n = 0, count = harmless ? 0 : sizeof forbidden / sizeof *forbidden;
  filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (int i = 0; i < count; ++i) filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, forbidden[i], count - i, 0);
  filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  struct sock_fprog program = {n, filter};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (by_prctl ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) : syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program))
    _exit(80);
}
extern int cuInit(unsigned), cuCtxSynchronize(void);
int main(int count, char** words) {
  int bad = 0;
  if (!strcmp(words[1], "contain")) {
    forbid(1, 1);
    execv(words[2], words + 2);
    return 81;
  }
  if (!strcmp(words[2], "late")) bad |= cuInit(0) | cuCtxSynchronize();
  forbid(!strcmp(words[1], "prctl"), 0);
  bad |= cuInit(0) | cuCtxSynchronize();
  char text[] = "0 done\n";
  text[0] += bad;
  write(1, text, sizeof text - 1);
  syscall(SYS_exit_group, 6);
}
"""


def test_programs_that_put_themselves_under_a_filter():
    os.makedirs(scratch('driver'))
    os.rename(compiled('real.c', 'int cuInit(unsigned flags) { return 0; } int cuCtxSynchronize(void) { return 0; }', '-shared', '-fPIC',
                       '-Wl,-soname,libcuda.so.1'), scratch('driver', 'libcuda.so.1'))
    binary = compiled('sandbox.c', SANDBOX, scratch('driver', 'libcuda.so.1'))
    env = {'LD_LIBRARY_PATH': scratch('driver')}
    for way in ('prctl', 'seccomp'):
        for when in ('early', 'late'):
            plain, run = both([binary, way, when], env)
            check_equal((run.returncode, run.stdout), (6, b'0 done\n'), f'{way} {when}')
            check_equal(os.path.exists(run.output), when == 'late', 'a trace of what came before the filter')
            if when == 'late':
                check_equal({row['call']: row['calls'] for row in rows(run, 'api')}, {'cuInit': 1, 'cuCtxSynchronize': 1}, 'calls before the filter')
            forget_run()


def test_a_container_with_a_filter_is_traced():
    binary = compiled('sandbox.c', SANDBOX, '-lcuda')
    plain, run = both([binary, 'contain', program('drv_linked')])
    check_equal(check_launches_against_truth(run), 21, 'launches')


main()
