"""Data parallel training as PyTorch's tutorial has it: torch.multiprocessing.spawn, the rank an argument, no launcher."""
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing
from torch.nn.parallel import DistributedDataParallel


def train(rank, world, port, steps):
    os.environ.update(MASTER_ADDR='127.0.0.1', MASTER_PORT=str(port))
    torch.cuda.set_device(rank)
    dist.init_process_group('nccl', rank=rank, world_size=world)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(128, 256), torch.nn.ReLU(), torch.nn.Linear(256, 16)).cuda()
    parallel = DistributedDataParallel(model, device_ids=[rank])
    optimizer = torch.optim.SGD(parallel.parameters(), lr=1e-2)
    for _ in range(steps):
        x, y = torch.randn(32, 128, device='cuda'), torch.randint(0, 16, (32,), device='cuda')
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(parallel(x), y).backward()
        optimizer.step()
    torch.cuda.synchronize()
    if rank == 0:
        gradients = sum(p.numel() * p.element_size() for p in model.parameters())
        print('world', world, 'bytes of gradients', steps * gradients, flush=True)
    dist.destroy_process_group()


if __name__ == '__main__':
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        chosen = free.getsockname()[1]
    torch.multiprocessing.spawn(train, args=(2, chosen, 6), nprocs=2)
