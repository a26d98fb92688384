# meson: timeout=120
# The genuine CUDA runtime, shared and static, up to the point where it stops without a GPU: it behaves the same with and without us,
# and every name that we record is handed to it as our wrapper.
#
# The driver of this test answers cuGetProcAddress_v2 and nothing else: each name gets a function that returns "not supported". So the
# runtime asks for all its entries, makes its first call, and stops. Nothing of the vendor's checks is answered.
from against_truth import *

DRIVER = r'''
__asm__(".text\n.balign 16\n.globl markers\nmarkers:\n.rept 8192\n.balign 16\nmovl $801, %eax\nret\n.endr\n.globl markers_end\nmarkers_end:\n");
extern char markers[];
#include <string.h>
static char names[8192][96];
static int entry(const char* name, unsigned long flags, int version) {
  char key[96];
  __builtin_snprintf(key, sizeof key, "%s %lu %d", name, flags & 2, version);
  for (int i = 0; i < 8192; ++i) {
    if (!names[i][0]) strcpy(names[i], key);
    if (strcmp(names[i], key) == 0) return i;
  }
  return 8191;
}
int cuGetProcAddress_v2(const char* name, void** out, int version, unsigned long flags, int* status) {
  *out = markers + 16 * entry(name, flags, version);
  if (status) *status = 0;
  return 0;
}
'''

PROGRAM = r'''
#define _GNU_SOURCE
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef void* (*Find)(void*, const char*);
typedef int (*Get)(const char*, void**, int, unsigned long, int*);
static Get get;
static FILE* list;
static const char* home(void* address) {
  Dl_info info;
  return dladdr(address, &info) && info.dli_fname ? info.dli_fname : "?";
}
static int spy(const char* name, void** out, int version, unsigned long flags, int* status) {
  const int result = get(name, out, version, flags, status);
  if (list) fprintf(list, "%s %d %lu %s\n", name, version, flags, result == 0 && out && *out ? home(*out) : "-");
  return result;
}
__attribute__((visibility("default"))) void* dlsym(void* handle, const char* name) {
  static Find next;
  if (!next) {
    void* ours = getenv("OURS") ? dlopen(getenv("OURS"), RTLD_NOW | RTLD_NOLOAD) : 0;
    if (ours) next = (Find)dlvsym(ours, "dlsym", "GLIBC_2.2.5");
    if (!next) next = (Find)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    if (!next) next = (Find)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  }
  void* found = next(handle, name);
  if (found && strcmp(name, "cuGetProcAddress_v2") == 0) {
    if (list) fprintf(list, "dlsym 0 0 %s\n", home(found));
    get = (Get)found;
    return (void*)spy;
  }
  return found;
}
int main(int argc, char** argv) {
  int count = -1;
  void* memory = 0;
  list = argc > 1 ? fopen(argv[1], "w") : 0;
  printf("%d\n", (int)cudaGetDeviceCount(&count));
  printf("%d\n", (int)cudaMalloc(&memory, 64));
  printf("%s\n", cudaGetErrorName(cudaGetLastError()));
  if (list) fclose(list);
  return 7;
}
'''
PFN = re.compile(r'PFN_(cu\w+?)_v(\d+)(_ptsz|_ptds)?\b')


def recorded_rows():
    """{name: {since: has a per-thread variant}} of api.def, by the PFN types that its rows name."""
    found = collections.defaultdict(set)
    for line in re.findall(r'^GT_API\w*\([^(]*', _text_of('interpose', 'api.def'), re.M):
        for name, since, variant in PFN.findall(line):
            found[name].add((int(since), bool(variant)))
    return found


def _text_of(*path):
    with open(os.path.join(SOURCE, *path), encoding='utf-8') as file:
        return file.read()


def toolkit(*names):
    cuda = os.environ.get('GT_CUDA', '/usr/local/cuda')
    for name in names:
        for sub in ('lib64', 'lib', 'targets/x86_64-linux/lib'):
            path = os.path.join(cuda, sub, name)
            if os.path.exists(path):
                return path
    return skip(f'the toolkit has no {names[0]}')


def programs_of_the_vendor():
    """(name, program, LD_LIBRARY_PATH of its runtime)."""
    static, shared = toolkit('libcudart_static.a'), toolkit('libcudart.so', 'libcudart.so.13')
    folder = os.path.dirname(shared)
    yield 'static', compiled('static.c', PROGRAM, static, '-rdynamic', '-ldl', '-lpthread', '-lrt'), ''
    yield 'shared', compiled('shared.c', PROGRAM, '-L', folder, '-lcudart', '-rdynamic', '-ldl'), folder


def test_our_wrappers_are_handed_out_for_all_recorded_names():
    os.mkdir(scratch('driver'))
    os.rename(compiled('stand_in.c', DRIVER, '-shared', '-fPIC', '-O1'), scratch('driver', 'libcuda.so.1'))
    rows_ = recorded_rows()
    check(len(rows_) > 100, 'api.def was read', len(rows_))
    for name, binary, folder in programs_of_the_vendor():
        env = {'LD_LIBRARY_PATH': scratch('driver') + ':' + folder}
        plain = untraced([binary, scratch('plain.txt')], env)
        run = traced([binary, scratch('ours.txt')], {**env, 'OURS': places.library})
        same_output(plain, run)
        check_equal(run.returncode, 7, f'{name}: the program came to its end')
        lists = []
        for file in ('plain.txt', 'ours.txt'):
            with open(scratch(file), encoding='ascii') as lines:
                lists.append([line.split() for line in lines])
        check_equal([line[:3] for line in lists[1]], [line[:3] for line in lists[0]], f'{name}: the same requests with and without us')
        check(len(lists[1]) > 200, f'{name}: the runtime asked for its entries', len(lists[1]))
        ours = 0
        for entry, version, flags, home in lists[1]:
            if entry == 'dlsym':
                check_equal(os.path.basename(home), 'libgputrace.so', f'{name}: cuGetProcAddress_v2 by dlsym')
                continue
            fits = [since for since, variant in rows_.get(entry, ()) if since <= int(version)]
            wanted = 'libgputrace.so' if fits or entry == 'cuGetProcAddress' else 'libcuda.so.1'
            check_equal(os.path.basename(home), wanted, f'{name}: {entry} version {version} flags {flags}')
            ours += wanted == 'libgputrace.so'
        check(ours > 100, f'{name}: how many are recorded', ours)


def test_the_vendor_runtime_stops_at_the_same_place_on_the_simulated_driver():
    for name in ('launches_static', 'memory_static', 'graphs_static', 'errors_static'):
        command = [program(name)]
        same_output(untraced(command), traced(command, CALLS))
        forget_run()
    folder = os.path.dirname(toolkit('libcudart.so.13'))
    command = [program('launches_shared')]
    env = {'LD_LIBRARY_PATH': folder + ':' + places.simgpu}  # the vendor's shared runtime before ours
    same_output(untraced(command, env), traced(command, {**CALLS, **env}))


def test_the_vendor_runtime_without_a_driver():
    for name, binary, folder in programs_of_the_vendor():
        env = {'LD_LIBRARY_PATH': folder or None}
        plain, run = untraced([binary], env), traced([binary], env)
        same_output(plain, run)
        check(not os.path.exists(run.output), 'no trace')


main()
