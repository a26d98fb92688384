# meson: timeout=240
# File calls and waits (`io`, `waits`), in the traced process and in workers forked from it, against what the program did.
from harness import *

PROGRAM = os.path.join(SOURCE, 'tests', 'programs', 'python', 'host_calls.py')
TURNS, PIECE, PIECES, WORKERS = 20, 64 << 10, 4, 2


def run_host_calls(*arguments, collect='+io,+waits', host_library=True, mode='preload', **options):
    folder = scratch('files')
    os.makedirs(folder, exist_ok=True)
    variables = {'GPUTRACE_COLLECT': collect}
    if mode == 'preload' and host_library:
        variables['LD_PRELOAD'] = f'{places.library} {places.host_library}'
    run = traced([sys.executable, PROGRAM, folder, *arguments], env=variables, mode=mode, timeout=60, **options)
    check(run.returncode == 0 and b'done' in run.stdout, 'the program came to its end', run.stdout, run.stderr)
    with open(os.path.join(folder, 'result.json'), encoding='utf-8') as file:
        return run, json.load(file), folder


def rows_of(run, section):
    return report(run, section)['sections'][section]['rows']


def file_rows(run):
    return {(row['path'], row['call']): row for row in rows_of(run, 'io')}


def check_files(rows, folder):
    dataset = os.path.join(os.path.realpath(folder), 'set')
    read = rows[dataset, 'read']
    check_equal((read['count'], read['bytes']), (WORKERS * TURNS * (PIECES + 1), WORKERS * TURNS * PIECES * PIECE), 'what the workers read')
    check_equal((rows[dataset, 'write']['count'], rows[dataset, 'write']['bytes']), (PIECES, PIECES * PIECE), 'what the program wrote')
    check_equal(rows[dataset, 'open']['count'], WORKERS * TURNS + 2, 'how often it was opened')
    check_equal((rows[dataset, 'fsync']['count'], rows[dataset, 'fopen']['count']), (1, 1), 'fsync and fopen')
    check_equal((rows[dataset, 'fread']['count'], rows[dataset, 'fread']['bytes']), (3, 4800), 'fread')
    check_equal((rows[None, 'read']['count'], rows[None, 'read']['bytes']), (1, 0), 'a read that failed')
    for row in rows.values():
        check(0 < row['max_ns'] <= row['total_ns'], 'the longest is one of them', row)


def test_files_and_waits_of_a_program_and_its_workers():
    run, truth, folder = run_host_calls()
    check_files(file_rows(run), folder)
    check(rows_of(run, 'io')[0]['total_ns'] == max(row['total_ns'] for row in rows_of(run, 'io')), 'the largest first')
    check_equal(len(run.traces), 1, 'traces: what makes no call makes none')

    waits = rows_of(run, 'waits')
    check_equal(len({(row['pid'], row['tid'], row['for'], row['site']) for row in waits}), len(waits), 'one row each')
    own = {(row['for'], row['site']): row for row in waits if row['tid'] == truth['tid']}
    rest = next(row for (what, site), row in own.items() if what == 'sleep' and site and site.endswith(' rest'))
    check_equal(rest['count'], 10, 'sleeps at one line')
    check(200e6 <= rest['total_ns'] < truth['seconds'] * 1e9, 'ten of 20 ms', rest)
    lock = next(row for (what, site), row in own.items() if what == 'semaphore' and site == f'host_calls.py:{line_of("waits-for-lock")} wait_for_lock')
    check(lock['count'] == 3 and 200e6 < lock['total_ns'] < truth['seconds'] * 1e9, 'three times a lock of 150 ms', lock)
    gil = sum(row['total_ns'] for (what, _), row in own.items() if what == 'GIL')
    check(20e6 < gil < truth['seconds'] * 1e9, 'two threads that both run Python have it in turn', gil)
    check(not any(row['for'] == 'condition variable' for row in own.values()), 'CPython has no other', own)
    check({row['pid'] for row in waits} >= set(truth['workers']), 'workers wait, too', waits)


def test_input_stages_know_who_read():
    run, _, folder = run_host_calls()
    rows = file_rows(run)
    dataset = os.path.join(os.path.realpath(folder), 'set')
    stages = {row['stage']: row for row in rows_of(run, 'input')}
    check(stages['read_ahead']['total_ns'] >= rows[dataset, 'read']['total_ns'], 'workers read ahead', stages, rows)
    check(stages['read_on_demand']['total_ns'] >= rows[dataset, 'fread']['total_ns'], 'the program itself', stages)


def test_run_brings_the_library_along():
    run, _, folder = run_host_calls(mode='run', collect=None, options=('--collect', '+io'))
    check_files(file_rows(run), folder)
    whole = report(run)
    check('waits' not in whole['sections'], 'waits were not asked for')


def test_without_the_library_it_is_said():
    run, _, _ = run_host_calls(host_library=False)
    whole = report(run)
    check('io' not in whole['sections'] and 'waits' not in whole['sections'], 'nothing is known', list(whole['sections']))
    why = {entry['what']: entry['why'] for entry in whole['coverage']['not_collected']}
    check('libgputrace-host.so' in why['io'] and 'libgputrace-host.so' in why['waits'], 'and why', why)


def test_the_library_alone_changes_nothing():
    folder = scratch('files')
    os.makedirs(folder)
    done = subprocess.run([sys.executable, PROGRAM, folder], capture_output=True, check=False,
                          env=environment(LD_PRELOAD=places.host_library, GPUTRACE_COLLECT='+io,+waits'))
    check_equal((done.returncode, done.stdout, done.stderr), (0, b'done\n', b''), 'the program without libgputrace.so')


def test_files_beyond_the_table_are_told_by_directory():
    run, _, folder = run_host_calls('many')
    rows, folder = file_rows(run), os.path.realpath(folder)
    written = [row for (path, call), row in rows.items() if call == 'write' and path and os.path.dirname(path) == folder and
               os.path.basename(path).startswith(('many-', '*'))]
    rest = rows[os.path.join(folder, '*'), 'write']
    check_equal(sum(row['count'] for row in written), 10_000 + 1, 'calls in rows, with that of result.json')
    check(1000 < rest['count'] < 10_000, 'some of them by directory', rest)


LOADS = f'''
import ctypes, os, sys
sys.path[:0] = [{os.path.join(SOURCE, "tests", "e2e")!r}, sys.argv[1]]
from driver import Driver
from torch.utils.data.dataloader import _SingleProcessDataLoaderIter
SET, TURNS, PIECE, PIECES = sys.argv[2], 150, 64 << 10, 200
d = Driver()
k = d.kernel('step')
def load():
    file = os.open(SET, os.O_RDONLY)
    for _ in range(PIECES): os.read(file, PIECE)  # reads
    os.close(file)
batches = _SingleProcessDataLoaderIter(load)
for _ in range(TURNS):
    batches._next_data()
    d.launch(k)
'''


def test_a_loop_that_reads_files_is_told_which():
    # PyTorch's loader, as far as its name is known by.
    module = os.path.join(scratch('site-packages'), 'torch', 'utils', 'data', 'dataloader.py')
    os.makedirs(os.path.dirname(module))
    program, data = scratch('program.py'), scratch('set')
    with open(module, 'w', encoding='utf-8') as file:
        file.write('class _SingleProcessDataLoaderIter:\n    def __init__(self, load): self.load = load\n    def _next_data(self): return self.load()\n')
    with open(program, 'w', encoding='utf-8') as file:
        file.write(LOADS)
    with open(data, 'wb') as file:
        file.write(bytes(200 * (64 << 10)))
    run = traced([sys.executable, program, scratch('site-packages'), data], timeout=120,
                 env={'GPUTRACE_COLLECT': '+io', 'LD_PRELOAD': f'{places.library} {places.host_library}', 'SIMGPU_KERNEL_TIME': 'step=200us'})
    check_equal(run.returncode, 0, 'exit code')
    whole = report(run, 'input-ops')
    gaps = next(each for each in report(run)['findings'] if each['id'] == 'idle-gaps')
    site = f'program.py:{next(number for number, line in enumerate(LOADS.splitlines(), 1) if "# reads" in line)} load'
    bytes_read = 150 * 200 * (64 << 10)
    check_equal(gaps['site'], site, 'the line')
    told = gaps['evidence']
    check_equal((told['io_call'], told['io_path'], told['io_bytes'], told['io_calls']), ('read', os.path.realpath(data), bytes_read, 150 * 200), 'what it reads')
    check(f'file calls at {site} took' in gaps['text'], 'in words', gaps['text'])
    op = next(row for row in whole['sections']['input-ops']['rows'] if row['op'] == 'program.py load')
    check_equal(op['bytes'], bytes_read, 'bytes by function')


def test_nothing_is_lost_when_it_is_killed():
    text = f'''
import ctypes, os, signal
cuda = ctypes.CDLL('libcuda.so.1')
cuda.cuInit(0)
file = os.open({scratch('one')!r}, os.O_CREAT | os.O_RDWR)
for _ in range(1000):
    os.write(file, b'x' * 100)
os.kill(os.getpid(), signal.SIGKILL)
'''
    run = traced([sys.executable, '-c', text], env={'GPUTRACE_COLLECT': 'api,io', 'LD_PRELOAD': f'{places.library} {places.host_library}'})
    row = file_rows(run)[os.path.realpath(scratch('one')), 'write']
    check_equal((row['count'], row['bytes']), (1000, 100_000), 'what it wrote before')


BEHAVES = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static int cleaned, ends[2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sigjmp_buf back;
static void clean(void* held) { if (held) pthread_mutex_unlock(held); ++cleaned; }
static void* reads(void* unused) {
  char byte;
  pthread_cleanup_push(clean, NULL);
  (void)!read(ends[0], &byte, 1);
  pthread_cleanup_pop(0);
  return unused;
}
static void* waits(void* unused) {
  pthread_mutex_lock(&mutex);
  pthread_cleanup_push(clean, &mutex);
  for (;;) pthread_cond_wait(&condition, &mutex);
  pthread_cleanup_pop(0);
  return unused;
}
static void leave(int signal) { (void)signal; siglongjmp(back, 1); }
static int locked_twice(int type) {
  pthread_mutexattr_t kind;
  pthread_mutex_t twice;
  pthread_mutexattr_init(&kind);
  pthread_mutexattr_settype(&kind, type);
  pthread_mutex_init(&twice, &kind);
  pthread_mutex_lock(&twice);
  return pthread_mutex_lock(&twice);
}
int main(void) {
  int (*init)(unsigned) = (int (*)(unsigned))dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuInit");
  printf("init %d\n", init(0));
  pthread_t threads[2];
  void* result[2];
  printf("pipe %d\n", pipe(ends));
  pthread_create(&threads[0], NULL, reads, NULL);
  pthread_create(&threads[1], NULL, waits, NULL);
  usleep(20000);
  for (int i = 0; i < 2; ++i) pthread_cancel(threads[i]), pthread_join(threads[i], &result[i]);
  printf("cancelled %d %d, cleaned %d\n", result[0] == PTHREAD_CANCELED, result[1] == PTHREAD_CANCELED, cleaned);
  signal(SIGALRM, leave);
  if (!sigsetjmp(back, 1)) {
    char byte;
    ualarm(10000, 0);
    printf("read %zd\n", read(ends[0], &byte, 1));
  }
  printf("error check %d, recursive %d\n", locked_twice(PTHREAD_MUTEX_ERRORCHECK) == EDEADLK, locked_twice(PTHREAD_MUTEX_RECURSIVE));
  printf("close %d", close(-1));
  printf(" %d\n", errno == EBADF);
  errno = 55;
  usleep(1);
  (void)!write(ends[1], "x", 1);
  printf("errno %d\n", errno);
  char text[8];
  FILE* no_file = fmemopen(text, sizeof text, "w");
  errno = 56;
  fwrite("x", 1, 1, no_file);
  printf("errno %d\n", errno);
  FILE* none = fopen("/nowhere/at/all", "r");
  printf("fopen %d %d\n", none == NULL, errno == ENOENT);
  if (!vfork()) execl("/bin/true", "true", (char*)0), _exit(3);
  int status = -1;
  wait(&status);
  printf("child %d\n", status);
  return 42;
}
"""


def test_a_program_behaves_as_without_it():
    program = compiled('behaves.c', BEHAVES, '-ldl', '-lpthread')
    answers = []
    both = f'{places.library} {places.host_library}'
    for parts, preload in (('api', None), ('api', both), ('api,io,waits', both)):
        forget_run()
        run = traced([program], env={'GPUTRACE_COLLECT': parts, 'LD_PRELOAD': preload})
        answers.append((run.returncode, run.stdout, run.stderr))
    check(answers[0] == answers[1] == answers[2], 'output and exit code, bare, with the library, and counted', answers)
    check(answers[0][0] == 42 and b'cancelled 1 1, cleaned 2\n' in answers[0][1] and b'child 0\n' in answers[0][1], 'it went all the way', answers[0])
    kinds = {row['for'] for row in rows_of(run, 'waits')}
    check({'sleep', 'end of a thread'} <= kinds, 'and was seen', kinds)


def line_of(mark):
    with open(PROGRAM, encoding='utf-8') as file:
        return next(number for number, line in enumerate(file, 1) if line.rstrip().endswith('# ' + mark))


main()
