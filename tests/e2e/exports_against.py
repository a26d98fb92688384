"""What an export must say, by the software that reads it: what our own report and dump say of the same traces."""
import collections
import json
import os
import subprocess

from artefacts import SOURCE, node, reader
from cases import check, check_equal
from traces import dump, gputrace, report

GOLDEN = os.path.join(SOURCE, 'tests', 'corpus', 'golden')
KEPT = [os.path.join(GOLDEN, name) for name in ('train', 'products', 'collectives')]


def exported(path, kind, to, *options):
    gputrace('export', path, '--format', kind, '-o', to, *options)
    return to


def kernels_of_report(path):
    """{demangled name: sum of device times}, {..: mean is not needed}; names without a time are left out."""
    sums = collections.Counter()
    for row in report(path, 'kernels')['sections']['kernels']['rows']:
        if row['total_ns']:
            sums[row['kernel']] += row['total_ns']
    return dict(sums)


def calls_of_report(path):
    """{(level, call): (calls, total)}"""
    return {(row['level'], row['call']): (row['calls'], row['total_ns']) for row in report(path, 'api')['sections']['api']['rows']}


def device_records(path):
    """How many kernels, copies and memsets the trace file holds, and their bytes, record by record."""
    found = collections.Counter()
    for record in dump([path] if os.path.isfile(path) else [os.path.join(path, name) for name in sorted(os.listdir(path)) if name.endswith('.gtrace')]):
        if record['record'] in ('DeviceKernel', 'DeviceCopy', 'DeviceMemset', 'DeviceGraph'):
            found[record['record']] += 1
            found[record['record'] + ' bytes'] += record.get('bytes', 0)
    return found


def trace_processor(path, *queries):
    """The rows of each query, by Perfetto's own trace_processor."""
    folder = reader('trace-processor')
    done = subprocess.run([node(), os.path.join(SOURCE, 'tests', 'readers', 'trace_processor.mjs'), folder, path, *queries], capture_output=True, timeout=300, check=False)
    check(done.returncode == 0, 'trace_processor reads it', done.stderr.decode()[-2000:])
    return [json.loads(line) for line in done.stdout.decode().splitlines()]


def check_no_errors(rows):
    check_equal(rows, [], 'what trace_processor complains of')


ERRORS = "select name, idx, severity, value from stats where severity in ('error', 'data_loss') and value > 0"
