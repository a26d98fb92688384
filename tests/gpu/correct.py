"""Real programs with and without us: the same exit code and output, and as many launches as somebody else counts."""
import os
import re
import shutil
import sys

from machine import HERE, ROOT, compare, compile_program, metric, modules_absent, not_run, nvcc, row, toolkit_env

COUNTED = 300  # launches of the named kernel in cupy_axpy.py and triton_add.py


def launches_of(said, kernel):
    return sum(line['launches'] for line in said['sections']['kernels']['rows'] if kernel in (line.get('symbol') or line['kernel']))


def nvcc_programs(tree, folder):
    compiler = nvcc()
    if not compiler:
        return
    env = toolkit_env(compiler)
    for linkage in ('static', 'shared'):
        binary = os.path.join(folder, f'launches-{linkage}')
        if not compile_program(compiler, os.path.join(HERE, 'launches.cu'), binary, '-arch=native', '-cudart', linkage):
            continue
        for wrapped in (False, True):
            name = f"nvcc {linkage}{' (run)' if wrapped else ''}"
            said, plain = compare(tree, name, [binary], folder, env, wrapped)
            counts = re.match(rb'launches (\d+) graph_launches (\d+) kernels (\d+)', plain.stdout)
            if said and counts:
                plain_launches, graphs, kernels = map(int, counts.groups())
                row(name, 'launches = the program\'s own count', metric(said, 'launches') == plain_launches + graphs,
                    f"{metric(said, 'launches')} of {plain_launches + graphs}")
                row(name, 'kernels = launches + graph replays', metric(said, 'kernels') == kernels, f"{metric(said, 'kernels')} of {kernels}")
    train = os.path.join(folder, 'train')
    if compile_program(compiler, os.path.join(ROOT, 'examples', 'train.cu'), train, '-arch=native', '-cudart', 'shared'):
        compare(tree, 'examples/train', [train], folder, env)


def python_programs(tree, folder):
    python = shutil.which('python3') or sys.executable

    if why := modules_absent('torch'):
        not_run('PyTorch training loop', why)
    else:
        compare(tree, 'PyTorch', [python, os.path.join(HERE, 'torch_train.py')], folder)
    for title, script, modules, kernel in (('CuPy', 'cupy_axpy.py', ('cupy',), 'counted_axpy'),
                                           ('Triton', 'triton_add.py', ('torch', 'triton'), 'counted_add')):
        if why := modules_absent(*modules):
            not_run(title, why)
            continue
        said, _ = compare(tree, title, [python, os.path.join(HERE, script)], folder)
        if said:
            row(title, f'launches of {kernel} = the program\'s own count', launches_of(said, kernel) == COUNTED,
                f'{launches_of(said, kernel)} of {COUNTED}')


def check(tree, folder):
    nvcc_programs(tree, folder)
    python_programs(tree, folder)
