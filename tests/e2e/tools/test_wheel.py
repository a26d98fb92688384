# meson: timeout=300
# The wheel, as `./dev wheel` makes it, of what the build made: installed by pip into a fresh environment and used as its page says. GT_PYTHONS
# names further interpreters, by colon.
import zipfile

from harness import *

PROGRAM = f'''
import ctypes, sys
sys.path.insert(0, {os.path.join(SOURCE, "tests", "e2e")!r})
from driver import Driver
d = Driver()
step = d.kernel('step')
for i in range(20):
    d.launch(step)
d('cuCtxSynchronize')
print('done', sys.argv[1:])
'''
READ = '''
import json, gputrace
run = gputrace.open('out')
kernels = run.section('kernels')
try:
    run.section('nothing')
except gputrace.Error as error:
    wrong = str(error)
print(json.dumps({'columns': [column['key'] for column in kernels.columns][:2], 'launches': [row['launches'] for row in kernels],
                  'sections': run.sections, 'wrong': wrong, 'events': len(run.events('kernels').files)}))
'''


EXAMPLE = os.path.join(BUILD, 'examples', 'gputrace-example')


def stripped_tree():
    """An installed tree has no symbols."""
    tree = scratch('tree')
    libraries = [os.path.join('lib/gputrace/simgpu', name) for name in os.listdir(places.simgpu) if re.search(r'\.so(\.\d+)?$', name)]
    for below in ('bin/gputrace', 'lib/libgputrace.so', 'libexec/gputrace/gputrace-sidecar', *libraries):
        os.makedirs(os.path.dirname(os.path.join(tree, below)), exist_ok=True)
        subprocess.run(['strip', '-o', os.path.join(tree, below), os.path.join(places.tree, below)], check=True)
    if os.path.exists(EXAMPLE):
        shutil.copy(EXAMPLE, os.path.join(tree, 'bin'))
    return tree


def made(tree, out, *options):
    said = subprocess.run([sys.executable, os.path.join(SOURCE, 'packaging', 'make_wheel'), tree, out, *options], capture_output=True, check=True, timeout=120)
    return said.stdout.decode().strip()


def installed(python, wheel, folder):
    done = subprocess.run([python, '-m', 'venv', folder], capture_output=True, timeout=120, check=False)
    if done.returncode:
        skip(f'{python} makes no environment: {done.stderr.decode()[-200:]}')
    subprocess.run([os.path.join(folder, 'bin', 'python'), '-m', 'pip', 'install', '-q', '--no-index', '--no-deps', '--disable-pip-version-check', wheel], check=True, timeout=120)
    return os.path.join(folder, 'bin')


def test_installed_and_used():
    wheel = made(stripped_tree(), scratch('wheels'))
    path = scratch('x.py')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(PROGRAM)
    for number, python in enumerate([sys.executable, *filter(None, os.environ.get('GT_PYTHONS', '').split(':'))]):
        folder = scratch(f'venv{number}')
        bin_folder = installed(python, wheel, folder)
        shutil.rmtree(scratch('out'), ignore_errors=True)

        def said(*command):
            done = subprocess.run([os.path.join(bin_folder, command[0]), *command[1:]], capture_output=True, timeout=120, check=False, cwd=os.path.dirname(path), env=environment())
            check(done.returncode == 0, f'{python}: {command}', done.stderr.decode()[-2000:])
            return done.stdout.decode()

        check(said('gputrace', '--version').startswith('gputrace 0.'), 'the program')
        check_equal(said('gputrace', 'lib').strip(), os.path.realpath(os.path.join(folder, 'lib', 'libgputrace.so')), 'the library')
        check_equal(said('python', '-m', 'gputrace', 'run', '--simgpu', '-o', 'out', 'x.py', 'a', '-b'), "done ['a', '-b']\n", 'python -m gputrace run')
        if os.path.exists(EXAMPLE):
            said('gputrace', 'run', '--simgpu', '-o', f'example{number}', '--', os.path.join(bin_folder, 'gputrace-example'), '3')
            check(glob.glob(os.path.join(os.path.dirname(path), f'example{number}', '*.gtrace')), 'the example is traced')
        read = json.loads(said('python', '-c', READ))
        check_equal((read['columns'], read['launches'], read['events']), (['rank', 'name'], [20], 1), 'as Python reads it')
        page = subprocess.run([os.path.join(bin_folder, 'python'), '-c', "import gputrace; print(gputrace.open('out')._repr_html_())"], capture_output=True, timeout=120, check=False,
                              cwd=os.path.dirname(path), env=environment())
        without = b'built without the page' in page.stderr
        check(without or (page.stdout.startswith(b'<iframe ') and b'&lt;html' in page.stdout), 'in a notebook', page.stdout[:200], page.stderr[-500:])
        check('overview' in read['sections'] and "no section 'nothing'" in read['wrong'], 'sections', read)


def test_the_same_tree_gives_the_same_bytes():
    tree = stripped_tree()
    first, second = made(tree, scratch('a')), made(tree, scratch('b'))
    with open(first, 'rb') as one, open(second, 'rb') as other:
        check(one.read() == other.read(), 'the same bytes')
    small = made(tree, scratch('c'), '--without-simgpu')
    check(small.endswith('-py3-none-manylinux_2_28_x86_64.whl'), 'without the simulated GPU it runs from glibc 2.28 on', small)
    with zipfile.ZipFile(first) as wheel, zipfile.ZipFile(small) as less:
        lacking = {name for name in set(wheel.namelist()) - set(less.namelist()) if '/simgpu/' not in name}
        check_equal({name.partition('/data/')[2] for name in lacking}, {'bin/gputrace-example'} if os.path.exists(EXAMPLE) else set(), 'what the smaller one lacks')
        check(any(name.endswith('libcuda.so.1') for name in wheel.namelist()) and wheel.testzip() is None, 'the simulated driver')
        modes = {name.rpartition('/')[2]: info.external_attr >> 16 & 0o111 for name, info in zip(less.namelist(), less.infolist())}
        check(modes['gputrace'] and modes['libgputrace.so'] and not modes['reader.py'], 'what may be executed', modes)


def test_auditwheel_finds_the_tag_true():
    """What it needs of the system at most, by who looks after these tags."""
    auditwheel = reader('python', 'bin', 'auditwheel')
    tree = stripped_tree()
    for options in ((), ('--without-simgpu',)):
        wheel = made(tree, scratch('wheels', *options), *options)
        said = subprocess.run([auditwheel, 'show', wheel], capture_output=True, check=False, timeout=120)
        needs = re.search(r'constrains the platform tag to "manylinux_(\d+)_(\d+)_x86_64"', ' '.join(said.stdout.decode().split()))
        check(needs, 'auditwheel reads it', said.stdout.decode()[-1500:], said.stderr.decode()[-500:])
        tagged = re.search(r'manylinux_(\d+)_(\d+)_x86_64\.whl$', wheel)
        check(tuple(map(int, needs.groups())) <= tuple(map(int, tagged.groups())), 'the tag promises no older system than what it needs', wheel, needs[0])


main()
