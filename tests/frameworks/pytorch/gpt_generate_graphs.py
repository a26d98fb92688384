"""Decodes with a compiled model over a static cache: torch.compile's reduce-overhead mode records CUDA graphs and replays them."""
import torch
from transformers import GPT2Config, GPT2LMHeadModel, StaticCache

torch.manual_seed(0)
config = GPT2Config(n_layer=1, n_head=2, n_embd=64, n_positions=64, vocab_size=256, bos_token_id=0, eos_token_id=None, pad_token_id=0)
model = GPT2LMHeadModel(config).cuda().eval()
tokens = torch.randint(1, config.vocab_size, (2, 8), device='cuda')
cache = StaticCache(config=config, max_cache_len=32)


def decode(token, position, cache):
    logits = model(input_ids=token, cache_position=position, past_key_values=cache, use_cache=True).logits
    return logits[:, -1].argmax(dim=-1, keepdim=True)


with torch.no_grad():
    position = torch.arange(tokens.shape[1], device='cuda')
    token = decode(tokens, position, cache).clone()
    step = torch.compile(decode, mode='reduce-overhead', fullgraph=True)
    position = position[-1:] + 1
    for _ in range(8):
        torch.compiler.cudagraph_mark_step_begin()
        token = step(token, position, cache).clone()
        position = position + 1
torch.cuda.synchronize()
print('decoded', tuple(token.shape))
