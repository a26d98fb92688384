# meson: timeout=180
# Below the limit of a memory cgroup: what lives without us lives with us, what we hold is a small part of the limit, and whom the kernel ends leaves a
# trace that can be read. Needs a group of the test's own: root, and /sys/fs/cgroup writable.
import contextlib

from small_programs import *

MIB = 1 << 20

# words[1] and words[2]: MiB that it touches before its first CUDA call, and after 20 launches; then five more.
HUNGRY = r"""
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void touch(int mib) { for (int i = 0; i < mib; ++i) memset(malloc(1 << 20), 7, 1 << 20); }
int main(int count, char** words) {
  touch(atoi(words[1]));
  if (launch(20)) return 70;
  usleep(200000);
  touch(atoi(words[2]));
  if (launch(5)) return 71;
  puts("lived");
  return 3;
}
"""


def _write(path, value):
    with open(path, 'w', encoding='utf-8') as file:
        file.write(str(value))


@contextlib.contextmanager
def group(limit):
    """A memory cgroup with this limit (bytes); gives what must stand before a command that is to run in it."""
    if os.geteuid() != 0:
        skip('needs root')
    old = '/sys/fs/cgroup/memory/memory.limit_in_bytes'
    folder = os.path.join(os.path.dirname(old) if os.path.exists(old) else '/sys/fs/cgroup', f'gputrace-test-{os.getpid()}')
    try:
        if not os.path.exists(old):
            _write('/sys/fs/cgroup/cgroup.subtree_control', '+memory')
        os.mkdir(folder)
    except OSError as error:
        skip(f'no memory cgroup can be made here: {error}')
    try:
        try:
            _write(os.path.join(folder, 'memory.limit_in_bytes' if os.path.exists(old) else 'memory.max'), limit)
            if not os.path.exists(old):
                _write(os.path.join(folder, 'memory.swap.max'), 0)
        except OSError as error:
            skip(f'no limit can be set here: {error}')
        yield ['sh', '-c', f'echo $$ > {folder}/cgroup.procs && exec "$@"', 'sh']
    finally:
        def gone():
            with contextlib.suppress(OSError):
                os.rmdir(folder)
            return not os.path.exists(folder)
        wait_until(gone, 'the group is empty')


def hungry():
    return compiled('hungry.c', CUDA + HUNGRY, '-lcuda')


def test_what_lives_without_us_lives_with_us():
    binary = hungry()
    limit = 400 * MIB
    with group(limit) as inside:
        for before, after in ((0, 0), (0, 340), (340, 0), (200, 150)):
            command = [*inside, binary, str(before), str(after)]
            plain = untraced(command)
            check_equal((plain.returncode, plain.stdout), (3, b'lived\n'), f'{before} + {after} MiB live without us')
            run = traced(command, {'GPUTRACE_BUFFER': '64M'})
            same_output(plain, run)
            check_equal(metrics(run)['launches'], 25, f'{before} + {after} MiB: launches')
            said = json.dumps(report(run, 'run'))
            check('memory limit of the container' in said and 'a smaller ring is used' in said, f'{before} + {after} MiB: a smaller ring is said', said[:2000])
            forget_run()


def test_a_limit_that_leaves_nothing():
    binary = hungry()
    with group(60 * MIB) as inside:
        command = [*inside, binary, '0', '0']
        plain, run = untraced(command), traced(command)
        same_output(plain, run)
        check_equal(plain.returncode, 3, 'it lives')
        with open(os.path.join(run.output, 'untraced'), encoding='utf-8') as file:
            said = file.read()
        check('memory limit of the container' in said and 'KiB for tracing' in said, 'it is said', said)
        check(not run.traces, 'there is no trace', run.traces)


def test_the_kernel_ends_the_sidecar_first():
    """What the sidecar holds is in the way of a program that wants all: it goes, the program lives."""
    binary = hungry()
    with group(300 * MIB) as inside:
        command = [*inside, binary, '0', '284']
        plain = untraced(command)
        if plain.returncode != 3:
            skip('it does not live without us either')
        run = traced(command)
        same_output(plain, run)
        check(metrics(run)['launches'] >= 20, 'launches before it', metrics(run)['launches'])


def test_the_kernel_ends_the_program():
    binary = hungry()
    with group(300 * MIB) as inside:
        command = [*inside, binary, '0', '4000']
        plain, run = untraced(command), traced(command)
        check_equal((plain.returncode, run.returncode), (-9, -9), 'it is killed')
        check_equal(metrics(run)['launches'], 20, 'launches before it')
        check(not report(run)['coverage']['complete'], 'not complete', report(run)['coverage'])
        check_conservation(run)


main()
