# The example that is installed (examples/train.cu), and what it launches.
from harness import *

LAUNCHES_BEFORE, LAUNCHES_OF_A_STEP = 2, 9  # weights are filled; eight kernels, and the optimizer as a graph


def launches_of_the_example(folder, steps):
    """Those that a report counts when the gputrace in the folder traces the example beside it on the simulated GPU."""
    out, env = scratch('example'), environment(LD_LIBRARY_PATH=None)
    tool, example = (os.path.join(folder, name) for name in ('gputrace', 'gputrace-example'))
    ran = finish(start([tool, 'run', '--simgpu', '-o', out, '--', example, str(steps)], env))
    check_equal(ran[0], 0, f'run ({ran[2]!r})')
    check(not wait_for_orphans(), 'the sidecar ends')
    said = finish(start([tool, 'report', out, '--json'], env))
    check_equal(said[0], 0, f'report ({said[2]!r})')
    return {row['metric']: row['value'] for row in json.loads(said[1])['sections']['overview']['rows']}['launches']
