"""Generates tokens with a small GPT of transformers: eager with a dynamic cache, then with a static cache."""
import torch
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
config = GPT2Config(n_layer=2, n_head=4, n_embd=128, n_positions=128, vocab_size=512, bos_token_id=0, eos_token_id=None, pad_token_id=0)
model = GPT2LMHeadModel(config).cuda().eval().to(torch.bfloat16)
prompt = torch.randint(1, config.vocab_size, (2, 16), device='cuda')
mask = torch.ones_like(prompt)

for cache in ('dynamic', 'static'):
    with torch.inference_mode():
        out = model.generate(input_ids=prompt, attention_mask=mask, max_new_tokens=12, do_sample=False, cache_implementation=cache, disable_compile=True)
    print(cache, 'cache:', out.shape[1] - prompt.shape[1], 'new tokens for each of', out.shape[0])
torch.cuda.synchronize()
