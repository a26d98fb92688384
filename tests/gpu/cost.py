"""What each level of collection costs on this machine, in turn, medians; and beside other profilers.

Two programs: launch_cost.cu (empty kernels, a graph of 1000 of them), one run after the other; and torch_step.py (steps that are bound by launches), all levels'
processes at the same time, of which one makes steps and the others wait: what the machine does meanwhile falls on each alike.
"""
import contextlib
import json
import os
import re
import shutil
import statistics
import subprocess
import sys

from machine import CUPTI_FOLDERS, HERE, NUMBERS, ROOT, TABLES, compile_program, modules_absent, not_run, nvcc, row, run, toolkit_env, variables_of

TURNS = int(os.environ.get('GT_TURNS', '3'))  # of launch_cost
TURNS_OF_STEPS = 4 + 8 * TURNS
API_GOAL = 0.01  # a launch-bound step may become this much slower with GPUTRACE_COLLECT=api

LEVELS = [  # what, variables, whether our library is there
    ('nothing', {}, False),
    ('library off', {'GPUTRACE': '0'}, True),
    ('api', {'GPUTRACE_COLLECT': 'api'}, True),
    ('api, device', {'GPUTRACE_COLLECT': 'api,device'}, True),
    ('api, device, latency', {'GPUTRACE_COLLECT': 'api,device,latency'}, True),
    ('api, device, graph nodes', {'GPUTRACE_COLLECT': 'api,device', 'GPUTRACE_GRAPHS': 'node'}, True),
    ('api, device, python, ops', {'GPUTRACE_COLLECT': 'api,device,python,ops'}, True),
    ('default', {}, True),
]
CLIENT = 'a client of CUPTI that only reads'
ITS_KINDS = {'BENCH_CUPTI_KINDS': '10,1,2,22,17,52,51', 'BENCH_CUPTI_BUFFER': str(1 << 20)}  # what device collection asks for


def nsys():
    found = shutil.which('nsys')
    if not found:
        not_run('nsys beside us', 'no nsys on this machine')
    return found


def client(folder):
    """bench/cupti_client.c, compiled; None: there is no compiler."""
    compiler, binary = shutil.which('gcc') or shutil.which('cc'), os.path.join(folder, 'libcupti_client.so')
    if os.path.exists(binary):
        return binary
    source = os.path.join(ROOT, 'bench', 'cupti_client.c')
    if compiler and run([compiler, '-shared', '-fPIC', '-O2', '-I', ROOT, '-o', binary, source, '-ldl']).returncode == 0:
        return binary
    not_run(CLIENT, 'it did not compile' if compiler else 'no C compiler')
    return None


def commands(tree, command, folder, profiled, env):
    """(what, command, variables, library or None) of every line of the table."""
    lines = [(what, command, env, tree.library if ours else None) for what, env, ours in LEVELS]
    if library := client(folder):
        paths = [path for path in (env.get('LD_LIBRARY_PATH'), *CUPTI_FOLDERS, os.environ.get('LD_LIBRARY_PATH')) if path]
        lines.append((CLIENT, command, {**ITS_KINDS, 'LD_PRELOAD': library, 'LD_LIBRARY_PATH': ':'.join(paths)}, None))
    if profiled:
        lines.append(('torch.profiler alone', command, {'PROFILE': 'before'}, None))
        lines.append(('default, under torch.profiler', command, {'PROFILE': 'before'}, tree.library))
    tool = nsys()
    if tool:
        under = [tool, 'profile', '-t', 'cuda', '-s', 'none', '--force-overwrite', 'true', '-o', os.path.join(folder, 'nsys')]
        lines.append(('nsys alone', [*under, *command], {}, None))
        lines.append(('default, under nsys', [*under, *command], {}, tree.library))
    return lines


def in_turn(lines, turn):
    """Numbered, every second time from the end: what the machine does meanwhile falls on each alike."""
    numbered = list(enumerate(lines))
    return numbered[::-1] if turn % 2 else numbered


def medians(values):
    return {what: {unit: statistics.median(turn[unit] for turn in turns) for unit in turns[0]} for what, turns in values.items()}


def measure(tree, title, command, folder, read, env):
    """{what: {unit: median over the turns}}; a line that failed in one turn is a failed row, and absent."""
    values = {}
    for turn in range(TURNS):
        for number, (what, line, variables, library) in in_turn(commands(tree, command, folder, False, env), turn):
            done = run(line, {**env, **variables}, preload=library, output=os.path.join(folder, f'cost-{turn}-{number}') if library else None)
            got = read(done) if done.returncode == 0 else None
            if got is None:
                row(title, f'{what} runs', False, done.stderr.decode(errors='replace').strip()[-200:])
            else:
                values.setdefault(what, []).append(got)
    return medians(values)


def said_by(program):
    """The next line of its standard output; empty: it has ended."""
    return program.stdout.readline().strip()


def measure_steps(tree, title, command, folder):
    """The same of torch_step.py."""
    values = {}
    with contextlib.ExitStack() as started:
        programs = []
        for number, (what, line, variables, library) in enumerate(commands(tree, command, folder, True, {})):
            env = variables_of(variables, library, os.path.join(folder, f'steps-{number}'))
            programs.append((what, started.enter_context(subprocess.Popen(line, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1))))
        ready = [(what, program) for what, program in programs if said_by(program) == 'ready']
        for turn in range(TURNS_OF_STEPS):
            for _, (what, program) in in_turn(ready, turn):
                with contextlib.suppress(BrokenPipeError):
                    program.stdin.write('on\n')
                if line := said_by(program):
                    values.setdefault(what, []).append(json.loads(line))
    for what, program in programs:
        row(title, f'{what} runs', program.returncode == 0 and len(values.get(what, [])) == TURNS_OF_STEPS, f'exit {program.returncode}')
    NUMBERS[f'{title}: each turn'] = values
    return medians(values)


def table(title, values, units):
    """One table in Markdown: each unit, and what it is more than with nothing."""
    base = values.get('nothing')
    if not base:
        return
    NUMBERS[title] = values
    lines = [f'### {title}', '', '| | ' + ' | '.join(f'{text} | more' for _, text in units) + ' |', '|---|' + '---:|---:|' * len(units)]
    for what, got in values.items():
        cells = []
        for unit, _ in units:
            cells += [f'{got[unit]:,.0f}', '' if what == 'nothing' else f'{got[unit] - base[unit]:+,.0f}']
        lines.append(f'| {what} | ' + ' | '.join(cells) + ' |')
    TABLES.append('\n'.join(lines))
    print('\n' + TABLES[-1] + '\n', flush=True)


def launches(tree, folder, options=('-arch=native',), env=None):
    compiler = nvcc()
    if not compiler:
        return
    binary = os.path.join(folder, 'launch_cost')
    if not compile_program(compiler, os.path.join(HERE, 'launch_cost.cu'), binary, *options, '-cudart', 'shared'):
        return

    def read(done):
        said = re.search(rb'launch ([\d.]+) graph_launch ([\d.]+) graph_replay ([\d.]+)', done.stdout)
        return dict(zip(('launch', 'graph_launch', 'graph_replay'), map(float, said.groups()))) if said else None

    values = measure(tree, 'launch cost', [binary], folder, read, env or toolkit_env(compiler))
    table('Launches: ns on the host, median', values, [('launch', 'a launch of 20,000'), ('graph_launch', 'a launch of a graph of 1000'),
                                                      ('graph_replay', 'its replay, whole')])


def steps(tree, folder):
    if why := modules_absent('torch'):
        not_run('step time in PyTorch', why)
        return
    values = measure_steps(tree, 'step time', [shutil.which('python3') or sys.executable, os.path.join(HERE, 'torch_step.py')], folder)
    table('A transformer step in PyTorch: us, median', values, [('step_us', 'step'), ('cpu_us', 'processor time of a step')])
    if 'nothing' in values and 'api' in values:
        more = values['api']['step_us'] / values['nothing']['step_us'] - 1
        row('step time', f'api slows a step by less than {API_GOAL:.0%}', more < API_GOAL, f'{more:+.2%}')


def check(tree, folder):
    launches(tree, folder)
    steps(tree, folder)
