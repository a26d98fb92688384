"""eager_loop.py ROUNDS OPERATIONS [profiler]: rounds of small eager operations, each a kernel and nothing besides, so that tracing weighs most;
prints the nanoseconds that one operation took in each round. `profiler`: under PyTorch's own, as its documentation begins."""
import contextlib
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
own = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) if 'profiler' in sys.argv else contextlib.nullcontext()
with own:
    for _ in range(ROUNDS):
        began = time.perf_counter_ns()
        operations()
        print((time.perf_counter_ns() - began) / OPERATIONS, flush=True)
