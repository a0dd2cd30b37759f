"""Views, copies, casts: most cost nothing, some hide a copy."""

from __future__ import annotations

from typing import Any

import torch

from .nodes import Lowering
from .registry import rule
from .values import Call, Value

__all__: list[str] = []


def _meta(x: Value) -> torch.Tensor:
    return torch.empty_strided(x.shape, x.stride, dtype=x.dtype, device="meta")


def _restride(low: Lowering, call: Call) -> None:
    """Runs the view on the strides that its operand really has."""
    changed = {x for x in call.tensors() if low.now(x) in low.restrided}
    if not changed:
        return

    def swap(item: Any) -> Any:
        if isinstance(item, Value):
            real = low.now(item)
            return _meta(real) if real.shape == item.shape else _meta(item)
        if isinstance(item, list):
            return [swap(x) for x in item]
        return item

    try:
        result = call.target(*[swap(a) for a in call.args], **{k: swap(v) for k, v in call.kwargs.items()})
    except RuntimeError:
        return
    for out, real in zip(call.outs, result if isinstance(result, (list, tuple)) else [result], strict=False):
        if isinstance(real, torch.Tensor) and tuple(real.shape) == out.shape and tuple(real.stride()) != out.stride:
            out.stride = tuple(real.stride())
            low.restrided.add(out)


def shares_memory(x: Value, shape: tuple[int, ...]) -> bool:
    """Whether x can be seen as `shape` without a copy."""
    t = _meta(x)
    try:
        t.view(shape)
    except RuntimeError:
        return False
    return True


def batched(low: Lowering, x: Value) -> Value:
    """x with an axis of one before the others: images that came alone."""
    out = low.value((1, *x.shape), x.dtype, (x.numel, *x.stride))
    low.view(x, out)
    return out


@rule("view", "_unsafe_view", "unsqueeze", "squeeze", "permute", "transpose", "movedim", "swapaxes", "swapdims", "view_as")
@rule("unflatten", "alias", "detach_", "detach", "lift_fresh", "numpy_T", "mT", "adjoint", "unsqueeze_", "squeeze_")
@rule("transpose_", "t_", "view_as_real", "view_as_complex", "requires_grad_", "positive")
def _views(low: Lowering, call: Call) -> None:
    _restride(low, call)
    x = call.args[0]
    if call.op in ("transpose", "t", "numpy_T", "mT", "permute") and len(low.now(x).shape) == 2:
        _remember_turn(low, x, call.out)
    if call.op == "detach" and low.training and low.now(x).role == "made":
        low.emit("detach", [x], call.out)
        return
    low.view(x, call.out, _new_order(call, low.now(x)))


@rule("real", "imag")
def _half_of_pairs(low: Lowering, call: Call) -> None:
    """Every second number of what a complex tensor is kept as; a real one is itself."""
    x = low.now(call.args[0])
    if x.numel == call.out.numel:
        low.view(x, call.out)
    else:
        low.emit("slice", [x], call.out, {"shape": list(call.out.shape) or [1]})


@rule("polar", "complex")
def _pairs(low: Lowering, call: Call) -> None:
    """A complex table of rotary angles: one small kernel over both parts."""
    low.emit("cat", [call.args[0], call.args[1]], call.out, {"axis": len(call.out.shape) - 1})


def _new_order(call: Call, x: Value) -> list[int] | None:
    """Which axis of x each axis of the result was, where nothing else changes."""
    dims = len(x.shape)
    if call.op in ("transpose", "transpose_", "swapaxes", "swapdims"):
        order = list(range(dims))
        a, b = int(call.args[1]) % dims, int(call.args[2]) % dims
        order[a], order[b] = order[b], order[a]
    elif call.op == "permute":
        order = [int(a) % dims for a in call.args[1]]
    elif call.op in ("t", "numpy_T"):
        order = list(range(dims))[::-1]
    elif call.op in ("mT", "adjoint"):
        order = [*range(dims - 2), dims - 1, dims - 2]
    else:
        return None
    same = order == list(range(dims)) or len(order) != dims
    return None if same or tuple(x.shape[a] for a in order) != call.out.shape else order


def _remember_turn(low: Lowering, x: Value, out: Value) -> None:
    source = low.now(x)
    if source.role == "parameter" and out.shape == source.shape[::-1]:
        low.turned[out] = source


@rule("t")
def _turn(low: Lowering, call: Call) -> None:
    _remember_turn(low, call.args[0], call.out)
    low.view(call.args[0], call.out, _new_order(call, low.now(call.args[0])))


@rule("reshape", "flatten", "ravel", "reshape_as")
def _reshape(low: Lowering, call: Call) -> None:
    _restride(low, call)
    x = low.now(call.args[0])
    if shares_memory(x, call.out.shape):
        low.view(x, call.out)
    else:
        call.out.stride = low.value(call.out.shape, call.out.dtype).stride
        copied = low.value(x.shape, x.dtype)
        low.copy(x, copied)
        low.view(copied, call.out)


@rule("contiguous", "clone", "lift_fresh_copy", "_lazy_clone")
def _contiguous(low: Lowering, call: Call) -> None:
    _restride(low, call)
    x = low.now(call.args[0])
    wanted = call.kwargs.get("memory_format", torch.contiguous_format)
    if call.op == "contiguous" and x.contiguous and wanted in (None, torch.contiguous_format):
        low.alias(call.out, x)
    elif call.op == "lift_fresh_copy" or x.numel == 0:
        low.alias(call.out, x)
    elif call.op == "contiguous" and x.stride == call.out.stride:
        low.alias(call.out, x)
    elif call.op == "clone" and x.dense and not x.contiguous and x.stride == call.out.stride:
        low.emit("addu", [x], call.out)  # in the order in which x lies
    else:
        low.copy(x, call.out)


@rule("expand", "expand_as", "broadcast_to")
def _expand(low: Lowering, call: Call) -> None:
    _restride(low, call)
    x = low.now(call.args[0])
    if x.numel == call.out.numel:
        low.view(x, call.out)
    else:
        low.emit("expand", [x], call.out, {"shape": list(call.out.shape)})


@rule("broadcast_tensors")
def _broadcast(low: Lowering, call: Call) -> None:
    for x, made in zip(call.args[0], call.outs, strict=True):
        at = low.now(x)
        if at.shape == made.shape:
            low.alias(made, at)
        else:
            low.emit("expand", [at], made, {"shape": list(made.shape) or [1]})


@rule("slice", "select", "narrow", "diagonal", "unfold")
def _slice(low: Lowering, call: Call) -> None:
    _restride(low, call)
    x = low.now(call.args[0])
    if x.numel == call.out.numel:
        low.view(x, call.out)
    elif call.out.numel > x.numel:  # unfold with overlapping windows
        low.emit("expand", [x], call.out, {"shape": list(call.out.shape), "overlap": "count"})
    else:
        keys: dict[str, Any] = {"shape": list(call.out.shape) or [1]}
        if call.op == "select" and len(call.out.shape) == len(x.shape) - 1 and call.out.shape:
            keys["axis"] = int(call.arg(1, "dim", 0)) % len(x.shape)
        low.emit("slice", [x], call.out, keys)


@rule("as_strided")
def _as_strided(low: Lowering, call: Call) -> None:
    x = low.now(call.args[0])
    if call.out.numel == x.numel:
        low.view(x, call.out)
    elif call.out.numel > x.numel:  # windows that overlap: going back every element is found by its number
        low.emit("expand", [x], call.out, {"shape": list(call.out.shape), "overlap": "index"})
    else:
        low.emit("slice", [x], call.out, {"shape": list(call.out.shape) or [1]})


@rule("split", "split_with_sizes", "chunk", "tensor_split", "unsafe_chunk", "unsafe_split", "unbind", "hsplit", "dsplit")
def _split(low: Lowering, call: Call) -> None:
    _restride(low, call)
    x = low.now(call.args[0])
    parts = [out for out in call.outs if out.numel > 0]  # what reads an empty one is left out too
    if len(parts) == 1:
        low.view(x, parts[0])
        return
    axis = _split_axis(call, len(x.shape))
    if len(x.shape) == 1:  # a row of numbers: parts of it
        for out in parts:
            low.emit("slice", [x], out, {"shape": list(out.shape) or [1]})
        return
    if call.op == "unbind":
        keys: dict[str, Any] = {"axis": axis}
        low.emit("unbind", [x], parts, keys)
        return
    sizes = [out.shape[axis] for out in parts]
    low.emit("split", [x], parts, {"sizes": sizes, **({"axis": axis} if axis != len(x.shape) - 1 else {})})


def _split_axis(call: Call, dims: int) -> int:
    if call.op == "unbind":
        axis = call.arg(1, "dim", 0)
    elif call.op in ("hsplit", "dsplit"):
        axis = 1 if call.op == "hsplit" else 2
    else:
        axis = call.arg(2, "dim", 0)
    return int(axis) % dims


# -- casts -------------------------------------------------------------------------------------------


@rule("to", "type_as", "_to_copy", "float", "half", "bfloat16", "double", "int", "long", "bool")
def _cast(low: Lowering, call: Call) -> None:
    cast(low, call.args[0], call.out)


def cast(low: Lowering, x: Value, out: Value) -> None:
    """out is x in another format."""
    x = low.now(x)
    if x.dtype == out.dtype:
        low.view(x, out) if x.shape != out.shape or x.stride != out.stride else low.alias(out, x)
        return
    if not (x.dtype.is_floating_point and out.dtype.is_floating_point):
        low.emit("cast", [x], out, {"to": low.word(out.dtype)})
        return
    if low.is_main(out.dtype):
        source = _raised_from(low, x)
        low.emit("cast", [x], out, {"like": source} if source is not None else {"to": "model"})
        return
    low.emit("cast", [x], out, {"to": low.word(out.dtype)})
    low.raised[out] = (x, low.call.path if low.call else ())


def _raised_from(low: Lowering, x: Value) -> Value | None:
    """What was raised to fp32 where the chain of operators that ends in x began: its format is what x goes back to."""
    made = {out: node for node in reversed(low.nodes[-64:]) for out in node.outs}
    for _ in range(32):
        if x in low.raised:
            source, path = low.raised[x]
            return source if low.call is not None and low.call.path == path and source.role in ("made", "input") else None
        node = made.get(x)
        if node is None or not node.ins or node.op in ("linear", "matmul", "attention", "conv2d", "embedding"):
            return None
        wide = [y for y in node.ins if y.dtype == torch.float32 and y.role == "made"]
        if not wide:
            return None
        x = wide[0]
    return None
