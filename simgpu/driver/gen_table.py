#!/usr/bin/env python3
"""The driver's exports, from the toolkit's headers: which names exist, since which version, and where.

  gen_table.py INCLUDE_DIR STUB_LIBRARY_OR_EMPTY OUT_TABLE.cpp OUT_EXPORTS.map ARCHIVE...
  gen_table.py --stub INCLUDE_DIR OUT.c      a driver to link against, for toolkits that come without one: names, no code

Reads the PFN_<name>_v<since>[_ptsz|_ptds] types of cuda*Typedefs.h and the exported names (from the stub library, or
where there is none from the headers); the n-th version of a name is its n-th exported suffix. Asks nm which of them
our objects define, and writes the rest as functions that answer CUDA_ERROR_NOT_SUPPORTED, the table behind
cuGetProcAddress, and the linker's export map.
"""
import collections
import os
import re
import subprocess
import sys

HEADERS = ['cuda.h', 'cudaGL.h', 'cudaEGL.h', 'cudaVDPAU.h', 'cudaProfiler.h']
TYPEDEFS = ['cudaTypedefs.h', 'cudaGLTypedefs.h', 'cudaEGLTypedefs.h', 'cudaVDPAUTypedefs.h', 'cudaProfilerTypedefs.h']
OTHER_SYSTEMS = {'cuWGLGetDevice'}
TWINS = ('', '_ptsz', '_ptds')


def read(include, name):
    path = os.path.join(include, name)
    if not os.path.exists(path):
        return ''
    with open(path, encoding='utf-8', errors='replace') as f:
        return re.sub(r'/\*.*?\*/', '', f.read(), flags=re.S)


def defined_in(objects, dynamic=False):
    names = set()
    for path in objects:
        command = ['nm', '--defined-only'] + (['-D'] if dynamic else []) + [path]
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        names |= {line.split()[-1] for line in out.splitlines() if re.search(r' [TWi] cu[A-Z]\w+$', line)}
    return names


def exported_by_headers(include):
    """Declared functions, and what the headers' macros make of them: cuMemAlloc -> cuMemAlloc_v2, _ptsz, _ptds."""
    names, inline = set(), set()
    for header in HEADERS:
        text = read(include, header)
        inline |= set(re.findall(r'static\s+inline\s+CUresult\s+(cu[A-Z]\w+)\s*\(', text))
        names |= set(re.findall(r'CUresult\s+CUDAAPI\s+(cu[A-Z]\w+)\s*\(', text))
        for target in re.findall(r'#\s*define\s+cu[A-Z]\w+\s+(.+)', text):
            target = target.strip()
            twin = re.fullmatch(r'__CUDA_API_(PTSZ|PTDS)\((cu\w+)\)', target)
            if twin:
                names |= {twin.group(2), twin.group(2) + '_' + twin.group(1).lower()}
            elif re.fullmatch(r'cu[A-Z]\w+', target):
                names.add(target)
    return names - inline


def versions(include):
    """(name, twin) -> [since, …] ascending."""
    found = collections.defaultdict(set)
    for header in TYPEDEFS:
        for name, since, twin in re.findall(r'\*\s*PFN_(cu\w+?)_v(\d+)(_ptsz|_ptds)?\s*\)', read(include, header)):
            found[name, twin].add(int(since))
    return {key: sorted(v) for key, v in found.items()}


def pair(known, exports):
    """Rows (name, since, per_thread, exported name)."""
    rows, problems = [], []
    for (name, twin), since in sorted(known.items()):
        if name in OTHER_SYSTEMS:
            continue
        suffixes = [''] + [f'_v{n}' for n in range(2, 10)]
        candidates = [name + s + twin for s in suffixes if name + s + twin in exports]
        if len(candidates) != len(since):
            problems.append(f'{name}{twin}: versions {since}, exports {candidates}')
        rows += [(name, s, twin != '', e) for s, e in zip(since, candidates)]
    return rows, problems


def base_name(exported):
    return re.sub(r'(_v\d+)?(_ptsz|_ptds)?$', '', exported)


def write_if_changed(path, text):
    if os.path.exists(path):
        with open(path, encoding='utf-8') as f:
            if f.read() == text:
                os.utime(path)
                return
    with open(path, 'w', encoding='utf-8') as f:
        f.write(text)


def table_source(rows, exports, modelled):
    stubs = sorted(exports - modelled)
    numbers = {name: i for i, name in enumerate(sorted(exports))}
    out = ['// Made by gen_table.py: not to be edited.', '#include "simgpu/driver/life/proc_address.h"', '']
    out.append('// Documented, but not modelled. The arguments are not looked at, so none are declared.')
    for name in stubs:
        out.append(f'extern "C" CUresult gt_stub_{numbers[name]}() __asm__("{name}");')
        out.append(f'extern "C" CUresult gt_stub_{numbers[name]}() '
                   f'{{ return simgpu::not_modelled("{base_name(name)}", "{name}"); }}')
    out.append('')
    for name in sorted(set(r[3] for r in rows) - set(stubs)):
        out.append(f'extern "C" CUresult gt_stub_{numbers[name]}() __asm__("{name}");')
    out += ['', 'namespace simgpu {', '', 'const ProcAddress kProcAddresses[] = {']
    for name, since, per_thread, exported in sorted(rows, key=lambda r: (r[0].encode(), r[1], r[2])):
        modelled_here = 'true' if exported in modelled else 'false'
        out.append(f'    {{"{name}", {since}, {"true" if per_thread else "false"}, {modelled_here}, "{exported}", '
                   f'gt_stub_{numbers[exported]}}},')
    out += ['};', f'const unsigned kProcAddressCount = {len(rows)};', '', '}  // namespace simgpu', '']
    return '\n'.join(out)


def write_stub(include, out):
    write_if_changed(out, ''.join(f'void {name}(void) {{}}\n' for name in sorted(exported_by_headers(include) - OTHER_SYSTEMS)))


def main():
    if sys.argv[1] == '--stub':
        return write_stub(*sys.argv[2:4])
    include, stub, out_table, out_map = sys.argv[1:5]
    archives = sys.argv[5:]
    from_headers = exported_by_headers(include)
    exports = set(from_headers)
    if stub and os.path.exists(stub):
        exports |= defined_in([stub], dynamic=True)
    exports -= OTHER_SYSTEMS
    rows, problems = pair(versions(include), exports)
    if len(rows) < 400 or len(problems) > 20:
        sys.exit('gen_table.py: the headers in %s are not read right:\n  %s' % (include, '\n  '.join(problems)))
    for problem in problems:
        print('gen_table.py: note: ' + problem, file=sys.stderr)
    modelled = defined_in(archives)
    unknown = sorted(n for n in modelled - exports if not n.startswith('cuda'))
    if unknown:
        print('gen_table.py: note: defined but not in these headers, so not exported: ' + ' '.join(unknown), file=sys.stderr)
    write_if_changed(out_table, table_source(rows, exports, modelled & exports))
    names = ''.join(f'    {n};\n' for n in sorted(exports) + ['simgpu_*'])
    write_if_changed(out_map, '{\n  global:\n' + names + '  local:\n    *;\n};\n')


main()
