"""The installed tree in an older Debian (bullseye, glibc 2.31, by debootstrap): the library loads and traces a Python program
that calls a driver, and the static sidecar and analyzer run.

The driver is a few lines of C without any library: what this machine compiles otherwise asks for this machine's glibc.
Debian buster (glibc 2.28) is no longer on the mirrors; for it stands the symbol check of test_library.py.
"""
import fcntl
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check import SOURCE, artefact, check, finish, skip  # noqa: E402

SUITE, GLIBC = 'bullseye', '2.31'
CACHE = os.path.join(SOURCE, 'build', 'roots')
LAUNCHES = 25

DRIVER = r'''
typedef int R;
#define CALL(name, ...) R name(__VA_ARGS__)
CALL(cuInit, unsigned f) { return 0; }
CALL(cuDriverGetVersion, int* v) { *v = 13000; return 0; }
CALL(cuDeviceGetCount, int* n) { *n = 1; return 0; }
CALL(cuDeviceGet, int* d, int i) { *d = i; return 0; }
CALL(cuCtxCreate_v2, void** c, unsigned f, int d) { *c = (void*)0x1000; return 0; }
CALL(cuCtxGetCurrent, void** c) { *c = (void*)0x1000; return 0; }
CALL(cuMemAlloc_v2, unsigned long* p, unsigned long n) { *p = 0x700000000ul; return 0; }
CALL(cuMemFree_v2, unsigned long p) { return 0; }
CALL(cuCtxSynchronize, void) { return 0; }
CALL(cuLaunchKernel, void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned s,
     void* stream, void** a, void** e) { return 0; }
'''

PROGRAM = r'''
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
p, c, n = ctypes.c_uint64(), ctypes.c_void_p(), ctypes.c_int()
assert cuda.cuInit(0) == 0
assert cuda.cuDeviceGetCount(ctypes.byref(n)) == 0 and n.value == 1
assert cuda.cuCtxCreate_v2(ctypes.byref(c), 0, 0) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(1 << 20)) == 0
for i in range(%d):
    assert cuda.cuLaunchKernel(ctypes.c_void_p(0x2000), 4, 1, 1, 128, 1, 1, 0, None, None, None) == 0
assert cuda.cuMemFree_v2(p) == 0
print("done")
''' % LAUNCHES


def mirror():
    """The mirror that this machine's apt uses."""
    for path in ['/etc/apt/sources.list'] + glob.glob('/etc/apt/sources.list.d/*'):
        if not os.path.exists(path):
            continue
        with open(path, encoding='utf-8') as file:
            for line in file:
                for word in line.split():
                    if word.startswith('http') and word.rstrip('/').endswith('/debian'):
                        return word
    return 'http://deb.debian.org/debian'


def make_root():
    """The root's path, or a reason why there is none. Made once, kept in build/roots."""
    root = os.path.join(CACHE, SUITE)
    if os.geteuid() != 0:
        return None, 'only root can make and enter another root'
    if not shutil.which('debootstrap'):
        return None, 'debootstrap is not installed'
    if not os.path.isdir('/usr/share/debootstrap/scripts'):
        return None, 'debootstrap has no scripts'
    os.makedirs(CACHE, exist_ok=True)
    with open(os.path.join(CACHE, 'lock'), 'w', encoding='utf-8') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists(os.path.join(root, '.complete')):
            return root, ''
        shutil.rmtree(root, ignore_errors=True)
        log = os.path.join(CACHE, SUITE + '.log')
        with open(log, 'w', encoding='utf-8') as out:
            command = ['debootstrap', '--variant=minbase', '--include=python3', SUITE, root, mirror()]
            try:
                rc = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, timeout=420, check=False).returncode
            except subprocess.TimeoutExpired:
                rc = 'a timeout'
        if rc != 0:
            with open(log, encoding='utf-8', errors='replace') as file:
                last = (file.read().strip().splitlines() or [''])[-1]
            return None, f'debootstrap {SUITE} ended with {rc}: {last[:160]}'
        open(os.path.join(root, '.complete'), 'w', encoding='utf-8').close()
    return root, ''


def in_root(root, *command, **environment):
    """Runs a command in the root; `environment` is the command's, not that of the programs that lead there."""
    variables = [f'{key}={value}' for key, value in environment.items()]
    script = f'mount -t proc proc {root}/proc && exec chroot {root} env "$@"'
    return subprocess.run(['unshare', '--mount', '--fork', 'sh', '-c', script, 'sh', *variables, *command],
                          env={'PATH': '/usr/bin:/bin:/usr/sbin:/sbin', 'LC_ALL': 'C', 'HOME': '/root'}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False)


COUNTED = '''
import ctypes, threading, time
ctypes.CDLL('libcuda.so.1').cuInit(0)
with open('/dev/zero', 'rb', buffering=0) as zero:
    zero.read(1 << 20)
lock = threading.Lock()
lock.acquire()
threading.Timer(0.05, lock.release).start()
lock.acquire()
time.sleep(0.01)
print('done')
'''


def launches(report):
    for row in report['sections']['overview']['rows']:
        if row['metric'] == 'launches':
            return row['value']
    return None


def main():
    files = {'lib/libgputrace.so': artefact('GT_LIBRARY', 'interpose/libgputrace.so'),
             'lib/libgputrace-host.so': artefact('GT_HOST_LIBRARY', 'interpose/libgputrace-host.so'),
             'libexec/gputrace/gputrace-sidecar': artefact('GT_SIDECAR', 'writer/gputrace-sidecar'),
             'bin/gputrace': artefact('GT_CLI', 'cli/gputrace')}
    unwind = artefact('GT_LIBUNWIND', '../libunwind/libgputrace-unwind.so')
    if unwind:  # where it could be had
        files['lib/gputrace/libgputrace-unwind.so'] = unwind
    absent = [name for name, path in files.items() if not path]
    if absent:
        skip('older Debian', f'not built yet: {", ".join(absent)}')
        finish()
    root, reason = make_root()
    if not root:
        skip('older Debian', reason)
        finish()
    home = tempfile.mkdtemp(prefix='gputrace-', dir=os.path.join(root, 'opt'))
    inside = '/' + os.path.relpath(home, root)
    try:
        for name, path in files.items():
            os.makedirs(os.path.join(home, os.path.dirname(name)), exist_ok=True)
            shutil.copy2(path, os.path.join(home, name))
        subprocess.run(['gcc', '-xc', '-', '-shared', '-fPIC', '-nostdlib', '-w', '-O1', '-Wl,-soname,libcuda.so.1', '-o',
                        os.path.join(home, 'libcuda.so.1')], input=DRIVER.encode(), check=True, timeout=60)
        with open(os.path.join(home, 'program.py'), 'w', encoding='utf-8') as file:
            file.write(PROGRAM)
        preload = {'LD_PRELOAD': f'{inside}/lib/libgputrace.so'}

        try:
            libc = in_root(root, 'ldd', '--version').stdout.decode().splitlines()[0]
        except (IndexError, subprocess.TimeoutExpired):
            skip('older Debian', 'a root cannot be entered here (no mount namespace?)')
            finish()
        check(f'the root is of glibc {GLIBC}', libc.endswith(GLIBC), libc)
        true = in_root(root, '/bin/true', **preload)
        check('the library loads', (true.returncode, true.stdout, true.stderr) == (0, b'', b''), (true.returncode, true.stderr))
        ran = in_root(root, 'python3', f'{inside}/program.py', LD_LIBRARY_PATH=inside, GPUTRACE_OUTPUT=f'{inside}/out', **preload)
        check('the program runs as without us', (ran.returncode, ran.stdout, ran.stderr) == (0, b'done\n', b''),
              (ran.returncode, ran.stdout, ran.stderr))
        deadline = time.monotonic() + 15  # the sidecar closes the file after the program's end
        while True:
            report = in_root(root, f'{inside}/bin/gputrace', 'report', f'{inside}/out', '--json')
            found = launches(json.loads(report.stdout)) if report.returncode == 0 else None
            if found == LAUNCHES or time.monotonic() > deadline:
                break
            time.sleep(0.2)
        check('the analyzer runs', report.returncode == 0, (report.returncode, report.stderr))
        check('every launch is in the trace', found == LAUNCHES, f'{found} of {LAUNCHES}')
        wrapped = in_root(root, f'{inside}/bin/gputrace', 'run', '-o', f'{inside}/run', '--', 'python3', f'{inside}/program.py',
                          LD_LIBRARY_PATH=inside)
        check('gputrace run passes output and exit code through', (wrapped.returncode, wrapped.stdout) == (0, b'done\n'),
              (wrapped.returncode, wrapped.stdout, wrapped.stderr))
        # Here libc has not all of these functions: some are libpthread's, which not every program has.
        both = f'{preload["LD_PRELOAD"]} {inside}/lib/libgputrace-host.so'
        true = in_root(root, '/bin/true', LD_PRELOAD=both)
        check('the library of file calls and waits loads', (true.returncode, true.stdout, true.stderr) == (0, b'', b''), (true.returncode, true.stderr))
        counted = in_root(root, f'{inside}/bin/gputrace', 'run', '-o', f'{inside}/counted', '--collect', '+io,+waits', '--', 'python3', '-c', COUNTED,
                          LD_LIBRARY_PATH=inside)
        check('a program with threads runs under it', (counted.returncode, counted.stdout) == (0, b'done\n'), (counted.returncode, counted.stdout, counted.stderr))
        report = in_root(root, f'{inside}/bin/gputrace', 'report', f'{inside}/counted', '--json')
        sections = json.loads(report.stdout)['sections'] if report.returncode == 0 else {}
        read = [row['bytes'] for row in sections.get('io', {}).get('rows', []) if row['path'] == '/dev/zero' and row['call'] == 'read']
        check('its file calls are told', read == [1 << 20], sections.get('io'))
        waits = {row['for'] for row in sections.get('waits', {}).get('rows', [])}
        check('and its waits', {'sleep', 'semaphore'} <= waits, waits)
        if unwind:  # there is no other libunwind in this root
            stacks = in_root(root, f'{inside}/bin/gputrace', 'run', '-o', f'{inside}/stacks', '--collect', '+stacks,-python', '--', 'python3',
                             f'{inside}/program.py', LD_LIBRARY_PATH=inside)
            check('with native stacks it runs as well', (stacks.returncode, stacks.stdout) == (0, b'done\n'), (stacks.returncode, stacks.stdout, stacks.stderr))
            report = in_root(root, f'{inside}/bin/gputrace', 'report', f'{inside}/stacks', '--json')
            rows = json.loads(report.stdout)['sections']['sites']['rows'] if report.returncode == 0 else []
            found = sum(row['launches'] for row in rows if row['language'] == 'native')
            check('each launch has one', found == LAUNCHES, rows)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    finish()


main()
