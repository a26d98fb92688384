"""A program with gputrace against the same program without: how it ended and what it printed."""
import re

from differences import Difference

_ADDRESS, _NUMBER = re.compile(r'0x[0-9a-f]+'), re.compile(r'(?:(?<= ) +)?\d+')  # a process id may stand in a column


def _lines(text):
    """What was said on stderr, whoever said it first, without times, process ids and addresses."""
    return sorted(_NUMBER.sub('#', _ADDRESS.sub('#', line)) for line in text.decode(errors='replace').splitlines())


def compare(runs):
    """Differences between the plain and the traced run, and a plain run that fails."""
    plain, traced = runs.plain, runs.traced
    if plain.returncode != 0:
        yield Difference('without gputrace', f'it ends with {plain.returncode}: {_last_line(plain.stderr)}')
        return
    if runs.program.expect and not re.search(runs.program.expect, plain.stdout.decode(errors='replace')):
        yield Difference('without gputrace', f'stdout does not match {runs.program.expect!r}: {plain.stdout[-300:]!r}')
    if traced.returncode != plain.returncode:
        yield Difference('exit code', f'{traced.returncode} with gputrace, {plain.returncode} without: {_last_line(traced.stderr)}')
    if traced.stdout != plain.stdout:
        yield Difference('stdout', _first_other_line(plain.stdout.decode(errors='replace').splitlines(), traced.stdout.decode(errors='replace').splitlines()))
    with_us, without = _lines(traced.stderr), _lines(plain.stderr)
    if with_us != without and runs.program.stderr:
        added, absent = [line for line in with_us if line not in without], [line for line in without if line not in with_us]
        yield Difference('stderr', f'only with gputrace: {added[:3]}; only without: {absent[:3]}' if added or absent else 'lines are repeated another number of times')


def _last_line(text):
    lines = text.decode(errors='replace').strip().splitlines()
    return lines[-1][:300] if lines else 'nothing on stderr'


def _first_other_line(plain, traced):
    for number, (a, b) in enumerate(zip(plain, traced), 1):
        if a != b:
            return f'line {number} is {b!r} with gputrace, {a!r} without'
    return f'{len(traced)} lines with gputrace, {len(plain)} without'
