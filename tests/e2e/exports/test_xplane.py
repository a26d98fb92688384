# meson: timeout=300
# The export as XSpace: read by XProf, and by its published schema's field numbers, which are written down here once more.
from exports_against import *
from harness import *

XPROF = '''
import json, sys
from xprof.convert import raw_to_tool_data as convert
for tool in sys.argv[2:]:
    data, _ = convert.xspace_to_tool_data([sys.argv[1]], tool, {'use_saved_result': False})
    print(json.dumps(data.decode() if isinstance(data, bytes) else data))
'''


def fields(data):
    """[(field, value)] of a message; bytes where it has a length."""
    at, found = 0, []

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value
    while at < len(data):
        key = varint()
        if key & 7 == 0:
            found.append((key >> 3, varint()))
        else:
            check_equal(key & 7, 2, 'kind of field')
            size = varint()
            found.append((key >> 3, data[at:at + size]))
            at += size
    return found


def planes_of(path):
    """{name: {line: [(name of the event, begin in ps, length in ps, {stat: value})]}}"""
    with open(path, 'rb') as file:
        space = fields(file.read())
    planes = {}
    for number, plane in space:
        if number != 1:
            continue
        plane = fields(plane)
        names, stats = ({dict(fields(entry))[1]: dict(fields(dict(fields(entry))[2]))[2].decode() for n, entry in plane if n == field} for field in (4, 5))
        lines = planes.setdefault(dict((n, v) for n, v in plane if n == 2)[2].decode(), {})
        for line in (fields(entry) for n, entry in plane if n == 3):
            events = []
            for event in (fields(entry) for n, entry in line if n == 4):
                about = {n: v for n, v in event if n != 4}
                told = {}
                for one in (fields(entry) for n, entry in event if n == 4):
                    key = next(v for n, v in one if n == 1)
                    kind, value = next((n, v) for n, v in one if n != 1)
                    told[stats[key]] = stats[value] if kind == 7 else value.decode() if isinstance(value, bytes) else value
                events.append((names[about[1]], about.get(2, 0), about.get(3, 0), told))
            lines[next(v for n, v in line if n == 2).decode()] = events
    return planes


def ours(path, name='x.xplane.pb', *options):
    return exported(path, 'xplane', scratch(name), *options)


def on_devices(planes):
    return [event for name, lines in planes.items() if name.startswith('/device:') for events in lines.values() for event in events]


def test_sums_are_those_of_the_report():
    for path in KEPT:
        planes = planes_of(ours(path))
        kernels, copied = collections.Counter(), collections.Counter()
        for name, _, length, told in on_devices(planes):
            if 'kernel_details' in told:
                kernels[name] += length
            for word in ('memcpy_details', 'memset_details'):
                if word in told:
                    copied[word] += 1
                    copied[word + ' bytes'] += int(re.search(r'size:(\d+)', told[word])[1])
        check_equal({name: total / 1000 for name, total in kernels.items()}, kernels_of_report(path), f'{path}: kernel times by name')
        records = device_records(path)
        for word, record in (('memcpy_details', 'DeviceCopy'), ('memset_details', 'DeviceMemset')):
            check_equal((copied[word], copied[word + ' bytes']), (records[record], records[record + ' bytes']), f'{path}: {record}')
        calls = collections.Counter(name for events in planes['/host:CPU'].values() for name, *_ in events)
        for (_, call), (count, _) in calls_of_report(path).items():
            check(calls[call] >= count, f'{path}: {call}', calls[call], count)


def test_lines_are_in_order_and_joined():
    for path in KEPT:
        planes = planes_of(ours(path))
        check(min(event[1] for lines in planes.values() for events in lines.values() for event in events) == 0, 'times from the first event')
        for lines in planes.values():
            for line, events in lines.items():
                check(events == sorted(events, key=lambda event: (event[1], -event[2])), f'{path}: {line}: by begin, the longer first')
        calls = {told['correlation_id'] for events in planes['/host:CPU'].values() for *_, told in events if 'correlation_id' in told}
        work = on_devices(planes)
        check(work and all(told.get('correlation_id') in calls for *_, told in work), f'{path}: each work has its call')


def xprof(path, *tools):
    done = subprocess.run([reader('xprof', 'bin', 'python'), '-c', XPROF, path, *tools], capture_output=True, timeout=250, check=False)
    check(done.returncode == 0, 'XProf reads it', done.stderr.decode()[-3000:])
    return [json.loads(line) for line in done.stdout.decode().splitlines()]


def rows_of(table):
    """[{column: value}] of one of XProf's tables"""
    keys = [column['id'] for column in table['cols']]
    return [dict(zip(keys, (cell['v'] for cell in row['c']))) for row in table['rows']]


def test_xprof_counts_kernels_as_we_do():
    for path in KEPT[:2]:
        (text,) = xprof(ours(path), 'kernel_stats')
        times, counts = collections.Counter(), collections.Counter()
        for row in rows_of(json.loads(text)):
            times[row['kernel_name']] += row['total_duration_us']
            counts[row['kernel_name']] += int(row['occurrences'])
        wanted = kernels_of_report(path)
        check_equal(sum(counts.values()), device_records(path)['DeviceKernel'], f'{path}: kernels')
        check_equal(set(times), set(wanted), f'{path}: names')
        for name, total in times.items():
            check(abs(total * 1000 - wanted[name]) < 1, f'{path}: {name}', total, wanted[name])


LOOP = f'''
import ctypes, sys
sys.path.insert(0, {os.path.join(SOURCE, "tests", "e2e")!r})
from driver import Driver
d = Driver()
step, reduce = d.kernel('step'), d.kernel('reduce')
memory, host = d.alloc(1 << 20), ctypes.create_string_buffer(4096)
for i in range(12):
    d('cuMemcpyHtoD_v2', memory, host, ctypes.c_size_t(4096))
    for _ in range(3):
        d.launch(step)
    d.launch(reduce)
    d('cuCtxSynchronize')
'''


def test_steps_are_xprofs_steps():
    source = scratch('loop.py')
    with open(source, 'w', encoding='utf-8') as file:
        file.write(LOOP)
    run = traced([sys.executable, source], env={'SIMGPU_KERNEL_TIME': 'step=2ms,reduce=500us'})
    steps = report(run.output, 'steps')['sections']['steps']['rows']
    check(len(steps) >= 10, 'steps are found', len(steps))
    path = ours(run.output)
    planes = planes_of(path)
    told = sorted((about['step_num'], length) for events in planes['/host:CPU'].values() for name, _, length, about in events if 'step_num' in about)
    check_equal(told, [(row['step'], row['duration_ns'] * 1000) for row in steps], 'steps in the file')
    overview, viewer = (json.loads(text) for text in xprof(path, 'overview_page', 'trace_viewer'))
    graph = next(table for table in overview if any(column['id'] == 'stepnum' for column in table.get('cols', [])))
    rows = rows_of(graph)
    # XProf numbers the steps from 0, whatever the file says, and leaves out the first and the last one.
    check_equal([row['stepnum'] for row in rows], [str(number) for number in range(1, len(steps) - 1)], 'its steps')
    for row in rows:
        ours_ = steps[int(row['stepnum'])]
        check(6_500_000 < row['stepTimeMs'] * 1e6 <= ours_['duration_ns'] + 1, 'its step: from the first operation on the device in it', row, ours_)
        check(6_500_000 <= row['deviceComputeTimeMs'] * 1e6 < 6_520_000, 'three of 2 ms and one of 500 us', row)
    shown = collections.Counter(event['name'] for event in viewer['traceEvents'] if event.get('ph') == 'X')
    check_equal((shown['step'], shown['reduce']), (36, 12), 'kernels in its trace viewer')


main()
