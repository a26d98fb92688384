"""One launch and more of each kind of arithmetic: matrix products in every type that PyTorch has, convolutions, attention, and what lies between."""
import torch
from torch.nn import functional

torch.manual_seed(0)
a, b = torch.randn(1024, 1024, device='cuda'), torch.randn(1024, 1024, device='cuda')
for tf32 in (False, True):
    torch.backends.cuda.matmul.allow_tf32 = tf32
    a @ b
for kind in (torch.float16, torch.bfloat16, torch.float64):
    a.to(kind) @ b.to(kind)
whole = torch.randint(-5, 5, (1024, 1024), device='cuda', dtype=torch.int8)
torch._int_mm(whole, whole.t().contiguous().t())
eight, one = a.to(torch.float8_e4m3fn), torch.ones((), device='cuda')
torch._scaled_mm(eight, eight.t().contiguous().t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
images, filters = torch.randn(8, 64, 56, 56, device='cuda'), torch.randn(64, 64, 3, 3, device='cuda')
functional.conv2d(images, filters, padding=1)
images, filters = (x.half().to(memory_format=torch.channels_last) for x in (images, filters))
functional.conv2d(images, filters, padding=1)
query = torch.randn(2, 8, 512, 64, device='cuda', dtype=torch.bfloat16)
functional.scaled_dot_product_attention(query, query, query, is_causal=True)
with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.EFFICIENT_ATTENTION):
    functional.scaled_dot_product_attention(*[query.float()] * 3)
functional.softmax(a, -1), functional.layer_norm(a, (1024,)), functional.gelu(a), a.sum(), torch.cumsum(a, 0), torch.sort(a[0])
torch.cuda.synchronize()
