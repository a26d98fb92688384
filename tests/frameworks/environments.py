"""The frameworks' own virtual environments: build/frameworks/NAME, made from locks/NAME.txt, whose first line names the Python."""
import glob
import hashlib
import os
import re
import shutil
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, '..', '..', 'build', 'frameworks'))
PATIENTLY = os.path.abspath(os.path.join(HERE, '..', '..', 'tools', 'patiently'))
_FIRST_LINE = re.compile(r'^# Python (\d+\.\d+): (.*)$', re.M)


class CannotBeHad(Exception):
    """Why a framework is not here and could not be brought."""


def lock_of(name):
    return os.path.join(HERE, 'locks', name + '.txt')


def locked():
    """The names of all frameworks that have a lock."""
    return sorted(os.path.basename(path)[:-len('.txt')] for path in glob.glob(lock_of('*')))


def _text(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def _lock_text(name):
    return _text(lock_of(name))


def python_of(name):
    """The Python that the framework's lock is for: '3.11'."""
    return _FIRST_LINE.search(_lock_text(name))[1]


def package_of(name):
    """The package that the lock is about, the first that it was asked for, with its version: 'torch 2.15.0'."""
    first = _FIRST_LINE.search(_lock_text(name))[2].split()[0]
    return re.sub(r'\[.*\]', '', first).replace('==', ' ')


def cuda_major_of(name):
    """The CUDA that the framework's packages are for: 12 or 13."""
    return 12 if re.search(r'^nvidia-(?:cublas|cuda-runtime|cudnn|nccl)-cu12==', _lock_text(name), re.M) else 13


def interpreter(version):
    """The path of a Python of that version on this machine, or None: one that is on the path, else one of pyenv's."""
    pyenv = os.environ.get('PYENV_ROOT') or os.path.expanduser('~/.pyenv')
    paths = glob.glob(os.path.join(pyenv, 'versions', version + '.*', 'bin', 'python' + version))
    on_path = shutil.which('python' + version)
    if on_path and 'shims' not in on_path:
        paths.append(on_path)
    for path in reversed(paths):
        if subprocess.run([path, '-c', 'import ensurepip'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0:
            return path
    return None


class Environment:
    """A framework that is installed: its Python, and what its installation took."""

    def __init__(self, name, seconds):
        self.name, self.seconds = name, seconds
        self.root = os.path.join(ROOT, name)
        self.python = os.path.join(self.root, 'bin', 'python')

    def bytes(self):
        out = subprocess.run(['du', '-s', '--block-size=1', self.root + '/'], stdout=subprocess.PIPE, check=True).stdout
        return int(out.split()[0])

    def command(self, name):
        return os.path.join(self.root, 'bin', name)


def made(root, lock):
    """Makes the virtual environment `root` of the packages in the file `lock`, where it is not there or the lock has changed; whether there was anything to
    do. Raises CannotBeHad; what pip said is in `root`.log."""
    mark, marked, log = hashlib.sha256(_text(lock).encode()).hexdigest(), os.path.join(root, '.lock'), root + '.log'
    if os.path.exists(marked) and _text(marked) == mark:
        return False
    version = _FIRST_LINE.search(_text(lock))[1]
    python = interpreter(version)
    if not python:
        raise CannotBeHad(f'no Python {version} on this machine')
    os.makedirs(os.path.dirname(root), exist_ok=True)
    shutil.rmtree(root, ignore_errors=True)
    with open(log, 'w', encoding='utf-8') as file:
        for command in ([python, '-m', 'venv', root],
                        [PATIENTLY, os.path.join(root, 'bin', 'python'), '-m', 'pip', 'install', *(['--no-cache-dir'] if os.environ.get('CI') else []),
                         '--disable-pip-version-check', '--no-input', '--no-deps', '--no-compile',
                         '--require-hashes', '--only-binary=:all:', '-r', lock]):
            if subprocess.run(command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, check=False).returncode != 0:
                raise CannotBeHad(f'its packages could not be installed: see {os.path.relpath(log)}')
    with open(marked, 'w', encoding='utf-8') as file:
        file.write(mark)
    return True


def installed(name):
    """The Environment of a framework, made where it is not there or its lock has changed. Raises CannotBeHad."""
    began = time.monotonic()
    anew = made(os.path.join(ROOT, name), lock_of(name))
    return Environment(name, time.monotonic() - began if anew else 0)
