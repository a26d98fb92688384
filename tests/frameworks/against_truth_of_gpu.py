"""The report and the trace of each process against what the simulated GPU says that it did (SIMGPU_TRUTH)."""
import collections

import against_truth
import device_truth
from cases import Failed, check_equal
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


def _device_times(process):
    device_truth.check_records(process, whole_graphs=bool(records(process, 'DeviceGraph')))


_CHECKS = (('calls of the trace', check_launches_against_truth), ('report', against_truth.check_report_against_truth), ('device times', _device_times),
           ('loss', _nothing_lost))


def reduced(run):
    """Bytes of all-reduces in the report, of each process that has any."""
    found = [sum(row['bytes'] or 0 for row in report(process, 'comm')['sections'].get('comm', {'rows': []})['rows'] if row['op'].lower() == 'allreduce')
             for process in by_process(run)[0]]
    return [bytes_ for bytes_ in found if bytes_]


def compare_reduced(found, wanted):
    """The same, against what the program says that each of its processes must reduce."""
    if not found or any(bytes_ != wanted for bytes_ in found):
        yield Difference('collectives', f'{found} bytes reduced by the processes in the report, {wanted} by the program')


def compare(run, device_times=True):
    """Differences between trace, report and truth, a process at a time."""
    processes, without_trace = by_process(run)
    for pid, lines in without_trace.items():
        if any(line['op'] in ('kernel', 'copy', 'memset') for line in lines):
            yield Difference('traces', f'process {pid} gave work to a device and has no trace')
    for process in processes:
        if not any(line['op'] in ('kernel', 'copy', 'memset') for line in process.truth):
            continue
        for what, function in _CHECKS:
            if function is _device_times and not device_times:
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
