"""Batches that a thread copies on a stream of its own, and mixed precision with a GradScaler."""
import queue
import threading
import time

import torch

STEPS = 40
batches, side = queue.Queue(2), torch.cuda.Stream()


def feed():
    for _ in range(STEPS):
        time.sleep(0.005)
        host = torch.randn(64, 3, 32, 32).pin_memory()
        with torch.cuda.stream(side):
            batch = host.cuda(non_blocking=True)
        copied = torch.cuda.Event()
        copied.record(side)
        batches.put((batch, copied))
    batches.put(None)


torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Conv2d(3, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(32, 10)).cuda()
optimizer, scaler = torch.optim.SGD(net.parameters(), 0.1), torch.amp.GradScaler()
threading.Thread(target=feed, name='feeder', daemon=True).start()
while taken := batches.get():
    batch, copied = taken
    torch.cuda.current_stream().wait_event(copied)
    batch.record_stream(torch.cuda.current_stream())
    with torch.autocast('cuda', torch.float16):
        loss = net(batch).square().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
print('steps', STEPS)
