# meson: serial timeout=300
# Sets of traces that are large without holding much: files by the thousand, a terabyte of which nearly all is a hole, an interrupt in the middle of
# reading them. Memory and processor time are bounded by what is there.
import signal

from against_truth import *

FULL = bool(os.environ.get('GT_FULL'))
TRACE = os.path.join(SOURCE, 'tests', 'corpus', '0.1.0-train.gtrace')


def cost(*arguments):
    """(seconds of processor time, MB, exit code, standard output) of one `gputrace ARGUMENTS`."""
    with open(scratch('out'), 'wb') as out:
        pid = os.posix_spawn(places.gputrace, [places.gputrace, *arguments], environment(MALLOC_PERTURB_=None),
                             file_actions=[(os.POSIX_SPAWN_DUP2, out.fileno(), 1)])
    _, status, usage = os.wait4(pid, 0)
    with open(scratch('out'), encoding='utf-8') as file:
        return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, os.waitstatus_to_exitcode(status), file.read()


def copies(count):
    folder = scratch('copies')
    os.makedirs(folder)
    for index in range(count):
        shutil.copy(TRACE, os.path.join(folder, f'{index}.gtrace'))
    return folder


def test_thousands_of_files():
    count = 10000 if FULL else 1000
    alone = json.loads(cost('report', '--json', TRACE)[3])
    took, megabytes, code, said = cost('report', '--json', copies(count))
    check(code == 0 and megabytes <= 2048 and took <= 60, f'{count} files: {took:.1f} s, {megabytes:.0f} MB, exit code {code}')
    coverage = json.loads(said)['coverage']
    check_equal((coverage['processes'], coverage['records']), (1, alone['coverage']['records']), 'the same process again and again counts once')


def test_a_terabyte_of_nothing():
    # Behind its last chunk; it was read, 64 KiB by 64 KiB.
    path = scratch('sparse.gtrace')
    shutil.copy(TRACE, path)
    try:
        os.truncate(path, 1 << 40)
    except OSError as error:
        skip(f'no such file here: {error}')
    records = {file: len(cost('dump', file)[3].splitlines()) for file in (TRACE, path)}
    check_equal(records[path], records[TRACE], 'every record is there')
    for arguments in (['report', '--json'], ['report'], ['dump']):
        took, megabytes, code, said = cost(*arguments, path)
        check(code == 0 and took <= 2 and megabytes <= 256, f'{arguments}: {took:.2f} s, {megabytes:.0f} MB, exit code {code}')
    coverage = json.loads(cost('report', '--json', path)[3])['coverage']
    check_equal((coverage['complete'], coverage['missing']), (False, ['1 trace was not written to the end, or damaged']), 'the hole is said')


def test_interrupted():
    # Ctrl-C while a thousand files are being read, into a pipe that nobody empties: it ends by that signal, without a word, and leaves nothing beside them.
    folder = copies(1000)
    before = sorted(os.listdir(folder))
    process = start([places.gputrace, 'dump', folder], environment(), preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    check(process.stdout.read(1000), 'it writes')
    process.send_signal(signal.SIGINT)
    process.wait(timeout=20)
    _, err = process.communicate()
    check_equal((process.returncode, err), (-signal.SIGINT, b''), 'ended by the signal')
    check_equal(sorted(os.listdir(folder)), before, 'nothing beside them')


main()
