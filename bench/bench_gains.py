"""What the report promises, against what one gets: programs with a planted cause on the simulated GPU, and the same programs without it. Both
run nine times (GT_TIMES says another number); medians of the gain that the finding names, and of the span from the first launch to the last operation.
All of them write docs/gains.md; arguments name some (`./dev bench gains polling-event`). GT_PAIRS=DIR keeps the traces of the two runs in the middle
of each program's, for tests/corpus/gains."""
import functools
import glob
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

from bench import Table, harness, run, scratch
from gain_programs import BEGIN, PROGRAMS

TIMES = int(os.environ.get('GT_TIMES', '9'))
GOAL = 0.1


@functools.cache
def alone():
    """What the machine does besides is not what is measured: a real-time class, where it may be had."""
    chrt = ['chrt', '--rr', '1']
    return chrt if shutil.which(chrt[0]) and subprocess.run([*chrt, 'true'], check=False).returncode == 0 else []


class Run:
    """One run: its trace's directory, the replayed span, and the finding's gain (None: it promises nothing)."""

    def __init__(self, key, finding, environment, body, planted):
        program = os.path.join(scratch.name, 'program.py')
        with open(program, 'w', encoding='utf-8') as file:
            file.write(BEGIN.format(tests=os.path.join(harness.SOURCE, 'tests', 'e2e')) + body)
        self.output = tempfile.mkdtemp(dir=scratch.name)
        run([*alone(), sys.executable, program, 'with' if planted else 'without'],
            {'SIMGPU_KERNEL_TIME': '.*=1ms', 'SIMGPU_CLOCK': 'monotonic', 'SIMGPU_COPY_BANDWIDTH': '50G', 'LD_LIBRARY_PATH': harness.places.simgpu,
             'LD_PRELOAD': harness.places.library, 'GPUTRACE_OUTPUT': self.output, **environment})
        answer = harness.report(self.output)
        replayed = next(row for row in answer['sections']['overview']['rows'] if row['metric'] == 'replayed_ns')
        if replayed['value'] is None:
            sys.exit(f'bench: {key}: {replayed["note"]}')
        self.span = replayed['value']
        found = next((each for each in answer['findings'] if each['id'] == finding), None)
        self.gain = found['evidence'].get('gain_ns') if found else None


def middle(runs, value):
    """The run whose value is the median."""
    return sorted(runs, key=value)[len(runs) // 2]


def keep(key, finding, with_it, without):
    folder = os.environ.get('GT_PAIRS')
    if not folder:
        return
    for name, run_ in (('with', with_it), ('without', without)):
        place = os.path.join(folder, key)
        os.makedirs(place, exist_ok=True)
        shutil.copy(glob.glob(os.path.join(run_.output, '*.gtrace'))[0], os.path.join(place, name + '.gtrace'))
    with open(os.path.join(folder, key, 'finding'), 'w', encoding='utf-8') as file:
        file.write(finding + '\n')


def ms(value):
    return '-' if value is None else f'{value / 1e6:.2f} ms'


def measured(key, what, finding, environment, body):
    """A row of the table."""
    runs = {planted: [Run(key, finding, environment, body, planted) for _ in range(TIMES)] for planted in (True, False)}
    span, clean = (statistics.median(each.span for each in runs[planted]) for planted in (True, False))
    gains = [each.gain for each in runs[True] if each.gain is not None]
    gain = statistics.median(gains) if len(gains) * 2 > TIMES else None
    keep(key, finding, middle(runs[True], lambda each: each.span), middle(runs[False], lambda each: each.span))
    for each in runs[True] + runs[False]:
        shutil.rmtree(each.output)
    real = span - clean
    return what, finding, span, clean, real, gain, abs(gain - real) / real if gain is not None and real > 0 else None


def main():
    wanted = sys.argv[1:]
    unknown = [each for each in wanted if each not in {program[0] for program in PROGRAMS}]
    if unknown:
        sys.exit(f'bench: no such program: {", ".join(unknown)}; there are {", ".join(program[0] for program in PROGRAMS)}')
    table, rows = Table('Gains: promised and real'), []
    for key, *program in PROGRAMS:
        if wanted and key not in wanted:
            continue
        what, finding, span, clean, real, gain, off = measured(key, *program)
        percent = '-' if off is None else f'{off * 100:.1f} %'
        table.add(f'{key}: {finding}', f'{ms(gain)} promised, {ms(real)} real, {percent}', '<= 10 %', off is not None and off <= GOAL)
        rows.append((f'| {what} | `{finding}` | {ms(span)} | {ms(clean)} | {ms(real)} | {ms(gain)} | {percent} |', off is not None and off <= GOAL))
    if not wanted:
        with open(os.path.join(harness.SOURCE, 'docs', 'gains.md'), 'w', encoding='utf-8') as file:
            file.write(PAGE.format(times=TIMES, rows='\n'.join(row for row, _ in rows), kept=sum(kept for _, kept in rows), all=len(rows)))
    table.show()
    return 0


PAGE = '''# Gains: what the report promises, and what one gets

Written by `./dev bench gains`: programs with a planted cause on the simulated GPU, and the same programs without it; each runs {times} times, medians. Span: from the
first launch to the end of the last operation. Both programs run in real time: what else the machine does is in the figures. Promised: `gain_ns` of the finding in the report of the first program.
The goal is 10 %: **{kept} of {all}** keep it. How it is computed: [decision 72](decisions/0072-gains-by-replay.md). `tests/unit/analysis/gains_test.cpp` has more such pairs, and programs that must be promised nothing,
with times that no load disturbs; traces of the pairs here are kept and read again by every test run (`tests/corpus/gains`).

| planted | finding | with it | without | real | promised | off by |
|---|---|---|---|---|---|---|
{rows}
'''

if __name__ == '__main__':
    sys.exit(main())
