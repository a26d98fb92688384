#!/usr/bin/env python3
"""libcupti's exports and the numbers of API calls, from the toolkit's headers and, where there is one, its libcupti.

  gen_table.py INCLUDE_DIR LIBRARY_OR_EMPTY OUT_TABLE.cpp OUT_EXPORTS.map SONAME ARCHIVE

Whatever the headers declare or the library exports and our objects do not define answers CUPTI_ERROR_NOT_SUPPORTED.
"""
import glob
import os
import re
import subprocess
import sys


def read(path):
    with open(path, encoding='utf-8', errors='replace') as f:
        return re.sub(r'/\*.*?\*/', '', f.read(), flags=re.S)


def names_in(path, dynamic):
    command = ['nm', '--defined-only'] + (['-D'] if dynamic else []) + [path]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {m.group(1) for m in re.finditer(r' [TW] (cupti\w+)(?:@\S+)?$', out, re.M)}


def numbers(include, header, prefix):
    found = re.findall(prefix + r'(\w+)\s*=\s*(\d+)\s*,', read(os.path.join(include, header)))
    return sorted((name, int(number)) for name, number in found if name not in ('INVALID', 'SIZE', 'FORCE_INT'))


def rows(name, calls):
    out = [f'const CallNumber {name}s[] = {{']
    out += [f'    {{"{call}", {number}}},' for call, number in sorted(calls, key=lambda c: c[0].encode())]
    return out + ['};', f'const unsigned {name}Count = {len(calls)};', '']


def write_if_changed(path, text):
    if os.path.exists(path):
        with open(path, encoding='utf-8') as f:
            if f.read() == text:
                os.utime(path)
                return
    with open(path, 'w', encoding='utf-8') as f:
        f.write(text)


def main():
    include, library, out_table, out_map, soname, archive = sys.argv[1:7]
    declared = set()
    for header in glob.glob(os.path.join(include, 'cupti*.h')):
        declared |= set(re.findall(r'CUptiResult\s+CUPTIAPI\s+(cupti\w+)\s*\(', read(header)))
    if library and os.path.exists(library):
        declared |= names_in(library, True)
    driver = numbers(include, 'cupti_driver_cbid.h', 'CUPTI_DRIVER_TRACE_CBID_')
    runtime = numbers(include, 'cupti_runtime_cbid.h', 'CUPTI_RUNTIME_TRACE_CBID_')
    if len(declared) < 100 or len(driver) < 500 or len(runtime) < 300:
        sys.exit(f'gen_table.py: the headers in {include} are not read right')
    own = names_in(archive, False)
    out = ['// Made by gen_table.py: not to be edited.', '#include "simgpu/cupti/calls.h"',
           '#include "simgpu/cupti/entry.h"',
           '#include "simgpu/cupti/headers.h"', '', '// Documented, but not modelled. The arguments are not looked at.']
    for i, name in enumerate(sorted(declared - own)):
        out.append(f'extern "C" CUptiResult gt_cupti_stub_{i}() __asm__("{name}");')
        out.append(f'extern "C" CUptiResult gt_cupti_stub_{i}() '
                   f'{{ return simgpu::cupti::leave("{name}", CUPTI_ERROR_NOT_SUPPORTED); }}')
    out += ['', 'namespace simgpu::cupti {', '']
    out += rows('kDriverCall', driver) + rows('kRuntimeCall', runtime) + ['}  // namespace simgpu::cupti', '']
    write_if_changed(out_table, '\n'.join(out))
    names = ''.join(f'    {n};\n' for n in sorted(declared | own))
    # Programs that were linked against the toolkit's library ask for its version node.
    write_if_changed(out_map, soname + ' {\n  global:\n' + names + '  local:\n    *;\n};\n')


main()
