# meson: timeout=200
# System calls that fail on our side (in the library, in the sidecar): the program is what it is without us, and nothing untrue is reported.
from against_truth import *

# name, error: calls that the library makes at the first CUDA call. The program alone is run under the same fault.
LIBRARY_FAULTS = (('memfd_create', 'ENOSYS'), ('memfd_create', 'EPERM'), ('fallocate', 'ENOSPC'), ('fallocate', 'EINTR:when=1'), ('fallocate', 'ENOMEM:when=3'), ('pidfd_open', 'ENOSYS'),
                  ('pidfd_open', 'EMFILE'), ('madvise', 'EINVAL'), ('clone,clone3', 'EAGAIN'), ('readlink,readlinkat', 'ENOENT'))
WRITES = 'write,pwrite64,writev,pwritev,pwritev2'
SIDECAR_FAULTS = (('openat', 'EACCES:when=30+'), (WRITES, 'ENOSPC'), (WRITES, 'EIO:when=4+'), (WRITES, 'EINTR:when=2'), ('fallocate', 'EOPNOTSUPP'), ('ftruncate', 'EIO'), ('mkdir,mkdirat', 'EROFS'),
                  ('fsync,fdatasync', 'EIO'), ('prctl,seccomp', 'EINVAL'))


def under_strace(command, calls, error, preload, output, follow):
    words = ['strace', *(['-f'] if follow else []), '-qq', '-o', '/dev/null', '-e', f'trace={calls}', '-e', f'inject={calls}:error={error}',
             '-E', f'LD_PRELOAD={preload}', *command]
    done = finish(start(words, environment(GPUTRACE_OUTPUT=output)), 60)
    left = wait_for_orphans()
    check(not left, 'nothing is left', left)
    return done


def need_strace():
    if not shutil.which('strace'):
        skip('strace is not installed')
    probe = finish(start(['strace', '-qq', '-o', '/dev/null', 'true'], environment()))
    if probe[0] != 0:
        skip(f'strace does not work here: {probe[2][:100]!r}')


def check_trace(output, what):
    """If there is a trace, it opens and says nothing untrue."""
    if not glob.glob(os.path.join(output, '*.gtrace')):
        return
    code, out, err = gputrace('report', output, '--json', rc=None)
    check(code in (0, 3), f'{what}: exit code {code}', err)
    if code == 0:
        said = json.loads(out)
        launches = {row['metric']: row['value'] for row in said['sections']['overview']['rows']}['launches']
        check(launches == 21 or said['coverage']['dropped'] or said['coverage']['truncated'] or not launches, f'{what}: launches', launches, said['coverage'])
        check(launches <= 21, f'{what}: launches', launches)


def test_calls_of_the_library_fail():
    need_strace()
    command = [program('drv_linked'), 'exit=3']
    for index, (calls, error) in enumerate(LIBRARY_FAULTS):
        output, what = scratch(f'library{index}'), f'{calls} fails with {error}'
        plain = under_strace(command, calls, error, '', output, False)
        ours = under_strace(command, calls, error, places.library, output, False)
        check_equal(ours, plain, what)
        check_trace(output, what)
    made = [bool(glob.glob(scratch(f'library{index}', '*.gtrace'))) for index in range(len(LIBRARY_FAULTS))]
    check(True in made and False in made, 'some faults switch tracing off, some do not', list(zip(LIBRARY_FAULTS, made)))


def test_calls_of_the_sidecar_fail():
    need_strace()
    command = [program('drv_linked'), 'exit=3']
    with open(scratch('sidecar'), 'w', encoding='utf-8') as file:
        file.write('#!/bin/sh\nexec strace -qq -o /dev/null -e "trace=$CALLS" -e "inject=$CALLS:error=$FAULT" ' + places.sidecar + ' "$@"\n')
    os.chmod(scratch('sidecar'), 0o755)
    plain = untraced(command)
    for index, (calls, error) in enumerate(SIDECAR_FAULTS):
        output, what = scratch(f'sidecar{index}'), f'{calls} fails with {error} in the sidecar'
        run = traced(command, {'GPUTRACE_SIDECAR': scratch('sidecar'), 'CALLS': calls, 'FAULT': error, 'SIMGPU_TRUTH': None}, output=output)
        check_equal((run.returncode, run.stdout, run.stderr), (plain.returncode, plain.stdout, plain.stderr), what)
        check_trace(output, what)
        seen = os.path.isdir(output) and glob.glob(os.path.join(output, '*.gtrace'))
        whole = seen and gputrace('report', output, '--strict', rc=None)[0] == 0
        check(not whole or calls not in ('mkdir,mkdirat', WRITES) or 'EINTR' in error, f'{what}: the fault had an effect')


def test_modes_under_umask_0():
    output = scratch('deep', 'traces')
    done = finish(start(['bash', '-c', f'umask 000; exec {program("drv_linked")}'], traced_environment(output=output)))
    check_equal(done[0], 0, 'exit code')
    check(not wait_for_orphans(), 'the sidecar ends')
    for path, mode in ((scratch('deep'), 0o700), (output, 0o700), (glob.glob(os.path.join(output, '*.gtrace'))[0], 0o600)):
        check_equal(oct(os.stat(path).st_mode & 0o777), oct(mode), f'mode of {path}')


main()
