"""Operators on elements: arithmetic, activations, comparisons, dropout."""

from __future__ import annotations

from typing import Any

import torch

from .lower_views import cast
from .nodes import Lowering, Node
from .registry import rule
from .values import Call, Value

__all__: list[str] = []

# ATen name -> the graph file's, for two tensors and for a tensor and a number
_TWO = {
    "add": ("add", "addu"),
    "sub": ("sub", "subu"),
    "subtract": ("sub", "subu"),
    "rsub": ("sub", "subu"),
    "mul": ("mul", "mulu"),
    "multiply": ("mul", "mulu"),
    "div": ("div", "divu"),
    "divide": ("div", "divu"),
    "true_divide": ("div", "divu"),
    "floor_divide": ("floor_divide", "divu"),
    "remainder": ("remainder", "divu"),
    "fmod": ("fmod", "divu"),
    "pow": ("pow", "powu"),
    "maximum": ("maximum", "clamp_min"),
    "minimum": ("minimum", "clamp_max"),
    "fmax": ("maximum", "clamp_min"),
    "fmin": ("minimum", "clamp_max"),
    "atan2": ("atan2", "divu"),
    "xlogy": ("mul", "mulu"),
}
_COMPARE = {name: name for name in ("eq", "ne", "lt", "le", "gt", "ge")}
_COMPARE |= {"not_equal": "ne", "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le"}
_LOGIC = {name: name for name in ("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor")}
_LOGIC |= {"__and__": "bitwise_and", "__or__": "bitwise_or", "__xor__": "bitwise_xor", "__iand__": "bitwise_and"}
_LOGIC |= {"__ior__": "bitwise_or", "bitwise_left_shift": "bitwise_and", "bitwise_right_shift": "bitwise_and"}
_SAME = "relu gelu silu tanh sigmoid exp expm1 log log2 log1p cos sin tan rsqrt sqrt neg abs sign square reciprocal erf "
_SAME += "floor ceil round trunc softplus leaky_relu relu6 elu selu mish hardswish hardsigmoid hardtanh log_sigmoid clamp "
_SAME += "clamp_min clamp_max logical_not bitwise_not isnan isinf isfinite"
_ONE = {name: name for name in _SAME.split()}
_ONE |= {"swish": "silu", "exp2": "exp", "negative": "neg", "absolute": "abs", "clip": "clamp", "celu": "elu"}
_ONE |= {"logsigmoid": "log_sigmoid", "logit": "log", "sgn": "sign", "nan_to_num": "clamp", "isneginf": "isinf"}
_ONE |= {"atan": "tan", "acos": "cos", "asin": "sin", "cosh": "exp", "sinh": "exp", "erfinv": "erf", "erfc": "erf"}
_ONE |= {"sinc": "sin", "threshold": "relu", "rrelu": "leaky_relu", "tanhshrink": "tanh"}
# Whose derivative reads their input, so that writing over it costs a copy (derivatives.yaml: others read their result).
_READS_INPUT = {"silu", "hardswish", "mish", "log_sigmoid", "softplus", "sin", "cos", "square", "abs", "log", "erf"}
_READS_INPUT |= {"hardtanh", "relu6", "hardsigmoid", "clamp", "clamp_min", "clamp_max", "clip"}
_ONE |= {"isposinf": "isinf", "hardshrink": "hardtanh", "softshrink": "hardtanh"}


def typed(low: Lowering, ins: list[Value], out: Value) -> dict[str, Any]:
    """`dtype` of a result where it is not the wider of its operands'."""
    kinds = {x.dtype for x in ins}
    expected = ins[0].dtype
    for kind in kinds:
        expected = torch.promote_types(expected, kind)
    mixed = len({kind.is_floating_point for kind in kinds}) > 1
    return {} if out.dtype == expected and not mixed else {"dtype": low.word(out.dtype)}


_BOOL = {*_COMPARE.values(), "logical_and", "logical_or", "logical_xor", "logical_not", "isnan", "isinf", "isfinite"}


def pointwise(low: Lowering, op: str, ins: list[Value], out: Value, in_place: bool = False) -> None:
    """A kernel over elements."""
    ins = [_beside_pairs(low, low.now(x), out) for x in ins]
    lead = next((x for x in ins if x.shape == out.shape), None)
    if lead is not None and lead in low.restrided and lead.dense and out.stride != lead.stride:
        out.stride = lead.stride  # results lie as their first whole operand does
        low.restrided.add(out)
    keys: dict[str, Any] = {} if op in _BOOL and out.dtype == torch.bool else typed(low, ins, out)
    if in_place:
        keys["in_place"] = True
    if _across(ins, out):
        keys["across"] = True
    low.emit(op, ins, out, keys)


def _beside_pairs(low: Lowering, x: Value, out: Value) -> Value:
    """Complex numbers are pairs along the last axis: a real operand, or a pair for all, meets each of them."""
    if not (x.shape and out.shape) or x.shape[-1] in (0, 1, out.shape[-1]) or out.shape[-1] % x.shape[-1]:
        return x
    wide = low.value((*x.shape[:-1], out.shape[-1]), x.dtype)
    low.emit("expand", [x], wide, {"shape": list(wide.shape)})
    return wide


_SECTOR = 8  # elements: 32 bytes of fp32


def _across(ins: list[Value], out: Value) -> bool:
    """Whether one of several broadcast operands lies across the order in which neighbouring threads walk: they then
    fetch a sector of memory for every element."""
    if len(ins) < 2 or any(x.shape == out.shape for x in ins):
        return False
    strides = [
        (0,) * (len(out.shape) - len(x.shape))
        + tuple(0 if size == 1 else step for size, step in zip(x.shape, x.stride, strict=True))
        for x in ins
    ]
    inner = _innermost(strides, out.shape)
    return inner >= 0 and out.shape[inner] >= _SECTOR and any(each[inner] >= _SECTOR for each in strides)


def _innermost(strides: list[tuple[int, ...]], shape: tuple[int, ...]) -> int:
    """The axis that PyTorch walks first. It begins with the last one innermost and sorts by insertion: an axis moves
    inwards as long as the first operand that has both, unrepeated, strides less along it (TensorIterator's
    ``reorder_dimensions``)."""
    order = [at for at in reversed(range(len(shape))) if shape[at] > 1]
    for at in range(1, len(order)):
        mine = at
        for other in reversed(range(at)):
            a, b = order[other], order[mine]
            steps = next(((each[a], each[b]) for each in strides if each[a] and each[b] and each[a] != each[b]), None)
            if steps is None:
                continue
            if steps[0] < steps[1]:
                break
            order[other], order[mine] = b, a
            mine = other
    return order[0] if order else -1


def _strip(op: str) -> tuple[str, bool]:
    if op.startswith("__"):
        return (op.replace("__i", "__", 1), True) if op in ("__iand__", "__ior__") else (op, False)
    return (op[:-1], True) if op.endswith("_") and not op.endswith("__") else (op, False)


def _finish(low: Lowering, call: Call, in_place: bool) -> None:
    """An in-place operator's operand is what it has made of it."""
    if in_place and isinstance(call.args[0], Value):
        target = low.now(call.args[0])
        if target is not low.now(call.out) and target.role == "made":
            low.alias(target, call.out)


@rule(*_TWO, *(f"{name}_" for name in _TWO))
def _two(low: Lowering, call: Call) -> None:
    name, in_place = _strip(call.op)
    pair, single = _TWO[name]
    x, y = call.args[0], call.arg(1, "other")
    if in_place and isinstance(x, Value) and x.target.endswith("num_batches_tracked"):
        low.alias(call.out, x)  # part of the batch norm's node
        return
    tensors = [t for t in (x, y) if isinstance(t, Value)]
    if not tensors:  # of two numbers
        low.emit("fill", [], call.out, {"shape": list(call.out.shape) or [1]})
        return
    if name == "pow" and isinstance(y, Value) and not isinstance(x, Value):
        tensors, pair, single = [y], "exp", "exp"
    if len(tensors) == 2 and tensors[1].shape == () and tensors[1].role == "constant":
        tensors = tensors[:1]
    if len(tensors) == 1:
        pointwise(low, single, tensors, call.out, in_place)
    else:
        pointwise(low, pair, tensors, call.out, in_place)
    _finish(low, call, in_place)


@rule(*_COMPARE, *(f"{name}_" for name in _COMPARE), *_LOGIC)
def _compare(low: Lowering, call: Call) -> None:
    tensors = [t for t in call.args[:2] if isinstance(t, Value)]
    name, in_place = _strip(call.op)
    if name in _COMPARE:
        pointwise(low, _COMPARE[name], tensors, call.out)
    elif len(tensors) == 2:
        pointwise(low, _LOGIC[name], tensors, call.out, in_place)
    else:  # with a number
        pointwise(low, "bitwise_not", tensors, call.out, in_place)
    _finish(low, call, in_place)


@rule(*_ONE, *(f"{name}_" for name in _ONE))
def _one(low: Lowering, call: Call) -> None:
    name, in_place = _strip(call.op)
    x = low.now(call.args[0])
    if in_place and name in _READS_INPUT and low.training and not call.frozen and x in low.learned:
        copied = low.like(x)  # autograd keeps a copy of what the gradient reads before it is written over
        low.emit("addu", [x], copied)  # in the order in which x lies, with nothing to do on the way back
        pointwise(low, _ONE[name], [copied], call.out)
        _finish(low, call, True)
        return
    pointwise(low, _ONE[name], [x], call.out, in_place)
    _finish(low, call, in_place)


@rule("where")
def _where(low: Lowering, call: Call) -> None:
    """The choice that is a number, or a tensor of one element, is not read."""
    condition, *choices = (x for x in call.args[:3])
    big = [t for t in choices if isinstance(t, Value) and (t.numel > 1 or call.out.numel == 1)]
    if len(big) == 2:
        low.emit("where", [condition, *big], call.out, typed(low, [low.now(x) for x in big], call.out))
    elif big:
        low.emit("where", [big[0], condition], call.out, typed(low, [low.now(big[0])], call.out))
    else:
        low.emit("copy", [condition], call.out, {"shape": list(call.out.shape) or [1], "dtype": low.word(call.out.dtype)})


@rule("masked_fill", "masked_fill_")
def _masked_fill(low: Lowering, call: Call) -> None:
    x, mask = call.args[0], call.args[1]
    in_place = call.op.endswith("_")
    target = low.now(x)
    if not in_place:  # out of place it copies first and fills the copy
        copied = low.like(call.out)
        if target.shape == call.out.shape:
            low.emit("copy", [target], copied, {"shape": list(copied.shape)})
        else:
            low.emit("copy", [target], copied, {"shape": list(call.out.shape)})
        target = copied
    low.emit("masked_fill", [target, mask], call.out, {"in_place": True})
    _finish(low, call, in_place)


@rule("addcmul", "addcdiv", "lerp", "addcmul_", "addcdiv_", "lerp_")
def _three(low: Lowering, call: Call) -> None:
    tensors = [t for t in call.args if isinstance(t, Value)]
    if len(tensors) == 3 and any(t.shape == call.out.shape for t in tensors):
        pointwise(low, call.op.rstrip("_"), tensors, call.out)
        _finish(low, call, call.op.endswith("_"))
        return
    made = low.value(call.out.shape, call.out.dtype)
    pointwise(low, "mul", tensors[1:3] if len(tensors) > 2 else tensors[:2], made)
    pointwise(low, "add", [tensors[0], made], call.out)
    _finish(low, call, call.op.endswith("_"))


@rule("dropout", "dropout_", "feature_dropout", "alpha_dropout", "native_dropout")
def _dropout(low: Lowering, call: Call) -> None:
    p, training = call.args[1], call.arg(2, "train", True)
    if not training or not low.training or not p:
        low.alias(call.out, call.args[0])
        return
    low.emit("dropout", [call.args[0]], call.out, {"p": float(p)})


@rule("glu")
def _glu(low: Lowering, call: Call) -> None:
    x = low.now(call.args[0])
    axis = int(call.arg(1, "dim", -1)) % len(x.shape)
    half = list(x.shape)
    half[axis] //= 2
    parts = [low.value(half, x.dtype, x.stride) for _ in range(2)]
    low.emit("split", [x], parts, {"sizes": [half[axis]] * 2, **({"axis": axis} if axis != len(x.shape) - 1 else {})})
    pointwise(low, "mul", parts, call.out)  # one kernel, which takes the sigmoid on the way


@rule("prelu")
def _prelu(low: Lowering, call: Call) -> None:
    """A slope per channel: what a product with it reads, and its gradients."""
    x, slope = low.now(call.args[0]), low.now(call.args[1])
    if slope.numel > 1 and len(x.shape) > 2:
        wide = low.value((slope.numel, *(1,) * (len(x.shape) - 2)), slope.dtype)
        low.view(slope, wide)
        slope = wide
    pointwise(low, "mul", [x, slope], call.out)


_VIEWS = ("slice", "view", "expand", "transpose")


@rule("copy_")
def _copy_into(low: Lowering, call: Call) -> None:
    """x[...] = y: elements of y over part of what x sees, or all of it. What is written is the tensor that the views are of
    (autograd's CopySlices), and all views on the way to it see it from then on."""
    target, source = low.now(call.args[0]), low.now(call.args[1])
    way = _way_to(low, target)
    if way:
        base = low.now(way[-1].ins[0])
        made = low.value(base.shape, base.dtype, base.stride)
        low.emit("scatter", [base, source], made, {"in_place": True, "part": True})
        low.alias(base, made)
        for view in reversed(way):
            seen = low.value(view.out.shape, view.out.dtype, view.out.stride)
            low.emit(view.op, [made], seen, view.keys)
            low.alias(view.out, seen)
            made = seen
        low.alias(call.out, made)
        return
    if source.shape == target.shape and source.dtype == target.dtype:
        low.emit("contiguous", [source], call.out, {"shape": list(call.out.shape)})
    elif source.dtype != target.dtype and source.shape == target.shape:
        cast(low, source, call.out)
    else:
        low.emit("copy", [source], call.out, {"shape": list(call.out.shape)})
    if target.role == "made":
        low.alias(target, call.out)


def _way_to(low: Lowering, x: Value) -> list[Node]:
    """The views that made x, the last first, down to a tensor of its own."""
    makers = {out: node for node in low.nodes for out in node.outs}
    way: list[Node] = []
    while (maker := makers.get(x)) is not None and maker.op in _VIEWS and maker.ins:
        way.append(maker)
        x = low.now(maker.ins[0])
    return way
