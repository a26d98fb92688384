# meson: serial timeout=300
# Rows of the torture list (tests/torture/rows.toml) that have no other home: programs stopped and resumed at random, workers that come and go,
# a library that is replaced, process ids that are given again, debuggers around it.
import random

from small_programs import *

QUIET = {'SIMGPU_CALL_TIME': '0', 'SIMGPU_TRUTH': None}

WORKERS = r'''
import ctypes, os, subprocess, sys
rounds, workers, loop = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
cuda = ctypes.CDLL('libcuda.so.1')
def own():
    threads = len(os.listdir('/proc/self/task'))
    descriptors = len(os.listdir('/proc/self/fd'))
    mapped = sum('gputrace' in line and 'memfd' in line for line in open('/proc/self/maps'))
    return threads, descriptors, mapped
assert cuda.cuInit(0) == 0
first = None
for turn in range(rounds):
    children = []
    for _ in range(workers):
        pid = os.fork()
        if pid == 0:
            os.execv(loop, [loop, 'calls=20', 'threads=1'])
        children.append(pid)
    bad = sum(os.waitpid(pid, 0)[1] != 0 for pid in children)
    assert bad == 0, bad
    first = first or own()
    assert own() == first, (own(), first)
'''


def test_worker_churn():
    """Fork, execute, work, leave: the parent's threads, descriptors and mappings stay as they were, and each worker has its own trace."""
    rounds, workers = (200, 64) if FULL else (6, 8)
    # What the workers print goes nowhere; they are counted by their traces.
    run = traced([sys.executable, '-c', WORKERS, str(rounds), str(workers), program('drv_loop')], QUIET, timeout=3600)
    check_equal(run.returncode, 0, run.stderr)
    said = report(run, 'overview', 'run')
    check_equal(len(said['sections']['run']['rows']), rounds * workers + 1, 'a trace for each process')
    launches = {row['metric']: row['value'] for row in said['sections']['overview']['rows']}['launches']
    check_equal(launches + said['coverage']['dropped'], 20 * rounds * workers, 'launches of all workers, or counted')


def test_stopped_and_resumed_in_random_order():
    """Programs and their sidecars stand still and go on, one by one, in any order: nothing hangs, all is stored or counted, in each thread's order."""
    seeds, programs = (1000, 16) if FULL else (5, 4)
    for seed in range(seeds):
        random.seed(seed)
        name = f'seed{seed}'
        processes = [start([program('drv_loop'), 'calls=3000', 'threads=2'], traced_environment({**QUIET, 'GPUTRACE_BUFFER': '1M'}, scratch(name))) for _ in range(programs)]
        try:
            for _ in range(20):
                alive = [pid for pid in children() if pid != os.getpid()]
                if not alive:
                    break
                chosen = random.sample(alive, max(1, len(alive) // 2))
                for pid in chosen:
                    send(pid, signal.SIGSTOP)
                time.sleep(random.uniform(0, 0.02))
                random.shuffle(chosen)
                for pid in chosen:
                    send(pid, signal.SIGCONT)
        finally:
            for pid in children():
                send(pid, signal.SIGCONT)
        for process in processes:
            check_equal(finish(process)[0], 0, f'{name}: exit code')
        check(not wait_for_orphans(20), f'{name}: the sidecars end')
        said = report(scratch(name), 'overview', 'quality')
        launches = {row['metric']: row['value'] for row in said['sections']['overview']['rows']}['launches']
        check(launches <= 6000 * programs <= launches + said['coverage']['dropped'], f'{name}: stored or counted', launches, said['coverage'])
        for row in said['sections']['quality']['rows']:
            check_equal(row['seen'], row['stored'] + row['dropped'], f'{name}: seen = stored + dropped')
        for trace in glob.glob(scratch(name, '*.gtrace')):
            newest = {}
            for record in records(trace, 'KernelLaunch'):
                check(record['begin_ns'] >= newest.get(record['tid'], 0), f'{name}: the order of a thread', record)
                newest[record['tid']] = record['begin_ns']
        shutil.rmtree(scratch(name))


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def test_the_library_is_replaced_under_a_program():
    """As an installer does it: a new file takes the name. What runs keeps the old one."""
    library = scratch('libgputrace.so')
    shutil.copy(places.library, library)
    env = {**QUIET, 'LD_PRELOAD': library, 'GPUTRACE_SIDECAR': places.sidecar}
    running = [start([program('drv_loop'), 'seconds=2', 'threads=2'], traced_environment(env)) for _ in range(3)]
    wait_until(lambda: len(glob.glob(scratch('trace', '*.gtrace'))) == 3, 'they record', 20)
    for _ in range(20):
        shutil.copy(places.library, library + '.new')
        os.rename(library + '.new', library)
        time.sleep(0.02)
    after = start([program('drv_linked'), 'count=5'], traced_environment(env))
    for process in [*running, after]:
        check_equal(finish(process)[0], 0, 'exit code')
    check(not wait_for_orphans(), 'the sidecars end')
    check_equal(len(rows(scratch('trace'), 'run')), 4, 'a trace of each')
    check_equal(report(scratch('trace'))['coverage']['truncated'], False, 'all are whole')


AGAIN = r'''
import os, subprocess, sys, time
def next_is_4001():
    with open('/proc/sys/kernel/ns_last_pid', 'w') as file:
        file.write('4000')
def is_free():  # a group or session may hold the number of a process that is gone for a moment longer
    next_is_4001()
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return pid == 4001
for _ in range(3):
    deadline = time.monotonic() + 10
    while not is_free() and time.monotonic() < deadline:
        time.sleep(0.01)
    next_is_4001()
    child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
    assert child.wait() == 0
    print(child.pid)
'''


def test_a_process_id_that_is_given_again():
    """Three processes of one id, one after the other, in a process namespace of their own: three traces, none in another's."""
    probe = subprocess.run(['unshare', '--pid', '--fork', '--mount-proc', 'true'], stderr=subprocess.PIPE, check=False)
    if probe.returncode:
        skip('no process namespaces here: ' + probe.stderr.decode(errors='replace').strip())
    run = traced(['unshare', '--pid', '--fork', '--mount-proc', sys.executable, '-c', AGAIN, program('drv_linked'), 'count=5'], {'SIMGPU_TRUTH': None})
    if b'Permission denied' in run.stderr or b'Read-only' in run.stderr:
        skip('the last process id cannot be set here')
    check_equal(run.returncode, 0, run.stderr)
    check_equal(set(run.stdout.split()), {b'4001'}, 'one id')
    said = report(run, 'run', 'overview')
    check_equal([row['pid'] for row in said['sections']['run']['rows']], [4001] * 3, 'three traces of that id')
    check_equal({row['metric']: row['value'] for row in said['sections']['overview']['rows']}['launches'], 3 * 35, 'launches in all')


def test_under_strace_and_gdb():
    """What looks at the program by ptrace changes nothing, and is not changed."""
    command = [program('drv_linked'), 'count=5']
    plain = untraced(command)
    for tool, front in (('strace', ['strace', '-f', '-qq', '-o', scratch('strace.out')]),
                        ('gdb', ['gdb', '-q', '-nx', '-batch', '-ex', 'set startup-with-shell off', '-ex', 'run', '-ex', 'quit $_exitcode', '--args'])):
        if not shutil.which(tool):
            skip(f'no {tool}')
        forget_run()
        run = traced([*front, *command])
        check_equal(run.returncode, plain.returncode, f'{tool}: exit code')
        check(plain.stdout in run.stdout, f'{tool}: output', run.stdout)
        check_equal(metrics(run)['launches'], 35, f'{tool}: launches')


STEADY = r"""
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static CUcontext context; static CUfunction function; static double until; static long made[4];
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
static void* work(void* number) {
  cuCtxSetCurrent(context);
  for (int round = 0; now() < until && round < 200; ++round) {
    for (int i = 0; i < 25; ++i) made[(long)number] += cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, 0, 0, 0) == 0;
    usleep(1000);
  }
  return 0;
}
int main(int count, char** words) {
  CUdevice device; CUmodule module;
  until = now() + atof(words[1]);
  if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) || cuCtxSetCurrent(context) ||
      cuModuleLoadData(&module, ptx) || cuModuleGetFunction(&function, module, "third")) return 70;
  while (now() < until) {
    pthread_t threads[4];
    for (long i = 0; i < 4; ++i) pthread_create(&threads[i], 0, work, (void*)i);
    for (long i = 0; i < 4; ++i) pthread_join(threads[i], 0);
    cuCtxSynchronize();
  }
  printf("%ld\n", made[0] + made[1] + made[2] + made[3]);
  return 0;
}
"""


def held_by(pid):
    """(MiB of memory, threads, descriptors) of a process."""
    with open(f'/proc/{pid}/status', encoding='utf-8') as file:
        said = dict(line.split(':', 1) for line in file)
    return int(said['VmRSS'].split()[0]) / 1024, int(said['Threads']), len(os.listdir(f'/proc/{pid}/fd'))


def test_soak():
    """Threads come and go, some tens of thousands of launches a second: what program and sidecar hold does not grow."""
    seconds = 3600 if FULL else 12
    program_of_it = start([compiled('steady.c', CUDA + STEADY, '-lcuda', '-pthread'), str(seconds)],
                          traced_environment({'SIMGPU_CALL_TIME': '0', 'SIMGPU_TRUTH': None, 'GPUTRACE_MAX_SIZE': '4G'}))
    wait_until(lambda: glob.glob(scratch('trace', '*.gtrace')), 'it records', 20)

    def sidecar():
        for pid in children():
            with open(f'/proc/{pid}/comm', encoding='utf-8') as file:
                if file.read().startswith('gputrace-sidec'):
                    return pid
        return None
    watched = {'program': program_of_it.pid, 'sidecar': wait_until(sidecar, 'the sidecar is there')}
    samples = {name: [] for name in watched}
    began = time.monotonic()
    while time.monotonic() < began + seconds - 2:
        for name, pid in watched.items():
            samples[name].append(held_by(pid))
        time.sleep(seconds / 40)
    code, out, err = finish(program_of_it, seconds + 60)
    check_equal((code, err), (0, b''), 'exit code')
    check(not wait_for_orphans(60), 'the sidecar ends')
    for name, seen in samples.items():
        check(len(seen) >= 12, f'{name}: samples', seen)
        early, late = seen[len(seen) // 3: 2 * len(seen) // 3], seen[-len(seen) // 3:]
        for what, index, more in (('MiB', 0, 8), ('threads', 1, 0), ('descriptors', 2, 0)):
            check(max(row[index] for row in late) <= max(row[index] for row in early) + more, f'{name}: {what} do not grow', early, late)
    said = report(scratch('trace'), 'overview')
    launches = {row['metric']: row['value'] for row in said['sections']['overview']['rows']}['launches']
    check(launches <= int(out) <= launches + said['coverage']['dropped'], 'launches are stored or counted', launches, int(out), said['coverage'])


def test_one_processor_shared_with_hogs():
    """Program, sidecar and eight hogs on one processor: the program waits for nobody, and what the sidecar has no time for is counted."""
    core = {min(os.sched_getaffinity(0))}
    calls = 2_000_000 if FULL else 200_000

    def on_core():
        os.sched_setaffinity(0, core)
    hogs = [subprocess.Popen([sys.executable, '-c', 'while True: pass'], preexec_fn=on_core) for _ in range(8)]
    try:
        waited = {}
        for name, env in (('plain', {'LD_PRELOAD': None}), ('traced', {'GPUTRACE_COLLECT': 'api', 'GPUTRACE_BUFFER': '256K'})):
            process = start([program('drv_loop'), f'calls={calls}', 'threads=1', 'exit=3'], traced_environment({**QUIET, **env}), preexec_fn=on_core)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            out, err = process.communicate()
            check_equal((process.returncode, out.split()[:2], err), (3, [b'calls', b'%d' % calls], b''), f'{name}: its end')
            waited[name] = usage.ru_nvcsw
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
    check(not wait_for_orphans(60), 'the sidecar ends')
    check(waited['traced'] <= waited['plain'] + 40, 'times that the program gave up its processor: at its begin alone', waited)
    said = report(scratch('trace'), 'overview')
    launches = {row['metric']: row['value'] for row in said['sections']['overview']['rows']}['launches']
    check_equal(launches + said['coverage']['dropped'], calls, 'each launch is stored or counted')


def sidecar_under_strace(*inject):
    if not shutil.which('strace'):
        skip('strace is not installed')
    with open(scratch('sidecar'), 'w', encoding='utf-8') as file:
        file.write('#!/bin/sh\nexec strace -qq -o /dev/null ' + ' '.join(f"-e '{word}'" for word in inject) + f' {places.sidecar} "$@"\n')
    os.chmod(scratch('sidecar'), 0o755)
    return {'GPUTRACE_SIDECAR': scratch('sidecar')}


def test_a_disk_that_hangs():
    """One write of the sidecar takes six seconds, as on a network file system whose server is away: the program has ended long before, and nothing is lost."""
    writes = 'write,pwrite64,writev,pwritev,pwritev2'
    env = sidecar_under_strace(f'trace={writes}', f'inject={writes}:delay_enter=6000000:when=4')
    run = traced([program('drv_loop'), 'calls=2000', 'threads=2', 'exit=3'], {**QUIET, 'GPUTRACE_COLLECT': 'api', **env}, wait=False)
    check_equal(run.returncode, 3, 'exit code')
    check(wait_for_orphans(0.2), 'the program does not wait for the disk')
    check(not wait_for_orphans(60), 'the sidecar ends')
    check_equal(metrics(run)['launches'], 4000, 'launches')
    check_conservation(run)


def test_a_file_system_that_reserves_nothing():
    """As FUSE and old network file systems are."""
    for call, error in (('fallocate', 'EOPNOTSUPP'), ('fallocate', 'ENOSYS'), ('ftruncate', 'EOPNOTSUPP')):
        env = sidecar_under_strace(f'trace={call}', f'inject={call}:error={error}')
        run = traced([program('drv_loop'), 'calls=2000', 'threads=2', 'exit=3'], {**QUIET, 'GPUTRACE_COLLECT': 'api', **env})
        check_equal((run.returncode, metrics(run)['launches']), (3, 4000), f'{call} {error}: launches')
        check(report(run)['coverage']['complete'], f'{call} {error}: complete', report(run)['coverage'])
        check_conservation(run)
        forget_run()


main()
