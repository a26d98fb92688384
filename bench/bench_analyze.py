"""From calls to a report: how fast the sidecar drains, how small the trace is, how long `gputrace report` takes and how much
memory it needs, at 1 M and 10 M records."""
import os
import subprocess
import sys
import time

from bench import Table, built, harness, scratch

CALLS = 20000  # in a batch that fits the ring
SIZES = {'1 M': 50, '10 M': 500}  # batches
GOAL_RECORDS_PER_S = 20e6  # 100 M records in 5 s


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


DEVICE_SIZES = {'1 M': 333_333, '10 M': 3_333_333}  # launches: three records each


def device_reports(table):
    """The same with device records: launches, their keys and their kernels, from a trace that is made up."""
    seconds = []
    for name, launches in DEVICE_SIZES.items():
        output = os.path.join(scratch.name, 'device ' + name)
        os.makedirs(output)
        subprocess.run([built('device_trace'), os.path.join(output, 'made-up.gtrace'), str(launches)], check=True, timeout=600)
        told = harness.report(output)
        records = told['coverage']['records']
        kernels = sum(row['launches'] for row in told['sections']['kernels']['rows'])
        if kernels != launches or told['coverage']['device_timing'] != 'cupti':
            sys.exit(f'bench: {kernels} kernels where {launches} were launched')
        took, cpu, memory = measured_report(output)
        seconds.append(cpu / records)
        goal = records / GOAL_RECORDS_PER_S
        table.add(f'{name}: time', f'{took:.2f} s', f'<= {goal:.2f} s (100 M in 5 s)', took <= goal)
        table.add(f'{name}: CPU time, records per CPU second', f'{cpu:.2f} s, {records / cpu / 1e6:.1f} M')
        table.add(f'{name}: peak memory', f'{memory / 2**20:.0f} MiB', '<= 2048 MiB', memory <= 2 << 30)
    table.add('linear: CPU time a record, 10 M over 1 M', f'{seconds[1] / seconds[0]:.2f}', '<= 1.05', seconds[1] / seconds[0] <= 1.05)


def size_of(folder):
    return sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(folder) for name in names if name.endswith('.gtrace'))


def main():
    drain, report = Table('analyze: the sidecar'), Table('analyze: gputrace report, all sections, as JSON')
    seconds = {}
    for name, batches in SIZES.items():
        output, cpu, memory = make_trace(name, batches, 12000, GPUTRACE_BUFFER='64M')
        coverage = harness.report(output)['coverage']
        records = coverage['records']
        drain.add(f'{name}: records, dropped', f"{records:,}, {coverage['dropped']:,}", '0 dropped', coverage['dropped'] == 0)
        drain.add(f'{name}: records per CPU second', f'{records / cpu / 1e6:.1f} M', '>= 8 M', records / cpu >= 8e6)
        drain.add(f'{name}: bytes a record on disk', f'{size_of(output) / records:.1f}', '<= 16', size_of(output) / records <= 16)
        drain.add(f'{name}: peak memory', f'{memory / 2**20:.0f} MiB', '<= 256 MiB', memory <= 256 << 20)
        took, cpu, memory = measured_report(output)
        seconds[name] = cpu / records
        goal = records / GOAL_RECORDS_PER_S
        report.add(f'{name}: time', f'{took:.2f} s', f'<= {goal:.2f} s (100 M in 5 s)', took <= goal)
        report.add(f'{name}: CPU time, records per CPU second', f'{cpu:.2f} s, {records / cpu / 1e6:.1f} M')
        report.add(f'{name}: peak memory', f'{memory / 2**20:.0f} MiB', '<= 2048 MiB', memory <= 2 << 30)
    small, large = seconds.values()
    report.add('linear: CPU time a record, 10 M over 1 M', f'{large / small:.2f}', '<= 1.05', large / small <= 1.05)
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
