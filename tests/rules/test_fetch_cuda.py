"""tools/fetch_cuda puts several lists of packages together, on packages made here: files that two lists add to one folder are all
there, a second call does nothing, a changed list makes the folder anew, and a wrong hash fails."""
import base64
import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check import SOURCE, check, finish, skip  # noqa: E402


def wheel(folder, name, files):
    """A package of these files; returns its line in a list."""
    about = f'{name}-1.0.dist-info'
    files = {**files, f'{about}/METADATA': f'Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n',
             f'{about}/WHEEL': 'Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n'}
    rows = [f'{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()},{len(text)}'
            for path, text in files.items()]
    path = os.path.join(folder, f'{name}-1.0-py3-none-any.whl')
    with zipfile.ZipFile(path, 'w') as archive:
        for member, text in files.items():
            archive.writestr(member, text)
        archive.writestr(f'{about}/RECORD', '\n'.join(rows + [f'{about}/RECORD,,', '']))
    with open(path, 'rb') as file:
        return f'{name}==1.0 --hash=sha256:{hashlib.sha256(file.read()).hexdigest()}\n'


def write(path, text):
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)


def main():
    if subprocess.run([sys.executable, '-m', 'pip', '--version'], capture_output=True, check=False).returncode:
        skip('fetch_cuda', 'no pip: a toolkit is there')
        finish()
    with tempfile.TemporaryDirectory() as folder:
        first = wheel(folder, 'first', {'nvidia/cu99/include/cuda.h': 'CUresult CUDAAPI cuInit(unsigned flags);\n', 'nvidia/cu99/lib/libone.so.1': ''})
        second = wheel(folder, 'second', {'nvidia/cu99/include/two.h': '', 'nvidia/beside/include/three.h': ''})
        lists = [os.path.join(folder, name) for name in ('first.txt', 'second.txt')]
        write(lists[0], first), write(lists[1], second)
        root, at = os.path.join(folder, 'cuda'), os.path.join(folder, 'cuda/nvidia/cu99')

        def fetch():
            return subprocess.run([os.path.join(SOURCE, 'tools', 'fetch_cuda'), root, *lists], capture_output=True, text=True, check=False, timeout=120,
                                  env={**os.environ, 'GPUTRACE_TRIES': '1', 'PIP_NO_INDEX': '1', 'PIP_FIND_LINKS': folder})

        done = fetch()
        check('it prints the root', (done.returncode, done.stdout.strip()) == (0, os.path.realpath(at)), (done.stdout, done.stderr))
        for name in ('include/cuda.h', 'include/two.h', 'include/three.h', 'lib64/libone.so', 'lib/stubs/libcuda.so'):
            check(f'{name} is there', os.path.exists(os.path.join(at, name)), os.listdir(root))
        write(os.path.join(at, 'mark'), '')
        check('a second call does nothing', fetch().returncode == 0 and os.path.exists(os.path.join(at, 'mark')))
        write(lists[1], '# changed\n' + second)
        check('a changed list makes it anew', fetch().returncode == 0 and not os.path.exists(os.path.join(at, 'mark'))
              and os.path.exists(os.path.join(at, 'include/three.h')))
        write(lists[1], second.replace('sha256:', 'sha256:0')[:-2] + '\n')
        done = fetch()
        check('a wrong hash fails, and its reason is told', done.returncode != 0 and 'hash' in done.stderr.lower(), done.stderr)
        check('nothing half done is left beside it', not [name for name in os.listdir(folder) if name in ('cuda.new', 'cuda.tmp')], os.listdir(folder))
        count = os.path.join(folder, 'count')
        done = subprocess.run([os.path.join(SOURCE, 'tools', 'patiently'), 'sh', '-c', f'echo >>{count}; exit 7'], capture_output=True, text=True, check=False,
                              timeout=60, env={**os.environ, 'GPUTRACE_TRIES': '2'})
        check('what fails is tried again, and its exit code kept', (done.returncode, os.path.getsize(count)) == (7, 2), (done.returncode, done.stdout))
        check('what works is not', subprocess.run([os.path.join(SOURCE, 'tools', 'patiently'), 'sh', '-c', f'echo >>{count}'], check=False).returncode == 0
              and os.path.getsize(count) == 3)
    finish()


main()
