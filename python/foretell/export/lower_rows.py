"""Norms, softmax, reductions, scans, sorting, pooling."""

from __future__ import annotations

from typing import Any

import torch

from .lower_pointwise import pointwise
from .lower_views import batched, cast
from .nodes import Lowering
from .registry import rule
from .values import Call, Value

__all__: list[str] = []


def _axes(dim: Any, dims: int) -> list[int]:
    if dim is None or dim == []:
        return list(range(dims))
    items = dim if isinstance(dim, (list, tuple)) else [dim]
    return sorted({int(d) % max(dims, 1) for d in items})


def _axis_key(axis: int, dims: int) -> dict[str, Any]:
    return {} if axis == dims - 1 else {"axis": axis}


def _raise(low: Lowering, x: Value, dtype: torch.dtype | None) -> Value:
    """The operand in the format the operator was told to compute in."""
    x = low.now(x)
    if dtype is None or x.dtype == dtype:
        return x
    out = low.like(x, dtype)
    cast(low, x, out)
    return out


# -- norms -------------------------------------------------------------------------------------------


def _affine(low: Lowering, weight: Value | None, bias: Value | None) -> tuple[dict[str, Value], list[Value]]:
    """Parameters of a norm; weights that are not parameters are applied by kernels of their own."""
    parameters: dict[str, Value] = {}
    rest: list[Value] = []
    for name, value in (("weight", weight), ("bias", bias)):
        if value is None:
            continue
        value = low.now(value)
        if value.role == "parameter":
            parameters[name] = value
        else:
            rest.append(value)
    return parameters, rest


def _norm(low: Lowering, op: str, call: Call, weight: Value | None, bias: Value | None, keys: dict[str, Any]) -> None:
    parameters, rest = _affine(low, weight, bias)
    operands = [call.args[0]]
    if weight is not None and "weight" not in parameters:
        operands.append(rest.pop(0))  # computed (w + 1): the kernel takes it like any other
    elif "weight" not in parameters:
        keys["weight"] = False
    if op in ("batchnorm", "groupnorm") and "bias" not in parameters:
        keys["bias"] = False
    out = call.out if not rest else low.value(call.out.shape, call.out.dtype)
    low.emit(op, operands, out, keys, parameters)
    for value in rest:  # a bias that is not a parameter
        if op in ("batchnorm", "groupnorm") and len(call.out.shape) > 2:
            column = low.value((call.out.shape[1], *[1] * (len(call.out.shape) - 2)), value.dtype)
            low.view(value, column)
            value = column
        pointwise(low, "add", [out, value], call.out)


@rule("layer_norm", "native_layer_norm")
def _layer_norm(low: Lowering, call: Call) -> None:
    shape = call.args[1]
    keys: dict[str, Any] = {"last": len(shape)} if len(shape) > 1 else {}
    _norm(low, "layernorm", call, call.arg(2, "weight"), call.arg(3, "bias"), keys)


@rule("rms_norm", "_fused_rms_norm")
def _rms_norm(low: Lowering, call: Call) -> None:
    _norm(low, "rmsnorm", call, call.arg(2, "weight"), None, {})


@rule("group_norm")
def _group_norm(low: Lowering, call: Call) -> None:
    # instance_norm has no rule: it is a batch norm of one image with as many channels as there were of all, and
    # falls into that by itself
    _norm(low, "groupnorm", call, call.arg(2, "weight"), call.arg(3, "bias"), {"groups": int(call.args[1])})


@rule("batch_norm", "native_batch_norm", "cudnn_batch_norm", "_native_batch_norm_legit", "_batch_norm_impl_index")
def _batch_norm(low: Lowering, call: Call) -> None:
    keys: dict[str, Any] = {}
    if call.op == "batch_norm" and call.arg(3, "running_mean") is None:
        keys["statistics"] = "batch"
    elif call.op == "batch_norm" and low.training and not call.arg(5, "training", True):
        keys["statistics"] = "running"
    _norm(low, "batchnorm", call, call.args[1], call.args[2], keys)


# -- along an axis -----------------------------------------------------------------------------------


@rule("softmax", "_softmax", "log_softmax", "_log_softmax", "_safe_softmax")
def _softmax(low: Lowering, call: Call) -> None:
    axis = int(call.args[1])
    dtype = call.arg(2, "dtype") if call.op in ("softmax", "log_softmax", "_safe_softmax") else None
    x = _raise(low, call.args[0], dtype if isinstance(dtype, torch.dtype) else None)
    op = "log_softmax" if "log" in call.op else "softmax"
    low.emit(op, [x], call.out, _axis_key(axis % len(x.shape), len(x.shape)))


_REDUCE = {
    "sum": "sum",
    "nansum": "sum",
    "mean": "mean",
    "nanmean": "mean",
    "amax": "amax",
    "amin": "amin",
    "prod": "prod",
    "norm": "norm",
    "linalg_vector_norm": "norm",
    "frobenius_norm": "norm",
    "std": "std",
    "var": "var",
    "all": "all",
    "any": "any",
    "logsumexp": "logsumexp",
    "argmax": "argmax",
    "argmin": "argmin",
    "max": "amax",
    "min": "amin",
    "median": "argmax",
    "count_nonzero": "sum",
}


@rule(*_REDUCE)
def _reduce(low: Lowering, call: Call) -> None:
    if call.op in ("max", "min") and isinstance(call.arg(1, "other"), Value):
        pointwise(low, "maximum" if call.op == "max" else "minimum", call.args[:2], call.out)
        return
    x = low.now(call.args[0])
    if call.op in ("norm", "linalg_vector_norm"):
        dim = call.arg(2, "dim")
    elif call.op == "prod" and call.overload == "default":
        dim = None
    else:
        dim = call.arg(1, "dim") if not isinstance(call.arg(1, "dim"), (torch.dtype, bool)) else None
    if x.shape == () and call.op in ("sum", "mean", "nansum", "nanmean"):
        low.view(x, call.out) if x.dtype == call.out.dtype else cast(low, x, call.out)
        return
    dtype = call.kwargs.get("dtype")
    if isinstance(dtype, torch.dtype) and x.dtype.is_floating_point:
        x = _raise(low, x, dtype)
    op = _REDUCE[call.op]
    axes = _axes(dim, len(x.shape))
    keys: dict[str, Any] = {}
    if axes != [len(x.shape) - 1]:
        keys["axes"] = axes
    if len(call.out.shape) < len(x.shape):
        keys["keepdim"] = False
    if call.op in ("max", "min") and len(call.outs) == 2:
        # one kernel says how much and where; its gradient goes to the place, and needs nothing but that
        low.emit("argmax" if call.op == "max" else "argmin", [x], call.outs[1], keys)
        # (torch.gather would keep x)
        out = call.outs[0]
        one = out if out.shape[-1:] == (1,) else low.value((*out.shape, 1), out.dtype)
        low.emit("index_select", [x, call.outs[1]], one, {"shape": list(one.shape)})
        low.view(one, out)
        return
    typed = {} if op in ("argmax", "argmin", "any", "all") or call.out.dtype == x.dtype else {"dtype": low.word(call.out.dtype)}
    low.emit(op, [x], call.outs[0], {**keys, **typed})
    for other in call.outs[1:]:  # max and min with a dim also say where
        low.emit("argmax", [x], other, keys)


@rule("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp", "cumsum_")
def _scan(low: Lowering, call: Call) -> None:
    x = low.now(call.args[0])
    dims = len(x.shape)
    axis = int(call.arg(1, "dim", -1)) % max(dims, 1)
    if call.out.dtype.is_floating_point:
        x = _raise(low, x, call.out.dtype)
    keys = _axis_key(axis, dims)
    if x.dtype != call.outs[0].dtype:
        keys["dtype"] = low.word(call.outs[0].dtype)
    low.emit("cumsum", [x], call.outs[0], keys)
    for other in call.outs[1:]:
        low.emit("cumsum", [x], other, {**_axis_key(axis, dims), "dtype": "int64"})


@rule("topk", "sort", "argsort", "kthvalue", "msort")
def _order(low: Lowering, call: Call) -> None:
    x = low.now(call.args[0])
    if call.op == "topk":
        axis = int(call.arg(2, "dim", -1)) % len(x.shape)
        low.emit("topk", [x], call.outs, {"k": int(call.args[1]), **_axis_key(axis, len(x.shape))})
        return
    axis = call.arg(1, "dim", -1)
    axis = int(axis) % max(1, len(x.shape)) if isinstance(axis, int) and not isinstance(axis, bool) else len(x.shape) - 1
    if call.op == "argsort":
        values = low.value(x.shape, x.dtype)
        low.emit("sort", [x], [values, call.out], _axis_key(axis, len(x.shape)))
    else:
        low.emit("sort", [x], call.outs, _axis_key(axis, len(x.shape)))


_TRANSFORMS = {1: ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"), 2: ("fft2", "ifft2", "rfft2", "irfft2", "hfft2", "ihfft2")}
_TRANSFORMS[0] = ("fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn")  # over as many axes as are named, or all


@rule(*(f"fft_{name}" for names in _TRANSFORMS.values() for name in names))
def _transform(low: Lowering, call: Call) -> None:
    """cuFFT's: a pass over memory for every axis."""
    x = low.now(call.args[0])
    passes = next(axes for axes, names in _TRANSFORMS.items() if call.op[4:] in names)
    named = call.arg(2, "dim")
    passes = passes or (len(named) if named is not None else len(x.shape))
    low.emit("fft", [x], call.out, {"bytes": passes * (x.bytes + call.out.bytes), "shape": list(call.out.shape)})


# -- images ----------------------------------------------------------------------------------------


def _sizes(value: Any, dims: int) -> list[int]:
    items = list(value) if isinstance(value, (list, tuple)) else [value]
    return [int(x) for x in (items * dims if len(items) == 1 else items)]


def _one(sizes: list[int]) -> Any:
    return sizes[0] if len(set(sizes)) == 1 else sizes


@rule("max_pool1d", "max_pool2d", "max_pool3d", "max_pool2d_with_indices", "avg_pool1d", "avg_pool2d", "avg_pool3d")
def _pool(low: Lowering, call: Call) -> None:
    x = low.now(call.args[0])
    dims = 3 if "3d" in call.op else 2 if "2d" in call.op else 1
    window = _sizes(call.args[1], dims)
    op = "maxpool" if "max" in call.op else "avgpool"
    stride = call.arg(2, "stride", [])
    keys: dict[str, Any] = {"window": _one(window)}
    if stride not in (None, [], ()) and _sizes(stride, dims) != window:
        keys["stride"] = _one(_sizes(stride, dims))
    pad = _sizes(call.arg(3, "padding", 0), dims)
    if any(pad):
        keys["pad"] = _one(pad)
    if op == "maxpool":
        dilation = _sizes(call.arg(4, "dilation", 1), dims)
        if any(d != 1 for d in dilation):
            keys["dilation"] = _one(dilation)
        ceil = call.arg(5, "ceil_mode", False)
    else:
        ceil = call.arg(4, "ceil_mode", False)
    if ceil:
        keys["ceil"] = True
    if len(x.shape) == dims + 1:
        made = low.value((1, *call.outs[0].shape), call.outs[0].dtype)
        low.emit(op, [batched(low, x)], made, keys)
        low.view(made, call.outs[0])
        return
    low.emit(op, [x], call.outs[:1], keys)
    for places in call.outs[1:]:  # written by the same kernel
        low.emit("empty", [], places, {"shape": list(places.shape) or [1], "dtype": low.word(places.dtype)})


@rule("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool2d", "adaptive_max_pool1d")
def _adaptive(low: Lowering, call: Call) -> None:
    x = low.now(call.args[0])
    dims = 3 if "3d" in call.op else 2 if "2d" in call.op else 1
    if "avg" in call.op and all(size == 1 for size in call.out.shape[-dims:]):
        axes = list(range(len(x.shape) - dims, len(x.shape)))
        low.emit("mean", [x], call.out, {"axes": axes, "keepdim": True})  # as PyTorch does
        return
    low.emit("adaptive_avgpool", [x], call.outs[:1], {"shape": list(call.out.shape)})


def _shuffled(low: Lowering, call: Call, x: Value) -> None:
    """Axes are cut, turned and put together again, which copies (PyTorch's ``math_pixel_shuffle``)."""
    parts, at = int(call.args[1]), len(x.shape) - 3
    channels, high, wide = x.shape[at:]
    steps = x.stride[at:]
    cut: list[tuple[int, int]]  # size, stride
    if call.op == "pixel_shuffle":
        inner = channels // parts**2
        cut = [(inner, steps[0] * parts**2), (parts, steps[0] * parts), (parts, steps[0]), (high, steps[1]), (wide, steps[2])]
        order = [0, 3, 1, 4, 2]
    elif call.op == "pixel_unshuffle":
        cut = [(channels, steps[0]), (high // parts, steps[1] * parts), (parts, steps[1])]
        cut += [(wide // parts, steps[2] * parts), (parts, steps[2])]
        order = [0, 2, 4, 1, 3]
    else:
        inner = channels // parts
        cut = [(parts, steps[0] * inner), (inner, steps[0]), (high, steps[1]), (wide, steps[2])]
        order = [1, 0, 2, 3]
    before, strides = x.shape[:at], x.stride[:at]
    axes = [*range(at), *(at + i for i in order)]
    seen = low.value((*before, *(size for size, _ in cut)), x.dtype, (*strides, *(step for _, step in cut)))
    low.view(x, seen)
    turned = low.value([seen.shape[i] for i in axes], x.dtype, [seen.stride[i] for i in axes])
    low.view(seen, turned, axes)
    made = low.value(turned.shape, x.dtype)
    low.emit("contiguous", [turned], made, {"shape": list(made.shape)})
    low.view(made, call.out)


@rule("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "upsample_bilinear2d", "upsample_bicubic2d")
@rule("upsample_linear1d", "upsample_trilinear3d", "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa")
@rule("_upsample_nearest_exact2d", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle")
def _upsample(low: Lowering, call: Call) -> None:
    x = low.now(call.args[0])
    if "shuffle" in call.op:
        _shuffled(low, call, x)
        return
    mode = next((m for m in ("nearest", "linear", "cubic") if m in call.op), None)
    smooth = {"antialias": True} if call.op.endswith("_aa") else {}
    low.emit("upsample", [x], call.out, {"shape": list(call.out.shape), **({"mode": mode} if mode else {}), **smooth})


@rule("im2col", "col2im")
def _windows(low: Lowering, call: Call) -> None:
    """F.unfold and F.fold; a single image has no batch."""
    x, out, first = low.now(call.args[0]), call.out, 1 if call.op == "im2col" else 2
    window, stride = call.arg(first, "kernel_size", None), call.arg(first + 3, "stride", None)
    shape = list(out.shape)
    if len(x.shape) == (3 if call.op == "im2col" else 2):
        seen = low.value((1, *x.shape), x.dtype)
        low.view(x, seen)
        x, shape = seen, [1, *shape]
    made = out if len(shape) == len(out.shape) else low.value(shape, out.dtype)
    keys = {"window": [int(each) for each in window], "stride": [int(each) for each in stride], "shape": shape}
    low.emit("unfold" if call.op == "im2col" else "fold", [x], made, keys)
    if made is not out:
        low.view(made, out)


@rule("_weight_norm_interface")
def _weight_norm(low: Lowering, call: Call) -> None:
    """A weight by its direction and length; the norms, which it gives too, are kept for its gradient and small."""
    v, g = low.now(call.args[0]), low.now(call.args[1])
    last = int(call.arg(2, "dim", 0)) % len(v.shape) == len(v.shape) - 1 and len(v.shape) > 1
    low.emit("weight_norm", [v, g], call.outs[0], {"last": True} if last else {})
    for norms in call.outs[1:]:
        low.emit("empty", [], norms, {"shape": list(norms.shape) or [1]})


@rule("grid_sampler", "grid_sampler_2d", "grid_sampler_3d")
def _sampled(low: Lowering, call: Call) -> None:
    x, places = low.now(call.args[0]), low.now(call.args[1])
    mode = ("linear", "nearest", "cubic")[int(call.arg(2, "interpolation_mode", 0))]
    inside = {"border": True} if int(call.arg(3, "padding_mode", 0)) > 0 else {}
    low.emit("grid_sample", [x, places], call.out, {"mode": mode, **inside})


@rule("pad", "constant_pad_nd", "reflection_pad1d", "reflection_pad2d", "replication_pad1d", "replication_pad2d")
def _pad(low: Lowering, call: Call) -> None:
    x = low.now(call.args[0])
    if x.numel == 0:  # a border of nothing but itself
        low.emit("fill", [], call.out, {"shape": list(call.out.shape) or [1]})
    elif x.shape == call.out.shape and x.dense and not x.contiguous:
        call.out.stride = x.stride  # a border of nothing is still a copy, which lies as x does
        pointwise(low, "addu", [x], call.out)
    elif x.shape == call.out.shape:
        low.emit("copy", [x], call.out, {"shape": list(call.out.shape) or [1]})
    elif call.out.numel < x.numel:  # negative padding cuts
        low.emit("slice", [x], call.out, {"shape": list(call.out.shape)})
    else:
        low.emit("pad", [x], call.out, {"shape": list(call.out.shape)})
