"""Sentences of any length, packed, their loss taken where a mask says so: shapes that the device computes."""
import random

import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

torch.manual_seed(0)
random.seed(0)
embed = torch.nn.Embedding(5000, 128).cuda()
lstm = torch.nn.LSTM(128, 256, 2, batch_first=True, bidirectional=True).cuda()
head = torch.nn.Linear(512, 9).cuda()
optimizer = torch.optim.Adam([*embed.parameters(), *lstm.parameters(), *head.parameters()], 1e-3)
for _ in range(60):
    lengths = sorted((random.randint(5, 60) for _ in range(32)), reverse=True)
    words = torch.randint(0, 5000, (32, lengths[0])).cuda()
    tags = torch.randint(0, 9, (32, lengths[0])).cuda()
    out, _ = pad_packed_sequence(lstm(pack_padded_sequence(embed(words), lengths, batch_first=True))[0], batch_first=True)
    mask = torch.arange(lengths[0], device='cuda')[None] < torch.tensor(lengths, device='cuda')[:, None]
    loss = torch.nn.functional.cross_entropy(head(out)[mask], tags[mask])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print('steps 60')
