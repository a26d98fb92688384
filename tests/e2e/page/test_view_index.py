# gputrace view: the index of the events that it keeps beside the traces. It answers what the traces say, byte by byte, or it is made anew.
import stat
import threading

from device_truth import *
from pages import *

WINDOWS = [(0, 10**12), (-5000, 700), (0, 10**7), (3 * 10**6, 3 * 10**6 + 1), (10**12, 2 * 10**12)]
WINDOWS += [(begin, begin + 400_000) for begin in range(0, 16_000_000, 800_000)]
KEPT = 'gputrace: kept an index of the events'


class Answers:
    """A start of view: its page, windows, and what it said."""

    def __init__(self, *paths, index='always', most=100, variables=None, hide=None, below=()):
        with View(*paths, options=('--events', str(most), '--index', index), variables=variables, below=below) as view:
            self.told = view.told()
            if hide:
                os.rename(hide, hide + '.hidden')
            status, _, self.page = view.get(f'/{view.token}/')
            check_equal(status, 200, 'the page')
            self.windows = [view.get(f'/{view.token}/events?from={begin}&to={end}')[::2] for begin, end in WINDOWS]
            if hide:
                os.rename(hide + '.hidden', hide)

    def check_like(self, other, what):
        check(self.page == other.page, f'{what}: the page', len(self.page), len(other.page))
        for window, ours, theirs in zip(WINDOWS, self.windows, other.windows):
            check_equal(ours, theirs, f'{what}: {window}')


def run_of(program_name='launches_shared', name='out'):
    """A folder with the traces of a run, and one of those."""
    run = traced_device([program(program_name)])
    output = scratch(name)
    os.rename(run.output, output)
    return output, glob.glob(os.path.join(output, '*.gtrace'))[0]


def indexes(folder):
    return sorted(name for name in os.listdir(folder) if '.index' in name) if os.path.isdir(folder) else []


def the_index(folder):
    found = indexes(folder)
    check_equal(len(found), 1, f'one index of {found}')
    return os.path.join(folder, found[0])


def contents(path):
    with open(path, 'rb') as file:
        return file.read()


def put(path, data):
    with open(path, 'wb') as file:
        file.write(data)
    os.chmod(path, 0o600)


def test_it_answers_what_the_traces_say():
    folder, trace = run_of()
    for most in (100, 1000, 1_000_000):
        wanted = Answers(folder, index='never', most=most)
        check_equal((indexes(folder), KEPT in wanted.told), ([], False), 'none is made')
        check(all(status == 200 for status, _ in wanted.windows), 'answers')
        made = Answers(folder, most=most, hide=folder)
        check(KEPT in made.told and the_index(folder) in made.told, 'it says where', made.told)
        check_equal(stat.S_IMODE(os.lstat(the_index(folder)).st_mode), 0o600, 'for us alone')
        check(not os.path.exists(scratch('home', '.cache')), 'the cache is left alone')
        before = os.lstat(the_index(folder))
        made.check_like(wanted, f'{most} events, made')
        # Where the traces are away nothing else can have answered.
        found = Answers(folder, most=most, hide=folder)
        check(KEPT not in found.told, 'found', found.told)
        check_equal(os.lstat(the_index(folder)), before, 'as it was')
        found.check_like(wanted, f'{most} events, found')
        os.unlink(the_index(folder))
        check(most > 100 or len({body for _, body in wanted.windows}) > 3, 'windows that differ')
    # One index for all sizes of the page.
    few, many = Answers(folder), Answers(folder, most=5000)
    check(KEPT in few.told and KEPT not in many.told, 'made once')
    many.check_like(Answers(folder, index='never', most=5000), 'another size')
    # Without traces and index there is nothing to answer from.
    check_equal([status for status, _ in Answers(folder, index='never', hide=folder).windows], [500] * len(WINDOWS), 'without')


def test_parts_of_the_run():
    """Steps, of an index that was found: they are kept with it, so the traces are read once. Of a time too. What was asked for before costs nothing."""
    run = traced([program('train')], mode='run', output=scratch('out'))
    queries = ('steps=5-9', 'steps=3', 'steps=2-', 'from=2000000&to=9000000', 'steps=900-', 'steps=9-5')

    def parts(index):
        with View(run.output, options=('--index', index)) as view:
            told = view.told()
            once = [view.get(f'/{view.token}/?{query}')[::2] for query in queries]
            os.rename(run.output, run.output + '.hidden')
            again = [view.get(f'/{view.token}/?{query}')[::2] for query in queries]
            other = view.get(f'/{view.token}/?steps=4')[0]
            os.rename(run.output + '.hidden', run.output)
        check_equal(again[:4], once[:4], f'{index}: asked again, without the traces')
        check_equal(other, 400, f'{index}: another part cannot be had without the traces')
        return told, once

    _, wanted = parts('never')
    check_equal([status for status, _ in wanted], [200, 200, 200, 200, 400, 400], 'answers')
    check(len({body for _, body in wanted}) == len(queries), 'they differ')
    made, found = parts('always'), parts('always')
    check((KEPT in made[0], KEPT in found[0]) == (True, False), 'made, then found', made[0], found[0])
    for told, answers in (made, found):
        for query, ours, theirs in zip(queries, answers, wanted):
            check(ours == theirs, f'{query}: with an index and without', told)


def test_damage_is_made_anew():
    folder, _ = run_of()
    wanted = Answers(folder, index='never')
    Answers(folder)
    path = the_index(folder)
    good = contents(path)

    def flipped(at):
        return good[:at] + bytes([good[at] ^ 0x10]) + good[at + 1:]

    damages = {'empty': b'', 'cut': good[:len(good) // 2], 'one byte short': good[:-1], 'longer': good + b'x', 'text': b'index\n' * 1000,
               'the end': flipped(len(good) - 3), 'the directory': flipped(len(good) - 120), 'zeros': bytes(len(good))}
    for what, data in damages.items():
        put(path, data)
        again = Answers(folder)
        check(KEPT in again.told, f'{what}: made anew', again.told)
        again.check_like(wanted, what)
        check_equal(contents(path) == data, False, f'{what}: replaced')
    # Within the events: told when they are read.
    for at in range(0, len(good), max(1, len(good) // 12)):
        put(path, flipped(at))
        Answers(folder).check_like(wanted, f'byte {at}')
    for at in range(3):  # a byte of the first block of events: whoever read it has removed the index
        put(path, flipped(20 + at))
        Answers(folder)
        again = Answers(folder)
        again.check_like(wanted, 'after damage')
        check(KEPT not in Answers(folder).told, 'whole again')
    check_equal(len(indexes(folder)), 1, 'nothing is left over')


def test_it_is_of_these_very_traces():
    folder, trace = run_of()
    other, other_trace = run_of('streams_shared', name='other')
    Answers(folder)
    Answers(other)
    # Another run's index under this one's name; and links, which are not followed.
    mine, theirs = the_index(folder), the_index(other)
    wanted = Answers(folder, index='never')
    put(mine, contents(theirs))
    again = Answers(folder)
    check(KEPT in again.told, 'another run', again.told)
    again.check_like(wanted, 'another run')
    good = contents(mine)
    put(scratch('elsewhere'), good)
    os.unlink(mine)
    os.symlink(scratch('elsewhere'), mine)
    os.symlink(scratch('elsewhere'), mine + '.new')
    again = Answers(folder)
    check(KEPT in again.told, 'a link', again.told)
    again.check_like(wanted, 'a link')
    check_equal(contents(scratch('elsewhere')), good, 'what it led to')
    os.unlink(mine + '.new')
    for left in indexes(scratch('home', '.cache', 'gputrace')):
        os.unlink(scratch('home', '.cache', 'gputrace', left))
    if os.path.lexists(mine):
        os.unlink(mine)
    Answers(folder)
    os.chmod(the_index(folder), 0o666)
    check(KEPT in Answers(folder).told, 'one that others may write to')
    # What a maker that was killed left.
    os.unlink(the_index(folder))
    put(mine + '.new', b'half')
    check(KEPT in Answers(folder).told, 'a rest')
    check_equal(indexes(folder), [os.path.basename(mine)], 'nothing is left over')
    # Touched; then another trace in its place; then one more beside it.
    os.utime(trace)
    check(KEPT in Answers(folder).told, 'touched')
    check(KEPT not in Answers(folder).told, 'and kept')
    put(trace, contents(other_trace))
    again = Answers(folder)
    check(KEPT in again.told, 'replaced', again.told)
    again.check_like(Answers(folder, index='never'), 'replaced')
    put(os.path.join(folder, 'more.gtrace'), contents(other_trace))
    again = Answers(folder)
    check(KEPT in again.told, 'one more', again.told)
    again.check_like(Answers(folder, index='never'), 'one more')


def test_where_it_lies():
    folder, trace = run_of()
    cache = scratch('home', '.cache', 'gputrace')
    # Not ours, or anybody's: the cache.
    for mode, owner in ((0o777, None), (0o755, 65534)) if os.geteuid() == 0 else ((0o777, None), (0o555, None)):
        os.chmod(folder, mode)
        if owner:
            os.chown(folder, owner, owner)  # the report has a note on that: what was kept before would lie
        wanted = Answers(folder, index='never')
        made, found = Answers(folder), Answers(folder, hide=folder)
        check(KEPT in made.told and KEPT not in found.told, 'kept in the cache', made.told, found.told)
        made.check_like(wanted, 'made'), found.check_like(wanted, 'found')
        check_equal(indexes(folder), [], 'not beside the traces')
        check_equal(stat.S_IMODE(os.stat(cache).st_mode), 0o700, 'the cache')
        os.unlink(the_index(cache))
    away = scratch('away')
    os.mkdir(away)
    Answers(folder, variables={'XDG_CACHE_HOME': away})
    check(the_index(os.path.join(away, 'gputrace')), 'where the user wants it')
    # No place at all: for as long as it runs.
    nowhere = Answers(folder, variables={'HOME': None, 'XDG_CACHE_HOME': None}, hide=folder)
    check(KEPT not in nowhere.told and 'no index of the events is kept' in nowhere.told, 'it says so', nowhere.told)
    nowhere.check_like(wanted, 'nowhere')
    check_equal(indexes(folder) + indexes(cache), [], 'nothing is left')
    os.chmod(folder, 0o700)


def test_what_cannot_be_written_or_grows():
    folder, trace = run_of()
    wanted = Answers(folder, index='never')
    for most, why in ((1000, 'it cannot be written'), (20000, 'File too large')):  # the events do not fit; the page behind them
        limited = Answers(folder, below=('prlimit', f'--fsize={most}'))
        check(f'no index of the events is kept: {why}' in limited.told, 'a limit on files', limited.told)
        limited.check_like(wanted, 'a limit on files')
        check_equal(indexes(folder), [], 'nothing is left')
    ended = threading.Event()

    def touch():
        while not ended.is_set():
            os.utime(trace)

    touching = threading.Thread(target=touch)
    touching.start()
    try:
        grown = Answers(folder)
    finally:
        ended.set()
        touching.join()
    check('no index of the events is kept: the traces have changed meanwhile' in grown.told, 'a trace that is still written', grown.told)
    grown.check_like(wanted, 'a trace that is still written')
    check_equal(indexes(folder), [], 'nothing is left')


def test_not_for_small_runs_nor_in_quiet():
    folder, _ = run_of()
    Answers(folder, index='auto')
    check_equal(indexes(folder), [], 'a small run')
    with View(folder, options=('-q', '--index', 'always')) as view:
        check_equal(view.get(f'/{view.token}/')[0], 200, 'the page')
        check_equal(select.select([view.process.stderr], [], [], 0)[0], [], 'quiet')
    check_equal(len(indexes(folder)), 1, 'and made')
    check('none of auto, always, never' in gputrace('view', folder, '--index', 'often', rc=None)[2], 'a wrong word')


main()
