"""gputrace against the framework's own profiler in the same process: calls, kernels and operations against Kineto, lines against the
interpreter's own frames, FLOPs against PyTorch's counter, memory against its allocator.

Kineto leaves out the calls in KINETO_LEAVES_OUT (its source says so), and gputrace does not export some names of the runtime (those whose
parameters are not the same in CUDA 11, 12 and 13); every other runtime call that either sees, both must see, as often.
"""
import collections
import json
import re
import shutil
import subprocess

from against_truth import trace_calls
from against_truth_of_gpu import by_process
from differences import Difference
from traces import dump, report

KINETO_LEAVES_OUT = {'cudaGetDevice', 'cudaSetDevice', 'cudaGetLastError', 'cudaEventCreate', 'cudaEventCreateWithFlags', 'cudaEventDestroy'}
KINETO_2023_LEAVES_OUT = {'cudaEventRecord', 'cudaEventSynchronize'}  # besides, in PyTorch 2.1
_INTERNAL = re.compile(r'^__cuda(?!LaunchKernel)')  # how a program registers its kernels: no call of the API
# What a product or convolution is called in PyTorch: these go to the compute libraries.
LIBRARY_OPERATIONS = re.compile(r'^aten\.(mm|addmm|bmm|baddbmm|_scaled_mm|convolution|_convolution|cudnn_convolution|convolution_backward|'
                                r'_scaled_dot_product_cudnn_attention(_backward)?)$')
FLOPS_ALLOWED = 0.01
RATE = 2e-6  # Kineto writes times of its own clock, whose rate it estimates
CLOCKS_APART_NS = 20000  # between its clock (TSC) and ours, over a program's time


class Kineto:
    """A chrome trace of torch.profiler, cut to the program's own time."""

    def __init__(self, path):
        with open(path, encoding='utf-8') as file:
            events = [event for event in json.load(file)['traceEvents'] if event.get('ph') == 'X']
        program = next(event for event in events if event['name'] == 'gt: program')
        begin, end = float(program['ts']), float(program['ts']) + float(program['dur'])
        # Microseconds: with three decimals, or whole ones until PyTorch 2.2.
        self.rounded_ns = 2 if any(float(event['dur']) % 1 for event in events) else 1000
        self.calls = [event for event in events if event.get('cat') in ('cuda_runtime', 'cuda_driver') and begin <= float(event['ts']) <= end]
        self._operations = {event['args']['External id']: event for event in events if event.get('cat') == 'cpu_op' and 'External id' in event['args']}
        called = {event['args'].get('correlation') for event in self.calls}
        self.operations = {kind: [event for event in events if event.get('cat') == category and event['args'].get('correlation') in called]
                           for kind, category in (('kernel', 'kernel'), ('copy', 'gpu_memcpy'), ('memset', 'gpu_memset'))}

    def names_of_operations(self):
        return {event['name'] for event in self._operations.values()}

    def operations_of_launches(self):
        """{name of the innermost operation: launches of kernels}. A call outside of any has the id of one that it does not lie in, in old versions."""
        found = collections.Counter()
        for event in self.calls:
            operation = self._operations.get(event['args'].get('External id')) if 'LaunchKernel' in event['name'] else None
            if operation and operation['tid'] == event['tid'] and -1 <= float(event['ts']) - float(operation['ts']) <= float(operation['dur']) + 1:
                found[operation['name']] += 1
        return found

    def runtime_calls(self):
        """{documented name: count}"""
        return collections.Counter(_documented(event['name']) for event in self.calls if event['cat'] == 'cuda_runtime')


def _documented(name):
    return re.sub(r'^__|_(v\d+|ptsz|ptds)(?=_|$)', '', name)


def runtime_calls(process, said):
    """{documented name: count} of the trace, while the program ran."""
    counts = collections.Counter()
    for calls in trace_calls(dump(process), 'runtime').values():
        for call in calls:
            if said['begin_ns'] <= call.begin <= said['end_ns'] and not _INTERNAL.match(call.variant):
                counts[_documented(call.variant)] += 1
    return counts


def _common_calls(process, said, kineto, exported):
    """[(name, count in the trace, count in Kineto)] of what both promise."""
    ours, theirs = runtime_calls(process, said), kineto.runtime_calls()
    left_out = KINETO_LEAVES_OUT | (KINETO_2023_LEAVES_OUT if said.get('torch', '').startswith('2.1.') else set())
    return [(name, ours[name], theirs[name]) for name in sorted((set(ours) | set(theirs)) & exported - left_out)]


def _compare_calls(process, said, kineto, exported):
    for name, ours, theirs in _common_calls(process, said, kineto, exported):
        if ours != theirs:
            yield Difference('calls', f'{name}: {ours} in the trace, {theirs} in Kineto')


def _facts(kind, line):
    """What Kineto says of an operation, from the truth."""
    if kind != 'kernel':
        return (line['bytes'],)
    return tuple(line['grid']), tuple(line['block']), line['registers'] or 0, line['static_shared_bytes'] + line['dynamic_shared_bytes']


def _kineto_facts(kind, event):
    args = event['args']
    return (args['bytes'],) if kind != 'kernel' else (tuple(args['grid']), tuple(args['block']), args['registers per thread'], args['shared memory'])


def _demangled(symbols):
    """{symbol: name}; without the tool, the symbols themselves."""
    symbols = sorted(symbols)
    if not symbols or not shutil.which('c++filt'):
        return {symbol: symbol for symbol in symbols}
    done = subprocess.run(['c++filt'], input='\n'.join(symbols), capture_output=True, text=True, check=True)
    return dict(zip(symbols, done.stdout.splitlines()))


def _compare_operations(process, said, kineto):
    """Operation by operation: those of one call by their start, since the nodes of a graph share its correlation."""
    offsets = []
    for kind, events in kineto.operations.items():
        truth = [line for line in process.truth_of(kind) if said['begin_ns'] <= line['call_begin_ns'] <= said['end_ns']]
        if len(events) != len(truth):
            yield Difference('Kineto', f'{len(events)} of kind {kind} in Kineto, {len(truth)} in the truth')
            continue
        events = sorted(events, key=lambda event: (event['args']['correlation'], float(event['ts']), _kineto_facts(kind, event)))
        truth.sort(key=lambda line: (line['correlation'], line['start_ns'], _facts(kind, line)))
        names = _demangled({line['symbol'] for line in truth} if kind == 'kernel' else set())
        for event, line in zip(events, truth):
            if (event['args']['correlation'], _kineto_facts(kind, event)) != (line['correlation'], _facts(kind, line)):
                yield Difference('Kineto', f"{kind}: {event['args']} in Kineto, {line} in the truth")
                break
            if kind == 'kernel' and event['name'] not in (line['symbol'], names[line['symbol']]):
                yield Difference('Kineto', f"kernel {event['name']} in Kineto, {names[line['symbol']]} in the truth")
                break
            took = line['end_ns'] - line['start_ns']
            if abs(float(event['dur']) * 1000 - took) > kineto.rounded_ns + RATE * took:
                yield Difference('Kineto', f"{kind}: {event['dur']} us in Kineto, {took} ns in the truth")
                break
            offsets.append(float(event['ts']) * 1000 - line['start_ns'])
    if offsets and max(offsets) - min(offsets) > CLOCKS_APART_NS:
        yield Difference('Kineto', f'its clock and the truth drift apart by {max(offsets) - min(offsets):.0f} ns')


def flops_by_operation(said):
    """The counter's FLOPs of operations that compute libraries carry out, by name as the profiler has it (aten::mm)."""
    found = collections.Counter()
    for op, count in said['flops'].items():
        name = re.sub(r'\.(default|out|dtype)$', '', op.removeprefix('torch.ops.'))
        if LIBRARY_OPERATIONS.match(name):
            found[name.replace('.', '::', 1)] += count
    return found


def library_flops(said):
    """All of them together, or None."""
    return sum(flops_by_operation(said).values()) if 'flops' in said else None


def report_flops(process):
    """The report's FLOPs of products and convolutions, and the calls whose FLOPs it does not know."""
    rows = report(process, 'libs')['sections'].get('libs', {'rows': []})['rows']
    return sum(row['flops'] or 0 for row in rows), [row for row in rows if row['flops'] is None]


def _compare_flops(process, said):
    counted = library_flops(said)
    if counted is None:
        return
    reported, _ = report_flops(process)
    if abs(reported - counted) > FLOPS_ALLOWED * counted:
        yield Difference('FLOPs', f'{reported} in the report, {counted} by the counter ({said["flops"]})')
    told = collections.Counter()
    for row in report(process, 'ops')['sections'].get('ops', {'rows': []})['rows']:
        if row['op'] not in row['path'].split(' / ')[:-1]:  # the counter has each operation run once more within itself
            told[row['op']] += row['flops'] or 0
    for op, wanted in flops_by_operation(said).items():
        if told and abs(told[op] - wanted) > FLOPS_ALLOWED * wanted:
            yield Difference('FLOPs', f'{told[op]} of {op} in the report, {wanted} by the counter')


def _inside(process):
    """Rows of the framework's own allocator."""
    return [row for row in report(process, 'memory')['sections']['memory']['rows'] if row['pool'] == 'PyTorch']


def _compare_memory(process, said):
    """Each segment of PyTorch's allocator is one cudaMalloc: the report has at least those. What the allocator gives out is told exactly."""
    pools = [row for row in report(process, 'memory')['sections']['memory']['rows'] if row['device'] is not None and row['pool'].startswith('device')]
    allocations, wanted = sum(row['allocations'] for row in pools), said['memory'].get('segment.all.allocated', 0)
    if allocations < wanted:
        yield Difference('memory', f'{allocations} allocations of device memory in the report, {wanted} segments in the allocator')
    peak, reserved = sum(row['peak_bytes'] for row in pools), said['memory'].get('reserved_bytes.all.peak', 0)
    if peak < reserved:
        yield Difference('memory', f'peak of {peak} bytes in the report, {reserved} reserved by the allocator at its peak')
    inside = _inside(process)
    # Frees at the end of the process come after what the program could ask.
    for column, wanted in (('allocations', said['memory'].get('allocation.all.allocated', 0)),
                           ('peak_bytes', said['memory'].get('allocated_bytes.all.peak', 0))):
        told = sum(row[column] for row in inside)
        if told != wanted:
            yield Difference('memory', f"{column}: {told} of PyTorch's allocator in the report, {wanted} by memory_stats")


class Launches:
    """The launches of a process's trace while the program ran, each with the operation and the stack of frames that it is told to be of."""

    def __init__(self, process, said):
        everything = dump(process)
        self._frames = {record['id']: record for record in everything if record['record'] == 'StackFrame'}
        self.all, now = [], {}
        for record in sorted((record for record in everything if record['record'] in ('Stack', 'KernelLaunch', 'Gap')),
                             key=lambda record: (record['end_ns'], record['record'] == 'KernelLaunch')):
            if record['record'] == 'Stack':
                now[record['tid']] = record
            elif record['record'] == 'Gap':
                now.pop(record['tid'], None)
            elif record['level'] == 'driver' and record['result'] == 0 and said['begin_ns'] <= record['begin_ns'] <= said['end_ns']:
                self.all.append((record, now.get(record['tid'])))

    def operations(self, names):
        """{name: launches}, by the innermost operation of those names: what is none to Kineto (ranges of users and of torch.distributed) lies within
        one that is."""
        found = collections.Counter()
        for _, stack in self.all:
            at = stack['operation'] if stack else 0
            while at and self._frames[at]['function'] not in names:
                at = self._frames[at]['parent']
            if at:
                found[self._frames[at]['function']] += 1
        return found

    def line_of(self, stack, program):
        """The innermost one in that file; None: none is told."""
        at = stack['frame'] if stack else 0
        while at and self._frames[at]['file'] != program:
            at = self._frames[at]['parent']
        return self._frames[at]['line'] if at else None


def operations(launches, kineto):
    """(launches of which the operation is Kineto's, by name; all launches in Kineto that have one; names that differ)."""
    ours, theirs = launches.operations(kineto.names_of_operations()), kineto.operations_of_launches()
    return sum((ours & theirs).values()), sum(theirs.values()), {name: (ours[name], theirs[name]) for name in sorted(set(ours) | set(theirs))
                                                                if ours[name] != theirs[name]}


def lines(launches, said):
    """(launches whose line is the interpreter's own, those that were compared, the first that differ). A launch is of the operation that was
    under way in its thread."""
    seen, right, compared, wrong = collections.defaultdict(list), 0, 0, []
    for tid, begin, end, line in said.get('lines', ()):
        seen[tid].append((begin, end, line))
    for record, stack in launches.all:
        found = [line for begin, end, line in seen[record['tid']] if begin <= record['begin_ns'] and record['end_ns'] <= end]
        if not found:
            continue
        compared += 1
        told = launches.line_of(stack, said['program'])
        right += told == found[-1]
        if told != found[-1]:
            wrong.append((told, found[-1]))
    return right, compared, wrong[:5]


def _compare_operations_and_lines(process, said, kineto):
    launches = Launches(process, said)
    told, all_of_them, differ = operations(launches, kineto)
    if told != all_of_them:
        yield Difference('operations', f'{told} of {all_of_them} launches: (in the trace, in Kineto) {differ}')
    right, compared, wrong = lines(launches, said)
    if right != compared:
        yield Difference('lines', f"{right} of {compared} launches: (in the trace, the interpreter's) {wrong}")


def compare(profiled, exported):
    """Differences, a process at a time; `exported` are the runtime's names that gputrace records."""
    if profiled.run.returncode != 0:
        yield Difference('profiler', f'the program ends with {profiled.run.returncode} under it: {profiled.run.stderr[-300:]!r}')
        return
    if not profiled.processes:
        yield Difference('profiler', 'it left nothing')
    processes, _ = by_process(profiled.run)
    processes = {process.pid: process for process in processes}
    for said in profiled.processes:
        process, kineto = processes.get(said['pid']), Kineto(said['kineto'])
        if process is None:
            yield Difference('profiler', f'process {said["pid"]} has no trace')
            continue
        yield from _compare_calls(process, said, kineto, exported)
        yield from _compare_operations(process, said, kineto)
        yield from _compare_flops(process, said)
        yield from _compare_memory(process, said)
        yield from _compare_operations_and_lines(process, said, kineto)


def numbers(profiled, exported):
    """What the table shows, summed over processes."""
    totals = collections.Counter()
    processes, _ = by_process(profiled.run)
    processes = {process.pid: process for process in processes}
    flops_known = True
    for said in profiled.processes:
        process = processes.get(said['pid'])
        if process is None:
            continue
        kineto, counted = Kineto(said['kineto']), library_flops(said)
        flops_known = flops_known and counted is not None
        for _, ours, theirs in _common_calls(process, said, kineto, exported):
            totals['calls'] += ours
            totals['kineto_calls'] += theirs
        launches = Launches(process, said)
        for what, (ours, theirs, _) in (('operations', operations(launches, kineto)), ('lines', lines(launches, said))):
            totals[what] += ours
            totals['their_' + what] += theirs
        totals['memory'] += sum(row['peak_bytes'] for row in _inside(process))
        totals['their_memory'] += said['memory'].get('allocated_bytes.all.peak', 0)
        totals['flops'] += report_flops(process)[0]
        totals['counted_flops'] += counted or 0
    return {'calls': [totals['calls'], totals['kineto_calls']],
            **{what: [totals[what], totals['their_' + what]] if totals['their_' + what] else None for what in ('operations', 'lines', 'memory')},
            'flops': [totals['flops'], totals['counted_flops']] if flops_known else None}
