"""Logistic regression with a hand-written loss: element-wise kernels, reductions, a fused optimizer, losses copied back."""
import io

import torch

torch.manual_seed(0)
device = torch.device('cuda')
features = torch.randn(4096, 256, device=device)
labels = torch.randint(0, 2, (4096,), device=device).float()
weight = torch.zeros(256, device=device, requires_grad=True)
bias = torch.zeros((), device=device, requires_grad=True)
optimizer = torch.optim.AdamW([weight, bias], lr=1e-2, fused=True)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)

for step in range(20):
    optimizer.zero_grad()
    logits = (features * weight).sum(dim=1) + bias
    loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, labels)
    loss.backward()
    torch.nn.utils.clip_grad_norm_([weight, bias], 1.0)
    optimizer.step()
    schedule.step()
    if step % 5 == 0:
        print(f'step {step}: loss {loss.item():.4f}')

torch.save({'weight': weight, 'bias': bias, 'optimizer': optimizer.state_dict()}, io.BytesIO())
torch.cuda.synchronize()
print('learning rate', schedule.get_last_lr()[0])
