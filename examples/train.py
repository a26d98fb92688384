"""Trains a small classifier, as anybody writes it. Nothing in it knows of gputrace."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Points(Dataset):
    def __len__(self):
        return 8192

    def __getitem__(self, i):
        features = torch.tensor([float((i * k) % 97) for k in range(1, 129)])  # slow: one number after the other
        return features / 97, i % 10


model = nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
loss_of = nn.CrossEntropyLoss()
for epoch in range(2):
    total = 0.0
    for features, labels in DataLoader(Points(), batch_size=64, shuffle=True):
        optimizer.zero_grad()
        loss = loss_of(model(features.cuda()), labels.cuda())
        loss.backward()
        optimizer.step()
        total += loss.item()  # waits for the device, in each step
    print(f'epoch {epoch}: loss {total:.3f}')
