"""Data parallel training under torchrun: DistributedDataParallel over NCCL, one process a device."""
import io
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group('nccl')
rank, device = dist.get_rank(), int(os.environ['LOCAL_RANK'])
torch.cuda.set_device(device)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(128, 256), torch.nn.ReLU(), torch.nn.Linear(256, 16)).cuda()
parallel = DistributedDataParallel(model, device_ids=[device])
optimizer = torch.optim.SGD(parallel.parameters(), lr=1e-2)
steps = 4
for step in range(steps):
    x, y = torch.randn(32, 128, device='cuda'), torch.randint(0, 16, (32,), device='cuda')
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(parallel(x), y).backward()
    optimizer.step()
torch.save(model.state_dict(), io.BytesIO())
torch.cuda.synchronize()
if rank == 0:
    gradients = sum(p.numel() * p.element_size() for p in model.parameters())
    print('world', dist.get_world_size(), 'bytes of gradients', steps * gradients)
dist.destroy_process_group()
