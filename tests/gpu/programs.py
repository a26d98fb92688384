"""The programs of tests/frameworks with this machine's own Python: traced, several at a time, their reports kept in $OUT/reports.tar, traces of up
to 5 MB in $OUT/traces-N.tar; and again under PyTorch's own
profiler, FLOP counter and allocator, which must say what we say (tests/frameworks/against_profiler.py)."""
import concurrent.futures
import glob
import gzip
import importlib.util
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import threading

from machine import NUMBERS, ROOT, modules_absent, not_run, row, variables_of
import traces

FRAMEWORKS = os.path.join(ROOT, 'tests', 'frameworks')
AT_ONCE = 10  # the device is shared then, and a program's times are no measure of anything
NEEDS = {'pytorch': ['torch'], 'jax': ['jax'], 'numba': ['numba'], 'onnxruntime': ['onnxruntime'], 'tensorflow': ['tensorflow'], 'tinygrad': ['tinygrad'],
         'vllm': ['vllm']}
KEEPING = threading.Lock()
KEPT_FILES, KEPT_FILE, KEPT_TRACE = 3, 15_000_000, 5_000_000  # bytes
HERE_STEPS = {'gpt-generate': 24}  # two times twelve tokens: those of the simulated GPU, which computes nothing, end earlier
MORE = {'gpt': ['transformers'], 'resnet': ['torchvision'], 'lightning': ['lightning'], 'request': ['transformers']}


def catalogue():
    """Programs whose packages are here."""
    sys.path.append(FRAMEWORKS)
    from catalogue import programs
    found = []
    for program in programs():
        needs = NEEDS[program.file.split('/')[0]] + [name for begin, names in MORE.items() if program.name.startswith(begin) for name in names]
        if why := modules_absent(*needs):
            not_run(program.name, why)
        else:
            found.append(program)
    return found


def command_of(program, before=()):
    python = shutil.which('python3') or sys.executable
    launcher = ['-m', 'torch.distributed.run', '--standalone', '--nproc-per-node=1'] if program.launcher else []
    return [python, *launcher, *before, program.path, *program.arguments]


def ended(program, env, before=(), under=()):
    """Exit code of the program, or 'timeout'."""
    variables = variables_of({'XLA_PYTHON_CLIENT_PREALLOCATE': 'false'})  # else JAX takes most of the device's memory for itself
    variables.update({name: value for name, value in {**program.env, **(env or {})}.items() if not name.startswith('SIMGPU')})
    try:
        return subprocess.run([*under, *command_of(program, before)], env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              timeout=150, check=False).returncode
    except subprocess.TimeoutExpired:
        return 'timeout'


def traced(tree, program, output, env=None, before=(), options=()):
    """(exit code, the report or None)"""
    code = ended(program, env, before, [tree.gputrace, 'run', '-q', '-o', output, *options, '--'])
    said = subprocess.run([tree.gputrace, 'report', output, '--json'], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=120, check=False)
    return code, json.loads(said.stdout) if said.returncode == 0 else None


def kept_in():
    place = os.environ.get('OUT') or os.path.join(ROOT, 'build')
    os.makedirs(place, exist_ok=True)
    return place


def bytes_below(path):
    return sum(os.path.getsize(found) for found in glob.glob(os.path.join(path, '**'), recursive=True) if os.path.isfile(found))


def keep(program, said, trace):
    """A few files of a bounded size are all that comes back from a machine that is lent; each program's are there as soon as it has ended."""
    place = kept_in()
    report = gzip.compress(json.dumps(said).encode())
    with KEEPING:
        with tarfile.open(os.path.join(place, 'reports.tar'), 'a') as file:
            entry = tarfile.TarInfo(program.name + '.json.gz')
            entry.size = len(report)
            file.addfile(entry, io.BytesIO(report))
        size = bytes_below(trace)
        for number in range(KEPT_FILES):
            path = os.path.join(place, f'traces-{number}.tar')
            if size <= KEPT_TRACE and (os.path.getsize(path) if os.path.exists(path) else 0) + size <= KEPT_FILE:
                with tarfile.open(path, 'a') as file:
                    file.add(trace, program.name)
                return


def training_steps(said):
    return sum(line['phase'] != 'evaluation' for line in said['sections'].get('steps', {'rows': []})['rows'])


def judge(tree, folder, program):
    output = os.path.join(folder, 'program-' + program.name)
    code, said = traced(tree, program, output)
    if (code != 0 or not said) and ended(program, None) == code:
        not_run(program.name, f'ends with {code} without us too' if code else 'makes no CUDA call here')
        return
    row(program.name, 'runs, and is read', code == 0 and said, f'exit {code}')
    if not said:
        return
    keep(program, said, output)
    coverage, runs = said['coverage'], {name: line['value'] for line in said['sections']['overview']['rows'] if (name := line['metric']) in ('kernels', 'calls')}
    row(program.name, 'nothing lost', coverage['dropped'] == 0 and not coverage['truncated'], f"{coverage['records']} records, {runs.get('kernels')} kernels")
    if steps := HERE_STEPS.get(program.name, program.steps):
        row(program.name, 'steps as it makes them', training_steps(said) == steps, f'{training_steps(said)} of {steps}')


def other_module():
    """tests/frameworks/against_profiler.py: this folder has one of that name."""
    spec = importlib.util.spec_from_file_location('against_kineto', os.path.join(FRAMEWORKS, 'against_profiler.py'))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def inside(tree, folder, program):
    kineto, place = other_module(), os.path.join(folder, 'said-' + program.name)
    os.makedirs(place)
    output = os.path.join(folder, 'inside-' + program.name)
    code, said = traced(tree, program, output, {'GT_SAID': place, 'GT_FLOPS': str(int(program.flops))}, [os.path.join(FRAMEWORKS, 'inside', 'profiled.py')],
                        ['--collect', 'api,libs,ops,python'])
    found = glob.glob(os.path.join(place, 'said-*.json'))
    row(program.name, 'runs under its own profiler', code == 0 and said and found, f'exit {code}')
    if not (said and found):
        return
    with open(found[0], encoding='utf-8') as file:
        theirs = json.load(file)
    against = kineto.Kineto(found[0].replace(os.sep + 'said-%d' % theirs['pid'], os.sep + 'kineto-%d' % theirs['pid']))
    launches = kineto.Launches(output, theirs)
    for what, (same, all_of_them, differ) in (('operations of launches = Kineto\'s', kineto.operations(launches, against)),
                                              ('lines of launches = the interpreter\'s', kineto.lines(launches, theirs))):
        row(program.name, what, same == all_of_them, f'{same} of {all_of_them}' + (f': {str(differ)[:150]}' if differ else ''))
    peak, wanted = sum(line['peak_bytes'] for line in kineto._inside(output)), theirs['memory'].get('allocated_bytes.all.peak', 0)
    row(program.name, 'peak of its allocator = memory_stats', peak == wanted, f'{peak} and {wanted} bytes')
    if (counted := kineto.library_flops(theirs)) is not None:
        reported = kineto.report_flops(output)[0]
        row(program.name, 'FLOPs = its counter\'s', abs(reported - counted) <= kineto.FLOPS_ALLOWED * counted, f'{reported} and {counted}')


def check(tree, folder):
    def gputrace(*arguments, **_):
        done = subprocess.run([tree.gputrace, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, check=True)
        return done.stdout, done.stderr

    for old in glob.glob(os.path.join(kept_in(), 'traces-[0-9].tar')) + glob.glob(os.path.join(kept_in(), 'reports.tar')):
        os.unlink(old)  # what is kept is added to
    traces.gputrace = gputrace  # the tree's, not that of a build
    chosen = catalogue()
    jobs = [(judge, program) for program in chosen]
    jobs += [(inside, program) for program in chosen if program.file.startswith('pytorch') and program.profiled and not program.launcher and (program.operations or program.steps)]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for done in [pool.submit(what, tree, folder, program) for what, program in jobs]:
            try:
                done.result()
            except Exception as error:  # one program's must not end the others'
                row('programs', 'are compared', False, repr(error)[:200])
    NUMBERS['programs'] = [program.name for program in chosen]
