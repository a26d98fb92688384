"""Tensor Core use by machine code against the hardware's counters: matrix_mix.py under Nsight Compute, and with us."""
import collections
import csv
import os
import re
import shutil
import sys

from machine import HERE, NUMBERS, modules_absent, not_run, report, row, run

# Operations that a kernel has had done on Tensor Cores, by input type. `sm__inst_executed_pipe_tensor` is no measure of them: it counts HFMA2 too.
_OPERATIONS = re.compile(r'^sm__ops_path_tensor\w*_src_([a-z]+\d+)(?!\w*sparsity)')


def metrics_of(listed):
    """Names of those metrics in what `ncu --query-metrics` says."""
    return sorted({words[0] for words in map(str.split, listed.splitlines()) if words and _OPERATIONS.match(words[0])})


def counted(text):
    """{(symbol, grid): types of matrix operations that were counted} of Nsight Compute's CSV."""
    found = collections.defaultdict(set)
    for line in csv.DictReader(line for line in text.splitlines() if line.startswith('"')):
        kernel = line['Kernel Name'], line['Grid Size'].strip('()').replace(' ', '')
        kind = _OPERATIONS.match(line['Metric Name'])
        found[kernel].update([kind[1]] if kind and float(line['Metric Value'].replace(',', '') or 0) > 0 else [])
    return dict(found)


def compare(ours, theirs):
    """(kernels told rightly, those told, all; [(symbol, what we say, what was counted)] of those told wrongly)."""
    told, wrong = 0, []
    for line in ours:
        kinds = theirs.get((line.get('symbol') or line['kernel'], line['grid']))
        if kinds is None or line['tensor_core'] is None:
            continue
        told += 1
        if line['tensor_core'] != bool(kinds) or kinds and line['precision'] not in kinds:
            wrong.append((line.get('symbol') or line['kernel'], line['tensor_core'] and line['precision'], sorted(kinds)))
    return told - len(wrong), told, len(theirs), wrong


def check(tree, folder):
    ncu = shutil.which('ncu') or shutil.which('/usr/local/cuda/bin/ncu')
    why = modules_absent('torch') or ('' if ncu else 'no ncu on this machine')
    if why:
        not_run('Tensor Cores against counters', why)
        return
    program, output = [shutil.which('python3') or sys.executable, os.path.join(HERE, 'matrix_mix.py')], os.path.join(folder, 'counters')
    ours = run(program, preload=tree.library, output=output)
    said, error = report(tree, output)
    row('Tensor Cores', 'the trace can be read', said is not None, error or ours.stderr.decode(errors='replace')[-200:])
    metrics = metrics_of(run([ncu, '--query-metrics']).stdout.decode(errors='replace'))
    counters = run([ncu, '--csv', '--print-units', 'base', '--print-kernel-base', 'mangled', '--clock-control', 'none', '--metrics',
                    ','.join(name + '.sum' for name in metrics), *program])
    theirs = counted(counters.stdout.decode(errors='replace'))
    row('Tensor Cores', 'the counters can be read', theirs, counters.stderr.decode(errors='replace')[-200:])
    if said and theirs:
        right, told, kernels, wrong = compare(said['sections']['kernels']['rows'], theirs)
        NUMBERS['Tensor Cores told wrongly'] = wrong
        row('Tensor Cores', 'use and input type as counted', told and not wrong, f'{right} of {told} kernels told, of {kernels} counted')
