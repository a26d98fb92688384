# meson: timeout=240
# Machine code of loaded modules: which image, where it is, what the scan outside of the process found, for every way of loading; and
# what happens where it cannot be had.
import statistics
from harness import *

LOADS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'code_loads.py')
CUDA = os.environ.get('GT_CUDA', '/usr/local/cuda')

# Kernels whose facts are known: mma and precision bits of trace/record.h (Hmma 1, Imma 2; Fp16 8, Int8 128).
SOURCE_CU = r'''
extern "C" __global__ void half_mma(float* d, const unsigned* a) {
  float c[4] = {d[0], d[1], d[2], d[3]};
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]));
  d[threadIdx.x] = c[0] + c[1] + c[2] + c[3];
}
extern "C" __global__ void int_mma(int* d, const unsigned* a) {
  int c[4] = {d[0], d[1], d[2], d[3]};
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]));
  d[threadIdx.x] = c[0] + c[1] + c[2] + c[3];
}
extern "C" __global__ void __launch_bounds__(128) saxpy(float* y, const float* x, float a) {
  __shared__ float s[128];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = a * s[127 - threadIdx.x] + y[threadIdx.x];
}
extern "C" __global__ void unused(float* y) { y[0] = 1; }
'''
NAMES = ['half_mma', 'int_mma', 'saxpy']
EXPECTED = {'half_mma': (1, 8), 'int_mma': (2, 128), 'saxpy': (0, 0)}
IN_FILE, COPIED, OVER_BUDGET, UNREADABLE, NO_ROOM = 1, 2, 3, 4, 5
SCANNED, NO_MATCH, BROKEN, MISSING, CHANGED, CRASHED = 1, 2, 3, 4, 5, 6
_images = {}


def _tool(name):
    path = os.path.join(CUDA, 'bin', name)
    return path if os.path.exists(path) else skip(f'no {name}')


def _run_tool(*command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, check=False)
    check(done.returncode == 0, command[0], done.stdout.decode(errors='replace')[-1500:])


def images():
    """{name: path} of images with the same kernels; made once for all tests of this file."""
    if _images:
        return _images
    folder = tempfile.mkdtemp(prefix='gputrace-code-images-')
    import atexit
    atexit.register(shutil.rmtree, folder, True)
    source = os.path.join(folder, 'k.cu')
    with open(source, 'w', encoding='utf-8') as file:
        file.write(SOURCE_CU)
    nvcc, fatbinary = _tool('nvcc'), _tool('fatbinary')
    made = {kind: os.path.join(folder, kind) for kind in ('sm80.cubin', 'sm90.cubin', 'k.ptx', 'none.fatbin', 'lz4.fatbin', 'zstd.fatbin')}
    for kind, flags in (('sm80.cubin', ['-cubin', '-arch=sm_80']), ('sm90.cubin', ['-cubin', '-arch=sm_90']), ('k.ptx', ['-ptx', '-arch=compute_80'])):
        _run_tool(nvcc, *flags, '-o', made[kind], source)
    for name, mode in (('none', 'none'), ('lz4', 'speed'), ('zstd', 'size')):
        _run_tool(fatbinary, f'--create={made[name + ".fatbin"]}', '-64', f'--compress-mode={mode}', f'--image3=kind=elf,sm=80,file={made["sm80.cubin"]}',
                  f'--image3=kind=elf,sm=90,file={made["sm90.cubin"]}', f'--image3=kind=ptx,sm=80,file={made["k.ptx"]}')
    _images.update(made)
    return _images


def loads(*words, env=None, **options):
    return traced([sys.executable, LOADS, *words], env=env, **options)


class Code:
    """What a trace says of machine code."""

    def __init__(self, run):
        self.records = dump(run)
        self.images = self.of('CodeImage')
        self.kernels = self.of('CodeKernel')
        self.scans = self.of('CodeScan')
        self.bytes = self.of('CodeBytes')
        self.names = {record['function']: record for record in self.of('FunctionGet')}
        self.facts = {record['function']: record for record in self.of('FunctionFacts')}
        self.launches = self.of('KernelLaunch')

    def of(self, kind):
        return [record for record in self.records if record['record'] == kind]

    def of_launch(self, launch):
        """The CodeKernel of a launched function, by module, image and name."""
        got = self.names[launch['function']]
        ids = {image['image'] for image in self.images if image['module'] == got['module']}
        found = [kernel for kernel in self.kernels if kernel['image'] in ids and kernel['name'] == got['name']]
        return found[0] if found else None


def number(value):
    return value if isinstance(value, int) else int(str(value).split()[0], 0)


def check_kernels(code, launches, state=None, machine_code=True):
    """Every launch has its code; registers are those of the driver, matrix instructions are the expected ones."""
    check_equal(len(code.launches), launches, 'launches')
    for launch in code.launches:
        kernel = code.of_launch(launch)
        check(kernel, 'a launched kernel has its code', code.names.get(launch['function']), code.images, code.scans)
        name = kernel['name']
        if machine_code:
            facts = code.facts[launch['function']]
            check_equal([kernel['registers'], kernel['local_bytes']], [facts['registers'], facts['local_bytes']], f'registers and local memory of {name}')
            check_equal(kernel['architecture'], facts['binary_version'], f'architecture of {name}')
            check(kernel['instructions'] > 4, 'instructions', kernel)
        mma, precision = EXPECTED[name]
        check_equal((number(kernel['mma']), number(kernel['precision'])), (mma, precision), f'mma and precision of {name}')
        check_equal(number(kernel['flags']) & 3, 1 if machine_code else 2, f'scanned or PTX, of {name}')
    if state is not None:
        check_equal({number(image['state']) for image in code.images}, {state}, 'how the images are kept')
    check(not [kernel for kernel in code.kernels if kernel['name'] == 'unused'], 'kernels that nobody asked for have no record')


def one_way(how, image, state, machine_code=True, env=None):
    run = loads(f'{how}:{images()[image]}:{",".join(NAMES)}', env=env)
    plain = untraced([sys.executable, LOADS, f'{how}:{images()[image]}:{",".join(NAMES)}'], env=env)
    same_output(plain, run)
    code = Code(run)
    check_kernels(code, 3, state, machine_code)
    check_equal([number(scan['state']) for scan in code.scans], [SCANNED], 'scans')
    check_conservation(run)
    return code


def test_from_memory():
    code = one_way('data', 'sm90.cubin', COPIED)
    size = os.path.getsize(images()['sm90.cubin'])
    check_equal(sum(min(4000, size - piece['offset']) for piece in code.bytes), size, 'the pieces make up the image')


def test_from_a_mapped_file():
    code = one_way('mmap', 'sm90.cubin', IN_FILE)
    image = code.images[0]
    check_equal([image['path'], image['offset'], image['bytes']], [images()['sm90.cubin'], 0, os.path.getsize(images()['sm90.cubin'])], 'reference')
    check_equal(code.bytes, [], 'nothing is copied')


def test_from_the_middle_of_a_mapped_file():
    path = scratch('padded')
    with open(path, 'wb') as file:
        file.write(b'\1' * 12344)
        with open(images()['zstd.fatbin'], 'rb') as image:
            file.write(image.read())
        file.write(b'\1' * 5000)
    code = Code(loads(f'mmap@12344:{path}:{",".join(NAMES)}'))
    check_kernels(code, 3, IN_FILE)
    check_equal([code.images[0]['offset'], code.images[0]['bytes']], [12344, os.path.getsize(images()['zstd.fatbin'])], 'reference')


def test_from_a_file_by_name():
    one_way('file', 'sm90.cubin', IN_FILE)
    forget_run()
    one_way('libfile', 'lz4.fatbin', IN_FILE)


def test_fatbins_of_every_compression():
    for how, image in (('fat', 'none.fatbin'), ('lib', 'lz4.fatbin'), ('dataex', 'zstd.fatbin')):
        one_way(how, image, COPIED)
        forget_run()


def test_nearest_architecture():
    run = loads(f'data:{images()["zstd.fatbin"]}:{",".join(NAMES)}', env={'SIMGPU_CC': '8.6'})
    check_kernels(Code(run), 3, COPIED)


def test_ptx():
    one_way('data', 'k.ptx', COPIED, machine_code=False)


def test_linked():
    code = Code(loads(f'link:{images()["k.ptx"]}:{",".join(NAMES)}'))
    check_equal(len(code.images), 1, 'the linked image is captured where it is loaded')
    check_equal(len([launch for launch in code.launches if code.of_launch(launch)]), 3, 'launches with code')


def test_module_of_a_library():
    code = Code(loads(f'modlib:{images()["sm90.cubin"]}:{",".join(NAMES)}'))
    check_kernels(code, 3, COPIED)
    check_equal(len({image['image'] for image in code.images}), 1, 'one image for library and module')


def test_same_bytes_have_one_id():
    code = Code(loads(f'twice:data:{images()["sm90.cubin"]}:saxpy', f'twice:mmap:{images()["sm80.cubin"]}:', env={'SIMGPU_CC': '9.0'}))
    check_equal(len({image['image'] for image in code.images if number(image['state']) == COPIED}), 1, 'ids of copied bytes')
    copied = sum(1 for piece in code.bytes if piece['offset'] == 0)
    check_equal(copied, 1, 'copies')


def test_runtime_programs():
    for name in ('launches_sim', 'launches_shared'):
        run = traced([program(name)])
        code = Code(run)
        check(code.launches, 'launches')
        without = [code.names[launch['function']]['name'] for launch in code.launches if not code.of_launch(launch)]
        # A CUfunction that came from a CUkernel is looked up through it.
        kernels = {record['function']: record for record in code.of('FunctionGet')}
        ids = lambda module: {image['image'] for image in code.images if image['module'] == module}
        for launch in code.launches:
            got = kernels[launch['function']]
            while got['module'] in kernels:
                got = kernels[got['module']]
            found = [kernel for kernel in code.kernels if kernel['image'] in ids(got['module']) and kernel['name'] == got['name']]
            check(found, f'{name}: a launched kernel has its code', got, code.images, without)
            facts = code.facts[launch['function']]
            check_equal(found[0]['registers'], facts['registers'], 'registers')
        check_equal({number(image['state']) for image in code.images}, {IN_FILE}, 'a fatbin inside the program goes by reference')
        check_equal({image['path'] for image in code.images}, {program(name)}, 'its file')
        check(all(image['build_id'] for image in code.images), 'its build id', code.images)
        forget_run()


def test_broken_images_fail_as_they_do():
    path = scratch('broken')
    with open(images()['sm90.cubin'], 'rb') as image:
        data = bytearray(image.read())
    data[40:48] = (1 << 40).to_bytes(8, 'little')  # the section table is nowhere
    with open(path, 'wb') as file:
        file.write(data)
    word = f'mmap:{path}:'
    plain, run = untraced([sys.executable, LOADS, word]), loads(word)
    same_output(plain, run)
    check(b'mmap 0' not in plain.stdout, 'the load fails', plain.stdout)
    check_equal(Code(run).images, [], 'nothing is captured')


def test_a_file_that_changed():
    for how in ('file', 'mmap'):
        path = scratch('image')
        shutil.copy(images()['sm90.cubin'], path)
        code = Code(loads('spoil', f'{how}:{path}:saxpy'))
        check_equal([number(scan['state']) for scan in code.scans], [CHANGED], f'{how}: what was loaded is not there any more')
        check_equal(code.kernels, [], 'kernels')
        forget_run()


def test_nothing_is_scanned_that_nobody_asks_for():
    code = Code(loads(f'data:{images()["sm90.cubin"]}:', f'mmap:{images()["sm80.cubin"]}:', env={'SIMGPU_CC': '9.0'}))
    check_equal(code.scans, [], 'scans')
    check(code.images, 'images')


def sidecars():
    found = []
    for pid in os.listdir('/proc'):
        try:
            with open(f'/proc/{pid}/cmdline', 'rb') as file:
                words = file.read().split(b'\0')
            with open(f'/proc/{pid}/environ', 'rb') as file:
                mine = scratch('trace').encode() in file.read()
        except OSError:
            continue
        if mine and words and words[0].endswith(b'gputrace-sidecar'):
            with open(f'/proc/{pid}/comm', encoding='utf-8') as file:
                found.append((int(pid), file.read().strip()))
    return found


def finish_waiting(process, go):
    with open(go, 'w', encoding='utf-8'):
        pass
    result = finish(process)
    left = wait_for_orphans()
    check(not left, 'the sidecar ends soon after the program', left)
    return result


def test_the_scanner_is_killed():
    go = scratch('go')
    process = start([sys.executable, LOADS, f'wait={go}', f'data:{images()["sm90.cubin"]}:'], env=traced_environment())
    wait_until(lambda: any(name == 'gputrace-code' for _, name in sidecars()), 'the scanner')
    check(process.stdout.readline(), 'a line')
    for pid, name in sidecars():
        if name == 'gputrace-code':
            os.kill(pid, signal.SIGKILL)
    rc, _, err = finish_waiting(process, go)
    check_equal((rc, err), (0, b''), 'the program')
    run = Run([], rc, b'', err, 0, scratch('trace'), scratch('truth-%p.jsonl'))
    check_conservation(run)
    code = Code(run)
    check_equal(len(code.images), 1, 'images')
    check_equal(code.kernels, [], 'kernels')
    check(any(record['record'] == 'KernelLaunch' or record['record'] == 'Sync' for record in code.records), 'the trace is whole')
    out, _ = gputrace('report', run.output, '--section', 'quality-notes')
    check('damage' not in out, 'the trace is whole', out)


def test_over_budget():
    path = scratch('big.ptx')
    with open(images()['k.ptx'], encoding='utf-8') as file:
        text = file.read()
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text + '\n// ' + 'x' * (9 << 20) + '\n')
    run = loads(f'data:{path}:saxpy', f'data:{images()["sm90.cubin"]}:saxpy')
    code = Code(run)
    check_equal([number(image['state']) for image in code.images], [OVER_BUDGET, COPIED], 'states')
    said = [row['text'] for row in rows(run, 'quality-notes') if row['what'] == 'code']
    check_equal(said, ['machine code: 2 images loaded, 0 by reference, 1 by copy; of 1 whose kernels were asked for 1 could be read',
                       'machine code: 1 image was not kept: more than is copied (8 MiB an image, 32 MiB a process)',
                       'machine code: it is not known of 1 of 2 launched kernels'], 'the report says so')
    check_equal(len([launch for launch in code.launches if code.of_launch(launch)]), 1, 'launches with code')


def test_budget_of_a_process():
    words = []
    with open(images()['k.ptx'], encoding='utf-8') as file:
        text = file.read()
    for index in range(6):
        path = scratch(f'{index}.ptx')
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text + f'\n// {index} ' + 'x' * (6 << 20) + '\n')
        words.append(f'data:{path}:saxpy')
    code = Code(loads(*words, env={'GPUTRACE_BUFFER': '64M'}))
    check_equal([number(image['state']) for image in code.images], [COPIED] * 5 + [OVER_BUDGET], 'states: 32 MiB hold five')


def test_no_room_in_the_ring():
    path = scratch('big.ptx')
    with open(images()['k.ptx'], encoding='utf-8') as file:
        text = file.read()
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text + '\n// ' + 'x' * (2 << 20) + '\n')
    run = loads(f'data:{path}:saxpy', env={'GPUTRACE_BUFFER': '2M'})
    code = Code(run)
    check_equal([number(image['state']) for image in code.images], [NO_ROOM], 'states')
    check_equal(check_conservation(run)[2], 0, 'no record is dropped for it')


def test_older_kernels_and_filters():
    """Without PROCMAP_QUERY (before Linux 6.11), and where process_vm_readv is refused, the table of mappings does."""
    strace = shutil.which('strace') or skip('no strace')
    if subprocess.run([strace, '-qq', '-e', 'inject=ioctl:error=ENOTTY', '-e', 'trace=ioctl', 'true'], stderr=subprocess.DEVNULL, check=False).returncode:
        skip('strace cannot inject')
    words = [f'{how}:{images()[image]}:{",".join(NAMES)}' for how, image in
             (('mmap', 'sm90.cubin'), ('data', 'zstd.fatbin'), ('data', 'sm90.cubin'), ('data', 'k.ptx'), ('lib', 'k.ptx'))]
    for calls in (['ioctl:error=ENOTTY'], ['process_vm_readv:error=EPERM'], ['ioctl:error=ENOTTY', 'process_vm_readv:error=ENOSYS']):
        command = [strace, '-qq', '-o', '/dev/null', '-e', 'trace=ioctl,process_vm_readv']
        for call in calls:
            command += ['-e', 'inject=' + call]
        run = traced([*command, sys.executable, LOADS, *words])
        check_equal(run.returncode, 0, run.stderr)
        code = Code(run)
        check_equal(len([launch for launch in code.launches if code.of_launch(launch)]), 15, f'{calls}: launches with code')
        check_equal(sorted(number(image['state']) for image in code.images), [IN_FILE] + [COPIED] * 4, f'{calls}: states')
        check_equal(len({image['image'] for image in code.images}), 4, f'{calls}: the same text has one id')
        forget_run()


def test_off():
    run = loads(f'data:{images()["sm90.cubin"]}:saxpy', env={'GPUTRACE_COLLECT': 'api'})
    code = Code(run)
    check_equal([code.images, code.bytes, code.kernels], [[], [], []], 'records of machine code')
    check(any(entry['what'] == 'code' for entry in report(run)['coverage']['not_collected']), 'the report says so', report(run)['coverage'])


def test_a_large_library_costs_neither_memory_nor_time():
    """400 MB by reference: a fatbin inside of a mapped sparse file; and the toolkit's largest library, as it is."""
    path = scratch('large')
    offset = 200 << 20
    with open(path, 'wb') as file:
        file.truncate(400 << 20)
        file.seek(offset)
        with open(images()['zstd.fatbin'], 'rb') as image:
            file.write(image.read())
    words = ['time', 'rss', f'mmap@{offset}:{path}:{",".join(NAMES)}']
    times = {}
    for name in ('plain', 'traced'):
        for _ in range(5):
            forget_run()
            run = loads(*words) if name == 'traced' else untraced([sys.executable, LOADS, *words])
            lines = run.stdout.decode().splitlines()
            times.setdefault(name, []).append(int(lines[0].split()[2]))
            times.setdefault(name + ' rss', []).append(int([line for line in lines if line.startswith('rss')][0].split()[1]))
    medians = {name: statistics.median(values) for name, values in times.items()}
    print(f'  load of a 400 MB library: {medians["plain"] / 1e3:.0f} us without, {medians["traced"] / 1e3:.0f} us with; '
          f'anonymous memory {medians["plain rss"] / 1024:.1f} MB without, {medians["traced rss"] / 1024:.1f} MB with')
    check_kernels(Code(run), 3, IN_FILE)
    check(medians['traced rss'] < medians['plain rss'] + 20 * 1024, 'memory of the host', medians)
    check(medians['traced'] < medians['plain'] + 5e6, 'time of the load', medians)


def test_the_toolkit_s_largest_library():
    """Fatbins of libcublasLt as they lie in its file: nothing copied, each kernel that was asked for has its code."""
    library = os.path.join(CUDA, 'lib64', 'libcublasLt.so')
    readelf = shutil.which('readelf')
    if not os.path.exists(library) or not readelf:
        skip('no libcublasLt.so, or no readelf')
    library = os.path.realpath(library)
    sections = subprocess.run([readelf, '-SW', library], stdout=subprocess.PIPE, timeout=60, check=True).stdout.decode().splitlines()
    words = [line.split(']')[1].split() for line in sections if '.nv_fatbin ' in line][0]
    command = [sys.executable, os.path.join(os.path.dirname(LOADS), 'code_library.py'), library, str(int(words[3], 16)), str(int(words[4], 16)), '120']
    plain, run = untraced(command), traced(command)
    loaded, kernels, megabytes, _, _ = map(float, plain.stdout.split())
    check_equal(list(map(float, run.stdout.split()))[:3], [loaded, kernels, megabytes], 'what was loaded')
    took, memory = ([float(out.stdout.split()[i]) for out in (plain, run)] for i in (3, 4))
    code = Code(run)
    check_equal(code.bytes, [], 'copies')
    check_equal({number(image['state']) for image in code.images}, {IN_FILE}, 'states')
    check_equal({number(scan['state']) for scan in code.scans}, {SCANNED}, 'scans')
    wanted = {record['name'] for record in code.of('FunctionGet')}
    check_equal(wanted - {kernel['name'] for kernel in code.kernels}, set(), 'kernels without code')
    check(wanted, 'kernels')
    print(f'  {loaded:.0f} fatbins of libcublasLt, {megabytes:.0f} MB, {len(wanted)} kernels: load {took[0] / 1e3:.0f} us without, {took[1] / 1e3:.0f} us with '
          f'(medians); anonymous memory {memory[0] / 1024:.1f} MB, {memory[1] / 1024:.1f} MB; scan {sum(scan["took_us"] for scan in code.scans) / 1e3:.0f} ms')
    check(memory[1] < memory[0] + 12 * 1024, 'memory of the host', memory)
    check(took[1] < took[0] + 2e6, 'time of a load', took)


if __name__ == '__main__':
    main()
