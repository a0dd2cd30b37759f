"""Optimizer steps and gradient clipping over `tensors` parameters of one size, `params` elements together.

State lives in place, so there is one copy of it: below about 4 M parameters it stays in L2.
"""

from __future__ import annotations

import torch

from ..operands import DTYPES, Operands
from ..timing import Launch, Make
from .case import Case

Params = list[torch.nn.Parameter]

OPTIMIZERS = {
    "adamw_foreach": lambda p: torch.optim.AdamW(p, lr=1e-4, foreach=True, capturable=True),
    "adamw_fused": lambda p: torch.optim.AdamW(p, lr=1e-4, fused=True, capturable=True),
    "sgd_foreach": lambda p: torch.optim.SGD(p, lr=1e-4, foreach=True),
    "sgd_fused": lambda p: torch.optim.SGD(p, lr=1e-4, fused=True),
    "sgd_momentum_foreach": lambda p: torch.optim.SGD(p, lr=1e-4, momentum=0.9, foreach=True),
    "sgd_momentum_fused": lambda p: torch.optim.SGD(p, lr=1e-4, momentum=0.9, fused=True),
}
CLIP = "clip_grad_norm"


def build_optimizer(case: Case, operands: Operands) -> Make:
    dtype, size = DTYPES[case["dtype"]], case["params"] // case["tensors"]

    def make() -> Launch:
        params: Params = []
        for _ in range(case["tensors"]):
            params.append(torch.nn.Parameter(operands.take(dtype, size).clone()))
            params[-1].grad = operands.take(dtype, size).clone()
        if case["op"] == CLIP:
            return lambda: torch.nn.utils.clip_grad_norm_(params, 1.0)
        optimizer = OPTIMIZERS[case["op"]](params)
        return optimizer.step

    return make
