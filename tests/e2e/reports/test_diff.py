# meson: timeout=200
# gputrace diff: the same run twice, a run with one kernel more and one gone, thresholds, JSON.
from harness import *

HERE = os.path.join(SOURCE, 'tests', 'e2e')
PROGRAM = f'''
import sys
sys.path.insert(0, {HERE!r})
from driver import Driver
d = Driver()
for name, times in (pair.split("=") for pair in sys.argv[1:]):
    k = d.kernel(name)
    for i in range(int(times)): d.launch(k)
d("cuCtxSynchronize")
'''


def run_of(where, *kernels, **env):
    run = traced([sys.executable, '-c', PROGRAM, *kernels], {'SIMGPU_KERNEL_TIME': 'step=10ms,reduce=20us,scale=10us', **env}, output=scratch(where))
    check_equal(run.returncode, 0, run.stderr)
    forget_run()
    return scratch(where)


def diff(*arguments, rc=0):
    return gputrace('diff', *arguments, rc=rc)


def kernels_of(path):
    return {row['kernel']: (row['total_ns'], row['launches']) for row in report(path, 'kernels')['sections']['kernels']['rows']}


def test_kernels_of_two_runs():
    a, b = run_of('a', 'step=20', 'reduce=5'), run_of('b', 'step=30', 'scale=4')
    said = json.loads(diff(a, b, '--json')[0])
    check_equal(said['schema'], 'gputrace-diff/1')
    rows = {row['kernel']: row for row in said['sections']['kernels']['rows']}
    before, after = kernels_of(a), kernels_of(b)
    check_equal({name: row['state'] for name, row in rows.items()}, {'step': 'both', 'reduce': 'gone', 'scale': 'new'}, 'states')
    for name, row in rows.items():
        total_a, count_a = before.get(name, (None, None))
        total_b, count_b = after.get(name, (None, None))
        check_equal((row['a_total_ns'], row['b_total_ns'], row['a_count'], row['b_count']), (total_a, total_b, count_a, count_b), name)
        check_equal(row['change_ns'], (total_b or 0) - (total_a or 0), name)
    check_equal([row['kernel'] for row in said['sections']['kernels']['rows']][0], 'step', 'the largest change first')
    summary = {row['what']: row for row in said['sections']['summary']['rows']}
    for side, path in (('a', a), ('b', b)):
        check_equal(summary['launches'][side], metrics(path)['launches'], 'launches')
        check_equal(summary['device_span_ns'][side], metrics(path)['device_span_ns'], 'span')
    text = diff(a, b)[0]
    check(re.search(r'^Device span: .* -> .*%\)', text, re.M) and 'measured once each' in text, 'what changed, and how sure that is', text[:600])
    check(re.search(r'^  scale\s.*\bnew$', text, re.M) and re.search(r'^  reduce\s.*\bgone$', text, re.M), 'new and gone', text)


def test_a_step_is_the_overviews_median():
    """A first step that takes ten times as long is in neither of the two."""
    body = """
for i in range(12):
    time.sleep(0.004 + 0.001 * (i % 5))
    d.launch(kernels['step'])
    if i == 0: time.sleep(0.2)
    d.launch(kernels['reduce'])
    d("cuCtxSynchronize")
"""
    program = PROGRAM.split('for name, times')[0] + "import time\nkernels = {name: d.kernel(name) for name in ('step', 'reduce')}\n" + body
    for name in ('a', 'b'):
        run = traced([sys.executable, '-c', program], {'SIMGPU_KERNEL_TIME': 'step=1ms,reduce=20us'}, output=scratch(name))
        check_equal(run.returncode, 0, run.stderr)
        forget_run()
    a, b = scratch('a'), scratch('b')
    steps = report(a, 'steps')['sections']['steps']['rows']
    check(steps and not steps[0]['counted'] and sum(row['counted'] for row in steps) >= 9, 'the first step does not count', [(row['duration_ns'], row['counted']) for row in steps])
    summary = {row['what']: row for row in json.loads(diff(a, b, '--json')[0])['sections']['summary']['rows']}['step_median_ns']
    check_equal((summary['a'], summary['b']), tuple(metrics(path)['step_median_ns'] for path in (a, b)), 'medians')


def test_threshold():
    a, b = run_of('a', 'step=10'), run_of('b', 'step=30')
    code, out, err = diff(a, b, '--fail-above', '5%', rc=None)
    check(code == 5 and 'Kernels' in out and '--fail-above: the device span is' in err, 'longer', code, err)
    check_equal(diff(b, a, '--fail-above', '5%', rc=None)[0], 0, 'shorter')
    check_equal(diff(a, a, '--fail-above', '0', rc=None)[0], 0, 'the same')
    check_equal(diff(a, b, '--fail-above', '10000%', rc=None)[0], 0, 'a wide limit')


def test_findings():
    a, b = run_of('a', 'step=3'), run_of('b', 'step=3')
    said = json.loads(diff(a, b, '--json')[0])
    found = {row['finding']: row['state'] for row in said['sections']['findings']['rows']}
    in_a, in_b = ({finding['id'] for finding in report(path)['findings']} for path in (a, b))
    check_equal(found, {name: 'both' if name in in_a & in_b else 'gone' if name in in_a else 'new' for name in in_a | in_b}, 'matched by what they are')


def test_findings_are_in_the_order_of_their_gains_and_short():
    """Whatever they are, a terminal shows what both runs would gain, and what each says in its report is there for programs."""
    golden = os.path.join(SOURCE, 'tests', 'corpus', 'golden')
    a, b = (os.path.join(golden, name) for name in ('train', 'products'))
    rows = json.loads(diff(a, b, '--json')[0])['sections']['findings']['rows']
    texts = {finding['text'] for path in (a, b) for finding in report(path)['findings']}
    gains = {state: [max(row['a_gain_ns'] or 0, row['b_gain_ns'] or 0) for row in rows if row['state'] == state] for state in ('gone', 'new', 'both')}
    check(sum(gain > 0 for of in gains.values() for gain in of) >= 3, 'there is something to put in order', gains)
    for state, of in gains.items():
        check_equal(of, sorted(of, reverse=True), state)
    for row in rows:
        check(row['text'] in texts and row['text'].startswith(row['summary']) and not re.search('[:;] ', row['summary']), 'the begin of what the report says', row)
    text = diff(a, b)[0]
    heading = re.search(r'^  state +finding +.*$', text, re.M).group()
    check('a gain' in heading and 'b gain' in heading and heading.endswith('summary'), 'both gains have room', heading)


def test_questions_that_cannot_be_answered():
    a = os.path.join(SOURCE, 'tests', 'corpus', 'golden', 'train')
    for code, words, arguments in ((2, 'two runs are needed', (a,)), (2, "'much' is no share", (a, a, '--fail-above', 'much')), (2, "'nan' is no share", (a, a, '--fail-above', 'nan')), (3, 'No such file', (a, scratch('none'))), (2, 'unknown option', (a, a, '--no-such'))):
        got, out, err = diff(*arguments, rc=None)
        check_equal((got, out), (code, ''), err)
        check(words in err, words, err)


main()
