"""torch.compile in its modes over a small block: the default, reduce-overhead (CUDA graphs), and dynamic shapes."""
import io

import torch

torch.manual_seed(0)


def block(x, scale, shift):
    x = torch.nn.functional.layer_norm(x, x.shape[-1:])
    return torch.nn.functional.gelu(x * scale + shift).softmax(dim=-1)


scale = torch.ones(256, device='cuda', requires_grad=True)
shift = torch.zeros(256, device='cuda', requires_grad=True)
for name, options, sizes in (('default', {}, (64, 64)), ('reduce-overhead', {'mode': 'reduce-overhead'}, (64,) * 5), ('dynamic', {'dynamic': True}, (16, 48, 80))):
    torch.compiler.reset()
    compiled = torch.compile(block, **options)
    for size in sizes:
        if name == 'reduce-overhead':
            torch.compiler.cudagraph_mark_step_begin()
        compiled(torch.randn(size, 256, device='cuda'), scale, shift).sum().backward()
        scale.grad = shift.grad = None
    torch.save([scale, shift], io.BytesIO())
    torch.cuda.synchronize()
    print(name, 'done')
