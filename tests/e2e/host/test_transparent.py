# meson: timeout=240
# Nothing that a program, its parent or its children can see changes: exit code, signal, output, errno, arguments, environment.
from against_truth import *

SHOW = r'''
import os, sys
ours = ('LD_PRELOAD', 'GPUTRACE', 'SIMGPU_TRUTH', 'NVTX_INJECTION64_PATH')
print(sys.argv[1:], os.getcwd(), sys.stdin.read())
print(sorted((key, value) for key, value in os.environ.items() if not key.startswith(ours) and key != 'LD_LIBRARY_PATH'))
print(sorted(os.listdir('/proc/self/fd')), os.getpgrp() == int(os.environ.get('PGRP', os.getpgrp())))
'''
DIE = r'''
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from driver import Driver
d = Driver()
for i in range(10): d.launch(d.kernel('step'))
print('before', flush=True)
how = sys.argv[2]
if how.isdigit(): os.kill(os.getpid(), int(how))
elif how == 'abort': os.abort()
elif how == '_exit': os._exit(9)
elif how == 'fault': __import__('ctypes').string_at(0)
'''
HERE = os.path.join(SOURCE, 'tests', 'e2e')


def both_ways(command, env=None, wrapped=True, **options):
    """The program untraced, under LD_PRELOAD, and under `gputrace run`: exit code and stdout the same; stderr too where we do not wrap."""
    plain = untraced(command, env, **options)
    run = traced(command, env, output=scratch('preload'), **options)
    same_output(plain, run)
    if wrapped:
        other = traced(command, env, mode='run', options=('-q',), output=scratch('wrapped'), **options)
        check_equal((other.returncode, other.stdout, other.stderr), (plain.returncode, plain.stdout, plain.stderr), 'under gputrace run -q')
    return plain, run


def test_exit_codes():
    for code in (0, 1, 2, 77, 125, 127, 128, 255):
        plain, run = both_ways([program('drv_linked'), 'count=1', f'exit={code}'])
        check_equal(run.returncode, code, 'exit code')


def test_exit_codes_of_a_program_without_cuda():
    for code in (0, 3, 126, 255):
        plain, run = both_ways(['sh', '-c', f'echo out; echo err >&2; exit {code}'])
        check_equal((run.returncode, run.stdout, run.stderr), (code, b'out\n', b'err\n'), 'exit code and output')
    check(not os.path.exists(scratch('preload')) and not os.path.exists(scratch('wrapped')), 'no trace where there is no CUDA call')


def test_death_by_signal():
    for how in (signal.SIGTERM, signal.SIGKILL, signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGUSR1, signal.SIGHUP):
        plain, run = both_ways([sys.executable, '-c', DIE, HERE, str(int(how))])
        check_equal((run.returncode, run.stdout), (-how, b'before\n'), 'ended by the signal')
        for output in ('preload', 'wrapped'):
            check_equal(overview(scratch(output))['launches'], 10, f'launches before signal {how}')
            reason = rows(scratch(output), 'run')[0]['end_reason']
            check(reason and reason != 'exited', 'the report says that it did not exit', reason)
            shutil.rmtree(scratch(output))


def test_other_ends():
    for how, code in (('abort', -signal.SIGABRT), ('_exit', 9), ('fault', -signal.SIGSEGV)):
        plain, run = both_ways([sys.executable, '-c', DIE, HERE, how])
        check_equal(run.returncode, code, how)
        check_equal(overview(scratch('preload'))['launches'], 10, how)
        shutil.rmtree(scratch('preload'))
        shutil.rmtree(scratch('wrapped'))


def overview(path):
    return {row['metric']: row['value'] for row in rows(path, 'overview')}


def test_errno():
    for name in ('cuMemAlloc', 'cuLaunchKernel', 'cuStreamSynchronize', 'cuInit', 'cuMemFree'):
        both_ways([program('drv_errno')], {'SIMGPU_ERRNO': f'{name}:1:{5 + len(name)}'}, wrapped=False)
        shutil.rmtree(scratch('preload'))
    plain = untraced([program('drv_errno')], {'SIMGPU_ERRNO': 'cuMemAlloc:1:33'})
    check(b'cuMemAlloc 0 errno 33' in plain.stdout, 'the knob does something', plain.stdout)


def test_arguments_environment_descriptors():
    both_ways([sys.executable, '-c', SHOW, 'a b', '', '--flag', '\x01\n', '*'], stdin=b'some input')


def test_closed_descriptors():
    command = ['sh', '-c', f'exec {program("drv_linked")} count=1 exit=4 <&- >&-']
    plain, run = both_ways(command)
    check_equal(run.returncode, 4, 'exit code with stdin and stdout closed')
    check_equal(overview(scratch('preload'))['launches'], 7, 'launches')


def test_program_that_closes_all_descriptors():
    text = DIE.replace("print('before', flush=True)", "os.closerange(3, 2000)\nfiles = [os.open('/dev/null', os.O_RDONLY) for _ in range(5)]\nprint(files, flush=True)\n"
                       "for i in range(10): d.launch(d.kernel('step'))")
    plain, run = both_ways([sys.executable, '-c', text, HERE, 'none'], wrapped=False)
    check_equal(overview(scratch('preload'))['launches'], 20, 'launches')


def test_a_pipe_ends_with_the_program():
    output = scratch('trace')
    env = environment(GPUTRACE_OUTPUT=output, LD_PRELOAD=places.library)
    began = time.monotonic()
    process = start([program('drv_linked')], env)
    out = process.stdout.read()
    seconds = time.monotonic() - began
    check_equal(finish(process)[0], 0, 'exit code')
    check(b'launches 21' in out and seconds < 3, 'the pipe ends with the program', seconds)
    sidecars = children()
    for pid in sidecars:
        for number in (0, 1, 2):
            try:
                check('pipe' not in os.readlink(f'/proc/{pid}/fd/{number}'), 'the sidecar holds no pipe of ours')
            except OSError:
                pass
    check(not wait_for_orphans(), 'the sidecar ends')


def descriptors(pid):
    """Number (text) and path of each; the process may open and close some while one looks."""
    held = {}
    for number in os.listdir(f'/proc/{pid}/fd'):
        try:
            held[number] = os.readlink(f'/proc/{pid}/fd/{number}')
        except FileNotFoundError:
            pass
    return held


def test_the_sidecar_stands_apart():
    """From the terminal, the folder and the descriptors of the program: what waits for those does not wait for it."""
    os.mkdir(scratch('folder'))
    text = DIE.replace("print('before', flush=True)", "d.launch(d.kernel('step'))\nprint('ready', flush=True)\nsys.stdin.read()")
    with open(scratch('kept'), 'w', encoding='ascii') as kept:
        process = start([sys.executable, '-c', text, HERE, 'none'], environment(LD_PRELOAD=places.library, GPUTRACE_OUTPUT=scratch('t')), stdin=subprocess.PIPE,
                        cwd=scratch('folder'), pass_fds=[kept.fileno()])
        check_equal(process.stdout.readline(), b'ready\n', 'the program runs')
        sidecars = wait_until(lambda: [pid for pid in children() if pid != process.pid and open(f'/proc/{pid}/comm', encoding='ascii').read().startswith('gputrace-sideca')], 'a sidecar')
    for pid in sidecars:
        check(os.getsid(pid) not in (os.getsid(process.pid), os.getsid(0)), 'a session of its own', os.getsid(pid))
        wait_until(lambda: os.readlink(f'/proc/{pid}/cwd') == '/', 'no folder is held')  # it leaves it when it has opened its files
        ours = set(descriptors(process.pid).values()) - {'/dev/null'}
        held = descriptors(pid)
        check(scratch('kept') in ours and any('pipe:' in path for path in ours), 'what the program has', ours)
        check(not ours & set(held.values()), 'no descriptor of the program is held', held)
        check(all(held.get(number, '/dev/null') == '/dev/null' for number in '012'), 'its standard descriptors', held)
    check_equal(finish(process, stdin=b'')[0], 0, 'exit code')
    check(not wait_for_orphans(), 'it ends with the program')


def test_run_into_tee_ends():
    words = ' '.join([places.gputrace, 'run', '--simgpu', '-o', scratch('t'), '--', program('drv_linked'), 'exit=3'])
    process = start(['bash', '-c', f'set -o pipefail; {words} 2>/dev/null | tee {scratch("copy")} >/dev/null'], environment(LD_LIBRARY_PATH=None))
    check_equal(finish(process, timeout=20)[0], 3, 'exit code through the pipe')
    with open(scratch('copy'), 'rb') as file:
        check(file.read().startswith(b'launches 21 checksum'), 'the output is the program\'s alone')


def test_run_says_126_and_127():
    with open(scratch('plain'), 'w', encoding='ascii') as file:
        file.write('not executable')
    for command, wanted, reason in ((scratch('plain'), 126, 'Permission denied'), ('/tmp', 126, 'Permission denied'), ('no-such-program-anywhere', 127, 'No such file or directory'),
                                    ('./no-such-program', 127, 'No such file or directory')):
        code, out, err = gputrace('run', '--', command, rc=None)
        check_equal((code, out, err), (wanted, '', f'gputrace: error: {command}: {reason}\n'), 'one line, and nothing of what was not done')
    check_equal(gputrace('run', '--no-such-option', '--', 'true', rc=None)[0], 125, 'our own usage')
    check_equal(gputrace('run', '--', rc=None)[0], 125, 'no command')


def test_run_without_cuda_says_so_and_keeps_the_exit_code():
    code, out, err = gputrace('run', '-o', scratch('none'), '--', 'sh', '-c', 'echo hello; exit 5', rc=None)
    check_equal((code, out), (5, 'hello\n'), 'exit code and stdout')
    check('no CUDA call' in err, 'it is said', err)


def test_signals_to_run_reach_the_program():
    script = 'import signal, sys, time; signal.signal(signal.SIGTERM, lambda *a: sys.exit(44)); print("ready", flush=True); time.sleep(30)'
    process = start([places.gputrace, 'run', '-q', '-o', scratch('t'), '--', sys.executable, '-c', script], environment())
    check_equal(process.stdout.readline(), b'ready\n', 'the program runs')
    process.send_signal(signal.SIGTERM)
    check_equal(finish(process, 15)[0], 44, 'its handler ran, its exit code came back')


def test_off_is_inert():
    command = [program('drv_linked')]
    run = traced(command, {'GPUTRACE': '0'})
    same_output(untraced(command), run)
    check(not os.path.exists(run.output), 'no output directory')
    check_equal(len(run.truth_of('kernel')), 21, 'the driver ran')


def test_off_makes_no_system_calls():
    if not shutil.which('strace'):
        skip('strace is not installed')
    def calls(preload):
        env = environment(GPUTRACE='0', SIMGPU_CALL_TIME='0', LD_PRELOAD=preload)
        log = scratch('strace')
        done = finish(start(['strace', '-f', '-qq', '-o', log, '-E', f'LD_PRELOAD={preload or ""}', program('drv_linked')],
                            {key: value for key, value in env.items() if key != 'LD_PRELOAD'}))
        check_equal(done[0], 0, f'exit code under strace ({done[2]!r})')
        with open(log, encoding='utf-8', errors='replace') as file:
            words = [re.search(r'^\d+\s+(\w+)\(', line) for line in file]
        return collections.Counter(word[1] for word in words if word)
    without, with_us = calls(''), calls(places.library)
    loading = {'openat', 'read', 'pread64', 'newfstatat', 'mmap', 'close', 'mprotect', 'brk', 'munmap', 'fstat', 'access'}
    extra = {name: count - without[name] for name, count in with_us.items() if count > without[name]}
    check(set(extra) <= loading and sum(extra.values()) <= 16, 'nothing but the mapping of the library', extra)


def test_nothing_before_the_first_cuda_call():
    if not shutil.which('strace'):
        skip('strace is not installed')
    log = scratch('strace')
    done = finish(start(['strace', '-f', '-qq', '-o', log, '-E', f'LD_PRELOAD={places.library}', '/bin/true'], environment(GPUTRACE_OUTPUT=scratch('t'))))
    check_equal(done[0], 0, 'exit code')
    with open(log, encoding='utf-8', errors='replace') as file:
        text = file.read()
    for name in ('memfd_create', 'clone', 'clone3', 'fork', 'vfork', 'socket', 'rt_sigaction'):
        calls = [line for line in text.splitlines() if re.match(rf'(\d+ +)?{name}\(', line)]
        check(not calls, f'no {name} in a program without CUDA', calls[:3])
    check(not os.path.exists(scratch('t')), 'no output directory')


main()
