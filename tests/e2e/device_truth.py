"""Device records of a trace against the truth of the simulated GPU. With SIMGPU_CLOCK=monotonic their times are the truth's numbers."""
import bisect

from harness import *

COPY_KINDS = {1: 'HtoD', 2: 'DtoH', 8: 'DtoD', 9: 'HtoH', 10: 'PtoP'}  # CUpti_ActivityMemcpyKind; arrays count as device memory
ARRAYS = {3: 'HtoD', 4: 'DtoH', 5: 'DtoD', 6: 'DtoD', 7: 'DtoD'}
DEVICE_RECORDS = ('DeviceKernel', 'DeviceCopy', 'DeviceMemset', 'DeviceGraph')
CALL_RECORDS = ('KernelLaunch', 'GraphLaunch', 'Copy', 'Memset')


def traced_device(command, env=None, tells_time=False):
    """Traced, and its exit code and output are those of an untraced run; of a program that tells how long it took the exit code."""
    changes = {'SIMGPU_CLOCK': 'monotonic', **(env or {})}
    forget_run()
    run, plain = traced(command, changes), untraced(command, changes)
    if tells_time:
        check_equal(run.returncode, plain.returncode, 'exit code')
    else:
        same_output(plain, run)
    return run


def operations_of(run, whole_graphs=False):
    """The truth's device operations that CUPTI tells of, as tuples of `facts`."""
    found = []
    for line in run.truth_of('kernel', 'copy', 'memset', 'graph_launch'):
        in_graph = line.get('graph') is not None
        if line['op'] == 'graph_launch' if not whole_graphs else in_graph:
            continue
        if line['op'] == 'kernel':
            facts = (line['symbol'], tuple(line['grid']), tuple(line['block']), line['dynamic_shared_bytes'], line['static_shared_bytes'],
                     line['registers'] or 0)
        elif line['op'] == 'copy':
            facts = (line['kind'], line['bytes'], line['async'])
        elif line['op'] == 'memset':
            facts = (line['bytes'],)
        else:
            facts = ()
        found.append((line['op'], line['correlation'], line['start_ns'], line['end_ns'], line['stream']) + facts)
    return found


def recorded_operations(run):
    """The trace's device records as the same tuples."""
    found = []
    for r in records(run, *DEVICE_RECORDS):
        kind = {'DeviceKernel': 'kernel', 'DeviceCopy': 'copy', 'DeviceMemset': 'memset', 'DeviceGraph': 'graph_launch'}[r['record']]
        if kind == 'kernel':
            facts = (r['name'], (r['grid_x'], r['grid_y'], r['grid_z']), (r['block_x'], r['block_y'], r['block_z']), r['dynamic_shared_bytes'],
                     r['static_shared_bytes'], r['registers'])
        elif kind == 'copy':
            facts = ({**COPY_KINDS, **ARRAYS}[r['kind']], r['bytes'], r['asynchronous'])
        elif kind == 'memset':
            facts = (r['bytes'],)
        else:
            facts = ()
        found.append((kind, r['correlation'], r['start'], r['finish'], r['stream']) + facts)
    return found


def check_keys(run):
    """Each DeviceApi record lies within exactly one call of ours on its thread, and that is the call with the truth's line."""
    calls = collections.defaultdict(list)
    for record in records(run, *CALL_RECORDS):
        calls[record['tid']].append((record['begin_ns'], record['end_ns']))
    for times in calls.values():
        times.sort()
    # A runtime call gives its id to each of the driver calls inside it.
    truth = collections.defaultdict(dict)
    for line in run.truth_of('kernel', 'copy', 'memset', 'graph_launch'):
        truth[line['correlation']][line['call_begin_ns']] = line
    met = set()
    for key in records(run, 'DeviceApi'):
        line = truth.get(key['correlation'], {}).get(key['start'])
        if line is None:
            continue  # a call without an operation of the device: it failed, or it was captured
        check_equal(key['thread'], line['tid'], 'thread of the key')
        times = calls[key['thread']]
        at = bisect.bisect_right(times, (key['start'], 1 << 62)) - 1
        check(at >= 0 and times[at][0] <= key['start'] and key['finish'] <= times[at][1], 'the key lies in a call of ours', key, times[max(at, 0)])
        check(times[at][0] <= line['call_begin_ns'] and line['call_end_ns'] <= times[at][1], 'and that call is the truth\'s', key, line)
        met.add((key['correlation'], key['start']))
    absent = {(correlation, begin) for correlation, lines in truth.items() for begin in lines} - met
    check(not absent, 'every operation\'s call has a key', sorted(absent)[:10], len(absent))


def check_records(run, whole_graphs=False):
    wanted, recorded = operations_of(run, whole_graphs), recorded_operations(run)
    check(wanted, 'the program gave work to a device')
    counts = collections.Counter(recorded)
    counts.subtract(wanted)
    differences = {operation: count for operation, count in counts.items() if count}
    check(not differences, f'{len(recorded)} records, {len(wanted)} operations; too many (+) and too few (-)', sorted(differences.items(), key=str)[:6])
    check_keys(run)


def check_nodes(run):
    """The graph node ids of one exec: as many as nodes, the same at every replay, in the order of the nodes' making."""
    by_replay = collections.defaultdict(list)
    for record in records(run, 'DeviceKernel'):
        if record['graph']:
            by_replay[record['graph'], record['correlation']].append(record['graph_node'])
    check(by_replay, 'there are replays')
    ids = {}
    for (graph, _), nodes in by_replay.items():
        check_equal(len(nodes), len(set(nodes)), 'each node ran once')
        check(ids.setdefault(graph, set(nodes)) >= set(nodes) or ids[graph] <= set(nodes), 'the same nodes at each replay', graph)
