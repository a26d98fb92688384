# meson: timeout=240
# Calls of vendor libraries, by stand-ins of the same names on the simulated GPU: each call of a program's own list with its shape
# and types, each kernel under the call that launched it, exact times and operations, groups, ranks; off leaves nothing behind.
import math
import re

from harness import *

PROGRAMS = os.path.join(BUILD, 'tests/programs/libs')
LIBS = {'GPUTRACE_COLLECT': 'api,device,libs'}
US = 1000


def libs_program(name):
    path = os.path.join(PROGRAMS, name)
    return path if os.access(path, os.X_OK) else skip(f'not built: {name}')


def with_standins(env=None):
    return {'LD_LIBRARY_PATH': places.simgpu, **(env or {})}


def run_libs(name, *words, env=None, **options):
    run = traced([libs_program(name), *words], with_standins({**LIBS, **(env or {})}), **options)
    same_output(untraced([libs_program(name), *words], with_standins()), run)
    check_equal(run.returncode, 3, 'exit code of the program')
    return run


def kernels_of(run, record):
    """Truth lines of the kernels whose launch call lies in a record's time, on its thread."""
    return [line for line in run.truth_of('kernel') if line['tid'] == record['tid'] and record['begin_ns'] <= line['call_begin_ns'] and
            line['call_end_ns'] <= record['end_ns']]


def nanos(lines):
    return sum(line['end_ns'] - line['start_ns'] for line in lines)


def close(got, wanted, what, slack=4):
    check(got is not None and abs(got - wanted) <= slack, f'{what}: got {got}, wanted {wanted}')


def calls_said(run):
    return [json.loads(line) for line in run.stdout.decode().splitlines() if line.startswith('{')]


def test_products_have_the_shapes_that_the_program_named():
    run = run_libs('libs_products')
    said = calls_said(run)
    matmuls = records(run, 'Matmul')
    check_equal([(r['call'], r['m'], r['n'], r['k'], r['batch']) for r in matmuls],
                [(s['call'], s['m'], s['n'], s['k'], s['batch']) for s in said], 'calls in their order')
    for record, line in zip(matmuls, said):
        check_equal(len(kernels_of(run, record)), line['kernels'], f'kernels in {record["call"]}')
    by_call = {record['call']: record for record in matmuls}
    check_equal({call: (r['type_a'], r['type_b'], r['type_c'], r['compute'], r['math_mode']) for call, r in by_call.items()}, {
        'cublasSgemm': (0, 0, 0, -1, 3), 'cublasDgemm': (1, 1, 1, -1, 3), 'cublasCgemm': (4, 4, 4, -1, 3), 'cublasGemmEx': (2, 2, 2, 68, 3),
        'cublasSgemmStridedBatched': (0, 0, 0, -1, 3), 'cublasGemmStridedBatchedEx': (14, 14, 14, 68, 3), 'cublasSgemmBatched': (0, 0, 0, -1, 3),
        'cublasLtMatmul': (0, 0, 0, 77, -1), 'cusparseSpMM': (0, 0, 0, -1, -1), 'cusparseSpMV': (0, 0, 0, -1, -1)}, 'types, compute type, math mode')
    check_equal((by_call['cublasLtMatmul']['flags'], by_call['cublasLtMatmul']['lda'], by_call['cublasLtMatmul']['ldc']), (1 | 32, 320, 640),
                'cublasLtMatmul: transposed A, strided batch, leading dimensions')
    check_equal(by_call['cublasCgemm']['flags'], 2 | 8 | 128, 'cublasCgemm: B transposed and conjugated, complex')
    check_equal(by_call['cusparseSpMM']['nonzeros'], 3000, 'non-zeros')
    streams = {line['stream'] for line in run.truth_of('kernel')}
    check(len(streams) == 1 and len({r['stream'] for r in matmuls if r['stream'] != '0x0'}) == 1, 'the stream of the handle', matmuls)
    check_conservation(run)


def test_products_in_the_report():
    run = run_libs('libs_products', env={'SIMGPU_KERNEL_TIME': 'splitK=7us,nvjet=40us,gemm=20us,csr=3us'})
    said, libs = calls_said(run), rows(run, 'libs')
    check_equal(sum(row['count'] for row in libs), len(said), 'calls')
    check_equal(sum(row['kernels'] for row in libs), sum(line['kernels'] for line in said), 'kernels')
    check_equal(sum(row['kernels'] for row in libs), len(run.truth_of('kernel')), 'every kernel has its call')
    close(sum(row['total_ns'] for row in libs), nanos(run.truth_of('kernel')), 'device time of all', 40)
    row = {(row['call'], row['shape']): row for row in libs}
    split = row['cublasSgemm', '130×70×8192']
    check_equal((split['count'], split['kernels'], split['flops'], split['dtype'], split['arithmetic']), (3, 6, 3 * 2 * 130 * 70 * 8192, 'fp32', 'tf32'),
                'a product that launches two kernels')
    close(split['total_ns'], 3 * 27 * US, 'their time', 12)
    half = row['cublasGemmEx', '4096×2048×1024']
    check_equal((half['flops'], half['dtype'], half['arithmetic']), (2 * 4096 * 2048 * 1024, 'fp16', 'fp16'), 'GemmEx')
    close(half['total_ns'], 40 * US, 'its time')
    rate = half['flops'] / (half['total_ns'] * 1e-9)
    check(abs(half['flops_per_s'] - rate) <= 1 + rate * 1e-9, 'FLOP/s', half)
    device = rows(run, 'devices')[0]
    check_equal((device['sms'], device['capability']), (132, '9.0'), 'the simulated device')
    clock = rate / half['peak_ratio'] / 132 / 4096
    check(1e9 < clock < 3e9, 'the peak is SMs × clock × 4096 in fp16 on 9.0', clock)
    check_equal(row['cublasCgemm', '40×41×42']['flops'], 8 * 40 * 41 * 42, 'complex')
    check_equal(row['cusparseSpMM', '1000×16×500']['flops'], 2 * 3000 * 16, 'sparse')
    check_equal(row['cublasLtMatmul', '640×160×320, batch 2']['arithmetic'], 'tf32', 'compute type of the description')
    check_equal({row['library'] for row in libs}, {'cuBLAS', 'cuBLASLt', 'cuSPARSE'}, 'libraries')


def test_mfu_is_the_part_of_the_peak_that_products_reach():
    run = run_libs('libs_products', env={'SIMGPU_KERNEL_TIME': 'splitK=7us,nvjet=40us,gemm=20us,csr=3us'})
    said = {row['metric']: row for row in rows(run, 'overview')}['mfu']
    libs = rows(run, 'libs')
    check_equal({row['library'] for row in libs if row['peak_ratio'] is None}, {'cuSPARSE'}, 'whose peak is not known: a millionth of all FLOPs')
    at_peak = sum(row['peak_ratio'] * row['total_ns'] for row in libs if row['peak_ratio'] is not None)
    span = metrics(run)['device_span_ns']
    check('nor 2 calls' in said['note'] and 0 < said['value'] < 1 and abs(said['value'] * span - at_peak) < 1e-6 * at_peak, 'of the span', said, at_peak / span)


def test_eligibility_by_the_call():
    """Of the kernels without matrix instructions each product says why that may be; the rest is not accused."""
    run = run_libs('libs_products', env={'GPUTRACE_COLLECT': 'api,device,libs,code', 'SIMGPU_KERNEL_TIME': 'splitK=7us,nvjet=40us,gemm=20us,csr=3us'})
    odd = {('cublasSgemm', 130), ('cublasSgemm', 96), ('cublasCgemm', 40)}  # sizes that are no multiples of 16 bytes
    launches, times = collections.Counter(), collections.Counter()
    for record in records(run, 'Matmul'):
        if (record['call'], record['m']) in odd:
            products = [line for line in kernels_of(run, record) if 'splitK' not in line['symbol']]
            launches[record['call'], 'dimension'] += len(products)
            times[record['call'], 'dimension'] += nanos(products)
    misses = rows(run, 'tensor-core-misses')
    counted, timed = collections.Counter(), collections.Counter()
    for row in misses:
        counted[row['call'], row['reason']] += row['launches']
        timed[row['call'], row['reason']] += row['total_ns']
    check_equal(counted, launches, 'products without matrix instructions')
    for key, total in timed.items():
        close(total, times[key], f'time of {key}', 4 * launches[key])
    for row in misses:
        close(row['gain_ns'], row['total_ns'] * 7 / 8, f'gain of {row["call"]}', 1)  # tf32: eight times the rate of fp32 on 9.0
    kernels = {row['symbol']: row for row in rows(run, 'kernels')}
    split = next(row for symbol, row in kernels.items() if 'splitK' in symbol)
    check_equal((split['tensor_core'], split['tensor_core_eligible']), (False, False), 'the sum of a split product')
    check(all(row['tensor_core'] for symbol, row in kernels.items() if re.search('nvjet|tf32|d884', symbol)), 'those with matrix instructions', list(kernels))
    check_equal({symbol[14:19]: row['tensor_core_eligible'] for symbol, row in kernels.items() if 'csrm' in symbol}, {'csrmm': None, 'csrmv': False},
                'a sparse product is not judged; matrix times vector is none for tensor cores')


def test_self_time_of_library_calls():
    run = run_libs('libs_products', env={'SIMGPU_CALL_TIME': '20us'})
    api = {row['call']: row for row in rows(run, 'api')}
    check_equal({api[call]['level'] for call in ('cublasSgemm', 'cublasLtMatmul', 'cusparseSpMM', 'cublasCreate')}, {'library'}, 'level')
    matmuls = records(run, 'Matmul')
    inner = [record for record in dump(run) if record.get('level') == 'driver']
    for call in ('cublasSgemm', 'cublasGemmEx', 'cusparseSpMV'):
        whole = own = 0
        for record in matmuls:
            if record['call'] != call:
                continue
            whole += record['end_ns'] - record['begin_ns']
            own += record['end_ns'] - record['begin_ns'] - sum(
                r['end_ns'] - r['begin_ns'] for r in inner if record['begin_ns'] <= r['begin_ns'] and r['end_ns'] <= record['end_ns'] and
                not r['record'].startswith('Device'))
        close(api[call]['total_ns'], whole, f'{call}: total', 50)
        close(api[call]['self_ns'], own, f'{call}: self', 200)
        check(api[call]['self_ns'] < api[call]['total_ns'] - 15 * US, f'{call}: without the launch inside it', api[call])


def test_convolutions_and_transforms():
    run = run_libs('libs_convolutions')
    flops = 2 * 8 * 128 * 28 * 28 * 32 * 3 * 3
    convolutions = records(run, 'Convolution')
    check_equal([(r['call'], r['what_name'], r['flops'], r['groups'], r['type'], r['compute'], r['math_mode']) for r in convolutions], [
        ('cudnnConvolutionForward', 'forward', flops, 2, 2, 0, 1), ('cudnnConvolutionBackwardData', 'backward-data', flops, 2, 2, 0, 1),
        ('cudnnConvolutionBackwardFilter', 'backward-filter', flops, 2, 2, 0, 1)], 'convolutions')
    check_equal([convolutions[0][f'input_{d}'] for d in 'ncdhw'] + [convolutions[0]['output_c']] + [convolutions[0][f'filter_{d}'] for d in 'dhw'],
                [8, 64, 1, 56, 56, 128, 1, 3, 3], 'their shape')
    check_equal([(r['call'], r['x'], r['y'], r['z'], r['batch'], r['type'], r['direction']) for r in records(run, 'Fft')], [
        ('cufftExecC2C', 1024, 1, 1, 16, 0x29, -1), ('cufftExecC2C', 1024, 1, 1, 16, 0x29, 1), ('cufftExecR2C', 256, 128, 1, 1, 0x2a, 0),
        ('cufftExecZ2Z', 64, 64, 64, 4, 0x69, -1), ('cufftXtExec', 4096, 1, 1, 8, 0x29, -1)], 'transforms')
    row = {row['call']: row for row in rows(run, 'libs')}
    check_equal(row['cudnnConvolutionForward']['shape'], '8×64×56×56 * 128×3×3 / 2 groups', 'shape as text')
    check_equal((row['cufftExecC2C']['count'], row['cufftExecC2C']['flops']), (2, 2 * 5 * 1024 * 10 * 16), '5 N log2 N')
    check_equal(row['cufftExecR2C']['flops'], round(2.5 * 256 * 128 * math.log2(256 * 128)), 'half of it')
    check_equal((row['cufftExecZ2Z']['kernels'], row['cufftExecZ2Z']['flops']), (3, 5 * 64**3 * 18 * 4), 'three dimensions')
    check_equal(sum(r['kernels'] for r in row.values()), len(run.truth_of('kernel')), 'every kernel has its call')


def test_backend_graphs_tell_what_they_compute():
    """By how they were built: tensors and operations are long destroyed when a plan is executed."""
    run = run_libs('libs_graphs')
    images = 2 * 8 * 128 * 28 * 28 * 32 * 3 * 3
    attention = 2 * 2 * 8 * 256 * 128 * (64 + 32)
    shape = [8, 64, 56, 56, 128, 3, 3, 2]
    wanted = [('forward', images, 2, shape), ('backward-data', images, 0, shape), ('backward-filter', images, 9, shape),
              ('graph', attention, 2, [0] * 8), ('graph', attention, 9, [0] * 8), ('graph', 0, -1, [0] * 8)]
    got = [(r['what_name'], r['flops'], r['type'], [r[f'input_{d}'] for d in 'nchw'] + [r['output_c'], r['filter_h'], r['filter_w'], r['groups']])
           for r in records(run, 'Convolution')]
    check_equal(got, wanted * 2 + wanted[-1:], 'plans as they were executed')
    table = rows(run, 'libs')
    check_equal({row['flops'] for row in table if row['shape'] == '8×64×56×56 * 128×3×3 / 2 groups'}, {2 * images}, 'convolutions, by their type')
    check_equal(sum(row['flops'] or 0 for row in table), 2 * (3 * images + 2 * attention), 'all of them')
    check_equal(sum(row['kernels'] for row in table), len(run.truth_of('kernel')), 'every kernel has its call')
    forget_run()
    late = run_libs('libs_graphs', env={'GPUTRACE_CAPTURE': 'profiler-api'})
    check_equal([r['flops'] for r in records(late, 'Convolution')], ([images] * 3 + [attention] * 2 + [0]) * 2 + [0], 'built before the window, executed in it')


def loaded(mode):
    run = run_libs('libs_loaded', f'mode={mode}')
    check_equal([(r['call'], r['m'], r['n'], r['k']) for r in records(run, 'Matmul')], [('cublasSgemm', 256, 128, 64)], 'found by dlsym')
    check_equal([(r['call'], r['count']) for r in records(run, 'Collective')], [('ncclAllReduce', 4096)], 'found by dlsym')
    check_equal(sum(row['kernels'] for row in rows(run, 'libs')), 2, 'kernels')


def test_loaded_local():
    loaded('local')


def test_loaded_global():
    loaded('global')


def test_probes_are_answered_as_without_us():
    """A program that asks whether NCCL is there must not find our export, whatever is collected."""
    for collect in ('api', 'api,libs', 'all'):
        for words in (['mode=local'], ['mode=global']):
            plain = untraced([libs_program('libs_loaded'), *words], with_standins())
            check('before ncclCommInitRank: no no no' in plain.stdout.decode(), 'it is not there at first', plain.stdout)
            same_output(plain, traced([libs_program('libs_loaded'), *words], with_standins({'GPUTRACE_COLLECT': collect})))
            forget_run()


def test_two_versions_in_one_process():
    """Two cuBLAS, each opened with the plugin that is linked against it: a call must reach its own, traced or not."""
    os.makedirs(scratch('b'))
    for version in ('12', '13'):
        with open(scratch(f'map{version}'), 'w', encoding='utf-8') as file:
            file.write(f'libcublas.so.{version} {{ global: *; }};\n')
        library = compiled(f'libcublas{version}.c', '#include <stdio.h>\nint cublasSgemm_v2() { puts("version %s"); return 0; }\n' % version, '-shared',
                           '-fPIC', f'-Wl,-soname,libcublas.so.{version}', f'-Wl,--version-script={scratch("map" + version)}')
        os.rename(library, scratch('b', f'libcublas.so.{version}'))
        compiled(f'plugin{version}.c', 'int cublasSgemm_v2(void*, int, int, int, int, int, const void*, const void*, int, const void*, int, const void*, void*, int);'
                 f'int run(void) {{ return cublasSgemm_v2(0, 0, 0, {version}, 2, 3, 0, 0, 1, 0, 1, 0, 0, 1); }}', '-shared', '-fPIC',
                 scratch('b', f'libcublas.so.{version}'))
    main_program = compiled('two.c', """
        #include <dlfcn.h>
        #include <stdio.h>
        int main(int count, char** files) {
          int (*run[2])(void);
          for (int i = 1; i < 3; ++i) {
            void* plugin = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);
            if (!plugin) return puts(dlerror()), 72;
            run[i - 1] = (int (*)(void))dlsym(plugin, "run");
          }
          for (int i = 0; i < 6; ++i) run[i % 2]();
          return 5;
        }""", '-ldl')
    command = [main_program, scratch('plugin12.so'), scratch('plugin13.so')]
    env = {'LD_LIBRARY_PATH': scratch('b') + ':' + places.simgpu}
    plain = untraced(command, env)
    check_equal((plain.returncode, plain.stdout), (5, b'version 12\nversion 13\n' * 3), 'without us')
    for collect in ('api', 'api,libs'):
        run = traced(command, {**env, 'GPUTRACE_COLLECT': collect})
        same_output(plain, run)
    check_equal([record['m'] for record in records(run, 'Matmul')], [12, 13] * 3, 'each call once')


def test_off_is_absent_and_said():
    for env in ({}, {'GPUTRACE_COLLECT': 'api,device'}, {'GPUTRACE_COLLECT': 'all,-libs'}):
        run = run_libs('libs_products', env={'GPUTRACE_COLLECT': None, **env})
        check(not records(run, 'Matmul'), 'no record of a library call')
        check(not [r for r in dump(run) if r.get('level') == 'library'], 'no call either')
        whole = report(run)
        check('libs' not in whole['sections'] and 'comm' not in whole['sections'], 'the sections are absent', list(whole['sections']))
        missing = {entry['what']: entry['why'] for entry in whole['coverage']['not_collected']}
        check('libs' in missing and 'comm' in missing, 'and named', missing)
        mfu = {row['metric']: row for row in rows(run, 'overview')}['mfu']
        check(mfu['value'] is None and '+libs' in mfu['note'], 'no MFU without shapes', mfu)
        forget_run()


def test_switched_off_library_is_inert():
    run = traced([libs_program('libs_products')], with_standins({**LIBS, 'GPUTRACE': '0'}))
    same_output(untraced([libs_program('libs_products')], with_standins()), run)
    check(not os.path.exists(run.output), 'nothing is written')


def test_getters_change_nothing():
    """The library's getters are called while libs are collected; the driver sees the same calls either way."""
    counts = []
    for collect in ('api', 'api,libs'):
        run = run_libs('libs_products', env={'GPUTRACE_COLLECT': collect, 'SIMGPU_TRUTH_CALLS': '1'})
        counts.append(truth_calls(run))
        forget_run()
    strange = {call: (counts[0][call], counts[1][call]) for call in set(counts[0]) | set(counts[1]) if counts[0][call] != counts[1][call]}
    check(not strange, 'driver calls with and without libs', strange)


main()
