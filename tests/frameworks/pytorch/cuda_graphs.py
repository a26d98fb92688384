"""CUDA graphs by hand: a training step of element-wise work captured once and replayed, and make_graphed_callables."""
import io

import torch

torch.manual_seed(0)
x, target = torch.randn(256, 64, device='cuda'), torch.zeros(256, device='cuda')
weight = torch.randn(64, device='cuda', requires_grad=True)
optimizer = torch.optim.Adam([weight], lr=1e-3, capturable=True)


def step():
    optimizer.zero_grad(set_to_none=False)
    loss = ((x * weight).sum(dim=1) - target).square().mean()
    loss.backward()
    optimizer.step()


side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        step()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    step()
for _ in range(10):
    x.normal_()
    graph.replay()
torch.cuda.synchronize()

smooth = torch.cuda.make_graphed_callables(torch.nn.Softplus(), (torch.randn(32, 32, device='cuda', requires_grad=True),))
for _ in range(3):
    smooth(torch.randn(32, 32, device='cuda', requires_grad=True)).sum().backward()
torch.save({'weight': weight, 'optimizer': optimizer.state_dict()}, io.BytesIO())
torch.cuda.synchronize()
print('replayed')
