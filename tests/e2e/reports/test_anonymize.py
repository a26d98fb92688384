# `gputrace anonymize`: no name of the original is left, times and structure are equal, the same name has the same pseudonym.
import functools
import re
import shutil
import stat
import subprocess

from harness import *

GOLDEN = os.path.join(SOURCE, 'tests', 'corpus', 'golden')
# What is no name of anybody's: words of our own, parts of paths that every machine has, products.
OURS = re.compile(r'gputrace-.*|definitions|NVIDIA .*|Simulated GPU.*|[-+\d.:]{1,12}|site-packages|dist-packages|local|home|root|proc|lib64|sbin|python3[.\d]*|\(.*\)|multiprocessing')
SECTIONS = ('kernels', 'api', 'copies', 'memory', 'graphs', 'jit', 'libs', 'comm', 'launches', 'sync', 'steps', 'nvtx', 'devices', 'tensor-cores', 'idle-causes')
COVERAGE = ('processes', 'records', 'dropped', 'unknown_records', 'truncated', 'device_timing')
NAMES = {'kernel', 'symbol', 'site', 'op', 'range', 'domain', 'image', 'uuid', 'call_site'}


@functools.lru_cache(maxsize=2)  # before and after
def dumped(path, _written):
    return [json.loads(line) for line in gputrace('dump', '--json', path)[0].splitlines()]


def records_of(path):
    return dumped(path, os.stat(path).st_mtime_ns)


def info_of(path):
    return [json.loads(line) for line in gputrace('dump', '--info', '--json', path)[0].splitlines()]


def anonymized(paths, *options, to=None):
    to = to or scratch('anonymized')
    shutil.rmtree(to, ignore_errors=True)
    gputrace('anonymize', *paths, '-o', to, *options)
    return to


SENTENCES = {'reason', 'text', 'not_collected', 'option_warning', 'recovered'}  # ours, with paths in them
WORDS = ('record', 'call', 'level', 'variant', 'class', 'trace')


def is_word(key):
    """The value of that field is a word of the schema."""
    return key in WORDS or key.endswith('_name')


def names(path, texts=True):
    """Every text of a trace and every value about its process; of sentences the paths."""
    said = []
    for record in records_of(path):
        if texts or record['record'] != 'Text':  # a sentence, too
            said += [(key, value) for key, value in record.items() if isinstance(value, str) and not is_word(key)]
    for info in info_of(path):
        said += [(info['info'], part) for part in info['value'].split('\x1f')]
    return {word for key, value in said for word in (re.split(r'[\s,;()]+', value) if key in SENTENCES else [value]) if key not in SENTENCES or '/' in word}


ABOUT = {'executable', 'argv', 'cwd', 'host', 'boot_id', 'job', 'run', 'output'}


def originals(path):
    """Those that must go: four bytes and longer, with the parts of paths; nothing that the schema or we said."""
    ours = set()
    for info in info_of(path):
        if info['info'] not in ABOUT and not info['info'].startswith('env.'):
            ours.update([info['value'], *re.split(r'[^A-Za-z0-9_]+', info['value'])])
    found = names(path, texts=False) - ours
    parts = {part for text in found if '/' in text for part in text.split('/')} | found
    return {part for part in parts - ours if len(part) >= 4 and not all(len(each) < 4 or OURS.fullmatch(each) for each in part.split('/'))}


def structure(path):
    """Each record without what names something."""
    kept = []
    for record in records_of(path):
        kept.append({key: value for key, value in record.items() if not isinstance(value, str) or (is_word(key) and key != 'trace')})
    return kept


def decoded(path):
    """All that the file says, as its reader gives it."""
    return (gputrace('dump', '--json', path)[0] + gputrace('dump', '--info', '--json', path)[0]).encode()


def check_traces(paths):
    to = anonymized(paths)
    now = sorted(glob.glob(os.path.join(to, '*.gtrace')))
    check_equal(len(now), len(paths), 'a trace for each')
    check_equal(stat.S_IMODE(os.stat(to).st_mode), 0o700, 'the directory is the user\'s alone')
    for before, after in zip(paths, now):
        check_equal(stat.S_IMODE(os.stat(after).st_mode), 0o600, 'so is the trace')
        there, here = structure(before), structure(after)
        check_equal(len(here), len(there), 'records')
        for one, other in zip(there, here):
            for key in ('uuid_low', 'uuid_high', 'total', 'id', 'size'):  # of devices and of texts
                one.pop(key, None), other.pop(key, None)
            one = {key: value for key, value in one.items() if not text_field(key, value, other.get(key))}
            other = {key: other[key] for key in one if key in other}
            check_equal(other, one, 'a record')
        said = re.sub(r'(?<![A-Za-z0-9])(kernel|op|function|name|range|domain|thread|build|host|boot|job|argument|value|text)_[0-9]+', '',
                      '\n'.join(name for name in names(after) if not re.fullmatch('gputrace-[a-z]+', name)))  # our threads' names stay
        left = sorted(text for text in originals(before) if re.search(r'(?<![A-Za-z0-9])' + re.escape(text) + r'(?![A-Za-z0-9])', said))
        check(not left, 'no name is left', left, [line for line in said.split('\n') if any(word in line for word in left)])
    return to, now


def text_field(key, before, after):
    return isinstance(before, int) and isinstance(after, int) and before > 1 << 32 and key in TEXT_FIELDS


TEXT_FIELDS = {'message', 'domain', 'function', 'file', 'object', 'path', 'name', 'text', 'reason', 'build_id', 'driver_path', 'runtime_path'}


def numbers(rows):
    """The rows without what names something, in an order of their own."""
    return sorted(json.dumps({key: value for key, value in row.items() if key not in NAMES}, sort_keys=True) for row in rows)


def check_reports(paths, now):
    before, after = report(paths), report(now)
    compared = 0
    for name in SECTIONS:
        if name not in before['sections']:
            continue
        check(name in after['sections'], f'{name} is there')
        there, here = before['sections'][name]['rows'], after['sections'][name]['rows']
        check_equal(len(here), len(there), f'{name}: rows')
        compared += len(there)
    check_equal(numbers(after['sections']['api']['rows']), numbers(before['sections']['api']['rows']), 'calls')
    check_equal([row.get('total_ns') for row in after['sections']['kernels']['rows']], [row.get('total_ns') for row in before['sections']['kernels']['rows']], 'time of kernels')
    for key in COVERAGE:
        check_equal(after['coverage'][key], before['coverage'][key], key)
    check(compared > 10, 'rows were compared', compared)


def golden(name):
    paths = sorted(glob.glob(os.path.join(GOLDEN, name, '*.gtrace')))
    to, now = check_traces(paths)
    check_reports(paths, now)
    return paths, now


def test_train():
    golden('train')


def test_products():
    golden('products')


def test_two_ranks():
    # What both name has one name: the ranks are still of one host and one run.
    paths, now = golden('collectives')
    check_equal(report(now, 'run')['sections']['run']['rows'][0]['host'], report(now, 'run')['sections']['run']['rows'][1]['host'], 'one host')


def test_kept_traces():
    # Ranges, machine code in memory, a death within a call, graphs, losses, four ranks.
    kept = os.path.join(SOURCE, 'tests', 'corpus', 'kept')
    for name in sorted(os.listdir(kept)):
        paths = sorted(glob.glob(os.path.join(kept, name, '**', '*.gtrace'), recursive=True))
        if paths:
            _, now = check_traces(paths)
            check_equal({key: report(now)['coverage'][key] for key in COVERAGE}, {key: report(paths)['coverage'][key] for key in COVERAGE}, name)


def test_the_same_name_again():
    # Twice the same; and with a map also where other traces come first.
    train, products = (glob.glob(os.path.join(GOLDEN, name, '*.gtrace')) for name in ('train', 'products'))
    kept = scratch('map')
    first = decoded(os.path.join(anonymized(train, '--map', kept, to=scratch('first')), 'process_0001.gtrace'))
    check_equal(stat.S_IMODE(os.stat(kept).st_mode), 0o600, 'the map is for its owner')
    again = decoded(os.path.join(anonymized(train, to=scratch('first')), 'process_0001.gtrace'))
    check_equal(again, first, 'the same input gives the same names')
    anonymized(products, '--map', kept, to=scratch('other'))
    last = decoded(os.path.join(anonymized(train, '--map', kept, to=scratch('first')), 'process_0001.gtrace'))
    check_equal(last, first, 'so does a map that has grown since')
    with open(kept, encoding='utf-8') as file:
        lines = [line.rstrip('\n').split('\t') for line in file]
    check_equal(len({tuple(line[:2]) for line in lines}), len(lines), 'a pseudonym stands for one name')
    check(any(line[0] == 'host' and line[2] == 'vm' for line in lines), 'what stands for what')


def test_what_is_kept_and_refused():
    train = glob.glob(os.path.join(GOLDEN, 'train', '*.gtrace'))
    odd = scratch("a place's name")
    told = gputrace('anonymize', *train, '-o', odd)[1]
    done = subprocess.run(['sh', '-c', told.rsplit('look at what is left: ', 1)[1]], stdout=subprocess.PIPE, check=True)
    check(b'host\thost_1\n' in done.stdout, 'what it says to do works', told, done.stdout)
    check('left out' not in told, 'all of it was read', told)
    keys = [info['info'] for info in info_of(train[0])]
    check_equal([info['info'] for info in info_of(os.path.join(odd, 'process_0001.gtrace'))], ['anonymized', *keys], 'facts about the process')
    names = {row['symbol'] for row in rows(train, 'kernels')}
    kept = anonymized(train, '--keep', 'kernels')
    check_equal({row['symbol'] for row in rows(sorted(glob.glob(os.path.join(kept, '*.gtrace'))), 'kernels')}, names, '--keep kernels')
    check('holds traces already' in gputrace('anonymize', *train, '-o', kept, rc=1)[1], 'nothing is written over')
    check('did you mean' in gputrace('anonymize', *train, '-o', scratch('x'), '--keep', 'kernel', rc=2)[1], 'unknown kind')
    with open(scratch('nomap'), 'w', encoding='utf-8') as file:
        file.write('kernel\t7\tx\n')
    gputrace('anonymize', *train, '-o', scratch('y'), '--map', scratch('nomap'), rc=3)


def test_a_damaged_trace():
    # Cut anywhere, and with bytes that changed: what can be read is written, what cannot is said, nothing of it is left in between.
    [train] = glob.glob(os.path.join(GOLDEN, 'train', '*.gtrace'))
    with open(train, 'rb') as file:
        whole = file.read()
    broken = scratch('broken.gtrace')
    for place in range(1, 12):
        at = len(whole) * place // 12 // 8 * 8
        for made in (whole[:at + 4], whole[:at] + bytes(16) + whole[at + 16:]):
            with open(broken, 'wb') as file:
                file.write(made)
            to = scratch('mended')
            shutil.rmtree(to, ignore_errors=True)
            told = gputrace('anonymize', broken, '-o', to)[1]
            [now] = glob.glob(os.path.join(to, '*.gtrace'))
            before, after = report(broken)['coverage'], report(now)['coverage']
            check('left out' in told, 'it is said', told)
            check_equal((after['truncated'], after['records']), (before['truncated'], before['records']), f'at {at}')
            check('could not be read' in gputrace('dump', '--info', now)[0], 'so it is in the new trace')
            said = '\n'.join(names(now))
            check_equal([text for text in originals(train) if '/' in text and text in said], [], 'paths that are left')


def test_a_program_of_now():
    # Ranges, Python lines, threads' names, secrets of the environment: a trace that this version wrote.
    run = traced([program('drv_threads'), 'threads=3', 'alive=3', 'launches=4'])
    to, now = check_traces(run.traces)
    check_equal(metrics(now)['launches'], 12, 'launches')


main()
