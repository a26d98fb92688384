"""A character model: embedding, two layers of LSTM (cuDNN), a linear head; packed sequences of different lengths."""
import io

import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

torch.manual_seed(0)
embed, head = torch.nn.Embedding(64, 32).cuda(), torch.nn.Linear(128, 64).cuda()
lstm = torch.nn.LSTM(32, 128, num_layers=2, batch_first=True, dropout=0.1).cuda()
parameters = [*embed.parameters(), *lstm.parameters(), *head.parameters()]
optimizer = torch.optim.Adam(parameters, lr=1e-3)
text = torch.randint(0, 64, (8, 25), device='cuda')
lengths = torch.tensor([24, 24, 20, 18, 12, 10, 6, 3])

for step in range(3):
    packed = pack_padded_sequence(embed(text[:, :-1]), lengths, batch_first=True)
    hidden, _ = pad_packed_sequence(lstm(packed)[0], batch_first=True)
    loss = torch.nn.functional.cross_entropy(head(hidden).flatten(0, 1), text[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.save([embed.state_dict(), lstm.state_dict(), head.state_dict()], io.BytesIO())
torch.cuda.synchronize()
print('trained', sum(p.numel() for p in parameters), 'parameters')
