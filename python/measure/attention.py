"""Attention as torch.nn.functional.scaled_dot_product_attention runs it, on the backend that PyTorch picks."""

from __future__ import annotations

import random

from family import Case, Family, choice, pick

from foretell.calibrate.kernels.attention import build_attention

LENGTHS = [128, 256, 512, 1024, 1536, 2048, 3000, 4096, 8192, 16384]
HEADS = [8, 12, 16, 20, 24, 32, 40, 64]
MAX_TENSOR, MAX_SCORES = 6e8, 7e10  # elements of Q or of K with every head; of the score matrix, which is never stored


def draw_attention(rng: random.Random) -> Case | None:
    """A fifth decodes one token against a cache, the rest is square; head groups of 2, 4 and 8 where they divide."""
    dtype = pick(rng, {"bf16": 3.0, "fp16": 1.0})
    direction, q_len, causal = pick(rng, {"decode": 0.215, "fwd": 0.375, "fwd_bwd": 0.41}), 1, 0
    kv_len, batch, heads = choice(rng, LENGTHS), choice(rng, [1, 2, 4, 8, 16, 32, 64]), choice(rng, HEADS)
    if direction != "decode":
        q_len, causal = kv_len, pick(rng, {1: 3.0, 0: 1.0})
    group = pick(rng, {1: 2.0, 2: 1.0, 4: 1.0, 8: 1.0})
    kv_heads = heads // group if heads % group == 0 else heads
    head_dim = pick(rng, {128: 0.45, 64: 0.27, 96: 0.15, 80: 0.13})
    if batch * heads * kv_len * head_dim > MAX_TENSOR or batch * heads * q_len * kv_len > MAX_SCORES:
        return None
    return {
        "dtype": dtype,
        "pass": "fwd" if direction == "decode" else direction,
        "batch": batch,
        "heads": heads,
        "kv_heads": kv_heads,
        "q_len": q_len,
        "kv_len": kv_len,
        "head_dim": head_dim,
        "causal": causal,
    }


ATTENTION = Family(
    "attention",
    ("dtype", "pass", "batch", "heads", "kv_heads", "q_len", "kv_len", "head_dim", "causal"),
    draw_attention,
    build_attention,
)
