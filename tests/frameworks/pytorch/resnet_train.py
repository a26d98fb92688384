"""Trains a ResNet of torchvision in fp16: channels last, autocast, GradScaler, SGD with momentum."""
import sys

import torch
import torchvision

torch.manual_seed(0)
torch.backends.cudnn.benchmark = '--benchmark' in sys.argv
model = torchvision.models.resnet18(num_classes=10).cuda().to(memory_format=torch.channels_last).train()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
scaler = torch.amp.GradScaler('cuda') if hasattr(torch.amp, 'GradScaler') else torch.cuda.amp.GradScaler()
images = torch.randn(4, 3, 64, 64, device='cuda').contiguous(memory_format=torch.channels_last)
labels = torch.randint(0, 10, (4,), device='cuda')

for step in range(2):
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast('cuda', dtype=torch.float16):
        loss = torch.nn.functional.cross_entropy(model(images), labels)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print('step', step, 'scale', scaler.get_scale())

model.eval()
with torch.no_grad():
    print('classes', tuple(model(images).shape))
torch.cuda.synchronize()
