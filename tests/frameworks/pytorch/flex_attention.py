"""Attention within a window, compiled from its mask (flex_attention)."""
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

STEPS, LENGTH = 40, 1024
torch.manual_seed(0)
attention = torch.compile(flex_attention)
mask = create_block_mask(lambda batch, head, query, key: (query >= key) & (query - key < 256), None, None, LENGTH, LENGTH, device='cuda')
project = torch.nn.Linear(512, 3 * 512).cuda().bfloat16()
optimizer = torch.optim.SGD(project.parameters(), 1e-3)
for _ in range(STEPS):
    inputs = torch.randn(2, LENGTH, 512, device='cuda', dtype=torch.bfloat16)
    query, key, value = project(inputs).view(2, LENGTH, 3, 8, 64).permute(2, 0, 3, 1, 4)
    attention(query, key, value, block_mask=mask).float().square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
print('steps', STEPS)
