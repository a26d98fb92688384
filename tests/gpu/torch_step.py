"""A small transformer whose steps are bound by launches; nothing of ours in it.

  torch_step.py FILE        writes {"kernels": {name: {"count", "median_us"}} or null} to FILE
  torch_step.py             prints "ready", then for each line of standard input makes some steps and prints {"step_us": median, "cpu_us": processor time
                            of the process a step} as one line: several such processes can be measured in turn, one at a time

PROFILE=before: under torch.profiler from before CUDA is initialized; =after: from the middle of the run on; absent: without.
kernels: what torch.profiler saw. Fixed seed, fixed number of steps: every run with FILE launches the same kernels.
"""
import json
import os
import statistics
import sys
import time

import torch

WARM_UP, STEPS, STEPS_OF_A_TURN = 30, 150, 25
mode = os.environ.get('PROFILE', '')
activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
profiler = torch.profiler.profile(activities=activities) if mode else None
if mode == 'before':
    profiler.start()

torch.manual_seed(1)
layer = torch.nn.TransformerEncoderLayer(d_model=128, nhead=4, dim_feedforward=256, batch_first=True, dropout=0.0)
model = torch.nn.TransformerEncoder(layer, num_layers=6, enable_nested_tensor=False).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
data = torch.randn(4, 32, 128, device='cuda')


def step():
    optimizer.zero_grad(set_to_none=True)
    loss = model(data).square().mean()
    loss.backward()
    optimizer.step()
    torch.cuda.synchronize()


for _ in range(WARM_UP):
    step()
if len(sys.argv) < 2:
    print('ready', flush=True)
    for _ in sys.stdin:
        times, cpu_begin = [], time.process_time_ns()
        for _ in range(STEPS_OF_A_TURN):
            begin = time.perf_counter_ns()
            step()
            times.append(time.perf_counter_ns() - begin)
        print(json.dumps({'step_us': statistics.median(times) / 1000, 'cpu_us': (time.process_time_ns() - cpu_begin) / 1000 / STEPS_OF_A_TURN}), flush=True)
    if profiler:
        profiler.stop()
    sys.exit()
for index in range(STEPS):
    if mode == 'after' and index == STEPS // 2:
        profiler.start()
    step()

kernels = None
if profiler:
    profiler.stop()
    trace = sys.argv[1] + '.trace'
    profiler.export_chrome_trace(trace)
    with open(trace, encoding='utf-8') as file:
        events = json.load(file)['traceEvents']
    os.unlink(trace)
    durations = {}
    for event in events:
        if event.get('cat') == 'kernel':
            durations.setdefault(event['name'], []).append(event['dur'])
    kernels = {name: {'count': len(values), 'median_us': statistics.median(values)} for name, values in durations.items()}
with open(sys.argv[1], 'w', encoding='utf-8') as file:
    json.dump({'kernels': kernels}, file)
