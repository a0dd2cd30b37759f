"""The feed-forward part of a mixture of experts: grouped matrix products over tokens already sorted by expert.

Routing, sorting and the weighted sum back are not in it; routing is balanced, so that groups differ by at most one
token.
"""

from __future__ import annotations

import random

from family import Case, Family, choice, pick

from foretell.calibrate.kernels.moe import build_part

WEIGHTS_MAX_BYTES = 6e9
MAX_FLOP = 4e12


def draw_moe(rng: random.Random) -> Case | None:
    """Widths and expert counts as Mixtral, Qwen-MoE, OLMoE, DeepSeek and their expert-parallel shards have them."""
    tokens, topk = 1 << rng.randrange(15), pick(rng, {1: 1.0, 2: 2.0, 4: 1.0, 6: 1.0, 8: 2.0})
    experts = choice(rng, [4, 8, 16, 32, 64, 128, 256])
    hidden = choice(rng, [1024, 2048, 2560, 3072, 4096, 5120, 6144, 7168])
    inter = choice(rng, [512, 768, 1024, 1408, 1536, 2048, 3072, 4096, 8192, 14336])
    if (
        topk > experts
        or 6.0 * experts * hidden * inter > WEIGHTS_MAX_BYTES
        or 6.0 * tokens * topk * hidden * inter > MAX_FLOP
    ):
        return None
    return {"dtype": "bf16", "tokens": tokens, "topk": topk, "experts": experts, "hidden": hidden, "inter": inter}


MOE = Family(
    "moe",
    ("dtype", "tokens", "topk", "experts", "hidden", "inter"),
    draw_moe,
    build_part("ffn"),
    parts={f"{part}_ms": build_part(part) for part in ("up", "activation", "down")},
)
