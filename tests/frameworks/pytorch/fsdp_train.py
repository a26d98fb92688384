"""Fully sharded training under torchrun: all-gathers of parameters, reduce-scatters of gradients."""
import os

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel

dist.init_process_group('nccl')
device = int(os.environ['LOCAL_RANK'])
torch.cuda.set_device(device)
torch.manual_seed(0)
layers = [FullyShardedDataParallel(torch.nn.Linear(128, 128).cuda()) for _ in range(3)]
model = FullyShardedDataParallel(torch.nn.Sequential(*layers, torch.nn.Linear(128, 8)).cuda())
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(3):
    optimizer.zero_grad()
    model(torch.randn(16, 128, device='cuda')).square().mean().backward()
    optimizer.step()
torch.cuda.synchronize()
dist.barrier()
if dist.get_rank() == 0:
    print('trained on', dist.get_world_size(), 'devices')
dist.destroy_process_group()
