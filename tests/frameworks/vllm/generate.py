"""A vLLM engine that answers six requests at a time, three times: a small Llama of random weights, made here. Each time takes as many batches as a request has
tokens; where the engine has a process of its own, as many more as requests arrive behind its first batch."""
import json
import os
import tempfile

MODEL = {'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'hidden_size': 256, 'intermediate_size': 512, 'num_hidden_layers': 4,
         'num_attention_heads': 4, 'num_key_value_heads': 4, 'head_dim': 64, 'vocab_size': 1000, 'max_position_embeddings': 512, 'rms_norm_eps': 1e-6,
         'hidden_act': 'silu', 'torch_dtype': 'bfloat16', 'bos_token_id': 1, 'eos_token_id': 2, 'tie_word_embeddings': False}


def main():
    from vllm import LLM, SamplingParams
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, 'config.json'), 'w', encoding='utf-8') as file:
            json.dump(MODEL, file)
        engine = LLM(model=folder, load_format='dummy', skip_tokenizer_init=True, enforce_eager=True, max_model_len=256, max_num_seqs=8,
                     gpu_memory_utilization=0.3, attention_backend='TRITON_ATTN')
        prompts = [{'prompt_token_ids': list(range(3, 3 + 16 * (i + 1)))} for i in range(6)]
        for tokens in (20, 25, 30):
            made = engine.generate(prompts, SamplingParams(max_tokens=tokens, ignore_eos=True, detokenize=False), use_tqdm=False)
            print([len(one.outputs[0].token_ids) for one in made], flush=True)


if __name__ == '__main__':
    main()
