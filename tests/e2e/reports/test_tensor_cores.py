# meson: timeout=180
# From machine code to the report: kernels with and without matrix instructions, for two chips in one image, timed by the simulated device.
from code_images import *

WANTED = {'half_mma': (True, 'HMMA', 'fp16', True), 'int_mma': (True, 'IMMA', 'int8', True), 'saxpy': (False, None, 'fp32', None)}


def _report(how, image, **env):
    run = loads(f'{how}:{images()[image]}:half_mma,int_mma,saxpy',
                env={'SIMGPU_KERNEL_TIME': 'half_mma=600us,int_mma=300us,saxpy=100us', **env})
    return report(run, 'overview', 'kernels', 'tensor-cores', 'tensor-core-misses')


def _metrics(answer):
    return {row['metric']: row['value'] for row in answer['sections']['overview']['rows']}


def _check_columns(answer):
    kernels = {row['symbol']: row for row in answer['sections']['kernels']['rows']}
    for name, (used, kind, precision, eligible) in WANTED.items():
        row = kernels[name]
        check_equal((row['tensor_core'], row['tensor_core_kind'], row['precision']), (used, kind, precision), name)
        if eligible is not None:
            check_equal(row['tensor_core_eligible'], eligible, f'{name}: eligible')
    return kernels


def test_columns_sections_and_ratios():
    answer = _report('data', 'zstd.fatbin')
    kernels = _check_columns(answer)
    total = sum(row['total_ns'] for row in kernels.values())
    groups = {(row['kind'], row['precision']): row for row in answer['sections']['tensor-cores']['rows']}
    check_equal(set(groups), {('HMMA', 'fp16'), ('IMMA', 'int8'), ('none', 'fp32')}, 'groups')
    for key, name in ((('HMMA', 'fp16'), 'half_mma'), (('IMMA', 'int8'), 'int_mma'), (('none', 'fp32'), 'saxpy')):
        check_equal(groups[key]['total_ns'], kernels[name]['total_ns'], f'time of {key}')
        check_equal((groups[key]['kernels'], groups[key]['launches']), (1, 1), f'counts of {key}')
    metrics = _metrics(answer)
    near = lambda metric, *names: check(abs(metrics[metric] - sum(kernels[name]['total_ns'] for name in names) / total) < 1e-9, metric, metrics)
    near('tensor_core_time_ratio', 'half_mma', 'int_mma')
    near('time_16bit_ratio', 'half_mma')
    near('time_32bit_ratio', 'saxpy')
    near('time_int8_ratio', 'int_mma')
    check_equal(answer['sections']['tensor-core-misses']['rows'], [], 'misses')


def test_without_device_times_the_columns_stay():
    answer = _report('data', 'sm90.cubin', GPUTRACE_COLLECT='api,code')
    _check_columns(answer)
    check(_metrics(answer)['tensor_core_time_ratio'] is None, 'no ratio without times')
    check(all(row['total_ns'] is None for row in answer['sections']['tensor-cores']['rows']), 'no times', answer['sections']['tensor-cores'])


def test_ptx_says_its_text():
    answer = _report('data', 'k.ptx')
    kernels = {row['symbol']: row for row in answer['sections']['kernels']['rows']}
    check_equal((kernels['half_mma']['tensor_core'], kernels['half_mma']['precision']), (True, 'fp16'), 'PTX with mma')
    check_equal((kernels['saxpy']['tensor_core'], kernels['saxpy']['precision']), (False, 'fp32'), 'PTX without: what its text computes in')


def test_without_code_nothing_is_said():
    answer = _report('data', 'sm90.cubin', GPUTRACE_COLLECT='api,device')
    check('tensor-cores' not in answer['sections'], 'the section is absent')
    check(any(gone['what'] == 'tensor-cores' for gone in answer['coverage']['not_collected']), 'and named', answer['coverage'])
    kernels = {row['symbol']: row for row in answer['sections']['kernels']['rows']}
    check_equal((kernels['half_mma']['tensor_core'], kernels['half_mma']['precision']), (None, None), 'columns')


if __name__ == '__main__':
    main()
