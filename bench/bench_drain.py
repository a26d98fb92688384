"""The sidecar alone: the real producer at a given rate on one core, the real sidecar on the other. How much it drains without a drop, how much of
a core it takes, how many bytes a record it leaves."""
import json
import os

from bench import Table, built, harness, run, scratch

SECONDS = 4
RING = 64 << 20


def measure(rate, *more):
    """The program's figures at that rate, with the bytes a stored record takes."""
    output = os.path.join(scratch.name, f'drain-{rate:.0f}-{len(more)}')
    figures = json.loads(run([built('drain'), harness.places.sidecar, output, rate, SECONDS, RING, *more]))
    files = [os.path.join(output, name) for name in os.listdir(output) if name.endswith('.gtrace')]
    figures['stored'] = figures['records'] - figures['dropped']
    figures['bytes_each'] = sum(map(os.path.getsize, files)) / max(1, figures['stored'])
    figures['cpu_each'] = figures['sidecar_cpu_s'] / max(1, figures['stored'])
    return figures


def main():
    table = Table(f'drain: 88-byte launches, a ring of {RING >> 20} MiB, {SECONDS} s')
    steady = measure(1e6)
    share = steady['sidecar_cpu_s'] / SECONDS
    table.add('1 M/s: dropped', f"{steady['dropped']:,}", '0', steady['dropped'] == 0)
    table.add('1 M/s: share of a core', f'{share:.1%}', '<= 20 %', share <= 0.2)
    own = measure(1e6, 'same-core')
    table.add("1 M/s on the program's own core: dropped", f"{own['dropped']:,}", '0', own['dropped'] == 0)
    fast = measure(8e6)
    table.add('8 M/s: dropped', f"{fast['dropped']:,}", '0', fast['dropped'] == 0)
    table.add('records per CPU second', f"{1 / fast['cpu_each'] / 1e6:.1f} M", '>= 8 M', 1 / fast['cpu_each'] >= 8e6)
    table.add('bytes a record', f"{fast['bytes_each']:.1f}", '<= 16', fast['bytes_each'] <= 16)
    table.add('peak memory', f"{fast['sidecar_peak_bytes'] / 2**20:.0f} MiB", '<= 256 MiB', fast['sidecar_peak_bytes'] <= 256 << 20)
    table.show()


main()
