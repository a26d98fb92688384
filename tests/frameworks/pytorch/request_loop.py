"""A server's loop: requests of different lengths come over a queue, are batched, padded and answered, by a thread of its own stream."""
import queue
import threading

import torch

torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(128, 4, 256, batch_first=True).cuda().eval().half()
embed = torch.nn.Embedding(512, 128).cuda().half()
head = torch.nn.Linear(128, 512).cuda().half()
requests, answers = queue.Queue(), queue.Queue()


@torch.inference_mode()
def serve():
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        while True:
            batch = requests.get()
            if batch is None:
                return
            longest = max(len(tokens) for _, tokens in batch)
            padded = torch.zeros(len(batch), longest, dtype=torch.long).pin_memory()
            mask = torch.ones(len(batch), longest, dtype=torch.bool)
            for row, (_, tokens) in enumerate(batch):
                padded[row, :len(tokens)] = torch.tensor(tokens)
                mask[row, :len(tokens)] = False
            hidden = layer(embed(padded.to('cuda', non_blocking=True)), src_key_padding_mask=mask.to('cuda'))
            best = head(hidden[:, -1]).float().softmax(dim=-1).argmax(dim=-1).to('cpu', non_blocking=True)
            stream.synchronize()
            for (number, _), _ in zip(batch, best.tolist()):
                answers.put(number)


server = threading.Thread(target=serve)
server.start()
for first in range(0, 24, 4):
    requests.put([(number, list(range(1, 4 + 5 * (number % 7)))) for number in range(first, first + 4)])
requests.put(None)
server.join()
torch.cuda.synchronize()
print('answered', sorted(answers.get() for _ in range(answers.qsize())))
