"""Generation with a cache of fixed size, which transformers compiles and replays."""
import torch
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
config = LlamaConfig(hidden_size=512, intermediate_size=1408, num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=4, vocab_size=8000,
                     bos_token_id=1, eos_token_id=None, pad_token_id=0)
model = LlamaForCausalLM(config).bfloat16().cuda().eval()
model.generation_config.cache_implementation = 'static'
for _ in range(6):
    model.generate(torch.randint(1, 8000, (1, 96), device='cuda'), max_new_tokens=32, min_new_tokens=32, do_sample=False)
torch.cuda.synchronize()
print('tokens', 6 * 32)
