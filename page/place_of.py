#!/usr/bin/env python3
"""place_of.py HEADER FILE: where the built page lies, for the assembler, with its sum, so that another page is another header."""
import hashlib
import sys

header, page = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ''
with open(header, 'w', encoding='utf-8') as out:
    if page:
        with open(page, 'rb') as file:
            out.write(f'// {hashlib.sha256(file.read()).hexdigest()}\n')
        out.write('#define GT_PAGE_FILE "%s"\n' % page.replace('\\', '\\\\').replace('"', '\\"'))
    else:
        out.write('// no page was built\n')
