"""Prints `FILE PARALLEL SECONDS PRIORITY` for each scenario in the rooms beside this file: what tests/e2e/meson.build makes tests of.

Those that run alone come last: before such a one begins, all that run must have ended, and a processor waits."""
import glob
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
LAST = -10
for path in sorted(glob.glob(os.path.join(HERE, '*', 'test_*.py'))):
    with open(path, encoding='utf-8') as file:
        head = ' '.join(line for line in file.read().splitlines()[:5] if line.startswith('# meson:'))
    seconds = re.search(r'timeout=(\d+)', head)
    alone = 'serial' in head
    print(os.path.relpath(path, HERE), 'false' if alone else 'true', seconds[1] if seconds else 120, LAST if alone else 0)
