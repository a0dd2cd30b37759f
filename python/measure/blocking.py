"""What launches that block cost a step: blocking.py OUT [ROUNDS]

Forward and backward of transformers' models whose kernels take longer than their launches, bf16, sdpa, random weights, no
optimizer, in processes with CUDA_LAUNCH_BLOCKING 0 and 1 in turn. `wall_ms` has the median of eight passes of each round.
"""
from __future__ import annotations

import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

WARM, PASSES = 3, 8
CASES = (
    ({"model_type": "gpt2", "n_embd": 1024, "n_layer": 24, "n_head": 16}, 8, 1024),
    ({"model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32,
      "num_key_value_heads": 8, "vocab_size": 128256}, 4, 2048),
    ({"model_type": "qwen3", "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28, "num_attention_heads": 16,
      "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936, "tie_word_embeddings": True}, 8, 1024),
    ({"model_type": "gpt_neox", "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 24, "num_attention_heads": 16,
      "vocab_size": 50304}, 4, 2048),
    ({"model_type": "opt", "hidden_size": 2048, "ffn_dim": 8192, "num_hidden_layers": 24, "num_attention_heads": 32,
      "vocab_size": 50272, "word_embed_proj_dim": 2048}, 4, 2048),
)


def passes() -> None:
    """One process: a line for every case, its median in ms."""
    import torch
    import transformers

    for config, batch, seq in CASES:
        named = dict(config)
        made = transformers.AutoConfig.for_model(named.pop("model_type"), **named)
        made.use_cache = False
        with torch.device("cuda"):
            model = transformers.AutoModelForCausalLM.from_config(made, attn_implementation="sdpa", dtype=torch.bfloat16)
        tokens = torch.randint(5, 1000, (batch, seq), device="cuda")
        took = []
        for _ in range(WARM + PASSES):
            torch.cuda.synchronize()
            start = time.perf_counter()
            model(input_ids=tokens, labels=tokens).loss.backward()
            torch.cuda.synchronize()
            took.append(1e3 * (time.perf_counter() - start))
            model.zero_grad(set_to_none=True)
        print(round(statistics.median(took[WARM:]), 3), flush=True)
        del model
        torch.cuda.empty_cache()


def main() -> None:
    if len(sys.argv) == 1:
        passes()
        return
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    rows = [{"model": config, "batch": batch, "seq": seq, "wall_ms": [], "blocking_wall_ms": []} for config, batch, seq in CASES]
    for _ in range(rounds):
        for key, word in (("wall_ms", "0"), ("blocking_wall_ms", "1")):
            done = subprocess.run([sys.executable, __file__], env={**os.environ, "CUDA_LAUNCH_BLOCKING": word}, text=True,
                                  stdout=subprocess.PIPE, check=True)
            for row, line in zip(rows, done.stdout.splitlines(), strict=True):
                row[key].append(float(line))
    pathlib.Path(sys.argv[1]).write_text("".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    main()
