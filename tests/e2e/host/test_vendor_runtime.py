# meson: timeout=120
# The genuine CUDA runtime, shared and static, up to the point where it stops without a GPU: it behaves the same with and without us,
# and every name that we record is handed to it as our wrapper.
#
# Two drivers: one of this test's own that answers cuGetProcAddress_v2 and nothing else (each name gets a function that returns "not
# supported"), and the simulated one. On either the runtime asks for what it wants, makes its first calls, and stops by itself. Nothing of
# the vendor's checks is answered.
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
#include <link.h>
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
static int exists(const char* name, const char* other) { return strcmp(name, other) == 0; }
// By the object's own table: dlsym is what is looked for, and it has no version.
static Find exported_by(const char* file, const char* name) {
  struct link_map* map = dlopen(file, RTLD_NOW | RTLD_NOLOAD);
  const ElfW(Sym)* symbols = 0;
  const char* strings = 0;
  if (!map) return 0;
  for (const ElfW(Dyn)* entry = map->l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_SYMTAB) symbols = (const void*)entry->d_un.d_ptr;
    if (entry->d_tag == DT_STRTAB) strings = (const char*)entry->d_un.d_ptr;
  }
  for (const ElfW(Sym)* symbol = symbols; symbols && strings && (const char*)symbol < strings; ++symbol) {
    if (symbol->st_value && exists(strings + symbol->st_name, name)) return (Find)(map->l_addr + symbol->st_value);
  }
  return 0;
}
static int spy(const char* name, void** out, int version, unsigned long flags, int* status) {
  const int result = get(name, out, version, flags, status);
  if (list) fprintf(list, "%s %d %lu %s\n", name, version, flags, result == 0 && out && *out ? home(*out) : "-");
  return result;
}
__attribute__((visibility("default"))) void* dlsym(void* handle, const char* name) {
  static Find next;
  if (!next) {
    if (getenv("OURS")) next = exported_by(getenv("OURS"), "dlsym");
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
ASKER = r'''
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
typedef int (*Get)(const char*, void**, int, unsigned long, int*);
int main(void) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  Get get = driver ? (Get)dlsym(driver, "cuGetProcAddress_v2") : 0;
  char name[128]; int version; unsigned long flags;
  while (get && scanf("%127s %d %lu", name, &version, &flags) == 3) {
    void* found = 0; int status = -1; Dl_info info;
    const int result = get(name, &found, version, flags, &status);
    printf("%s %d %lu %d %d %s\n", name, version, flags, result, status, found && dladdr(found, &info) ? info.dli_fname : "-");
  }
  return get ? 0 : 1;
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


def _text_at(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def _text_of(*path):
    return _text_at(os.path.join(SOURCE, *path))


def toolkit_header(name):
    path = os.path.join(os.environ.get('GT_CUDA', '/usr/local/cuda'), 'include', name)
    return path if os.path.exists(path) else skip(f'no {name}')


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


def requests(path):
    """What the runtime asked for: (name, version, flags, file that the answer is in)."""
    with open(path, encoding='ascii') as lines:
        return [(line[:-1].rsplit(' ', 3)) for line in lines]


def check_handed_out(driver, least):
    """How many programs asked this driver for anything at all: a runtime may stop before it does."""
    rows_, asked = recorded_rows(), 0
    check(len(rows_) > 100, 'api.def was read', len(rows_))
    for name, binary, folder in programs_of_the_vendor():
        env = {'LD_LIBRARY_PATH': driver + ':' + folder}
        plain = untraced([binary, scratch('plain.txt')], env)
        run = traced([binary, scratch('ours.txt')], {**env, 'OURS': places.library})
        same_output(plain, run)
        check_equal(run.returncode, 7, f'{name}: the program came to its end')
        without, with_us = requests(scratch('plain.txt')), requests(scratch('ours.txt'))
        check_equal([line[:3] for line in with_us], [line[:3] for line in without], f'{name}: the same requests with and without us')
        ours = 0
        for entry, version, flags, home in with_us:
            fits = [since for since, variant in rows_.get(entry, ()) if since <= int(version)]
            wanted = 'libgputrace.so' if fits or entry in ('dlsym', 'cuGetProcAddress') else 'libcuda.so.1'
            if os.path.basename(home) not in ('-', wanted):
                fail(f'{name}: {entry}, version {version}, flags {flags}, is in {home}, wanted {wanted}')
            ours += wanted == 'libgputrace.so'
        if without:
            check(ours >= least, f'{name}: how many of ours were asked for', ours, len(with_us))
            asked += 1
        forget_run()
    return asked


def test_our_wrappers_are_handed_out_by_a_driver_that_only_hands_out():
    os.mkdir(scratch('driver'))
    os.rename(compiled('stand_in.c', DRIVER, '-shared', '-fPIC', '-O1'), scratch('driver', 'libcuda.so.1'))
    if check_handed_out(scratch('driver'), 3) == 0:
        skip('this runtime asks nothing of a driver that only hands out: the simulated one is asked below')


def test_our_wrappers_are_handed_out_by_the_simulated_driver():
    check_equal(check_handed_out(places.simgpu, 3), 2, 'the static and the shared runtime asked')


def test_every_recorded_name_is_handed_out():
    # What the runtimes go on to ask for where there is a GPU: every name of the toolkit's table, by version and flags, as they ask.
    table = _text_at(toolkit_header('cudaTypedefs.h'))
    names = {(name, int(since), 2 if variant else 0) for name, since, variant in PFN.findall(table)}
    newest = {(name, 13000, flags) for name, _, _ in names for flags in (0, 1, 2)}
    rows_, asker = recorded_rows(), compiled('asker.c', ASKER, '-ldl')
    os.mkdir(scratch('driver'))
    os.rename(compiled('stand_in.c', DRIVER, '-shared', '-fPIC', '-O1'), scratch('driver', 'libcuda.so.1'))
    for driver, wanted_names in ((places.simgpu, names | newest), (scratch('driver'), names)):
        asked = ''.join(f'{name} {version} {flags}\n' for name, version, flags in sorted(wanted_names)).encode()
        env = {'LD_LIBRARY_PATH': driver}
        plain, run = untraced([asker], env, stdin=asked), traced([asker], env, stdin=asked)
        check_equal((run.returncode, run.stderr), (0, b''), 'exit code')
        ours = 0
        for before, after in zip(plain.stdout.decode().splitlines(), run.stdout.decode().splitlines()):
            *asked_for, status, home = after.split(' ')
            check_equal(asked_for + [status], before.split(' ')[:-1], 'name, version, flags, result and status are the same with and without us')
            name, version = asked_for[0], int(asked_for[1])
            recorded = any(since <= version for since, _ in rows_.get(name, ())) or name == 'cuGetProcAddress'
            wanted = '-' if before.endswith(' -') else 'libgputrace.so' if recorded else 'libcuda.so.1'
            check_equal(os.path.basename(home), wanted, f'whose function is {after}')
            ours += wanted == 'libgputrace.so'
        check(ours > 300, 'how many are recorded', ours)


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
        check(name == 'shared' or not os.path.exists(run.output), 'static: nothing is seen')
        if os.path.exists(run.output):
            check_equal({(row['call'], row['errors']) for row in rows(run, 'api')}, {('cudaMalloc', 1)}, 'the one call that failed')
        forget_run()


main()
