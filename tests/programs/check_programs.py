#!/usr/bin/env python3
"""Runs the test programs on the simulated GPU, untraced, and compares exit code and last line of output.

    check_programs.py PROGRAM_DIR SOURCE_DIR LIBRARY_DIR TABLE

TABLE has one line per run: `COMMAND | exit code | regular expression of the whole last line`. A program that was not
built (no nvcc) is skipped and counted.
"""
import os
import re
import shlex
import subprocess
import sys


def rows_of(table):
    with open(table, encoding='ascii') as lines:
        for line in lines:
            line = line.strip()
            if line and not line.startswith('#'):
                yield [part.strip() for part in line.split(' | ')]


def run(command, programs, sources, libraries):
    words = shlex.split(command)
    settings = {}
    while '=' in words[0]:
        name, value = words.pop(0).split('=', 1)
        settings[name] = value
    folder = sources if words[0].endswith('.py') else programs
    program = os.path.join(folder, words[0])
    if not os.path.exists(program):
        return None
    environment = dict(os.environ, LD_LIBRARY_PATH=libraries, **settings)
    done = subprocess.run([program] + words[1:], cwd=programs, env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=120, check=False)
    lines = done.stdout.decode(errors='replace').splitlines()
    return done.returncode, lines[-1] if lines else ''


def main(programs, sources, libraries, table):
    failed = skipped = passed = 0
    for command, code, pattern in rows_of(table):
        got = run(command, programs, sources, libraries)
        if got is None:
            skipped += 1
        elif got[0] == int(code) and re.fullmatch(pattern, got[1]):
            passed += 1
        else:
            failed += 1
            print(f'{command}: exit {got[0]}, wanted {code}: {got[1]!r}, wanted {pattern!r}')
    print(f'{passed} passed, {failed} failed, {skipped} skipped')
    return 1 if failed or not passed else 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:5]))
