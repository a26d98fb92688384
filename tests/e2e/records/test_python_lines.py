# meson: timeout=300
# Source lines: every stack in the trace is the one that the interpreter itself has at that call, for every CPython that is here.
from harness import *

PROGRAM = os.path.join(SOURCE, 'tests', 'programs', 'python', 'lines.py')
MOST_FRAMES = 128


def version_of(python):
    answer = subprocess.run([python, '-c', 'import sys; print(*sys.version_info[:2])'], capture_output=True, text=True)
    return tuple(map(int, answer.stdout.split())) if answer.returncode == 0 else None


def interpreters():
    """One of each minor version that this machine has."""
    here = [sys.executable, '/usr/bin/python3', *glob.glob(os.path.expanduser('~/.pyenv/versions/*/bin/python3'))]
    found = {}
    for python in here:
        if os.path.exists(python) and (version := version_of(python)):
            found.setdefault(version, python)
    return found


def run_lines(python, rounds=2, env=None):
    truth = scratch('truth.json')
    run = traced([python, PROGRAM, truth, str(rounds)], env=env)
    check(run.returncode == 0 and b'done' in run.stdout, 'the program came to its end', run.stdout, run.stderr)
    with open(truth, encoding='utf-8') as lines:
        return run, {line['number']: line['stack'] for line in map(json.loads, lines)}


def stacks(run):
    """{number of a call: (stack outermost first, frames)} for the calls whose stack the trace knows."""
    everything = dump(run)
    frames = {record['id']: record for record in everything if record['record'] == 'StackFrame'}

    def chain(number):
        stack = []
        while number:
            frame = frames[number]
            stack.append([frame['file'], frame['line'], frame['function'], frame['first_line']])
            number = frame['parent']
        return stack[::-1]

    current, known = {}, {}
    for record in sorted((r for r in everything if r['record'] in ('Stack', 'Memset', 'Gap')),
                         key=lambda r: (r['end_ns'], r['record'] == 'Memset')):
        if record['record'] == 'Stack':
            current[record['tid']] = record
        elif record['record'] == 'Gap':
            current.pop(record['tid'], None)
        elif record['tid'] in current:
            last = current[record['tid']]
            known[record['bytes']] = (chain(last['frame']), last['frames'])
    return known


def check_stacks(run, truth, all_of_them=True):
    known = stacks(run)
    if all_of_them:
        check_equal(sorted(known), sorted(truth), 'calls with a stack')
    # A new frame is written down under a lock that is not waited for: where another thread lost its processor with it, none is told.
    untold = [number for number, (stack, _) in known.items() if not stack]
    check(len(untold) <= len(known) // 10, 'stacks that could not be told', untold)
    for number, (stack, frames) in known.items():
        if not stack: continue
        wanted = truth[number]
        if frames == MOST_FRAMES:
            wanted = wanted[-len(stack):]
        check_equal(stack, wanted, f'stack of call {number}')
    return len(known)


def test_every_interpreter_of_this_machine():
    tried = 0
    for version, python in sorted(interpreters().items()):
        if not (3, 8) <= version <= (3, 13):
            continue
        run, truth = run_lines(python)
        check(check_stacks(run, truth) > 100, f'stacks of {version}')
        tried += 1
    check(tried > 0, 'an interpreter to try')


def test_an_interpreter_that_is_not_in_the_table():
    others = [python for version, python in interpreters().items() if version < (3, 8) and version[0] == 3]
    if not others:
        skip('no CPython before 3.8')
    run = traced([others[0], '-c', 'import ctypes; ctypes.CDLL("libcuda.so.1").cuInit(0)'])
    check(run.returncode == 0, 'exit code', run.returncode, run.stderr)
    check_equal(records(run, 'Stack', 'StackFrame'), [], 'no stacks')
    reasons = {each['what']: each['why'] for each in report(run)['coverage']['not_collected']}
    check('only CPython 3.8 to 3.13 is known' in reasons['python'], 'the reason', reasons)


def test_a_program_without_python_and_one_that_leaves_it_out():
    run = traced([compiled('init.c', 'int cuInit(unsigned);\nint main(void) { return cuInit(0); }\n', '-lcuda')])
    reasons = {each['what']: each['why'] for each in report(run)['coverage']['not_collected']}
    check('no CPython in this process' in reasons['python'], 'no interpreter', reasons)
    run, _ = run_lines(sys.executable, env={'GPUTRACE_COLLECT': '-python'})
    check_equal(records(run, 'Stack', 'StackFrame'), [], 'left out')
    check('sites' not in report(run)['sections'], 'no section')


def test_what_is_lost_makes_no_line_wrong():
    for env in ({'GPUTRACE_ON_FULL': 'overwrite'}, {'GPUTRACE_ON_FULL': 'drop', 'GPUTRACE_SIDECAR': 'auto'}):
        run, truth = run_lines(sys.executable, rounds=120, env={'GPUTRACE_BUFFER': '512K', 'SIMGPU_CALL_TIME': '0', **env})
        check(check_stacks(run, truth, all_of_them=False) > 50, 'some were kept')


def test_sites_of_the_report():
    run, truth = run_lines(sys.executable)
    wanted = {}
    for stack in truth.values():
        file, line, function, _ = stack[-1]
        name = f'{os.path.basename(file)}:{line} {function}'
        wanted[name] = wanted.get(name, 0) + 1
    got = {row['site']: row for row in rows(run, 'sites')}
    check_equal({site: row['calls'] for site, row in got.items() if site in wanted}, wanted, 'calls by line')
    device = sum(line['end_ns'] - line['start_ns'] for line in run.truth if line['op'] == 'memset')
    check_equal(sum(row['device_total_ns'] for row in got.values()), device, 'device time')


def test_packages_in_a_folder_of_their_own_are_nobodys_line():
    """pip install --target deps thing; PYTHONPATH=deps python own.py"""
    deps, own = scratch('deps'), scratch('own.py')
    for folder in ('thing', 'thing-1.0.dist-info'):
        os.makedirs(os.path.join(deps, folder), exist_ok=True)
    shutil.copy(os.path.join(SOURCE, 'tests', 'e2e', 'driver.py'), os.path.join(deps, 'thing'))
    with open(os.path.join(deps, 'thing', '__init__.py'), 'w', encoding='utf-8') as file:
        file.write('from .driver import Driver\nd = Driver()\nkernel = d.kernel("step")\ndef work():\n    for _ in range(3): d.launch(kernel)\n')
    with open(own, 'w', encoding='utf-8') as file:
        file.write('import thing\n\nthing.work()\n')
    for installed, wanted in ((True, 'own.py:3 <module>'), (False, 'driver.py')):
        if not installed:
            os.rmdir(os.path.join(deps, 'thing-1.0.dist-info'))
        run = traced([sys.executable, own], env={'PYTHONPATH': deps}, output=scratch('own.trace' if installed else 'source.trace'))
        check_equal(run.returncode, 0, run.stderr)
        sites = [row['site'] for row in rows(run, 'sites') if row['launches'] == 3]
        check(len(sites) == 1 and sites[0].startswith(wanted), f'installed: {installed}', sites)
    gputrace('anonymize', scratch('own.trace'), '-o', scratch('anonymized'))
    sites = [row['site'] for row in report(scratch('anonymized'))['sections']['sites']['rows'] if row['launches'] == 3]
    check(len(sites) == 1 and re.fullmatch(r'name_\d+\.py:3 <module>', sites[0]), 'the same line without its name', sites)


REFUSED = """
import ctypes, sys
sys.path.insert(0, sys.argv[1])
from driver import Driver
d = Driver()
def ask_for_too_much():
    for _ in range(3): d.cuda.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(1 << 60))
ask_for_too_much()
"""


def test_a_refused_call_names_its_caller():
    path = scratch('asks.py')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(REFUSED)
    run = traced([sys.executable, path, os.path.join(SOURCE, 'tests', 'e2e')])
    found = [each for each in report(run)['findings'] if each['id'] == 'call-errors']
    check_equal([(each['evidence']['call'], each['evidence']['count'], each.get('site')) for each in found],
                [('cuMemAlloc', 3, 'asks.py:7 ask_for_too_much')], 'call, count, caller')


main()
