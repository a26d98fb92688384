"""Device time as the truth of the simulated GPU tells it: what kernels, launches, copies, idle and overview must say, computed
by brute force from the truth's lines (and, for host times, from the records of the calls)."""
import collections
import math
import re

from harness import *

CAPTURED, PER_THREAD = 2, 1
NON_BLOCKING = 1


def device_operations(run, whole_graphs):
    """Every operation that a device did: dicts with start, end, device, kind ('kernel' 'copy' 'memset' 'graph'), line. whole_graphs:
    replays count as one operation each, their nodes as none (CUPTI's graph level)."""
    found = []
    for line in run.truth:
        in_graph = line.get('graph') is not None
        if line['op'] == 'graph_launch' and whole_graphs:
            found.append({'kind': 'graph', 'start': line['start_ns'], 'end': line['end_ns'], 'line': line})
        if line['op'] not in ('kernel', 'copy', 'memset') or (in_graph and whole_graphs):
            continue
        if line['op'] != 'kernel' and line['bytes'] == 0:
            continue
        found.append({'kind': line['op'], 'start': line['start_ns'], 'end': line['end_ns'], 'line': line})
    for operation in found:
        operation['device'] = operation['line'].get('device', 0)
    return sorted(found, key=lambda operation: operation['start'])


def on_a_device(operations):
    """Without copies from host to host, which CUPTI reports like the others."""
    return [o for o in operations if o['kind'] != 'copy' or o['line']['kind'] != 'HtoH']


def union(intervals):
    """Sorted disjoint intervals that cover the same instants."""
    merged = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged


def length(intervals):
    return sum(end - start for start, end in union(intervals))


def gaps(operations):
    """(device, begin, duration) of every time between a device's first and last activity in which it did nothing."""
    found, operations = [], on_a_device(operations)
    for device in {operation['device'] for operation in operations}:
        busy = union([(o['start'], o['end']) for o in operations if o['device'] == device])
        found += [(device, a[1], b[0] - a[1]) for a, b in zip(busy, busy[1:])]
    return sorted(found)


def overview_of(operations):
    """Of every device, by its span: what the overview's device metrics must be."""
    sums, operations = collections.Counter(), on_a_device(operations)
    for device in {operation['device'] for operation in operations}:
        own = [o for o in operations if o['device'] == device]
        compute = [(o['start'], o['end']) for o in own if o['kind'] in ('kernel', 'graph')]
        copies = [(o['start'], o['end']) for o in own if o['kind'] in ('copy', 'memset')]
        sums['device_span_ns'] += max(o['end'] for o in own) - min(o['start'] for o in own)
        sums['busy'] += length(compute + copies)
        sums['compute_ns'] += length(compute)
        sums['exposed_copy_ns'] += length(compute + copies) - length(compute)
    sums['idle_ns'] = sums['device_span_ns'] - sums['busy']
    return dict(sums)


def nearest_rank(values, p):
    return sorted(values)[max(0, math.ceil(p * len(values) - 1e-9) - 1)]


def rounded_mean(values):
    return (sum(values) + len(values) // 2) // len(values)


def kernel_times(operations):
    times = collections.defaultdict(list)
    for operation in operations:
        line = operation['line']
        if operation['kind'] == 'kernel':
            key = (line['symbol'], line['device'], ','.join(map(str, line['grid'])), ','.join(map(str, line['block'])), line['dynamic_shared_bytes'])
            times[key].append(operation['end'] - operation['start'])
    return times


def check_kernels(run, operations):
    wanted = kernel_times(operations)
    total = sum(sum(values) for values in wanted.values())
    got = {}
    for row in rows(run, 'kernels'):
        key = (row['symbol'], row['device'], row['grid'], row['block'], row['dynamic_shared_bytes'])
        if row['total_ns'] is not None:
            check(key not in got, 'one row for a kernel in a shape', row)
            got[key] = row
    check_equal(set(got), set(wanted), 'kernels with times')
    for key, values in wanted.items():
        row = got[key]
        expected = {'total_ns': sum(values), 'mean_ns': rounded_mean(values), 'median_ns': nearest_rank(values, 0.5), 'min_ns': min(values),
                    'max_ns': max(values), 'p99_ns': nearest_rank(values, 0.99)}
        check_equal({name: row[name] for name in expected}, expected, f'times of {key}')
        check(abs(row['share'] - sum(values) / total) < 1e-9, 'share', row['share'], sum(values) / total)
    untimed = not wanted and run.truth_of('kernel')  # in replays that are seen as a whole
    check_equal(metrics(run).get('kernel_ns'), None if untimed else total, 'sum over kernels')
    return total


def check_copies(run, operations):
    wanted = collections.defaultdict(lambda: [0, 0])
    for operation in operations:
        line = operation['line']
        if operation['kind'] in ('copy', 'memset'):
            key = (line['kind'] if operation['kind'] == 'copy' else 'memset', line['device'])
            wanted[key][0] += operation['end'] - operation['start']
            wanted[key][1] += line['bytes']
    got = collections.defaultdict(lambda: [0, 0])
    for row in rows(run, 'copies'):
        if row['total_ns'] is None:
            continue
        got[row['kind'], row['device']][0] += row['total_ns']
        check(row['timed'] <= row['count'], 'not more were timed than there were', row)
        if row['timed'] == row['count'] and row['total_ns']:
            got[row['kind'], row['device']][1] += row['bytes']
            check(abs(row['bandwidth'] - row['bytes'] * 1e9 / row['total_ns']) <= 1, 'bandwidth', row)
    check_equal({key: value[0] for key, value in got.items()}, {key: value[0] for key, value in wanted.items()}, 'time of copies and memsets')


def check_idle(run, operations):
    said = sorted((row['device'], row['begin_ns'], row['duration_ns']) for row in rows(run, 'idle'))
    check_equal(said, gaps(operations), 'gaps')
    check(all(row['cause'] for row in rows(run, 'idle')), 'every gap has a cause, or says unknown')


def check_overview(run, operations):
    said, wanted = metrics(run), overview_of(operations)
    for name in ('device_span_ns', 'compute_ns', 'exposed_copy_ns', 'idle_ns'):
        check_equal(said[name], wanted[name], name)
    check(abs(said['gpu_busy_ratio'] - wanted['busy'] / wanted['device_span_ns']) < 1e-9, 'gpu_busy_ratio', said)
    check(abs(said['gpu_busy_ratio'] + said['gpu_idle_ratio'] - 1) < 1e-9, 'busy + idle = span', said)
    check_equal(said['compute_ns'] + said['exposed_copy_ns'] + said['exposed_collective_ns'] + said['idle_ns'], said['device_span_ns'],
                'compute + exposed copies + exposed collectives + idle = span')


class Dependencies:
    """What must have ended before an operation starts, by the rules of streams and events; brute force, sets without a bound."""

    def __init__(self):
        self.streams, self.events, self.blocking, self.all = collections.defaultdict(set), {}, {}, []

    def name(self, record):
        handle = record['stream'] or (2 if record['flags'] & PER_THREAD else 1)
        return (record['context'], handle, record['tid'] if handle == 2 else 0)

    def give(self, stream, ends):
        """`ends`: a list that will hold the operation's end. Returns the ends that it waits for."""
        waits = set(self.streams[stream])
        legacy = (stream[0], 1, 0)
        if stream == legacy:
            waits |= {i for i, (other, _) in enumerate(self.all) if other[0] == stream[0] and self.blocking.get(other[1], True)}
        elif self.blocking.get(stream[1], True):
            waits |= {i for i, (other, _) in enumerate(self.all) if other == legacy}
        self.all.append((stream, ends))
        self.streams[stream] = {len(self.all) - 1}
        return [self.all[i][1] for i in waits]


def launch_waits(run, operations):
    """{symbol: [(api, queue, latency, gap, device time)]} of plain launches: host times from the records, device times from the truth."""
    truth = collections.defaultdict(list)
    for line in run.truth:
        in_graph = line.get('graph') is not None
        if line['op'] in ('kernel', 'copy', 'memset', 'graph_launch') and not in_graph and line['result'] == 0:
            truth[line['tid']].append(line)
    for lines in truth.values():
        lines.sort(key=lambda line: line['seq'])
    handed = collections.Counter()
    model, waits = Dependencies(), collections.defaultdict(list)
    ends_of_graphs = {}
    calls = [record for record in dump(run) if record['record'] in ('KernelLaunch', 'GraphLaunch', 'Copy', 'Memset', 'StreamOrder', 'ObjectCall')]
    pending = []
    for record in sorted(calls, key=lambda record: record['end_ns']):
        if record['result'] or record.get('flags', 0) & CAPTURED:
            continue
        kind = record['record']
        if kind == 'ObjectCall':
            if record['kind_name'] == 'stream' and record['what_name'] == 'created':
                model.blocking[record['object']] = not record['value'] & NON_BLOCKING
            continue
        if kind == 'StreamOrder':
            stream = model.name(record)
            if record['what_name'] == 'event-record':
                model.events[record['object']] = set(model.streams[stream])
            elif record['what_name'] == 'stream-wait-event':
                model.streams[stream] |= model.events.get(record['object'], set())
            continue
        tid = record['tid']
        line = truth[tid][handed[tid]]
        handed[tid] += 1
        check(record['begin_ns'] <= line['call_begin_ns'] and line['call_end_ns'] <= record['end_ns'], 'record and truth belong together', record, line)
        before = model.give(model.name(record), [line['end_ns']])
        if kind != 'KernelLaunch':
            continue
        ready = max([record['end_ns']] + [end[0] for end in before])
        waits[line['symbol']].append((record['end_ns'] - record['begin_ns'], max(0, line['start_ns'] - record['end_ns']),
                                      max(0, line['start_ns'] - record['begin_ns']), max(0, line['start_ns'] - ready),
                                      line['end_ns'] - line['start_ns']))
    return waits


def check_launches(run):
    wanted = launch_waits(run, None)
    symbols = {row['kernel']: row['symbol'] for row in rows(run, 'kernels')}
    got = {symbols[row['kernel']]: row for row in rows(run, 'launches')}
    check_equal({symbol: row['launches'] for symbol, row in got.items()}, {symbol: len(values) for symbol, values in wanted.items()}, 'launches')
    for symbol, values in wanted.items():
        api, queue, latency, gap, device = (list(column) for column in zip(*values))
        expected = {'api_mean_ns': rounded_mean(api), 'api_p99_ns': nearest_rank(api, 0.99), 'queue_mean_ns': rounded_mean(queue),
                    'latency_mean_ns': rounded_mean(latency), 'latency_median_ns': nearest_rank(latency, 0.5),
                    'latency_p99_ns': nearest_rank(latency, 0.99), 'gap_mean_ns': rounded_mean(gap),
                    'short': sum(d < a for d, a in zip(device, api))}
        check_equal({name: got[symbol][name] for name in expected}, expected, f'launches of {symbol}')


def joined(run):
    """(operations, by key, by order, not at all) as the report says them, over all processes."""
    sums = [0, 0, 0, 0]
    for row in rows(run, 'quality-notes'):
        if row['what'] == 'join':
            numbers = re.search(r'(\d+) device operations joined to their calls: (\d+) by correlation id, (\d+) by order, (\d+) not', row['text'])
            check(numbers, 'the note on the join', row)
            sums = [a + int(b) for a, b in zip(sums, numbers.groups())]
    return tuple(sums)


def clock_error(run):
    """The bound on the device's clock that the report states, in ns."""
    notes = [re.search(r'within (\d+) ns', row['text']) for row in rows(run, 'quality-notes') if row['what'] == 'clock']
    check(notes and notes[0], 'the note on the clock', notes)
    return max(int(found[1]) for found in notes if found)


def check_lengths(run, whole_graphs=False):
    """What a clock that is shifted against ours must leave exact: lengths; and instants within the bound that the report states."""
    operations = device_operations(run, whole_graphs)
    check_kernels(run, operations)
    check_copies(run, operations)
    check_overview(run, operations)
    said = sorted((row['device'], row['begin_ns'], row['duration_ns']) for row in rows(run, 'idle'))
    wanted, error = gaps(operations), clock_error(run)
    check_equal([row[2] for row in said], [row[2] for row in wanted], 'lengths of the gaps')
    for got, truth in zip(said, wanted):
        check(abs(got[1] - truth[1]) <= error, 'a gap begins within the bound of where the truth has it', got, truth, error)
    return operations


def check_timeline(run, whole_graphs=False):
    """Every device number of the report against the truth; for runs on a clock that is the host's (SIMGPU_CLOCK=monotonic)."""
    operations = device_operations(run, whole_graphs)
    check(operations, 'the program gave work to a device')
    check_equal(report(run)['coverage']['device_timing'], 'cupti', 'device timing')
    check_equal(joined(run), (len(operations), len(operations), 0, 0), 'operations, by key, by order, not joined')
    check_kernels(run, operations)
    check_copies(run, operations)
    check_idle(run, operations)
    check_overview(run, operations)
    check_launches(run)
    return operations
