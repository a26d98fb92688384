"""Runs of one program: on the simulated GPU alone, with gputrace, and with gputrace under the framework's own profiler."""
import collections
import glob
import json
import os
import re
import shutil
import tempfile

import cases
from artefacts import places
from environments import HERE, cuda_major_of
from processes import traced, untraced
from traces import gputrace

PROFILED = os.path.join(HERE, 'inside', 'profiled.py')
NODES = os.path.join(HERE, 'inside', 'nodes.py')
# Neither the machine's own settings of a framework nor what an earlier run has left in a cache may change a run.
_CACHES = ('TORCHINDUCTOR_CACHE_DIR', 'TRITON_CACHE_DIR', 'NUMBA_CACHE_DIR', 'CACHEDB', 'HF_HOME', 'TORCH_HOME', 'MPLCONFIGDIR', 'XDG_CACHE_HOME')


class Profiled:
    """What the framework's profiler, its FLOP counter and its allocator said, one per process: see inside/profiled.py."""

    def __init__(self, run, folder):
        self.run = run
        self.processes = []
        for path in sorted(glob.glob(os.path.join(folder, 'said-*.json'))):
            with open(path, encoding='utf-8') as file:
                said = json.load(file)
            said['kineto'] = path.replace('said-', 'kineto-')
            self.processes.append(said)


class Runs:
    """The three runs of a program; `profiled` is None where it has none."""

    def __init__(self, program, plain, traced_run, profiled, missing):
        self.program, self.plain, self.traced, self.profiled = program, plain, traced_run, profiled
        self.missing = missing  # {library: names} that the plain run asked for and the simulation does not model


def command_of(program, framework, before=()):
    if program.launcher == 'torchrun':
        return [framework.command('torchrun'), '--standalone', '--nproc-per-node=2', *before, program.path, *program.arguments]
    return [framework.python, *before, program.path, *program.arguments]


def simulated(framework):
    """What `gputrace run --simgpu` sets for the framework's CUDA, without us."""
    said = gputrace('env', f'--simgpu={cuda_major_of(framework.name)}')[0]
    variables = dict(re.findall(r'^export (LD_\w+)=(.*)$', said, re.M))
    variables['LD_PRELOAD'] = ' '.join(path for path in re.split('[ :]', variables['LD_PRELOAD']) if path != places.library)
    return variables


def _folder(name):
    """A fresh scratch folder, which `processes` knows as its own."""
    cases._scratch = tempfile.mkdtemp(prefix=f'gputrace-{name}-')
    return cases._scratch


def _environment(program, caches):
    env = {name: os.path.join(caches, name.lower()) for name in _CACHES}
    env.update({'PYTHONDONTWRITEBYTECODE': '1', 'TOKENIZERS_PARALLELISM': 'false', 'TF_CPP_MIN_LOG_LEVEL': '2', **program.env})
    return env


def _unless_it_aborts_itself(run):
    """PyTorch's autograd thread may end a program while Python finalizes, with us and without (`pthread_exit` in a frame that lets nothing
    through), where its last backward pass was milliseconds before: such a run is made anew, three times at most."""
    for _ in range(3):
        made = run()
        ended = made[0] if isinstance(made, tuple) else made.run if isinstance(made, Profiled) else made
        if ended.returncode != -6 or b'terminate called without an active exception' not in ended.stderr:
            break
        print('    aborted by its own thread at the end: run again', flush=True)
    return made


class Runner:
    """Runs programs and removes what they left."""

    def __init__(self, keep=False):
        self.keep, self._folders = keep, []

    def folder(self, name):
        self._folders.append(_folder(name))
        return self._folders[-1]

    def close(self):
        for folder in self._folders:
            if self.keep:
                print('  kept', folder)
            else:
                shutil.rmtree(folder, ignore_errors=True)

    def runs(self, program, framework):
        plain, missing = _unless_it_aborts_itself(lambda: self._plain(program, framework))
        traced_run = _unless_it_aborts_itself(lambda: self._traced(program, framework))
        profiled = _unless_it_aborts_itself(lambda: self._profiled(program, framework)) if program.profiled else None
        return Runs(program, plain, traced_run, profiled, missing)

    def _plain(self, program, framework):
        folder = self.folder(program.name)
        env = {**_environment(program, folder), **simulated(framework), 'SIMGPU_MISSING': os.path.join(folder, 'missing-%p')}
        run, missing = untraced(command_of(program, framework), env, timeout=program.timeout), collections.defaultdict(set)
        for path in glob.glob(os.path.join(folder, 'missing-*')):
            with open(path, encoding='utf-8') as file:
                for _, name, library in (line.split() for line in file if len(line.split()) == 3):
                    missing[library].add(name)
        return run, {library: sorted(names) for library, names in missing.items()}

    def _traced(self, program, framework):
        env = _environment(program, self.folder(program.name))
        if not program.own_cupti:
            env['SIMGPU_CLOCK'] = 'monotonic'  # device times are then the truth's; a Kineto of 2023 takes them for wall-clock time
        return self._under_gputrace(program, command_of(program, framework), env)

    def _profiled(self, program, framework):
        """CUPTI is the framework's: we record calls alone. What the run before has compiled is not compiled a third time."""
        caches, folder = self._folders[-1], self.folder(program.name)
        env = {**_environment(program, caches), 'GT_SAID': folder, 'GT_FLOPS': str(int(program.flops))}
        run = self._under_gputrace(program, command_of(program, framework, [PROFILED]), env, collect='api,libs,ops,python')
        return Profiled(run, folder)

    def noted(self, program, framework):
        """(the run, where PyTorch's tracebacks of the nodes of its backward passes lie)"""
        caches, folder = self._folders[-1], self.folder(program.name)
        env = {**_environment(program, caches), 'GT_SAID': folder}
        run = _unless_it_aborts_itself(lambda: self._under_gputrace(program, command_of(program, framework, [NODES]), env))
        return run, (glob.glob(os.path.join(folder, 'nodes-*.json')) or [None])[0]

    def _under_gputrace(self, program, command, env, collect='api,device,nvtx,code,libs,ops,python'):
        return traced(command, env, 'run', ['-q', '--collect', collect], timeout=program.timeout)
