"""A server's loop: clients of a thread of their own send requests of different lengths, which are batched, padded and answered on a stream."""
import queue
import threading

import torch

torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(128, 4, 256, batch_first=True).cuda().eval().half()
embed = torch.nn.Embedding(512, 128).cuda().half()
head = torch.nn.Linear(128, 512).cuda().half()
requests, answered = queue.Queue(), []


def clients():
    for first in range(0, 24, 4):
        requests.put([(number, list(range(1, 4 + 5 * (number % 7)))) for number in range(first, first + 4)])
    requests.put(None)


@torch.inference_mode()
def answer(batch, stream):
    longest = max(len(tokens) for _, tokens in batch)
    padded = torch.zeros(len(batch), longest, dtype=torch.long).pin_memory()
    mask = torch.ones(len(batch), longest, dtype=torch.bool)
    for row, (_, tokens) in enumerate(batch):
        padded[row, :len(tokens)] = torch.tensor(tokens)
        mask[row, :len(tokens)] = False
    hidden = layer(embed(padded.to('cuda', non_blocking=True)), src_key_padding_mask=mask.to('cuda'))
    best = head(hidden[:, -1]).float().softmax(dim=-1).argmax(dim=-1).to('cpu', non_blocking=True)
    stream.synchronize()
    answered.extend(number for (number, _), _ in zip(batch, best.tolist()))


client = threading.Thread(target=clients)
client.start()
stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    while (batch := requests.get()) is not None:
        answer(batch, stream)
client.join()
torch.cuda.synchronize()
print('answered', sorted(answered))
