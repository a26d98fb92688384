# meson: serial timeout=300
# Death of the program, of the sidecar and of both at random instants, calls that never return, a sidecar that cannot start: every
# trace opens, and what is missing is said. (test_kill holds the loss against a counter that outlives the program.)
import random

from against_truth import *

ROUNDS, THREADS = 1000 if FULL else 60, 8
LOOP = {'SIMGPU_CALL_TIME': '0', 'SIMGPU_TRUTH': None}


def loop(name, **env):
    progress = scratch(name + '.progress')
    process = start([program('drv_loop'), f'threads={THREADS}', f'progress={progress}'], traced_environment({**LOOP, **env}, scratch(name)))
    return process, progress


def count_of(progress):
    try:
        with open(progress, 'rb') as file:
            data = file.read(8 * THREADS)
        return [int.from_bytes(data[at:at + 8], 'little') for at in range(0, len(data), 8)]
    except OSError:
        return []


def wait_running(process, progress):
    wait_until(lambda: sum(count_of(progress)) > 0 or process.poll() is not None, 'the first calls', 30)
    check(process.poll() is None, 'the program runs', process.poll())


def alive(pid):
    try:
        with open(f'/proc/{pid}/stat', encoding='utf-8') as file:
            return file.read().rpartition(')')[2].split()[0] not in 'ZX'
    except OSError:
        return False


def sidecars_beside(process):
    return [pid for pid in children() if pid != process.pid]


def test_sigkill_of_the_program_at_any_instant():
    random.seed(60)
    for i in range(ROUNDS):
        name = f'kill{i}'
        process, progress = loop(name)
        if i % 3:
            wait_running(process, progress)
            time.sleep(random.uniform(0, 0.02))
        else:
            time.sleep(random.uniform(0, 0.1))  # while it starts: before, in and after the first call
        process.kill()
        finish(process)
        check(not wait_for_orphans(5), f'round {i}: the sidecar ends soon')
        done = sum(count_of(progress))
        files = glob.glob(scratch(name, '*.gtrace'))
        if done == 0 and not files:
            continue
        check(len(files) == 1, f'round {i}: one file', files)
        said = report(files[0], 'overview', 'quality', 'run')
        overview = {row['metric']: row['value'] for row in said['sections']['overview']['rows']}
        dropped = said['coverage']['dropped']
        check(done <= overview['launches'] + dropped, f'round {i}: every launch that returned is stored or counted', done, overview['launches'], dropped)
        for row in said['sections']['quality']['rows']:
            check(row['seen'] == row['stored'] + row['dropped'] or row['exact'] is False, f'round {i}: seen = stored + dropped', row)
        check_equal(said['coverage']['truncated'], False, f'round {i}: the sidecar wrote an end')
        shutil.rmtree(scratch(name))


def test_sigkill_of_the_sidecar_at_any_instant():
    random.seed(61)
    for i in range(12):
        name = f'sidecar{i}'
        process, progress = loop(name, GPUTRACE_BUFFER='1M')
        wait_running(process, progress)
        sidecar = wait_until(lambda: sidecars_beside(process), 'a sidecar')[0]
        time.sleep(random.uniform(0, 0.1))
        os.kill(sidecar, signal.SIGKILL)
        before = sum(count_of(progress))
        wait_until(lambda: sum(count_of(progress)) > before + 20000, 'the program goes on', 60)
        # Its scanner of machine code dies with it.
        wait_until(lambda: not [pid for pid in sidecars_beside(process) if pid != sidecar and alive(pid)], 'nothing of it is left', 5)
        process.kill()
        finish(process)
        wait_for_orphans(5)
        files = glob.glob(scratch(name, '*.gtrace'))
        code, out, err = gputrace('report', scratch(name), '--json', rc=None)
        if code == 3:  # killed before the file's first chunk: that is said
            check(err.startswith('gputrace: ') and err.count('\n') <= 3, 'one clear line', err)
            continue
        check_equal(code, 0, f'round {i}: the report ({err!r})')
        check_equal(json.loads(out)['coverage']['truncated'], True, f'round {i}: it is said that the trace was cut')
        shutil.rmtree(scratch(name))


def test_sigkill_of_both():
    for i in range(6):
        name = f'both{i}'
        process, progress = loop(name)
        wait_running(process, progress)
        sidecar = wait_until(lambda: sidecars_beside(process), 'a sidecar')[0]
        time.sleep(1.3 if i == 0 else 0.1 * i)
        for pid in ((sidecar, process.pid) if i % 2 else (process.pid, sidecar)):
            os.kill(pid, signal.SIGKILL)
        finish(process)
        wait_for_orphans(5)
        code, out, err = gputrace('report', scratch(name), '--json', rc=None)
        check(code in (0, 3), f'round {i}: opens, or says why not', code, err)
        if code == 0:
            said = json.loads(out)
            check(said['coverage']['truncated'] in (True, False) and said['sections']['run']['rows'], 'what is there is reported', said['coverage'])


def test_death_inside_a_call():
    command = [program('drv_linked'), 'count=10']
    env = {'SIMGPU_ABORT_AT': 'cuLaunchKernel:33', **CALLS}
    plain, run = untraced(command, env), traced(command, env)
    same_output(plain, run)
    check_equal(run.returncode, -signal.SIGABRT, 'aborted')
    said = report(run)
    overview = {row['metric']: row['value'] for row in said['sections']['overview']['rows']}
    check_equal(overview['launches'], 32, 'launches that returned')
    texts = [finding['text'] for finding in said['findings'] if finding['id'] == 'call-in-flight']
    check(len(texts) == 1 and 'died inside cuLaunchKernel' in texts[0], 'the call that it died in', said['findings'])
    open_calls = [record for record in dump(run) if record['record'] == 'InFlight']
    check([(record['call'], record['end_ns'], record['result']) for record in open_calls] == [('cuLaunchKernel', None, None)], 'in the dump', open_calls)
    last = max(record['end_ns'] for record in records(run, 'KernelLaunch'))
    check(open_calls[0]['begin_ns'] >= last, 'it began after the last launch that returned')
    text = gputrace('report', run.output)[0]
    check('died inside cuLaunchKernel' in text, 'in the text report', text[:1500])


def test_a_hang_is_visible():
    process = start([program('drv_linked'), 'count=5'], traced_environment({'SIMGPU_HANG': 'cuStreamSynchronize:2:60000'}))
    file = wait_until(lambda: glob.glob(scratch('trace', '*.gtrace')), 'a trace file')[0]
    time.sleep(1.5)
    early = [record['call'] for record in dump(file) if record['record'] == 'InFlight']
    process.kill()
    finish(process)
    check(not wait_for_orphans(), 'the sidecar ends')
    open_calls = [record for record in dump(file) if record['record'] == 'InFlight']
    check_equal([record['call'] for record in open_calls], ['cuStreamSynchronize'], 'the call that hung')
    check(early in ([], ['cuStreamSynchronize']), 'while it runs', early)
    check('died inside cuStreamSynchronize' in json.dumps(report(file)['findings']), 'the report says it', report(file)['findings'])


def check_without_sidecar(**env):
    command = [program('drv_linked'), 'count=200']
    run = traced(command, env)
    same_output(untraced(command), run)
    check(not run.traces if os.path.isdir(run.output) else True, 'no trace')
    shutil.rmtree(run.output, ignore_errors=True)


def test_sidecar_missing_or_useless():
    for name, mode, text in (('plain', 0o644, 'not executable'), ('script', 0o755, '#!/nowhere/interpreter\n'), ('leaves', 0o755, '#!/bin/sh\nexit 1\n'),
                             ('garbage', 0o755, '\x7fELF garbage')):
        with open(scratch(name), 'w', encoding='latin-1') as file:
            file.write(text)
        os.chmod(scratch(name), mode)
        check_without_sidecar(GPUTRACE_SIDECAR=scratch(name))
    check_without_sidecar(GPUTRACE_SIDECAR=scratch('missing'))
    check_without_sidecar(GPUTRACE_SIDECAR='off')
    check_without_sidecar(GPUTRACE_SIDECAR=scratch())


def test_sidecar_stopped():
    # Calls alone: with a sidecar that stands still device records are dropped and counted too.
    process, progress = loop('stopped', GPUTRACE_BUFFER='1M', GPUTRACE_COLLECT='api')
    wait_running(process, progress)
    sidecar = wait_until(lambda: sidecars_beside(process), 'a sidecar')[0]
    os.kill(sidecar, signal.SIGSTOP)
    before = sum(count_of(progress))
    wait_until(lambda: sum(count_of(progress)) > before + 500000, 'the program goes on', 60)
    process.kill()
    finish(process)
    os.kill(sidecar, signal.SIGCONT)
    check(not wait_for_orphans(), 'the sidecar ends once it runs again')
    done, said = sum(count_of(progress)), report(scratch('stopped'))
    overview = {row['metric']: row['value'] for row in said['sections']['overview']['rows']}
    dropped = said['coverage']['dropped']
    check(dropped > 0 and done <= overview['launches'] + dropped <= done + 20 * THREADS, 'stored + dropped is what was called', done, overview['launches'], dropped)
    check('dropped-records' in {finding['id'] for finding in said['findings']}, 'the report says it first', said['findings'][:1])


def test_output_that_cannot_be_written():
    with open(scratch('file'), 'w', encoding='ascii') as file:
        file.write('x')
    for output in (scratch('file'), scratch('file', 'below'), '/proc/nothing'):
        command = [program('drv_linked')]
        run = traced(command, {'GPUTRACE_OUTPUT': output}, output=output)
        same_output(untraced(command), run)


main()
