"""Training from a DataLoader whose workers are made by fork, forkserver and spawn; batches are pinned and copied asynchronously."""
import io

import torch
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        x = torch.full((128,), float(index))
        return x, (x * x).sum()


def train(method):
    loader = DataLoader(Squares(), batch_size=8, num_workers=2, pin_memory=True, multiprocessing_context=method)
    weight = torch.zeros(128, device='cuda', requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=1e-4, momentum=0.9)
    for x, y in loader:
        x, y = x.to('cuda', non_blocking=True), y.to('cuda', non_blocking=True)
        loss = ((x * weight).sum(dim=1) - y).square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    torch.save({'weight': weight, 'optimizer': optimizer.state_dict()}, io.BytesIO())
    torch.cuda.synchronize()
    print(method, 'trained on', len(loader), 'batches')


if __name__ == '__main__':
    for method in ('fork', 'forkserver', 'spawn'):
        train(method)
