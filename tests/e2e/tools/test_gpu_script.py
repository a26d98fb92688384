# meson: timeout=240
# What `./dev gpu` runs where a GPU is, as far as it goes without one: the cost table over the simulated GPU, and the comparison
# of kernels by name.
import sys

from harness import *

sys.path.insert(0, os.path.join(SOURCE, 'tests', 'gpu'))
import against_profiler  # noqa: E402
import cost  # noqa: E402
import machine  # noqa: E402


def test_the_cost_table_has_every_level():
    compiler = os.path.join(os.environ.get('GT_CUDA', '/usr/local/cuda'), 'bin', 'nvcc')
    if not os.path.exists(compiler):
        skip('no nvcc')
    cost.TURNS = 1
    cost.nvcc = lambda: compiler
    cost.launches(places, scratch(), options=('-arch=sm_90',), env={'LD_LIBRARY_PATH': places.simgpu})
    check(not [row for row in machine.ROWS if not row['ok']], 'every line ran', machine.ROWS)
    values = machine.NUMBERS['Launches: ns on the host, median']
    check(list(values) == [what for what, _, _ in cost.LEVELS], 'every level is there', list(values))
    for what, units in values.items():
        check(all(units[unit] > 0 for unit in ('launch', 'graph_launch', 'graph_replay')), 'times', what, units)
        check(units['graph_replay'] >= units['graph_launch'], 'a replay contains its launch call', what, units)
    lines = machine.TABLES[-1].splitlines()
    check(len(lines) == 4 + len(cost.LEVELS) and all(line.count('|') == 8 for line in lines[2:]), 'the table', lines)


def test_kernels_are_compared_by_their_demangled_names():
    rows = [{'symbol': '_Z5emptyv', 'kernel': 'empty()', 'launches': 3, 'median_ns': 2000},
            {'symbol': '_Z5emptyv', 'kernel': 'empty()', 'launches': 4, 'median_ns': 2500},
            {'symbol': 'plain', 'kernel': 'plain', 'launches': 1, 'median_ns': None}]
    said = {'sections': {'kernels': {'rows': rows}}}
    check(against_profiler.own_kernels(said) == {'empty()': (7, 2.5, 4), 'plain': (1, None, 1)}, 'kernels by name')
    seen = {'empty()': {'count': 7, 'median_us': 2.4}, 'plain': {'count': 1, 'median_us': 1.0}}
    against_profiler.same_counts('same', said, seen)
    check(machine.ROWS[-1]['ok'], 'equal counts pass', machine.ROWS[-1])
    seen['plain']['count'] = 2
    against_profiler.same_counts('other', said, seen)
    check(not machine.ROWS[-1]['ok'] and machine.NUMBERS['other: counts that differ (ours, theirs)'] == {'plain': (1, 2)}, 'others fail')


main()
