# meson: timeout=240
# Nothing unsaid: where there is no trace, or not all of one, `run` tells the true reason; a bare preload leaves a line in OUTPUT/untraced.
from against_truth import *

COMMAND = [program('drv_linked'), 'count=1']
HERE = os.path.join(SOURCE, 'tests', 'e2e')


def run_verb(*options, env=None, command=None, output=None):
    """(exit code, stdout, stderr) of `gputrace run`."""
    return gputrace('run', '--simgpu', '-o', output or scratch('t'), *options, '--', *(command or COMMAND), rc=None, env=env)


def lines_of_untraced(folder):
    with open(os.path.join(folder, 'untraced'), encoding='utf-8') as file:
        return file.read().splitlines()


def check_reason(words, fix, env, code=0, command=None, options=()):
    plain = untraced(command or COMMAND, {key: value for key, value in env.items() if not key.startswith('GPUTRACE')})
    got, out, err = run_verb(*options, env=env, command=command)
    check_equal((got, out), (plain.returncode, plain.stdout.decode()), f'{env}: exit code and output')
    check('no CUDA call' not in err, f'{env}: it made CUDA calls', err)
    check(words in err, f'{env}: the reason', err)
    check('fix: ' in err and fix in err, f'{env}: the fix', err)
    check(err.count('\n') <= 6, f'{env}: a line each', err)
    check(not os.path.exists(scratch('t')), f'{env}: no directory is left behind', os.listdir(scratch()))


def test_the_true_reason():
    check_reason('GPUTRACE=0 turns tracing off', 'unset GPUTRACE', {'GPUTRACE': '0'})
    check_reason('GPUTRACE_RANKS=1,5-7 does not select rank 3', 'GPUTRACE_RANKS', {'GPUTRACE_RANKS': '1,5-7', 'RANK': '3'})
    check_reason('GPUTRACE_RANKS=1 does not select a process without a rank', 'GPUTRACE_RANKS', {'GPUTRACE_RANKS': '1'})
    check_reason('GPUTRACE_PROCESS=python does not match', 'GPUTRACE_PROCESS', {'GPUTRACE_PROCESS': 'python'})
    check_reason('GPUTRACE_SIDECAR=off', 'unset GPUTRACE_SIDECAR', {'GPUTRACE_SIDECAR': 'off'})
    check_reason('GPUTRACE_SIDECAR=/no/such/program', 'unset GPUTRACE_SIDECAR', {'GPUTRACE_SIDECAR': '/no/such/program'})
    check_reason('GPUTRACE_SIDECAR=/bin/false ended before', 'unset GPUTRACE_SIDECAR', {'GPUTRACE_SIDECAR': '/bin/false'})
    check_reason('leaves nothing that this version collects', 'GPUTRACE_COLLECT', {'GPUTRACE_COLLECT': 'counters'})


def test_a_limit_on_file_sizes():
    limited = ['bash', '-c', 'ulimit -f 1024; exec "$0" "$@"', *COMMAND]
    code, out, err = run_verb(command=limited)
    check_equal((code, out), (0, untraced(COMMAND).stdout.decode()), 'the program runs')
    check('the ring of 16777216 bytes cannot be had: files may not be that large here (ulimit -f)' in err and 'no CUDA call' not in err, 'the limit', err)
    said = lines_of_untraced(scratch('t'))
    check(len(said) == 1 and re.match(r'^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ pid \d+ drv_linked: the ring of 16777216 bytes cannot be had: .*; fix: .*$', said[0]), 'a line in OUTPUT/untraced',
          said)


def test_a_bare_preload_leaves_a_line():
    limited = ['bash', '-c', 'ulimit -f 1024; exec "$0" "$@"', *COMMAND]
    same_output(untraced(COMMAND), traced(limited, {'RANK': '7', 'GPUTRACE_OUTPUT': scratch('made', '%e-%r')}, output=scratch('made')))
    said = lines_of_untraced(scratch('made', 'drv_linked-7'))
    check(len(said) == 1 and 'drv_linked, rank 7: the ring of' in said[0], 'one line', said)
    check_equal(oct(os.stat(scratch('made', 'drv_linked-7', 'untraced')).st_mode & 0o777), '0o600', 'its mode')
    traced(COMMAND, {'RANK': '7', 'GPUTRACE_OUTPUT': scratch('made', '%e-%r')}, output=scratch('made'))
    check('1 process could not be traced: ' in gputrace('report', scratch('made', 'drv_linked-7'))[1], 'the report of the others says so')
    # What was asked for is no failure.
    traced(COMMAND, {'GPUTRACE_PROCESS': 'python'})
    check(not os.path.exists(scratch('trace')), 'no line where the process was not to be traced')


def test_an_output_of_the_process_that_cannot_be_made():
    # What `run` does not know before: the name that only the process knows is a file already.
    os.mkdir(scratch('t'))
    with open(scratch('t', 'drv_linked'), 'w', encoding='ascii') as file:
        file.write('x')
    code, out, err = run_verb(output=scratch('t', '%e'))
    check_equal((code, out), (0, untraced(COMMAND).stdout.decode()), 'the program runs')
    check(scratch('t', 'drv_linked') + ' is not a directory' in err and 'fix: GPUTRACE_OUTPUT=' in err and 'no CUDA call' not in err, 'the reason', err)


def test_some_processes_only():
    text = f'import subprocess; [subprocess.run({COMMAND!r}, env={{**__import__("os").environ, "RANK": str(rank)}}) for rank in range(4)]'
    code, out, err = run_verb(command=[sys.executable, '-c', text], env={'GPUTRACE_RANKS': '2'})
    check_equal((code, len(glob.glob(scratch('t', '*.gtrace')))), (0, 1), 'one of four is traced')
    check('gputrace: warning: 3 processes made CUDA calls that were not traced' in err, 'three are not', err)
    for rank in (0, 1, 3):
        check(f'GPUTRACE_RANKS=2 does not select rank {rank}' in err, f'rank {rank}', err)


def test_refused_before_the_program_starts():
    with open(scratch('file'), 'w', encoding='ascii') as file:
        file.write('x')
    ran = ['touch', scratch('it-ran')]
    for output, path, reason in ((scratch('file'), scratch('file'), 'is not a directory'), (scratch('file', 'below'), scratch('file'), 'is not a directory'),
                                 ('/proc/nothing', '/proc/nothing', 'No such file or directory'), (scratch('file', '%p'), scratch('file'), 'is not a directory')):
        code, out, err = run_verb(output=output, command=ran)
        check_equal((code, out), (125, ''), f'{output}: refused')
        check(err.startswith(f'gputrace: error: {path}') and reason in err.splitlines()[0], f'{output}: path and reason', err)
        check('the program was not started' in err and 'fix: -o DIR' in err, f'{output}: what became of it, and the fix', err)
        check(not os.path.exists(scratch('it-ran')), f'{output}: the program was not started')


def test_a_full_or_read_only_disk_is_refused():
    if os.geteuid() != 0 or not shutil.which('unshare'):
        skip('needs a mount namespace')
    os.mkdir(scratch('disk'))
    for options, reason in (('size=64k', 'is on a full disk'), ('size=1m,ro', 'is read-only')):
        script = f'mount -t tmpfs -o {options} none {scratch("disk")} || exit 99; head -c 1M /dev/zero > {scratch("disk")}/big 2>/dev/null; ' \
                 f'{places.gputrace} run --simgpu -o {scratch("disk")}/t -- touch {scratch("it-ran")}'
        code, out, err = finish(start(['unshare', '-m', 'bash', '-c', script], environment(LD_LIBRARY_PATH=None)))
        if code == 99 or b'unshare' in err:
            skip('no mounts here')
        check_equal(code, 125, f'{options}: refused ({err!r})')
        check(reason in err.decode(), f'{options}: why', err)
        check(not os.path.exists(scratch('it-ran')), 'the program was not started')


def test_what_run_made_and_nothing_was_put_into_is_removed():
    code, out, err = run_verb(output=scratch('a', 'b', 'c'), command=['true'])
    check_equal(code, 0, 'exit code')
    check('no CUDA call' in err, 'it is said', err)
    check(not os.path.exists(scratch('a')), 'no directory is left')
    os.mkdir(scratch('kept'))
    run_verb(output=scratch('kept'), command=['true'])
    check(os.path.isdir(scratch('kept')), 'one that was there stays')


def test_a_window_that_never_opened():
    for option, env, words in ((('--capture', 'profiler-api'), {}, 'cudaProfilerStart was not called'), (('--capture', 'nvtx:steps'), {}, 'the range steps was not opened'),
                               (('--delay', '1h'), {}, 'the program ended before GPUTRACE_DELAY had passed')):
        code, out, err = run_verb(*option, env=env)
        check_equal(code, 0, 'exit code')
        check(re.search(r'nothing was recorded of drv_linked \(pid \d+\): ' + re.escape(words), ' '.join(err.split())), f'{option}: run says it', err)
        said = report(scratch('t'))
        check_equal({row['metric']: row['value'] for row in said['sections']['overview']['rows']}['launches'], 0, f'{option}: nothing was recorded')
        check(any(words in remark for remark in said['coverage'].get('remarks', [])) or words in gputrace('report', scratch('t'))[0], f'{option}: the report says it', said['coverage'])
        shutil.rmtree(scratch('t'))
    # A window that opened says nothing of the kind.
    code, out, err = run_verb('--delay', '0')
    check('nothing was recorded' not in err, 'open from the start', err)


def test_a_sandbox_before_the_first_call():
    text = f'import sys; sys.path.insert(0, {HERE!r}); import ctypes; libc = ctypes.CDLL(None); ' \
           'libc.prctl(38, 1, 0, 0, 0); f = (ctypes.c_ulong * 1)(0x7fff000000000006); ' \
           'p = (ctypes.c_ulong * 2)(1, ctypes.addressof(f)); print(libc.prctl(22, 2, p)); from driver import Driver; d = Driver(); d.launch(d.kernel("step"))'
    code, out, err = run_verb(command=[sys.executable, '-c', text])
    check_equal((code, out), (0, '0\n'), f'the filter is there, the program runs ({err!r})')
    check('put itself under a filter of system calls' in err, 'the reason', err)


def test_unknown_names():
    code, out, err = run_verb(env={'GPUTRACE_BUFFFER': '64M', 'GPUTRACE_LOG': 'off'})
    lines = [line for line in err.splitlines() if 'is not a variable of gputrace' in line]
    check_equal(lines[:1], ["gputrace: warning: GPUTRACE_BUFFFER is not a variable of gputrace; it is ignored, did you mean 'GPUTRACE_BUFFER'?"], 'said once, before the program runs')


def test_doctor_says_it_before():
    for env, words in (({'GPUTRACE': '0'}, 'GPUTRACE=0: tracing is off'), ({'GPUTRACE_BUFFFER': '1M'}, 'GPUTRACE_BUFFFER is not a variable of gputrace'),
                       ({'GPUTRACE_PROCESS': 'python'}, 'GPUTRACE_PROCESS=python does not match drv_linked')):
        code, out, err = gputrace('doctor', '--simgpu', '--', *COMMAND, rc=None, env=env)
        check(words in out, f'{env}', out)
        check_equal(code, int('GPUTRACE' in env), f'{env}: ready or not')
    said = gputrace('doctor', '--simgpu', '--', *COMMAND)[0]
    check(not any(words in said for words in ('is not a variable', 'does not match', 'tracing is off')), 'nothing to say otherwise', said)


def test_least_and_most_buffer():
    for value, words in (('1', 'the least possible is 512K'), ('4K', '512K is used'), ('511K', '512K is used'), ('512K', None), ('2G', 'the most possible is 1G')):
        run = traced(COMMAND, {'GPUTRACE_BUFFER': value})
        said = [row['text'] for row in rows(run, 'quality-notes') if row['what'] == 'option']
        check_equal(bool(said), words is not None, f'GPUTRACE_BUFFER={value}: said or not ({said})')
        check(words is None or words in said[0], f'GPUTRACE_BUFFER={value}: what is used', said)
        forget_run()


DIE = f'import os, sys, signal; sys.path.insert(0, {HERE!r}); from driver import Driver; d = Driver(); d.launch(d.kernel("step"))\n'


def test_how_it_ended():
    for how, code, reason in (('sys.exit(0)', 0, 'exited'), ('sys.exit(3)', 3, 'exited 3'), ('os._exit(9)', 9, 'exited 9'), ('os.abort()', -6, 'signal 6'),
                              ('os.kill(os.getpid(), 9)', -9, 'signal 9'), ('os.kill(os.getpid(), 15)', -15, 'signal 15')):
        code_seen, out, err = run_verb(command=[sys.executable, '-c', DIE + how])
        check_equal(code_seen, code, f'{how}: exit code')
        check_equal([row['end_reason'] for row in rows(scratch('t'), 'run')], [reason], f'{how}: as `run` saw it')
        headline = gputrace('report', scratch('t'))[0].splitlines()[0]
        check(headline.endswith(reason if reason != 'exited' else 's'), f'{how}: the first screen says what is out of the ordinary', headline)
        shutil.rmtree(scratch('t'))


LAUNCHER = '''
import subprocess, sys, time
ranks = [subprocess.Popen([sys.executable, '-c', text], env={**__import__('os').environ, 'RANK': str(rank)}) for rank, text in enumerate(sys.argv[1:])]
while all(rank.poll() is None for rank in ranks):
    time.sleep(0.3)  # as launchers look
for rank in ranks:
    if rank.returncode is None:
        rank.terminate()
sys.exit(max(abs(rank.wait()) for rank in ranks) and 1)
'''


def test_the_rank_that_failed_first():
    """A launcher that asks a third of a second later how its process ended; then it ends the other."""
    code, _, err = run_verb(command=[sys.executable, '-c', LAUNCHER, DIE + 'import time; time.sleep(60)', DIE + 'import time; time.sleep(0.5); sys.exit(3)'])
    check_equal(code, 1, 'exit code')
    ends = {row['rank']: row['end_reason'] for row in rows(scratch('t'), 'run')}
    check_equal(ends.get(1), 'exited 3', 'how the one ended of which its parent asks later')
    if ends.get(0) == 'vanished':
        skip('this kernel tells nobody how a process ended once its parent has asked')
    check_equal(ends, {0: 'signal 15', 1: 'exited 3'}, 'how each ended')
    said = json.loads(gputrace('report', scratch('t'), '--json', '--section', 'run')[0])['findings'][0]
    check_equal((said['id'], said['evidence']['end_reason']), ('first-failure', 'exited 3'), 'the first finding')
    check(said['text'].startswith('rank 1 failed first (exited 3); rank 0 ') and said['text'].endswith(' later (signal 15)'), 'in words', said['text'])
    check('rank 1 failed first' in err, '`run` says it', err)


main()
