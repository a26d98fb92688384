# meson: timeout=300
# Steps: programs that say themselves when each turn of their loop begins, with marks and without. A step must begin between the last call
# of the turn before it and the moment at which the program says that the turn begins.
from timeline_truth import *

PARTS = ('compilation_ns', 'input_ns', 'output_ns', 'launch_ns', 'host_ns', 'device_to_device_ns', 'collective_ns', 'compute_16_ns',
         'compute_32_ns', 'compute_other_ns', 'other_ns')
KERNELS = {'SIMGPU_KERNEL_TIME': 'step=300us,reduce=100us,scale=50us'}

BEGIN = f'''
import ctypes, sys, time
sys.path.insert(0, {os.path.join(SOURCE, "tests", "e2e")!r})
from driver import Driver
d = Driver()
step, reduce, scale = (d.kernel(name) for name in ('step', 'reduce', 'scale'))
memory, size = d.alloc(1 << 20), ctypes.c_size_t
host = ctypes.create_string_buffer(4096)
def now(): return time.clock_gettime_ns(time.CLOCK_MONOTONIC)
def turn(last):
    """Says when a turn begins, and from when on nothing but its end came before it."""
    print('turn', last, now(), flush=True)
def to_device(): d('cuMemcpyHtoD_v2', memory, host, size(4096))
def to_host(): d('cuMemcpyDtoH_v2', host, memory, size(4096))
def wait(): d('cuCtxSynchronize')
'''

# C, for NVTX: n steps of three kernels, an evaluation of two after each fifth, all in ranges.
RANGES = r'''
#include <cuda.h>
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
static const char image[] = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry step(.param .u64 data) { ret; }\n";
static CUfunction function;
static void launch(int kernels) {
  CUdeviceptr none = 0;
  void* arguments[] = {&none};
  for (int i = 0; i < kernels; ++i) cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, 0, arguments, 0);
}
int main(void) {
  CUcontext context; CUmodule module;
  cuInit(0); cuDevicePrimaryCtxRetain(&context, 0); cuCtxSetCurrent(context);
  cuModuleLoadData(&module, image); cuModuleGetFunction(&function, module, "step");
  launch(4);
  nvtxDomainHandle_t domain = nvtxDomainCreateA("layers");
  nvtxEventAttributes_t inner = {0};
  inner.version = NVTX_VERSION; inner.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  inner.messageType = NVTX_MESSAGE_TYPE_ASCII; inner.message.ascii = "forward";
  for (int i = 0; i < 20; ++i) {
    char name[32];
    snprintf(name, sizeof name, "%s %d", NAME, i);
    nvtxRangePushA(name);
    nvtxDomainRangePushEx(domain, &inner); launch(2); nvtxDomainRangePop(domain);
    launch(1);
    nvtxRangePop();
    if (i % 5 == 4) { nvtxRangePushA("evaluation step"); launch(2); nvtxRangePop(); }
  }
  cuCtxSynchronize();
  return 0;
}
'''


def ran(body, env=None):
    path = scratch('program.py')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(BEGIN + body)
    run = traced([sys.executable, path], {**KERNELS, **(env or {})})
    check_equal(run.returncode, 0, 'exit code')
    run.turns = [tuple(int(word) for word in line.split()[1:]) for line in run.stdout.decode().splitlines() if line.startswith('turn')]
    return run


def steps_of(run, options=()):
    return report(run, 'steps', options=options)['sections']['steps']['rows']


def check_parts(steps):
    for each in steps:
        check_equal(sum(each[part] for part in PARTS), each['duration_ns'], f"parts of step {each['step']}")


def check_begins(run, steps, source):
    """Each turn but the first, whose begin the start-up lies before, is a step, and there are no others."""
    check_equal(len(steps), len(run.turns), 'steps')
    check_equal({each['source'] for each in steps}, {source}, 'how they were found')
    check_equal([each['step'] for each in steps], list(range(1, len(steps) + 1)), 'numbers')
    for (last, begin), each in list(zip(run.turns, steps))[1:]:
        check(last <= each['begin_ns'] <= begin, f"begin of step {each['step']}", last, each['begin_ns'], begin)
    check_parts(steps)
    for before, after in zip(steps, steps[1:]):
        check(before['begin_ns'] + before['duration_ns'] <= after['begin_ns'], 'steps do not overlap', before, after)


def test_a_loop_without_marks():
    run = ran('''
for i in range(5): to_device()
wait()
last = now()
for i in range(40):
    turn(last)
    to_device()
    d.launch(step); d.launch(reduce); d.launch(scale); d.launch(step)
    last = now()
    to_host()
''')
    check_begins(run, steps_of(run), 'inferred')
    numbers = metrics(run)
    check_equal(numbers['steps'], 40, 'in the overview')
    lengths = [each['duration_ns'] for each in steps_of(run) if each['phase'] == 'other']
    check_equal(numbers['step_median_ns'], nearest_rank(sorted(lengths), 0.5), 'median')
    check_equal(numbers['step_mean_ns'], rounded_mean(lengths), 'mean')
    check_equal(numbers['step_p99_ns'], nearest_rank(sorted(lengths), 0.99), 'p99')


def test_computing_and_copies_are_the_truths():
    run = ran('''
last = now()
for i in range(30):
    turn(last)
    to_device()
    d.launch(step); d.launch(reduce)
    last = now()
    to_host()
''')
    steps = steps_of(run)
    for each in steps[1:]:
        begin, end = each['begin_ns'], each['begin_ns'] + each['duration_ns']
        own = {op: [(o['start_ns'], o['end_ns']) for o in run.truth
                    if o['op'] == op and begin <= o['start_ns'] and o['end_ns'] <= end and o.get('kind') != 'HtoD'] for op in ('kernel', 'copy')}
        wanted = {op: length(union(spans)) for op, spans in own.items()}
        check(abs(each['compute_other_ns'] - wanted['kernel']) <= 2000, f"computing in step {each['step']}", each, wanted)
        # The host's time in the call that copies, while the device does nothing, is output too.
        check(wanted['copy'] > 0 and each['output_ns'] >= wanted['copy'] - 2000, f"copies to the host in step {each['step']}", each, wanted)


def test_gradients_accumulate_and_evaluation_follows():
    run = ran('''
last = now()
for epoch in range(3):
    for i in range(20):
        turn(last)
        for micro in range(4):
            to_device()
            d.launch(step); d.launch(reduce)
        d.launch(scale)
        last = now()
        wait()
    for i in range(6):
        to_device()
        d.launch(step)
        last = now()
        to_host()
''')
    steps = steps_of(run)
    check_equal(len(steps), 60, 'steps')
    right = sum(any(last <= each['begin_ns'] <= begin for last, begin in run.turns) for each in steps)
    check(right >= 58, 'their begins', right)
    check_parts(steps)


def test_nothing_is_claimed_where_nothing_comes_again():
    run = ran('''
import random
random.seed(7)
for i in range(300): d.launch(random.choice((step, reduce, scale)))
''')
    check_equal(steps_of(run), [], 'steps')
    numbers = metrics(run)
    check_equal([numbers[name] for name in ('steps', 'step_mean_ns', 'step_median_ns', 'step_p99_ns')], [None] * 4, 'overview')
    check('does not come again' in ' '.join(report(run, 'steps')['sections']['steps']['notes']), 'the reason is said')


def test_a_part_of_the_steps():
    run = ran('''
last = now()
for i in range(30):
    turn(last)
    to_device()
    d.launch(step); d.launch(reduce); d.launch(scale)
    last = now()
    to_host()
''')
    whole, part = steps_of(run), report(run, options=['--steps', '11-20'])
    same = [{key: value for key, value in row.items() if key != 'cause'} for row in whole[10:20]]
    found = [{key: value for key, value in row.items() if key != 'cause'} for row in part['sections']['steps']['rows']]
    check_equal(found, same, 'the same steps, with their numbers')
    kernels = {row['symbol']: row['launches'] for row in part['sections']['kernels']['rows']}
    check_equal(kernels, {'step': 10, 'reduce': 10, 'scale': 10}, 'kernels of ten steps')
    check_equal(len(steps_of(run, ['--steps', '29-'])), 2, 'to the end')
    check('there are steps 1 to 30' in gputrace('report', run.output, '--steps', '31-40', rc=3)[1], 'no such steps')
    for wrong in ('0-3', '5-4', 'a', '-', '1-2-3'):
        gputrace('report', run.output, f'--steps={wrong}', rc=2)
    gputrace('report', run.output, '--steps', '1-2', '--from', '1s', rc=2)


def test_a_part_of_the_steps_of_two_ranks():
    # One is three times as fast: what its other steps did in that time is told, but they are not among the steps that were asked for.
    path = scratch('program.py')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(BEGIN + '''
import os, time
for i in range(30):
    to_device()
    d.launch(step); d.launch(reduce); d.launch(scale)
    to_host()
    time.sleep(0.003 if os.environ['RANK'] == '1' else 0.001)
''')
    run = traced(['sh', '-c', f'for r in 0 1; do RANK=$r {sys.executable} {path} & pids="$pids $!"; done; for p in $pids; do wait $p || exit 9; done'], KERNELS)
    check_equal(run.returncode, 0, 'exit code')
    found = collections.Counter((row['pid'], row['step']) for row in steps_of(run, ['--steps', '11-13']))
    check_equal(sorted(found.values()), [1] * 6, 'three steps of each')
    check_equal({step for _, step in found}, {11, 12, 13}, 'with those numbers')


def ranges(name):
    return compiled('ranges.c', f'#define NAME "{name}"\n' + RANGES, '-lcuda', '-ldl')


def test_ranges_are_steps():
    run = traced([ranges('train_step')], KERNELS)
    steps = steps_of(run, ['--step-range', '^train_step'])
    check_equal(len(steps), 20, 'steps')
    check_equal({each['source'] for each in steps_of(run)}, {'nvtx'}, 'found without being asked')
    # The program never waits: it is through with all steps when the device comes to the second one, so each is the device's.
    kernels = sorted((line for line in run.truth if line['op'] == 'kernel'), key=lambda line: line['seq'])[4:]
    begins = [kernels[3 * i + 2 * (i // 5)]['start_ns'] for i in range(20)]
    for each, begin in zip(steps, begins):
        check(abs(each['begin_ns'] - begin) <= 2000, f"begin of step {each['step']}", each['begin_ns'], begin)
    check('by the device' in ' '.join(report(run, 'steps')['sections']['steps']['notes']), 'that is said')


def test_ranges_of_a_pattern():
    run = traced([ranges('round')], KERNELS)
    check('nvtx' not in {each['source'] for each in steps_of(run)}, 'nothing says that these are steps')
    steps = steps_of(run, ['--step-range', '^round'])
    check_equal((len(steps), {each['source'] for each in steps}), (20, {'nvtx'}), 'the user says so')
    gputrace('report', run.output, '--step-range', '(', rc=2)


def test_time_of_ranges():
    """Their host's time from the records, their device's from the truth: kernels in the order in which they were launched."""
    run = traced([ranges('train_step')], KERNELS)
    kernels = sorted((line for line in run.truth if line['op'] == 'kernel'), key=lambda line: line['seq'])[4:]
    groups, at = collections.defaultdict(list), 0
    for i in range(20):
        groups[f'train_step {i}', ''].append(kernels[at:at + 3])
        groups['forward', 'layers'].append(kernels[at:at + 2])
        at += 3
        if i % 5 == 4:
            groups['evaluation step', ''].append(kernels[at:at + 2])
            at += 2
    found = {(row['range'], row['domain'] or ''): row for row in rows(run, 'nvtx')}
    check_equal(sorted(found), sorted(groups), 'ranges')
    slack = 2000  # the clock of the device against the host's
    for key, row in found.items():
        check_equal((row['count'], row['kernels']), (len(groups[key]), sum(map(len, groups[key]))), f'count and kernels of {key}')
        wanted = sum(max(k['end_ns'] for k in group) - min(k['start_ns'] for k in group) for group in groups[key])
        check(abs(row['device_total_ns'] - wanted) <= slack * len(groups[key]), f'device time of {key}', row, wanted)
    times, open_at = collections.Counter(), {}
    for record in dump(run):
        if record['record'] == 'Nvtx' and record['what_name'] == 'push':
            open_at.setdefault(record['domain'] or '', []).append((record['message'], record['begin_ns']))
        if record['record'] == 'Nvtx' and record['what_name'] == 'pop':
            message, begin = open_at[record['domain'] or ''].pop()
            times[message, record['domain'] or ''] += record['begin_ns'] - begin
    check_equal({key: row['total_ns'] for key, row in found.items()}, dict(times), 'time on the host')


def test_phases():
    run = ran('''
wait()
time.sleep(0.1)
last = now()
for epoch in range(2):
    for i in range(20):
        turn(last)
        to_device()
        d.launch(step); d.launch(reduce); d.launch(scale)
        last = now()
        wait()
    for i in range(10):
        to_device()
        d.launch(scale)
        to_host()
''')
    phases, steps = rows(run, 'phases'), steps_of(run)
    check_equal([row['phase'] for row in phases if row['phase'] != 'warm-up'], ['start-up', 'other', 'other', 'other', 'other'],
                'start-up, twenty steps, ten others, twenty steps, ten others')
    check(phases[0]['duration_ns'] > 100_000_000, 'start-up', phases[0])
    for before, after in zip(phases, phases[1:]):
        check_equal(before['begin_ns'] + before['duration_ns'], after['begin_ns'], 'no gap between phases')
    check_equal(phases[0]['begin_ns'] + phases[0]['duration_ns'], steps[0]['begin_ns'], 'up to the first step')
    check_equal(len(steps), 40, 'steps')


# What saves a model, by the name that samples find it under; and the same under another name.
SAVER = """
def save():
    end = time.thread_time() + 0.25
    while time.thread_time() < end:
        sum(range(1000))


save()
"""


def test_what_lies_between_steps_and_that_a_model_is_saved_there():
    for file, phase in (('/opt/torch/serialization.py', 'checkpoint'), ('/opt/mine/serialization.py', 'other')):
        run = ran(f'''
saver = compile({SAVER!r}, {file!r}, 'exec')
for turn in range(60):
    to_device()
    d.launch(step); d.launch(reduce); d.launch(scale)
    wait()
    if turn % 20 != 19:
        continue
    for i in range(10):
        to_device()
        d.launch(scale)
        to_host()
    exec(saver)
    to_host()
''')
        steps, metric = steps_of(run), {row['metric']: row['value'] for row in rows(run, 'overview')}
        counted = [row for row in steps if row['counted']]
        loop = counted[-1]['begin_ns'] + counted[-1]['duration_ns'] - counted[0]['begin_ns']
        within = sum(row['duration_ns'] for row in steps if row['begin_ns'] >= counted[0]['begin_ns'])
        check_equal((metric['loop_ns'], metric['between_steps_ns']), (loop, loop - within), 'the loop, and what of it lies between steps')
        check(metric['between_steps_ns'] > 450e6, 'saving twice', metric['between_steps_ns'])
        found = [row for row in rows(run, 'phases') if row['duration_ns'] > 200e6][-3:-1]
        check_equal([row['phase'] for row in found], [phase] * 2, f'what lies between the epochs: {found}')
        said = gputrace('report', run.output)[0]
        check(re.search(r'Steps +(60|5[6-9]) of .*; [\d.]+ m?s of [\d.]+ m?s lie between them', said), 'the first screen says so', said)
        forget_run()


def test_of_several_processes_it_is_said_whose_steps_are_told():
    for children in (0, 1):
        run = ran('''
import os, subprocess
child = len(sys.argv) > 1
others = [] if child or os.environ['CHILDREN'] == '0' else [subprocess.Popen([sys.executable, __file__, 'child'])]
for i in range(30 if child else 60):
    d.launch(step); d.launch(reduce); d.launch(scale)
    wait()
for other in others:
    other.wait()
if not child:
    print('pid', os.getpid())
''', {'CHILDREN': str(children)})
        check_equal(len(run.traces), 1 + children, 'traces')
        line = next(line for line in gputrace('report', run.output)[0].splitlines() if line.startswith('Steps'))
        named = re.search(r', of \S+ \(pid (\d+)\)', line)
        launched_most = int(re.search(rb'pid (\d+)', run.stdout)[1])
        check_equal(int(named[1]) if named else None, launched_most if children else None, f'whose steps: {line}')
        forget_run()


main()
