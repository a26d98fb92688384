"""profiled.py PROGRAM [ARGUMENT...]: runs a PyTorch program, unchanged, under PyTorch's own profiler (Kineto), its FLOP counter, with a last
look at its allocator, and with its own line at each operation. What they say goes to $GT_SAID/said-PID.json and kineto-PID.json. Any Python since
3.8."""
import contextlib
import json
import os
import runpy
import sys
import threading
import time

import torch
from torch.profiler import ProfilerActivity, profile, record_function
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode


class Lines(TorchDispatchMode):
    """[thread, begin, end, line] of each operation: the program's innermost line, as the interpreter itself has it. Times are of our clock."""

    def __init__(self, program):
        super().__init__()
        self.program, self.seen = program, []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        frame = sys._getframe()
        while frame is not None and frame.f_code.co_filename != self.program:
            frame = frame.f_back
        begin = time.monotonic_ns()
        try:
            return func(*args, **(kwargs or {}))
        finally:
            if frame is not None:  # none: a thread of autograd's
                self.seen.append([threading.get_native_id(), begin, time.monotonic_ns(), frame.f_lineno])


def program(marks):
    """The program, between two stamps of our clock and within a range of the profiler's."""
    marks['begin_ns'] = time.monotonic_ns()
    with record_function('gt: program'):
        try:
            runpy.run_path(sys.argv[0], run_name='__main__')
        finally:
            torch.cuda.synchronize()
    marks['end_ns'] = time.monotonic_ns()


def main():
    sys.argv = sys.argv[1:]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    watched = os.environ.get('GT_FLOPS', '1') == '1'  # not where dispatch in Python would change what is run
    marks, counter, lines = {}, FlopCounterMode(display=False) if watched else None, Lines(sys.argv[0]) if watched else None
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        with counter or contextlib.nullcontext(), lines or contextlib.nullcontext():
            program(marks)
    folder, pid = os.environ['GT_SAID'], os.getpid()
    profiler.export_chrome_trace(os.path.join(folder, 'kineto-%d.json' % pid))
    said = dict(marks, pid=pid, torch=torch.__version__, memory=dict(torch.cuda.memory_stats()))
    if lines:
        said.update(program=sys.argv[0], lines=lines.seen)
    if counter:
        said['flops'] = {str(op): count for op, count in counter.get_flop_counts().get('Global', {}).items()}
    with open(os.path.join(folder, 'said-%d.json' % pid), 'w', encoding='utf-8') as file:
        json.dump(said, file)


main()
