# meson: serial timeout=400
# Tarball and .deb, as `./dev package` makes them, of what the build made: the same bytes twice, taken in and thrown out by dpkg, run from where they
# lie, and a bill of materials that says what is in them.
import concurrent.futures
import hashlib
import tarfile

from example import *
from harness import *

MADE = {}
KEPT = tempfile.TemporaryDirectory(prefix='gputrace-packages-')  # removed at the end


def made(out, umask=-1, **environment_changes):
    done = subprocess.run([sys.executable, os.path.join(SOURCE, 'packaging', 'make_package'), BUILD, out], umask=umask, stdin=subprocess.DEVNULL, capture_output=True, timeout=200, check=False,
                          env={**os.environ, **environment_changes})
    check(done.returncode == 0, 'make_package', done.stderr.decode()[-2000:])
    return {os.path.basename(path): path for path in done.stdout.decode().split()}


def packages():
    """Made once for all tests; by name, without the version."""
    if not MADE:
        MADE.update({re.sub(r'[_-]\d+\.\d+\.\d+', '', name): path for name, path in made(os.path.join(KEPT.name, 'packages')).items()})
    return MADE


def bytes_of(path):
    with open(path, 'rb') as file:
        return file.read()


def unpacked(name):
    tree = scratch('unpacked')
    with tarfile.open(packages()[name]) as archive:
        archive.extractall(tree)
    return os.path.join(tree, os.listdir(tree)[0])


def works(program_of_it):
    """It traces a program on the simulated GPU that lies beside it, and reports; and the example that was installed with it."""
    out, env = scratch('out'), environment(LD_LIBRARY_PATH=None)
    check(finish(start([program_of_it, '--version'], env))[1].startswith(b'gputrace 0.'), 'its version')
    ran = finish(start([program_of_it, 'run', '--simgpu', '-o', out, '--', program('drv_linked')], env))
    check_equal(ran[0], 0, f'run ({ran[2]!r})')
    check(not wait_for_orphans(), 'the sidecar ends')
    said = finish(start([program_of_it, 'report', out, '--json'], env))
    check_equal(said[0], 0, f'report ({said[2]!r})')
    overview = {row['metric']: row['value'] for row in json.loads(said[1])['sections']['overview']['rows']}
    check(overview['launches'] > 0, 'launches', overview)
    if os.path.exists(os.path.join(BUILD, 'examples', 'gputrace-example')):
        check_equal(launches_of_the_example(os.path.dirname(program_of_it), 3), LAUNCHES_BEFORE + 3 * LAUNCHES_OF_A_STEP, 'launches of the example')


def test_twice_the_same_bytes():
    with concurrent.futures.ThreadPoolExecutor() as both:
        again = both.submit(made, scratch('again'), TZ='Asia/Tokyo', LC_ALL='C', umask=0o077)
        first = {os.path.basename(path): bytes_of(path) for path in packages().values()}
        second = {name: bytes_of(path) for name, path in again.result().items()}
    check_equal(sorted(first), sorted(second), 'files')
    check_equal([name for name in first if first[name] != second[name]], [], 'files that differ')


def test_the_tarball_runs_where_it_lies():
    tree = unpacked('gputrace-linux-x86_64.tar.gz')
    works(os.path.join(tree, 'bin', 'gputrace'))
    check('glibc 2.' in bytes_of(os.path.join(tree, 'README')).decode(), 'it says what it needs')
    check_equal(subprocess.run(['nm', os.path.join(tree, 'bin', 'gputrace')], capture_output=True, check=False).stdout, b'', 'symbols in it')
    symbols = unpacked('gputrace-linux-x86_64-debug.tar.gz')
    for below, name in (('bin/gputrace', 'main'), ('lib/libgputrace.so', 'gputrace_exiting'), ('libexec/gputrace/gputrace-sidecar', 'main')):
        mark = re.search(r'Build ID: (\S+)', subprocess.run(['readelf', '-nW', os.path.join(tree, below)], capture_output=True, check=True).stdout.decode())[1]
        beside = os.path.join(symbols, 'lib', 'debug', '.build-id', mark[:2], mark[2:] + '.debug')
        found = subprocess.run(['nm', beside], capture_output=True, check=True).stdout.decode()
        check(re.search(rf' [tT] {name}$', found, re.M), f'symbols of {below}')
        check('.debug_line' in subprocess.run(['readelf', '-SW', beside], capture_output=True, check=True).stdout.decode(), f'lines of {below}')


def test_dpkg_takes_them_in_and_out():
    if not shutil.which('dpkg') or os.geteuid() != 0:
        skip('needs dpkg, and to be root')
    root = scratch('root')
    for folder in ('info', 'updates'):
        os.makedirs(os.path.join(root, 'var/lib/dpkg', folder))
    open(os.path.join(root, 'var/lib/dpkg/status'), 'w').close()

    def dpkg(*words):
        done = subprocess.run(['dpkg', f'--root={root}', '--force-depends', '--force-script-chrootless', *words], capture_output=True, check=False, timeout=100)
        check(done.returncode == 0, f'dpkg {words[0]}', done.stderr.decode()[-2000:])

    dpkg('-i', packages()['gputrace_amd64.deb'], packages()['gputrace-simgpu_amd64.deb'])
    owner = subprocess.run(['dpkg', f'--root={root}', '-S', '/usr/bin/gputrace-example'], capture_output=True, check=False, timeout=100).stdout.decode()
    check_equal(owner, 'gputrace-simgpu: /usr/bin/gputrace-example\n', 'whose the example is')
    works(os.path.join(root, 'usr/bin/gputrace'))
    for below in ('usr/lib/libgputrace.so', 'usr/share/man/man1/gputrace.1.gz', 'usr/share/doc/gputrace/copyright', 'usr/share/zsh/vendor-completions/_gputrace'):
        check(os.path.exists(os.path.join(root, below)), below)
    dpkg('--verify')
    dpkg('-P', 'gputrace-simgpu', 'gputrace')
    left = [os.path.join(at, name) for at, _, names in os.walk(os.path.join(root, 'usr')) for name in names]
    check_equal(left, [], 'files that stay behind')
    fields = subprocess.run(['dpkg-deb', '-f', packages()['gputrace_amd64.deb'], 'Depends'], capture_output=True, check=True).stdout.decode()
    check_equal(fields.strip(), 'libc6 (>= 2.28)', 'what it depends on')


def test_the_bill_of_materials_says_what_is_in_them():
    with open(packages()['gputrace.spdx.json'], encoding='utf-8') as file:
        bill = json.load(file)
    tree = unpacked('gputrace-linux-x86_64.tar.gz')
    sums = {one['fileName'][2:]: {sum_['algorithm']: sum_['checksumValue'] for sum_ in one['checksums']}['SHA256'] for one in bill['files']}
    native = {below for below in (os.path.relpath(os.path.join(at, name), tree) for at, _, names in os.walk(tree) for name in names)
              if not os.path.islink(os.path.join(tree, below)) and bytes_of(os.path.join(tree, below))[:4] == b'\x7fELF'}
    check_equal(sums, {below: hashlib.sha256(bytes_of(os.path.join(tree, below))).hexdigest() for below in native}, 'files and their sums')
    id_of = {one['fileName'][2:]: one['SPDXID'] for one in bill['files']}
    name_of = {one['SPDXID']: one['name'] for one in bill['packages']}

    def linked(below, how):
        return {name_of[one['relatedSpdxElement']] for one in bill['relationships'] if one['spdxElementId'] == id_of[below] and one['relationshipType'] == how}

    # Against what the programs themselves say.
    marks = {'libzstd-dev': 'ZSTD_decompress', 'liblz4-dev': 'LZ4_decompress_safe', 'libsqlite3-dev': 'sqlite3_open', 'libc6-dev': '__libc_start_main', 'libstdc++-12-dev': '__cxa_throw'}
    for below, built in (('bin/gputrace', 'cli/gputrace'), ('libexec/gputrace/gputrace-sidecar', 'writer/gputrace-sidecar')):
        names = set(subprocess.run(['nm', os.path.join(BUILD, built)], capture_output=True, check=True).stdout.decode().split())
        said = linked(below, 'STATIC_LINK')
        check_equal({package for package in marks if package in said}, {package for package, name in marks.items() if name in names}, f'linked into {below}')
    check_equal(linked('lib/libgputrace.so', 'DYNAMIC_LINK'), {'libc6'}, 'the library')
    check(all(one['licenseDeclared'] != 'NOASSERTION' for one in bill['packages'] if one['name'] != 'cuda-headers'), 'licences')
    check_equal('lib/gputrace/libgputrace-unwind.so' in native, 'libunwind' in name_of.values(), 'the libunwind that is carried, and what it was built from')
    carried = {'libunwind'} & set(name_of.values())
    for package in linked('bin/gputrace', 'STATIC_LINK') | carried:
        check(os.path.getsize(os.path.join(tree, 'share/doc/gputrace/licences', package)) > 100, f'licence of {package}')


def test_the_bill_is_spdx():
    done = subprocess.run([reader('python', 'bin', 'pyspdxtools'), '-i', packages()['gputrace.spdx.json']], capture_output=True, check=False, timeout=100)
    check(done.returncode == 0, 'spdx-tools', done.stdout.decode()[-2000:], done.stderr.decode()[-2000:])


main()
