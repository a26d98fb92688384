"""The launch queues of the streams by brute force: when each operation was launched, from the records of the calls, and when it started,
from the truth of the simulated GPU."""
from timeline_truth import *


def operations_with_calls(run):
    """[(record, line)] of every operation that a call gave to a device, in the order of the calls' ends; members of a batch share a record's
    call."""
    truth = collections.defaultdict(list)
    for line in run.truth:
        if line['op'] in ('kernel', 'copy', 'memset', 'graph_launch') and line.get('graph') is None and line['result'] == 0:
            truth[line['tid']].append(line)
        elif line['op'] == 'graph_launch' and line['result'] == 0:
            truth[line['tid']].append(line)
    for lines in truth.values():
        lines.sort(key=lambda line: line['seq'])
    pairs = []
    for record in sorted(records(run, 'KernelLaunch', 'GraphLaunch', 'Copy', 'Memset'), key=lambda record: record['end_ns']):
        if record['result'] or record.get('flags', 0) & CAPTURED:
            continue
        line = truth[record['tid']].pop(0)
        check(record['begin_ns'] <= line['call_begin_ns'] and line['call_end_ns'] <= record['end_ns'], 'record and truth belong together', record, line)
        pairs.append((record, line))
    return pairs


def depth_class(depth):
    return 0 if depth == 0 else 1 << (depth.bit_length() - 1)


class Queue:
    """One stream: [(launch, start, time in the call or None)]."""

    def __init__(self, operations):
        self.launches, self.starts, self.calls, newest = [], [], [], 0
        for launch, start, call in sorted(operations, key=lambda each: each[1]):
            newest = max(newest, launch)
            self.launches.append(newest)
            self.starts.append(max(start, newest))
            self.calls.append(call)
        self.time, self.found, self.found_ns = collections.Counter(), collections.Counter(), collections.Counter()
        steps = sorted([(at, 1) for at in self.launches] + [(at, -1) for at in self.starts])
        depth, before = 0, steps[0][0]
        self.steps = []
        for at, step in steps:
            if at > before:
                self.time[depth_class(depth)] += at - before
                self.steps.append((before, at, depth))
            depth, before = depth + step, at
        self.depths = [sum(start > launch for start in self.starts[:i]) for i, launch in enumerate(self.launches)]
        for found, call in zip(self.depths, self.calls):
            if call is not None:
                self.found[depth_class(found)] += 1
                self.found_ns[depth_class(found)] += call

    def span(self):
        return sum(self.time.values())

    def area(self):
        return sum((to - at) * depth for at, to, depth in self.steps)

    def between(self, begin, end):
        """(depth × ns, deepest) in that time."""
        pieces = [(min(to, end) - max(at, begin), depth) for at, to, depth in self.steps if at < end and to > begin]
        return sum(length * depth for length, depth in pieces), max((depth for _, depth in pieces), default=0)


def queues(run):
    streams, calls = collections.defaultdict(list), set()
    for record, line in operations_with_calls(run):
        if line['op'] in ('copy', 'memset') and line['bytes'] == 0:
            continue
        call = (record['tid'], record['begin_ns'], record['call'])
        first = call not in calls
        calls.add(call)
        stream = streams[line.get('device', 0), line['stream']]
        stream.append([record['begin_ns'], line['start_ns'], record['end_ns'] - record['begin_ns'] if first else None])
    return {key: Queue(operations) for key, operations in streams.items()}


def check_queues(run):
    wanted = queues(run)
    got = collections.defaultdict(dict)
    for row in rows(run, 'queue'):
        got[row['device'], row['stream']][row['queued_from']] = row
    check_equal(set(got), set(wanted), 'streams')
    by_stream = {(row['device'], row['stream']): row for row in rows(run, 'streams')}
    course = collections.defaultdict(list)
    for row in rows(run, 'queue-timeline'):
        course[row['device'], row['stream']].append(row)
    for key, queue in wanted.items():
        said = got[key]
        check_equal({depth: row['time_ns'] for depth, row in said.items() if row['time_ns']}, dict(queue.time), f'time by depth of stream {key}')
        check_equal({depth: row['calls'] for depth, row in said.items() if row['calls']}, dict(queue.found), f'calls by depth of stream {key}')
        check_equal({depth: row['api_total_ns'] for depth, row in said.items() if row['calls']}, dict(queue.found_ns), f'time in calls of stream {key}')
        for row in said.values():
            check(queue.span() == 0 or abs(row['share'] - row['time_ns'] / queue.span()) < 1e-9, 'share', row)
        row = by_stream[key]
        check_equal(row['queue_deepest'], max(depth + 1 for depth in queue.depths), f'deepest of stream {key}')
        if queue.span():
            check(abs(row['queue_mean'] - queue.area() / queue.span()) < 1e-9, 'mean', row, queue.area(), queue.span())
            check(abs(row['queue_empty_ratio'] - queue.time[0] / queue.span()) < 1e-9, 'empty', row)
            check_equal(row['queue_full_ns'], sum(time for depth, time in queue.time.items() if depth >= 1024), 'full')
        check_equal(sum(each['duration_ns'] for each in course[key]), queue.span(), f'the course covers the span of stream {key}')
        for each in course[key]:
            area, deepest = queue.between(each['at_ns'], each['at_ns'] + each['duration_ns'])
            check(abs(each['mean'] * each['duration_ns'] - area) <= 1e-6 * max(area, 1), 'mean of an interval', each, area)
            check_equal(each['deepest'], deepest, f'deepest of an interval of stream {key}')
    return wanted
