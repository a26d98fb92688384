"""The library in a process that never touches CUDA: nothing changes, nothing is left, the constructor survives everything."""
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check import artefact, check, finish, skip, tool  # noqa: E402


def run(library, command, **environment):
    env = {'PATH': os.environ['PATH'], 'LC_ALL': 'C', **environment}
    if library:
        env['LD_PRELOAD'] = library
    return subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)


def system_calls(library, trace, **environment):
    """Names of the calls that /bin/true makes, after the loader is done with the preloaded file."""
    run(library, ['strace', '-f', '-o', trace, '-E', f'LD_PRELOAD={library or ""}', '/bin/true'], **environment)
    with open(trace, encoding='utf-8') as file:
        return [line.split('(')[0].split()[-1] for line in file if '(' in line]


def main():
    library = artefact('GT_LIBRARY', 'interpose/libgputrace.so')
    if not library:
        skip('libgputrace.so', 'it is not built yet')
        finish()
    library = os.path.abspath(library)
    for command, rc in ((['/bin/true'], 0), (['/bin/false'], 1), (['sh', '-c', 'echo out; echo err >&2; exit 7'], 7),
                        ([sys.executable, '-c', 'import ctypes, threading; print(len(ctypes.__all__) if hasattr(ctypes, "__all__") else 0)'], 0),
                        (['sh', '-c', 'kill -TERM $$'], -15)):
        plain, loaded = run(None, command), run(library, command)
        check(f'{command[0]}: exit code and output are its own', (plain.returncode, plain.stdout, plain.stderr) ==
              (loaded.returncode, loaded.stdout, loaded.stderr) and plain.returncode == rc,
              f'{plain.returncode, plain.stdout, plain.stderr} became {loaded.returncode, loaded.stdout, loaded.stderr}')
    with tempfile.TemporaryDirectory() as folder:
        run(library, ['/bin/true'], GPUTRACE_OUTPUT=os.path.join(folder, 'out'))
        check('no output directory without a CUDA call', not os.listdir(folder), os.listdir(folder))
        if shutil.which('strace'):
            try:
                tool('strace', '-o', '/dev/null', '/bin/true')
            except Exception as error:  # containers may forbid ptrace
                skip('system calls', f'strace does not work here: {error}')
                finish()
            for value in ('0', '1'):
                before = system_calls(None, os.path.join(folder, 'a'))
                after = system_calls(library, os.path.join(folder, 'b'), GPUTRACE=value)
                # The loader's own work for one more library: open, read, map, protect, close; its locale of errors aside.
                loader = {'openat', 'read', 'pread64', 'fstat', 'newfstatat', 'mmap', 'mprotect', 'munmap', 'close', 'access'}
                extra = [name for name in set(after) if name not in loader and after.count(name) > before.count(name)]
                check(f'GPUTRACE={value}: no system call beyond the loader mapping the file', not extra, extra)
                check(f'GPUTRACE={value}: at most 16 loader calls more', len(after) - len(before) <= 16, len(after) - len(before))
        else:
            skip('system calls', 'strace is not installed')
    finish()


main()
