"""A training loop with one known thing wrong, and the same loop without it.

    python planted.py CAUSE (planted | mended | graphed) [STEPS]

The line that is to blame ends with `# CAUSE`. `graphed`: the planted loop, each step a replay of one CUDA graph. Prints the seconds that the loop took after
its first steps.

On a real GPU products take no longer than their arithmetic: PLANTED_WIDTH widens them, PLANTED_AUGMENTED multiplies each sample on the device. PLANTED_ALONE
names a file: of several such programs, one at a time runs its loop."""
import fcntl
import gc
import io
import json
import os
import subprocess
import sys
import time

cause, planted, graphed = sys.argv[1], sys.argv[2] != 'mended', sys.argv[2] == 'graphed'
rank = int(os.environ.get('LOCAL_RANK', '0'))  # of `straggler`, which runs under torchrun: two ranks, a device each
others = [subprocess.Popen([sys.executable, '-c', 'while True: pass']) for _ in range(2 * os.cpu_count() if cause == 'busy-machine' and planted else 0)]

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, Dataset, default_collate  # noqa: E402

steps = int(sys.argv[3]) if len(sys.argv) > 3 else {'busy-machine': 600, 'recompilation': 12}.get(cause, 60)
WIDTH, BATCH = (4096, 512) if cause == 'wrong-dtype' else (int(os.environ.get('PLANTED_WIDTH', '256')), 32)  # products that take long by themselves
AUGMENTED = int(os.environ.get('PLANTED_AUGMENTED', '8' if cause == 'wrong-dtype' else '1'))
if cause == 'small-batch' and planted:  # the same samples
    BATCH, steps = BATCH // 8, steps * 8
WARM_UP = steps // 6
# What waits: work of the host follows, which could be done beside the device's.
WAITS = {'item', 'condition', 'print', 'float', 'tolist', 'nan-check', 'synchronize', 'stream-wait', 'event-wait', 'to-cpu', 'pageable-copy'}


class Augmented(nn.Module):
    """Several of each sample, made on the device."""
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x.repeat(AUGMENTED, 1)).view(AUGMENTED, len(x), -1).mean(dim=0)  # wrong-dtype


class Pictures(nn.Module):
    """Convolutions of pictures, in whose layout the kernels do not compute, or in the one in which they do."""
    def __init__(self):
        super().__init__()
        self.layout = torch.contiguous_format if planted else torch.channels_last
        self.inner = nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(),
                                   nn.Conv2d(16, 16, 4), nn.Flatten()).to(memory_format=self.layout)

    def forward(self, x):
        return self.inner(x.view(-1, 16, 4, 4).to(memory_format=self.layout))  # channels-first


def is_on(name):
    return planted and cause == name


def work(length):
    """That much computing, on the processor."""
    total, end = 0, time.thread_time() + length
    while time.thread_time() < end:  # slow-data-set slow-worker tokenizing slow-collate straggler
        total += sum(range(200))  # slow-data-set slow-worker tokenizing slow-collate straggler
    return total


class Data(Dataset):
    def __len__(self):
        return BATCH * steps

    def __getitem__(self, index):
        if is_on('slow-data-set') or is_on('slow-worker'):
            work(0.0006)  # slow-data-set slow-worker
        if is_on('slow-read'):
            time.sleep(0.0006)  # slow-read
        return torch.ones(WIDTH), index % 10


def collate(items):
    if is_on('slow-collate'):
        work(0.02)  # slow-collate
    return default_collate(items)


def batches():
    workers = 1 if cause == 'slow-worker' else 0
    if cause in ('slow-data-set', 'slow-worker', 'slow-collate', 'slow-read'):
        yield from DataLoader(Data(), batch_size=BATCH, num_workers=workers, collate_fn=collate)
        return
    x, y = torch.ones(BATCH, WIDTH), torch.zeros(BATCH, dtype=torch.long)
    for _ in range(steps):
        yield x, y


if cause == 'straggler':
    torch.cuda.set_device(rank)
    torch.distributed.init_process_group('nccl')
torch.manual_seed(0)
torch.autograd.set_detect_anomaly(is_on('anomaly'))
if not is_on('wrong-dtype'):
    torch.set_float32_matmul_precision('high')  # else that is the first thing to say of products in fp32
model = nn.Sequential(nn.Linear(WIDTH, WIDTH, bias=False), nn.ReLU(), nn.Linear(WIDTH, WIDTH, bias=False), nn.ReLU(),
                      nn.Linear(WIDTH, 16, bias=False)).cuda()
updated = [nn.Parameter(torch.ones(16, device='cuda')) for _ in range(60 if cause == 'unfused-optimizer' else 0)]  # by gradients that stay the same
for each in updated:
    each.grad = torch.ones_like(each)
if AUGMENTED > 1:
    model = Augmented(model)
if cause == 'channels-first':
    model = Pictures().cuda()
parameters = list(model.parameters())
forward = model
if cause == 'straggler':
    forward = nn.parallel.DistributedDataParallel(model, device_ids=[rank])
if cause == 'recompilation':
    torch._dynamo.config.recompile_limit = steps
    forward = torch.compile(model, dynamic=False)
if cause in ('small-kernels', 'small-batch', 'unfused-optimizer'):  # a graph of AdamW wants other kernels than its calls one by one
    optimizer = torch.optim.SGD(parameters + updated, lr=1e-3, momentum=0.9, nesterov=True, weight_decay=1e-4, foreach=not is_on('unfused-optimizer'))
else:
    optimizer = torch.optim.AdamW(parameters)
loss_of = nn.CrossEntropyLoss()
large = torch.ones(1 << 20)
large_pinned = large.pin_memory()
on_device = torch.empty_like(large, device='cuda')
logits_pinned = torch.empty(BATCH, 16).pin_memory()
on_host = torch.ones(700, 700)
small = [torch.ones(16, device='cuda') for _ in range(400)]
kept, texts = [], ['a sentence of some words to be cut'] * 40


def tokenize():
    for text in texts:
        work(0.0004)  # tokenizing
        text.split()


def wait_for_result(step, loss, logits):
    if is_on('item'):
        if loss.item() > 1e9:  # item
            raise ValueError
    if is_on('condition'):
        if loss > 1e9:  # condition
            raise ValueError
    if is_on('print'):
        print(f'{step} {loss:.3f}', file=sys.stderr)  # print
    if is_on('float'):
        kept.append(float(loss))  # float
    if is_on('tolist'):
        kept[:] = logits[0, :8].tolist()  # tolist
    if cause == 'to-cpu':
        if planted:
            kept[:] = [logits.cpu()]  # to-cpu
        else:
            logits_pinned.copy_(logits, non_blocking=True)
    if is_on('nan-check'):
        if torch.isnan(logits).any():  # nan-check
            raise ValueError


def wait_for_nothing():
    if is_on('synchronize'):
        torch.cuda.synchronize()  # synchronize
    if is_on('stream-wait'):
        torch.cuda.current_stream().synchronize()  # stream-wait
    if is_on('event-wait'):
        event = torch.cuda.Event()
        event.record()
        event.synchronize()  # event-wait


def copy_and_allocate():
    if cause == 'pageable-copy':
        on_device.copy_(large if planted else large_pinned, non_blocking=True)  # pageable-copy
    if is_on('empty-cache'):
        kept[:] = [torch.empty(8 << 20, device='cuda') for _ in range(4)]
        kept.clear()
        torch.cuda.empty_cache()  # empty-cache


def work_on_the_host(step):
    if is_on('tokenizing'):
        tokenize()
    if is_on('garbage'):
        gc.collect()  # garbage
    if is_on('straggler') and rank == 1:
        work(0.01)  # straggler
    if is_on('sleep'):
        time.sleep(0.015)  # sleep
    if is_on('lists'):
        torch.tensor([[float(k) for k in range(256)] for _ in range(256)])  # lists
    if is_on('host-product'):
        on_host @ on_host  # host-product
    if is_on('logging'):
        with open(os.devnull, 'w', encoding='utf-8') as log:
            json.dump([{'step': step, 'k': k} for k in range(8000)], log)  # logging
    if is_on('checkpoint') and step % 5 == 0:
        torch.save(list(parameters) * 40000, io.BytesIO())  # checkpoint


def launch_much():
    if is_on('small-kernels'):
        for each in small:
            each.add_(1)  # small-kernels
    elif cause == 'small-kernels':
        torch._foreach_add_(small, 1)


def plant(step, loss, logits):
    wait_for_result(step, loss, logits)
    wait_for_nothing()
    if cause in WAITS:
        work(0.004)
    copy_and_allocate()
    work_on_the_host(step)
    launch_much()


def graph_of(x, y):
    """What replays a step, captured."""
    def train():
        model.zero_grad()
        loss_of(forward(x), y).backward()
        optimizer.step()
        launch_much()

    side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            train()
    torch.cuda.current_stream().wait_stream(side)
    with torch.cuda.graph(graph):
        train()
    return graph


if alone := os.environ.get('PLANTED_ALONE'):
    (torch.ones(64, 64, device='cuda') @ torch.ones(64, 64, device='cuda')).sum().item()  # what the first product of all loads
    ours = open(alone, 'w', encoding='utf-8')
    fcntl.flock(ours, fcntl.LOCK_EX)
begin, graph = 0.0, None
for step, (x, y) in enumerate(batches()):
    if step == WARM_UP:
        torch.cuda.synchronize()
        begin = time.perf_counter()
    if graphed:
        if graph is None:
            on_device = x.cuda(), y.cuda()
            graph = graph_of(*on_device)
        for to, batch in zip(on_device, (x, y)):
            to.copy_(batch, non_blocking=True)
        graph.replay()
        continue
    if is_on('recompilation'):
        x, y = x[:BATCH - step], y[:BATCH - step]
    if cause == 'small-batch':  # both before the first launch, as what replays a graph has them: else the step is two graphs
        x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
    (model if updated else optimizer).zero_grad()
    logits = forward(x.cuda(non_blocking=True))  # small-batch wrong-dtype recompilation channels-first anomaly
    loss = loss_of(logits, y.cuda(non_blocking=True))
    loss.backward()  # small-batch wrong-dtype recompilation channels-first anomaly
    optimizer.step()  # unfused-optimizer small-batch
    plant(step, loss, logits.detach())
torch.cuda.synchronize()
for other in others:
    other.kill()
if rank == 0:
    print(time.perf_counter() - begin)
if alone:
    fcntl.flock(ours, fcntl.LOCK_UN)  # a forked worker has it open too
if cause == 'straggler':
    torch.distributed.destroy_process_group()
