# meson: timeout=300
# The export in Kineto's conventions: read as JSON, by Perfetto's trace_processor, and by HTA, which is made for PyTorch's files.
from exports_against import *
from harness import *

HTA = '''
import json, os, sys
os.environ['HTA_DISABLE_NS_ROUNDING'] = '1'
from hta.common.trace import Trace
trace = Trace(trace_files=dict(enumerate(sys.argv[1:])), trace_dir='/')
trace.parse_traces()
trace.decode_symbol_ids()
out = {}
for rank, frame in trace.traces.items():
    kernels = frame[frame['s_cat'] == 'kernel']
    joined = kernels[(kernels['correlation'] > 0) & (kernels['index_correlation'] > 0)]
    names = frame['s_name']
    out[rank] = {'kernels': {name: [int(len(group)), float(group['dur'].sum())] for name, group in kernels.groupby('s_name')},
                 'copies': int((frame['s_cat'] == 'gpu_memcpy').sum()), 'joined': int(len(joined)),
                 'callers': sorted(set(names.loc[joined['index_correlation']]))}
print(json.dumps(out))
'''


def ours(path, name='x.pt.trace.json', *options):
    return exported(path, 'chrome', scratch(name), *options)


def micros(text):
    whole, point, rest = text.partition('.')
    return int(whole) * 1000 + int((rest + '000')[:3])


def events_of(path):
    with open(path, encoding='utf-8') as file:
        return json.load(file, parse_float=micros)['traceEvents']


def test_sums_are_those_of_the_report():
    for path in KEPT:
        events = events_of(ours(path))
        kernels, calls, bytes_of = collections.Counter(), {}, collections.Counter()
        count = collections.Counter(event.get('cat') for event in events)
        for event in events:
            if event.get('cat') == 'kernel':
                kernels[event['name']] += event['dur']
            if event.get('cat') in ('cuda_driver', 'cuda_runtime', 'library'):
                key = (event['cat'].replace('cuda_', ''), event['name'])
                calls[key] = tuple(map(sum, zip(calls.get(key, (0, 0)), (1, event['dur']))))
            if event.get('cat') in ('gpu_memcpy', 'gpu_memset'):
                bytes_of[event['cat']] += event['args']['bytes']
        check_equal(dict(kernels), kernels_of_report(path), f'{path}: kernel times by name')
        check_equal(calls, calls_of_report(path), f'{path}: calls')
        records = device_records(path)
        for category, record in (('kernel', 'DeviceKernel'), ('gpu_memcpy', 'DeviceCopy'), ('gpu_memset', 'DeviceMemset')):
            check_equal((count[category], bytes_of[category]), (records[record], records[record + ' bytes'] if category != 'kernel' else 0), f'{path}: {record}')


def test_perfetto_reads_it():
    for path in KEPT:
        errors, kernels = trace_processor(ours(path), ERRORS, "select name, count(*) n, sum(dur) ns from slice where category = 'kernel' group by name")
        check_no_errors(errors)
        wanted = kernels_of_report(path)
        check_equal({row['name'] for row in kernels}, set(wanted), f'{path}: kernels')
        for row in kernels:  # it takes microseconds as floating-point numbers
            check(abs(int(row['ns']) - wanted[row['name']]) <= int(row['n']), f'{path}: {row["name"]}', row, wanted[row['name']])


def test_hta_reads_it():
    python = reader('python', 'bin', 'python')
    path = KEPT[2]  # two ranks: a file each
    files = [ours(path, f'rank{rank}.json', '--rank', str(rank)) for rank in (0, 1)]
    for rank, file in enumerate(files):
        with open(file, encoding='utf-8') as text:
            check(re.search(r'"rank": %d\b' % rank, text.read(400)), 'the rank, as HTA looks for it')
    done = subprocess.run([python, '-c', HTA, *files], capture_output=True, timeout=280, check=False)
    check(done.returncode == 0, 'HTA reads it', done.stderr.decode()[-3000:])
    said = json.loads(done.stdout.decode().splitlines()[-1])
    for rank in (0, 1):
        rows_of = report(path, 'kernels', options=('--rank', str(rank)))['sections']['kernels']['rows']
        wanted = collections.Counter()
        counts = collections.Counter()
        for row in rows_of:
            name = row['kernel'].split('(')[0]  # HTA takes the parameters off
            wanted[name] += row['total_ns']
            counts[name] += row['launches']
        got = said[str(rank)]
        check_equal({name: values[0] for name, values in got['kernels'].items()}, dict(counts), f'rank {rank}: kernels by name')
        for name, (count, micro) in got['kernels'].items():
            check(abs(micro * 1000 - wanted[name]) < 1, f'rank {rank}: {name}', micro, wanted[name])
        check_equal(got['joined'], sum(counts.values()), f'rank {rank}: kernels that HTA joins to their launch')
        check(all('Launch' in name for name in got['callers']), 'and the launches', got['callers'])


def test_one_file_by_one_number():
    events = events_of(ours(KEPT[0]))
    launches = {event['args']['correlation'] for event in events if event.get('cat') == 'cuda_driver' and 'correlation' in event['args']}
    work = [event for event in events if event.get('cat') in ('kernel', 'gpu_memcpy', 'gpu_memset', 'gpu_user_annotation')]
    check(work and all(event['args']['correlation'] in launches for event in work), 'each work has its call')
    check(max(launches) < 2 ** 53, 'a number that JavaScript keeps', max(launches))


main()
