"""The lines that a trace tells of backward operations against the tracebacks that PyTorch itself keeps of the forward operations (inside/nodes.py)."""
import collections
import json

from differences import Difference
from traces import dump

BACKWARD, OF_FORWARD = 1, 1  # at::RecordScope::BACKWARD_FUNCTION; a flag of Stack


def lines(run, path):
    """(stacks in backward operations whose line is that of the traceback or was called from there, those that were compared, the first that
    differ). The call that leaves the line may lie in Python code that the operation itself runs. Numbers are each thread's own, and a record does not
    say whose: of programs whose backward passes make no nodes."""
    with open(path, encoding='utf-8') as file:
        wanted = {(name, number): (source, line) for name, number, source, line in json.load(file)}
    everything = dump(run)
    frames = {record['id']: record for record in everything if record['record'] == 'StackFrame'}
    stacks, right, compared, wrong = collections.defaultdict(list), 0, 0, []
    for record in everything:
        if record['record'] == 'Stack':
            stacks[record['tid']].append(record)

    def place_of(frame):
        return (frames[frame]['file'], frames[frame]['line']) if frame else None

    for operation in everything:
        if operation['record'] != 'Operation' or operation['scope'] != BACKWARD:
            continue
        name = frames[operation['frame']]['function']
        line = wanted.get((name, operation['sequence']))
        if line is None:  # what sums gradients, what changes a view in place
            continue
        for stack in stacks[operation['tid']]:
            if operation['begin_ns'] <= stack['begin_ns'] <= operation['end_ns']:
                at = stack['frame'] if stack['flags'] & OF_FORWARD else 0
                told = place = place_of(at)
                while at and place != line:
                    at = frames[at]['parent']
                    place = place_of(at)
                compared += 1
                right += place == line
                if place != line:
                    wrong.append((name, told, line))
    return right, compared, wrong[:5]


def compare(run, right, compared, wrong):
    if run.returncode != 0:
        yield Difference('backward lines', f'the program ends with {run.returncode} in anomaly mode: {run.stderr[-300:]!r}')
    elif right != compared or not compared:
        yield Difference('backward lines', f"{right} of {compared} stacks: (operation, in the trace, PyTorch's) {wrong}")
