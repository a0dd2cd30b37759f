"""The feed-forward part of a mixture of experts: grouped matrix products over tokens already sorted by expert.

Routing, sorting and the weighted sum back are not in it; routing is balanced, so that groups differ by at most one
token.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F

from ..operands import DTYPES, Operands
from ..timing import Launch, Make
from .case import Case


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
        if part == "down":
            y, w_only = operands.take(dtype, rows, inter), operands.take(dtype, experts, hidden, inter).transpose(1, 2)
            return lambda: torch._grouped_mm(y, w_only, offs=ends)
        x = operands.take(dtype, rows, hidden)
        w_up = operands.take(dtype, experts, 2 * inter, hidden).transpose(1, 2)
        if part == "up":
            return lambda: torch._grouped_mm(x, w_up, offs=ends)
        operands.take(dtype, rows, inter)  # room that the whole layer has beside its weights
        w_down = operands.take(dtype, experts, hidden, inter).transpose(1, 2)
        return lambda: torch._grouped_mm(activation(torch._grouped_mm(x, w_up, offs=ends)), w_down, offs=ends)

    return make


def build_part(part: str) -> Callable[[Case, Operands], Make]:
    return lambda case, operands: build(case, operands, part)
