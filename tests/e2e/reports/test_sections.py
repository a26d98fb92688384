# meson: timeout=300
# Sections made of the timeline and of the calls: graphs, categories, idle-causes, sync, jit; every number is the one that the truth
# and the records of the calls give, and sections that divide the same time agree.
from gap_truth import *

CLOCK = {'SIMGPU_CLOCK': 'monotonic'}


def traced_program(name, *arguments, **env):
    return traced([program(name), *arguments], {**CLOCK, **env})


def check_graphs(run, whole):
    """Graphs row by row: launches and their host time from the records, device time from the truth."""
    launches = [r for r in records(run, 'GraphLaunch') if not r['result'] and not r['flags'] & CAPTURED]
    lines = sorted((line for line in run.truth if line['op'] == 'graph_launch' and not line['result']), key=lambda line: line['seq'])
    check_equal(len(launches), len(lines), 'graph launches')
    nodes = collections.defaultdict(list)
    for line in run.truth:
        if line['op'] in ('kernel', 'copy', 'memset') and line.get('graph'):
            nodes[line['graph']['launch']].append(line)
    wanted = collections.defaultdict(list)
    for record, line in zip(sorted(launches, key=lambda r: r['begin_ns']), lines):
        check(record['begin_ns'] <= line['call_begin_ns'] <= line['call_end_ns'] <= record['end_ns'], 'record and truth belong together')
        start, end = line['start_ns'], line['end_ns']
        if not whole:
            own = nodes[line['seq']]
            start, end = (min(n['start_ns'] for n in own), max(n['end_ns'] for n in own)) if own else (None, None)
        wanted[record['exec']].append((record['end_ns'] - record['begin_ns'], start, end, record['begin_ns']))
    got = [row for row in rows(run, 'graphs') if row['launches']]
    check_equal(sorted(row['launches'] for row in got), sorted(len(values) for values in wanted.values()), 'launches of each graph')
    expected = []
    for values in wanted.values():
        timed = [(end - start, start - begin) for _, start, end, begin in values if start is not None]
        expected.append((len(values), rounded_mean([api for api, *_ in values]), sum(device for device, _ in timed) if timed else None,
                         rounded_mean([device for device, _ in timed]) if timed else None,
                         rounded_mean([max(0, wait) for _, wait in timed]) if timed else None))
    said = [tuple(row[key] for key in ('launches', 'api_mean_ns', 'device_total_ns', 'device_mean_ns', 'latency_mean_ns')) for row in got]
    check_equal(sorted(said), sorted(expected), 'graphs: launches, host mean, device total and mean, latency')
    for row in got:
        check_equal(row['api_per_node_ns'], None if not row['nodes'] else (row['api_mean_ns'] + row['nodes'] // 2) // row['nodes'], 'host time per node')


def graphs_in_overview(run):
    return [row for row in rows(run, 'overview') if row['metric'].startswith('graph ')]


def test_graphs_as_a_whole():
    run = traced_program('graphs_shared')
    check_graphs(run, whole=True)
    wanted = sorted((row['device_total_ns'] for row in rows(run, 'graphs') if row['device_total_ns']), reverse=True)[:5]
    said = graphs_in_overview(run)
    check_equal([row['value'] for row in said], wanted, 'the longest replays are in the overview')
    kernels = {row['name'] for row in rows(run, 'kernels')}
    check(all(any(f': {name}, ' in row['metric'] for name in kernels) and row['metric'].endswith(('nodes', 'node')) for row in said), 'named by a kernel and their nodes', said)


def test_graphs_node_by_node():
    run = traced_program('graphs_shared', GPUTRACE_GRAPHS='node')
    check_graphs(run, whole=False)
    check_equal(graphs_in_overview(run), [], 'their kernels have times of their own')


def test_categories_divide_the_kernel_time():
    for name in ('train', 'launches_shared'):
        forget_run()
        run = traced_program(name, GPUTRACE_GRAPHS='node')
        kernels = [line for line in run.truth if line['op'] == 'kernel' and not line['result']]
        total = sum(line['end_ns'] - line['start_ns'] for line in kernels)
        table = rows(run, 'categories')
        check_equal((sum(row['total_ns'] for row in table), sum(row['launches'] for row in table)), (total, len(kernels)), 'time and executions')
        check(abs(sum(row['share'] for row in table) - 1) < 1e-9, 'shares', table)
        tree = rows(run, 'category-tree')
        for level in (0, 1):
            check_equal(sum(row['total_ns'] for row in tree if row['level'] == level), total, f'time on level {level}')
        by_symbol = collections.Counter()
        for line in kernels:
            by_symbol[line['symbol']] += line['end_ns'] - line['start_ns']
        check_equal({row['symbol']: row['total_ns'] for row in tree if row['level'] == 1}, dict(by_symbol), 'time of each kernel')


def test_idle_causes_divide_the_idle_time():
    for name in ('train', 'streams_shared', 'memory_shared'):
        forget_run()
        run = traced_program(name, GPUTRACE_GRAPHS='node')
        causes, idle = collections.Counter(), collections.Counter()
        for row in rows(run, 'idle'):
            check_equal(sum(row['parts'].values()), row['duration_ns'], 'parts of a gap')
            causes.update(row['parts'].keys())
            idle.update(row['parts'])
        table = {row['cause']: row for row in rows(run, 'idle-causes')}
        check_equal({cause: (row['count'], row['total_ns']) for cause, row in table.items()},
                    {cause: (causes[cause], idle[cause]) for cause in causes}, 'causes: gaps and time')
        check_equal(sum(row['total_ns'] for row in table.values()), metrics(run)['idle_ns'], 'all of the idle time has a cause, or unknown')
        wanted = sum(duration for _, _, duration in gaps(device_operations(run, False)))
        check_equal(sum(row['total_ns'] for row in table.values()), wanted, 'idle time of the truth')
        for row in table.values():
            check_equal(row['mean_ns'], (row['total_ns'] + row['count'] // 2) // row['count'], 'mean')


def test_waits_are_those_of_the_calls():
    for name in ('train', 'streams_shared'):
        forget_run()
        run = traced_program(name)
        wanted = collections.defaultdict(list)
        for record in records(run, 'Sync'):
            wanted[record['call']].append(record['end_ns'] - record['begin_ns'])
        table = {row['call']: row for row in rows(run, 'sync')}
        check(wanted, 'the program waits')
        check_equal({call: (row['count'], row['total_ns']) for call, row in table.items()},
                    {call: (len(times), sum(times)) for call, times in wanted.items()}, 'waits: calls and time')
        for call, row in table.items():
            check((row['gpu_idle_ns'] > 0) == (row['gaps'] > 0), f'{call}: gaps', row)
        took = sum(end - begin for calls in outermost_calls(run).values() for begin, end, meaning in calls if meaning == 'synchronization')
        check(sum(row['gpu_idle_ns'] for row in table.values()) <= took, 'no more idle than the waits took, the calls around them included', table, took)
        parts = [row['parts']['synchronization'] for row in rows(run, 'idle') if 'synchronization' in row['parts']]
        check_equal(sum(row['gpu_idle_ns'] for row in table.values()), sum(parts), 'the part of waits in all gaps')
        check(len(parts) <= sum(row['gaps'] for row in table.values()), 'gaps in which there were waits')


def test_module_loads_are_those_of_the_calls():
    run = traced_program('launches_shared')
    loads = [r for r in records(run, 'ModuleLoad') if not r['result'] and not r['call'].endswith('Unload')]
    check(loads, 'the program loads code')
    table = rows(run, 'jit')
    check_equal((sum(row['count'] for row in table), sum(row['total_ns'] for row in table)),
                (len(loads), sum(r['end_ns'] - r['begin_ns'] for r in loads)), 'loads and their host time')
    check_equal(max(row['max_ns'] for row in table), max(r['end_ns'] - r['begin_ns'] for r in loads), 'the longest')


main()
