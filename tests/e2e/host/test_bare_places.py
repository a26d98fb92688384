# meson: timeout=200
# Places where something is missing that most machines have: shared memory, /proc, /tmp, a home, a name for the user, a root that can be written. The
# program runs as it does without us there; it is traced whole, or why not is said.
from against_truth import *

LAUNCHES = 21  # of drv_linked
NO_DEV = 'mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3 && mknod -m 666 /dev/urandom c 1 9 && ln -s /proc/self/fd /dev/fd'


def there(script, command, env):
    """(exit code, stdout, stderr) of the command where the script was run before, in a mount namespace of its own."""
    if os.geteuid() != 0 or not shutil.which('unshare'):
        skip('needs a mount namespace')
    # The scratch folder by another way too, for where /tmp is hidden.
    script = f'mount --bind {scratch()} /mnt && {script} || exit 99; exec "$@"'
    code, out, err = finish(start(['unshare', '-m', 'bash', '-c', script, 'there', *command], env, cwd='/'))
    if code == 99 or b'unshare:' in err:
        skip(f'no such mounts here: {err.decode()}')
    return code, out, err


def check_traced(what, script, env=None, words=None):
    """`words`: what quality-notes says, None: nothing. Twice: with a bare preload, and under `run`, which also says nothing else."""
    command = [program('drv_linked')]
    plain = there(script, command, environment())
    check_equal(plain[0], 0, f'{what}: the program runs without us ({plain})')
    for way, full, extra in (('preload', command, {'LD_PRELOAD': places.library}), ('run', [places.gputrace, 'run', '--simgpu', '-o', '/mnt/trace', '--', *command], {})):
        variables = environment(**{'GPUTRACE_OUTPUT': '/mnt/trace', **extra, **(env or {})})
        code, out, err = there(script, full, variables)
        wait_for_orphans()
        check_equal((code, out), plain[:2], f'{what}, {way}: exit code and output ({err!r})')
        if way == 'preload':
            check_equal(err, plain[2], f'{what}: nothing on stderr')
        else:
            check(b'error' not in err and b'warning' not in err, f'{what}: run has nothing to complain of', err)
        said = [row['text'] for row in rows(scratch('trace'), 'quality-notes') if row['what'] == 'option']
        check(words is None and not said or words is not None and len(said) == 1 and words in said[0], f'{what}, {way}: what is said', said)
        check_equal(metrics(scratch('trace'))['launches'], LAUNCHES, f'{what}, {way}: every launch')
        check(report(scratch('trace'))['coverage']['complete'], f'{what}, {way}: complete', report(scratch('trace'))['coverage'])
        shutil.rmtree(scratch('trace'))


SHARED_MEMORY = [
    ('of 64 MB', 'mount -t tmpfs -o size=64m none /dev/shm'),
    ('full', 'mount -t tmpfs -o size=64k none /dev/shm && { head -c 1M /dev/zero >/dev/shm/full 2>/dev/null || true; }'),
    ('read-only', 'mount -t tmpfs -o ro none /dev/shm'),
    ('noexec', 'mount -t tmpfs -o noexec none /dev/shm'),
    ('missing', NO_DEV),
]


def test_shared_memory():
    for what, script in SHARED_MEMORY:
        check_traced(f'/dev/shm {what}', script)


def test_a_ring_in_shared_memory():
    # Reserved before it is used: where it does not fit it is in memory, and no store ends in SIGBUS.
    for what, script in SHARED_MEMORY:
        fits = what in ('noexec', 'missing')  # the folder is made: /dev is a memory file system here
        check_traced(f'a ring of 128 MB in /dev/shm {what}', script, {'GPUTRACE_SHM': 'file:/dev/shm/rings', 'GPUTRACE_BUFFER': '128M'}, None if fits else 'it is in memory')


def test_no_home_no_tmp():
    check_traced('no HOME', 'unset HOME')
    check_traced('no /tmp', 'mount -t tmpfs -o ro none /tmp')
    check_traced('an empty environment but for ours', 'unset HOME PATH USER SHELL LANG PWD')
    check_traced('no /sys', 'mount -t tmpfs -o ro none /sys')
    check_traced('no /etc', 'mount -t tmpfs -o ro none /etc')


def test_a_root_that_cannot_be_written():
    script = 'mount -o remount,bind,ro /'
    check_traced('a read-only root', script)
    command = [program('drv_linked')]
    code, out, err = there(script, [places.gputrace, 'run', '--simgpu', '-o', '/opt/traces', '--', *command], environment())
    check_equal((code, out), (125, b''), 'refused before the program starts')
    check(b'is read-only' in err and b'fix: -o DIR' in err, 'the reason', err)
    code, out, err = there(script, command, environment(LD_PRELOAD=places.library, GPUTRACE_OUTPUT='/opt/traces'))
    check_equal((code, out, err), (0, untraced(command).stdout, b''), 'under a bare preload the program goes on')


def test_no_proc():
    command = [program('drv_linked')]
    script = 'mount -t tmpfs -o ro none /proc'
    plain = there(script, command, environment())
    for env in ({}, {'GPUTRACE_SHM': 'file:/mnt/rings'}):
        code, out, err = there(script, command, environment(LD_PRELOAD=places.library, GPUTRACE_OUTPUT='/mnt/trace', **env))
        check_equal((code, out, err), plain, 'without /proc the program runs as it does')
        wait_until(lambda: report(scratch('trace'))['coverage']['complete'] if glob.glob(scratch('trace', '*.gtrace')) else False, 'a whole trace')
        check_equal(metrics(scratch('trace'))['launches'], LAUNCHES, 'every launch')
        shutil.rmtree(scratch('trace'))
    code, out, err = there(script, [places.gputrace, 'run', '--simgpu', '-o', '/mnt/trace', '--', 'touch', '/mnt/it-ran'], environment())
    check_equal((code, out), (125, b''), 'run refuses')
    check(b'/proc is not mounted here' in err and b'the program was not started' in err and b'fix: mount it, or: LD_PRELOAD=/' in err, 'why, and what to do', err)
    check(not os.path.exists(scratch('it-ran')) and not os.path.exists(scratch('trace')), 'nothing was started, nothing was made')
    code, out, err = there(script, [places.gputrace, 'doctor', '--simgpu'], environment())
    check(code == 1 and b'/proc is not mounted here' in out, 'doctor says it before', code, out, err)


def test_doctor_knows_whom_the_kernel_lets_look():
    """Yama's ptrace_scope, which this machine need not have."""
    doctor = [places.gputrace, 'doctor', '--simgpu']
    for scope, rights, said in ((0, '-sys_ptrace', None), (1, '+all', None), (3, '+all', b'calls are not seen (kernel.yama.ptrace_scope is 3)'),
                                (2, '-sys_ptrace', b'calls are not seen (kernel.yama.ptrace_scope is 2)'),
                                (1, '-sys_ptrace', b'calls: with gputrace run; not by LD_PRELOAD alone (kernel.yama.ptrace_scope is 1)')):
        script = f'mount -t tmpfs none /proc/sys/kernel && mkdir /proc/sys/kernel/yama && echo {scope} > /proc/sys/kernel/yama/ptrace_scope'
        code, out, err = there(script, ['setpriv', '--bounding-set', rights, *doctor], environment())
        check((code, err) == (0, b''), 'doctor is content', code, out, err)
        check((said in out) if said else (b'lines between' not in out), f'scope {scope}, {rights}', out)


def test_a_user_without_a_name():
    if os.geteuid() != 0 or not shutil.which('setpriv'):
        skip('needs root, and setpriv of util-linux')
    shutil.copytree(places.tree, scratch('tree'), ignore=shutil.ignore_patterns('.lock'))
    shutil.copy(program('drv_linked'), scratch('tree', 'program'))
    os.chmod(scratch(), 0o755)
    os.mkdir(scratch('home'))
    os.chown(scratch('home'), 54321, 54321)
    subprocess.run(['chmod', '-R', 'a+rX', scratch('tree')], check=True)
    run = [scratch('tree', 'bin', 'gputrace'), 'run', '--simgpu', '-o', scratch('home', 'trace'), '--', scratch('tree', 'program')]
    code, out, err = finish(start(['setpriv', '--reuid=54321', '--regid=54321', '--clear-groups', *run], environment(HOME=None, USER=None), cwd='/'))
    wait_for_orphans()
    check_equal((code, out), (0, untraced([program('drv_linked')]).stdout), f'exit code and output ({err!r})')
    check(b'error' not in err and b'warning' not in err, 'nothing to complain of', err)
    check_equal(metrics(scratch('home', 'trace'))['launches'], LAUNCHES, 'every launch')


main()
