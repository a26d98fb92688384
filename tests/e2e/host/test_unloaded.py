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


main()
