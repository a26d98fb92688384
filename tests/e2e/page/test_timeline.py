# meson: timeout=300
# The timeline of the page: its events are the simulated GPU's truth to the nanosecond, its calls and ranges the program's; keys, search, links.
from device_truth import *
from pages import *


def events_of(path):
    browser('events', path, scratch('events.json'))
    with open(scratch('events.json'), encoding='utf-8') as file:
        return json.load(file)


def origin_of(run):
    """The first record of all, by the trace's own text: what the page counts from."""
    with open(scratch('report.html'), encoding='utf-8') as file:
        return json.loads(Document(file.read()).texts['gputrace-page'])['origin_ns']


def slices_of(events, kind):
    return [(track, one) for track in events['tracks'] if track['kind'] == kind for one in track['slices']]


def check_devices(run, whole_graphs=False):
    """Begin, end, bytes and stream of each operation are the truth's; each hangs on the call that the truth names."""
    events = events_of(page_of(run.output))
    origin, got, wanted = origin_of(run), [], []
    calls = {process: [one for track in events['tracks'] if track['kind'] != 'stream' and track['process'] == process for one in track['slices']]
             for process in range(len(events['processes']))}
    by_time = {}
    for track, one in slices_of(events, 'stream'):
        got.append((one['begin'] + origin, one['end'] + origin, one['bytes']))
        by_time[got[-1][:2]] = (track, one)
    lines = [line for line in run.truth_of('kernel', 'copy', 'memset', 'graph_launch')
             if (line['op'] == 'graph_launch') == whole_graphs or (line['op'] != 'graph_launch' and (line.get('graph') is None or not whole_graphs))]
    lines = [line for line in lines if not (line['op'] == 'graph_launch' and not whole_graphs)]
    for line in lines:
        wanted.append((line['start_ns'], line['end_ns'], line.get('bytes', 0) if line['op'] in ('copy', 'memset') else 0))
    check_equal(sorted(got), sorted(wanted), 'operations of the devices')
    check(len(wanted) > 10, 'there is something to hold against', len(wanted))
    linked = 0
    for line in lines:
        track, one = by_time[(line['start_ns'], line['end_ns'])]
        if one['launch'] == 0:
            continue
        call = calls[track['process']][int(one['launch']) - 1]
        if line['op'] == 'kernel' and line.get('graph') is None:
            check_equal(call['name']['text'], line['call'], 'the call that launched it')
            check(call['begin'] + origin <= line['call_begin_ns'] <= line['call_end_ns'] <= call['end'] + origin, 'it is that call', call, line)
            linked += 1
    return events, linked, sum(line['op'] == 'kernel' and line.get('graph') is None for line in lines)


def test_operations_are_the_truth():
    _, linked, kernels = check_devices(traced_device([program('launches_shared')]))
    check_equal(linked, kernels, 'every launched kernel hangs on its call')


def test_graphs_node_by_node():
    check_devices(traced_device([program('graphs_shared')], {'GPUTRACE_GRAPHS': 'node'}))


def test_calls_nest_in_their_threads():
    """As many slices of each call as the report counts, with their time; a driver call lies within its runtime call."""
    run = traced([program('train')], mode='run', output=scratch('out'))
    events = events_of(page_of(run.output))
    counts = collections.Counter()
    times = collections.Counter()
    for _, one in slices_of(events, 'thread'):
        if one['name']['kind'] in ('driver', 'runtime'):
            counts[one['name']['text']] += 1
            times[one['name']['text']] += one['end'] - one['begin']
    for row in rows(run, 'api'):
        check_equal((counts.pop(row['call'], 0), times.pop(row['call'], 0)), (row['calls'], row['total_ns']), row['call'])
    check(not counts, 'and none that the report does not know', counts)


def test_ranges():
    run = traced([program('nvtx_c')], {'GPUTRACE_COLLECT': 'api,device,nvtx'})
    open_ranges, wanted = collections.defaultdict(list), collections.Counter()
    for line in run.stdout.decode().splitlines():
        said = json.loads(line) if line.startswith('{') else {}
        if said.get('what') == 'push':
            open_ranges[said['thread']].append(said['message'])
        elif said.get('what') == 'pop' and open_ranges[said['thread']]:
            wanted[open_ranges[said['thread']].pop()] += 1
    events = events_of(page_of(run.output))
    got = collections.Counter(one['name']['text'] for _, one in slices_of(events, 'thread') if one['name']['kind'] == 'range')
    check(sum(wanted.values()) > 2, 'the program pushes and pops', wanted)
    check_equal(got, wanted, 'push and pop ranges')


def test_keys_search_and_links():
    browser('timeline', page_of(traced([program('train')], mode='run', output=scratch('out')).output))


def test_each_slice_is_seen_where_it_is():
    loop = 'import sys, time; sys.path.insert(0, sys.argv[1])\nfrom driver import Driver\nd = Driver(); k = d.kernel("step"); other = d.stream()\n' \
           'for turn in range(300):\n    for i in range(turn % 7): d.launch(k, stream=other if i % 2 else None)\n    time.sleep(0.0005 + turn % 5 * 0.0005)\n'
    run = traced([sys.executable, '-c', loop, os.path.join(SOURCE, 'tests', 'e2e')], {'SIMGPU_KERNEL_TIME': '.=7us'}, output=scratch('out'))
    browser('drawn', page_of(run.output))


def test_opens_at_the_steps():
    loop = r'''
import sys, time
sys.path.insert(0, sys.argv[1])
from driver import Driver
d = Driver()
step, reduce, scale = map(d.kernel, ('step', 'reduce', 'scale'))
d.launch(step)
time.sleep(1.5)
for _ in range(30):
    time.sleep(0.005)
    for kernel in (step, scale, step, scale, reduce):
        d.launch(kernel)
    d('cuCtxSynchronize')
'''
    browser('opens_at_steps', page_of(traced([sys.executable, '-c', loop, os.path.join(SOURCE, 'tests', 'e2e')], output=scratch('out')).output))


def test_engines_are_the_union_of_their_streams():
    """By the truth: when any kernel ran, when any copy of that direction ran."""
    run = traced([program('train')], mode='run', output=scratch('out'))
    page = page_of(run.output)
    origin = origin_of(run)
    lanes = {lane['label']: lane for lane in json.loads(browser('engines', page))}
    wanted = collections.defaultdict(list)
    labels = {'kernel': 'compute', 'memset': 'Memset', 'graph_launch': 'graphs'}
    for line in run.truth_of('kernel', 'copy', 'memset', 'graph_launch'):
        label = labels.get(line['op']) or f'Memcpy {line["kind"]}'
        if line['end_ns'] > line['start_ns'] and line.get('graph') is None:  # a graph is seen as a whole
            wanted[label].append((line['start_ns'] - origin, line['end_ns'] - origin))
    check(len(wanted) >= 2, 'there is something to hold against', list(wanted))
    check_equal(set(lanes), set(wanted), 'engines')
    for label, spans in wanted.items():
        union = []
        for begin, end in sorted(spans):
            if union and begin <= union[-1][1]:
                union[-1][1] = max(union[-1][1], end)
            else:
                union.append([begin, end])
        lane = lanes[label]
        check_equal((lane['rows'], len(lane['begin']), sum(lane['summed'])), (1, len(union), len(spans)), label)
        for begin, end, (true_begin, true_end) in zip(lane['begin'], lane['end'], union):  # the device's clock is told apart by less than that
            check(abs(begin - true_begin) <= 1000 and abs((end - begin) - (true_end - true_begin)) <= 1000, label, begin, end, true_begin, true_end)


main()
