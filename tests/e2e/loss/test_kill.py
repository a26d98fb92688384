# meson: serial timeout=400
# SIGKILL at any instant: the trace opens, every launch that returned is in it or counted as dropped, and what is missing is said.
import random
import struct

from harness import *

ROUNDS, THREADS = 1000 if FULL else 40, 4


def start_loop(name, **env):
    """drv_loop at full rate under gputrace, and a function that tells how many launches have returned in each thread."""
    progress = scratch(name + '.progress')
    process = start([program('drv_loop'), f'threads={THREADS}', f'progress={progress}'],
                    traced_environment({'SIMGPU_CALL_TIME': '1us', 'SIMGPU_TRUTH': None, **env}, scratch(name)))

    def counts():
        try:
            with open(progress, 'rb') as file:
                return struct.unpack(f'<{THREADS}q', file.read(8 * THREADS))
        except (OSError, struct.error):
            return (0,) * THREADS
    wait_until(lambda: all(counts()) or process.poll() is not None, 'the first launches', 30)
    check(process.poll() is None, 'the program runs', process.poll())
    return process, counts


def overview_of(said):
    return {row['metric']: row['value'] for row in said['sections']['overview']['rows']}


def stored_launches(name):
    """How many launches the trace file holds by now; 0 also before it can be read."""
    code, out, _ = gputrace('report', scratch(name), '--section', 'overview', '--json', rc=None)
    return overview_of(json.loads(out))['launches'] or 0 if code == 0 else 0


def test_sigkill_of_the_program():
    random.seed(2)
    for i in range(ROUNDS):
        process, counts = start_loop(f'kill{i}')
        time.sleep(random.uniform(0, 0.15))
        process.kill()
        finish(process)
        check(not wait_for_orphans(), 'the sidecar ends after the program was killed')
        done = sum(counts())
        said = report(scratch(f'kill{i}'), 'overview', 'quality', 'run')
        launches, dropped = overview_of(said)['launches'], said['coverage']['dropped']
        # The counter is stored after the call returned; the one record after it may or may not be committed.
        check(done <= launches + dropped and launches <= done + THREADS, f'round {i}: every launch that returned is accounted for', done,
              launches, dropped)
        reasons = [row['end_reason'] for row in said['sections']['run']['rows']]
        check(reasons and not {None, '', 'exited'} & set(reasons), 'the report says that it did not exit', reasons)
        shutil.rmtree(scratch(f'kill{i}'))


def test_sigkill_of_the_sidecar():
    process, counts = start_loop('sidecar', GPUTRACE_BUFFER='1M')
    sidecars = wait_until(lambda: [pid for pid in children() if pid != process.pid], 'a sidecar')
    wait_until(lambda: stored_launches('sidecar'), 'launches in the file')
    os.kill(sidecars[0], signal.SIGKILL)
    before = sum(counts())
    wait_until(lambda: sum(counts()) > before + 100000, 'the program goes on', 60)
    process.kill()
    finish(process)
    said = report(scratch('sidecar'))
    launches = overview_of(said)['launches']
    check(0 < launches <= before + 20000, 'what was written before is there, and no more', launches, before)
    check(said['coverage']['truncated'] is True, 'the report says that the trace was cut', said['coverage'])


def test_sigkill_of_both_at_once():
    process, counts = start_loop('both')
    sidecars = wait_until(lambda: [pid for pid in children() if pid != process.pid], 'a sidecar')
    wait_until(lambda: stored_launches('both'), 'launches in the file')
    before = sum(counts())
    time.sleep(1.2)  # no condition: the second, and a little more, that a launch may take to the file
    os.kill(sidecars[0], signal.SIGKILL)
    process.kill()
    finish(process)
    said = report(scratch('both'))
    launches, dropped = overview_of(said)['launches'], said['coverage']['dropped']
    check(launches + dropped >= before, 'what is more than a second old is in the file', launches, dropped, before)


def test_sigkill_of_run():
    progress = scratch('progress')
    run = start([places.gputrace, 'run', '--simgpu', '-o', scratch('t'), '--', program('drv_loop'), 'threads=1', 'progress=' + progress],
                environment(SIMGPU_CALL_TIME='10us', LD_LIBRARY_PATH=None), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def launched():
        try:
            with open(progress, 'rb') as file:
                return struct.unpack('<q', file.read(8))[0]
        except (OSError, struct.error):
            return 0
    wait_until(launched, 'the first launches', 30)
    run.kill()
    finish(run)
    before = launched()
    wait_until(lambda: launched() > before + 10000, 'the program goes on', 30)
    left = [pid for pid in children() if 'drv_loop' in open(f'/proc/{pid}/comm', encoding='utf-8').read()]
    check_equal(len(left), 1, 'the program')
    os.kill(left[0], signal.SIGTERM)
    began = time.monotonic()
    check(not wait_for_orphans(), 'the sidecar ends')
    said = report(scratch('t'))
    launches, dropped = overview_of(said)['launches'], said['coverage']['dropped']
    check(launched() <= launches + dropped <= launched() + 20, 'every launch is accounted for', launched(), launches, dropped)
    check_equal(said['coverage']['truncated'], False, 'the trace has its end')
    check(said['sections']['run']['rows'][0]['end_reason'] in ('vanished', 'signal 15'), 'how it ended', said['sections']['run']['rows'])


main()
