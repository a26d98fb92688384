"""Three threads that generate text, each on a stream of its own, as servers without batching do. Where the device does not compute, it does not end."""
import threading

import torch
from transformers import GPT2Config, GPT2LMHeadModel

REQUESTS, TOKENS, THREADS = 6, 32, 3
torch.manual_seed(0)
config = GPT2Config(n_layer=6, n_head=8, n_embd=512, vocab_size=8000, bos_token_id=0, eos_token_id=None, pad_token_id=0)
model = GPT2LMHeadModel(config).half().cuda().eval()


def serve(number):
    random = torch.Generator().manual_seed(number)
    with torch.cuda.stream(torch.cuda.Stream()):
        for _ in range(REQUESTS):
            prompt = torch.randint(1, 8000, (2, 32 + 8 * number), generator=random).cuda()
            model.generate(prompt, max_new_tokens=TOKENS, min_new_tokens=TOKENS, do_sample=False)


threads = [threading.Thread(target=serve, args=(number,), name=f'serve-{number}') for number in range(THREADS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
torch.cuda.synchronize()
print('tokens', REQUESTS * TOKENS * THREADS)
