# Libraries that the program unloads and loads again, elsewhere: what is remembered of them must not lead to where they were.
from harness import *

PLUGIN = '#include <stddef.h>\nint %(function)s(%(types)s);\nint plugin_call(void) { return %(function)s(%(arguments)s); }\n'
# Whatever room the library leaves is taken, so that it comes back at another address; the plugin at its old one.
HOST = r'''
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
static unsigned long low, high;
static int look(struct dl_phdr_info* info, size_t size, void* name) {
  if (!strstr(info->dlpi_name, name)) return 0;
  low = ~0ul, high = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
    unsigned long begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr, end = begin + info->dlpi_phdr[i].p_memsz;
    if (begin < low) low = begin;
    if (end > high) high = end;
  }
  return 1;
}
int main(int argc, char** argv) {
  for (int round = 0; round < 3; ++round) {
    void* plugin = dlopen(argv[1], RTLD_NOW);
    if (!plugin) return puts(dlerror()), 2;
    printf("%d\n", ((int (*)(void))dlsym(plugin, "plugin_call"))());
    dl_iterate_phdr(look, argv[2]);
    unsigned long begin = low & ~4095ul, size = ((high + 4095) & ~4095ul) - begin;
    dlclose(plugin);
    if (!dl_iterate_phdr(look, argv[2]))
      mmap((void*)begin, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  }
  return 0;
}
'''


def check_comes_and_goes(folder, library, function, types, arguments, traced_env):
    if not os.path.exists(os.path.join(folder, library)):
        skip(f'not built: {library}')
    plugin = compiled('plugin.c', PLUGIN % {'function': function, 'types': types, 'arguments': arguments}, '-shared', '-fPIC', '-L', folder,
                      '-l:' + library, '-Wl,--allow-shlib-undefined')
    host = compiled('host.c', HOST, '-ldl')
    env = {'LD_LIBRARY_PATH': folder + ':' + places.simgpu}
    plain = untraced([host, plugin, library], env)
    check_equal(plain.returncode, 0, plain.stdout)
    for variables in (traced_env, {'GPUTRACE': '0'}):
        run = traced([host, plugin, library], {**env, **variables})
        same_output(plain, run)
        forget_run()


def test_runtime_that_comes_and_goes_with_a_plugin():
    check_comes_and_goes(places.simgpu, 'libcudart.so.13', 'cudaFree', 'void*', 'NULL', {})


def test_cublas_that_comes_and_goes_with_a_plugin():
    check_comes_and_goes(places.simgpu, 'libcublas.so.13', 'cublasCreate_v2', 'void**', '(void*[1]){0}', {'GPUTRACE_COLLECT': 'api,libs'})


# A driver that gives the handles of a module to the next one before its unloading has returned.
REUSING = r"""
#include <stdatomic.h>
#include <string.h>
static atomic_int loads, going, given;
int cuInit(unsigned flags) { return 0; }
int cuCtxGetCurrent(void** context) { *context = (void*)0xc0; return 0; }
int cuModuleLoadData(void** module, const void* image) { while (++loads > 1 && !going) { } *module = (void*)0x1000; return 0; }
int cuModuleGetFunction(void** function, void* module, const char* name) { *function = (void*)0x2000; if (!strcmp(name, "second")) given = 1; return 0; }
int cuModuleUnload(void* module) { going = 1; while (!given) { } return 0; }
int cuLaunchKernel(void* f, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned g, unsigned h, void* s, void** p, void** x) { return 0; }
"""
REUSED = r"""
#include <pthread.h>
#include <stdio.h>
extern int cuInit(unsigned), cuModuleLoadData(void**, const void*), cuModuleGetFunction(void**, void*, const char*), cuModuleUnload(void*);
extern int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
static const char ptx[] = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry third() { ret; }\n";
static void* module, *function;
static int launch(int times) { int bad = 0; while (times--) bad |= cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, 0, 0, 0); return bad; }
static void* unload(void* old) { return (void*)(long)cuModuleUnload(old); }
int main(void) {
  pthread_t thread;
  if (cuInit(0) || cuModuleLoadData(&module, ptx) || cuModuleGetFunction(&function, module, "first") || launch(3)) return 70;
  pthread_create(&thread, 0, unload, module);
  void* next;
  if (cuModuleLoadData(&next, ptx) || cuModuleGetFunction(&function, next, "second") || launch(2)) return 71;
  pthread_join(thread, 0);
  return launch(2) ? 72 : 3;
}
"""


def test_handles_that_are_given_again_while_their_module_goes():
    os.makedirs(scratch('driver'))
    os.rename(compiled('reusing.c', REUSING, '-shared', '-fPIC', '-Wl,-soname,libcuda.so.1'), scratch('driver', 'libcuda.so.1'))
    binary = compiled('reused.c', REUSED, '-pthread', scratch('driver', 'libcuda.so.1'))
    env = {'LD_LIBRARY_PATH': scratch('driver'), 'GPUTRACE_COLLECT': 'api', 'CUDA_HOME': None}
    run = traced([binary], env)
    same_output(untraced([binary], env), run)
    check_equal(run.returncode, 3, 'exit code')
    launches = collections.Counter()
    for row in rows(run, 'kernels'):
        launches[row['name']] += row['launches']
    check_equal(dict(launches), {'first': 3, 'second': 4}, 'launches by kernel')


main()
