# Operations of XLA by the NVTX ranges that it tells (domain TSL): those of a program that sets the same ones, against what it launched.
from against_truth import *

STEP = '+XlaModule:#hlo_module=jit_step,program_id=1#@TSL'
FUSION = '+Thunk:#name=jit(step)/mul,hlo_op=loop_multiply_fusion#@TSL'
PRODUCT = '+Thunk:#hlo_op=gemm_fusion_dot.10#@TSL'
OTHER = '+TfrtExecute:#id=1#@TSL'
END = '-@TSL'
# By grid: 1 and 8 in no operation, 2 in the module alone, 3 and 6 in the fusion, 4 in the product, 5 (another domain's range, another thing of
# TSL's) in the product too, 7 in the module again. All have run when it ends.
SCRIPT = ['cuda', '1', STEP, '2', FUSION, '3', END, PRODUCT, '4', OTHER, '+Thunk:#hlo_op=mine#@mine', '5', '-@mine', END, END, FUSION, '6', END, '7',
          END, '8', '~200']
GRIDS = {'jit_step': {2, 7}, 'jit_step / loop_multiply_fusion (jit(step)/mul)': {3, 6}, 'jit_step / gemm_fusion_dot.10': {4, 5}}


def program_ran(collect):
    return traced([program('nvtx_window'), *SCRIPT], {'GPUTRACE_COLLECT': collect, 'SIMGPU_KERNEL_TIME': 'first=30us,second=10us'})


def test_operations_have_what_was_launched_in_them():
    run = program_ran('api,device,nvtx,ops')
    check_conservation(run)
    times = {line['grid'][0]: line['end_ns'] - line['start_ns'] for line in run.truth_of('kernel')}
    check_equal(sorted(times), list(range(1, 9)), 'a kernel of each grid')
    rows = {row['path']: row for row in report(run, 'ops')['sections']['ops']['rows']}
    check_equal({path: row['device_self_ns'] for path, row in rows.items()},
                {path: sum(times[grid] for grid in grids) for path, grids in GRIDS.items()}, 'device time of each operation')
    check_equal(rows['jit_step']['device_total_ns'], sum(times[grid] for grid in range(2, 8)), 'and of the module with all in it')
    check_equal({path: row['count'] for path, row in rows.items()}, dict(zip(GRIDS, (1, 2, 1))), 'counts')
    ranges = {row['range']: row['total_ns'] for row in report(run, 'nvtx')['sections']['nvtx']['rows'] if row['domain'] == 'TSL'}
    check_equal(rows['jit_step']['host_total_ns'], ranges['XlaModule:#hlo_module=jit_step#'], 'host time')
    check_equal(rows['jit_step']['host_self_ns'], rows['jit_step']['host_total_ns'] - sum(rows[path]['host_total_ns'] for path in rows if path != 'jit_step'),
                'without the operations within')
    check('ops' not in json.dumps(report(run, 'quality').get('not_collected', [])), 'nothing is missing')


def test_kernels_name_the_operation():
    rows = report(program_ran('api,device,nvtx,ops'), 'kernels')['sections']['kernels']['rows']
    names = {grid: path.removeprefix('jit_step / ') for path, grids in GRIDS.items() for grid in grids}
    check_equal({int(row['grid'].split(',')[0]): row['op'] for row in rows}, {**{1: None, 8: None}, **names}, 'the operation of each grid')


def test_not_where_operations_are_left_out():
    run = program_ran('api,device,nvtx')
    check_equal(report(run, 'ops')['sections'].get('ops', {'rows': []})['rows'], [], 'no operation')


main()
