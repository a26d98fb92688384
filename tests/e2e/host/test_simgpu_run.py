# meson: timeout=120
# `run --simgpu`: programs that bring NVIDIA's libraries by RPATH or absolute path get the simulated ones, of the CUDA that they were built for.
from harness import *

# What a wheel brings: a library that must not be used here.
VENDOR = r'''
#include <stdlib.h>
#include <unistd.h>
int cudaMalloc(void** pointer, size_t bytes) { _exit(77); }
int cudaMemset(void* pointer, int value, size_t bytes) { _exit(77); }
int cudaFree(void* pointer) { _exit(77); }
'''
PROGRAM = r'''
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int cudaMalloc(void** pointer, size_t bytes);
int cudaMemset(void* pointer, int value, size_t bytes);
int cudaFree(void* pointer);
int main(int argc, char** argv) {
  if (argc > 1) {  // children of every kind
    int status = 0;
    if (fork() == 0) execl("/bin/sh", "sh", "-c", "exec env NOTHING=1 \"$0\"", argv[0], (char*)0);
    wait(&status);
    if (status) return 1;
    if (fork() != 0) { wait(&status); return status != 0; }
  }
  void* data = 0;
  int error = cudaMalloc(&data, 4096);
  if (!error) error = cudaMemset(data, 0, 4096);
  if (!error) error = cudaFree(data);
  printf("%d\n", error);
  return error;
}
'''


def by_rpath(major):
    """A program whose DT_RPATH, which beats LD_LIBRARY_PATH, leads to a wheel's libcudart."""
    soname, folder = f'libcudart.so.{major}', scratch(f'wheel{major}')
    os.makedirs(folder, exist_ok=True)
    with open(scratch('node.map'), 'w', encoding='utf-8') as file:
        file.write(soname + ' { global: *; };\n')
    library = compiled('vendor.c', VENDOR, '-shared', '-fPIC', f'-Wl,-soname,{soname}', '-Wl,--version-script=' + scratch('node.map'))
    os.rename(library, os.path.join(folder, soname))
    return compiled(f'wants{major}.c', PROGRAM, os.path.join(folder, soname), f'-Wl,-rpath,{folder}', '-Wl,--disable-new-dtags')


def env_of(*options, **env):
    rc, out, err = finish(start([places.gputrace, 'env', *options], environment(**{'LD_LIBRARY_PATH': None, 'VIRTUAL_ENV': None, **env})))
    check_equal(rc, 0, err)
    lines = out.decode().splitlines()
    return next(line for line in lines if 'LD_PRELOAD' in line), next(line for line in lines if 'simulated CUDA' in line)


def touch(*path):
    os.makedirs(os.path.dirname(scratch(*path)), exist_ok=True)
    with open(scratch(*path), 'w', encoding='utf-8'):
        pass


def test_a_program_with_rpath_gets_the_simulated_runtime():
    command = by_rpath(13)
    rc, _, _ = finish(start([command], environment()))
    check_equal(rc, 77, 'without preloading the RPATH wins')
    run = traced([command], mode='run')
    check_equal((run.returncode, run.stdout), (0, b'0\n'), run.stderr)
    check_equal([line['op'] for line in run.truth], ['alloc', 'memset', 'free'], 'the truth')


def test_children_keep_it():
    command = by_rpath(13)
    run = traced(['/bin/sh', '-c', f'{command} children; exit $?'], mode='run')
    check_equal((run.returncode, run.stdout), (0, b'0\n0\n'), run.stderr)
    check_equal(len(run.truth_of('memset')), 2, 'both did their work')
    check_equal(len(run.traces), 2, 'both were traced')


def test_the_major_is_what_the_program_is_linked_against():
    for major in (12, 13):
        command = by_rpath(major)
        for line in ([command], ['sh', '-c', f'exec {command}'], ['/usr/bin/env', 'A=1', command]):
            out = finish(start([places.gputrace, 'doctor', '--simgpu', '--', *line], environment(LD_LIBRARY_PATH=None)))[1].decode()
            check(f'CUDA {major}' in out and f'linked against libcudart.so.{major}' in out, f'{line}: CUDA {major}', out)
    out = finish(start([places.gputrace, 'doctor', '--simgpu=13', '--', by_rpath(12)], environment(LD_LIBRARY_PATH=None)))[1].decode()
    check('simulated CUDA 13 (--simgpu=13)' in out, 'the option wins', out)


def test_the_major_of_a_python_is_that_of_its_wheels():
    below = 'venv/lib/python3.11/site-packages/'
    touch(below, 'nvidia/cuda_runtime/lib/libcudart.so.12')
    check(' CUDA 12: the CUDA wheels of ' in env_of('--simgpu', VIRTUAL_ENV=scratch('venv'))[1])
    touch(below, 'nvidia/cu13/lib/libcudart.so.13')
    check(' CUDA 13: wheels of CUDA 12 and 13 ' in env_of('--simgpu', VIRTUAL_ENV=scratch('venv'))[1])
    os.makedirs(scratch(below, 'torch'))
    with open(scratch(below, 'torch/version.py'), 'w', encoding='utf-8') as file:
        file.write("__version__ = '2.3.1+cu121'\ndebug = False\ncuda: Optional[str] = '12.1'\n")
    check(' CUDA 12: PyTorch in ' in env_of('--simgpu', VIRTUAL_ENV=scratch('venv'))[1])


def test_env_preloads_the_same():
    preload, _ = env_of('--simgpu=13', LD_PRELOAD='/its/own.so')
    names = [os.path.basename(path) for path in preload.split('=', 1)[1].split(':')]
    check_equal(names[:4], ['libgputrace.so', 'libcuda.so.1', 'libcudart.so.13', 'libcupti.so.13'], 'in this order')
    check_equal(names[-1], 'own.so', 'what was there comes last')
    check(not [name for name in names if name.endswith('.so.12') and name not in ('libcusparse.so.12', 'libcufft.so.12', 'libcusolver.so.12')], 'nothing of the other major', names)
    again, _ = env_of('--simgpu=13', LD_PRELOAD=preload.split('=', 1)[1])
    check_equal(again, preload, 'twice is once')


main()
