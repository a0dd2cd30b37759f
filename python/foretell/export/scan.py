"""Recurrences that a library writes as a Python loop over the steps of a sequence.

A state-space layer without its own kernels runs some ten operators a step. Capturing them one by one takes minutes where a
sequence has hundreds of steps; they are all the same, so that one operator stands for the loop while a model is captured and
its steps are written down afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from . import operators
from .nodes import Lowering
from .registry import rule
from .values import Call, Value

__all__ = ["SCAN", "in_one"]

SCAN = "mamba_selective_scan"  # transformers' name, in mamba, falcon_mamba, jamba and zamba


def in_one(plain: Callable[..., Any]) -> Callable[..., Any]:
    """transformers' selective scan with its loop as one operator. The passes over the whole sequence before and after it are
    those of the library, in its order and its formats."""

    def run(
        hidden_states: Tensor,
        dt: Tensor,
        A: Tensor,  # noqa: N803 - its callers name them so
        B: Tensor,  # noqa: N803
        C: Tensor,  # noqa: N803
        D: Tensor | None = None,  # noqa: N803
        z: Tensor | None = None,
        delta_bias: Tensor | None = None,
        delta_softplus: bool = False,
        return_last_state: bool = False,
        **more: Any,
    ) -> Any:
        if more.get("use_mambapy") or hidden_states.shape[-1] == 1:
            given = {"D": D, "z": z, "delta_bias": delta_bias, "delta_softplus": delta_softplus}
            return plain(hidden_states, dt, A, B, C, return_last_state=return_last_state, **given, **more)
        if delta_bias is not None:
            dt = dt + delta_bias.to(dt.dtype).unsqueeze(-1)
        if delta_softplus:
            dt = nn.functional.softplus(dt)
        wide = dt.unsqueeze(-1)
        kept = torch.exp(A[None, :, None, :] * wide)
        spread = wide * B.transpose(1, 2).unsqueeze(1).float()  # the library holds it through the loop, too
        added = spread * hidden_states.unsqueeze(-1).float()
        y, last = operators.state_steps(kept, added, C.transpose(1, 2), hidden_states.dtype)
        if D is not None:
            y = y + hidden_states * D[None, :, None]
        if z is not None:
            y = y * nn.functional.silu(z)
        return (y, last) if return_last_state else y

    return run


@rule("state_steps")
def _steps(low: Lowering, call: Call) -> None:
    """Each step multiplies the state, adds to it, casts it and multiplies it with that step's row; results are stacked."""
    kept, added, row = (low.now(x) for x in call.args[:3])
    batch, width, steps, size = kept.shape
    narrow = call.args[3]
    state = low.value((batch, width, size), narrow)
    low.emit("fill", [], state, {"shape": list(state.shape), "dtype": low.word(narrow)})
    made: list[Value] = []

    def at(x: Value, axis: int) -> Value:
        out = low.value((*x.shape[:axis], *x.shape[axis + 1 :]), x.dtype, (*x.stride[:axis], *x.stride[axis + 1 :]))
        low.emit("slice", [x], out, {"shape": list(out.shape), "axis": axis})
        return out

    for _ in range(steps):
        weighed, summed = low.value(state.shape, torch.float32), low.value(state.shape, torch.float32)
        low.emit("mul", [at(kept, 2), state], weighed)
        low.emit("add", [weighed, at(added, 2)], summed)
        state = summed
        cast = low.value(state.shape, narrow)
        low.emit("cast", [state], cast, {"to": low.word(narrow)})
        picked = at(row, 1)
        column = low.value((*picked.shape, 1), picked.dtype, (*picked.stride, 1))
        low.emit("view", [picked], column, {"shape": list(column.shape), "strided": True})
        product, out = low.value((batch, width, 1), narrow), low.value((batch, width), narrow)
        low.emit("matmul", [cast, column], product)
        low.emit("view", [product], out, {"shape": list(out.shape), "strided": False})
        made.append(out)
    low.emit("cat", made, call.outs[0], {"shape": list(call.outs[0].shape)})
    low.alias(call.outs[1], state)
