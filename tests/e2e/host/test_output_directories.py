# meson: timeout=120
# Whose output directory may be used (a link that root made is fine for all): row by row, by each of two users, under `run` (which refuses before the program starts) and under a bare preload
# (where the program goes on and nothing is written).
from small_programs import *

NOBODY = 65534

# What is made before (PATH: the output directory; the parent is sticky and open to all, as /tmp is), who owns it, its mode; whether root and another user
# may use it; what is said if not.
TABLE = [
    ('not there yet', None, None, True, True, ''),
    ('its own', 'self', 0o700, True, True, ''),
    ('its own, others read', 'self', 0o755, True, True, ''),
    ('its own, the group writes', 'self', 0o770, False, False, 'other users may write to'),
    ('its own, everybody writes', 'self', 0o777, False, False, 'other users may write to'),
    ('its own, everybody writes, sticky', 'self', 0o1777, False, False, 'other users may write to'),
    ("another's", 'other', 0o700, True, False, 'another user'),
    ("another's, everybody writes", 'other', 0o777, False, False, 'another user|other users may write to'),
    ('below a sticky one', 'below', 0o1777, True, True, ''),
    ('a link of its own', 'link', None, True, True, ''),
    ("another's link", 'foreign link', None, False, True, 'a link that another user made'),
    ("below another's link", 'below foreign link', None, False, True, 'a link that another user made'),
]


def as_user(user):
    """What must stand before a command of that user."""
    return [] if user == 0 else ['setpriv', f'--reuid={user}', f'--regid={user}', '--clear-groups']


def made(what, user, mode, name):
    """The output directory of that row."""
    other = NOBODY if user == 0 else 0
    path = scratch('open', name)
    if what in ('self', 'other'):
        os.mkdir(path)
        os.chown(path, user if what == 'self' else other, -1)
        os.chmod(path, mode)
    elif what == 'below':
        os.mkdir(path)
        os.chmod(path, mode)
        path = os.path.join(path, 'deep')
    elif what and 'link' in what:
        target = scratch('open', name + '-target')
        os.mkdir(target)
        os.chown(target, user, -1)
        os.symlink(target, path)
        os.chown(path, user if what == 'link' else other, -1, follow_symlinks=False)
        path = os.path.join(path, 'deep') if 'below' in what else path
    return path


def reachable():
    """Scratch, the library and the programs, for a user who may not look into our folders."""
    if os.geteuid() != 0 or not shutil.which('setpriv'):
        skip('needs root, and setpriv of util-linux')
    os.chmod(scratch(), 0o755)
    os.mkdir(scratch('open'))
    os.chmod(scratch('open'), 0o1777)
    shutil.copytree(places.tree, scratch('tree'), ignore=shutil.ignore_patterns('.lock'))
    shutil.copy(program('drv_linked'), scratch('tree', 'program'))
    subprocess.run(['chmod', '-R', 'a+rX', scratch('tree')], check=True)


def traces_of(path):
    return glob.glob(os.path.join(path, '**', '*.gtrace'), recursive=True) + glob.glob(os.path.join(path + '-target', '**', '*.gtrace'), recursive=True)


def test_row_by_row():
    reachable()
    plain = untraced([program('drv_linked')])
    for number, (what, makes, mode, root_may, other_may, why) in enumerate(TABLE):
        for user, may in ((0, root_may), (NOBODY, other_may)):
            for way in ('preload', 'run', 'allowed'):
                row = f'{what}, user {user}, {way}'
                path = made(makes, user, mode, f'{number}-{user}-{way}')
                allowed = may or (way == 'allowed' and 'link' not in (makes or '') and not (makes == 'other' and mode == 0o700))
                command = [scratch('tree', 'program')]
                env = environment(LD_LIBRARY_PATH=scratch('tree/lib/gputrace/simgpu'), HOME=scratch('open'))
                if way == 'preload':
                    env.update(LD_PRELOAD=scratch('tree/lib/libgputrace.so'), GPUTRACE_OUTPUT=path)
                else:
                    command = [scratch('tree/bin/gputrace'), 'run', '-o', path, *(['--allow-shared-dir'] if way == 'allowed' else []), '--', *command]
                if way == 'run':
                    said = json.loads(finish(start([*as_user(user), scratch('tree/bin/gputrace'), 'doctor', '--simgpu', '--json', '-o', path], env))[1])
                    output = [line for line in said['checks'] if line['text'].startswith('output')]
                    check(len(output) == 1 and (output[0]['status'] in ('ok', 'warn')) == allowed and (allowed or re.search(why, output[0]['text'])), f'{row}: doctor knows it before', output)
                code, out, err = finish(start([*as_user(user), *command], env))
                check(not wait_for_orphans(), f'{row}: the sidecar ends')
                found = traces_of(scratch('open', f'{number}-{user}-{way}'))
                check(bool(found) == allowed, f'{row}: a trace', found, code, err)
                if allowed or way == 'preload':
                    check_equal((code, out), (plain.returncode, plain.stdout), f'{row}: the program runs')
                else:
                    check(code == 125 and not out and re.search(why + ('|Permission denied' if way == 'allowed' else ''), err.decode()) and path in err.decode(), f'{row}: refused before it starts', code, out, err)
                for trace in found:
                    status = os.stat(trace)
                    check_equal((stat_mode(trace), status.st_uid), ('0o600', user), f'{row}: mode and owner of the file')
                    notes = json.dumps(report(trace))
                    shared = allowed and not may
                    check(('GPUTRACE_ALLOW_SHARED_DIR' in notes) == shared, f'{row}: a shared directory is said', notes[:1500])


def stat_mode(path):
    return oct(os.stat(path).st_mode & 0o777)


def test_a_strange_owner_is_said():
    """A file that another user put into the directory of a run."""
    reachable()
    run = traced([program('drv_linked')])
    check('another owner' not in json.dumps(report(run)) , 'nothing is said of our own')
    os.chown(run.trace, NOBODY, -1)
    said = json.dumps(report(run))
    check('owner' in said or 'another user' in said, 'it is said', said[:3000])


main()
