"""End-to-end scenarios: run a program with and without gputrace on the simulated GPU, and hold the trace against the truth.

A scenario is one file tests/e2e/ROOM/test_*.py with functions test_*; meson finds it by its name. It looks like this:

    # meson: serial timeout=120        (optional first lines: not beside other tests; seconds)
    from harness import *

    def test_every_launch_is_seen():
        run = traced([program('streams')])
        plain = untraced([program('streams')])
        same_output(plain, run)
        check_launches_against_truth(run)
        check_conservation(run)

    main()

Each test_* gets a fresh scratch folder. A check that fails ends its test_* function; skip('why') ends it as skipped. The last
line that a file prints is `CASES passed failed skipped`; its exit code is 0, 1 when something failed, 77 when all was skipped.
No process outlives a test: what is left after the time limit is killed, and that fails the test.

By hand: GT_BUILD=DIR PYTHONPATH=tests/e2e python3 tests/e2e/ROOM/test_x.py [test_name...]; GT_KEEP=1 keeps the scratch folders and prints them; GT_FULL=1
raises the counts of the sweeps (1000 kills, 10,000 forks, 300 processes at once, every allocation).
"""
import collections
import ctypes
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from artefacts import *
from cases import *
from processes import *
from traces import *
