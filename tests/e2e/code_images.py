"""Images with kernels whose facts are known, programs that load them, and what a trace says of machine code."""
import atexit

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
_made = {}


def tool(name):
    path = os.path.join(CUDA, 'bin', name)
    return path if os.path.exists(path) else skip(f'no {name}')


def run_tool(*command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, check=False)
    check(done.returncode == 0, command[0], done.stdout.decode(errors='replace')[-1500:])


def images():
    """{name: path} of images with the same kernels; made once for all tests of this file."""
    if _made:
        return _made
    folder = tempfile.mkdtemp(prefix='gputrace-code-images-')
    atexit.register(shutil.rmtree, folder, True)
    source = os.path.join(folder, 'k.cu')
    with open(source, 'w', encoding='utf-8') as file:
        file.write(SOURCE_CU)
    nvcc, fatbinary = tool('nvcc'), tool('fatbinary')
    made = {kind: os.path.join(folder, kind) for kind in ('sm80.cubin', 'sm90.cubin', 'k.ptx', 'none.fatbin', 'lz4.fatbin', 'zstd.fatbin')}
    for kind, flags in (('sm80.cubin', ['-cubin', '-arch=sm_80']), ('sm90.cubin', ['-cubin', '-arch=sm_90']), ('k.ptx', ['-ptx', '-arch=compute_80'])):
        run_tool(nvcc, *flags, '-o', made[kind], source)
    for name, mode in (('none', 'none'), ('lz4', 'speed'), ('zstd', 'size')):
        run_tool(fatbinary, f'--create={made[name + ".fatbin"]}', '-64', f'--compress-mode={mode}', f'--image3=kind=elf,sm=80,file={made["sm80.cubin"]}',
                  f'--image3=kind=elf,sm=90,file={made["sm90.cubin"]}', f'--image3=kind=ptx,sm=80,file={made["k.ptx"]}')
    _made.update(made)
    return _made


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
