# meson: serial timeout=300
# Rings in files (GPUTRACE_SHM=file:DIR): whatever dies, `gputrace recover` finds the rest; in a container it is so by itself.
import random
import struct

from against_truth import *

ROUNDS, THREADS = 200 if FULL else 8, 3
QUICK = {'SIMGPU_CALL_TIME': '10us', 'SIMGPU_TRUTH': None, 'GPUTRACE_COLLECT': 'api'}


def counts(progress, threads=THREADS):
    try:
        with open(progress, 'rb') as file:
            return struct.unpack(f'<{threads}q', file.read(8 * threads))
    except (OSError, struct.error):
        return (0,) * threads


def start_loop(name, **env):
    progress = scratch(name + '.progress')
    process = start([program('drv_loop'), f'threads={THREADS}', f'progress={progress}'],
                    traced_environment({**QUICK, 'GPUTRACE_SHM': 'file:' + scratch(name), **env}, scratch(name)))
    wait_until(lambda: all(counts(progress)) or process.poll() is not None, 'the first launches', 30)
    check(process.poll() is None, 'the program runs', process.poll())
    sidecar = [] if env.get('GPUTRACE_SIDECAR') == 'off' else wait_until(lambda: [pid for pid in children() if pid != process.pid], 'a sidecar')
    return process, sidecar, progress


def kill_all(process, pids):
    """In this order, the program among them."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # the scanner goes with its sidecar
    finish(process)
    wait_for_orphans(5)


def rings(name):
    return glob.glob(scratch(name, '*.ring'))


def launches_and_dropped(path):
    said = report(path)
    launches = {row['metric']: row['value'] for row in said['sections']['overview']['rows']}['launches']
    return launches, said['coverage']['dropped'], said


def check_recovered(name, done, what):
    check_equal(len(rings(name)), 1, f'{what}: a ring is left')
    out, err = gputrace('recover', scratch(name))
    check('recovered into' in err or 'has its end already' in err, f'{what}: said', err)
    check(not rings(name), f'{what}: the ring is gone', rings(name))
    launches, dropped, said = launches_and_dropped(scratch(name))
    check(done <= launches + dropped and launches <= done + THREADS, f'{what}: every launch that returned is stored or counted', done, launches, dropped)
    for row in said['sections']['quality']['rows']:
        check(row['seen'] == row['stored'] + row['dropped'] and row['exact'], f'{what}: seen = stored + dropped', row)
    check_equal(said['coverage']['truncated'], False, f'{what}: it has an end')
    lines = dump(scratch(name) if name.endswith('.gtrace') else glob.glob(scratch(name, '*.gtrace')))
    keys = [(record['tid'], record['begin_ns']) for record in lines if record['record'] == 'KernelLaunch']
    check_equal(len(keys), len(set(keys)), f'{what}: no launch twice')
    return launches, dropped


def test_nothing_is_left_of_it():
    command = [program('drv_linked'), 'count=200']
    run = traced(command, {'GPUTRACE_SHM': 'file:' + scratch('ring', 'below')})
    same_output(untraced(command), run)
    check_launches_against_truth(run)
    check_conservation(run)
    check_equal(os.listdir(scratch('ring', 'below')), [], 'the ring was removed')
    code, out, err = gputrace('recover', scratch('ring'), rc=None)
    check(code == 3 and 'no ring was left' in err, 'nothing to recover', code, err)
    check_equal([row for row in rows(run, 'quality-notes') if row['what'] == 'option'], [], 'nothing to say')


def test_both_die_at_once():
    random.seed(4)
    stored = 0
    for i in range(ROUNDS):
        process, sidecars, progress = start_loop(f'both{i}')
        time.sleep(random.uniform(0, 0.7))
        kill_all(process, [*sidecars, process.pid] if i % 2 else [process.pid, *sidecars])
        launches, dropped = check_recovered(f'both{i}', sum(counts(progress)), f'round {i}')
        stored += launches
        shutil.rmtree(scratch(f'both{i}'))
    check(stored > 1000, 'launches were recovered', stored)


def test_the_ring_says_where_its_trace_is():
    """Rings and traces in different folders: whoever names the rings alone gets the trace that was begun, and none where it is gone."""
    for left in ('whole', 'gone', 'another'):
        process, sidecars, progress = start_loop('apart', GPUTRACE_SHM='file:' + scratch('rings'))
        begun = wait_until(lambda: glob.glob(scratch('apart', '*.gtrace')), 'a trace')[0]
        kill_all(process, [*sidecars, process.pid])
        if left != 'whole':
            os.unlink(begun)
        if left == 'another':
            shutil.copy(glob.glob(os.path.join(SOURCE, 'tests', 'corpus', 'kept', 'numbers_are_those_of_the_samples', '*.gtrace'))[0], begun)
        said = gputrace('recover', scratch('rings'))[1]
        made = begun if left == 'whole' else os.path.join(scratch('rings'), os.path.basename(begun))
        check('recovered into ' + made in said, f'{left}: into which trace', said)
        check_equal(glob.glob(scratch('rings', '*')), [] if left == 'whole' else [made], f'{left}: nothing else is left')
        launches, dropped, _ = launches_and_dropped(made)
        check(sum(counts(progress)) <= launches + dropped, f'{left}: every launch that returned is stored or counted', launches, dropped)
        shutil.rmtree(scratch('apart'))
        shutil.rmtree(scratch('rings'))


def test_the_sidecar_dies_first():
    process, sidecars, progress = start_loop('first', GPUTRACE_BUFFER='1M', SIMGPU_CALL_TIME='1us')
    time.sleep(0.2)
    os.kill(sidecars[0], signal.SIGKILL)
    before = sum(counts(progress))
    wait_until(lambda: sum(counts(progress)) > before + 20000, 'the program goes on', 60)
    code, out, err = gputrace('recover', scratch('first'), rc=None)
    check(code == 0 and 'still runs' in err and len(rings('first')) == 1, 'while it runs it is left alone', code, err)
    process.kill()
    finish(process)
    launches, dropped = check_recovered('first', sum(counts(progress)), 'sidecar first')
    check(dropped > 0, 'what found no room is counted', dropped)


def test_without_a_sidecar():
    process, _, progress = start_loop('none', GPUTRACE_SIDECAR='off')
    time.sleep(0.1)
    process.kill()
    finish(process)
    check(not glob.glob(scratch('none', '*.gtrace')), 'no trace yet')
    check_recovered('none', sum(counts(progress)), 'no sidecar')


def test_where_no_file_can_be():
    with open(scratch('file'), 'w', encoding='ascii') as file:
        file.write('x')
    for place, why in (('/proc/nothing', 'it cannot be made'), (scratch('file', 'x'), 'it cannot be made'), ('/proc', 'no file can be made there')):
        run = traced([program('drv_linked')], {'GPUTRACE_SHM': 'file:' + place})
        said = [row['text'] for row in rows(run, 'quality-notes') if row['what'] == 'option']
        check(len(said) == 1 and why in said[0] and 'it is in memory' in said[0], f'{place}: said', said)
        check_equal(metrics(run)['launches'], 21, f'{place}: traced all the same')
        forget_run()


def test_what_is_no_ring():
    os.mkdir(scratch('odd'))
    for name, content, code, words in (('gputrace-1-aa.ring', b'', 1, 'is empty: '), ('gputrace-2-bb.ring', os.urandom(1 << 20), 1, 'is no segment of gputrace'),
                                       ('notes.txt', b'hello', 1, 'has a size that makes no sense'), ('missing.ring', None, 3, 'No such file or directory')):
        path = scratch('odd', name)
        if content is not None:
            with open(path, 'wb') as file:
                file.write(content)
        for paths in ([path], [scratch('odd')] if name.endswith('.ring') and content is not None else [path]):
            got, out, err = gputrace('recover', *paths, rc=None)
            check_equal((got, out), (code, ''), f'{name}: exit code')
            check(err.startswith(f'gputrace: error: {path}') and words in err and err.count('\n') == 1, f'{name}: one line', err)
        if content is not None:
            with open(path, 'rb') as file:
                check(file.read() == content, f'{name}: left as it is')
            os.unlink(path)
    check_equal(gputrace('recover', '--bad', rc=None)[0], 2, 'an option that there is not')


def container(*command, env):
    """The command as the first process of a PID namespace."""
    done = finish(start(['unshare', '-fp', '--mount-proc', *command], env), 60)
    if b'unshare:' in done[2]:
        skip('no PID namespaces here')
    return done


def test_the_first_process_of_a_container():
    for what, command in (('pid 1', lambda words: words), ('child of pid 1', lambda words: ['sh', '-c', '"$0" "$@"; true', *words])):
        for ends in ('exit=0', 'exit=7'):
            env = traced_environment({'SIMGPU_CALL_TIME': '0', 'SIMGPU_TRUTH': None, 'GPUTRACE_COLLECT': 'api'}, scratch('c'))
            code, out, err = container(*command([program('drv_linked'), 'count=3000', ends]), env=env)
            check_equal(code, int(ends[5:]) if what == 'pid 1' else 0, f'{what}: exit code ({err!r})')
            wait_for_orphans(5)
            if rings('c'):
                gputrace('recover', scratch('c'))
            launches, dropped, said = launches_and_dropped(scratch('c'))
            wanted = int(re.search(rb'launches (\d+)', out)[1])
            check_equal(launches + dropped, wanted, f'{what}, {ends}: stored and dropped is what the program did ({said["sections"]["quality"]["rows"]}, {said["coverage"]})')
            check(not rings('c'), 'no ring is left')
            shutil.rmtree(scratch('c'))
    # Elsewhere, and where the user says so, the ring is in memory.
    env = traced_environment({'SIMGPU_CALL_TIME': '0', 'SIMGPU_TRUTH': None, 'GPUTRACE_SHM': 'memfd'}, scratch('c'))
    container(program('drv_linked'), env=env)
    check(not rings('c'), 'GPUTRACE_SHM=memfd')


main()
