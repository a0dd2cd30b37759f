"""The feed-forward part of a mixture of experts: grouped matrix products over tokens already sorted by expert.

Routing, sorting and the weighted sum back are not in it; routing is balanced, so that groups differ by at most one
token.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import torch
import torch.nn.functional as F

from family import Case, Family, choice, pick
from operands import DTYPES, Operands
from timing import Launch, Make

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


def group_ends(rows: int, experts: int, device: torch.device) -> torch.Tensor:
    """Where each expert's rows end. With fewer rows than experts, those in use are spread evenly."""
    return torch.tensor([(e + 1) * rows // experts for e in range(experts)], dtype=torch.int32, device=device)


def build(case: Case, operands: Operands, part: str) -> Make:
    dtype, experts, hidden, inter = DTYPES[case["dtype"]], case["experts"], case["hidden"], case["inter"]
    rows = case["tokens"] * case["topk"]
    ends = group_ends(rows, experts, operands.device)

    def activation(gate_up: torch.Tensor) -> torch.Tensor:
        gate, up = gate_up.chunk(2, dim=1)
        return F.silu(gate) * up

    def make() -> Launch:
        if part == "activation":
            gate_up = operands.take(dtype, rows, 2 * inter)
            return lambda: activation(gate_up)
        if part in ("up", "ffn"):
            x, w_up = (
                operands.take(dtype, rows, hidden),
                operands.take(dtype, experts, 2 * inter, hidden).transpose(1, 2),
            )
        if part in ("down", "ffn"):
            y, w_down = operands.take(dtype, rows, inter), operands.take(dtype, experts, hidden, inter).transpose(1, 2)
        if part == "up":
            return lambda: torch._grouped_mm(x, w_up, offs=ends)
        if part == "down":
            return lambda: torch._grouped_mm(y, w_down, offs=ends)
        return lambda: torch._grouped_mm(activation(torch._grouped_mm(x, w_up, offs=ends)), w_down, offs=ends)

    return make


def build_part(part: str) -> Callable[[Case, Operands], Make]:
    return lambda case, operands: build(case, operands, part)


MOE = Family(
    "moe",
    ("dtype", "tokens", "topk", "experts", "hidden", "inter"),
    draw_moe,
    build_part("ffn"),
    parts={f"{part}_ms": build_part(part) for part in ("up", "activation", "down")},
)
