"""Matrix products, alone and batched, and convolutions: what the tensor cores do."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from ..operands import DTYPES, Operands, set_tf32
from ..timing import Launch, Make
from .case import Case

aten = torch.ops.aten


def build_gemm(case: Case, operands: Operands) -> Make:
    dtype, layout, m, n, k = DTYPES[case["dtype"]], case["layout"], case["m"], case["n"], case["k"]
    set_tf32(case["dtype"])

    def make() -> Launch:
        a = operands.take(dtype, k, m).t() if layout == "tn" else operands.take(dtype, m, k)
        b = operands.take(dtype, n, k).t() if layout == "nt" else operands.take(dtype, k, n)
        if case["dtype"] != "fp8":
            return lambda: torch.mm(a, b)
        scale = torch.ones((), device=operands.device)
        return lambda: torch._scaled_mm(
            a, b, scale_a=scale, scale_b=scale, out_dtype=torch.bfloat16, use_fast_accum=False
        )

    return make


def build_bmm(case: Case, operands: Operands) -> Make:
    dtype, b, m, n, k = DTYPES[case["dtype"]], case["b"], case["m"], case["n"], case["k"]
    set_tf32(case["dtype"])

    def make() -> Launch:
        x = operands.take(dtype, b, m, k)
        y = operands.take(dtype, b, n, k).transpose(1, 2) if case["layout"] == "nt" else operands.take(dtype, b, k, n)
        return lambda: torch.bmm(x, y)

    return make


def conv_side(h: int, r: int, stride: int, pad: int) -> int:
    return (h + 2 * pad - r) // stride + 1


def image(operands: Operands, dtype: torch.dtype, layout: str, n: int, c: int, h: int, w: int) -> torch.Tensor:
    """A tensor indexed [n,c,h,w], stored in either order."""
    return (
        operands.take(dtype, n, h, w, c).permute(0, 3, 1, 2) if layout == "nhwc" else operands.take(dtype, n, c, h, w)
    )


def build_conv(case: Case, operands: Operands) -> Make:
    dtype, layout, stride, pad = DTYPES[case["dtype"]], case["layout"], case["stride"], case["pad"]
    n, c, h, w, k, r, s = (case[name] for name in ("n", "c", "h", "w", "k", "r", "s"))
    set_tf32(case["dtype"])

    def make() -> Launch:
        x, filters = image(operands, dtype, layout, n, c, h, w), image(operands, dtype, layout, k, c, r, s)
        if case["pass"] == "fwd":
            return lambda: F.conv2d(x, filters, stride=stride, padding=pad)
        grad = image(operands, dtype, layout, n, k, conv_side(h, r, stride, pad), conv_side(w, s, stride, pad))
        return lambda: aten.convolution_backward(
            grad, x, filters, None, [stride] * 2, [pad] * 2, [1, 1], False, [0, 0], 1, [True, True, False]
        )

    return make
