"""The scan of machine code: one core, code in memory, and whole libraries of the toolkit where they are."""
import json
import os

from bench import Table, built, run

CORPUS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'tests', 'fuzz', 'corpus', 'sass', 'sm72.cubin')
LIBRARIES = ('libcublas.so', 'libcublasLt.so', 'libcudnn_adv.so', 'libcudnn_engines_precompiled.so', 'libcusparse.so', 'libcufft.so', 'libnccl.so')


def main():
    table = Table('sass: what the machine code of kernels says')
    code = json.loads(run([built('scan_code'), CORPUS]))
    rate = code['bytes'] / code['best_s']
    table.add('code in memory, one core', f'{rate / 1e9:.1f} GB/s', '>= 1 GB/s', rate >= 1e9)
    folder = os.path.join(os.environ.get('CUDA_HOME', '/usr/local/cuda'), 'lib64')
    for name in LIBRARIES:
        path = os.path.join(folder, name)
        if not os.path.exists(path):
            continue
        library = json.loads(run([built('scan_library'), path], timeout=1200))
        table.add(f'{name}: images unreadable', f"{library['failures']} of {library['images']}", '0', library['failures'] == 0)
        table.add(f'{name}: cubins with their tables, one core', f"{library['code_bytes'] / 1e9 / max(library['scan_s'], 1e-9):.2f} GB/s")
    table.show()


main()
