# meson: timeout=240
# Beside others: two copies of us, another interposer before and after us, other allocators, sanitizers, no driver at all.
from against_truth import *

HERE = os.path.join(SOURCE, 'tests', 'e2e')

OTHER = r'''
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
typedef int (*Launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
static long seen;
int cuLaunchKernel(void* f, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned g, unsigned s, void* st, void** p, void** x) {
  static Launch next;
  if (!next) next = (Launch)dlsym(RTLD_NEXT, "cuLaunchKernel");
  ++seen;
  return next(f, a, b, c, d, e, g, s, st, p, x);
}
__attribute__((destructor)) static void tell(void) {
  const char* path = getenv("OTHER_COUNT");
  FILE* file = path && seen ? fopen(path, "w") : 0;
  if (file) { fprintf(file, "%ld", seen); fclose(file); }
}
'''

HOOKING_DLSYM = r'''
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
typedef void* (*Find)(void*, const char*);
static long looked_up;
void* dlsym(void* handle, const char* name) {
  static Find next;
  if (!next) next = (Find)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  if (!next) next = (Find)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
  ++looked_up;
  return next(handle, name);
}
'''


def preloaded(*libraries, command=None, env=None):
    command = command or [program('drv_linked')]
    ours = ' '.join(path if path else places.library for path in libraries)
    run = traced(command, {**CALLS, 'LD_PRELOAD': ours, **(env or {})})
    others = ' '.join(path for path in libraries if path and 'gputrace' not in os.path.basename(path))
    same_output(untraced(command, {'LD_PRELOAD': others or None, **(env or {})}), run)
    return run


def check_whole(run, launches=21):
    check_call_by_call(run)
    check_equal(check_launches_against_truth(run), launches, 'launches')
    check_equal(len(run.truth_of('kernel')), launches, 'the driver ran each once')
    check_equal(len(run.traces), 1, 'one trace')
    check_conservation(run)


def test_preloaded_twice():
    check_whole(preloaded('', ''))


def test_a_copy_under_another_name():
    for order in (('', scratch('libgputrace-copy.so')), (scratch('libgputrace-copy.so'), '')):
        shutil.copy(places.library, scratch('libgputrace-copy.so'))
        sidecar = {'GPUTRACE_SIDECAR': places.sidecar}
        check_whole(preloaded(*order, env=sidecar))
        check_whole_by_dlopen(order, sidecar)
        forget_run()


def check_whole_by_dlopen(order, env):
    forget_run()
    check_whole(preloaded(*order, command=[program('drv_dlopen')], env=env))
    forget_run()
    check_whole(preloaded(*order, command=[program('drv_gpa')], env=env))


def test_another_interposer_before_and_after():
    other = compiled('other.c', OTHER, '-shared', '-fPIC', '-ldl')
    for order in ((other, ''), ('', other)):
        count = scratch('count')
        run = preloaded(*order, env={'OTHER_COUNT': count})
        check_whole(run)
        with open(count, encoding='ascii') as file:
            check_equal(file.read(), '21', f'the other one saw each call once {order}')
        os.unlink(count)
        forget_run()


def test_another_dlsym_before_and_after():
    hook = compiled('hook.c', HOOKING_DLSYM, '-shared', '-fPIC', '-ldl')
    for words in (['drv_dlopen'], ['drv_gpa'], ['drv_linked']):
        run = preloaded('', hook, command=[program(words[0])])
        check_whole(run)
        forget_run()
        # Before us it goes to libc's dlsym by version: then the look-up passes us by, and the program must run all the same.
        command = [program(words[0])]
        same_output(untraced(command, {'LD_PRELOAD': hook}), traced(command, {'LD_PRELOAD': f'{hook} {places.library}'}))
        forget_run()


def test_other_allocators():
    found = [path for pattern in ('libtcmalloc_minimal.so.4', 'libjemalloc.so.2') for path in glob.glob('/usr/lib/*/' + pattern)]
    if not found:
        skip('neither libtcmalloc-minimal4 nor libjemalloc2 is installed')
    for allocator in found:
        for order in ((allocator, ''), ('', allocator)):
            check_whole(preloaded(*order))
            forget_run()
            run = preloaded(*order, command=[program('drv_threads'), 'threads=200', 'alive=20'])
            check_equal(metrics(run)['launches'], 600, f'launches in threads with {os.path.basename(allocator)}')
            forget_run()


def test_bind_now():
    check_whole(preloaded('', env={'LD_BIND_NOW': '1'}))


def test_address_sanitizer():
    text = r'''
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
static const char ptx[] = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry third() { ret; }\n";
int main(void) {
  CUdevice device; CUcontext context; CUmodule module; CUfunction function;
  if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) || cuCtxSetCurrent(context) ||
      cuModuleLoadData(&module, ptx) || cuModuleGetFunction(&function, module, "third")) return 70;
  for (int i = 0; i < 9; ++i) if (cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, 0, 0, 0)) return 71;
  char* block = malloc(40); block[39] = 1; printf("%d\n", block[39]); free(block);
  return cuModuleUnload(module) || cuDevicePrimaryCtxRelease(device) ? 72 : 5;
}
'''
    try:
        binary = compiled('asan.c', text, '-fsanitize=address', '-lcuda')
    except Failed as error:
        skip(f'no address sanitizer: {str(error)[:100]}')
    run = traced([binary], {**CALLS, 'ASAN_OPTIONS': 'verify_asan_link_order=0:detect_leaks=0'})
    check_equal((run.returncode, run.stdout, run.stderr), (5, b'1\n', b''), 'runs as without us')
    check_equal(check_launches_against_truth(run), 9, 'launches')


PROBE = r'''
import ctypes, os
for name in ('cuInit', 'cuLaunchKernel', 'cudaMalloc', 'cuGetProcAddress_v2', 'cudaLaunchKernel'):
    try:
        print(name, bool(getattr(ctypes.CDLL(None), name)))
    except AttributeError:
        print(name, 'absent')
try:
    print('driver', bool(ctypes.CDLL('libcuda.so.1')))
except OSError as error:
    print('no driver')
'''


def test_no_driver_at_all():
    # LD_LIBRARY_PATH leads nowhere: what a CPU machine is like. Probes find nothing, and nothing is written.
    for command in ([sys.executable, '-c', PROBE], [program('drv_dlopen')]):
        env = {'LD_LIBRARY_PATH': None}
        plain = untraced(command, env)
        if b'driver True' in plain.stdout or b'launches' in plain.stdout:
            skip('this machine has a CUDA driver')
        run = traced(command, env)
        same_output(plain, run)
        check(not os.path.exists(run.output), 'no output directory')


def test_a_direct_call_without_a_driver():
    text = r'''
#include <dlfcn.h>
#include <stdio.h>
extern int cuInit(unsigned) __attribute__((weak));
extern int cudaMalloc(void**, unsigned long) __attribute__((weak));
int main(void) {
  void* p = 0;
  printf("%d\n", cuInit ? cuInit(0) : -1);
  printf("%d\n", cudaMalloc ? cudaMalloc(&p, 16) : -1);
  return 0;
}
'''
    run = traced([compiled('weak.c', text)], {'LD_LIBRARY_PATH': None})
    if run.stdout.split()[0] == b'0':
        skip('this machine has a CUDA driver')
    check_equal((run.returncode, run.stderr), (0, b''), 'no crash')
    check(run.stdout.split()[0] in (b'34', b'-1') and run.stdout.split()[1] in (b'34', b'-1'), 'CUDA_ERROR_STUB_LIBRARY, cudaErrorStubLibrary', run.stdout)


def test_many_processes_without_cuda():
    began = time.monotonic()
    run = traced(['bash', '-c', 'for i in $(seq 200); do /bin/true; done; echo done'])
    check_equal((run.returncode, run.stdout, run.stderr), (0, b'done\n', b''), 'output')
    check(not os.path.exists(run.output) and time.monotonic() - began < 20, 'nothing is made', time.monotonic() - began)


def test_restricted_environments():
    command = [program('drv_linked')]
    plain = untraced(command)
    for limits in ('ulimit -n 16', 'ulimit -v 4000000', 'ulimit -s 256', 'ulimit -f 8', 'ulimit -u 4096', 'ulimit -l 0', 'ulimit -c 0'):
        run = traced(['bash', '-c', f'{limits}; exec {command[0]}'], {'SIMGPU_TRUTH': None})
        check_equal((run.returncode, run.stdout, run.stderr), (plain.returncode, plain.stdout, plain.stderr), f'under {limits}')
        if run.traces:
            check(gputrace('report', run.output, '--json', rc=None)[0] in (0, 3), f'the trace opens ({limits})')
        forget_run()


main()
