"""torch.compile with max-autotune: products are timed against Triton's, and CUDA graphs are recorded."""
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(128, 256), torch.nn.GELU()).cuda().half().eval()
compiled = torch.compile(model, mode='max-autotune')
with torch.inference_mode():
    for _ in range(4):
        torch.compiler.cudagraph_mark_step_begin()
        out = compiled(torch.randn(64, 128, device='cuda', dtype=torch.float16))
torch.cuda.synchronize()
print(tuple(out.shape))
