# meson: timeout=300
# Device time of several processes: each process's numbers alone, and the report on the folder with all of them, are those of the truth.
from timeline_truth import *

WORKER = f'''
import ctypes, os, sys
sys.path.insert(0, {os.path.join(SOURCE, "tests", "e2e")!r})
from driver import Driver

def work(number, rounds=30):
    d = Driver()
    step, scale = d.kernel('step'), d.kernel('scale')
    a, b, event = d.stream(), d.stream(), ctypes.c_void_p()
    device, host, size = d.alloc(1 << 16), ctypes.create_string_buffer(1 << 16), ctypes.c_size_t
    d('cuEventCreate', ctypes.byref(event), 0)
    for i in range(rounds):
        d('cuMemcpyHtoD_v2', device, host, size(1024 * (number + 1)))
        d.launch(step, grid=(number + 1, 1, 1), stream=a)
        d('cuEventRecord', event, a)
        d('cuStreamWaitEvent', b, event, 0)
        d.launch(scale, stream=b)
        d('cuMemsetD8Async', device, 0, size(4096), a)
        if i % 3 == 0: d('cuCtxSynchronize')
    d('cuCtxSynchronize')
'''
ENV = {'SIMGPU_CLOCK': 'monotonic', 'SIMGPU_KERNEL_TIME': 'step=300us,scale=50us'}


class Part(Run):
    """One process of a run: its trace and its lines of the truth."""

    def __init__(self, run, trace):
        super().__init__(run.command, 0, b'', b'', 0, trace)
        row = report([trace], 'run')['sections']['run']['rows'][0]  # an exec keeps the pid
        self.pid, self.begin = row['pid'], row['begin_ns']
        self.lines = [line for line in run.truth
                      if line['pid'] == self.pid and row['begin_ns'] <= line['call_begin_ns'] <= row['end_ns']]

    traces = property(lambda self: [self.output])
    truth = property(lambda self: self.lines)


def check_processes(text, processes, env=None):
    path = scratch('program.py')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(WORKER + text)
    env = {**ENV, **(env or {})}
    run = traced([sys.executable, path], env)
    same_output(untraced([sys.executable, path], env), run)
    check_equal(run.returncode, 0, 'exit code')
    wait_until(lambda: len(run.traces) == processes, 'a trace of each process')
    parts = [Part(run, trace) for trace in run.traces]
    parts = [part for part in parts if part.lines]
    for part in parts:
        check_timeline(part)
    check_all(run, parts)
    return run, parts


def check_all(run, parts):
    """The folder as a whole: kernels, copies and launches over all processes, device time as the sum of each one's own."""
    operations = device_operations(run, True)
    check_equal(joined(run), (len(operations), len(operations), 0, 0), 'operations, by key, by order, not joined')
    check_kernels(run, operations)
    check_copies(run, operations)
    each = [device_operations(part, True) for part in parts]
    said, wanted = metrics(run), collections.Counter()
    for own in each:
        wanted.update(overview_of(own))
    for name in ('device_span_ns', 'compute_ns', 'exposed_copy_ns', 'idle_ns'):
        check_equal(said[name], wanted[name], name)
    check(abs(said['gpu_busy_ratio'] - wanted['busy'] / wanted['device_span_ns']) < 1e-9, 'busy over the sum of the spans', said)
    check_equal(said['processes'], len(run.traces), 'processes')
    check_equal(said['launches'], sum(len(part.truth_of('kernel')) for part in parts), 'launches')
    check_equal(sorted((row['begin_ns'], row['duration_ns']) for row in rows(run, 'idle')),
                sorted(gap[1:] for own in each for gap in gaps(own)), 'gaps of all')
    causes = rows(run, 'idle-causes')
    check_equal(sum(row['total_ns'] for row in causes), wanted['idle_ns'], 'causes add up')
    check(sum(row['count'] for row in causes) >= sum(len(gaps(own)) for own in each), 'each gap has one at least')
    waits = collections.defaultdict(list)
    for part in parts:
        for symbol, values in launch_waits(part, None).items():
            waits[symbol] += values
    table = {row['kernel']: row for row in rows(run, 'launches')}
    check_equal({symbol: row['launches'] for symbol, row in table.items()}, {symbol: len(values) for symbol, values in waits.items()}, 'launches')
    for symbol, values in waits.items():
        api, queue, latency, gap, device = (list(column) for column in zip(*values))
        check_equal([table[symbol][name] for name in ('api_mean_ns', 'queue_mean_ns', 'latency_mean_ns', 'latency_p99_ns', 'gap_mean_ns', 'short')],
                    [rounded_mean(api), rounded_mean(queue), rounded_mean(latency), nearest_rank(latency, 0.99), rounded_mean(gap),
                     sum(d < a for d, a in zip(device, api))], f'launches of {symbol} over all processes')


def test_two_processes_on_one_device():
    run, parts = check_processes('''
import subprocess
if len(sys.argv) > 1:
    work(int(sys.argv[1]))
else:
    children = [subprocess.Popen([sys.executable, __file__, str(i)]) for i in range(2)]
    sys.exit(sum(child.wait() for child in children))
''', 2)
    check_equal(len(parts), 2, 'both gave work to the device')
    check_equal({row['device'] for row in rows(run, 'kernels')}, {0}, 'they are one device')
    note = [row for row in report(run, 'overview')['sections']['overview']['rows'] if row['metric'] == 'gpu_busy_ratio'][0]['note']
    check('processes share' in note, 'the report says that a device was shared', note)


def test_a_fork_that_executes_another_program():
    _, parts = check_processes('''
if len(sys.argv) > 1:
    work(5)
    sys.exit(0)
child = os.fork()
if child == 0:
    os.execv(sys.executable, [sys.executable, __file__, 'again'])
work(2)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
''', 2)
    check_equal(sorted(max(line['grid'][0] for line in part.truth_of('kernel')) for part in parts), [3, 6], 'who did what')


def test_a_program_that_replaces_itself_loses_what_cupti_holds_and_says_so():
    path = scratch('program.py')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(WORKER + '''
work(1, 12)
if len(sys.argv) == 1:
    os.execv(sys.executable, [sys.executable, __file__, 'again'])
''')
    run = traced([sys.executable, path], ENV)
    same_output(untraced([sys.executable, path], ENV), run)
    wait_until(lambda: len(run.traces) == 2, 'two traces')
    before, after = sorted((Part(run, trace) for trace in run.traces), key=lambda part: part.begin)
    check_timeline(after)
    given, counts = len(device_operations(before, True)), joined(before)
    check_equal((given, len(device_operations(after, True))), (48, 48), 'operations before and after')
    check_equal((counts[0], counts[1:]), (counts[1], (counts[0], 0, 0)), 'what was delivered is joined')
    notes = [row['text'] for row in rows(before, 'quality-notes') if row['what'] == 'join']
    missing = re.search(r'(\d+) calls have no device record', ' '.join(notes))
    check_equal(counts[0] + int(missing[1] if missing else 0), given, 'delivered and missing operations')


def test_four_ranks():
    run, parts = check_processes('''
import subprocess
if len(sys.argv) > 1:
    work(int(os.environ['OMPI_COMM_WORLD_RANK']))
else:
    children = [subprocess.Popen([sys.executable, __file__, 'rank'], env={**os.environ, 'OMPI_COMM_WORLD_RANK': str(rank),
                                 'OMPI_COMM_WORLD_LOCAL_RANK': str(rank), 'OMPI_COMM_WORLD_SIZE': '4'}) for rank in range(4)]
    sys.exit(sum(child.wait() for child in children))
''', 4)
    check_equal(len(parts), 4, 'four processes')
    check_equal(sorted(row['rank'] for row in rows(run, 'run')), [0, 1, 2, 3], 'ranks')


main()
