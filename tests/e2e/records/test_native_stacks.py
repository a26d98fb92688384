# meson: timeout=240
# Native stacks (libunwind): each launch, wait and copy of programs without Python belongs to the line from which it was made, functions and
# lines as the compiler has them; the program notices nothing.
from small_programs import *

STACKS = {'GPUTRACE_COLLECT': '+stacks'}
SYSTEMS = any(os.path.exists(f'/{at}/libunwind.so.8') for at in ('usr/lib/x86_64-linux-gnu', 'lib/x86_64-linux-gnu', 'usr/lib64'))

# Each function launches its own number of times; line() notes where.
LINES = CUDA + r'''
#include <string.h>
#define HERE(times) (printf("%d %s %d\n", __LINE__, __func__, times), times)
static CUfunction function;
__attribute__((noinline)) static void once(void) { cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, 0, 0, 0); HERE(1); }
__attribute__((noinline)) static void often(int times) {
  for (int i = 0; i < times; ++i)
    cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, 0, 0, 0); HERE(times);
}
__attribute__((noinline)) static void deep(int depth, int times) {
  if (depth) { deep(depth - 1, times); __asm__ volatile(""); return; }
  for (int i = 0; i < times; ++i) cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, 0, 0, 0); HERE(times);
}
int main(void) {
  CUdevice device; CUcontext context; CUmodule module;
  if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) || cuCtxSetCurrent(context) ||
      cuModuleLoadData(&module, ptx) || cuModuleGetFunction(&function, module, "third")) return 70;
  once();
  often(7);
  deep(20, 5);
  deep(200, 3);
  return cuCtxSynchronize();
}
'''


def carried():
    return os.path.join(places.tree, 'lib/gputrace/libgputrace-unwind.so')


def need_libunwind():
    if not SYSTEMS and not os.path.exists(carried()):
        skip('libunwind8 is not installed, and none was built')


def bare_library():
    """The library where no libunwind lies beside it."""
    os.makedirs(scratch('bare'), exist_ok=True)
    shutil.copy(places.library, scratch('bare'))
    return {'LD_PRELOAD': scratch('bare', 'libgputrace.so'), 'GPUTRACE_SIDECAR': places.sidecar}


def launches_by_site(run):
    return {row['site']: (row['launches'], row['language']) for row in rows(run, 'sites') if row['launches']}


def check_lines(binary, name, env=None):
    run = traced([binary], {**STACKS, **(env or {})})
    check_equal(run.returncode, 0, run.stderr)
    wanted = {}
    for line in run.stdout.decode().splitlines():
        number, function, times = line.split()
        site = f'{name}:{number} {function}'
        wanted[site] = (wanted.get(site, (0,))[0] + int(times), 'native')
    check_equal(launches_by_site(run), wanted, 'launches by line')
    return run


def test_lines_are_the_compilers():
    need_libunwind()
    for number, flags in enumerate([['-g', '-O0'], ['-g', '-O2', '-fomit-frame-pointer'], ['-g', '-O2', '-fno-pie', '-no-pie']]):
        forget_run()
        run = check_lines(compiled(f'lines{number}.c', LINES, *flags, '-lcuda'), f'lines{number}.c')
        check_launches_against_truth(run)
        seen, stored, dropped = check_conservation(run)
        check(dropped == 0 and seen == stored, 'everything seen is stored', seen, stored, dropped)


HEADERS = CUDA + r'''
static CUfunction function;
#include "own.h"
#include "library.h"
#include "torch/package.h"
#include "crate.h"
int main(void) {
  CUdevice device; CUcontext context; CUmodule module;
  if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) || cuCtxSetCurrent(context) ||
      cuModuleLoadData(&module, ptx) || cuModuleGetFunction(&function, module, "third")) return 70;
  int done = by_own(7);
  done += by_library(11);  // of a library
  done += by_package(13);  // of a package
  done += by_crate(3);  // of a crate
  return done != 34 || cuCtxSynchronize();
}
'''
INLINED = r'''static inline __attribute__((always_inline)) int %s(int times) {
  for (int i = 0; i < times; ++i)
    cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, 0, 0, 0);
  return times;
}
'''


def test_code_inlined_from_headers():
    """Of other people's sources (a library's, a package's, a crate's) the line that called it is told; of the program's own its own,
    and the function that it is of."""
    need_libunwind()
    folders = {'own': 'include', 'library': 'third/include', 'package': 'v/lib/python3.11/site-packages/torch/include',
               'crate': '.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/driver-0.1.0/src'}
    for name, folder in folders.items():
        os.makedirs(scratch(folder, 'torch'))
        with open(scratch(folder, 'torch/package.h' if name == 'package' else name + '.h'), 'w', encoding='utf-8') as file:
            file.write(INLINED % ('by_' + name))
    binary = compiled('headers.c', HEADERS, '-g', '-O2', '-lcuda',
                      *('-I' + scratch(folder, '..', os.path.basename(folder)) for folder in folders.values()))
    run = traced([binary], STACKS)
    check_equal(run.returncode, 0, run.stderr)
    line = {name: number for number, text in enumerate(HEADERS.splitlines(), 1) for name in folders if text.endswith(f'// of a {name}')}
    check_equal({site: count for site, (count, _) in launches_by_site(run).items()},
                {'own.h:3 by_own': 7, f"headers.c:{line['library']} main": 11, f"headers.c:{line['package']} main": 13,
                 f"headers.c:{line['crate']} main": 3}, 'launches by line')


LAMBDA = CUDA + r'''
#include <thread>
static CUfunction function;
#include "library.h"
int main() {
  CUdevice device; CUcontext context; CUmodule module;
  if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) || cuCtxSetCurrent(context) ||
      cuModuleLoadData(&module, ptx) || cuModuleGetFunction(&function, module, "third")) return 70;
  int done = 0;
  { // a thread of each request
    std::thread request([&]() __attribute__((noinline)) {
      cuCtxSetCurrent(context);
      done += by_library(11);  // of a library
    });
    request.join();
  }
  return done != 11 || cuCtxSynchronize();
}
'''


def test_code_inlined_into_a_lambda():
    """Its function stands in a class within the blocks of the one that has it."""
    need_libunwind()
    os.makedirs(scratch('third/include'))
    with open(scratch('third/include/library.h'), 'w', encoding='utf-8') as file:
        file.write(INLINED % 'by_library')
    binary = compiled('lambda.cpp', LAMBDA, '-g', '-O1', '-lcuda', '-lstdc++', '-pthread', '-I' + scratch('third/include'))
    run = traced([binary], STACKS)
    check_equal(run.returncode, 0, run.stderr)
    line = next(number for number, text in enumerate(LAMBDA.splitlines(), 1) if text.endswith('// of a library'))
    check_equal([site.split(' ')[0] for site in launches_by_site(run)], [f'lambda.cpp:{line}'], 'the line of the lambda')


# What rustc and clang write for `namespace mine { inline void often() { cuCtxSynchronize(); }  void work() { often(); } }`: the function lies
# within its namespace, and has one that was inlined from line 5 into line 9.
WITHIN_NAMESPACE = r'''
        .text
        .globl _ZN4mine4workEv
        .type _ZN4mine4workEv, @function
        .file 1 "own.cpp"
_ZN4mine4workEv:
        .cfi_startproc
        .loc 1 8
        subq $8, %rsp
        .cfi_def_cfa_offset 16
.Linlined:
        .loc 1 5
        call cuCtxSynchronize@PLT
.Lafter:
        .loc 1 10
        addq $8, %rsp
        ret
        .cfi_endproc
.Lend:
        .size _ZN4mine4workEv, .-_ZN4mine4workEv

        .section .debug_abbrev
        .uleb128 1, 0x11  # compile_unit: name, comp_dir, low_pc, high_pc, stmt_list
        .byte 1
        .uleb128 0x03, 0x08, 0x1b, 0x08, 0x11, 0x01, 0x12, 0x06, 0x10, 0x17, 0, 0
        .uleb128 2, 0x39  # namespace: name
        .byte 1
        .uleb128 0x03, 0x08, 0, 0
        .uleb128 3, 0x2e  # subprogram, abstract: linkage_name, inline
        .byte 0
        .uleb128 0x6e, 0x08, 0x20, 0x0b, 0, 0
        .uleb128 4, 0x2e  # subprogram: linkage_name, low_pc, high_pc
        .byte 1
        .uleb128 0x6e, 0x08, 0x11, 0x01, 0x12, 0x06, 0, 0
        .uleb128 5, 0x1d  # inlined_subroutine: abstract_origin, low_pc, high_pc, call_file, call_line
        .byte 0
        .uleb128 0x31, 0x13, 0x11, 0x01, 0x12, 0x06, 0x58, 0x0b, 0x59, 0x0b, 0, 0
        .uleb128 0

        .section .debug_info
        .long .Lunit_end - .Lunit
.Lunit: .value 4
        .long .debug_abbrev
        .byte 8
        .uleb128 1
        .string "own.cpp"
        .string "/home/anna/work"
        .quad _ZN4mine4workEv
        .long .Lend - _ZN4mine4workEv
        .long .debug_line
        .uleb128 2
        .string "mine"
.Loften:
        .uleb128 3
        .string "_ZN4mine5oftenEv"
        .byte 1
        .uleb128 4
        .string "_ZN4mine4workEv"
        .quad _ZN4mine4workEv
        .long .Lend - _ZN4mine4workEv
        .uleb128 5
        .long .Loften - (.Lunit - 4)
        .quad .Linlined
        .long .Lafter - .Linlined
        .byte 1, 9
        .byte 0, 0, 0
.Lunit_end:
        .section .note.GNU-stack, "", @progbits
'''


def test_code_inlined_within_a_namespace():
    """Of the program's own, and of a crate's: there the line of the program that called it."""
    need_libunwind()
    host = compiled('host.c', CUDA + '''void work(void) __asm__("_ZN4mine4workEv");
int main(void) {
  CUdevice device; CUcontext context;
  if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) || cuCtxSetCurrent(context)) return 70;
  work();
  return 0;
}
''', '-c', '-g')
    crate = WITHIN_NAMESPACE.replace('.loc 1 5', '.file 2 "/home/anna/.cargo/registry/src/index-1/driver-0.1.0/src/lib.rs"\n.loc 2 5')
    for name, text, wanted in (('own', WITHIN_NAMESPACE, 'own.cpp:5 mine::often'), ('crate', crate, 'own.cpp:9 mine::work')):
        forget_run()
        run = traced([compiled(name + '.s', text, host, '-Wa,--gdwarf-4', '-lcuda')], STACKS)
        check_equal(run.returncode, 0, run.stderr)
        check_equal([row['site'] for row in rows(run, 'sites')], [wanted], 'the line that waits')


def test_objects_of_packages_are_not_the_programs_own():
    """In a site-packages, in a folder of PYTHONPATH that packages were installed into, and PyTorch's wherever they lie."""
    need_libunwind()
    library = compiled('work.c', CUDA + 'int work(void) {\n  return launch(3);\n}\n', '-shared', '-fPIC', '-g', '-lcuda')
    calls = compiled('calls.c', '#include <dlfcn.h>\nint main(int argc, char** argv) {\n  int (*work)(void) = (int (*)(void))dlsym(dlopen(argv[1], RTLD_NOW), "work");\n'
                     '  int failed = work();\n  return failed;\n}\n', '-g', '-ldl')
    os.makedirs(scratch('deps/thing-1.dist-info'), exist_ok=True)
    for number, (place, packages) in enumerate((('venv/site-packages/thing/work.so', True), ('deps/thing/work.so', True), ('lib/libtorch_cuda.so', True), ('own/work.so', False))):
        os.makedirs(os.path.dirname(scratch(place)), exist_ok=True)
        shutil.copy(library, scratch(place))
        run = traced([calls, scratch(place)], {**STACKS, 'PYTHONPATH': scratch('deps')}, output=scratch(f'{number}.trace'))
        check_equal(run.returncode, 0, run.stderr)
        sites = [row['site'] for row in rows(run, 'sites') if row['launches'] == 3]
        check(len(sites) == 1 and (sites[0] == 'calls.c:4 main') == packages, f'whose line it is with {place}', sites)


# Prints the libraries by the name of libunwind that it has loaded once it has made its calls.
LOADED = '#define _GNU_SOURCE\n' + CUDA + r"""
#include <dlfcn.h>
#include <link.h>
#include <string.h>
static int print(struct dl_phdr_info* object, size_t size, void* data) {
  if (strstr(object->dlpi_name, "unwind")) puts(object->dlpi_name);
  return 0;
}
int main(void) {
  if (launch(2)) return 1;
  dl_iterate_phdr(print, 0);
  return dlopen("libunwind.so.8", RTLD_NOW) && dlsym(RTLD_DEFAULT, "unw_backtrace") == 0 && dlsym(dlopen("libunwind.so.8", RTLD_NOW), "_ULx86_64_step") ? 0 : 3;
}
"""


def test_what_is_carried_comes_before_the_systems():
    if not SYSTEMS or not os.path.exists(carried()):
        skip('libunwind8 is not installed, or none was built to be carried')
    binary = compiled('loaded.c', LOADED, '-g', '-O0', '-lcuda', '-ldl')
    check_equal(untraced([binary]).returncode, 0, 'the program finds its own libunwind')
    for env, wanted in ((STACKS, carried()), ({**STACKS, **bare_library()}, 'libunwind.so.8')):
        run = traced([binary], env)
        check_equal(run.returncode, 0, 'so it does when we have loaded one')
        loaded = run.stdout.decode().split()
        check(len(loaded) == 1 and loaded[0].endswith(wanted), 'one libunwind, the wanted one', loaded)
        launches = {site.split()[-1]: count for site, (count, _) in launches_by_site(run).items()}
        check_equal(launches, {'launch': 2}, 'launches by function')
        forget_run()


def test_without_debug_information_functions_are_told():
    need_libunwind()
    binary = compiled('plain.c', LINES, '-lcuda')
    run = traced([binary], STACKS)
    sites = {site.split()[-1]: count for site, (count, _) in launches_by_site(run).items()}
    check_equal(sites, {'once': 1, 'often': 7, 'deep': 8}, 'launches by function')


def test_a_stripped_program_tells_where_in_which_object():
    need_libunwind()
    binary = compiled('stripped.c', LINES, '-s', '-lcuda')
    run = traced([binary], STACKS)
    sites = launches_by_site(run)
    check(all(site.startswith('stripped +0x') for site in sites), 'object and place', sites)
    check_equal(sorted(count for count, _ in sites.values()), [1, 7, 8], 'as many places as there are calls')
    notes = ' '.join(report(run, 'sites')['sections']['sites']['notes'])
    check('have no function' in notes, 'and the report says so', notes)


def test_an_object_that_changed_since_gives_no_names():
    need_libunwind()
    binary = compiled('changed.c', LINES, '-g', '-lcuda')
    run = traced([binary], STACKS)
    compiled('changed.c', LINES.replace('once', 'other'), '-g', '-lcuda')  # another build id
    check(all(site.startswith('changed +0x') for site in launches_by_site(run)), 'no name of another file', launches_by_site(run))


def test_exceptions_of_the_program_are_its_own():
    need_libunwind()
    if not shutil.which('g++'):
        skip('no g++')
    library = compiled('thrower.cpp', r'''
#include <stdexcept>
extern "C" int thrown(int times) {
  int caught = 0;
  for (int i = 0; i < times; ++i) try { throw std::runtime_error("mine"); } catch (const std::exception&) { ++caught; }
  return caught;
}
''', '-shared', '-fPIC', compiler='g++')
    host = compiled('host.c', CUDA + r'''
#include <dlfcn.h>
int main(int count, char** words) {
  if (launch(3)) return 1;
  void* library = dlopen(words[1], RTLD_NOW);
  int (*thrown)(int) = (int (*)(int))dlsym(library, "thrown");
  printf("%d\n", thrown(1000));
  dlclose(library);
  return launch(2);
}
''', '-lcuda', '-ldl')
    plain = untraced([host, library])
    run = traced([host, library], STACKS)
    same_output(plain, run)
    check_equal(run.stdout, b'1000\n', 'all exceptions were caught')
    check_launches_against_truth(run)


def test_a_child_of_fork_goes_without():
    need_libunwind()
    binary = compiled('forks.c', CUDA + r'''
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
  if (launch(3)) return 1;
  pid_t child = fork();
  if (child == 0) _exit(launch(2) ? 70 : 0);
  int status; waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}
''', '-g', '-lcuda')
    run = traced([binary], STACKS)
    plain = untraced([binary])
    check_equal(run.returncode, plain.returncode, 'as without us')
    check_equal(len(run.traces), 2, 'both have a trace')
    reasons = [entry['why'] for entry in report(run)['coverage']['not_collected'] if entry['what'] == 'stacks']
    check(len(reasons) == 1 and 'in a child of fork' in reasons[0], 'why the child has none', reasons)
    launches = {site.split()[-1]: count for site, (count, _) in launches_by_site(run).items()}
    check_equal(launches, {'launch': 3}, 'the parent has them all the same')


def test_threads_have_stacks_of_their_own():
    need_libunwind()
    binary = compiled('threads.c', CUDA + r'''
#include <pthread.h>
static CUcontext context; static CUfunction function;
__attribute__((noinline)) static void work(int times) { for (int i = 0; i < times; ++i) cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, 0, 0, 0); __asm__ volatile(""); }
__attribute__((noinline)) static void* first(void* p) { cuCtxSetCurrent(context); work(100); return p; }
__attribute__((noinline)) static void* second(void* p) { cuCtxSetCurrent(context); for (int i = 0; i < 50; ++i) { cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, 0, 0, 0); } return p; }
int main(void) {
  CUdevice device; CUmodule module; pthread_t threads[8];
  if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) || cuCtxSetCurrent(context) ||
      cuModuleLoadData(&module, ptx) || cuModuleGetFunction(&function, module, "third")) return 70;
  for (int i = 0; i < 8; ++i) pthread_create(&threads[i], 0, i % 2 ? first : second, 0);
  for (int i = 0; i < 8; ++i) pthread_join(threads[i], 0);
  return 0;
}
''', '-lcuda', '-pthread')
    run = traced([binary], STACKS)
    sites = {site.split()[-1]: count for site, (count, _) in launches_by_site(run).items()}
    check_equal(sites, {'work': 400, 'second': 200}, 'launches by function')


def test_without_libunwind_the_trace_says_so():
    binary = compiled('none.c', CUDA + 'int main(void) { return launch(2); }\n', '-lcuda')
    empty = scratch('empty')
    os.makedirs(empty)
    open(os.path.join(empty, 'libunwind.so.8'), 'w').close()  # the loader refuses it, and looks no further
    run = traced([binary], {**STACKS, **bare_library(), 'LD_LIBRARY_PATH': empty + ':' + places.simgpu})
    check_equal(run.returncode, 0, run.stderr)
    check_launches_against_truth(run)
    reasons = [entry['why'] for entry in report(run)['coverage']['not_collected'] if entry['what'] == 'stacks']
    check(len(reasons) == 1 and 'libunwind.so.8 were not found' in reasons[0], 'and why there are none', reasons)


main()
