"""From calls to a report: how fast the sidecar drains, how small the trace is, how long `gputrace report` takes and how much
memory it needs: calls alone and with device records, at 10 M and 20 M records, and what DuckDB and SQLite take for a part of the questions.
GT_LARGE=1: at 100 M records too (minutes, and 1 GB in the temporary folder)."""
import glob
import itertools
import multiprocessing
import os
import shutil
import sqlite3
import subprocess
import sys
import time

from bench import SOURCE, Table, built, harness, scratch

CALLS = 20000  # in a batch that fits the ring
LARGE = os.environ.get('GT_LARGE') == '1'
SIZES = {'10 M': 10, '20 M': 20, **({'100 M': 100} if LARGE else {})}  # million records
GOAL_RECORDS_PER_S = 20e6  # 100 M records in 5 s
SQLITE_ROWS = 500_000
PEERS = ('10 M', '100 M')  # sizes at which DuckDB is asked as well


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
    return took


def doubling(table, seconds):
    factor = seconds['20 M'] / seconds['10 M']
    table.add('linear: CPU time of 20 M records over that of 10 M', f'{factor:.2f}', '<= 2.1', factor <= 2.1)


def device_reports(table):
    """With device records: a run of three processes with eight streams each, launches, keys and kernels in equal parts, one record in a
    hundred of another kind. It is made up; its kernels are there a second time, for the peers."""
    seconds = {}
    for name, millions in SIZES.items():
        output = os.path.join(scratch.name, 'device ' + name)
        os.makedirs(output)
        subprocess.run([built('device_trace'), output, str(millions * 1_000_000), *(['rows'] if name in PEERS else [])], check=True, timeout=600)
        answer = harness.report(output)
        if answer['coverage']['device_timing'] != 'cupti' or abs(answer['coverage']['records'] - millions * 1e6) > 1e4:
            sys.exit(f"bench: {answer['coverage']} is not what was written")
        took = measured(table, name, answer['coverage']['records'], output, seconds)
        alone, cpu, memory = measured_report(glob.glob(output + '/*.gtrace')[0])
        table.add(f'{name}: one of its three processes alone: time, CPU time, memory', f'{alone:.2f} s, {cpu:.2f} s, {memory / 2**20:.0f} MiB')
        if name in PEERS:
            compare_with_duckdb(table, name, output, answer, took)
        if name == '10 M':
            compare_with_sqlite(table, output, seconds[name] / 10e6)
        shutil.rmtree(output)
    doubling(table, seconds)


# What a report answers among other things, and what other programs are asked: totals, percentiles, and the union of busy time.
TOTALS = 'select name, count(*), sum(finish - start), min(finish - start), max(finish - start) from kernels group by name'
PERCENTILES = 'select name, quantile_disc(finish - start, [0.5, 0.99]) from kernels group by name'
BUSY = ('select process, sum(greatest(0, finish - greatest(start, before))) from (select process, start, finish, coalesce(max(finish) over '
        '(partition by process order by start rows between unbounded preceding and 1 preceding), 0) as before from kernels) group by process')


def apart(function, *arguments):
    """In a process of its own: the peak memory of what this one starts afterwards would count what a peer took here."""
    with multiprocessing.get_context('fork').Pool(1) as pool:
        return pool.apply(function, arguments)


def asked_of_duckdb(output):
    """The three questions in DuckDB on two threads, from the same kernels in Parquet, the better of two as ours is: (version, seconds that the
    export took, {question: (seconds, CPU seconds)}, {question: rows}); nothing where it is not here."""
    # Where tools/fetch_readers put it, for this Python.
    sys.path += glob.glob(os.path.join(SOURCE, 'build', 'readers', 'python', 'lib', f'python3.{sys.version_info[1]}', 'site-packages'))
    try:
        import duckdb
    except ImportError:
        return None
    base = duckdb.connect(config={'threads': 2})
    parquet = os.path.join(output, 'kernels.parquet')
    began = time.monotonic()
    base.execute(f"copy (select column0 as process, column1 as name, column2 as start, column3 as finish from "
                 f"read_csv('{output}/kernels-*.csv', header = false)) to '{parquet}' (format parquet)")
    exported = time.monotonic() - began
    base.execute(f"create view kernels as select * from '{parquet}'")
    took, answers = {}, {}
    for _ in range(2):
        for question, sql in (('totals', TOTALS), ('percentiles', PERCENTILES), ('busy time', BUSY)):
            began, cpu = time.monotonic(), time.process_time()
            answers[question] = base.execute(sql).fetchall()
            took[question] = min(took.get(question, (1e18, 0)), (time.monotonic() - began, time.process_time() - cpu))
    return duckdb.__version__, exported, took, answers


def compare_with_duckdb(table, name, output, answer, ours):
    asked = apart(asked_of_duckdb, output)
    if not asked:
        return table.add(f'{name}: DuckDB', 'not measured: no such Python package here (tools/fetch_readers, or pip install duckdb)')
    version, exported, took, answers = asked
    same_answers(answer, answers)
    table.add(f'{name}: export of the kernels to Parquet, not counted', f'{exported:.1f} s')
    for question, (wall, cpu) in took.items():
        table.add(f'{name}: DuckDB {version}, {question}: time, CPU time', f'{wall:.2f} s, {cpu:.2f} s')
    total = sum(wall for wall, _ in took.values())
    table.add(f'{name}: all sections here beside those three of DuckDB', f'{ours:.2f} s, {total:.2f} s', 'not slower', ours <= total)


def same_answers(answer, answers):
    """The peer was asked the same: its totals and percentiles are those of the report."""
    rows = {row['name']: row for row in answer['sections']['kernels']['rows']}
    if len(rows) != len(answers['totals']):
        sys.exit(f"bench: {len(rows)} kernels here, {len(answers['totals'])} there")
    for name, _, total, least, most in answers['totals']:
        if (rows[name]['total_ns'], rows[name]['min_ns'], rows[name]['max_ns']) != (total, least, most):
            sys.exit(f'bench: {name}: {rows[name]} here, {total, least, most} there')
    for name, (median, p99) in answers['percentiles']:
        if abs(rows[name]['median_ns'] - median) > 0.02 * median or abs(rows[name]['p99_ns'] - p99) > 0.02 * p99:
            sys.exit(f'bench: {name}: {rows[name]} here, {median, p99} there')


def asked_of_sqlite(output):
    """CPU seconds a kernel for totals, medians and busy time of a part of the kernels in SQLite's memory, on one processor; loading is not counted."""
    base = sqlite3.connect(':memory:')
    base.execute('create table kernels (process integer, name text, start integer, finish integer)')
    with open(os.path.join(output, 'kernels-0.csv'), encoding='ascii') as rows:
        base.executemany('insert into kernels values (?, ?, ?, ?)', itertools.islice((row.rstrip().split(',') for row in rows), SQLITE_ROWS))
    began = time.process_time()
    base.execute(TOTALS).fetchall()
    base.execute('select name, length from (select name, finish - start as length, row_number() over (partition by name order by finish - start) as rank, '
                 'count(*) over (partition by name) as all_of_it from kernels) where rank = (all_of_it + 1) / 2').fetchall()
    base.execute(BUSY.replace('greatest', 'max')).fetchall()
    return (time.process_time() - began) / SQLITE_ROWS


def compare_with_sqlite(table, output, per_record):
    took = apart(asked_of_sqlite, output)
    table.add('SQLite: totals, medians, busy time: CPU time a kernel', f'{took * 1e9:.0f} ns')
    ours = 3 * per_record
    table.add('all sections here: CPU time a kernel (3 records)', f'{ours * 1e9:.0f} ns', 'below SQLite', ours <= took)


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
    device_reports(device)
    drain.show()
    report.show()
    device.show()


main()
