# meson: timeout=200
# CSV, folded stacks and speedscope's format: by Python's csv module and the schema that speedscope publishes, against the report.
import csv

from exports_against import *
from timeline_truth import *

PROGRAM = f'''
import ctypes, sys
sys.path.insert(0, {os.path.join(SOURCE, "tests", "e2e")!r})
from driver import Driver
d = Driver()
step, reduce = d.kernel('step'), d.kernel('reduce')
memory, size = d.alloc(1 << 20), ctypes.c_size_t
host = ctypes.create_string_buffer(4096)
def load(): d('cuMemcpyHtoD_v2', memory, host, size(4096))
def forward():
    d.launch(step)
    d.launch(reduce)
def train():
    for i in range(30):
        load()
        forward()
        d('cuMemcpyDtoH_v2', host, memory, size(1024))
train()
d('cuCtxSynchronize')
'''


def program_with_lines():
    path = scratch('train.py')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(PROGRAM)
    run = traced([sys.executable, path], {'SIMGPU_KERNEL_TIME': 'step=300us,reduce=100us'})
    check_equal(run.returncode, 0, 'exit code')
    return run.output


def rows_of(path):
    with open(path, encoding='utf-8', newline='') as file:
        return list(csv.DictReader(file))


def sums_of(rows, kind):
    sums = collections.Counter()
    for row in rows:
        if row['kind'] == kind:
            sums[row['name']] += int(row['duration_ns'])
    return dict(sums)


def folded_of(path):
    with open(path, encoding='utf-8') as file:
        return [(line.rpartition(' ')[0].split(';'), int(line.rpartition(' ')[2])) for line in file]


def test_csv_holds_every_event():
    for path in KEPT:
        rows = rows_of(exported(path, 'csv', scratch('x.csv')))
        check(all(None not in row and None not in row.values() for row in rows), 'as many fields as columns')
        check_equal(sums_of(rows, 'kernel'), kernels_of_report(path), f'{path}: kernel times by name')
        calls, kinds, copied = {}, collections.Counter(row['kind'] for row in rows), collections.Counter()
        for row in rows:
            check_equal(int(row['end_ns']) - int(row['begin_ns']), int(row['duration_ns']), 'its length')
            if row['kind'] == 'call':
                key = (row['level'], row['name'])
                calls[key] = tuple(map(sum, zip(calls.get(key, (0, 0)), (1, int(row['duration_ns'])))))
            if row['kind'] in ('copy', 'memset'):
                copied[row['kind']] += int(row['bytes'])
        check_equal(calls, calls_of_report(path), f'{path}: calls')
        records = device_records(path)
        for kind, record in (('kernel', 'DeviceKernel'), ('copy', 'DeviceCopy'), ('memset', 'DeviceMemset')):
            check_equal(kinds[kind], records[record], f'{path}: {record}')
        for kind, record in (('copy', 'DeviceCopy'), ('memset', 'DeviceMemset')):
            check_equal(copied[kind], records[record + ' bytes'], f'{path}: bytes of {record}')


def test_of_chosen_steps():
    path = program_with_lines()
    steps = report(path, 'steps')['sections']['steps']['rows']
    check(len(steps) >= 25, 'steps', len(steps))
    wanted = {row['kernel']: row['total_ns'] for row in report(path, 'kernels', options=('--steps', '5-9'))['sections']['kernels']['rows']}
    check(set(wanted) == {'step', 'reduce'}, 'kernels of five steps', wanted)
    rows = rows_of(exported(path, 'csv', scratch('x.csv'), '--steps', '5-9'))
    check_equal(sums_of(rows, 'kernel'), wanted, 'the same steps')
    for kind in ('chrome', 'perfetto', 'folded'):
        some, every = (os.path.getsize(exported(path, kind, scratch(name), *options)) for name, options in (('some', ('--steps', '5-9')), ('every', ())))
        check(some < every, f'{kind}: less', some, every)
    code, _, err = gputrace('export', path, '--format', 'csv', '-o', scratch('none.csv'), '--steps', '900-', rc=None)
    check_equal(code, 3, 'steps that there are not')
    check(f'1 to {len(steps)}' in err and not os.path.exists(scratch('none.csv')), 'which there are', err)
    for wrong in (('--steps', 'x'), ('--steps', '3', '--from', '1s')):
        check_equal(gputrace('export', path, '--format', 'csv', *wrong, rc=None)[0], 2, wrong)


def test_folded_stacks_sum_to_the_lines_of_the_report():
    path = program_with_lines()
    stacks = folded_of(exported(path, 'folded', scratch('x.folded')))
    kernels = collections.Counter()
    for stack, nanos in stacks:
        if stack[-1] in ('step', 'reduce'):
            kernels[stack[-1]] += nanos
    check_equal(dict(kernels), kernels_of_report(path), 'by kernel')
    own = collections.Counter()
    for stack, nanos in stacks:
        lines = [re.fullmatch(r'(\S+) \(.*/(\w+\.py:\d+)\)', frame) for frame in stack]
        innermost = [line for line in lines if line][-1]
        own[f'{innermost[2]} {innermost[1]}'] += nanos
    wanted = {row['site']: row['device_total_ns'] for row in report(path, 'sites')['sections']['sites']['rows'] if row['device_total_ns']}
    check_equal(dict(own), wanted, 'by line')
    callers = {tuple(frame.split(' ')[0] for frame in stack[1:4]) for stack, _ in stacks}
    check_equal(callers, {('<module>', 'train', 'load'), ('<module>', 'train', 'forward'), ('<module>', 'train', 'Driver.__call__')}, 'the callers are there')


def test_stacks_are_the_same_bytes_each_time():
    path = os.path.join(SOURCE, 'tests/corpus/golden/train')
    for kind in ('folded', 'speedscope'):
        texts = set()
        for i in range(6):
            with open(exported(path, kind, scratch(f'{i}.{kind}')), encoding='utf-8') as text:
                texts.add(text.read())
        check_equal(len(texts), 1, f'different files of {kind}')


def test_speedscope():
    path = program_with_lines()
    file = exported(path, 'speedscope', scratch('x.speedscope.json'))
    with open(file, encoding='utf-8') as text:
        said = json.load(text)
    rows = report(path, 'sites')['sections']['sites']['rows']
    wanted = {'device time': 'device_total_ns', 'time that the device did nothing before': 'idle_ns', 'waits for the device': 'wait_ns',
              'bytes copied': 'copy_bytes', 'bytes allocated': 'allocated_bytes'}
    found = {profile['name']: profile for profile in said['profiles']}
    for name, column in wanted.items():
        profile = found[name]
        check_equal(sum(profile['weights']), sum(row[column] or 0 for row in rows), name)
        check_equal((len(profile['samples']), profile['endValue']), (len(profile['weights']), sum(profile['weights'])), name)
        check(all(0 <= frame < len(said['shared']['frames']) for sample in profile['samples'] for frame in sample), 'frames that there are')
    schema = reader('speedscope', 'file-format-schema.json')
    done = subprocess.run([reader('python', 'bin', 'python'), '-c', 'import json, sys, jsonschema; jsonschema.validate(json.load(open(sys.argv[1])), json.load(open(sys.argv[2])))', file, schema],
                          capture_output=True, timeout=60, check=False)
    check(done.returncode == 0, 'as its schema has it', done.stderr.decode()[-2000:])


main()
