# meson: timeout=240
# What `./dev gpu` runs where a GPU is, as far as it goes without one: the cost table over the simulated GPU, and the comparison
# of kernels by name.
import sys

from harness import *

sys.path.insert(0, os.path.join(SOURCE, 'tests', 'gpu'))
import against_profiler  # noqa: E402
import cost  # noqa: E402
import counters  # noqa: E402
import machine  # noqa: E402


def test_the_cost_table_has_every_level():
    compiler = os.path.join(os.environ.get('GT_CUDA', '/usr/local/cuda'), 'bin', 'nvcc')
    if not os.path.exists(compiler):
        skip('no nvcc')
    cost.TURNS = 1
    cost.nvcc = lambda: compiler
    cost.client = lambda _: None  # the simulated CUPTI wants its driver to be there first
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


def test_counters_tell_what_a_kernel_computes_on():
    listed = 'Chip gh100\nsm__inst_executed_pipe_tensor  Counter  inst\nsm__ops_path_tensor_src_fp8  Counter\nsm__ops_path_tensor_op_hgmma_src_tf32_dst_fp32  Counter\n'
    listed += 'sm__ops_path_tensor_op_hgmma_src_tf32_dst_fp32_sparsity_off  Counter\n'
    check_equal(counters.metrics_of(listed), ['sm__ops_path_tensor_op_hgmma_src_tf32_dst_fp32', 'sm__ops_path_tensor_src_fp8'], 'metrics')
    head, line = '"ID","Kernel Name","Grid Size","Metric Name","Metric Value"', '"0","{}","({}, 1, 1)","{}.sum","{}"'
    said = counters.counted('\n'.join(['==PROF== x', head, line.format('gemm', 8, 'sm__ops_path_tensor_src_fp8', '2,147'),
                                       line.format('gemm', 8, 'sm__ops_path_tensor_op_hmma_src_fp16', '0'),
                                       line.format('relu', 4, 'sm__ops_path_tensor_src_fp8', '0')]))
    check_equal(said, {('gemm', '8,1,1'): {'fp8'}, ('relu', '4,1,1'): set()}, 'types by kernel')
    ours = [{'symbol': 'gemm', 'kernel': 'gemm', 'grid': '8,1,1', 'tensor_core': True, 'precision': 'fp8'},
            {'symbol': 'relu', 'kernel': 'relu', 'grid': '4,1,1', 'tensor_core': False, 'precision': 'fp32'},
            {'symbol': 'other', 'kernel': 'other', 'grid': '4,1,1', 'tensor_core': True, 'precision': 'fp16'}]
    check_equal(counters.compare(ours, said), (2, 2, 2, []), 'both are told rightly')
    ours[0]['precision'], ours[1]['tensor_core'] = 'bf16', None
    check_equal(counters.compare(ours, said), (0, 1, 2, [('gemm', 'bf16', ['fp8'])]), 'another type; what is not known is not told')


main()
