# The installed tree, moved elsewhere, with nothing of the build beside it: the library finds its sidecar, the command its library.
import shutil

from example import *
from harness import *


def installed():
    """A tree installed by meson and then moved; the paths of its parts."""
    stage, tree = scratch('stage'), scratch('moved-tree')
    done = subprocess.run(['meson', 'install', '-C', BUILD, '--no-rebuild', '--quiet', '--destdir', stage], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100, check=False)
    check(done.returncode == 0, 'meson install', done.stdout.decode(errors='replace')[-500:])
    found = [at for at, folders, _ in os.walk(stage) if 'bin' in folders and 'lib' in folders]
    check(found, 'bin/ and lib/ in what was installed', [at for at, _, _ in os.walk(stage)])
    shutil.move(found[0], tree)
    return tree


def test_the_tree_has_its_parts_and_nothing_else():
    tree = installed()
    for part in ('bin/gputrace', 'lib/libgputrace.so', 'libexec/gputrace/gputrace-sidecar', 'lib/gputrace/simgpu/libcuda.so.1',
                 'lib/gputrace/simgpu/libcupti.so.13'):
        check(os.path.exists(os.path.join(tree, part)), f'{part} is installed')
    tops = set(os.listdir(tree)) - {'bin', 'lib', 'libexec', 'share'}
    check(not tops, 'nothing else is at the top', tops)
    stray = [os.path.join(at, name) for at, _, names in os.walk(tree) for name in names if name.endswith(('.a', '.h', '_test', '.cpp'))
             and 'libcudart_sim.a' not in name]
    check(not stray, 'no test, header or object is installed', stray)


def test_run_and_report_work_after_a_move():
    tree, output = installed(), scratch('out')
    command = [program('drv_linked')]
    env = environment(LD_LIBRARY_PATH=None)
    ran = finish(start([os.path.join(tree, 'bin/gputrace'), 'run', '--simgpu', '-o', output, '--', *command], env))
    check_equal(ran[0], 0, f'exit code ({ran[2]!r})')
    check(not wait_for_orphans(), 'the sidecar ends')
    said = finish(start([os.path.join(tree, 'bin/gputrace'), 'report', output, '--json'], env))
    check_equal(said[0], 0, f'exit code of report ({said[2]!r})')
    overview = {row['metric']: row['value'] for row in json.loads(said[1])['sections']['overview']['rows']}
    check(overview['launches'] > 0, 'launches in the report', overview)


def test_the_example_is_in_it():
    """So that it can be tried without a GPU."""
    if not os.path.exists(os.path.join(BUILD, 'examples', 'gputrace-example')):
        skip("built without CUDA's compiler, or without the simulated GPU")
    tree = installed()
    check_equal(launches_of_the_example(os.path.join(tree, 'bin'), 3), LAUNCHES_BEFORE + 3 * LAUNCHES_OF_A_STEP, 'launches')


def test_a_path_that_ld_preload_cannot_take_is_said():
    tree = scratch('moved tree')
    shutil.move(installed(), tree)
    code, out, err = finish(start([os.path.join(tree, 'bin/gputrace'), 'run', '--', 'true'], environment(LD_LIBRARY_PATH=None)))
    check_equal((code, out), (125, b''), 'exit code')
    check(b'blank' in err and err.count(b'\n') == 1, 'one clear line', err)


def test_nothing_in_it_names_the_build():
    tree = installed()
    for part in ('bin/gputrace', 'lib/libgputrace.so', 'libexec/gputrace/gputrace-sidecar'):
        with open(os.path.join(tree, part), 'rb') as file:
            content = file.read()
        said = subprocess.run(['readelf', '-dW', os.path.join(tree, part)], stdout=subprocess.PIPE, check=True, timeout=60).stdout
        check(b'RPATH' not in said and b'RUNPATH' not in said, f'{part} has no run path', said)
        check(b'/opt/gputrace/lib' not in content, f'{part} does not know where it was meant to be installed')


main()
