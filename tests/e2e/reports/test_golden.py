# What the analyzer says of traces that were kept: each folder of tests/corpus/golden holds traces and `report.json`, the rows of some sections.
# More columns and sections may come; what is there stays as it is. GT_UPDATE=1 writes the files anew: look at the difference.
from harness import *

GOLDEN = os.path.join(SOURCE, 'tests', 'corpus', 'golden')
# What rests on the facts of the trace alone; what judges them (findings, causes of idle time) may come to judge better.
SECTIONS = ('overview', 'kernels', 'categories', 'tensor-cores', 'tensor-core-misses', 'libs', 'comm', 'api', 'copies', 'memory', 'graphs', 'jit', 'devices')
JUDGED = {'gpu_idle_ratio', 'launch_bound_ratio', 'overhead_ratio'}  # metrics


def summary(folder):
    whole = report([path for path in sorted(glob.glob(os.path.join(folder, '*.gtrace')))])
    sections = {name: whole['sections'][name]['rows'] for name in SECTIONS if name in whole['sections']}
    sections['overview'] = [row for row in sections['overview'] if row['metric'] not in JUDGED]
    for row in sections['overview']:
        del row['note']
    coverage = {key: whole['coverage'][key] for key in ('processes', 'records', 'dropped', 'unknown_records', 'truncated', 'device_timing')}
    return {'coverage': coverage, 'sections': sections}


def same(got, wanted, where):
    if isinstance(wanted, dict):
        for key in wanted:
            check(key in got, f'{where}: {key} is there', sorted(got))
            same(got[key], wanted[key], f'{where}.{key}')
    elif isinstance(wanted, list):
        check_equal(len(got), len(wanted), f'{where}: rows')
        for index, pair in enumerate(zip(got, wanted)):
            same(*pair, f'{where}[{index}]')
    elif isinstance(wanted, float):
        check(got is not None and abs(got - wanted) <= 1e-9 * max(1, abs(wanted)), where, got, wanted)
    else:
        check_equal(got, wanted, where)


def golden(name):
    folder = os.path.join(GOLDEN, name)
    path, now = os.path.join(folder, 'report.json'), summary(folder)
    if os.environ.get('GT_UPDATE') == '1':
        with open(path, 'w', encoding='utf-8') as file:
            json.dump(now, file, indent=1, ensure_ascii=False)
            file.write('\n')
        return
    with open(path, encoding='utf-8') as file:
        wanted = json.load(file)
    metrics_now = {row['metric']: row for row in now['sections']['overview']}
    metrics_then = {row['metric']: row for row in wanted['sections']['overview']}
    same(metrics_now, metrics_then, f'{name}: overview')
    now['sections'].pop('overview'), wanted['sections'].pop('overview')
    same(now, wanted, name)


def test_products():
    """Stand-ins of cuBLAS, cuBLASLt and cuSPARSE with machine code: shapes, operations, eligibility."""
    golden('products')


def test_collectives():
    """Two ranks of NCCL's stand-in: bytes, bandwidths, waits."""
    golden('collectives')


def test_train():
    """The example, three steps: streams, copies, pools, a graph."""
    golden('train')


def test_h100_elementwise():
    """PyTorch's small operations on a real H100 (docs/gpu-results.md), with the names of the machine taken out: the vendor's CUPTI, driver and machine code."""
    golden('h100_elementwise')


main()
