"""Why a device was idle, by the definition (docs/decisions/0040) and brute force: the gaps and what the next operation waited for from the
truth of the simulated GPU, what the launching thread did from the records of its calls."""
from queue_truth import *

LAUNCH_WAY, DISPATCH, FULL = 10_000, 30_000, 512
MEANING = {'KernelLaunch': 'launch', 'GraphLaunch': 'launch', 'Copy': 'copy', 'Memset': 'copy', 'Sync': 'synchronization', 'Alloc': 'allocation',
           'Free': 'allocation', 'ModuleLoad': 'module load', 'FunctionGet': 'module load', 'GraphInstantiate': 'module load', 'StreamOrder': 'order'}
RANK = ['module load', 'allocation', 'synchronization', 'copy', 'launch', 'order', 'other']
BLOCKS = ('module load', 'allocation', 'synchronization', 'copy')


def key_of(line):
    return line['pid'], line['tid'], line['seq'], line['op'], line['start_ns']


def outermost_calls(run):
    """{tid: [(begin, end, meaning)]}: a call takes the weightiest meaning of those within it."""
    by_thread = collections.defaultdict(list)
    spans = {(r['tid'] or r.get('thread'), r['begin_ns'], r['end_ns'], MEANING.get(r['record'], 'other')) for r in dump(run)
             if r.get('call') and r['end_ns'] > r['begin_ns'] and not r['record'].startswith('Device')}
    for tid, begin, end, meaning in sorted(spans, key=lambda s: (s[0], s[1], -s[2])):
        calls = by_thread[tid]
        if calls and end <= calls[-1][1]:
            calls[-1][2] = min(calls[-1][2], meaning, key=RANK.index)
        else:
            calls.append([begin, end, meaning])
    return by_thread


def waited_for(run, pairs):
    """{key of a line: the latest end of what it had to wait for}: its stream, events, the legacy stream."""
    model, found = Dependencies(), {}
    steps = [(record, None) for record in records(run, 'StreamOrder', 'ObjectCall')] + pairs
    for record, line in sorted(steps, key=lambda step: step[0]['end_ns']):
        if record['result'] or record.get('flags', 0) & CAPTURED:
            continue
        if line is not None:
            before = model.give(model.name(record), [line['end_ns']])
            found[key_of(line)] = max((end[0] for end in before), default=0)
        elif record['record'] == 'ObjectCall':
            if record['kind_name'] == 'stream' and record['what_name'] == 'created':
                model.blocking[record['object']] = not record['value'] & NON_BLOCKING
        else:
            stream = model.name(record)
            if record['what_name'] == 'event-record':
                model.events[record['object']] = set(model.streams[stream])
            elif record['what_name'] == 'stream-wait-event':
                model.streams[stream] |= model.events.get(record['object'], set())
    return found


OWN_SUM = 0x40000000  # our thread's CPU time: no place in time


def overhead(run):
    """{tid: disjoint intervals in which CUPTI or we held the thread}, as CUPTI's overhead records say."""
    held = collections.defaultdict(list)
    for record in records(run, 'DeviceOverhead'):
        if record['kind'] != OWN_SUM and record['thread']:
            held[record['thread']].append((record['start'], record['finish']))
    return {tid: union(intervals) for tid, intervals in held.items()}


def parts_of(gap_begin, gap_end, record, line, waited, depth, calls, held, error):
    """{cause: ns that there would not be without it}."""
    parts = collections.Counter()

    def own(begin, end):
        """What is left of [begin, end) without the profiler."""
        taken = sum(max(0, min(end, to) - max(begin, at)) for at, to in held)
        if taken:
            parts['profiler'] += taken
        return max(0, end - begin) - taken
    called = min(max(record['begin_ns'], gap_begin), gap_end)
    done = gap_begin
    for begin, end, meaning in calls:
        if end <= gap_begin - error or begin >= called:
            continue
        parts['host late'] += own(done, max(done, min(begin, called)))
        done = max(done, min(end, called))
        cause = meaning if meaning in BLOCKS else 'launch-bound' if meaning in ('launch', 'order') else 'host late'
        whole = end <= called and meaning in BLOCKS
        parts[cause] += own(begin if whole else max(begin, gap_begin), max(min(end, called), begin if whole else max(begin, gap_begin)))
    parts['host late'] += own(done, called)
    if waited <= record['end_ns'] or gap_end - record['begin_ns'] <= LAUNCH_WAY:
        way = 'copy' if line['op'] in ('copy', 'memset') else 'queue full' if depth >= FULL else 'launch-bound'
        returned = min(max(record['end_ns'], called), gap_end)
        parts[way] += own(called, returned) + gap_end - returned
    else:
        free = min(max(waited, gap_begin), gap_end)
        if free > gap_begin + error:
            parts['other stream'] += free - gap_begin
        if gap_end - free <= DISPATCH:
            parts['dispatch'] += gap_end - free
    return {cause: min(part, gap_end - gap_begin) for cause, part in parts.items() if part > 0}


def judged(run):
    """[(device, begin, duration, {cause: ns})] of every gap, and the clock's error."""
    pairs = operations_with_calls(run)
    by_line = {key_of(line): (record, line) for record, line in pairs}
    waits, calls, error = waited_for(run, pairs), outermost_calls(run), clock_error(run)
    depths, held = {}, overhead(run)
    streams = collections.defaultdict(list)
    for record, line in pairs:
        streams[line.get('device', 0), line['stream']].append((line['start_ns'], record['begin_ns'], key_of(line)))
    for operations in streams.values():
        operations.sort()
        for i, (_, launch, key) in enumerate(operations):
            depths[key] = 1 + sum(start > launch for start, _, _ in operations[:i])
    found = []
    operations = on_a_device(device_operations(run, True))
    for device, begin, duration in gaps(operations):
        line = next(o['line'] for o in operations if o['device'] == device and o['start'] == begin + duration)
        record, _ = by_line[key_of(line)]
        found.append((device, begin, duration,
                      parts_of(begin, begin + duration, record, line, waits[key_of(line)], depths[key_of(line)], calls[record['tid']],
                               held.get(record['tid'], []), error)))
    return found, error


def check_causes(run, undecided=0.05):
    """Every gap has the cause with the largest part; where two parts are closer than the clock's error the truth cannot decide. Returns
    {cause: [gaps, ns, caused ns]} of those that the truth decided, and the length of the others."""
    wanted, error = judged(run)
    said = {(row['device'], row['begin_ns'], row['duration_ns']): row['cause'] for row in rows(run, 'idle')}
    check_equal(set(said), {gap[:3] for gap in wanted}, 'gaps')
    sums, open_questions, slack = collections.defaultdict(lambda: [0, 0, 0]), 0, 0
    for device, begin, duration, parts in wanted:
        ordered = sorted(parts.items(), key=lambda part: -part[1])
        cause = said[device, begin, duration]
        if len(ordered) > 1 and ordered[0][1] - ordered[1][1] <= 2 * error + 2:
            open_questions, slack = open_questions + 1, slack + duration
            check(cause in parts, 'one of the parts', cause, parts)
            continue
        check_equal(cause, ordered[0][0] if ordered else 'unknown', f'cause of the gap at {begin}, {duration} ns, parts {parts}')
        total = sums[cause]
        total[0], total[1], total[2] = total[0] + 1, total[1] + duration, total[2] + (ordered[0][1] if ordered else 0)
    check(open_questions <= undecided * len(wanted) + 1, 'most gaps can be decided', open_questions, len(wanted))
    return sums, slack
