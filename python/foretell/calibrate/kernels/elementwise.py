"""Element by element: `inputs` tensors of numel elements in, one out. `cast_x` names the dtype of the output."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F

from ..operands import DTYPES, Operands
from ..timing import Launch, Make
from .case import Case

aten = torch.ops.aten
Tensor = torch.Tensor

UNARY: dict[str, Callable[[Tensor], Tensor]] = {
    "cast_bf16": lambda x: x.to(torch.bfloat16),
    "cast_fp32": lambda x: x.to(torch.float32),
    "copy": torch.clone,
    "cos": torch.cos,
    "dropout": lambda x: F.dropout(x, 0.1),
    "exp": torch.exp,
    "gelu": F.gelu,
    "neg": torch.neg,
    "pow": lambda x: x.pow(2),
    "relu": torch.relu,
    "rsqrt": torch.rsqrt,
    "scalar_mul": lambda x: x * 1.5,
    "silu": F.silu,
    "tanh": torch.tanh,
}
BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "add": torch.add,
    "div": torch.div,
    "gelu_backward": aten.gelu_backward,
    "mul": torch.mul,
    "relu_backward": lambda grad, x: aten.threshold_backward(grad, x, 0),
    "silu_backward": aten.silu_backward,
    "tanh_backward": aten.tanh_backward,
}


def build_elementwise(case: Case, operands: Operands) -> Make:
    dtype, op, numel = DTYPES[case["dtype"]], case["op"], case["numel"]

    def make() -> Launch:
        x = operands.take(dtype, numel)
        if op in UNARY:
            return lambda: UNARY[op](x)
        y = operands.take(dtype, numel)
        return lambda: BINARY[op](x, y)

    return make
