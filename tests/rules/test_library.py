"""What libgputrace.so promises to every process that it is loaded into, read off the file itself: libc alone, nothing of glibc
above 2.28, exactly the intercepted names, next to no work at load, next to no static TLS."""
import glob
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check import SOURCE, Elf, artefact, check, finish, skip  # noqa: E402

# Names that are no row of a table: what the routes to the driver go through, and how NVTX finds an injected library.
ROUTES = {'dlsym', 'dlopen', 'dlerror', 'cuGetProcAddress', 'cuGetProcAddress_v2', 'cudaGetDriverEntryPoint',
          'cudaGetDriverEntryPointByVersion', 'InitializeInjectionNvtx2', 'InitializeInjectionNvtxExtension', 'getenv',
          # By which a host that is a subreaper would see the sidecar.
          'wait', 'waitpid', 'wait3', 'wait4', 'waitid',
          # By which a program forbids system calls to itself.
          'prctl', 'syscall',
          # By which PyTorch's allocator tells what it gives out.
          '_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE', '_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE',
          # By which another client of CUPTI comes and goes.
          'cuptiSubscribe', 'cuptiSubscribe_v2', 'cuptiUnsubscribe', 'cuptiFinalize', 'cuptiActivityRegisterCallbacks',
          'cuptiSetThreadIdType', 'cuptiActivitySetAttribute',
          'cuptiActivityEnable', 'cuptiActivityEnableAndDump', 'cuptiActivityDisable', 'cuptiActivityEnableContext',
          'cuptiActivityDisableContext', 'cuptiActivityEnableDriverApi', 'cuptiActivityEnableRuntimeApi',
          'cuptiActivityRegisterTimestampCallback', 'cuptiActivityRegisterCallbacks_v2', 'cuptiActivitySetAttribute_v2', 'cuptiActivityEnable_v2',
          'cuptiActivityEnableAndDump_v2', 'cuptiActivityDisable_v2', 'cuptiActivityEnableDriverApi_v2', 'cuptiActivityEnableRuntimeApi_v2'}
# A row of interpose/*.def; PTSZ and PTDS rows are two names.
ROW = re.compile(r'^\s*GT_(?:API|RUNTIME|ROUTE|LIBRARY|COMMUNICATOR|GEMM(?:_[A-Z]+)*)(_PTSZ|_PTDS)?\(\s*(\w+)\s*,', re.M)
LOADER = {'libc.so.6', 'ld-linux-x86-64.so.2'}


def table_names():
    names = set()
    for path in glob.glob(os.path.join(SOURCE, 'interpose', '*.def')):
        with open(path, encoding='utf-8') as file:
            for variant, name in ROW.findall(re.sub(r'^\s*#define(?:.*\\\n)*.*', '', file.read(), flags=re.M)):
                names |= {name, name + variant.lower()}
    return names


def relocated_pages(path):
    said = subprocess.run(['readelf', '-rW', path], capture_output=True, text=True, check=True).stdout
    return {int(line.split()[0], 16) >> 12 for line in said.splitlines() if re.match(r'[0-9a-f]{16} ', line)}


def main():
    path = artefact('GT_LIBRARY', 'interpose/libgputrace.so')
    if not path:
        skip('libgputrace.so', 'it is not built yet')
        finish()
    elf = Elf(path)
    needed = set(elf.needed())
    check('needs libc alone', needed <= LOADER and 'libc.so.6' in needed, f'it needs {sorted(needed)}')
    major_minor = elf.glibc_needed()
    check('binds to nothing of glibc above 2.28', major_minor <= (2, 28), 'it asks for GLIBC_%d.%d' % major_minor)
    check('no symbol of the C++ library is looked up at run time',
          not [s for s in elf.undefined() if s.startswith(('_ZS', '_ZNS', '_ZNKS', '__cxa_throw', '__gxx'))],
          sorted(s for s in elf.undefined() if s.startswith('_Z')))

    exported, rows = elf.exported(), table_names()
    if rows:
        strange = exported - rows - ROUTES
        check('exports nothing but intercepted names', not strange, sorted(strange))
        absent = {name for name in rows if not name.startswith('nvtx')} - exported
        check('exports every row of the tables', not absent, sorted(absent))
    else:
        skip('exports', 'interpose/*.def has no rows yet')
    check('exports dlsym', 'dlsym' in exported)
    check('does not export dlvsym, dlclose, malloc or pthread names',
          not {name for name in exported if name.startswith(('dlv', 'dlclose', 'malloc', 'free', 'pthread'))})
    check('exports cu and cuda names with a capital next, never cudnn, cublas or other libraries\' names by accident',
          not [name for name in exported if re.match(r'cu(da)?[a-z]', name) and name not in rows and name not in ROUTES])

    # Two pointers: the compiler's frame_dummy and our one constructor.
    check('one constructor at most', (elf.dynamic_value('INIT_ARRAYSZ') or 0) <= 16,
          f"init_array has {(elf.dynamic_value('INIT_ARRAYSZ') or 0) // 8} entries")
    check('no destructor of ours at unload', (elf.dynamic_value('FINI_ARRAYSZ') or 0) <= 8,
          f"fini_array has {(elf.dynamic_value('FINI_ARRAYSZ') or 0) // 8} entries")
    check('at most 64 bytes of static TLS', elf.tls_bytes() <= 64, f'{elf.tls_bytes()} bytes')
    check('can never be unloaded (-z nodelete)', 'NODELETE' in elf.flags(), elf.flags())
    check('is bound at load (-z now)', 'NOW' in elf.flags(), elf.flags())
    # Each is written, and so copied, in every process of the tree, before it is known whether that ever calls CUDA.
    pages = relocated_pages(path)
    check('at most 4 pages are relocated at load', 0 < len(pages) <= 4, f'{len(pages)}: {[hex(page) for page in sorted(pages)]}')
    check('needs no executable stack', 'RWE' not in elf.segments)
    with open(path, 'rb') as file:
        check('has no fault points (base/fault.h)', b'block handed over' not in file.read())
    check('has no text relocations', '(TEXTREL)' not in elf.dynamic)
    finish()


main()
