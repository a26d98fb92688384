"""Trains a small GPT of transformers, from its configuration, in bf16 with autocast."""
import io

import torch
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
config = GPT2Config(n_layer=2, n_head=4, n_embd=256, n_positions=128, vocab_size=1024, resid_pdrop=0.1, attn_pdrop=0.1)
model = GPT2LMHeadModel(config).cuda().train()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
tokens = torch.randint(0, config.vocab_size, (4, 128), device='cuda')

for step in range(3):
    with torch.autocast('cuda', dtype=torch.bfloat16):
        loss = model(input_ids=tokens, labels=tokens).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print('step', step, 'done')

torch.save(model.state_dict(), io.BytesIO())
torch.cuda.synchronize()
print(sum(p.numel() for p in model.parameters()), 'parameters,', torch.cuda.max_memory_allocated() // 2**20, 'MiB')
