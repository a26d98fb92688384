"""The trace against the truth: call by call and number by number, and what the report must say, computed from the truth alone.

A run that is checked call by call needs SIMGPU_TRUTH_CALLS=1 (CALLS below): then every call of the driver has a line.
"""
import collections
import os
import re

from harness import *

CALLS = {'SIMGPU_TRUTH_CALLS': '1'}
CAPTURED, PER_THREAD = 2, 1

# What the library asks the driver itself (interpose/lookup/driver_query.h): the truth has those too, so the program's own cannot be told apart.
_QUERIES = re.compile(r'X\((cu\w+)\)')
_ROWS = re.compile(r'^GT_(API|API_PTSZ|API_PTDS)\((cu\w+),', re.M)


def _text(*path):
    with open(os.path.join(SOURCE, *path), encoding='utf-8') as file:
        return file.read()


def recorded_variants():
    """The exported driver names that api.def records."""
    names = set()
    for kind, name in _ROWS.findall(_text('interpose', 'api.def')):
        names.add(name)
        if kind != 'API':
            names.add(name + kind[3:].lower())
    return names


def own_queries():
    return set(_QUERIES.findall(_text('interpose', 'lookup', 'driver_query.h')))


class TruthCall:
    """One call of the driver: its variant, result, times, and the lines of what it did."""

    def __init__(self, line):
        self.variant, self.name, self.result = line['variant'], line['call'], line['result']
        self.begin, self.end, self.tid, self.pid, self.seq = (line[key] for key in ('call_begin_ns', 'call_end_ns', 'tid', 'pid', 'seq'))
        self.lines = []

    def of(self, *ops):
        return [line for line in self.lines if line['op'] in ops]

    def __repr__(self):
        return f'{self.variant} -> {self.result} #{self.seq} {self.lines}'


def calls_of(run, variants=None):
    """The driver's calls by (pid, seq), in order."""
    calls = {}
    for line in run.truth:
        if variants is not None and line['variant'] not in variants:
            continue
        key = (line['pid'], line['seq'])
        if key not in calls:
            calls[key] = TruthCall(line)
        calls[key].lines.append(line)
    return [calls[key] for key in sorted(calls)]


class TraceCall:
    """One call in the trace: its records (members of a batch, nodes of a graph come as several)."""

    def __init__(self, record):
        self.variant, self.result, self.tid = record['variant'], record['result'], record['tid']
        self.begin, self.end = record['begin_ns'], record['end_ns']
        self.records = [record]

    def of(self, *types):
        return [record for record in self.records if record['record'] in types]

    def __repr__(self):
        return f'{self.variant} -> {self.result} {self.records}'


_DEFINITIONS = {'Text', 'FunctionFacts', 'ContextFacts', 'DeviceFacts', 'ProcessFacts', 'Gap', 'Note', 'InFlight'}


def trace_calls(all_records, level='driver'):
    """{tid: calls in the order of their begin}. What lies on the definitions slot has its thread in a field, or is under 0."""
    by_call = {}
    for record in all_records:
        if record['record'] in _DEFINITIONS or record.get('level') != level:
            continue
        record['tid'] = record['tid'] or record.get('thread', 0)
        key = (record['tid'], record['begin_ns'], record['end_ns'], record['variant'])
        if key in by_call:
            by_call[key].records.append(record)
        else:
            by_call[key] = TraceCall(record)
    threads = collections.defaultdict(list)
    for call in by_call.values():
        threads[call.tid].append(call)
    for calls in threads.values():
        calls.sort(key=lambda call: (call.begin, -call.end))
    return threads


class Names:
    """What a function handle is called, and the facts recorded of it."""

    def __init__(self, all_records):
        self.names, self.facts = collections.defaultdict(list), {}
        for record in all_records:
            if record['record'] == 'FunctionGet' and record['result'] == 0 and record.get('name'):
                self.names[record['function']].append((record['end_ns'], record['name']))
            if record['record'] == 'FunctionFacts':
                self.facts.setdefault(record['function'], record)

    def symbol(self, handle, at):
        given = [name for when, name in sorted(self.names[handle]) if when <= at]
        if given:
            return given[-1]
        return (self.facts.get(handle) or {}).get('name')


def _stream(record, flags):
    """The handle that 0 stands for: 1 the legacy, 2 the per-thread default stream."""
    return record['stream'] or (2 if flags & PER_THREAD else 1)


def _check_kernel(line, record, names, compile_time_clusters):
    what = f"{line['call']} of {line['symbol']}"
    check_equal([record[f'grid_{axis}'] for axis in 'xyz'], line['grid'], f'grid of {what}')
    if line['variant'] not in ('cuLaunch', 'cuLaunchGrid', 'cuLaunchGridAsync'):
        check_equal([record[f'block_{axis}'] for axis in 'xyz'], line['block'], f'block of {what}')
        check_equal(record['dynamic_shared_bytes'], line['dynamic_shared_bytes'], f'dynamic shared memory of {what}')
    cluster = [record[f'cluster_{axis}'] for axis in 'xyz']
    if cluster == [0, 0, 0]:
        check([max(1, axis) for axis in line['cluster']] == [1, 1, 1] or line['symbol'] in compile_time_clusters, f'no cluster was asked for in {what}', line)
    else:
        check_equal(cluster, line['cluster'], f'cluster of {what}')
    check_equal(_stream(record, record['flags']), line['stream_handle'], f'stream of {what}')
    check_equal(names.symbol(record['function'], record['begin_ns']), line['symbol'], f'symbol of {what}')
    facts = names.facts.get(record['function'])
    check(facts, f'facts of the function of {what}', record)
    check_equal(facts['static_shared_bytes'], line['static_shared_bytes'], f'static shared memory of {what}')
    for key in ('registers', 'local_bytes'):
        if line[key] is not None:
            check_equal(facts[key], line[key], f'{key} of {what}')


ALLOC_KINDS = {'device': {'device'}, 'managed': {'managed'}, 'host': {'host', 'host-registered'}, 'pool': {'pool'}, 'vmm': {'vmm-create', 'vmm-map'},
               'array': {'array'}}


def _check_call(made, seen, names, clusters):
    """One call of the truth and the same call of the trace."""
    kernels = [line for line in made.of('kernel') if line.get('graph') is None] + made.of('node')
    launches = seen.of('KernelLaunch')
    if kernels:
        check_equal(len(launches), len(kernels), f'launches in {made!r}')
        for line, record in zip(kernels, launches):
            _check_kernel(line, record, names, clusters)
            check_equal(bool(record['flags'] & CAPTURED), line['op'] == 'node', f'captured: {line}')
    copies = [line for line in made.of('copy') if line.get('graph') is None]
    if copies:
        check_equal(sum(record['bytes'] for record in seen.of('Copy')), sum(line['bytes'] for line in copies), f'bytes of {made!r} {seen!r}')
        for line, record in zip(copies, seen.of('Copy')):
            check_equal(record['bytes'], line['bytes'], f'bytes of a copy {line}')
            if record['kind'] in (1, 2, 3, 4, 5):
                check_equal(record['kind_name'], line['kind'], f'kind of a copy {line} {record}')
            check_equal(record['asynchronous'], line['async'], f'asynchronous: {line}')
            if line['async']:
                check_equal(_stream(record, record['flags']), line['stream_handle'], f'stream of a copy {line}')
    memsets = [line for line in made.of('memset') if line.get('graph') is None]
    if memsets:
        check_equal([record['bytes'] for record in seen.of('Memset')], [line['bytes'] for line in memsets], f'memset {made!r}')
    if made.name in ('cuMipmappedArrayCreate', 'cuMipmappedArrayDestroy'):  # the driver tells of each level, we of the whole
        check_equal(len(seen.of('Alloc', 'Free')), 1, f'one record of a mipmapped array {seen!r}')
        if made.of('alloc'):
            check_equal(seen.of('Alloc')[0]['bytes'], sum(line['bytes'] for line in made.of('alloc')), 'bytes of all levels')
        return
    for line in [line for line in made.of('alloc') if made.name != 'cuGraphLaunch']:
        found = [record for record in seen.of('Alloc') if record['address'] == line['address']]
        check(len(found) == 1, 'one record of the allocation', line, seen)
        check(found[0]['kind_name'] in ALLOC_KINDS[line['memory']], 'kind of the allocation', line, found[0])
        check_equal(found[0]['bytes'], line['bytes'], f'bytes of an allocation: {line}')
    if made.of('free') and made.name not in ('cuGraphLaunch', 'cuModuleUnload', 'cuLibraryUnload', 'cuCtxDestroy', 'cuDevicePrimaryCtxRelease', 'cuDevicePrimaryCtxReset'):
        check([record['address'] for record in seen.of('Free')] == [line['address'] for line in made.of('free')], 'the address that was freed', made, seen)
    for line in made.of('sync'):
        check([record['what_name'] for record in seen.of('Sync')] == [line['what']], 'a synchronization', made, seen)
        if line['what'] == 'event':
            check_equal(seen.of('Sync')[0]['object'], line['object'], 'the event that was waited for')
    for line in [line for line in made.of('event') if made.name != 'cuGraphLaunch' and line['stream'] is not None]:
        found = [record for record in seen.of('StreamOrder') if record['what_name'] == 'event-record']
        check(len(found) == 1 and found[0]['object'] == line['event'], 'an event record', line, seen)
    if made.of('graph_launch'):
        check_equal(len(seen.of('GraphLaunch')), 1, f'graph launch {made!r}')
    for line in made.of('module'):
        found = seen.of('ModuleLoad')
        check(len(found) == 1, 'one record of the load', made, seen)
        check(found[0]['bytes'] in (0, line['bytes']), 'size of the image', line, found)


def check_call_by_call(run, pid=None, trace=None, compile_time_clusters=(), may_miss_first=()):
    """Every recorded driver call of the program is in the trace exactly once, in its order, with its result, its numbers, and times
    that enclose the driver's own. Returns how many calls were compared."""
    all_records = dump(trace or run)
    names, seen = Names(all_records), trace_calls(all_records)
    variants = recorded_variants() - own_queries()
    made = collections.defaultdict(list)
    for call in calls_of(run, variants):
        if pid in (None, call.pid):
            made[call.tid].append(call)
    total = 0
    for call in seen.pop(0, []):  # on the definitions slot: the thread is the one whose call it encloses
        owners = [tid for tid, calls in made.items() for one in calls
                  if one.variant == call.variant and call.begin - CLOCK_SLACK_NS <= one.begin <= one.end <= call.end + CLOCK_SLACK_NS]
        check(owners, 'a call of some thread', call)
        seen[owners[0]].append(call)
        seen[owners[0]].sort(key=lambda each: (each.begin, -each.end))
    check_equal(set(seen), {tid for tid in made}, 'threads that made calls')
    for tid in made:
        mine = [call for call in seen[tid] if call.variant in variants]
        while made[tid] and mine and made[tid][0].variant != mine[0].variant and made[tid][0].variant in may_miss_first:
            made[tid].pop(0)
        for index, (one, other) in enumerate(zip(made[tid], mine)):
            check(one.variant == other.variant, f'call {index} of thread {tid}', one, other, [call.variant for call in mine[max(0, index - 3):index + 3]])
            check(one.result == other.result, 'result', one, other)
            check(other.begin - CLOCK_SLACK_NS <= one.begin <= one.end <= other.end + CLOCK_SLACK_NS, 'the trace encloses the call', one, other)
            _check_call(one, other, names, compile_time_clusters)
            total += 1
        check(len(made[tid]) == len(mine), f'calls of thread {tid}: {len(made[tid])} made, {len(mine)} traced', [call.variant for call in made[tid][len(mine):]][:5],
              [call.variant for call in mine[len(made[tid]):]][:5])
    return total


# --------------------------------------------------------------------------------------------------- what the report must say
def kernels_of(run):
    """{(symbol, device, grid, block, dynamic shared): executions}, those of graphs included."""
    counts = collections.Counter()
    for line in run.truth_of('kernel'):
        counts[line['symbol'], line['device'], *(','.join(map(str, line[key])) for key in ('grid', 'block')), line['dynamic_shared_bytes']] += 1
    return counts


def copies_of(run):
    """{kind: (count, bytes)}, memsets among them, those of graphs included. A cudaMemset3D that the trace has is one, whatever it takes."""
    sums = collections.defaultdict(lambda: [0, 0])
    memsets = [line for line in run.truth_of('memset') if line.get('graph') is None]
    for call in dump(run):
        if (call['call'] or '').startswith('cudaMemset3D'):
            within = [line for line in memsets if call['begin_ns'] <= line['call_begin_ns'] and line['call_end_ns'] <= call['end_ns'] and call['tid'] == line['tid']]
            sums['memset'][0] -= max(0, len(within) - 1)
    for line in run.truth_of('copy', 'memset'):
        kind = line['kind'] if line['op'] == 'copy' else 'memset'
        sums[kind][0] += 1
        sums[kind][1] += line['bytes']
    return {key: tuple(value) for key, value in sums.items()}


def memory_of(run, pid=None):
    """From allocations and frees alone: {(device or None, kind): [allocations, frees, peak, live]}, and {device: peak} over all kinds."""
    rows_, peaks, live, blocks = {}, collections.Counter(), collections.Counter(), {}
    changes, whole = [], {}
    for line in run.truth_of('alloc', 'free'):
        if pid in (None, line['pid']):
            if line['memory'] == 'array':  # the levels of a mipmapped array are one allocation
                if (line['pid'], line['seq']) in whole:
                    whole[line['pid'], line['seq']]['bytes'] += line['bytes']
                    continue
                whole[line['pid'], line['seq']] = line
            changes.append((line['call_end_ns'] if line['op'] == 'alloc' else line['call_begin_ns'], line['seq'], line))
    for _, _, line in sorted(changes, key=lambda change: change[:2]):
        device = None if line['memory'] == 'host' else line['device']
        row = rows_.setdefault((device, line['memory']), [0, 0, 0, 0])
        if line['op'] == 'alloc':
            blocks[line['address']] = line['bytes']
            row[0] += 1
            row[3] += line['bytes']
            live[device] += line['bytes']
        else:
            size = blocks.pop(line['address'])
            row[1] += 1
            row[3] -= size
            live[device] -= size
        row[2] = max(row[2], row[3])
        if device is not None:
            peaks[device] = max(peaks[device], live[device])
    return rows_, peaks


_POOL_OF = {'host-registered': 'host'}


def check_report_against_truth(run, memory_exact=True):
    """Overview, kernels, copies, memory and graphs of the report are the numbers of the truth."""
    said = report(run)
    tables = {name: section['rows'] for name, section in said['sections'].items()}
    overview = {row['metric']: row['value'] for row in tables['overview']}
    plain = [line for line in run.truth_of('kernel') if line.get('graph') is None]
    replays = {(line['pid'], line['seq']) for line in run.truth_of('graph_launch')}
    check_equal(overview['launches'], len(plain) + len(replays), 'launches')
    check_equal(overview['kernels'], len(run.truth_of('kernel')), 'kernels')
    copies = run.truth_of('copy')
    check_equal((overview['copies'], overview['copy_bytes']), (len(copies), sum(line['bytes'] for line in copies)), 'copies, copy_bytes')
    got = collections.Counter()
    for row in tables['kernels']:
        got[row['symbol'], row['device'], row['grid'], row['block'], row['dynamic_shared_bytes']] += row['launches']
    check_equal(dict(got), dict(kernels_of(run)), 'kernels by shape')
    sums = collections.defaultdict(lambda: [0, 0])
    for row in tables['copies']:
        sums[row['kind']][0] += row['count']
        sums[row['kind']][1] += row['bytes']
    check_equal({key: tuple(value) for key, value in sums.items()}, copies_of(run), 'copies and memsets')
    wanted, peaks = memory_of(run)
    if memory_exact:
        memory = {}
        for row in tables['memory']:
            pool = re.sub(r' \d+$', '', row['pool'])
            key = (row['device'], _POOL_OF.get(pool, pool))
            memory[key] = [a + b for a, b in zip(memory.get(key, [0, 0, 0]), (row['allocations'], row['frees'], row['live_at_end_bytes']))]
        if any(line['call'] in ('cuCtxDestroy', 'cuDevicePrimaryCtxReset') for line in run.truth):
            memory, wanted = ({key: row[:2] for key, row in table.items()} for table in (memory, wanted))  # a context takes its memory with it
        else:
            wanted = {key: [row[0], row[1], row[3]] for key, row in wanted.items()}
        check_equal(memory, wanted, 'allocations, frees, live at the end')
        check_equal(overview['peak_memory_bytes'], max(peaks.values(), default=0), 'peak')
    return said


def check_api_against_truth(run, plain):
    """The api section counts what the program called: the truth of the same program without us (`plain`, with SIMGPU_TRUTH_CALLS=1)."""
    variants = recorded_variants()
    wanted, errors = collections.Counter(), collections.Counter()
    for call in calls_of(plain, variants):
        wanted[call.name] += 1
        errors[call.name] += call.result != 0
    api = {row['call']: row for row in rows(run, 'api') if row['level'] == 'driver'}
    check_equal({name: row['calls'] for name, row in api.items()}, dict(wanted), 'calls by name')
    check_equal({name: row['errors'] for name, row in api.items() if row['errors']}, {name: count for name, count in errors.items() if count}, 'errors by name')


def untraced_with_truth(command, env=None, **options):
    """The program without us, with its truth: what it calls of itself."""
    truth = scratch('plain-%p.jsonl')
    run = untraced(command, {'SIMGPU_TRUTH': truth, **CALLS, **(env or {})}, **options)
    run._truth = truth
    return run
