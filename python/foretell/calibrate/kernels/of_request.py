"""From a kernel request (docs/interface.md) to something that can be launched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..errors import Skip
from ..operands import Operands
from ..timing import Make
from . import attention, dense, elementwise, moe, optimizers, quantize, rowwise
from .case import Case

Request = dict[str, Any]
REST_LIGHT, REST_HEAVY = 0.3, 1.0  # rest over work: matrix units at full speed heat, bytes on their way hardly do
QUANTIZE = {
    "quantize_cast": "cast",
    "quantize_static": "tensor_static",
    "quantize": "tensor_dynamic",
    "quantize_rows": "row_dynamic",
}


@dataclass(frozen=True)
class Bound:
    """How a request is timed."""

    make: Make
    rotate: bool = True
    rest: float = REST_LIGHT


def bind(request: Request, operands: Operands) -> Bound:
    """Raises Skip for an operator that PyTorch has no one call for."""
    op = request["op"]
    builder = _HEAVY.get(op)
    if builder:
        return Bound(builder(_case(request), operands), rest=REST_HEAVY)
    if op == "elementwise":
        if request["name"] not in elementwise.UNARY and request["name"] not in elementwise.BINARY:
            raise Skip(f"no elementwise operator {request['name']}")
        return Bound(elementwise.build_elementwise({**request, "op": request["name"]}, operands))
    if op == "optimizer":
        if request["name"] != optimizers.CLIP and request["name"] not in optimizers.OPTIMIZERS:
            raise Skip(f"no optimizer {request['name']}")
        return Bound(optimizers.build_optimizer({**request, "op": request["name"]}, operands), rotate=False)
    if op in QUANTIZE:
        return Bound(quantize.build_quantize({**request, "op": QUANTIZE[op], "dtype": "bf16"}, operands))
    name = op + "_backward" if request.get("pass") == "bwd" else op
    if name not in rowwise.ROWWISE_OPS:
        raise Skip(f"no operator {name}")
    return Bound(rowwise.build_rowwise({**request, "op": name}, operands))


def _case(request: Request) -> Case:
    return {"layout": "nt", "pass": "fwd", "causal": False, "stride": 1, "pad": 0, **request}


_HEAVY: dict[str, Callable[[Case, Operands], Make]] = {
    "gemm": dense.build_gemm,
    "bmm": dense.build_bmm,
    "conv2d": dense.build_conv,
    "attention": attention.build_attention,
    "moe": moe.build_part("ffn"),
}
