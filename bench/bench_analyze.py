"""From calls to a report: how fast the sidecar drains, how small the trace is, how long `gputrace report` takes and how much
memory it needs: calls alone and with device records, at 10 M and 20 M records, and what SQLite takes for a part of the questions.
GT_LARGE=1: at 100 M records too (minutes, and 1 GB in the temporary folder)."""
import os
import random
import sqlite3
import subprocess
import sys
import time

from bench import Table, built, harness, scratch

CALLS = 20000  # in a batch that fits the ring
LARGE = os.environ.get('GT_LARGE') == '1'
SIZES = {'10 M': 10, '20 M': 20, **({'100 M': 100} if LARGE else {})}  # million records
GOAL_RECORDS_PER_S = 20e6  # 100 M records in 5 s
SQLITE_ROWS = 500_000


def make_trace(name, batches, pause_us, **environment):
    """A trace of a mix of calls on the no-op driver. Returns (folder, CPU seconds of the sidecar, its peak memory)."""
    output = os.path.join(scratch.name, name)
    env = {'LD_LIBRARY_PATH': os.path.join(harness.BUILD, 'bench'), 'LD_PRELOAD': harness.places.library, 'GPUTRACE_OUTPUT': output, **environment}
    process = subprocess.Popen([built('calls'), 'mix', str(batches), str(CALLS), str(pause_us)],
                               env={**os.environ, **env}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    process.wait(600)
    sidecars = [os.wait4(pid, 0)[2] for pid in harness.children()]
    if len(sidecars) != 1:
        sys.exit(f'bench: {len(sidecars)} sidecars where one was expected')
    return output, sidecars[0].ru_utime + sidecars[0].ru_stime, sidecars[0].ru_maxrss * 1024


def measured_report(output):
    """(seconds, CPU seconds, peak memory in bytes) of one `gputrace report --json`: the better of two."""
    best = (1e18, 0, 0)
    for _ in range(2):
        began = time.monotonic()
        process = subprocess.Popen([harness.places.gputrace, 'report', output, '--json'], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status
        if status:
            sys.exit(f'bench: gputrace report ended with status {status}')
        best = min(best, (time.monotonic() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024))
    return best


def measured(table, name, records, output, seconds):
    took, cpu, memory = measured_report(output)
    seconds[name] = cpu
    goal = records / GOAL_RECORDS_PER_S
    table.add(f'{name}: time', f'{took:.2f} s', f'<= {goal:.2f} s (100 M in 5 s)', took <= goal)
    table.add(f'{name}: CPU time, records per CPU second', f'{cpu:.2f} s, {records / cpu / 1e6:.1f} M')
    table.add(f'{name}: peak memory', f'{memory / 2**20:.0f} MiB', '<= 2048 MiB', memory <= 2 << 30)


def doubling(table, seconds):
    factor = seconds['20 M'] / seconds['10 M']
    table.add('linear: CPU time of 20 M records over that of 10 M', f'{factor:.2f}', '<= 2.1', factor <= 2.1)


def device_reports(table):
    """With device records: launches, their keys and their kernels (three records each), from a trace that is made up."""
    seconds = {}
    for name, millions in SIZES.items():
        launches = millions * 1_000_000 // 3
        output = os.path.join(scratch.name, 'device ' + name)
        os.makedirs(output)
        file = os.path.join(output, 'made-up.gtrace')
        subprocess.run([built('device_trace'), file, str(launches)], check=True, timeout=600)
        told = harness.report(output)
        kernels = sum(row['launches'] for row in told['sections']['kernels']['rows'])
        if kernels != launches or told['coverage']['device_timing'] != 'cupti':
            sys.exit(f'bench: {kernels} kernels where {launches} were launched')
        measured(table, name, told['coverage']['records'], output, seconds)
        os.unlink(file)
    doubling(table, seconds)
    return seconds['20 M'] / 20e6


def compare_with_sqlite(table, per_record):
    """Two of the questions that a report answers of each kernel, asked of a table in SQLite's memory (loading not counted)."""
    rows, start = [], 0
    numbers = random.Random(1)
    for i in range(SQLITE_ROWS):
        start += numbers.randrange(1000, 2000)
        rows.append((numbers.randrange(64), i % 4, start, start + numbers.randrange(500, 5000)))
    base = sqlite3.connect(':memory:')
    base.execute('create table kernels (function integer, stream integer, start integer, finish integer)')
    base.executemany('insert into kernels values (?, ?, ?, ?)', rows)
    began = time.process_time()
    base.execute('select function, count(*), sum(finish - start), min(finish - start), max(finish - start) from kernels group by function').fetchall()
    base.execute('select sum(max(0, finish - max(start, before))) from (select start, finish, coalesce(max(finish) over '
                 '(order by start rows between unbounded preceding and 1 preceding), 0) as before from kernels)').fetchall()
    took = (time.process_time() - began) / SQLITE_ROWS
    table.add('SQLite: groups and busy time, CPU time a kernel', f'{took * 1e9:.0f} ns')
    ours = 3 * per_record
    table.add('all sections here, CPU time a launch (3 records)', f'{ours * 1e9:.0f} ns', 'below SQLite', ours <= took)
    table.add('DuckDB', 'not measured: no package of it here')


def size_of(folder):
    return sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(folder) for name in names if name.endswith('.gtrace'))


def main():
    drain, report = Table('analyze: the sidecar'), Table('analyze: gputrace report, all sections, as JSON')
    seconds = {}
    for name, millions in SIZES.items():
        output, cpu, memory = make_trace(name, millions * 1_000_000 // CALLS, 12000, GPUTRACE_BUFFER='64M')
        coverage = harness.report(output)['coverage']
        records = coverage['records']
        drain.add(f'{name}: records, dropped', f"{records:,}, {coverage['dropped']:,}", '0 dropped', coverage['dropped'] == 0)
        drain.add(f'{name}: records per CPU second', f'{records / cpu / 1e6:.1f} M', '>= 8 M', records / cpu >= 8e6)
        drain.add(f'{name}: bytes a record on disk', f'{size_of(output) / records:.1f}', '<= 16', size_of(output) / records <= 16)
        drain.add(f'{name}: peak memory', f'{memory / 2**20:.0f} MiB', '<= 256 MiB', memory <= 256 << 20)
        measured(report, name, records, output, seconds)
    doubling(report, seconds)
    output, _, _ = make_trace('flat out', 100, 0)
    coverage = harness.report(output)['coverage']
    share = coverage['dropped'] / max(1, coverage['dropped'] + coverage['records'])
    drain.add('2 M calls flat out into 16 MiB: dropped, counted', f'{100 * share:.1f} %')
    device = Table('analyze: gputrace report with device records (launch, key, kernel), all sections, as JSON')
    compare_with_sqlite(device, device_reports(device))
    drain.show()
    report.show()
    device.show()


main()
