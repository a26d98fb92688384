# meson: timeout=240
# fork, vfork, posix_spawn, _Fork, clone, exec: the parent's trace stays whole, a child that uses CUDA has a trace of its own.
from against_truth import *

LAUNCHES = 11
HERE = os.path.join(SOURCE, 'tests', 'e2e')


def check_parent(mode, child, when='after', count=3):
    command = [program('drv_fork'), f'mode={mode}', f'child={child}', f'when={when}', f'count={count}', 'exit=3']
    run = traced(command, CALLS)
    same_output(untraced(command), run)
    processes = {row['pid']: row for row in rows(run, 'run')}
    truth = run.truth_of('kernel')
    parent = [pid for pid in {line['pid'] for line in truth} if sum(line['pid'] == pid for line in truth) == LAUNCHES]
    check(len(parent) == 1 and parent[0] in processes, 'the parent has a trace', parent, processes)
    trace = processes[parent[0]]['file']
    check_call_by_call(run, pid=parent[0], trace=trace)
    check_equal(metrics(trace)['launches'], LAUNCHES, 'launches of the parent')
    check_conservation(run)
    return run, parent[0], processes


def test_children_that_leave_or_execute():
    for mode in ('fork', 'vfork', 'posix_spawn', '_Fork', 'clone'):
        for child in ('exit', 'exec'):
            run, parent, processes = check_parent(mode, child)
            check_equal(list(processes), [parent], f'{mode}, {child}: no trace but the parent\'s')
            forget_run()


def test_children_that_call_cuda_after_the_fork():
    # The driver refuses a forked child (error 3): its failing call is the child's, never the parent's.
    for mode in ('fork', '_Fork', 'clone'):
        run, parent, processes = check_parent(mode, 'init', count=2)
        check_equal(run.stdout.count(b'child: cuInit 3') + run.stdout.count(b'child: cuInit 0'), 2, f'what cuInit said in the children ({mode})')
        forget_run()


def test_children_that_use_cuda_before_the_parent_does():
    for mode in ('fork', '_Fork', 'clone'):
        run, parent, processes = check_parent(mode, 'init', when='before', count=3)
        check_equal(len(processes), 4, f'{mode}: a trace for each process')
        for pid, row in processes.items():
            if pid != parent:
                check_equal(metrics(row['file'])['launches'], 4, f'launches of a child ({mode})')
                check_call_by_call(run, pid=pid, trace=row['file'])
        forget_run()


COMPUTING = r'''
import os, sys, time
sys.path.insert(0, sys.argv[1])
from driver import Driver
d = Driver()
k = d.kernel('step')
for i in range(100): d.launch(k)
children = []
for how in ('idle', 'compute', 'files'):
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        if how == 'idle': time.sleep(0.3)
        if how == 'compute': sum(i * i for i in range(500000))
        if how == 'files': [open('/dev/null') for _ in range(300)]
        os._exit(0)
    children.append(pid)
for i in range(100): d.launch(k)
print([os.waitpid(pid, 0)[1] for pid in children])
'''


def test_children_that_never_call_cuda():
    command = [sys.executable, '-c', COMPUTING, HERE]
    run = traced(command, CALLS)
    same_output(untraced(command), run)
    check_equal(len(run.traces), 1, 'trace files')
    check_equal(check_launches_against_truth(run), 200, 'launches')
    check_conservation(run)


def test_the_parent_dies_and_the_child_lives():
    text = COMPUTING.replace("if how == 'idle': time.sleep(0.3)", "if how == 'idle': time.sleep(2.5)").replace("print([os.waitpid(pid, 0)[1] for pid in children])", 'os._exit(0)')
    began = time.monotonic()
    run = traced([sys.executable, '-c', text, HERE], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, wait=False)
    sidecar_gone = wait_until(lambda: 'ended' in json.dumps(report(run)['sections']['run']) or report(run)['coverage']['truncated'] is False, 'the end of the trace', 8)
    check(sidecar_gone and time.monotonic() - began < 8, 'the sidecar ends with the parent, not with its child')
    check(not wait_for_orphans(15), 'all end')
    check_equal(metrics(run)['launches'], 200, 'launches')


def test_exec_of_itself():
    command = [program('drv_exec'), 'times=4', 'exit=6']
    run = traced(command)
    plain = untraced(command)
    strip = lambda out: re.sub(rb'pid \d+', b'pid', out)
    check_equal((run.returncode, strip(run.stdout), run.stderr), (6, strip(plain.stdout), plain.stderr), 'exit code and output')
    check_equal(len(run.traces), 5, 'each image has a trace')
    check_equal(sorted(metrics(trace)['launches'] for trace in run.traces), [10] * 5, 'launches of each')
    check_equal({row['pid'] for row in rows(run, 'run')}.__len__(), 1, 'one process id')
    check_equal(metrics(run)['launches'], 50, 'launches in all')
    check_conservation(run)


def test_exec_of_a_program_without_cuda():
    run = traced([sys.executable, '-c', COMPUTING.split('children = []')[0] + 'os.execv("/bin/echo", ["echo", "hello"])', HERE])
    check_equal((run.returncode, run.stdout), (0, b'hello\n'), 'exit code and output')
    check_equal(metrics(run)['launches'], 100, 'launches before the exec')


def test_the_child_inherits_no_descriptor():
    text = COMPUTING.split('children = []')[0] + 'import subprocess; subprocess.run(["ls", "-l", "/proc/self/fd"], close_fds=False)'
    run = traced([sys.executable, '-c', text, HERE])
    check(b'memfd' not in run.stdout and b'gputrace' not in run.stdout, 'no descriptor of ours goes through an exec', run.stdout)


def test_parallel_processes_in_one_directory():
    count = 300 if FULL else 12
    processes = [start([program('drv_linked'), 'count=5'], traced_environment()) for _ in range(count)]
    for process in processes:
        check_equal(finish(process)[0], 0, 'exit code')
    check(not wait_for_orphans(), 'the sidecars end')
    check_equal(len(glob.glob(scratch('trace', '*.gtrace'))), count, 'a file for each')
    check_equal(metrics(scratch('trace'))['launches'], 35 * count, 'launches in all')
    check_equal(len({row['pid'] for row in rows(scratch('trace'), 'run')}), count, 'processes')


main()
