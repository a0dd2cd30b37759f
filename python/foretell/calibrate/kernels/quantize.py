"""x[rows, cols] in bf16 to fp8 (e4m3), in eager PyTorch."""

from __future__ import annotations

import torch

from ..operands import DTYPES, Operands
from ..timing import Launch, Make
from .case import Case

aten = torch.ops.aten
Tensor = torch.Tensor

FP8 = torch.float8_e4m3fn
FP8_MAX = torch.finfo(FP8).max


def cast(x: Tensor, scale: Tensor) -> Tensor:
    return x.to(FP8)


def tensor_static(x: Tensor, scale: Tensor) -> Tensor:
    return (x * scale).to(FP8)


def tensor_dynamic(x: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    inverse = x.abs().amax().float().clamp(min=1e-12) / FP8_MAX
    return (x / inverse).clamp(-FP8_MAX, FP8_MAX).to(FP8), inverse


def row_dynamic(x: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    inverse = x.abs().amax(1, keepdim=True).float().clamp(min=1e-12) / FP8_MAX
    return (x / inverse).clamp(-FP8_MAX, FP8_MAX).to(FP8), inverse


QUANTIZE_OPS = {
    "cast": cast,
    "tensor_static": tensor_static,
    "tensor_dynamic": tensor_dynamic,
    "row_dynamic": row_dynamic,
}


def build_quantize(case: Case, operands: Operands) -> Make:
    op, dtype = QUANTIZE_OPS[case["op"]], DTYPES[case["dtype"]]

    def make() -> Launch:
        x, scale = operands.take(dtype, case["rows"], case["cols"]), torch.ones((), dtype=dtype, device=operands.device)
        return lambda: op(x, scale)

    return make
