# meson: timeout=200
# Threads by the thousand, many at once, ends of threads and of the program, dlclose, signals at 1 kHz.
from against_truth import *

HERE = os.path.join(SOURCE, 'tests', 'e2e')


def check_threads(threads, alive, launches):
    command = [program('drv_threads'), f'threads={threads}', f'alive={alive}', f'launches={launches}']
    run = traced(command, {'GPUTRACE_BUFFER': '64M'})
    same_output(untraced(command), run)
    seen, stored, dropped = check_conservation(run)
    check_equal(dropped, 0, 'dropped')
    check_equal(metrics(run)['launches'], threads * launches, 'launches')
    per_thread = collections.Counter(record['tid'] for record in records(run, 'KernelLaunch'))
    launched = collections.Counter(line['tid'] for line in run.truth_of('kernel'))
    check_equal(dict(per_thread), dict(launched), 'launches of each thread id')


def test_a_thousand_threads():
    check_threads(1000, 16, 3)


def test_64_at_once():
    check_threads(128, 64, 20)


def test_300_at_once():
    check_threads(300, 300, 2)


def test_more_threads_than_slots():
    # 2,000 threads at a time, about 1,000 slots: what a thread without one calls is counted, and hardly costs a system call.
    command = [program('drv_threads'), 'threads=2000', 'alive=2000', 'launches=20']
    plain = untraced(command)
    run = traced(command, CALLS)
    same_output(plain, run)
    check_conservation(run)
    lost = sum(row['dropped'] or 0 for row in rows(run, 'quality'))
    check(metrics(run)['launches'] + lost >= 40000, 'every launch is stored or counted', (metrics(run)['launches'], lost))
    if not shutil.which('strace'):
        skip('strace is not installed')
    log = scratch('strace')
    begin = time.monotonic()
    done = finish(start(['strace', '-f', '-qq', '-e', 'trace=tgkill', '-o', log, '-E', f'LD_PRELOAD={places.library}', *command],
                        environment(GPUTRACE_OUTPUT=scratch('t'))), timeout=100)
    check_equal(done[0], 0, 'exit code')
    with open(log, encoding='utf-8', errors='replace') as file:
        asked = sum('tgkill(' in line for line in file)
    # Two by each new thread, 64 ten times a second by one that found no slot, all of them eight times by the one that brings device
    # records; it was as many for each call, then for each tenth of a second, however many threads still waited for their answers.
    seconds = time.monotonic() - begin
    check(asked <= 2 * 2000 + (64 * 10 + 1023 * 8) * (1 + seconds), 'who is alive is asked now and then', asked, seconds)


def test_device_records_of_more_threads_than_blocks():
    # A thousand threads hold a block each until they have all launched, and end without a word: the thread that brings device records must
    # get through none the less, while they live and when the program leaves (it waited there for two seconds, and what it had was lost).
    command = [program('drv_threads'), 'threads=1100', 'alive=1100', 'launches=3']
    run = traced(command)
    same_output(untraced(command), run)
    check('everything was flushed' in str(records(run, 'DeviceState')[-1]), 'device collection was ended', records(run, 'DeviceState'))
    timed = len(records(run, 'DeviceKernel'))
    check_equal(timed, len(run.truth_of('kernel')), 'kernels with their times: of all threads, also of those without a slot')


def test_ends():
    for end in ({}, {'EARLY': '0'}, {'LATE': '0'}, {'EARLY': '0', 'LATE': '0'}):
        command = [program('drv_ctor'), 'exit=9']
        run = traced(command, {**CALLS, **end})
        same_output(untraced(command, end), run)
        check_equal(check_launches_against_truth(run), len(run.truth_of('kernel')), f'all launches, up to the last destructor {end}')
        check_conservation(run)
        forget_run()


CLOSING = r'''
import _ctypes, ctypes, os, sys
sys.path.insert(0, sys.argv[1])
from driver import Driver
for round in range(3):
    d = Driver()
    for i in range(5): d.launch(d.kernel('step'))
    d('cuCtxSynchronize')
    _ctypes.dlclose(d.cuda._handle)
ours = ctypes.CDLL(os.environ['OURS']) if os.path.exists(os.environ['OURS']) else None
if ours: _ctypes.dlclose(ours._handle)
d = Driver()
for i in range(5): d.launch(d.kernel('step'))
print('done')
'''


def test_dlclose():
    command = [sys.executable, '-c', CLOSING, HERE]
    env = {'OURS': places.library}
    run = traced(command, {**CALLS, **env})
    same_output(untraced(command, {'OURS': '/nowhere'}), run)
    check_equal(check_launches_against_truth(run), 20, 'launches')


def test_plugin_closed():
    command = [program('drv_plugin'), 'plugin=' + program_file('plugin_driver.so'), 'count=40']
    run = traced(command, CALLS)
    same_output(untraced(command), run)
    check_equal(check_launches_against_truth(run), 280, 'launches')


SIGNALS = r'''
#include <cuda.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
static CUfunction function; static CUstream stream; static volatile long handled, failed;
static const char ptx[] = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry third() { ret; }\n";
static void on_signal(int number) {
  (void)number;
  const int saved = errno;
  if (cuLaunchKernel(function, 2, 1, 1, 64, 1, 1, 0, stream, 0, 0) == CUDA_SUCCESS) ++handled; else ++failed;
  errno = saved;
}
int main(void) {
  CUdevice device; CUcontext context; CUmodule module; long launches = 0, wrong = 0;
  if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) || cuCtxSetCurrent(context) ||
      cuModuleLoadData(&module, ptx) || cuModuleGetFunction(&function, module, "third") || cuStreamCreate(&stream, 1)) return 70;
  struct sigaction action; memset(&action, 0, sizeof action); action.sa_handler = on_signal; sigaction(SIGALRM, &action, 0);
  sigset_t set; sigemptyset(&set); sigaddset(&set, SIGALRM);
  const struct itimerval every = {{0, 1000}, {0, 1000}}; setitimer(ITIMER_REAL, &every, 0);
  struct timespec begin, now; clock_gettime(CLOCK_MONOTONIC, &begin);
  do {
    for (int i = 0; i < 1000; ++i) { if (cuEventQuery(0) == CUDA_SUCCESS) ++wrong; ++launches; }
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < 700);
  const struct itimerval never = {{0, 0}, {0, 0}}; setitimer(ITIMER_REAL, &never, 0);
  printf("handled %ld failed %ld wrong %ld calls %ld\n", handled, failed, wrong, launches);
  return handled > 50 ? 0 : 71;
}
'''


def test_cuda_calls_in_a_signal_handler():
    command = [compiled('signals.c', SIGNALS, '-lcuda')]
    run = traced(command, {'SIMGPU_TRUTH': None, 'SIMGPU_CALL_TIME': '0', 'GPUTRACE_BUFFER': '64M'})
    check_equal((run.returncode, run.stderr), (0, b''), 'exit code')
    handled, failed, wrong, calls = map(int, re.findall(rb'\d+', run.stdout))
    check_equal((failed, wrong), (0, 0), 'wrong results')
    check_conservation(run)
    quality = rows(run, 'quality')
    dropped = sum(row['dropped'] for row in quality)
    launches = metrics(run)['launches']
    check(launches <= handled <= launches + dropped, 'every launch of the handler is stored or counted as dropped', handled, launches, dropped)
    check(all('signal handler' in row['reason'] or 'ring full' in row['reason'] or 'drained' in row['reason'] for row in quality if row['dropped']), 'the reason', quality)


def test_profiling_timer_counts_the_same():
    text = r'''
import signal, sys, time
sys.path.insert(0, sys.argv[1])
from driver import Driver
count = 0
def tick(*_):
    global count
    count += 1
for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGCHLD, signal.SIGPIPE, signal.SIGPROF):
    signal.signal(number, tick)
d = Driver()
k = d.kernel('step')
for i in range(3000): d.launch(k)
print(count, [signal.getsignal(n) is tick for n in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGCHLD, signal.SIGPIPE, signal.SIGPROF)], signal.pthread_sigmask(signal.SIG_BLOCK, []))
'''
    command = [sys.executable, '-c', text, HERE]
    run = traced(command)
    same_output(untraced(command), run)
    check(run.stdout.startswith(b'0 '), 'no signal reaches the program (SIGCHLD of our helper, say)', run.stdout)
    check_equal(metrics(run)['launches'], 3000, 'launches')


def test_waiting_for_all_children_sees_none_of_ours():
    text = r'''
import errno, os, sys
sys.path.insert(0, sys.argv[1])
from driver import Driver
d = Driver()
for i in range(10): d.launch(d.kernel('step'))
try:
    print('child', os.waitpid(-1, 0))
except ChildProcessError as error:
    print('none', error.errno == errno.ECHILD)
'''
    command = [sys.executable, '-c', text, HERE]
    run = traced(command)
    same_output(untraced(command), run)
    check_equal(run.stdout, b'none True\n', 'wait() finds no child')


main()
