# meson: serial timeout=300
# SIGKILL at any instant: the trace opens, every launch that returned is in it, and what is missing is said.
import mmap
import random
import struct
import sys

from harness import *

PROGRAM = r'''
import mmap, struct, sys
sys.path.insert(0, sys.argv[1])
from driver import Driver
counter = mmap.mmap(open(sys.argv[2], 'r+b').fileno(), 8)
d = Driver()
kernel = d.kernel('step')
for n in range(1, 100000000):
    d.launch(kernel)
    counter[:8] = struct.pack('<q', n)
    if n % 1000 == 0: d('cuCtxSynchronize')
'''
ROUNDS = 25


def start_counting(name, **env):
    path = scratch(name + '.count')
    with open(path, 'wb') as file:
        file.write(bytes(8))
    process = start([sys.executable, '-c', PROGRAM, os.path.dirname(os.path.abspath(__file__)), path],
                    traced_environment({'SIMGPU_CALL_TIME': '0', 'SIMGPU_TRUTH': None, 'GPUTRACE_BUFFER': '64M', **env}, scratch(name)))

    def count():
        with open(path, 'rb') as file:
            return struct.unpack('<q', file.read(8))[0]
    wait_until(lambda: count() > 0 or process.poll() is not None, 'the first launch', 30)
    check(process.poll() is None, 'the program runs', process.poll())
    return process, count


def test_sigkill_of_the_program():
    random.seed(2)
    for i in range(ROUNDS):
        process, count = start_counting(f'kill{i}')
        time.sleep(random.uniform(0, 0.3))
        process.kill()
        finish(process)
        check(not wait_for_orphans(), 'the sidecar ends after the program was killed')
        done = count()
        said = report(scratch(f'kill{i}'), 'overview', 'quality', 'run')
        launches = {row['metric']: row['value'] for row in said['sections']['overview']['rows']}['launches']
        # The counter is stored after the call returned; the one record after it may or may not be committed.
        check(done <= launches <= done + 1, f'round {i}: every launch that returned is in the trace', done, launches)
        reasons = [row['end_reason'] for row in said['sections']['run']['rows']]
        check(reasons and all(reason not in (None, '', 'exited') for reason in reasons), 'the report says that it did not exit', reasons)


def test_sigkill_of_the_sidecar():
    process, count = start_counting('sidecar', GPUTRACE_BUFFER='1M')
    sidecars = wait_until(lambda: [pid for pid in children() if pid != process.pid], 'a sidecar')
    time.sleep(0.3)
    os.kill(sidecars[0], signal.SIGKILL)
    before = count()
    wait_until(lambda: count() > before + 50000, 'the program goes on', 60)
    process.kill()
    finish(process)
    code, out, err = gputrace('report', scratch('sidecar'), '--json', rc=None)
    check_equal(code, 0, f'exit code of report ({err})')
    said = json.loads(out)
    launches = {row['metric']: row['value'] for row in said['sections']['overview']['rows']}['launches']
    check(0 < launches <= before + 50000 + 20000, 'what was written before is there', launches, before)
    check(said['coverage']['truncated'] is True, 'the report says that the trace was cut', said['coverage'])


main()
