# meson: timeout=200
# The first screen: at most 40 lines, the same numbers as the JSON, on a terminal and in a pipe; the pager of --all; the wait for a sidecar that still writes.
import collections
import fcntl
import pty
import select
import struct
import termios

from harness import *

GOLDEN = os.path.join(SOURCE, 'tests', 'corpus', 'golden')
TRAIN = os.path.join(GOLDEN, 'train')
UTF8 = {'LANG': 'C.UTF-8'}


def screen(*arguments, width=120, **env):
    return gputrace('report', *arguments, env={'COLUMNS': width, **UTF8, **env})[0]


def on_a_terminal(*arguments, width=120, **env):
    """What `gputrace ARGUMENTS` prints on a terminal, and its exit code."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack('HHHH', 50, width, 0, 0))
    process = subprocess.Popen([places.gputrace, *arguments], stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL, env=environment(COLUMNS=None, TERM='xterm', **UTF8, **env))
    os.close(theirs)
    shown = b''
    while select.select([ours], [], [], 60)[0]:
        try:
            piece = os.read(ours, 65536)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    os.close(ours)
    return process.wait(60), shown.decode().replace('\r\n', '\n')


def plain(text):
    return re.sub(r'\x1b\[[0-9;]*m', '', text)


def check_shape(text, width, lines=40):
    check(text.count('\n') <= lines, f'at most {lines} lines at {width} columns', text)
    for line in text.splitlines():
        check(len(line) <= min(width, 120) or 'gputrace report' in line or len(line.split()) <= 2, f'{width} columns', line)


def test_at_most_40_lines():
    for path in (TRAIN, os.path.join(GOLDEN, 'collectives'), os.path.join(GOLDEN, 'products'), os.path.join(SOURCE, 'tests', 'corpus', '0.1.0-train.gtrace')):
        for width in (80, 100, 120, 200):
            text = screen(path, width=width)
            check_shape(text, width)
            check('\x1b' not in text and '█' not in text, 'no colour and no bar in a pipe', text)


def test_the_numbers_are_those_of_the_json():
    said = report(TRAIN)
    metrics = {row['metric']: row['value'] for row in said['sections']['overview']['rows']}
    text = screen(TRAIN)
    device = next(line for line in text.splitlines() if line.startswith('Device'))
    for name, metric in (('compute', 'compute_ns'), ('copies', 'exposed_copy_ns')):
        share = float(re.search(name + r' ([0-9.]+) %', device)[1])
        check(abs(share - 100 * metrics[metric] / metrics['device_span_ns']) <= 0.05, name, share, metrics)
    idle = next(line for line in text.splitlines() if line.startswith('Idle'))
    rows_of_idle = said['sections']['idle-causes']['rows']
    traced_ns = sum(row['total_ns'] for row in rows_of_idle if row['cause'] == 'profiler')
    share = float(re.search(r'idle ([0-9.]+) %', device)[1])
    check(abs(share - 100 * (metrics['idle_ns'] - traced_ns) / metrics['device_span_ns']) <= 0.5, 'idle, without what tracing took', share, metrics, traced_ns)
    check(('tracing' in device) == (traced_ns > 0), 'which is a part of its own', device, traced_ns)
    finding = next((one for one in said['findings'] if one['id'] == 'idle-gaps'), None)
    if finding:
        check(abs(share - 100 * finding['evidence']['share']) <= 0.5, 'the same as the finding has', share, finding)
    for row in [row for row in rows_of_idle if row['cause'] != 'profiler'][:3]:
        share = float(re.search(row['cause'] + r' ([0-9.]+) %', idle)[1])
        check(abs(share - 100 * row['share'] * metrics['idle_ns'] / metrics['device_span_ns']) <= 0.5, row['cause'], share, row)
    # The heaviest five: by name, whatever their shape.
    sums = collections.Counter()
    counts = collections.Counter()
    for row in said['sections']['kernels']['rows']:
        sums[row['kernel']] += row['total_ns'] or 0
        counts[row['kernel']] += row['launches']
    head = [line.startswith('Kernels by time') for line in text.splitlines()].index(True) + 2
    for line, (kernel, total) in zip(text.splitlines()[head:head + 5], sums.most_common(5)):
        name, share, shown, unit, count = re.match(r'  (\S+)\s+([0-9.]+) %\s+([0-9.]+) (us|ms)\s+([0-9,]+)', line).groups()
        check(kernel.startswith(name + '('), 'the name', kernel, line)
        check(abs(float(shown) * {'us': 1e3, 'ms': 1e6}[unit] - total) <= total / 1000, 'the time', line, total)
        check(abs(float(share) - 100 * total / metrics['kernel_ns']) <= 0.06, 'the share', line, total)
        check_equal(int(count.replace(',', '')), counts[kernel], 'executions')
    # Findings by gain, each with its fix.
    found = sorted(said['findings'], key=lambda finding: -finding['evidence'].get('gain_ns', 0))
    words = ' '.join(text.split())
    at = [words.index(' '.join(finding['text'].split())) for finding in found[:3]]
    check_equal(at, sorted(at), 'by gain')
    for finding in found[:3]:
        check(' '.join((finding['fix'] or '').split()) in words, 'the fix is whole', finding, text)


def test_where_the_time_of_a_step_went():
    run = traced([program('train'), '20'])
    metrics = {row['metric']: row['value'] for row in report(run, 'overview')['sections']['overview']['rows']}
    text = screen(run.output)
    mean = metrics['step_mean_ns']
    step = next(line for line in text.splitlines() if line.startswith('A step'))
    computing = sum(value for metric, value in metrics.items() if re.fullmatch(r'step_compute_\w+_ns', metric))
    parts = {re.sub('step_(.*)_ns', r'\1', metric): value for metric, value in metrics.items()
             if re.fullmatch(r'step_\w+_ns', metric) and 'compute' not in metric and metric not in ('step_mean_ns', 'step_median_ns', 'step_p99_ns')}
    parts = {**{name: value for name, value in parts.items() if value}, **({'compute': computing} if computing else {})}
    check(abs(sum(parts.values()) - mean) <= len(parts), 'the parts sum to the step', parts, mean)
    for name, value in sorted(parts.items(), key=lambda part: -part[1])[:4]:
        share = float(re.search(name.replace('device_to_device', 'copies on the device') + r' ([0-9.]+) %', step)[1])
        check(abs(share - 100 * value / mean) <= 0.5, name, share, value)
    check('A step' not in screen(TRAIN), 'nothing is said of steps that are not known')


def test_on_a_terminal_with_colour_and_a_bar():
    code, text = on_a_terminal('report', TRAIN)
    check_equal(code, 0, text)
    check('\x1b[1m' in text, 'colour', text)
    check_shape(plain(text), 120)
    bar = re.search(r'^Device   ([█▓▒░?]+)  ', plain(text), re.M)
    check(bar and len(bar[1]) == 32, 'a bar', text)
    check_equal(plain(text).replace(bar[1] + '  ', '', 1), screen(TRAIN), 'else as in a pipe')
    code, text = on_a_terminal('report', TRAIN, NO_COLOR='1')
    check('\x1b' not in text and '░' in text, 'NO_COLOR takes the colour, not the bar', text)
    code, text = on_a_terminal('report', TRAIN, width=80)
    check('░' not in text, 'no room for a bar', text)


def test_what_was_lost_is_said():
    run = traced([program('drv_linked')], {'SIMGPU_CUPTI': 'drop=3'})
    text = screen(run.output)
    check_shape(text, 120)
    check(re.search(r'^Trace .*, incomplete: .*device record', text, re.M), 'lost device records', text)
    check(text.splitlines()[2].startswith('Trace'), 'below the headline', text)
    check('33;1' in on_a_terminal('report', run.output)[1].split('Trace')[0][-12:], 'loud')


def test_without_device_times():
    run = traced([program('drv_linked')], {'GPUTRACE_CUPTI': 'off'})
    text = screen(run.output)
    check_shape(text, 120)
    check(re.search(r'^Device   no times: .*GPUTRACE_CUPTI', text, re.M), 'why', text)
    check(re.search(r'^Kernels by executions', text, re.M) and re.search(r'^  third\S*\s+-\s+-\s+[0-9]+', text, re.M), 'kernels by count', text)
    check(re.search(r'^Absent .*why:\s+--section quality', text, re.M | re.S), 'what is not there', text)
    said = ' '.join(gputrace('report', run.output, '--section', 'quality')[0].split())
    for entry in report(run)['coverage']['not_collected']:
        check(entry['what'] in said and ' '.join(entry['why'].split()) in said, 'whole under quality', entry, said)


def test_of_a_program_that_did_nothing():
    run = traced([sys.executable, '-c', f'import sys; sys.path.insert(0, {os.path.join(SOURCE, "tests", "e2e")!r}); from driver import Driver; Driver()'])
    text = screen(run.output)
    check_shape(text, 120)
    check(re.search(r'^Work     0 kernels by 0 launch calls', text, re.M) and 'python -c' in text.splitlines()[0], 'it says so', text)


def test_all_through_a_pager():
    whole = screen(TRAIN, '--all')
    for title in ('Coverage', 'Findings', 'Overview', 'Kernels by total time', 'Why the devices were idle'):
        check(title in whole, title, whole[:500])
    code, text = on_a_terminal('report', TRAIN, '--all', GPUTRACE_PAGER="sed 's/^/paged: /'", PAGER='false')
    check(code == 0 and all(line.startswith('paged: ') for line in text.splitlines()), 'GPUTRACE_PAGER', text[:300])
    check_equal(plain(text).replace('paged: ', ''), whole, 'the same')
    code, text = on_a_terminal('report', TRAIN, '--all', PAGER="sed 's/^/other: /'")
    check(text.startswith('other: '), 'PAGER', text[:300])
    for env in ({'GPUTRACE_PAGER': ''}, {'PAGER': 'cat'}):
        check_equal(plain(on_a_terminal('report', TRAIN, '--all', **env)[1]), whole, f'{env}: no pager')
    check_equal(on_a_terminal('report', TRAIN, '--all', GPUTRACE_PAGER='head -1')[0], 0, 'a pager that ends early')
    check('paged' not in on_a_terminal('report', TRAIN, GPUTRACE_PAGER="sed 's/^/paged: /'")[1], 'the first screen needs none')
    check('paged' not in gputrace('report', TRAIN, '--all', env={'GPUTRACE_PAGER': "sed 's/^/paged: /'"})[0], 'none in a pipe')


SLEEPER = f'''
import sys, time
sys.path.insert(0, {os.path.join(SOURCE, "tests", "e2e")!r})
from driver import Driver
d = Driver()
for i in range(20): d.launch(d.kernel("step"))
print("launched", flush=True)
sys.stdin.readline()
'''


def stopped_sidecar():
    """A program that has launched, and its sidecar, which is stopped."""
    process = start([sys.executable, '-c', SLEEPER], traced_environment(), stdin=subprocess.PIPE)
    check_equal(process.stdout.readline(), b'launched\n')
    sidecar = wait_until(lambda: [pid for pid in children() if pid != process.pid], 'a sidecar')[0]
    wait_until(lambda: glob.glob(scratch('trace', '*.gtrace')), 'a trace')
    os.kill(sidecar, signal.SIGSTOP)
    return process, sidecar


def test_report_waits_for_the_sidecar_of_a_program_that_has_ended():
    process, sidecar = stopped_sidecar()
    process.stdin.close()
    process.wait(60)
    asked = subprocess.Popen([places.gputrace, 'report', scratch('trace')], stdout=subprocess.PIPE, env=environment())
    try:
        asked.wait(0.5)
        fail('it did not wait')
    except subprocess.TimeoutExpired:
        pass
    os.kill(sidecar, signal.SIGCONT)
    text = asked.communicate(timeout=60)[0].decode()
    check(', complete' in text, 'and then has all', text)
    check(not wait_for_orphans(), 'the sidecar ends')


def test_report_does_not_wait_for_a_program_that_runs():
    process, sidecar = stopped_sidecar()
    began = time.monotonic()
    code, out, err = gputrace('report', TRAIN, rc=None)
    usual = time.monotonic() - began
    began = time.monotonic()
    code, text, err = gputrace('report', scratch('trace'), rc=None)
    took = time.monotonic() - began
    os.kill(sidecar, signal.SIGCONT)
    process.communicate(b'\n')
    check(not wait_for_orphans(), 'the sidecar ends')
    check(', incomplete' in text, 'what is there', text, err)
    check(took < usual * 3 + 1.5, 'at once', took, usual)


main()
