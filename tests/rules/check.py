"""The few words that the rule tests share: where the build is, cases that pass, fail or skip, and what readelf says."""
import os
import re
import subprocess
import sys

SOURCE = os.path.abspath(os.path.join(os.path.dirname(__file__), '..', '..'))
BUILD = os.environ.get('GT_BUILD', os.path.join(SOURCE, 'build', 'debug'))
_counts = {'passed': 0, 'failed': 0, 'skipped': 0}


def check(what, condition, detail=''):
    """One case. `detail` is printed when it fails."""
    _counts['passed' if condition else 'failed'] += 1
    print(f"{'ok    ' if condition else 'FAILED'} {what}" + (f': {detail}' if detail and not condition else ''), flush=True)
    return bool(condition)


def skip(what, reason):
    _counts['skipped'] += 1
    print(f'skipped: {what}: {reason}', flush=True)


def finish():
    print('CASES {passed} {failed} {skipped}'.format(**_counts))
    sys.exit(1 if _counts['failed'] else 77 if not _counts['passed'] else 0)


def artefact(variable, default):
    """A built file: named by meson in the environment, else at its usual place in GT_BUILD. None while it is not built."""
    path = os.environ.get(variable) or os.path.join(BUILD, default)
    return path if os.path.exists(path) else None


def tool(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True, timeout=120,
                          env={**os.environ, 'LC_ALL': 'C'}).stdout.decode(errors='replace')


class Elf:
    """What readelf says of one file."""

    def __init__(self, path):
        self.path = path
        self.dynamic = tool('readelf', '-dW', path)
        self.segments = tool('readelf', '-lW', path)
        self.symbols = tool('readelf', '--dyn-syms', '-W', path)
        self.versions = tool('readelf', '-VW', path)

    def needed(self):
        return re.findall(r'\(NEEDED\).*\[(.*)\]', self.dynamic)

    def dynamic_value(self, tag):
        found = re.search(r'\(' + tag + r'\)\s+(\S+)', self.dynamic)
        return int(found[1], 0) if found else None

    def flags(self):
        return ' '.join(re.findall(r'\((?:FLAGS|FLAGS_1)\)\s+(.*)', self.dynamic))

    def interpreter(self):
        return re.search(r'interpreter: (.*)\]', self.segments)

    def tls_bytes(self):
        found = re.search(r'^\s+TLS\s+\S+ \S+ \S+ \S+ (0x[0-9a-f]+)', self.segments, re.M)
        return int(found[1], 16) if found else 0

    def _dynamic_symbols(self):
        for line in self.symbols.splitlines():
            fields = line.split()
            if len(fields) >= 8 and fields[0].rstrip(':').isdigit():
                yield fields[4], fields[6], fields[7]  # bind, section, name

    def exported(self):
        return {name.split('@')[0] for bind, section, name in self._dynamic_symbols()
                if section != 'UND' and bind in ('GLOBAL', 'WEAK', 'UNIQUE') and section != 'ABS'}

    def undefined(self):
        return {name for _, section, name in self._dynamic_symbols() if section == 'UND' and name}

    def glibc_needed(self):
        """The highest (major, minor) of glibc that the file asks for."""
        wanted = re.findall(r'Name: GLIBC_(\d+)\.(\d+)', self.versions)
        return max(((int(a), int(b)) for a, b in wanted), default=(0, 0))
