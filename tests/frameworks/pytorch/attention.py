"""scaled_dot_product_attention, forward and backward, with PyTorch's own kernels: flash and memory efficient."""
import io

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

torch.manual_seed(0)
for backend, dtype in ((SDPBackend.FLASH_ATTENTION, torch.bfloat16), (SDPBackend.FLASH_ATTENTION, torch.float16), (SDPBackend.EFFICIENT_ATTENTION, torch.float32)):
    q, k, v = (torch.randn(2, 4, 128, 64, device='cuda', dtype=dtype, requires_grad=True) for _ in range(3))
    for causal in (False, True):
        with sdpa_kernel(backend):
            out = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        out.sum().backward()
    torch.save([q.grad, k.grad, v.grad], io.BytesIO())
    torch.cuda.synchronize()
    print(backend.name, dtype, tuple(q.grad.shape))
