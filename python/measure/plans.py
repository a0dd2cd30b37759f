"""What cuDNN's attention needs for the plan of a length that it has not seen, and steps that wait for it: plans.py OUT [SECONDS]

Four rounds of: one query against caches whose length is new with every call, by heads, their size and the batch, each called twice
(the second finds the plan); then GPT-2 and Llama at 1 and 8 billion parameters with random weights in bf16, a prompt of 128 and of
500 tokens, and tokens one by one against a growing cache, by PyTorch's choice of attention and by FlashAttention. Wall time in ms,
the host's clock around a call and the wait for it. After the first round decoding finds its plans.
"""
from __future__ import annotations

import contextlib
import json
import pathlib
import statistics
import sys
import time
import typing

import torch
import torch.nn.functional as F
import transformers
from torch.nn.attention import SDPBackend, sdpa_kernel

ROUNDS, FIRST_LENGTH, STEP = 4, 512, 13
SHAPES = ((12, 12, 64), (32, 8, 64), (32, 32, 64), (32, 32, 80), (16, 16, 96), (32, 8, 128), (32, 32, 128), (64, 8, 128), (8, 8, 256))
_ONE = {"vocab_size": 128256, "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "tie_word_embeddings": True}
_EIGHT = {"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32}
_HEADS = {"num_attention_heads": 32, "num_key_value_heads": 8}
MODELS: dict[str, transformers.PretrainedConfig] = {
    "gpt2": transformers.GPT2Config(),
    "llama_1b": transformers.LlamaConfig(**_ONE, **_HEADS),
    "llama_8b": transformers.LlamaConfig(**_EIGHT, **_HEADS),
}
STEPS = (("prefill", 1, 128), ("prefill", 1, 500), ("decode", 1, 400), ("decode", 16, 400), ("flash", 1, 400))


def clock(run: typing.Callable[[], typing.Any]) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    run()
    torch.cuda.synchronize()
    return round(1e3 * (time.perf_counter() - start), 3)


def attention(heads: int, groups: int, size: int, batch: int, length: int) -> dict[str, float]:
    first, again = [], []
    for more in range(5):
        q = torch.randn(batch, heads, 1, size, device="cuda", dtype=torch.bfloat16)
        k = torch.randn(batch, groups, length + more, size, device="cuda", dtype=torch.bfloat16)
        v = torch.randn_like(k)
        for taken in (first, again):
            taken.append(clock(lambda: F.scaled_dot_product_attention(q, k, v, enable_gqa=heads != groups)))
    return {"first_ms": statistics.median(first[1:]), "again_ms": statistics.median(again)}


def step(model: transformers.PreTrainedModel, mode: str, batch: int, tokens: int) -> list[float]:
    ids = torch.randint(0, 30000, (batch, tokens), device="cuda")
    if mode == "prefill":
        return [clock(lambda: model(ids, use_cache=True, logits_to_keep=1)) for _ in range(9)]
    cache = model(ids, use_cache=True, logits_to_keep=1).past_key_values
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION) if mode == "flash" else contextlib.nullcontext():
        return [clock(lambda: model(ids[:, :1], past_key_values=cache, use_cache=True)) for _ in range(9)]


@torch.no_grad()
def main() -> None:
    end = time.time() + (float(sys.argv[2]) if len(sys.argv) > 2 else 130)
    length = FIRST_LENGTH
    with pathlib.Path(sys.argv[1]).open("a") as out:
        for turn in range(ROUNDS):
            for heads, groups, size in SHAPES:
                for batch in (1, 8, 64):
                    length += STEP
                    row = {"round": turn, "heads": heads, "kv_heads": groups, "head_dim": size, "batch": batch, "length": length}
                    out.write(json.dumps(row | attention(heads, groups, size, batch, length)) + "\n")
            for name, config in MODELS.items():
                if time.time() > end:
                    return
                model = transformers.AutoModelForCausalLM.from_config(config).to("cuda", torch.bfloat16).eval()
                for mode, batch, tokens in STEPS:
                    taken = step(model, mode, batch, tokens)
                    row = {"round": turn, "model": name, "mode": mode, "batch": batch, "tokens": tokens}
                    out.write(json.dumps(row | {"ms": statistics.median(taken[2:])}) + "\n")
                    out.flush()
                del model
                torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
