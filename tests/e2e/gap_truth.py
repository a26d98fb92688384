"""Why a device was idle, by the definition (docs/decisions/0071) and brute force: the gaps and what the next operation waited for from the
truth of the simulated GPU, what the launching thread did from the records of its calls, instant by instant."""
from queue_truth import *

FULL, POLL_PAUSE, DISPATCH_FLOOR = 512, 2_000_000, 10_000
LOOK_UP = 20_000  # a function that is asked for in less is there
MEANING = {'KernelLaunch': 'launch', 'GraphLaunch': 'launch', 'Copy': 'copy', 'Memset': 'copy', 'Sync': 'synchronization', 'Alloc': 'allocation',
           'Free': 'allocation', 'ModuleLoad': 'module load', 'FunctionGet': 'module load', 'GraphInstantiate': 'module load', 'StreamOrder': 'order'}
RANK = ['module load', 'allocation', 'synchronization', 'copy', 'launch', 'order', 'polling', 'other']
CAUSE = {'order': 'launch', 'other': 'host'}


def meaning_of(record):
    if record['record'] == 'FunctionGet' and record['end_ns'] - record['begin_ns'] < LOOK_UP:
        return 'other'
    return 'polling' if record.get('what_name') == 'queried' else MEANING.get(record['record'], 'other')


def key_of(line):
    return line['pid'], line['tid'], line['seq'], line['op'], line['start_ns']


def outermost_calls(run):
    """{tid: [(begin, end, meaning)]}: a call takes the weightiest meaning of those within it."""
    by_thread = collections.defaultdict(list)
    spans = {(r['tid'] or r.get('thread'), r['begin_ns'], r['end_ns'], meaning_of(r)) for r in dump(run)
             if r.get('call') and r['end_ns'] > r['begin_ns'] and not r['record'].startswith('Device')}
    for tid, begin, end, meaning in sorted(spans, key=lambda s: (s[0], s[1], -s[2])):
        calls = by_thread[tid]
        if calls and end <= calls[-1][1]:
            calls[-1][2] = min(calls[-1][2], meaning, key=RANK.index)
        else:
            calls.append([begin, end, meaning])
    return {tid: with_polling(calls) for tid, calls in by_thread.items()}


def with_polling(calls):
    """What lies between two queries with nothing else between is polling too."""
    filled = []
    for call in calls:
        if filled and filled[-1][2] == call[2] == 'polling' and call[0] - filled[-1][1] <= POLL_PAUSE:
            filled.append([filled[-1][1], call[0], 'polling'])
        filled.append(call)
    return filled


def waited_for(run, pairs):
    """{key of a line: (the latest end of what it had to wait for, what stands before it that no device reports or None, the device of the former)}: its stream, events,
    the legacy stream."""
    model, found = Dependencies(), {}
    steps = [(record, None) for record in records(run, 'StreamOrder', 'ObjectCall')] + pairs
    for record, line in sorted(steps, key=lambda step: step[0]['end_ns']):
        if record['result'] or record.get('flags', 0) & CAPTURED:
            continue
        if line is not None:
            before = model.give(model.name(record), [line['end_ns'], None, line.get('device', 0)])
            latest = max(before, key=lambda end: end[0], default=[0, None, None])
            found[key_of(line)] = latest[0], next((end[1] for end in before if end[1]), None), latest[2]
        elif record['record'] == 'ObjectCall':
            if record['kind_name'] == 'stream' and record['what_name'] == 'created':
                model.blocking[record['object']] = not record['value'] & NON_BLOCKING
        else:
            stream = model.name(record)
            if record['what_name'] == 'event-record':
                model.events[record['object']] = set(model.streams[stream])
            elif record['what_name'] == 'stream-wait-event':
                model.streams[stream] |= model.events.get(record['object'], set())
            elif record['what_name'] in ('host-function', 'wait-value'):
                entry = [record['end_ns'], {'host-function': 'host function', 'wait-value': 'memory value'}[record['what_name']], None]
                before = model.give(stream, entry)
                entry[0] = max([entry[0]] + [end[0] for end in before])
    return found


OWN_SUM = 0x40000000  # our thread's CPU time: no place in time


def overhead(run):
    """{tid: disjoint intervals in which CUPTI or we held the thread}, as CUPTI's overhead records say."""
    held = collections.defaultdict(list)
    for record in records(run, 'DeviceOverhead'):
        if record['kind'] != OWN_SUM and record['thread']:
            held[record['thread']].append((record['start'], record['finish']))
    for record in records(run, 'OwnWork'):
        held[record['tid']].append((record['begin_ns'], record['end_ns']))
    return {tid: union(intervals) for tid, intervals in held.items()}


def parts_of(gap_begin, gap_end, record, line, waited, depth, calls, held, error):
    """{cause: ns}, each instant once; what is the device's own way and what is not known are one, 'dispatch'."""
    until, behind, device = waited
    if gap_end - gap_begin < error and record['end_ns'] > gap_begin - error:
        return {'unknown': gap_end - gap_begin}
    called = min(max(record['begin_ns'], gap_begin), gap_end)
    returned = min(max(record['end_ns'], called), gap_end)
    free = min(max(until, returned), gap_end)
    way = 'copy' if line['op'] in ('copy', 'memset') else 'queue full' if depth >= FULL else 'launch'
    spans = [(begin, min(end, called), CAUSE.get(meaning, meaning)) for begin, end, meaning in calls if end > gap_begin and begin < called]
    spans.append((called, returned, way))
    borders = sorted({gap_begin, called, returned, free, gap_end} | {t for span in spans + held for t in span[:2] if gap_begin < t < gap_end})
    parts = collections.Counter()
    for begin, end in zip(borders, borders[1:]):
        if begin >= free:
            cause = behind or 'dispatch'
        elif begin >= returned:
            cause = 'other stream' if device in (None, line.get('device', 0)) else 'peer'
        elif any(at <= begin < to for at, to in held):
            cause = 'profiler'
        else:
            cause = next((cause for at, to, cause in spans if at <= begin < to), 'host')
        parts[cause] += end - begin
    return dict(parts)


def divided(run):
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
                      parts_of(begin, begin + duration, record, line, waits[key_of(line)], depths[key_of(line)], calls.get(record['tid'], []),
                               held.get(record['tid'], []), error)))
    return found, error


def check_causes(run):
    """Every gap's parts are what the truth says, within the clock's error at each border. Returns {cause: ns} by the truth, and by how much
    each may be off."""
    wanted, error = divided(run)
    table = rows(run, 'idle')
    said = {(row['device'], row['begin_ns'], row['duration_ns']): row for row in table}
    check_equal(set(said), {gap[:3] for gap in wanted}, 'gaps')
    sums, slack = collections.Counter(), 0
    slack_of_one = 4 * error + 8
    for device, begin, duration, parts in wanted:
        row = said[device, begin, duration]
        got = collections.Counter(row['parts'])
        check_equal(sum(got.values()), duration, f'parts of the gap at {begin}')
        check_equal(got[row['cause']], max(got.values()), 'its cause is its largest part')
        behind = parts.keys() & {'host function', 'memory value'}
        if duration - parts.get('unknown', 0) > 0 and 'unknown' in got and 'unknown' not in parts:
            check(got['unknown'] + got['dispatch'] > DISPATCH_FLOOR, 'the device took longer than any dispatch', row)
            got['dispatch'] += got.pop('unknown')
        for name in behind:  # the usual dispatch is taken from it
            got[name] += got.pop('dispatch', 0)
            check(row['parts'].get('dispatch', 0) <= DISPATCH_FLOOR, 'a usual dispatch', row)
        for cause in got.keys() | parts.keys():
            check(abs(got[cause] - parts.get(cause, 0)) <= slack_of_one, f'{cause} of the gap at {begin}, {duration} ns', dict(got), parts, error)
        sums.update(parts)
        slack += slack_of_one
    return sums, slack
