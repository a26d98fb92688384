"""What libgputrace-host.so promises to every process that it is loaded into, read off the file itself: libc alone, nothing of glibc above
2.28, exactly the functions of its table, next to no static TLS. And libgputrace.so has none of its names."""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check import SOURCE, Elf, artefact, check, finish, skip  # noqa: E402

LOADER = {'libc.so.6', 'ld-linux-x86-64.so.2'}


def table_names():
    with open(os.path.join(SOURCE, 'interpose', 'host', 'host_functions.def'), encoding='utf-8') as file:
        return set(re.findall(r'^GT_HOST_FUNCTION\((\w+)\)', file.read(), re.M))


def main():
    path, library = artefact('GT_HOST_LIBRARY', 'interpose/libgputrace-host.so'), artefact('GT_LIBRARY', 'interpose/libgputrace.so')
    if not path:
        skip('libgputrace-host.so', 'it is not built yet')
        finish()
    elf, names = Elf(path), table_names()
    check('needs libc alone', set(elf.needed()) <= LOADER and 'libc.so.6' in elf.needed(), f'it needs {sorted(elf.needed())}')
    check('binds to nothing of glibc above 2.28', elf.glibc_needed() <= (2, 28), 'it asks for GLIBC_%d.%d' % elf.glibc_needed())
    # What it asks of libc itself, and stands before nothing.
    silent = {'pthread_mutex_trylock', 'fileno'}
    check('exports the functions of its table and the way to connect it', elf.exported() == names - silent | {'gputrace_host_connect'},
          sorted(elf.exported() ^ (names - silent | {'gputrace_host_connect'})))
    check('no static TLS', elf.tls_bytes() == 0, f'{elf.tls_bytes()} bytes')
    check('no destructor of ours at unload', (elf.dynamic_value('FINI_ARRAYSZ') or 0) <= 8)
    if library:
        check('libgputrace.so has none of these names', not Elf(library).exported() & names, sorted(Elf(library).exported() & names))
    finish()


main()
