"""The report and the trace of each process against what the simulated GPU says that it did (SIMGPU_TRUTH)."""
import bisect
import collections
import re

import against_truth
import device_truth
from cases import Failed, check, check_equal
from differences import Difference
from processes import Run
from traces import check_conservation, check_launches_against_truth, records, report


class OneProcess(Run):
    """The part of a run that one process did: its trace and its lines of the truth."""

    def __init__(self, run, trace, pid, truth):
        super().__init__(run.command, run.returncode, run.stdout, run.stderr, run.seconds, trace, None)
        self.pid, self._lines = pid, truth

    traces = property(lambda self: [self.output])
    truth = property(lambda self: self._lines)


def by_process(run):
    """A OneProcess per trace."""
    truth = collections.defaultdict(list)
    for line in run.truth:
        truth[line['pid']].append(line)
    found = []
    for trace in run.traces:
        pid = report(trace, 'run')['sections']['run']['rows'][0]['pid']
        found.append(OneProcess(run, trace, pid, truth.pop(pid, [])))
    return found, truth


def _nothing_lost(process):
    check_equal(check_conservation(process)[2], 0, 'dropped records')


def _report(process):
    against_truth.check_report_against_truth(process, memory_exact=not records(process, 'TensorMemory'))  # the framework's pool is not the GPU's


def _device_times(process):
    device_truth.check_records(process, whole_graphs=bool(records(process, 'DeviceGraph')))


_XLA = re.compile(r'(?:XlaModule|Thunk):#(?:(name)=(.*?),(?=[a-z_]+=))?.*?hlo_(?:op|module)=([^,#]+)')


def _ranges_of_xla(process):
    """[(thread, begin, end, name)]: modules and operations, as XLA marks them with NVTX."""
    open_, found = collections.defaultdict(list), []
    for record in records(process, 'Nvtx'):
        if record['domain'] != 'TSL':
            continue
        if record['what_name'] == 'push':
            open_[record['tid']].append((record['begin_ns'], record['message']))
        elif record['what_name'] == 'pop' and open_[record['tid']]:
            begin, message = open_[record['tid']].pop()
            if match := _XLA.match(message):
                name = f'{match[3]} ({match[2]})' if match[2] and message.startswith('Thunk') else match[3]
                found.append((record['tid'], begin, record['begin_ns'], name))
    return found


def _operations_by_thread(process):
    """{thread: (begins, [(begin, end, name)])}: the framework's operations as the trace has them, by when they began."""
    everything = records(process, 'Operation', 'StackFrame')
    names = {record['id']: record['function'] for record in everything if record['record'] == 'StackFrame'}
    found = collections.defaultdict(list)
    for record in everything:
        if record['record'] == 'Operation':
            found[record['tid']].append((record['begin_ns'], record['end_ns'], names[record['frame']]))
    for tid, begin, end, name in _ranges_of_xla(process):
        found[tid].append((begin, end, name))
    return {tid: sorted(operations) for tid, operations in found.items()}


def _innermost(operations, tid, at):
    """The name of the operation that the thread was in, at some moment; None: in none."""
    of_thread = operations.get(tid, [])
    for begin, end, name in reversed(of_thread[:bisect.bisect(of_thread, (at, float('inf'), ''))]):
        if end >= at:
            return name
    return None


def _nodes(process, operations):
    """{(exec, node): [(when it was instantiated, name)]}: the operation that captured each node. Handles are given out again: the newest one before
    holds. The truth tells of kernels' captures, the trace of copies' and memsets' too."""
    captured = collections.defaultdict(list)
    for line in process.truth_of('node'):
        at = (line['call_begin_ns'] + line['call_end_ns']) // 2
        captured[line['node']].append((at, _innermost(operations, line['tid'], at)))
    kernels = set(captured)
    for record in records(process, 'CapturedNode'):
        if record['node'] not in kernels:
            captured[record['node']].append((record['begin_ns'], _innermost(operations, record['tid'], record['begin_ns'])))
    found = collections.defaultdict(list)
    for record in records(process, 'GraphNode'):
        before = [each for each in sorted(captured[record['node']], key=lambda each: each[0]) if each[0] < record['begin_ns']]
        found[record['exec'], record['node']].append((record['begin_ns'], before[-1][1] if before else None))
    return found


def check_operations(process):
    """What the simulated GPU ran, by the operations of a framework within which its calls captured or launched it."""
    operations = _operations_by_thread(process)
    check(operations, 'a program whose operations were asked for has none')
    nodes, times, kernels = _nodes(process, operations), collections.Counter(), collections.Counter()
    for line in process.truth_of('kernel', 'copy', 'memset'):
        replayed, at = line.get('graph'), (line['call_begin_ns'] + line['call_end_ns']) // 2
        if replayed:
            captured = [each for each in nodes[replayed['exec'], replayed['node']] if each[0] < at][-1][1]
            kernels[captured] += line['op'] == 'kernel'
        name = replayed and captured or _innermost(operations, line['tid'], at)
        if name:
            times[name] += line['end_ns'] - line['start_ns']
    kernels.pop(None, None)
    table = report(process, 'ops')['sections']['ops']['rows']
    own, within = collections.Counter(), collections.Counter()
    for row in table:
        own[row['op']] += row['device_self_ns']
        within[row['path']] += row['replayed_kernels'] or 0
    found = collections.Counter({row['op']: 0 for row in table})
    for row in table:
        found[row['op']] += (row['replayed_kernels'] or 0) - sum(other for path, other in within.items() if path.rpartition(' / ')[0] == row['path'])
    check_equal(+found, +kernels, 'kernels of replays, by the operation that was captured')
    if not records(process, 'DeviceGraph'):
        check_equal(+own, +times, 'device time by operation')


_CHECKS = (('calls of the trace', check_launches_against_truth), ('report', _report), ('device times', _device_times),
           ('operations', check_operations), ('loss', _nothing_lost))


def reduced(run):
    """Bytes of all-reduces in the report, of each process that has any."""
    found = [sum(row['bytes'] or 0 for row in report(process, 'comm')['sections'].get('comm', {'rows': []})['rows'] if row['op'].lower() == 'allreduce')
             for process in by_process(run)[0]]
    return [bytes_ for bytes_ in found if bytes_]


def compare_reduced(found, wanted):
    """The same, against what the program says that each of its processes must reduce."""
    if not found or any(bytes_ != wanted for bytes_ in found):
        yield Difference('collectives', f'{found} bytes reduced by the processes in the report, {wanted} by the program')


def steps(run, each):
    """[steps in the report but for those of an evaluation, steps of all processes that launched anything, which make `each` of them]"""
    working = [process for process in by_process(run)[0] if process.truth_of('kernel')]
    told = [row for process in working for row in report(process, 'steps')['sections'].get('steps', {'rows': []})['rows'] if row['phase'] != 'evaluation']
    return [len(told), each * len(working)]


def compare_steps(found, wanted):
    if found != wanted:
        yield Difference('steps', f'{found} in the report, {wanted} by the program')


def compare(run, device_times=True, operations=False):
    """Differences between trace, report and truth, a process at a time. `operations`: those of a framework were asked for."""
    processes, without_trace = by_process(run)
    for pid, lines in without_trace.items():
        if any(line['op'] in ('kernel', 'copy', 'memset') for line in lines):
            yield Difference('traces', f'process {pid} gave work to a device and has no trace')
    for process in processes:
        if not any(line['op'] in ('kernel', 'copy', 'memset') for line in process.truth):
            continue
        for what, function in _CHECKS:
            if function is _device_times and not device_times or function is check_operations and not operations:
                continue
            try:
                function(process)
            except Failed as error:
                yield Difference(what, ' '.join(str(error).split())[:600])


def numbers(run):
    """What the table shows: kernels and bytes of copies, of the report and of the truth."""
    overview = {row['metric']: row['value'] for row in report(run, 'overview')['sections']['overview']['rows']}
    copies = run.truth_of('copy')
    return {'kernels': [overview['kernels'], len(run.truth_of('kernel'))],
            'copy_bytes': [overview['copy_bytes'], sum(line['bytes'] for line in copies)],
            'dropped': report(run, 'overview')['coverage']['dropped']}
