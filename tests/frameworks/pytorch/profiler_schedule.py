"""torch.profiler with a schedule: wait, warm up, two active cycles, repeated; counts what it saw on the device."""
import io

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

torch.manual_seed(0)
x = torch.randn(512, 512, device='cuda')
weight = torch.ones(512, device='cuda', requires_grad=True)
cycles = []


def ready(profiler):
    events = [event for event in profiler.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    kernels = [event for event in events if not event.name.startswith(('Memcpy', 'Memset', 'training', 'ProfilerStep', 'Optimizer.'))]
    cycles.append(len(kernels))


with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], schedule=schedule(wait=1, warmup=1, active=2, repeat=2), on_trace_ready=ready) as profiler:
    for _ in range(8):
        with record_function('training step'):
            (x * weight).tanh().sum().backward()
            weight.grad = None
        profiler.step()
torch.save(weight, io.BytesIO())
torch.cuda.synchronize()
print('kernels in each cycle:', cycles)
