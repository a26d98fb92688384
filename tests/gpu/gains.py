"""Planted causes (tests/frameworks/planted.py) on the real GPU: the first finding names cause and line, and what it says to gain is what the mended program takes less.

Several programs start at the same time, and one at a time runs its loop."""
import concurrent.futures
import importlib.util
import os
import shutil
import statistics
import sys
import types

from machine import ROOT, TABLES, modules_absent, not_run, row, variables_of

AT_ONCE, TIMES = 8, 2
# Products of about 5 ms a turn, on which what waits for them can be seen; elsewhere the loop is bound by its launches or by its host as it is.
LONG = {'PLANTED_WIDTH': '4096', 'PLANTED_AUGMENTED': '256'}
CAUSES = {'slow-worker': {}, 'item': LONG, 'print': LONG, 'synchronize': LONG, 'to-cpu': LONG, 'pageable-copy': {}, 'empty-cache': {}, 'tokenizing': {}, 'garbage': {},
          'checkpoint': {}, 'small-kernels': {}, 'unfused-optimizer': {}, 'small-batch': {}, 'wrong-dtype': {}}


def planted_module(tree):
    spec = importlib.util.spec_from_file_location('planted_causes', os.path.join(ROOT, 'tests', 'frameworks', 'planted.py'))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.places = types.SimpleNamespace(gputrace=tree.gputrace)
    module.PYTHON = shutil.which('python3') or sys.executable
    return module


def check(tree, folder):
    if why := modules_absent('torch'):
        not_run('planted causes', why)
        return
    planted = planted_module(tree)
    alone = {'PLANTED_ALONE': os.path.join(folder, 'planted.lock')}
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        plain, traced = {}, {}
        for turn in range(TIMES):
            for cause, size in CAUSES.items():
                env = variables_of({**size, **alone})
                for how in ('planted', 'mended', *(['graphed'] if cause in planted.MANY_LAUNCHES else [])):
                    plain.setdefault(cause, {}).setdefault(how, []).append(pool.submit(planted.run, cause, how, env))
                env = variables_of({**size, **alone}, tree.library)
                traced.setdefault(cause, []).append(pool.submit(planted.traced, cause, os.path.join(folder, f'planted-{cause}-{turn}'), env))
    rows = []
    for cause in CAUSES:
        try:
            times = {how: statistics.median(one.result() for one in runs) for how, runs in plain[cause].items()}
            told = sorted((one.result() for one in traced[cause]), key=lambda one: one[0])[TIMES // 2]
        except Exception as error:  # one cause's must not end the others'
            row('planted', f'{cause} runs', False, repr(error)[-300:])
            continue
        rows.append(planted.row_of(cause, {how: 1 - took / times['planted'] for how, took in times.items() if how != 'planted'}, *told))
        row('planted', f'{cause}: cause and line are named', not rows[-1][-1], '; '.join(map(str, rows[-1][1:-1])) + ' ' + '; '.join(rows[-1][-1]))
    TABLES.append(planted.table(rows))
