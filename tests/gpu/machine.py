"""What every part of tests/gpu needs: the installed tree, programs with and without it, the rows of the result."""
import importlib.util
import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, 'tests', 'e2e'))
import harness  # noqa: E402  (its waiting for orphans: the sidecar outlives the program)

ROWS = []      # {program, check, ok, detail}
NOT_RUN = []   # (what, why)
NUMBERS = {}
TABLES = []    # Markdown, for docs/gpu-results.md


# Where CUPTI lies: with PyTorch's packages, with the toolkit.
CUPTI_FOLDERS = [folder for folder in (*(os.path.join(path, 'nvidia', 'cu13', 'lib') for path in sys.path), '/usr/local/cuda/lib64', '/usr/local/cuda/extras/CUPTI/lib64')
                 if os.path.exists(os.path.join(folder, 'libcupti.so.13'))]


def not_run(what, why):
    """Said once, however often it is come upon."""
    if (what, why) not in NOT_RUN:
        NOT_RUN.append((what, why))


def row(program, what, ok, detail=''):
    ROWS.append({'program': program, 'check': what, 'ok': bool(ok), 'detail': str(detail)})
    print(f"  {'ok    ' if ok else 'FAILED'} {program:22} {what:48} {detail}", flush=True)


class Tree:
    def __init__(self, path):
        path = os.path.abspath(path)
        self.library = os.path.join(path, 'lib', 'libgputrace.so')
        self.gputrace = os.path.join(path, 'bin', 'gputrace')
        absent = [name for name in (self.library, self.gputrace) if not os.path.exists(name)]
        if absent:
            sys.exit(f'gpu: {", ".join(absent)} is not there: make it with `./dev install {path}` and carry it here')


def variables_of(env=None, preload=None, output=None):
    """Ours without gputrace's, `env` added, and with the library where it is to be there."""
    variables = {key: value for key, value in os.environ.items() if not key.startswith(('GPUTRACE', 'LD_PRELOAD'))}
    variables.update(env or {})
    if preload:
        variables.update(LD_PRELOAD=preload, GPUTRACE_OUTPUT=output)
    return variables


def run(command, env=None, preload=None, output=None, timeout=280):
    done = subprocess.run(command, env=variables_of(env, preload, output), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=timeout, check=False)
    left = harness.wait_for_orphans(30)
    if left:
        row(command[0], 'the sidecar ends after the program', False, left)
    return done


def report(tree, output):
    done = subprocess.run([tree.gputrace, 'report', output, '--json'], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False)
    if done.returncode != 0:
        return None, done.stderr.decode(errors='replace').strip()[-300:]
    return json.loads(done.stdout), ''


def metric(said, name):
    return next((line['value'] for line in said['sections']['overview']['rows'] if line['metric'] == name), None)


def compare(tree, name, command, folder, env=None, wrapped=False):
    """Runs with and without us; returns our report of the traced run, or None."""
    output = os.path.join(folder, name.replace(' ', '-'))
    plain = run(command, env)
    if wrapped:
        ours = run([tree.gputrace, 'run', '-q', '-o', output, '--', *command], env)
    else:
        ours = run(command, env, preload=tree.library, output=output)
    row(name, 'exit code', plain.returncode == ours.returncode == 0, f'{plain.returncode} and {ours.returncode}'
        + ('' if plain.returncode == 0 else ': ' + plain.stderr.decode(errors='replace').strip()[-200:]))
    row(name, 'standard output', plain.stdout == ours.stdout, f'{len(plain.stdout)} bytes')
    if plain.stderr != ours.stderr:
        NUMBERS[f'{name}: stderr differs'] = [plain.stderr.decode(errors='replace')[-400:], ours.stderr.decode(errors='replace')[-400:]]
    said, error = report(tree, output)
    row(name, 'the trace can be read', said is not None, error)
    if said:
        row(name, 'nothing dropped, nothing unknown', said['coverage']['dropped'] == 0 and said['coverage']['unknown_records'] == 0,
            f"{said['coverage']['records']} records, {said['coverage']['dropped']} dropped")
    return said, plain


def nvcc():
    """Path of the compiler, or None (then NOT_RUN says so)."""
    found = shutil.which('nvcc') or shutil.which('/usr/local/cuda/bin/nvcc')
    if not found:
        not_run('nvcc programs', 'no nvcc on this machine')
    return found


def toolkit_env(compiler):
    """Environment in which a program finds the shared runtime of that compiler's toolkit."""
    lib64 = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(compiler))), 'lib64')
    return {'LD_LIBRARY_PATH': lib64 + ':' + os.environ.get('LD_LIBRARY_PATH', '')}


def compile_program(compiler, source, binary, *options):
    """False: NOT_RUN says why."""
    built = subprocess.run([compiler, '-O2', '-std=c++17', '-I', ROOT, *options, '-o', binary, source],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=280, check=False)
    if built.returncode:
        not_run(os.path.basename(binary), 'it did not compile: ' + built.stdout.decode(errors='replace')[-200:])
    return built.returncode == 0


def modules_absent(*modules):
    """Empty, or why a Python program with these imports cannot run. A folder without __init__.py is no module: tests/frameworks has some of such names."""
    found = {name: importlib.util.find_spec(name) for name in modules}
    absent = [name for name, spec in found.items() if spec is None or spec.origin is None]
    return f"Python has no {', '.join(absent)}" if absent else ''
