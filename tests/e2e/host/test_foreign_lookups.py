# meson: timeout=120
# Look-ups that a preloaded library answers: before anything is relocated, by doors to the driver, into variables with the names of functions, with the
# errors that they leave, and in plugins that are bound to their own dependencies.
from small_programs import *


def test_an_empty_name_at_the_end_of_a_page():
    text = r'''
#include <dlfcn.h>
#include <stdio.h>
#include <sys/mman.h>
int main(void) {
  printf("%d\n", dlsym(RTLD_DEFAULT, "printf") != 0);  // the first look-up goes another way
  char* pages = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(pages + 4096, 4096, PROT_NONE);
  printf("%d\n", dlsym(RTLD_DEFAULT, pages + 4095) == 0);
  pages[4094] = 'c';
  printf("%d\n", dlsym(RTLD_DEFAULT, pages + 4094) == 0);
  pages[4093] = '_', pages[4094] = '_';
  printf("%d\n", dlsym(RTLD_DEFAULT, pages + 4093) == 0);
  pages[4092] = 'c', pages[4093] = 'u', pages[4094] = 'd';
  printf("%d\n", dlsym(RTLD_DEFAULT, pages + 4092) == 0);
  return 3;
}
'''
    plain, run = both([compiled('page.c', text, '-ldl')])
    check_equal((run.returncode, run.stdout), (3, b'1\n' * 5), 'asked, not found')


def test_a_resolver_that_asks_the_environment():
    library = compiled('libresolver.c', r'''
#include <stdlib.h>
static int one(void) { return 1; }
static int two(void) { return 2; }
static int three(void) { return 3; }
static void* resolve(void) {
  const char* value = getenv("GT_CHOICE");
  return getenv("NVTX_INJECTION64_PATH_OF_NOBODY") ? (void*)three : value && *value == '2' ? (void*)two : (void*)one;
}
int choice(void) __attribute__((ifunc("resolve")));
''', '-shared', '-fPIC', '-Wl,-z,now')
    here = '-Wl,-rpath,' + os.path.dirname(library)
    # Libraries are relocated before what was preloaded: the resolver runs when only libc is ready.
    user = compiled('libuser.c', 'extern int choice(void); int chosen(void) { return choice(); }', '-shared', '-fPIC', library, '-Wl,-z,now', here)
    text = '#include <stdio.h>\nextern int choice(void), chosen(void);\nint main(void) { printf("%d %d\\n", choice(), chosen()); return 4; }\n'
    program_ = compiled('chooser.c', text, user, library, '-Wl,-z,now', here)
    for value in ('2', '1', None):
        plain, run = both([program_], {'GT_CHOICE': value})
        check_equal(run.returncode, 4, 'runs as without us')


# A driver of a few functions; REAL_CALLS names a file into which it counts calls of cuInit and of the others, by name.
REAL_DRIVER = r"""
#include <stdio.h>
#include <stdlib.h>
#define CALL(name) int name(void) { const char* file = getenv("REAL_CALLS"); FILE* out = file ? fopen(file, "a") : 0; \
  if (out) fputs(#name "\n", out), fclose(out); return 0; }
CALL(cuInit) CALL(cuCtxSynchronize) CALL(cuMemAllocHost_v2) CALL(cuStreamSynchronize) CALL(cuEventSynchronize) CALL(cuMemFreeHost)
"""
SHIMMED = ('cuInit', 'cuCtxSynchronize', 'cuStreamSynchronize', 'cuEventSynchronize', 'cuMemFreeHost')


def shim(eager):
    """Functions of a shim: each looks its real one up where it is called, or all of them together the first time."""
    lines = ['#include <dlfcn.h>', '#include <stdlib.h>', 'static void* real(void) { return dlopen(getenv("REAL_DRIVER"), RTLD_NOW | RTLD_LOCAL); }',
             f'static int (*found[{len(SHIMMED)}])(long, long);']
    if eager:
        lines += ['static void load(void) {'] + [f'  if (!found[{i}]) found[{i}] = (int (*)(long, long))dlsym(real(), "{name}");'
                                                 for i, name in enumerate(SHIMMED)] + ['}']
    for i, name in enumerate(SHIMMED):
        look = 'load();' if eager else f'if (!found[{i}]) found[{i}] = (int (*)(long, long))dlsym(real(), "{name}");'
        lines.append(f'GT_SHIM int {name}(long a, long b) {{ {look} return found[{i}](a, b); }}')
    return '\n'.join(lines) + '\n'


CALLER = 'int calls(void) { int bad = 0; for (int i = 0; i < 3; ++i) bad |= ' + ' | '.join(f'{name}(0, 0)' for name in SHIMMED) + '; return bad; }\n'
DECLARED = ''.join(f'extern int {name}(long, long);\n' for name in SHIMMED)


def shim_cases():
    """How a driver hides behind another object: (what, command, folders to look in)."""
    os.makedirs(scratch('real'))
    os.rename(compiled('real.c', REAL_DRIVER, '-shared', '-fPIC', '-Wl,-soname,libcuda.so.1'), scratch('real', 'libcuda.so.1.1'))
    for eager in (False, True):
        kind = 'eager' if eager else 'lazy'
        folder = scratch('door_' + kind)
        os.makedirs(folder)
        door = os.path.join(folder, 'libcuda.so.1')
        os.rename(compiled(f'door_{kind}.c', '#define GT_SHIM\n' + shim(eager), '-shared', '-fPIC', '-ldl', '-Wl,-soname,libcuda.so.1'), door)
        user = DECLARED + CALLER + '#include <stdio.h>\nint main(void) { printf("%d\\n", calls()); return 3; }\n'
        yield f'{kind}, named as the driver, linked', [compiled(f'linked_{kind}.c', user, door)], folder
        opened = ('#include <dlfcn.h>\n#include <stdio.h>\n' + ''.join(f'static int (*p_{name})(long, long);\n' for name in SHIMMED) +
                  CALLER.replace('cu', 'p_cu') + 'int main(void) { void* d = dlopen("libcuda.so.1", RTLD_NOW);\n' +
                  ''.join(f'  p_{name} = (int (*)(long, long))dlsym(d, "{name}");\n' for name in SHIMMED) + '  printf("%d\\n", calls()); return 3; }\n')
        yield f'{kind}, named as the driver, opened', [compiled(f'opened_{kind}.c', opened, '-ldl')], folder
        other = compiled(f'other_{kind}.c', '#define GT_SHIM\n' + shim(eager), '-shared', '-fPIC', '-ldl')
        yield f'{kind}, of another name, linked', [compiled(f'user_{kind}.c', user, other, '-Wl,-rpath,' + os.path.dirname(other))], scratch('real')
        inside = '#define GT_SHIM __attribute__((visibility("hidden")))\n' + shim(eager) + CALLER
        yield f'{kind}, hidden in the program', [compiled(f'inside_{kind}.c', inside + '#include <stdio.h>\nint main(void) { printf("%d\\n", calls()); return 3; }\n',
                                                         '-ldl')], scratch('real')
        yield f'{kind}, exported by the program', [compiled(f'exported_{kind}.c', '#define GT_SHIM\n' + inside.split('\n', 1)[1] +
                                                           '#include <stdio.h>\nint main(void) { printf("%d\\n", calls()); return 3; }\n', '-ldl', '-rdynamic')], scratch('real')
        hidden = compiled(f'hidden_{kind}.c', inside, '-shared', '-fPIC', '-ldl')
        yield f'{kind}, hidden in a library', [compiled(f'outer_{kind}.c', '#include <stdio.h>\nextern int calls(void);\nint main(void) { printf("%d\\n", calls()); return 3; }\n',
                                                       hidden, '-Wl,-rpath,' + os.path.dirname(hidden))], scratch('real')


def test_doors_to_the_driver():
    # What a program calls reaches the driver as often as without us, and is seen once.
    for what, command, folder in shim_cases():
        env = {'LD_LIBRARY_PATH': folder, 'REAL_DRIVER': scratch('real', 'libcuda.so.1.1'), 'GPUTRACE_COLLECT': '-device'}
        def called(run, env_more):
            path = scratch('calls')
            if os.path.exists(path):
                os.unlink(path)
            done = run(command, {**env, **env_more, 'REAL_CALLS': path})
            with open(path, encoding='ascii') as file:
                return done, collections.Counter(file.read().split())
        plain, wanted = called(untraced, {})
        run, reached = called(traced, {})
        check_equal((run.returncode, run.stdout, run.stderr), (plain.returncode, plain.stdout, plain.stderr), what)
        check_equal((run.returncode, run.stdout), (3, b'0\n'), what)
        check_equal(sum(wanted.values()), 15, f'calls of the driver without us ({what})')
        check_equal(reached, wanted, f'calls of the driver ({what})')
        seen = collections.Counter(call.variant for calls in trace_calls(dump(run)).values() for call in calls)
        check_equal({name: seen[name] for name in SHIMMED}, {name: 3 for name in SHIMMED}, f'calls seen ({what})')
        forget_run()


def test_variables_named_like_functions():
    # As cuew and the like have them: pointers in a library, which look-ups at run time fill.
    names = SHIMMED
    pointers = compiled('libpointers.c', '#include <dlfcn.h>\nstatic int none(long a, long b) { return 5; }\n' +
                        ''.join(f'int (*{name})(long, long){" = none" if name == "cuMemFreeHost" else ""};\n' for name in names) +
                        'int load(void) { void* d = dlopen("libcuda.so.1", RTLD_NOW);\n' +
                        ''.join(f'  {name} = (int (*)(long, long))dlsym(d, "{name}");\n' for name in names) + '  return d ? 0 : 1; }\n',
                        '-shared', '-fPIC', '-ldl', '-O2')
    os.makedirs(scratch('driver'))
    os.rename(compiled('real.c', REAL_DRIVER, '-shared', '-fPIC', '-Wl,-soname,libcuda.so.1'), scratch('driver', 'libcuda.so.1'))
    here = '-Wl,-rpath,' + os.path.dirname(pointers)
    user = ('extern int load(void);\n' + ''.join(f'extern int (*{name})(long, long);\n' for name in names) + CALLER +
            '#include <stdio.h>\nint main(void) { int bad = cuInit != 0 || cuMemFreeHost(0, 0) != 5; bad |= load(); printf("%d %d\\n", bad, calls()); return 3; }\n')
    opener = ('#include <dlfcn.h>\n#include <stdio.h>\nint main(void) { void* p = dlopen(PATH, RTLD_NOW); int (*load)(void) = (int (*)(void))dlsym(p, "load");\n'
              'int bad = load(); int (**init)(long, long) = (int (**)(long, long))dlsym(p, "cuInit");\n'
              'for (int i = 0; i < 3; ++i) bad |= (*init)(0, 0); printf("0 %d\\n", bad); return 3; }\n')
    for what, command, seen in (
            ('a program with copies', [compiled('copies.c', user, pointers, here, '-no-pie', '-fno-pie')], SHIMMED),
            ('a program without', [compiled('direct.c', user, pointers, here, '-fPIC', '-pie')], SHIMMED),
            ('bound at once', [compiled('now.c', user, pointers, here, '-fPIC', '-pie', '-Wl,-z,now,-z,relro')], SHIMMED),
            ('opened at run time', [compiled('opener.c', f'#define PATH "{pointers}"\n' + opener, '-ldl')], ('cuInit',))):
        env = {'LD_LIBRARY_PATH': scratch('driver'), 'GPUTRACE_COLLECT': '-device'}
        plain, run = both(command, env)
        check_equal((run.returncode, run.stdout), (3, b'0 0\n'), what)
        counted = collections.Counter(call.variant for calls in trace_calls(dump(run)).values() for call in calls)
        check_equal({name: counted[name] for name in seen}, {name: 3 for name in seen}, f'calls seen ({what})')
        forget_run()


def test_errors_of_look_ups_name_who_asked():
    text = r"""
#include <dlfcn.h>
#include <stdio.h>
static void ask(void* handle, const char* name) {
  void* found = dlsym(handle, name);
  const char* error = dlerror();
  printf("%s %d %s\n", name, found != 0, error ? error : "no error");
  printf("%s\n", dlerror() ? "again" : "once");
}
int main(int count, char** words) {
  void* library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
  void (*inside)(void) = (void (*)(void))dlsym(library, "inside");
  for (int i = 0; i < 2; ++i) {
    ask(RTLD_DEFAULT, i ? "cuMemAlloc_v2" : "cuNoSuchThing");
    ask(RTLD_NEXT, "cuInit");
    ask(library, "cudaMalloc");
    ask(RTLD_DEFAULT, "ncclAllReduce");
    inside();
  }
  return 3;
}
"""
    inside = compiled('inside.c', '#include <dlfcn.h>\n#include <stdio.h>\nvoid inside(void) { void* found = dlsym(RTLD_DEFAULT, "cuLaunchKernel"); '
                      'const char* error = dlerror(); printf("%d %s\\n", found != 0, error ? error : "no error"); }\n', '-shared', '-fPIC', '-ldl')
    plain, run = both([compiled('errors.c', text, '-ldl'), inside], {'LD_LIBRARY_PATH': None})
    check(b'errors: undefined symbol: cuMemAlloc_v2' in run.stdout and b'inside.so: undefined symbol: cuLaunchKernel' in run.stdout, 'errors', run.stdout)


def test_a_plugin_bound_to_its_own_dependencies():
    # Two libraries of one name's function: the plugin's own, and the program's. RTLD_DEEPBIND means the plugin's; where the plugin
    # reaches CUDA its calls are seen.
    answer = 'int answer(void) { return %d; }\n'
    program_s = compiled('libglobal.c', answer % 1, '-shared', '-fPIC')
    plugin_s = compiled('libprivate.c', answer % 2, '-shared', '-fPIC')
    here = '-Wl,-rpath,$ORIGIN'
    plain_plugin = compiled('plugin.c', 'extern int answer(void); int run(void) { return answer(); }\n', '-shared', '-fPIC', plugin_s, here)
    cuda_plugin = compiled('cuda_plugin.c', CUDA + 'int run(void) { return launch(4); }\n', '-shared', '-fPIC', '-lcuda')
    needs = compiled('libneeds.c', 'extern int run(void); int outer(void) { return run(); }\n', '-shared', '-fPIC', cuda_plugin, here)
    text = r"""
#include <dlfcn.h>
#include <stdio.h>
extern int answer(void);
int main(int count, char** words) {
  void* plugin = dlopen(words[1], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  int (*run)(void) = plugin ? (int (*)(void))dlsym(plugin, words[2]) : 0;
  printf("%d %d %s\n", answer(), run ? run() : -1, plugin ? "" : dlerror());
  return 3;
}
"""
    opener = compiled('opener.c', text, program_s, here, '-ldl')
    for plugin, function, result, launches in ((plain_plugin, 'run', 2, 0), (cuda_plugin, 'run', 0, 4), (needs, 'outer', 0, 4)):
        plain, run = both([opener, plugin, function])
        check_equal((run.returncode, run.stdout), (3, b'1 %d \n' % result), 'which one was called')
        check_equal(metrics(run)['launches'] if launches else os.path.exists(run.output), launches, f'launches of {plugin}')
        forget_run()


main()
