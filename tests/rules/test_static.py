"""The sidecar and the analyzer are static programs: they run wherever the traced program runs."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check import Elf, artefact, check, finish, skip  # noqa: E402

PROGRAMS = {'gputrace-sidecar': ('GT_SIDECAR', 'writer/gputrace-sidecar'), 'gputrace': ('GT_CLI', 'cli/gputrace')}


def main():
    for name, where in PROGRAMS.items():
        path = artefact(*where)
        if not path:
            skip(name, 'it is not built yet')
            continue
        if os.environ.get('GT_STATIC', 'true') != 'true':
            skip(name, 'configured with -Dstatic_tools=false')
            continue
        elf = Elf(path)
        check(f'{name} needs no shared library', not elf.needed(), elf.needed())
        check(f'{name} needs no dynamic loader', not elf.interpreter())
        if name == 'gputrace':
            ran = subprocess.run([path, '--version'], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env={}, timeout=30, check=False)
            check('gputrace --version runs with an empty environment', ran.returncode == 0 and ran.stdout.startswith(b'gputrace'),
                  f'rc {ran.returncode}, {ran.stdout!r}')
    finish()


main()
