"""eager_loop.py ROUNDS OPERATIONS [profiler | observer LIBRARY]: rounds of small eager operations, each a kernel and nothing besides, so that tracing weighs
most; prints the nanoseconds that one operation took in each round. `profiler`: under PyTorch's own, as its documentation begins; `observer`: with a callback
for each operation, which does nothing (torch_observer.cpp)."""
import contextlib
import ctypes
import os
import sys
import time

import torch
from torch.profiler import ProfilerActivity, profile

ROUNDS, OPERATIONS = int(sys.argv[1]), int(sys.argv[2])
left, right = torch.ones(1024, device='cuda'), torch.ones(1024, device='cuda')


def operations():
    for _ in range(OPERATIONS // 4):
        left.add_(right)
        left.mul_(0.5)
        torch.relu_(left)
        left.sub_(1)
    torch.cuda.synchronize()


operations()
if 'observer' in sys.argv:
    framework = ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), 'lib', 'libtorch_cpu.so'))
    ctypes.CDLL(sys.argv[-1]).observe(framework._ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE)
own = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) if 'profiler' in sys.argv else contextlib.nullcontext()
with own:
    for _ in range(ROUNDS):
        began = time.perf_counter_ns()
        operations()
        print((time.perf_counter_ns() - began) / OPERATIONS, flush=True)
