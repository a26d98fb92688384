"""A PyTorch training loop with nothing of ours in it. Prints its losses."""
import os

os.environ.setdefault('CUBLAS_WORKSPACE_CONFIG', ':4096:8')
import torch

torch.manual_seed(1)
torch.use_deterministic_algorithms(True)
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.LayerNorm(512), torch.nn.Linear(512, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
data, target = torch.randn(64, 256, device='cuda'), torch.randint(0, 10, (64,), device='cuda')
for step in range(50):
    optimizer.zero_grad()
    with torch.autocast('cuda', dtype=torch.bfloat16, enabled=step % 2 == 1):
        loss = torch.nn.functional.cross_entropy(model(data), target)
    loss.backward()
    optimizer.step()
    print(step, f'{loss.item():.6f}')
torch.cuda.synchronize()
