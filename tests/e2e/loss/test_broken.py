# meson: timeout=240
# Broken traces of every kind, and wrong usage: one clear line, the exit code of the interface, never a crash, never a wrong number in silence.
import json
import random
import struct

from against_truth import *

RESEAL = r'''
#include <xxhash.h>
#include <stdio.h>
int main(int argc, char** argv) {  /* FILE SIZE-OF-HEADER: writes the checksum of all but its last 8 bytes */
  unsigned char header[256]; unsigned size = 0;
  FILE* file = fopen(argv[1], "r+b");
  if (argc != 3 || !file || sscanf(argv[2], "%u", &size) != 1 || fread(header, 1, size, file) != size) return 1;
  unsigned long long sum = XXH3_64bits(header, size - 8);
  return fseek(file, size - 8, SEEK_SET) || fwrite(&sum, 8, 1, file) != 1 || fclose(file);
}
'''


def good_trace():
    run = traced([program('drv_loop'), 'calls=2000', 'threads=2'], {'SIMGPU_CALL_TIME': '0'})
    check_equal(metrics(run)['launches'], 4000, 'launches')
    with open(run.trace, 'rb') as file:
        return run.trace, file.read()


def written(name, data):
    path = scratch(name)
    with open(path, 'wb') as file:
        file.write(data)
    return path


def one_clear_line(err, *words):
    lines = err.strip().splitlines()
    check(1 <= len(lines) <= 2 and lines[0].startswith('gputrace: '), 'one line, and perhaps its fix', err)
    for word in words:
        check(word in err, f'it says {word!r}', err)
    check('terminate' not in err and 'Assertion' not in err, 'no crash', err)


def refused(code, *arguments, words=()):
    for verb in ('report', 'dump'):
        got, out, err = gputrace(verb, *arguments, rc=None)
        check_equal((got, out), (code, ''), f'gputrace {verb} {arguments} ({err!r})')
        one_clear_line(err, *words)


def test_not_a_trace():
    refused(3, scratch('nothing'), words=(scratch('nothing'),))
    refused(3, written('empty.gtrace', b''), words=('empty.gtrace',))
    refused(3, written('text.gtrace', b'hello, this is no trace\n' * 50), words=('not a',))
    refused(3, written('zero.gtrace', b'\0' * 5000))
    refused(3, written('magic.gtrace', b'GPUTRACE'))
    refused(3, '/dev/null')
    os.mkdir(scratch('folder'))
    refused(3, scratch('folder'), words=(scratch('folder'),))
    written('folder/other.txt', b'x')
    refused(3, scratch('folder'))
    if os.geteuid() != 0:
        os.chmod(scratch('empty.gtrace'), 0)
        refused(3, scratch('empty.gtrace'))
    code, out, err = gputrace('report', rc=None, cwd=scratch('folder'))
    check_equal((code, out), (3, ''), 'no run here')
    one_clear_line(err)


def test_newer_major():
    path, data = good_trace()
    size = struct.unpack_from('<I', data, 12)[0]
    tool = compiled('reseal.c', RESEAL, '-lxxhash')
    for offset, change, code in ((8, 1, 3), (10, 1, 0)):  # major, minor
        changed = bytearray(data)
        struct.pack_into('<H', changed, offset, struct.unpack_from('<H', data, offset)[0] + change)
        newer = written(f'newer{offset}.gtrace', bytes(changed))
        check_equal(subprocess.run([tool, newer, str(size)], timeout=10, check=False).returncode, 0, 'the header is sealed again')
        got, out, err = gputrace('report', newer, '--json', rc=None)
        check_equal(got, code, f'version field at {offset} ({err!r})')
        if code == 3:
            one_clear_line(err, 'newer')
        else:
            check_equal({row['metric']: row['value'] for row in json.loads(out)['sections']['overview']['rows']}['launches'], 4000, 'a newer minor is read')


def believable(path, data_size):
    """A damaged file: a finding or a refusal, and never more than was there."""
    code, out, err = gputrace('report', path, '--json', rc=None)
    check(code in (0, 3), f'{os.path.basename(path)}: exit code {code}', err)
    if code == 3:
        one_clear_line(err)
        return None
    said = json.loads(out)
    overview = {row['metric']: row['value'] for row in said['sections']['overview']['rows']}
    launches, dropped = overview['launches'], said['coverage']['dropped']
    check(launches <= 4000, 'no launch that was not', launches)
    if launches < 4000:
        check(said['coverage']['truncated'] or dropped, 'what is missing is said', said['coverage'])
    for row in said['sections']['quality']['rows']:
        check(row['exact'] is False or row['seen'] == row['stored'] + row['dropped'], 'seen = stored + dropped', row)
    return launches


def test_truncated_anywhere():
    path, data = good_trace()
    random.seed(9)
    places_ = sorted({len(data) * i // 25 for i in range(1, 25)} | {8, 63, 64, 65, 100, len(data) - 1, len(data) - 8, len(data) - 72} | {random.randrange(len(data)) for _ in range(12)})
    before = 0
    for at in places_:
        launches = believable(written('cut.gtrace', data[:at]), at)
        if launches is not None:
            check(launches >= before or launches == 0, 'more of the file, more of the launches', at, launches, before)
            before = max(before, launches)
    check(before > 0, 'some of them still show launches')
    code, out, err = gputrace('report', written('cut.gtrace', data[:len(data) - 100]), '--strict', '--json', rc=None)
    check(code == 4, '--strict refuses it', code, err)
    dumped = gputrace('dump', '--json', written('cut.gtrace', data[:len(data) * 3 // 4]))[0]
    check(all(json.loads(line) for line in dumped.splitlines()), 'dump prints what is there')


def test_bit_flips():
    path, data = good_trace()
    random.seed(8)
    for i in range(40):
        changed = bytearray(data)
        at = i if i < 8 else random.randrange(len(data))
        changed[at] ^= 1 << random.randrange(8)
        believable(written('flip.gtrace', bytes(changed)), len(data))


def test_zeroed_doubled_and_foreign_pieces():
    path, data = good_trace()
    third = len(data) // 3 & ~7
    for name, changed in (('tail zeroed', data[:-4096] + b'\0' * 4096), ('middle zeroed', data[:third] + b'\0' * 2048 + data[third + 2048:]),
                          ('garbage behind', data + b'garbage' * 100), ('twice', data + data), ('hole', data[:third] + data[third + 800:]),
                          ('text in the middle', data[:third] + b'x' * 77 + data[third:])):
        believable(written(name.replace(' ', '-') + '.gtrace', changed), len(data))


def test_a_damaged_file_beside_good_ones():
    path, data = good_trace()
    folder = os.path.dirname(path)
    with open(os.path.join(folder, 'torn.gtrace'), 'wb') as file:
        file.write(b'not a trace at all')
    code, out, err = gputrace('report', folder, '--json', rc=None)
    check_equal(code, 0, 'the good ones are read')
    said = json.loads(out)
    check_equal({row['metric']: row['value'] for row in said['sections']['overview']['rows']}['launches'], 4000, 'launches')
    check('torn.gtrace' in json.dumps(said['findings']) + json.dumps(said['coverage']), 'the other is named', said['findings'])
    check('torn.gtrace' in err, 'on stderr too', err)


def test_wrong_usage():
    path, _ = good_trace()
    for arguments, words in ((('reprot',), ('report',)), (('status',), ('unknown verb',)), (('report', path, '--no-such'), ('--no-such',)), (('report', path, '--section', 'kernals'), ('kernels',)),
                             (('report', path, '--format', 'xml'), ('json',)), (('report', path, '--sort', 'lunches'), ('launches',)), (('report', path, '--format', 'csv'), ('--section',)),
                             (('report', path, '--from', 'then'), ('--from',)), (('report', path, '--from', '2s', '--to', '1s'), ('--from',)), (('report', path, '--top', 'x'), ('--top',)),
                             (('report', path, '--section', 'turns'), ('unknown section',)), (('dump', path, '--color', 'blue'), ('--color',)), (('--no-such',), ('--no-such',))):
        code, out, err = gputrace(*arguments, rc=None)
        check_equal((code, out), (2, ''), f'gputrace {arguments} ({err!r})')
        one_clear_line(err, *words)
    code, out, err = gputrace(rc=None)
    check(code == 2 and out == '' and 'usage' in err.lower(), 'no verb', code, out, err)
    for arguments in (('--help',), ('--version',), ('report', '--help'), ('run', '-h'), ('dump', '--help'), ('doctor', '--help'), ('env', '--help')):
        code, out, err = gputrace(*arguments, rc=None)
        check(code == 0 and out and not err, f'gputrace {arguments}', code, err)


def test_a_path_may_follow_any_option():
    path, _ = good_trace()
    code, out, err = gputrace('report', '--json', '--section', 'api', path, rc=None)
    check(code == 0, 'a path after --section', code, err)
    check_equal(list(json.loads(out)['sections']), ['api'], 'the section asked for')
    code, out, err = gputrace('report', '--json', '--section', 'api', '--section', 'sync,run', path, rc=None)
    check_equal((code, sorted(json.loads(out)['sections'])), (0, ['api', 'run', 'sync']), 'sections of both')


def test_a_reader_that_leaves():
    path, _ = good_trace()
    done = finish(start(['bash', '-c', f'set -o pipefail; {places.gputrace} dump {path} | head -n 2 >/dev/null; echo ${{PIPESTATUS[0]}}']), 30)
    check_equal((done[1].strip(), done[2]), (b'0', b''), 'exit code 0 and silence when the reader closes the pipe')
    done = finish(start(['bash', '-c', f'{places.gputrace} report {path} --json > /dev/full; echo $?']), 30)
    check(done[1].strip() == b'1' and done[2].startswith(b'gputrace: '), 'a full disk is an error', done)


def test_other_languages():
    """Where numbers have commas and the letters other cases (i is no lower I in Turkish), what programs read is the same."""
    if not shutil.which('localedef') or not os.path.exists('/usr/share/i18n/locales/tr_TR'):
        skip('no sources of locales here (package locales)')
    path, _ = good_trace()
    os.mkdir(scratch('locales'))
    subprocess.run(['localedef', '-i', 'tr_TR', '-f', 'UTF-8', scratch('locales', 'tr_TR.UTF-8')], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    env = {'LOCPATH': scratch('locales'), 'LC_ALL': 'tr_TR.UTF-8', 'LANG': 'tr_TR.UTF-8'}
    comma = finish(start([sys.executable, '-c', 'import locale; locale.setlocale(locale.LC_ALL, ""); print(locale.str(0.5))'], environment(**env)))[1]
    check_equal(comma, b'0,5\n', 'the language is in force')
    for arguments in (['report'], ['report', '--json'], ['report', '--format', 'csv', '--section', 'kernels'], ['dump'], ['dump', '--json']):
        check_equal(gputrace(*arguments, path, env=env), gputrace(*arguments, path, env={'LC_ALL': 'C.UTF-8'}), f'{arguments}')


def test_hostile_names_are_escaped():
    program_text = r'''
import ctypes, sys
sys.path.insert(0, sys.argv[1])
from driver import Driver
d = Driver()
d.launch(d.kernel('step'))
'''
    odd = scratch('odd \x1b[31m\n"name')
    run = traced([sys.executable, '-c', program_text, os.path.join(SOURCE, 'tests', 'e2e')], output=odd)
    text, err = gputrace('report', odd)
    check('\x1b[31m' not in text, 'no escape sequence of a name reaches the terminal', text[:500])
    check(json.loads(gputrace('report', odd, '--json')[0]), 'JSON parses')
    code, out, err = gputrace('report', odd + '\x1b[32m', rc=None)
    check(code == 3 and '\x1b' not in err, 'nor in an error message', err)


main()
