#!/usr/bin/env python3
"""What a stand-in of a vendor's library is made of beside its own sources.

    gen_standin.py stubs EXPORTS SONAME ANSWER VERSIONED OUT.c OUT.map    a weak function for each name, and the export map
    gen_standin.py image FATBIN OUT.S                                    its kernels, as the object simlibs_image
    gen_standin.py check EXPORTS SONAME VERSIONED LIBRARY                exit 1 when the built library exports anything else
    gen_standin.py list PREFIX[,PREFIX...] FILE...                       the names for EXPORTS: of headers and libraries

A name that the stand-in models has a strong definition beside its stub, which wins; what is left answers the number ANSWER,
the library's own *not supported*, and is counted (simgpu/missing/). EXPORTS has one name a line, `#` begins a comment. With
VERSIONED 1 the names carry SONAME as their version node, as the vendor's do.
"""
import re
import subprocess
import sys


def names_of(path):
    with open(path, encoding='ascii') as lines:
        return [line.strip() for line in lines if line.strip() and not line.startswith('#')]


def write_stubs(exports, soname, answer, versioned, source, export_map):
    names = names_of(exports)
    with open(source, 'w', encoding='ascii') as out:
        out.write(f'/* Made by gen_standin.py: {answer} is this library\'s "not supported". */\n#include "simgpu/missing/missing.h"\n')
        out.write(f'const char simlibs_soname[] = "{soname}";\n')
        out.write(f'static int missing(const char* name) {{\n  simgpu_missing("{soname}", name);\n  return {answer};\n}}\n')
        for name in names:
            out.write(f'__attribute__((weak)) int {name}(void) {{ return missing("{name}"); }}\n')
    with open(export_map, 'w', encoding='ascii') as out:
        node = soname + ' ' if versioned == '1' else ''
        out.write(node + '{\n  global:\n' + ''.join(f'    {name};\n' for name in names) + '  local: *;\n};\n')


def write_image(fatbin, source):
    with open(source, 'w', encoding='ascii') as out:
        out.write('.section .rodata\n.balign 64\n.global simlibs_image\n.hidden simlibs_image\n.type simlibs_image, @object\n'
                  f'simlibs_image:\n  .incbin "{fatbin}"\n.size simlibs_image, . - simlibs_image\n'
                  '.section .note.GNU-stack,"",@progbits\n')


def listed(prefixes, files):
    """Documented names: what a header declares, what a library exports."""
    word = '(?:' + '|'.join(prefixes.split(',')) + r')[A-Z_0-9]\w*'
    found = set()
    for path in files:
        if path.endswith('.h'):
            with open(path, encoding='utf-8', errors='replace') as header:
                text = re.sub(r'/\*.*?\*/|//[^\n]*', '', header.read(), flags=re.S)
            text = re.sub(r'^\s*#(?:[^\n]*\\\n)*[^\n]*', '', text, flags=re.M)
            found |= set(re.findall(r'\b(' + word + r')\s*\((?!\s*\*)', text))
        else:
            out = subprocess.run(['nm', '-D', '--defined-only', path], check=True, capture_output=True, text=True).stdout
            exported = [line.split()[-1].split('@')[0] for line in out.splitlines() if re.search(r' [TWi] ', line)]
            found |= {name for name in exported if re.fullmatch(word, name)}
    return sorted(found)


def check(exports, soname, versioned, library):
    out = subprocess.run(['nm', '-D', '--defined-only', library], check=True, capture_output=True, text=True).stdout
    found = {line.split()[-1].replace('@@', '@') for line in out.splitlines() if re.search(r' [TW] ', line)}
    wanted = {name + ('@' + soname if versioned == '1' else '') for name in names_of(exports)}
    for name in sorted(found ^ wanted):
        print(('missing in the library: ' if name in wanted else 'not in the list: ') + name)
    return 1 if found != wanted else 0


def main(arguments):
    if arguments[0] == 'stubs':
        write_stubs(*arguments[1:])
    elif arguments[0] == 'image':
        write_image(*arguments[1:])
    elif arguments[0] == 'check':
        sys.exit(check(*arguments[1:]))
    else:
        print('\n'.join(listed(arguments[1], arguments[2:])))


if __name__ == '__main__':
    main(sys.argv[1:])
