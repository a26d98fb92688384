#!/usr/bin/env python3
"""Writes a weak function for every name of the runtime's export list.

A name that the runtime implements has a strong definition beside it, which wins; what is left answers
cudaErrorNotSupported. The lists exports_*.txt are what the toolkits' own libraries export:

    gen_stubs.py LIST OUT.c OUT.map SONAME   the stubs, and the linker's map, whose one version is the soname
    gen_stubs.py --check LIST LIB            exit 1 when the list and the library differ
    gen_stubs.py --covers LIB LIST           exit 1 when LIB (a toolkit's, perhaps newer) lacks a name of the list
"""
import subprocess
import sys


def names_of(path):
    with open(path, encoding='ascii') as lines:
        return [line.strip() for line in lines if line.strip()]


def exported(library):
    out = subprocess.run(['nm', '-D', '--defined-only', library], check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in out.splitlines()]
    return sorted(row[2].split('@')[0] for row in rows if row[1] in 'TW')


def main(arguments):
    if arguments[0] == '--covers':
        missing = sorted(set(names_of(arguments[2])) - set(exported(arguments[1])))
        print('\n'.join('missing in the library: ' + name for name in missing))
        return 1 if missing else 0
    if arguments[0] == '--check':
        listed, found = set(names_of(arguments[1])), set(exported(arguments[2]))
        for name in sorted(listed ^ found):
            print(('missing in the library: ' if name in listed else 'not in the list: ') + name)
        return 1 if listed != found else 0
    with open(arguments[1], 'w', encoding='ascii') as out:
        out.write('/* Made by gen_stubs.py: 801 is cudaErrorNotSupported. */\n#include "simgpu/missing/missing.h"\n')
        out.write('static int missing(const char* name) {\n  simgpu_missing(SIMGPU_SONAME, name);\n  return 801;\n}\n')
        for name in names_of(arguments[0]):
            out.write(f'__attribute__((weak)) int {name}(void) {{ return missing("{name}"); }}\n')
    with open(arguments[2], 'w', encoding='ascii') as out:
        out.write(f'{arguments[3]} {{\n  global:\n    cuda*;\n    __cuda*;\n  local:\n    *;\n}};\n')
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
