# meson: serial timeout=240
# What a program's debugger sees of us: valgrind nothing, gdb follows the program's child; and the program has all of its keys.
from small_programs import *

KEYS = r'''
#include <pthread.h>
#include <stdio.h>
#include <cuda.h>
int main(void) {
  pthread_key_t key, first = 0;
  int made = 0;
  if (cuInit(0)) return 70;
  while (!pthread_key_create(&key, 0)) { if (!made++) first = key; }
  printf("first %u made %d\n", (unsigned)first, made);
  return 0;
}
'''


def test_every_key_is_the_programs():
    command = [compiled('keys.c', KEYS, '-lpthread', '-lcuda')]
    both(command)
    # A window of an NVTX range takes one: LIMITS.
    same_output(untraced(command), traced(command, {'GPUTRACE_COLLECT': 'api,nvtx'}))


FORKS = CUDA + r'''
#include <sys/wait.h>
#include <unistd.h>
static void in_child(void) { _exit(9); }
int main(void) {
  int status = 0;
  if (launch(3)) return 71;
  pid_t child = fork();
  if (child == 0) in_child();
  waitpid(child, &status, 0);
  printf("child %d\n", WEXITSTATUS(status));
  return 0;
}
'''


def test_gdb_follows_the_programs_child():
    if not shutil.which('gdb'):
        skip('gdb is not installed')
    binary = compiled('forks.c', FORKS, '-lcuda', '-g')
    said = {}
    for name, preload in (('without', None), ('with', places.library)):
        commands = ['set pagination off', 'set confirm off', 'set debuginfod enabled off', f'set environment LD_LIBRARY_PATH {places.simgpu}', f'set environment GPUTRACE_OUTPUT {scratch("t")}',
                    'set startup-with-shell off', *([f'set environment LD_PRELOAD {preload}'] if preload else []),
                    'set follow-fork-mode child', 'set breakpoint pending on', 'break in_child', 'run', 'backtrace 1', 'kill']
        code, out, err = finish(start(['gdb', '-nx', '-batch', *[word for command in commands for word in ('-ex', command)], binary], environment(LD_LIBRARY_PATH=None)), 100)
        said[name] = re.findall(r'Breakpoint 1, in_child|#0  in_child', out.decode(errors='replace'))
        check(said[name], f'{name} us: gdb stops in the child', out[-1500:], err[-800:])
        wait_for_orphans()
    check_equal(said['with'], said['without'], 'what gdb shows')


def test_valgrind_is_silent():
    if not shutil.which('valgrind'):
        skip('valgrind is not installed')
    # Without CUDA: the simulated driver reserves more addresses than valgrind has.
    with open(scratch('plain.c'), 'w', encoding='ascii') as file:
        file.write('#include <stdio.h>\n#include <stdlib.h>\n#include <dlfcn.h>\nint main(void) { char* p = malloc(10); p[0] = 1; printf("%d %d\\n", p[0], dlopen("/nowhere", RTLD_NOW) != 0); free(p); return getenv("NOTHING") != 0; }\n')
    driver = compiled('driver.c', 'int cuInit(unsigned flags) { return (int)flags; }\n', '-shared', '-fPIC', '-Wl,-soname,libcuda.so.1')
    os.rename(driver, scratch('libcuda.so.1'))
    cases = (compiled('plain.c', open(scratch('plain.c'), encoding='ascii').read(), '-ldl'),
             compiled('call.c', '#include <stdio.h>\nint cuInit(unsigned);\nint main(void) { int bad = 0; for (int i = 0; i < 100; ++i) bad += cuInit(0); printf("%d\\n", bad); return bad; }\n', scratch('libcuda.so.1')))
    for program_ in cases:
        command = ['valgrind', '-q', '--error-exitcode=33', '--leak-check=full', program_]
        runs = []
        for preload in (None, places.library):
            env = environment(LD_LIBRARY_PATH=scratch(), GPUTRACE_OUTPUT=scratch('t'), GPUTRACE_COLLECT='api', **({'LD_PRELOAD': preload} if preload else {}))
            code, out, err = finish(start(command, env), 100)
            runs.append((code, out, re.sub(rb'==\d+==', b'==', err)))
            wait_for_orphans()
        check_equal(runs[1], runs[0], f'{os.path.basename(program_)}: valgrind says the same')


main()
