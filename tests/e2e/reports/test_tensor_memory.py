# What a framework's allocator gives out: totals, the curve, and what lived at the peak, by kind, held against the program's own account.
import sys

from torch_mock import *

PROGRAM = r'''
import ctypes, json, sys
torch = ctypes.PyDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
c10 = ctypes.CDLL(sys.argv[2])
allocator = ctypes.CDLL(sys.argv[3])
cuda = ctypes.CDLL('libcuda.so.1')
Inside = ctypes.CFUNCTYPE(None)
KIB = 1024
context, buffer = ctypes.c_void_p(), ctypes.c_uint64()
live, counts, samples = {}, {'allocations': 0, 'frees': 0}, []
next_address = 1 << 20
reserved = 2048 * KIB


def operation(name, inside, scope=0, sequence=-1, schema=1):
    torch.operation(name.encode(), schema, scope, ctypes.c_long(sequence), Inside(inside))


def sampled():
    samples.append(sum(live.values()))


def give(size):
    global next_address
    next_address += 1 << 20
    live[next_address] = size
    counts['allocations'] += 1
    sampled()
    allocator.change(ctypes.c_long(next_address), ctypes.c_long(size), ctypes.c_long(reserved), 1)
    return next_address


def take(address):
    size = live.pop(address)
    counts['frees'] += 1
    sampled()
    allocator.change(ctypes.c_long(address), ctypes.c_long(-size), ctypes.c_long(reserved), 1)


def made(name, size, inside=None, **more):
    """What an operation of that name allocates; `inside` runs in it afterwards."""
    kept = []

    def work():
        kept.append(give(size))
        if inside: inside()
    operation(name, work, **more)
    return kept[0]


def brief(size):
    take(give(size))


def model():
    return [made('aten::empty', 100 * KIB), made('aten::empty', 50 * KIB)]


def evaluated(name, size):
    kept = []
    operation(f'autograd::engine::evaluate_function: {name}', lambda: kept.append(made('aten::mm', size)), scope=1, sequence=1, schema=0)
    return kept[0]


def optimizer_step(states, first):
    def work():
        if first: states.append(made('aten::zeros_like', 200 * KIB))
        temporary = made('aten::mul', 30 * KIB)
        made_and_gone = made('aten::add', 1 * KIB)
        take(temporary); take(made_and_gone)
    operation('Optimizer.step#SGD.step', work, scope=7, schema=0)


def train():
    parameters, states, old = model(), [], None
    workspace = None
    for step in range(4):
        batch = made('aten::to', 16 * KIB)
        if old: take(old)
        old = batch
        def product():
            global workspace
            brief(64 * KIB)
            if step == 0: give(80 * KIB)  # stays: the library's own
        hidden = made('aten::addmm', 40 * KIB, product)
        if 'keeps' in sys.argv: made('aten::relu', 24 * KIB)
        gradient = evaluated('AddmmBackward0', 100 * KIB)
        take(hidden)
        optimizer_step(states, step == 0)
        take(gradient)


cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
cuda.cuMemAlloc_v2(ctypes.byref(buffer), ctypes.c_size_t(reserved + 512 * KIB))
allocator.change(ctypes.c_long(64), ctypes.c_long(1 << 30), ctypes.c_long(0), 0)  # the processor's memory
train()
if len(sys.argv) > 5: allocator.refuse(ctypes.c_long(1 << 33))
cuda.cuCtxSynchronize()
json.dump(dict(counts, peak=max(samples), end=samples[-1], samples=samples, reserved=reserved, reports=c10.reports(),
               refusals=c10.refusals()), open(sys.argv[4], 'w'))
if 'ends' in sys.argv: sys.exit(3)
'''


def run_training(*more, env=None):
    script, account = scratch('program.py'), scratch('account.json')
    with open(script, 'w') as file:
        file.write(PROGRAM)
    run = traced([sys.executable, script, torch_library('2.15.0'), *allocator_libraries(), account, *more], env=env)
    check_equal(run.returncode, 3 if 'ends' in more else 0, f'the program: {run.stderr}')
    with open(account) as file:
        return run, json.load(file)


def test_totals_and_curve():
    run, account = run_training()
    pool = next(row for row in rows(run, 'memory') if row['pool'] == 'PyTorch')
    check_equal({key: pool[key] for key in ('device', 'allocations', 'frees', 'peak_bytes', 'live_at_end_bytes')},
                {'device': 0, 'allocations': account['allocations'], 'frees': account['frees'], 'peak_bytes': account['peak'],
                 'live_at_end_bytes': account['end']}, 'the pool')
    check(abs(pool['fragmentation'] - (1 - account['peak'] / account['reserved'])) < 1e-9, 'fragmentation', pool)
    curve = [(row['allocated_bytes'], row['reserved_bytes']) for row in rows(run, 'memory-timeline') if row['reserved_bytes']]
    check_equal(curve, [(size, account['reserved']) for size in account['samples']], 'each change is a sample')
    check_equal(account['reports'], account['allocations'] + account['frees'] + 1, "libc10's own function was called each time")


def test_what_lived_at_the_peak():
    run, account = run_training()
    kinds = {}
    for row in rows(run, 'memory-peak'):
        kinds[row['kind']] = kinds.get(row['kind'], 0) + row['bytes']
    kib = 1024
    # In the backward pass: all but what a product uses for a moment and what the update does.
    check_equal(kinds, {'parameters': 150 * kib, 'gradients': 100 * kib, 'optimizer state': 200 * kib, 'inputs': 16 * kib,
                        'activations': 40 * kib, 'workspace': 80 * kib, 'reserved, unused': account['reserved'] - account['peak'],
                        'outside of PyTorch': 512 * kib}, 'bytes by kind')
    check_equal(sum(kinds.values()), account['reserved'] + 512 * kib, 'together all that the program has of the device')
    gradient = next(row for row in rows(run, 'memory-peak') if row['kind'] == 'gradients')
    check_equal((gradient['op'], gradient['count']), ('aten::mm', 1), 'operation')
    line = 1 + next(i for i, text in enumerate(PROGRAM.splitlines()) if text.startswith('    allocator.change(ctypes.c_long(next_address)'))
    check_equal(gradient['site'], f'program.py:{line} give', 'line')


def test_what_each_step_keeps_is_no_parameter():
    run, account = run_training('keeps')
    kinds = {}
    for row in rows(run, 'memory-peak'):
        kinds[row['kind']] = kinds.get(row['kind'], 0) + row['bytes']
    kib = 1024
    # Of the last step nobody knows yet that it stays.
    check_equal({kind: kinds[kind] for kind in ('parameters', 'persistent', 'activations')},
                {'parameters': 150 * kib, 'persistent': 3 * 24 * kib, 'activations': (40 + 24) * kib}, 'bytes by kind')


def test_life_spans():
    run, account = run_training()
    spans = rows(run, 'memory-spans')
    check_equal(sum(row['bytes'] for row in spans), account['peak'], 'together the peak')
    kinds = {}
    for row in rows(run, 'memory-peak'):
        if row['count']: kinds[row['kind']] = kinds.get(row['kind'], 0) + row['count']
    check_equal({kind: sum(row['kind'] == kind for row in spans) for kind in kinds}, kinds, 'the pieces of memory-peak, one by one')
    peak_at = spans[0]['peak_at_ns']
    check(all(row['begin_ns'] <= peak_at and (row['end_ns'] is None or row['end_ns'] > peak_at) for row in spans), 'all were there at the peak', spans)
    ended = {row['kind'] for row in spans if row['end_ns'] is not None}
    check_equal(ended, {'gradients', 'inputs', 'activations'}, 'what was given back before the end')
    gradient = next(row for row in spans if row['kind'] == 'gradients')
    check_equal((gradient['bytes'], gradient['op'], gradient['duration_ns']), (100 * 1024, 'aten::mm', gradient['end_ns'] - gradient['begin_ns']), 'a gradient')
    check_equal(len({row['address'] for row in spans}), len(spans), 'each at an address of its own')
    check_equal({int(row['address'], 16) % (1 << 20) for row in spans}, {0}, 'the addresses that the allocator told')


def test_left_out():
    run, account = run_training(env={'GPUTRACE_COLLECT': '-ops'})
    check_equal(records(run, 'TensorMemory'), [], 'no record')
    check_equal(account['reports'], account['allocations'] + account['frees'] + 1, "libc10's own function was called each time")


def test_refused():
    run, account = run_training('refuse')
    check_equal(account['refusals'], 1, "libc10's own function was called")
    refused = [record for record in records(run, 'TensorMemory') if record['flags']]
    check_equal([(record['bytes'], record['address']) for record in refused], [(1 << 33, 0)], 'the wish')
    finding = next(found for found in report(run)['findings'] if found['id'] == 'out-of-memory')
    check_equal({key: finding['evidence'][key] for key in ('refused', 'largest_refused_bytes', 'peak_bytes', 'reserved_bytes')},
                {'refused': 1, 'largest_refused_bytes': 1 << 33, 'peak_bytes': account['peak'], 'reserved_bytes': account['reserved']},
                'the finding')
    line = 1 + next(i for i, text in enumerate(PROGRAM.splitlines()) if 'allocator.refuse(' in text)
    check_equal(finding['site'], f'program.py:{line} <module>', 'its line')
    check('the program' not in finding['text'], 'it went on', finding)
    forget_run()
    ended, _ = run_training('refuse', 'ends')
    findings = report(ended)['findings']
    check_equal((findings[0]['id'], findings[0]['text'][-len('; the program exited 3'):]), ('out-of-memory', '; the program exited 3'), 'what it ended by comes first')
    screen = gputrace('report', ended.output)[0]
    check('refused by PyTorch' in ' '.join(screen.partition('\n  2  ')[0].split()), 'on the first screen too', screen)
    forget_run()
    other, _ = run_training()
    check(not [found for found in report(other)['findings'] if found['id'] == 'out-of-memory'], 'none where nothing was refused')


main()
