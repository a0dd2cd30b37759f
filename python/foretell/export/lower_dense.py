"""Matrix products, convolutions, experts."""

from __future__ import annotations

from typing import Any

from .lower_pointwise import pointwise
from .lower_views import batched, shares_memory
from .nodes import Lowering
from .registry import rule
from .values import Call, Value

__all__: list[str] = []


# -- products with a weight --------------------------------------------------------------------------


def weight_of(low: Lowering, w: Value) -> tuple[Value, str] | None:
    """The parameter behind a product's second operand, and how it stands: "nk" as nn.Linear's, "kn" as Conv1D's."""
    real = low.now(w)
    if real.role == "parameter" and len(real.shape) == 2:
        return real, "nk"
    for candidate in (w, real):
        if candidate in low.turned:
            return low.turned[candidate], "kn"
    return None


def linear(low: Lowering, x: Value, w: Value, bias: Value | None, out: Value, layout: str) -> None:
    """y = x W' + b for a parameter W of [features, k] ("nk") or [k, features] ("kn")."""
    keys: dict[str, Any] = {"features": out.shape[-1]}
    if layout == "kn":
        keys["weight_layout"] = "kn"
    parameters = {"weight": w}
    if bias is not None and low.now(bias).role == "parameter" and low.now(bias).shape == (out.shape[-1],):
        parameters["bias"] = low.now(bias)
        bias = None
    x = low.now(x)
    if bias is None:
        low.emit("linear", [x], out, keys, parameters)
        return
    made = low.value(out.shape, out.dtype)
    low.emit("linear", [x], made, keys, parameters)
    pointwise(low, "add", [made, bias], out)


@rule("linear")
def _linear(low: Lowering, call: Call) -> None:
    x, w, bias = call.args[0], call.args[1], call.arg(2, "bias")
    found = weight_of(low, w)
    apart = bias is not None and len(low.now(x).shape) > 2 and not low.now(x).contiguous
    if found is not None and not apart:
        linear(low, x, found[0], bias, call.out, found[1])
        return
    if found is not None and bias is not None:  # PyTorch takes the fused product with a bias for rows in order alone
        linear(low, x, found[0], None, made := low.value(call.out.shape, call.out.dtype), found[1])
        pointwise(low, "add", [made, bias], call.out, in_place=True)
        return
    _folded(low, low.now(x), low.now(w), made := call.out if bias is None else low.value(call.out.shape, call.out.dtype))
    if bias is not None:
        pointwise(low, "add", [made, bias], call.out)


def _folded(low: Lowering, x: Value, w: Value, out: Value) -> None:
    """x W' for a weight that was computed: PyTorch makes one matrix of x first, by a copy where it does not lie in rows."""
    if len(x.shape) < 3 or len(w.shape) != 2:
        return _product(low, x, w, out, transposed=True)
    dense, count = x if x.contiguous else low.value(x.shape, x.dtype), x.numel // x.shape[-1]
    if dense is not x:
        low.copy(x, dense)
    rows, made = low.value((count, x.shape[-1]), x.dtype), low.value((count, out.shape[-1]), out.dtype)
    low.view(dense, rows)
    _product(low, rows, w, made, transposed=True)
    low.view(made, out)


def _flip(layout: str) -> str:
    return "kn" if layout == "nk" else "nk"


@rule("matmul", "mm", "bmm", "__matmul__", "mv", "dot", "inner")
def _matmul(low: Lowering, call: Call) -> None:
    a, c = call.args[0], call.args[1]
    found = weight_of(low, c)
    if found is not None and len(low.now(a).shape) >= 2:  # x @ W: W as it is stands [k, n]
        linear(low, a, found[0], None, call.out, _flip(found[1]))
        return
    _product(low, low.now(a), low.now(c), call.out)


@rule("addmm", "addbmm", "baddbmm", "addmv")
def _addmm(low: Lowering, call: Call) -> None:
    bias, a, c = call.args[0], call.args[1], call.args[2]
    found = weight_of(low, c)
    if call.op == "addmm" and found is not None:
        linear(low, a, found[0], bias, call.out, _flip(found[1]))
        return
    made = low.value(call.out.shape, call.out.dtype)
    _product(low, low.now(a), low.now(c), made)
    if call.arg(3, "beta", 1) == 0:
        low.alias(call.out, made)
    elif call.op == "addmm" and low.now(bias).shape != call.out.shape:
        pointwise(low, "add", [made, bias], call.out)
    else:  # the first operand is copied to the result's size, and the product added into it
        low.emit("copy", [bias], low.like(call.out), {"shape": list(call.out.shape)})
        low.alias(call.out, made)


def _lie(x: Value) -> str | None:
    """How a stack of matrices lies: "n" row by row, "t" column by column; None when a library must copy it first."""
    shape, stride = x.shape, x.stride
    rank = len(shape)
    if rank > 2:
        merged = 1
        for size in shape[:-2]:
            merged *= size
        if not shares_memory(x, (merged, *shape[-2:])):
            return None
    if shape[-1] == 1 or stride[-1] == 1:
        return "n"
    return "t" if stride[-2] == 1 else None


def _product(low: Lowering, a: Value, c: Value, out: Value, transposed: bool = False) -> None:
    """A product of two values: operands that no library reads as they lie are copied first, as PyTorch does."""
    if len(a.shape) < 2 or len(c.shape) < 2:
        _vector_product(low, a, c, out)
        return
    if transposed:  # the second operand as [..., n, k]
        stride = (*c.stride[:-2], c.stride[-1], c.stride[-2])
        turned = low.value((*c.shape[:-2], c.shape[-1], c.shape[-2]), c.dtype, stride)
        dims = len(c.shape)
        low.view(c, turned, [*range(dims - 2), dims - 1, dims - 2])
        c = turned
    stack = out.shape[:-2]
    a, c = _stacked(low, a, stack), _stacked(low, c, stack)
    a = _readable(low, a, stack)
    c = _readable(low, c, stack)
    lies = _lie(c)
    if lies == "t" and c.shape[-2] > 1:
        base = low.value((*c.shape[:-2], c.shape[-1], c.shape[-2]), c.dtype)
        dims = len(c.shape)
        low.view(c, base, [*range(dims - 2), dims - 1, dims - 2])
        low.emit("matmul", [a, base], out, {"transposed": True})
    else:
        low.emit("matmul", [a, c], out)


def _stacked(low: Lowering, x: Value, stack: tuple[int, ...]) -> Value:
    """x with as many matrices as the product has; a plain matrix beside a stack stays what it is when it is alone."""
    if x.shape[:-2] == stack:
        return x
    shape = (*stack, *x.shape[-2:])
    lead = len(shape) - len(x.shape)
    stride = [0] * lead + [
        0 if size == 1 and wanted != 1 else st
        for size, wanted, st in zip(x.shape, shape[lead:], x.stride, strict=True)
    ]
    wide = low.value(shape, x.dtype, stride)
    if wide.numel == x.numel:
        low.view(x, wide)
    else:
        low.emit("expand", [x], wide, {"shape": list(shape)})
    return wide


def _readable(low: Lowering, x: Value, stack: tuple[int, ...]) -> Value:
    if _lie(x) is not None:
        return x
    dense = low.value(x.shape, x.dtype)
    low.copy(x, dense) if x.numel > 0 and 0 not in x.stride else low.emit("copy", [x], dense, {"shape": list(x.shape)})
    return dense


def _vector_product(low: Lowering, a: Value, c: Value, out: Value) -> None:
    """A vector takes part: a product and a sum, bound by reading the matrix."""
    keys = {"bytes": a.bytes + c.bytes + out.bytes, "flops": 2 * max(a.numel, c.numel), "shape": list(out.shape) or [1]}
    low.emit("vector_product", [a, c], out, keys)


@rule("outer", "ger")
def _outer(low: Lowering, call: Call) -> None:
    a, c = low.now(call.args[0]), low.now(call.args[1])
    low.view(a, column := low.value((a.shape[0], 1), a.dtype))
    pointwise(low, "mul", [column, c], call.out)


# -- convolutions ------------------------------------------------------------------------------------


_SIDES = (("r",), ("r", "s"), ("t", "r", "s"))  # names of a filter's sides, depth first


def _pair(value: Any, dims: int) -> list[int]:
    if isinstance(value, (list, tuple)):
        return [int(x) for x in value] * (dims if len(value) == 1 else 1)
    return [int(value)] * dims


def _last(shape: tuple[int, ...]) -> tuple[int, ...]:
    n, c, h, w = shape
    return (c * h * w, 1, w * c, c)


def _channels_last(x: Value) -> bool:
    return len(x.shape) == 4 and x.shape[1] > 1 and x.stride == _last(x.shape)


@rule("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "convolution")
def _conv(low: Lowering, call: Call) -> None:
    x, w, bias = low.now(call.args[0]), low.now(call.args[1]), call.arg(2, "bias")
    dims = len(w.shape) - 2
    out = call.out
    if len(x.shape) == dims + 1:  # one image without a batch
        x, out = batched(low, x), low.value((1, *call.out.shape), call.out.dtype)
    stride = _pair(call.arg(3, "stride", 1), dims)
    transposed = "transpose" in call.op
    output_pad: Any = 0
    if call.op == "convolution":
        pad, dilation = call.args[4], call.args[5]
        transposed, output_pad, groups = bool(call.args[6]), call.args[7], int(call.args[8])
    elif transposed:
        pad, output_pad = call.arg(4, "padding", 0), call.arg(5, "output_padding", 0)
        groups, dilation = int(call.arg(6, "groups", 1)), call.arg(7, "dilation", 1)
    else:
        pad, dilation, groups = call.arg(4, "padding", 0), call.arg(5, "dilation", 1), int(call.arg(6, "groups", 1))
    filters = list(w.shape[2:])
    dilation = _pair(dilation, dims)
    if isinstance(pad, str):
        whole = [0 if pad == "valid" else d * (f - 1) for d, f in zip(dilation, filters, strict=True)]
        if any(each % 2 for each in whole):  # an even filter: the one place more stands behind, put there by a copy
            wider = low.value((*x.shape[:2], *(n + each % 2 for n, each in zip(x.shape[2:], whole, strict=True))), x.dtype)
            low.emit("pad", [x], wider, {"shape": list(wider.shape)})
            x = wider
        pad = [each // 2 for each in whole]
    pad = _pair(pad, dims)
    keys: dict[str, Any] = {"k": out.shape[1]}
    keys.update(zip(_SIDES[dims - 1], filters, strict=True))
    plain = {"stride": (stride, 1), "pad": (pad, 0), "dilation": (dilation, 1)}
    if transposed:
        plain["output_pad"] = (_pair(output_pad, dims), 0)
        keys["transposed"] = True
    for name, (value, usual) in plain.items():
        if any(v != usual for v in value):
            keys[name] = value[0] if len(set(value)) == 1 else value
    if groups != 1:
        keys["groups"] = groups
    parameters: dict[str, Value] = {}
    operands = [x]
    if w.role == "parameter":
        parameters["weight"] = w
    else:  # computed: standardised, modulated
        operands.append(w)
    made = out
    if bias is not None and low.now(bias).role == "parameter":
        parameters["bias"] = low.now(bias)
        bias = None
    elif bias is not None:
        made = low.value(out.shape, out.dtype, out.stride)
    if _channels_last(x) and not _channels_last(out):  # cuDNN's result lies as its images do; a capture forgets it
        made.stride = out.stride = _last(out.shape)
        low.restrided.update((made, out))
    low.emit(f"conv{dims}d", operands, made, keys, parameters)
    if bias is not None:
        column = low.value((out.shape[1], *[1] * dims), out.dtype)
        low.view(bias, column)
        pointwise(low, "add", [made, column], out, in_place=True)
    if out is not call.out:
        low.view(out, call.out)


# -- experts -----------------------------------------------------------------------------------------


@rule("experts")
def _experts(low: Lowering, call: Call) -> None:
    x, chosen, weights, up, down, up_bias, down_bias, inter, gated, activation = call.args
    x, up, down = low.now(x), low.now(up), low.now(down)
    keys: dict[str, Any] = {"experts": up.shape[0], "topk": low.now(chosen).shape[-1], "inter": int(inter)}
    if up_bias is not None:
        keys["bias"] = True
    if activation:
        keys["activation"] = activation
    if not gated:
        low.warn("experts without a gate are forecast with one")
    parameters = {"up": up, "down": down}
    for name, value in (("up_bias", up_bias), ("down_bias", down_bias)):
        if value is not None:
            parameters[name] = low.now(value)
    low.emit("experts", [x, weights], call.out, keys, parameters)


@rule("_grouped_mm", "grouped_mm", "grouped_mm_fallback")
def _grouped(low: Lowering, call: Call) -> None:
    """Rows sorted by group, one matrix each: as a batched product of equal shares."""
    a, c = low.now(call.args[0]), low.now(call.args[1])
    groups = c.shape[0] if len(c.shape) == 3 else 1
    flops = 2 * a.numel * call.out.shape[-1]
    keys = {"bytes": a.bytes + c.bytes + call.out.bytes, "flops": flops, "shape": list(call.out.shape)}
    if groups > 1 and len(a.shape) == 2 and a.shape[0] % groups == 0 and c.role != "parameter":
        rows = a.shape[0] // groups
        stacked = low.value((groups, rows, a.shape[1]), a.dtype)
        low.view(a, stacked)
        made = low.value((groups, rows, call.out.shape[-1]), call.out.dtype)
        _product(low, stacked, c, made)
        low.view(made, call.out)
        return
    low.emit("grouped_mm", [a, c], call.out, keys)
