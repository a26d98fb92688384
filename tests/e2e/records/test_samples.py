# meson: timeout=300
# Samples: where the program is between two CUDA calls, seen from outside, against what it measured of itself.
import ast

from harness import *

PROGRAM = os.path.join(SOURCE, 'tests', 'programs', 'python', 'between.py')
NEAR = 0.2  # of shares that are held against each other: some hundred samples


def version_of(python):
    answer = subprocess.run([python, '-c', 'import sys; print(*sys.version_info[:2])'], capture_output=True, text=True)
    return tuple(map(int, answer.stdout.split())) if answer.returncode == 0 else None


def interpreters():
    """One of each minor version that this machine has."""
    here = [sys.executable, '/usr/bin/python3', *glob.glob(os.path.expanduser('~/.pyenv/versions/*/bin/python3'))]
    found = {}
    for python in here:
        if os.path.exists(python) and (version := version_of(python)):
            found.setdefault(version, python)
    return {version: python for version, python in found.items() if (3, 8) <= version <= (3, 13)}


def run_between(seconds, workers=0, python=sys.executable, how=(), **options):
    truth = scratch('truth.json')
    run = traced([python, PROGRAM, truth, str(seconds), str(workers), *how], **options)
    check(run.returncode == 0 and b'done' in run.stdout, 'the program came to its end', run.stdout, run.stderr)
    with open(truth, encoding='utf-8') as file:
        return run, json.load(file)


def sampled(run):
    """[(sample, its stack outermost first as (file, function, line))]"""
    everything = dump(run)
    frames = {record['id']: record for record in everything if record['record'] == 'StackFrame'}

    def chain(number):
        stack = []
        while number:
            frame = frames[number]
            stack.append((frame['file'], frame['function'], frame['line']))
            number = frame['parent']
        return stack[::-1]

    return [(record, chain(record['frame'])) for record in everything if record['record'] == 'Sample']


def calls_of(path):
    """{line: names that are called there}, {function: (first line, last line)} of a Python file."""
    with open(path, encoding='utf-8') as file:
        tree = ast.parse(file.read())
    calls, functions = {}, {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            for line in range(node.lineno, node.end_lineno + 1):
                calls.setdefault(line, set()).add(node.func.id)
        if isinstance(node, ast.FunctionDef):
            functions[node.name] = (node.lineno, node.end_lineno)
    return calls, functions


def check_possible(stacks):
    """Every stack is one that the program can have: each line lies in its function, and calls what is within it."""
    calls, functions = calls_of(PROGRAM)
    for stack in stacks:
        own = [(function, line) for file, function, line in stack if file == PROGRAM]
        for (outer, line), (inner, _) in zip(own, own[1:]):
            check(inner in calls.get(line, ()) or inner in ('serve', 'main'), f'{outer}:{line} calls {inner}', stack)
        for function, line in own:
            first, last = functions.get(function, (1, 1 << 20))
            check(first <= line <= last, f'line {line} lies in {function}', stack)
        for outer, inner in zip(stack, stack[1:]):
            if inner[0].startswith('made '):
                check(outer[1] == 'made' or outer[0] == inner[0], 'what was made is called where it was made', stack)
                check(inner[1] in ('<module>', 'made_' + inner[0][5:]), 'a function of its file', stack)


def check_shares(stacks, truth, of):
    for name in ('compute', 'rest'):
        share = sum(any(function == name for _, function, _ in stack) for stack in stacks) / len(stacks)
        true = truth[name] / (truth['compute'] + truth['rest'])
        # Some forty looks are a small sample where the machine is slow: within four of its standard deviations.
        near = max(NEAR, 4 * (true * (1 - true) / len(stacks)) ** 0.5)
        check(abs(share - true) < near, f'{name} of {of}: {share} of {len(stacks)} is near {true}')


def test_lines_between_calls():
    for version, python in sorted(interpreters().items()):
        forget_run()
        run, truth = run_between(2, python=python)
        found = [stack for sample, stack in sampled(run) if stack[-1][1] != '<module>' and sample['process'] == 0]
        check(len(found) > 30, f'samples of {version}', len(found))
        check_possible(found)
        check_shares(found, truth, version)


def test_idle_time_goes_to_the_lines_that_make_it():
    run, truth = run_between(2)
    sections = report(run, 'sites', 'idle')['sections']
    idle = {}
    for row in sections['sites']['rows']:
        name = row['site'].split()[-1]
        idle[name] = idle.get(name, 0) + row['idle_ns']
    made = sum(idle.get(name, 0) for name in ('compute', 'middle', 'leaf', 'made')) + sum(
        length for name, length in idle.items() if name.startswith('made_') or name == '<module>')
    all_of_it = sum(idle.values())
    true = truth['compute'] / (truth['compute'] + truth['rest'])
    check(abs(made / all_of_it - true) < NEAR, 'idle time of what computes', made / all_of_it, true, idle)
    check(idle.get('rest', 0) > 0, 'idle time of what sleeps', idle)
    named = [row['site'].split()[-1] for row in sections['idle']['rows'] if row['site']]
    check(sum(name != 'turn' for name in named) > len(named) / 2, 'most gaps name what was done in them', named)


def test_workers_are_seen_from_outside():
    run, truth = run_between(2, workers=2)
    stacks = [(sample, stack) for sample, stack in sampled(run) if sample['process'] in truth['workers']]
    check({sample['process'] for sample, _ in stacks} == set(truth['workers']), 'both workers', truth['workers'])
    check(all(sample['process'] in truth['workers'] for sample, _ in sampled(run) if sample['process']), 'nobody else')
    check_possible([stack for _, stack in stacks])
    computing = sum(any(function == 'compute' for _, function, _ in stack) for _, stack in stacks)
    check(computing > 0, 'a worker computes', len(stacks))
    check_equal(len(run.traces), 1, 'traces: a worker makes none of its own')


def test_workers_with_an_interpreter_of_their_own_are_seen():
    known = sorted(interpreters().items())
    for version, python in known:
        # A fork server's worker is laid out as one that was spawned: the oldest and the newest of them here, all by hand.
        for method in ('spawn', 'forkserver') if FULL or version in (known[0][0], known[-1][0]) else ('spawn',):
            forget_run()
            run, truth = run_between(3, workers=2, python=python, how=[method])
            stacks = [(sample, stack) for sample, stack in sampled(run) if sample['process']]
            check({sample['process'] for sample, _ in stacks} == set(truth['workers']),
                  f'both workers and nobody else, no fork server, {version} {method}', truth['workers'])
            check_possible([stack for _, stack in stacks])
            for pid in truth['workers']:
                own = [stack for sample, stack in stacks if sample['process'] == pid and any(file == PROGRAM for file, _, _ in stack)]
                computing = sum(any(function == 'compute' for _, function, _ in stack) for stack in own)
                check(computing > 5, f'a worker computes, {version} {method}', len(own), len(stacks))
            check_equal(len(run.traces), 1, 'traces: a worker makes none of its own')


FORKS = """
import ctypes, os, signal, threading, time
cuda = ctypes.CDLL('libcuda.so.1')
buffer, context = ctypes.c_uint64(), ctypes.c_void_p()

def in_child():
    while True:
        time.sleep(0.002)

def forks(pids):
    pid = os.fork()
    if pid == 0:
        in_child()
    pids.append(pid)

def in_parent():
    time.sleep(0.01)
    cuda.cuMemsetD8_v2(buffer, 1, ctypes.c_size_t(4096))
    cuda.cuCtxSynchronize()

def main():
    cuda.cuInit(0)
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    cuda.cuCtxSetCurrent(context)
    cuda.cuMemAlloc_v2(ctypes.byref(buffer), ctypes.c_size_t(1 << 20))
    end, pids = time.perf_counter() + 3, []
    while time.perf_counter() < end:
        in_parent()
        if not pids and time.perf_counter() > end - 2.5:
            thread = threading.Thread(target=forks, args=(pids,))
            thread.start()
            while not pids:
                in_parent()
    os.kill(pids[0], signal.SIGKILL)
    os.waitpid(pids[0], 0)

main()
"""


def test_a_worker_that_another_thread_forked_is_where_it_is():
    """What the thread that calls CUDA was in when it was forked lies in its memory still (Keras' PyDataset forks from a thread)."""
    program, known = scratch('forks.py'), sorted(interpreters().items())
    with open(program, 'w', encoding='utf-8') as file:
        file.write(FORKS)
    for version, python in known if FULL else {known[0], known[-1]}:
        forget_run()
        run = traced([python, program])
        check(run.returncode == 0, 'the program came to its end', run.stderr)
        stacks = [[function for _, function, _ in stack] for sample, stack in sampled(run) if sample['process']]
        in_child = sum('in_child' in stack and 'forks' in stack for stack in stacks)
        check(in_child > 5, f'the worker sleeps in its own function, {version}', in_child, len(stacks))
        check(not any('in_parent' in stack or 'main' in stack for stack in stacks), f'nothing of the other thread, {version}', stacks[:3])


def test_a_worker_that_calls_cuda_is_its_own_to_tell():
    run, truth = run_between(6, workers=1, how=['spawn', 'cuda'])
    check_equal(len(run.traces), 2, 'traces')
    seen = [sample['begin_ns'] for sample, _ in sampled(run) if sample['process'] in truth['workers']]
    check(not seen or max(seen) - min(seen) < 3e9, 'it is left alone soon, of six seconds', len(seen), seen[:1] + seen[-1:])


CUDA = """import ctypes
cuda = ctypes.CDLL('libcuda.so.1')
context, buffer = ctypes.c_void_p(), ctypes.c_uint64()
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
cuda.cuMemAlloc_v2(ctypes.byref(buffer), ctypes.c_size_t(1 << 20))
"""
LOKY = CUDA + """
import os, subprocess, sys, time
command = [sys.executable, '-m', 'loky.backend.popen_loky_posix', '--process-name', 'LokyProcess-1']
of_ray = subprocess.Popen(['ray::Map(decode)', '-m', 'another'], executable=sys.executable)
workers = [subprocess.Popen(command), of_ray, subprocess.Popen([sys.executable, '-m', 'another'])]
end = time.perf_counter() + 4
while time.perf_counter() < end:
    cuda.cuMemsetD8_v2(buffer, 1, ctypes.c_size_t(4096))
    cuda.cuCtxSynchronize()
    time.sleep(0.01)
print(*(worker.pid for worker in workers))
for worker in workers:
    worker.kill()
"""


def test_workers_of_loky_and_ray_are_seen_and_other_programs_are_not():
    folder = scratch('modules')
    os.makedirs(os.path.join(folder, 'loky', 'backend'))
    for name in ('loky/backend/popen_loky_posix.py', 'another.py'):
        with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
            file.write('def serves_tasks():\n    while True:\n        sum(range(1000))\n\n\nserves_tasks()\n')
    run = traced([sys.executable, '-c', LOKY], env={'PYTHONPATH': folder})
    check_equal(run.returncode, 0, 'exit code')
    of_loky, of_ray, other = map(int, run.stdout.split())
    for worker in (of_loky, of_ray):
        stacks = [stack for sample, stack in sampled(run) if sample['process'] == worker]
        working = sum(any(function == 'serves_tasks' for _, function, _ in stack) for stack in stacks)
        check(working > 5, 'the worker works', working, len(stacks))
    check(not any(sample['process'] == other for sample, _ in sampled(run)), 'another program is left alone')


def test_a_process_that_multiprocessing_started_anew_has_its_programs_name():
    script = scratch('served.py')
    with open(script, 'w', encoding='utf-8') as file:
        file.write('import multiprocessing\n\ndef serve():\n' + ''.join(f'    {line}\n' for line in CUDA.splitlines()) +
                   '    for i in range(3):\n        cuda.cuMemsetD8_v2(buffer, 1, ctypes.c_size_t(4096))\n\n' +
                   "if __name__ == '__main__':\n    for how in ('spawn', 'forkserver'):\n" +
                   '        process = multiprocessing.get_context(how).Process(target=serve)\n        process.start(), process.join()\n')
    run = traced([sys.executable, script])
    programs = [row['program'] for row in report(run, 'run')['sections']['run']['rows']]
    check_equal(programs, ['served.py (multiprocessing)'] * 2, 'what people call it')
    check(gputrace('report', run.output)[0].startswith('served.py (multiprocessing)'), 'first of all')


# What the device waits for is made by a thread of the program, or comes from outside: the thread that gives it out only sleeps.
WAITS = CUDA + """
import queue, sys, threading, time
asked = queue.Queue()
def make(i):
    end = time.perf_counter() + 0.05
    while sys.argv[1] != 'sleeps' and time.perf_counter() < end: pass
    time.sleep(max(0, end - time.perf_counter()))
    asked.put(i)
def give():
    for i in range(40):
        if sys.argv[1] == 'shortly':
            one = threading.Thread(target=make, args=(i,))  # most are over before anybody looks
            one.start()
            one.join()
        else:
            make(i)
    asked.put(None)
def serve():
    while asked.get() is not None:
        cuda.cuMemsetD8_v2(buffer, 1, ctypes.c_size_t(4096))
threading.Thread(target=give).start()
serve()
"""


def test_waiting_for_others_is_told_with_where_it_comes_from():
    script = scratch('serves.py')
    with open(script, 'w', encoding='utf-8') as file:
        file.write(WAITS)
    line = next(i for i, text in enumerate(WAITS.splitlines(), 1) if 'asked.get()' in text)
    at_work = next(i for i, text in enumerate(WAITS.splitlines(), 1) if 'while sys.argv' in text)
    for version, python in sorted(interpreters().items())[::len(interpreters()) - 1 or 1]:
        for how, words in (('works', 'it waits for other threads or processes'), ('shortly', 'it waits for other threads or processes'),
                           ('sleeps', 'it waits for what comes from outside')):
            forget_run()
            run = traced([python, script, how])
            finding = next(finding for finding in report(run, 'overview')['findings'] if finding['id'] == 'idle-gaps')
            said = finding['evidence']
            check(words in finding['text'], f'{version}, {how}', finding)
            check(said['waits_at'] == f'serves.py:{line} serve' and said['waits_in'].startswith('queue.py '), f'{version}, {how}: where', said)
            waits = said['waits_ns'] + said.get('python_lock_ns', 0)  # the other thread works on while this one has what it waited for
            check(waits > 0.7 * said['cause_ns'], f'{version}, {how}: how long', said)  # of some forty looks
            if how == 'shortly':
                check(0.5 < said['others_cpu_ns'] / said['waits_ns'] < 1.6, f'{version}: what no look saw counts', finding)
                continue
            working = said.get('others'), said.get('others_at', ''), said.get('others_share', 0) > 0.8
            check(working == ('threads', f'serves.py:{at_work} make', True) if how == 'works' else working == (None, '', False),
                  f'{version}, {how}: where the others work', finding)
            gain = said.get('gain_ns', 0) / said['cause_ns']
            check(gain < 0.2 if how == 'sleeps' else gain > 0.5, f'{version}, {how}: gain', finding)


# Threads of C's making call a function of the program's, each once, as TensorFlow's do that run a Python function to make data.
CALLED_BY_C = CUDA + """
import sys, time
library = ctypes.CDLL(sys.argv[1])
def make():
    time.sleep(0.02)
called = ctypes.CFUNCTYPE(None)(make)
for i in range(100):
    library.call_in_a_new_thread(called)
    cuda.cuMemsetD8_v2(buffer, 1, ctypes.c_size_t(4096))
"""
NEW_THREAD = r"""
#include <pthread.h>
static void* run(void* function) { ((void (*)(void))function)(); return 0; }
void call_in_a_new_thread(void (*function)(void)) {
  pthread_t thread;
  pthread_create(&thread, 0, run, (void*)function);
  pthread_join(thread, 0);
}
"""


def test_threads_that_c_makes_for_one_call_are_found_in_it():
    script, library = scratch('called.py'), compiled('new_thread.c', NEW_THREAD, '-shared', '-fPIC', '-lpthread')
    with open(script, 'w', encoding='utf-8') as file:
        file.write(CALLED_BY_C)
    run = traced([sys.executable, script, library])
    check_equal(run.returncode, 0, 'exit code')
    stacks = [(sample['tid'], [function for _, function, _ in stack]) for sample, stack in sampled(run)]
    waiting = sum(tid == 0 for tid, _ in stacks)
    making = {tid for tid, functions in stacks if tid != 0 and 'make' in functions}
    check(waiting > 25, 'looks at the thread that waits', waiting)  # some 50 on a busy machine
    check(3 * len(making) > waiting, 'each of those that it waits for lives for 20 ms, and every second look or so finds one', len(making), waiting)


# What C code does at once under a line of the program's: its frame is that line, what it waits for is for the kernel to tell.
AT_ONE_LINE = CUDA + """
import queue, socket, sys, threading, time
asked, (here, there) = queue.SimpleQueue(), socket.socketpair()
def simple_queue():
    return asked.get()
def socket_recv():
    return here.recv(1)
def sleep():
    time.sleep(0.03)
def gil():
    time.sleep(0.0002)  # the other thread takes the lock meanwhile
def give():
    for i in range(60):
        time.sleep(0.03)
        asked.put(i), there.send(b'x')
def hold():
    while wanted:
        pass
act, wanted = globals()[sys.argv[1]], True
other = threading.Thread(target=hold if act is gil else give)
other.start()
for i in range(200 if act is gil else 60):
    act()
    cuda.cuMemsetD8_v2(buffer, 1, ctypes.c_size_t(4096))
wanted = False
other.join()
"""


def test_what_c_code_waits_for_is_told_by_the_kernel():
    script = scratch('waits.py')
    with open(script, 'w', encoding='utf-8') as file:
        file.write(AT_ONE_LINE)
    line = {name: next(i for i, text in enumerate(AT_ONE_LINE.splitlines(), 1) if of in text)
            for name, of in (('simple_queue', 'asked.get()'), ('socket_recv', 'here.recv'), ('sleep', 'sleep(0.03)'), ('gil', 'sleep(0.0002)'))}
    outside = 'waits for what comes from outside (most of it at waits.py:{} {})'
    kinds = (('simple_queue', 'waits', outside), ('socket_recv', 'waits', outside), ('sleep', 'sleeps', 'sleeps (most of it at waits.py:{} {})'),
             ('gil', 'python_lock', "waits for Python's lock, which other threads hold (most of it at waits.py:"))  # behind either call that gives it away
    for version, python in sorted(interpreters().items())[::len(interpreters()) - 1 or 1]:
        for how, key, words in kinds:
            forget_run()
            run = traced([python, script, how])
            finding = next(finding for finding in report(run, 'overview')['findings'] if finding['id'] == 'idle-gaps')
            said = finding['evidence']
            check(words.format(line[how], how) in finding['text'], f'{version}, {how}', finding)
            check(said[key + '_ns'] > 0.6 * said['cause_ns'], f'{version}, {how}: how long', said)


AS_NOBODY = """
import ctypes, json, multiprocessing, os, sys, time
sys.argv = sys.argv[1:]
with open(sys.argv[0], encoding='utf-8') as file:
    program = compile(file.read(), sys.argv[0], 'exec')
os.setgroups([]); os.setgid(65534); os.setuid(65534)  # from here on the kernel lets nobody else read it
exec(program, {'__name__': '__main__'})
"""


def test_where_the_kernel_refuses_it_is_said():
    if os.getuid() != 0:
        skip('needs root, to become another user')
    above = places.tree
    while above != '/':
        if not os.stat(above).st_mode & 0o001:
            skip(f'another user cannot reach {above}')
        above = os.path.dirname(above)
    folder = scratch('nobody')
    os.mkdir(folder)
    os.chown(folder, 65534, 65534)
    os.chmod(scratch(), 0o711)
    truth = os.path.join(folder, 'truth.json')
    output = os.path.join(folder, 'trace')
    run = traced([sys.executable, '-c', AS_NOBODY, PROGRAM, truth, '0.5'], output=output, env={'SIMGPU_TRUTH': None})
    check(b'done' in run.stdout, 'the program came to its end', run.stdout, run.stderr)
    check_equal(len(sampled(run)), 0, 'samples')
    why = {entry['what']: entry['why'] for entry in report(run)['coverage']['not_collected']}
    check('lines between two CUDA calls are not known' in why.get('samples', ''), 'the reason', why)


# A sidecar that the kernel lets read nobody, as Yama's ptrace_scope 1 does; the program itself and `run` may.
BLIND = r"""
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int count, char** words) {
  struct sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0)) return 1;
  execv(SIDECAR, words);
  return 1;
}
"""


def blind_sidecar():
    return {'GPUTRACE_SIDECAR': compiled('blind.c', BLIND, f'-DSIDECAR="{places.sidecar}"')}


def test_run_looks_where_only_an_ancestor_may():
    run, truth = run_between(6, mode='run', env=blind_sidecar())
    found = [stack for _, stack in sampled(run) if stack[-1][1] != '<module>']
    check(len(found) > 30, 'samples', len(found))
    check_possible(found)
    check_shares(found, truth, 'what run reads')
    for method in ('fork', 'spawn'):
        forget_run()
        run, truth = run_between(3, workers=2, how=[method], mode='run', env=blind_sidecar())
        stacks = sampled(run)
        check_possible([stack for _, stack in stacks])
        check({sample['process'] for sample, _ in stacks} == {0, *truth['workers']}, f'the program and both workers, nobody else, {method}', truth['workers'])


def test_who_was_not_started_by_run_is_told_that_it_would_help():
    run, _ = run_between(0.5, env=blind_sidecar())
    check_equal(len(sampled(run)), 0, 'samples')
    why = {entry['what']: entry['why'] for entry in report(run)['coverage']['not_collected']}
    check('lines between two CUDA calls are not known' in why.get('samples', ''), 'the reason', why)


def test_without_python_nobody_looks():
    run, _ = run_between(0.5, env={'GPUTRACE_COLLECT': 'api,device'})
    check_equal(len(sampled(run)), 0, 'samples')


main()
