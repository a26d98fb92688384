# meson: timeout=120
# The report as a person reads it: it fits the terminal, cuts no sentence, tells instants as --from takes them, and says what is wrong with a question.
import atexit
import csv
import io

from harness import *

KEPT = os.path.join(SOURCE, 'tests', 'corpus', 'golden', 'h100_elementwise')  # has findings of several sections
_train = {}


def train():
    """A trace of the example, made once; all tests of this file read it."""
    if not _train:
        folder = tempfile.mkdtemp(prefix='gputrace-report-')
        atexit.register(shutil.rmtree, folder, True)
        run = traced([program('train'), '5'], output=os.path.join(folder, 'trace'))
        check_equal(run.returncode, 0, run.stderr)
        _train['output'] = run.output
    return _train['output']


def text(*options, width=120, of=None):
    return gputrace('report', of or train(), *options, env={'COLUMNS': width, 'LANG': 'C.UTF-8'})[0]


def test_lines_fit_the_terminal():
    every = ','.join(report(train())['sections'])
    for width in (80, 100, 120, 200):
        for options in ((), ('--all',), ('--section', every)):
            for line in text(*options, width=width).splitlines():
                check(len(line) <= width or len(line.split()) <= 2 or 'gputrace report' in line, f'a line of {width} columns', line)


def test_a_program_without_python_is_told_how_to_have_lines():
    said = ' '.join(text().split())
    check('at a line that is not known: `gputrace run --collect +stacks` tells it' in said, 'the first screen says so', said)


def test_sentences_are_not_cut():
    sections = report(train(), 'idle-causes', 'categories', 'quality-notes')['sections']
    for width in (80, 120):
        words = ' '.join(text('--section', 'idle-causes,categories,quality-notes', width=width).split())
        for section, column in (('idle-causes', 'meaning'), ('categories', 'rule')):
            check(sections[section]['rows'], f'{section} has rows')
            for row in sections[section]['rows']:
                check(' '.join(row[column].split()) in words, f'{section}: whole at {width} columns', row[column])


def test_instants_are_those_of_from():
    sections = report(train(), 'idle', 'run')['sections']
    first = sections['run']['rows'][0]['begin_ns']
    gap = sections['idle']['rows'][0]
    shown = f"{(gap['begin_ns'] - first) / 1e9:.6f} "
    check(shown in text('--section', 'idle'), f'the begin of the longest gap is {shown}', text('--section', 'idle'))
    # A window keeps the origin.
    later = report(train(), 'idle', options=('--from', '1us'))['sections']['idle']['rows']
    check(gap['begin_ns'] in [row['begin_ns'] for row in later], 'the gap is in the window', gap, later)
    check(shown in text('--section', 'idle', '--from', '1us'), 'counted from the same instant', text('--section', 'idle', '--from', '1us'))


def test_notes_speak_of_what_is_shown():
    for width in (80, 200):
        shown = text('--section', 'kernels', width=width)
        heading = shown.splitlines()[[line.startswith('Kernels') for line in shown.splitlines()].index(True) + 1]
        check_equal('waves = ' in shown, 'waves' in heading.split(), f'the note on waves at {width} columns')


def test_a_section_brings_what_concerns_it_and_no_more():
    whole = report(KEPT, 'kernels')
    every = {finding['section'] for finding in whole['findings']}
    check(len(every) > 1, 'findings of several sections', every)
    def findings(*sections):
        return [line.split(maxsplit=1)[1] for line in text('--section', ','.join(sections), '--wide', width=4000, of=KEPT).splitlines()
                if re.match('  (problem|warning|hint) ', line)]
    for section in every:
        check_equal(findings(section), [finding['text'] for finding in whole['findings'] if finding['section'] == section], section)
    for one in ('findings', 'overview'):
        check_equal(findings(one), [finding['text'] for finding in whole['findings']], one)
    table = list(csv.DictReader(io.StringIO(gputrace('report', KEPT, '--section', 'findings', '--format', 'csv')[0])))
    check_equal([(row['id'], row['gain_ns'], row['text'], row['site']) for row in table],
                [(finding['id'], str(finding['evidence'].get('gain_ns', '')), finding['text'], finding.get('site') or '') for finding in whole['findings']], 'as csv')
    check('Kernels' not in text('--section', 'findings', of=KEPT).splitlines(), 'findings alone')
    absent = [item['what'] for item in whole['coverage']['not_collected']]
    for section in ('quality', 'overview'):
        said = ' '.join(text('--section', section, of=KEPT).split())
        check(all(what in said for what in absent), section, absent, said)
    check('environment' in absent and 'not collected: environment: ' in text('--section', 'environment', of=KEPT), 'why a section is not there', absent)
    check('not collected' not in text('--section', 'kernels', of=KEPT), 'of others nothing')


def test_rows_and_columns_as_asked():
    every = report(train(), 'kernels')['sections']['kernels']['rows']
    gemms = [row for row in every if 'gemm' in row['kernel']]
    limit = sorted(row['total_ns'] or 0 for row in every)[len(every) // 2]
    said = report(train(), 'kernels', options=('--filter', 'kernel~GEMM', '--filter', f'total>={limit}ns', '--columns', 'symbol,total_ns', '--sort', 'total'))['sections']['kernels']
    check_equal([column['key'] for column in said['columns']], ['symbol', 'total_ns'], 'columns')
    check_equal(said['rows'], [{'symbol': row['symbol'], 'total_ns': row['total_ns']} for row in sorted(gemms, key=lambda row: -(row['total_ns'] or 0)) if (row['total_ns'] or 0) >= limit], 'rows')
    lines = text('--section', 'kernels', '--columns', 'total,name', '--filter', 'kernel~gemm').splitlines()
    head = [line.startswith('Kernels') for line in lines].index(True) + 1
    check(re.fullmatch(r'  total( us| ms)?\s+name', lines[head]), 'headings, in the order that was asked for', lines[head])
    check_equal(gputrace('report', train(), '--section', 'kernels', '--format', 'csv', '--columns', 'total,launches')[0].splitlines()[0], 'total_ns,launches', 'csv')
    listed = gputrace('report', '--section', 'kernels', '--columns', 'help')[0]
    check(all(re.search(rf'^  {column["key"]} ', listed, re.M) for column in report(train(), 'kernels')['sections']['kernels']['columns']), 'all columns are listed', listed)


def test_wide_tables_have_whole_names_and_every_column():
    wide = text('--section', 'kernels', '--wide', width=80)
    check('no room for' in text('--section', 'kernels', width=80) and 'no room for' not in wide, 'every column', wide)


def test_quiet_and_verbose_mean_something():
    check('next:' in text() and 'next:' not in text('-q'), '-q')
    path = glob.glob(os.path.join(train(), '*.gtrace'))[0]
    check(f'{path}: ' in gputrace('report', train(), '-v')[1] and gputrace('report', train())[1] == '', '-v says what was read')
    for verb in ('dump', 'env', 'doctor'):
        code, out, err = gputrace(verb, '-v', rc=None)
        check(code == 2 and "unknown option '-v'" in err, f'{verb} has none', err)


def test_questions_that_cannot_be_answered():
    for code, words, options in (
            (2, "unknown section 'kernel', did you mean 'kernels'?", ('--section', 'kernel')),
            (2, "unknown section 'turns'", ('--section', 'turns')),
            (2, "--top: 'x' is no number", ('--top', 'x')),
            (2, '--top: a number of rows', ('--top', '-3')),
            (2, "--device: 'gpu0' is no number", ('--device', 'gpu0')),
            (2, "--sort: no column 'totl_ns', did you mean 'total_ns'?", ('--sort', 'totl_ns')),
            (2, "--columns: no column 'nam' in these sections, did you mean 'name'?", ('--section', 'kernels', '--columns', 'nam')),
            (2, "--filter: no column 'kern", ('--filter', 'kernel name~x')),
            (2, "--filter: 'kernel' is no condition", ('--filter', 'kernel')),
            (2, "--filter: 'long' is no number (units: ns us ms s m h)", ('--section', 'kernels', '--filter', 'total_ns>long')),
            (2, 'csv is one section at a time', ('--format', 'csv')),
            (2, "'xml' is none of text, json, csv", ('--format', 'xml')),
            (2, "--from: 'noon' is no duration", ('--from', 'noon')),
            (2, '--from must be before --to', ('--from', '2s', '--to', '1s')),
            (3, '--from 7200 s: the run ended ', ('--from', '2h')),
            (3, 'no device 7 in these traces (in use: 0)', ('--device', '7')),
            (3, 'no process of rank 3', ('--rank', '3'))):
        got, out, err = gputrace('report', train(), *options, rc=None)
        check_equal((got, out), (code, ''), f'{options}: {err}')
        check(err.startswith('gputrace: error: ') and words in err and err.count('\n') == 1, f'{options}', err)


main()
