"""Training steps of architectures that were read from their configs before anything of theirs was measured: families.py OUT [TYPE...]

A blind check of the readers in src/model: shapes are those that their makers publish, cut in depth where a whole one would not
fit or would only repeat itself, and nothing is fitted to the rows. bf16, sdpa, fused AdamW, eager, random weights, as in
catalogue.py, whose rows these are with a config in the place of a name.
"""
from __future__ import annotations

import json
import pathlib
import sys
import typing

import torch
import transformers

from catalogue import measure

# What is said here is all that differs from the library's own defaults, which the reader has to know too.
SHAPES: dict[str, dict[str, typing.Any]] = {
    "nemotron": {"hidden_size": 3072, "intermediate_size": 9216, "num_hidden_layers": 32, "num_attention_heads": 24,
                 "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 256000},
    "cohere": {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 8, "num_attention_heads": 32,
               "num_key_value_heads": 8, "vocab_size": 256000},
    "cohere2": {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 8, "num_attention_heads": 32,
                "num_key_value_heads": 8, "vocab_size": 256000},
    "granite": {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 40, "num_attention_heads": 32,
                "num_key_value_heads": 8, "vocab_size": 49155, "tie_word_embeddings": True},
    "olmo": {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 16,
             "vocab_size": 50304, "tie_word_embeddings": True},
    "smollm3": {"hidden_size": 2048, "intermediate_size": 11008, "num_hidden_layers": 36, "num_attention_heads": 16,
                "num_key_value_heads": 4, "vocab_size": 128256, "tie_word_embeddings": True},
    "exaone4": {"hidden_size": 2048, "intermediate_size": 4096, "num_hidden_layers": 30, "num_attention_heads": 32,
                "num_key_value_heads": 8, "vocab_size": 102400, "tie_word_embeddings": True},
    "ernie4_5": {"hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 18, "num_attention_heads": 16,
                 "num_key_value_heads": 2, "head_dim": 128, "vocab_size": 103424, "tie_word_embeddings": True},
    "helium": {"hidden_size": 2560, "intermediate_size": 7040, "num_hidden_layers": 24, "num_attention_heads": 20,
               "num_key_value_heads": 20, "head_dim": 128, "vocab_size": 48000},
    "hunyuan_v1_dense": {"hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 32, "num_attention_heads": 16,
                         "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 120818, "tie_word_embeddings": True},
    "apertus": {"hidden_size": 4096, "intermediate_size": 21504, "num_hidden_layers": 8, "num_attention_heads": 32,
                "num_key_value_heads": 8, "vocab_size": 131072},
    "glm4_moe": {"hidden_size": 4096, "intermediate_size": 10944, "moe_intermediate_size": 1408, "num_hidden_layers": 4,
                 "num_attention_heads": 96, "num_key_value_heads": 8, "head_dim": 128, "n_routed_experts": 128,
                 "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 1, "vocab_size": 151552},
    "granitemoe": {"hidden_size": 1536, "intermediate_size": 512, "num_hidden_layers": 32, "num_attention_heads": 24,
                   "num_key_value_heads": 8, "num_local_experts": 40, "num_experts_per_tok": 8, "vocab_size": 49155,
                   "tie_word_embeddings": True},
    "ernie4_5_moe": {"hidden_size": 2560, "intermediate_size": 12288, "moe_intermediate_size": 1536, "num_hidden_layers": 6,
                     "num_attention_heads": 20, "num_key_value_heads": 4, "moe_num_experts": 64, "moe_k": 6,
                     "moe_num_shared_experts": 2, "vocab_size": 103424},
    "hunyuan_v1_moe": {"hidden_size": 4096, "intermediate_size": 3072, "num_hidden_layers": 3, "num_attention_heads": 32,
                       "num_key_value_heads": 8, "head_dim": 128, "num_experts": 64, "moe_topk": 8, "vocab_size": 128167},
    "phimoe": {"hidden_size": 4096, "intermediate_size": 6400, "num_hidden_layers": 4, "num_attention_heads": 32,
               "num_key_value_heads": 8, "num_local_experts": 16, "num_experts_per_tok": 2, "vocab_size": 32064,
               "attention_bias": True, "lm_head_bias": True, "input_jitter_noise": 0.01},
    "llama4_text": {"hidden_size": 5120, "intermediate_size": 8192, "intermediate_size_mlp": 16384, "num_hidden_layers": 4,
                    "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128, "num_local_experts": 16,
                    "num_experts_per_tok": 1, "vocab_size": 202048},
    "deepseek_v3": {"vocab_size": 163840, "hidden_size": 2048, "intermediate_size": 11264, "num_hidden_layers": 9,
                    "num_attention_heads": 16, "num_key_value_heads": 16, "n_routed_experts": 64, "n_shared_experts": 2,
                    "num_experts_per_tok": 6, "moe_intermediate_size": 1408, "first_k_dense_replace": 1, "q_lora_rank": None,
                    "n_group": 1, "topk_group": 1},
    "glm": {"vocab_size": 151552, "hidden_size": 4096, "intermediate_size": 13696, "num_hidden_layers": 10,
            "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128},
}  # fmt: skip


def main() -> None:
    only = sys.argv[2:] or list(SHAPES)
    with pathlib.Path(sys.argv[1]).open("a") as out:
        for kind, shape in ((each, SHAPES[each]) for each in only):
            config = {"model_type": kind, **shape}
            try:
                row = measure(config, 4, 1024, "none")
            except (RuntimeError, ValueError, torch.OutOfMemoryError) as reason:
                print(f"{kind}: {reason}", file=sys.stderr)
                continue
            out.write(json.dumps({**row, "transformers": transformers.__version__}) + "\n")
            out.flush()


if __name__ == "__main__":
    main()
