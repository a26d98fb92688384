# meson: timeout=200
# What is printed for people to type works as printed: the next command of `gputrace run`, the fixes, and the commands of README and help.
import shlex

from against_truth import *


def run_here(words, **env):
    """gputrace run as a newcomer does, in the scratch folder, with the command on the PATH or by its path."""
    done = finish(start([places.gputrace, 'run', *words], environment(LD_LIBRARY_PATH=None, **env)))
    check(not wait_for_orphans(), 'the sidecar ends')
    return done[0], done[1].decode(), done[2].decode()


def type_it(line, path=None):
    """The line in a shell, as a user would paste it."""
    env = environment(LD_LIBRARY_PATH=None)
    if path:
        env['PATH'] = path + ':' + env['PATH']
    done = finish(start(['bash', '-c', line], env))
    return done[0], done[1].decode(), done[2].decode()


def next_commands(err):
    return [line.split(':', 1)[1].strip() for line in err.splitlines() if line.strip().startswith('next:')]


def test_next_commands_of_the_first_screen():
    run = traced([program('drv_linked')], output=scratch("it's here"))
    for arguments in ([run.output], []):
        place = scratch() if not arguments else None
        if not arguments:
            os.rename(run.output, scratch('gputrace-1'))
        text = gputrace('report', *arguments, **({'cwd': place} if place else {}))[0]
        lines = text[text.index('next:'):].replace('next:', '     ').splitlines()
        check(len(lines) >= 1, 'next commands', text)
        for line in lines:
            done = finish(start(['bash', '-c', line.strip()], environment(LD_LIBRARY_PATH=None), cwd=scratch()))
            check(done[0] == 0 and b'Coverage' in done[1], line, done)


def check_next(err, wanted):
    commands = next_commands(err)
    check(commands, 'run prints a next command', err)
    for command in commands:
        code, out, said = type_it(command)
        check_equal(code, 0, f'{command} ({said!r})')
        check(wanted in out, f'{command} shows what was traced', out[:800])


def test_next_command():
    code, out, err = run_here(['--simgpu', '--', program('drv_linked')])
    check_equal(code, 0, err)
    check_next(err, 'third')
    check('21' in err and 'dropped' in err, 'the verdict names launches and drops', err)


def test_next_command_though_the_sidecar_starts_late():
    # Shorter than the sidecar's start: `run` waits for what becomes a sidecar.
    with open(scratch('late'), 'w', encoding='utf-8') as file:
        file.write(f'#!/bin/sh\nsleep 0.4\nexec {places.sidecar} "$@"\n')
    os.chmod(scratch('late'), 0o755)
    code, out, err = run_here(['--simgpu', '--', program('drv_linked'), 'count=1'], GPUTRACE_SIDECAR=scratch('late'))
    check_equal(code, 0, err)
    check_next(err, 'third')


def test_next_command_of_odd_directories():
    for output in ('with space', "it's", '-dash', 'semi;colon$HOME', 'deep/er/%e-%p'):
        code, out, err = run_here(['--simgpu', '-o', output, '--', program('drv_linked')])
        check_equal(code, 0, err)
        check_next(err, 'third')


def test_next_command_of_a_directory_in_use():
    for count in (1, 2, 3):
        code, out, err = run_here(['--simgpu', '-o', 'same', '--', program('drv_linked'), f'count={count}'])
        check_equal(code, 0, err)
        for command in next_commands(err):
            code, out, said = type_it(command + ' --json')
            check_equal(code, 0, f'{command} ({said!r})')
            overview = {row['metric']: row['value'] for row in json.loads(out)['sections']['overview']['rows']}
            check_equal(overview['launches'], 7 * count, 'the newest run alone')
    check_equal(metrics(scratch('same'))['launches'], 42, 'all runs together')


def test_fix_of_a_run_without_cuda():
    code, out, err = run_here(['--', 'true'])
    check_equal(code, 0, err)
    fixes = [line.split('try:', 1)[1].strip() for line in err.splitlines() if 'try:' in line]
    check(fixes, 'a fix is printed', err)
    for fix in fixes:
        code, out, said = type_it(fix)
        check(code in (0, 1) and 'unknown' not in said, f'{fix} runs', code, out, said)


def test_fix_of_a_full_ring():
    code, out, err = run_here(['--simgpu', '-o', 'full', '--', program('drv_loop'), 'calls=300000', 'threads=2'], GPUTRACE_BUFFER='512K', SIMGPU_CALL_TIME='0')
    check_equal(code, 0, err)
    said = report(scratch('full'))
    if not said['coverage']['dropped']:
        skip('nothing was dropped: the sidecar kept up')
    fix = [finding['fix'] for finding in said['findings'] if finding['id'] == 'dropped-records'][0]
    name, value = re.search(r'(GPUTRACE_BUFFER)=(\w+)', fix).groups()
    code, out, err = run_here(['--simgpu', '-o', 'fixed', '--', program('drv_linked')], **{name: value})
    check_equal([row for row in rows(scratch('fixed'), 'quality-notes') if row['what'] == 'option'], [], 'the value is one that works')


def test_text_of_the_report_names_options_that_work():
    run = traced([program('drv_linked')])
    text = gputrace('report', run.output, '--all')[0]
    sections = re.search(r'--section NAME \(([^)]*)\)', text)
    check(sections, 'the report names its sections', text[-500:])
    for section in sections[1].split():
        for form in ('text', 'json', 'csv'):
            out = gputrace('report', run.output, '--section', section, '--format', form)[0]
            check(out.strip(), f'{section} as {form}')
    code, out, err = gputrace('report', run.output, '--section', 'libs', '--format', 'csv', rc=None)
    check_equal((code, out), (3, ''), 'a section that was not collected has no csv')
    check('GPUTRACE_COLLECT without libs' in err, 'and says why', err)
    check(gputrace('report', run.output, '--top', '0')[0].count('\n') >= text.count('\n') - 1, '--top 0')


def test_readme():
    with open(os.path.join(SOURCE, 'README.md'), encoding='utf-8') as file:
        readme = file.read()
    commands = re.findall(r'^(?:/opt/gputrace/bin/|LD_PRELOAD=/opt/gputrace)\S.*', readme, re.M)
    check(len(commands) >= 3, 'the README has commands', commands)
    script = 'train.py'
    with open(scratch(script), 'w', encoding='utf-8') as file:
        file.write(f'import sys\nsys.path.insert(0, {os.path.join(SOURCE, "tests", "e2e")!r})\nfrom driver import Driver\nd = Driver()\nfor i in range(5): d.launch(d.kernel("step"))\n')
    traces = 2  # by run, and by LD_PRELOAD
    for command in commands:
        if 'gputrace-example' in command:
            if not os.path.exists(os.path.join(places.tree, 'bin', 'gputrace-example')):
                continue  # no compiler for it
            traces += 1
        line = re.split(r'\s{2,}', command)[0].replace('/opt/gputrace', places.tree)
        line = re.sub(r'\bpython\b', shlex.quote(sys.executable), line)
        if line.endswith(' view'):
            line = 'timeout --preserve-status -s INT 4 ' + line  # it serves until somebody ends it
        done = finish(start(['bash', '-c', line], environment()))
        check(not wait_for_orphans(), 'the sidecar ends')
        if b'built without the page' in done[2]:
            continue  # a build without node and network
        check(done[0] in (0,) or ' doctor ' in line and done[0] in (0, 1), f'{line}', done)
    check(len(glob.glob(scratch('gputrace-*', '*.gtrace'))) == traces, 'each run wrote a trace', glob.glob(scratch('gputrace-*', '*')))


def test_env_prints_what_a_shell_takes():
    out, err = gputrace('env', '--simgpu', '-o', scratch('by hand'))
    done = finish(start(['bash', '-c', out + '\n' + shlex.quote(program('drv_linked'))], environment(LD_LIBRARY_PATH=None)))
    check_equal(done[0], 0, f'the program under that environment ({done[2]!r})')
    check(not wait_for_orphans(), 'the sidecar ends')
    check_equal(metrics(scratch('by hand'))['launches'], 21, 'launches')


def test_doctor():
    code, out, err = gputrace('doctor', '--simgpu', '--', program('drv_linked'), rc=None)
    check(code == 0, 'doctor on a program that can be traced', code, out, err)
    check(re.search(r'^\s*ok\b', out, re.M), 'it says what is well', out)


main()
