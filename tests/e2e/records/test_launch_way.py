# meson: timeout=300
# The way of a launch: into the command buffer, to the device, to its start; and how deep the queues of the streams were, over time.
from queue_truth import *

LATENCY = {'GPUTRACE_COLLECT': 'api,device,latency', 'GPUTRACE_GRAPHS': 'node', 'SIMGPU_CLOCK': 'monotonic', 'SIMGPU_TRUTH_CALLS': '1'}
STAMPS = ('call_to_queued_mean_ns', 'queued_to_submitted_mean_ns', 'submitted_to_start_mean_ns', 'queued_to_submitted_p99_ns',
          'submitted_to_start_p99_ns', 'stamped')


def stamps_of(run):
    """{symbol: [(call begin → queued, queued → submitted, submitted → start)]} of plain launches: host times from the records of the
    calls, stamps as the simulated CUPTI makes them: a quarter and a half of the way from the driver's call to the start."""
    truth = collections.defaultdict(list)
    for line in run.truth_of('kernel'):
        if line.get('graph') is None and line['result'] == 0:
            truth[line['tid']].append(line)
    for lines in truth.values():
        lines.sort(key=lambda line: line['seq'])
    found = collections.defaultdict(list)
    for record in sorted(records(run, 'KernelLaunch'), key=lambda record: record['end_ns']):
        if record['result'] or record.get('flags', 0) & CAPTURED:
            continue
        line = truth[record['tid']].pop(0)
        way = line['start_ns'] - line['call_begin_ns']
        queued, submitted = line['call_begin_ns'] + way // 4, line['call_begin_ns'] + way // 2
        found[line['symbol']].append((max(0, queued - record['begin_ns']), submitted - queued, line['start_ns'] - submitted))
    return found


def check_stamps(command, env=None):
    run = traced(command, {**LATENCY, **(env or {})})
    same_output(untraced(command, {**LATENCY, **(env or {})}), run)
    wanted = stamps_of(run)
    symbols = {row['kernel']: row['symbol'] for row in rows(run, 'kernels')}
    got = {symbols[row['kernel']]: row for row in rows(run, 'launches')}
    check_equal(set(got), set(wanted), 'kernels')
    for symbol, values in wanted.items():
        to_queued, in_buffer, to_start = (list(column) for column in zip(*values))
        expected = dict(zip(STAMPS, (rounded_mean(to_queued), rounded_mean(in_buffer), rounded_mean(to_start), nearest_rank(in_buffer, 0.99),
                                     nearest_rank(to_start, 0.99), len(values))))
        check_equal({name: got[symbol][name] for name in STAMPS}, expected, f'stamps of {symbol}')
        parts = sum(expected[name] for name in STAMPS[:3])
        check(abs(parts - got[symbol]['latency_mean_ns']) <= 2, 'the parts are the whole latency', got[symbol])
    return run


def test_stamps_of_a_program_with_streams():
    check_stamps([program('streams_shared')])


def test_stamps_of_plain_launches_and_none_of_graphs():
    check_stamps([program('graphs_shared')])


def test_stamps_are_in_csv_and_text():
    run = check_stamps([program('launches_shared')])
    table = gputrace('report', run.output, '--section', 'launches', '--format', 'csv')[0]
    heads = [line for line in table.splitlines() if line.startswith('kernel,')]
    check(heads and all(name in heads[0] for name in STAMPS), 'columns', table[:600])
    shown = gputrace('report', run.output, '--section', 'launches', env={'COLUMNS': '200'})[0]
    check('queued = the launch was put into the command buffer' in ' '.join(shown.split()), 'what it means', shown)


def test_without_latency_they_are_absent_with_the_reason():
    run = traced([program('launches_shared')], {**LATENCY, 'GPUTRACE_COLLECT': 'api,device'})
    notes = json.dumps(report(run, 'launches')['sections']['launches'])
    check('not asked for (GPUTRACE_COLLECT)' in notes, 'the reason', notes[:800])
    for row in rows(run, 'launches'):
        check_equal([row[name] for name in STAMPS], [None] * 5 + [0], 'no stamps')


EXACT = {'SIMGPU_CLOCK': 'monotonic', 'GPUTRACE_GRAPHS': 'launch'}


def test_queues_of_streams_and_events():
    run = traced([program('streams_shared')], EXACT)
    check(len(check_queues(run)) > 2, 'streams')


def test_queues_with_copies():
    check_queues(traced([program('memory_shared')], EXACT))


def test_queues_with_graphs():
    check_queues(traced([program('graphs_shared')], EXACT))


BURST = f'''
import sys
sys.path.insert(0, {os.path.join(SOURCE, "tests", "e2e")!r})
from driver import Driver
d = Driver()
k, s = d.kernel('step'), d.stream()
for i in range(1500): d.launch(k, stream=s)
d('cuCtxSynchronize')
for i in range(20):
    d.launch(k, stream=s)
    d('cuCtxSynchronize')
'''


def burst(env):
    path = scratch('burst.py')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(BURST)
    run = traced([sys.executable, path], {**EXACT, 'SIMGPU_KERNEL_TIME': 'step=1ms', 'SIMGPU_CALL_TIME': '0', **env})
    check_equal(run.returncode, 0, 'exit code')
    return run, check_queues(run)


def check_blocked(run, queue):
    """Calls above 50 us behind 512 and more: by a full queue, or because the machine was busy then."""
    wanted = [call for depth, call in zip(queue.depths, queue.calls) if depth + 1 >= 512 and call > 50_000]
    table = rows(run, 'launches')
    check_equal((sum(row['blocked'] for row in table), sum(row['blocked_ns'] for row in table)), (len(wanted), sum(wanted)), 'blocked, and how long')
    return len(wanted)


def test_a_queue_without_limit():
    run, found = burst({})
    queue = max(found.values(), key=lambda queue: len(queue.launches))
    check(queue.time[1024] > 0, 'more than 1024 were waiting', queue.time)
    check_blocked(run, queue)


def test_launches_that_a_full_queue_held_back():
    run, found = burst({'SIMGPU_QUEUE': '600'})
    queue = max(found.values(), key=lambda queue: len(queue.launches))
    held = check_blocked(run, queue)
    check(held > 100, 'launches were held back', held)
    full = [row for row in rows(run, 'queue') if row['queued_from'] == 512][0]
    few = [row for row in rows(run, 'queue') if row['queued_from'] == 64][0]
    check(full['api_mean_ns'] > max(100_000, few['api_mean_ns']), 'launching costs more where the queue is full', full, few)


main()
