"""Prints `FILE PARALLEL SECONDS` for each scenario in the rooms beside this file: what tests/e2e/meson.build makes tests of."""
import glob
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
for path in sorted(glob.glob(os.path.join(HERE, '*', 'test_*.py'))):
    with open(path, encoding='utf-8') as file:
        head = ' '.join(line for line in file.read().splitlines()[:5] if line.startswith('# meson:'))
    seconds = re.search(r'timeout=(\d+)', head)
    print(os.path.relpath(path, HERE), 'false' if 'serial' in head else 'true', seconds[1] if seconds else 120)
