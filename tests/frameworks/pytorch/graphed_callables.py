"""Layers captured once for both passes (make_graphed_callables), within an eager loop."""
import torch

torch.manual_seed(0)
layers = [layer for _ in range(8) for layer in (torch.nn.Linear(256, 256), torch.nn.LayerNorm(256), torch.nn.GELU())]
net = torch.cuda.make_graphed_callables(torch.nn.Sequential(*layers).cuda(), (torch.randn(64, 256, device='cuda'),))
optimizer = torch.optim.SGD(net.parameters(), 1e-2, momentum=0.9)
for step in range(40):
    loss = net(torch.randn(64, 256).cuda(non_blocking=True)).square().mean()
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        loss.item()
print('steps 40')
