"""Lookups, scatters, concatenations, constants, losses."""

from __future__ import annotations

from typing import Any

import torch

from .lower_pointwise import pointwise
from .nodes import Lowering
from .registry import rule
from .values import Call, Value

__all__: list[str] = []


# -- lookups -----------------------------------------------------------------------------------------


@rule("embedding", "embedding_renorm_")
def _embedding(low: Lowering, call: Call) -> None:
    table, indices = low.now(call.args[0]), call.args[1]
    if table.role != "parameter":
        _gathered(low, "index_select", table, indices, call.out, {})
        return
    keys = {"rows": table.shape[0], "features": table.shape[1]}
    low.emit("embedding", [indices], call.out, keys, {"table": table})


@rule("embedding_bag", "_embedding_bag")
def _embedding_bag(low: Lowering, call: Call) -> None:
    table, indices = low.now(call.args[0]), low.now(call.args[1])
    keys = {"rows": table.shape[0], "features": table.shape[1]}
    if table.role != "parameter":
        low.emit("index_select", [table, indices], call.outs[0], {"shape": list(call.outs[0].shape)})
        return
    bags = call.outs[0].shape[0]
    if bags and indices.numel % bags == 0:
        if not indices.contiguous:  # the kernel reads them in order
            dense = low.value(indices.shape, indices.dtype)
            low.copy(indices, dense)
            indices = dense
        low.emit("embedding", [indices], call.outs[0], {**keys, "bag": indices.numel // bags}, {"table": table})
        return
    made = low.value((*indices.shape, table.shape[1]), table.dtype)
    low.emit("embedding", [indices], made, keys, {"table": table})
    low.emit("slice", [made], call.outs[0], {"shape": list(call.outs[0].shape)})


def _gathered(low: Lowering, op: str, x: Value, indices: Value | None, out: Value, keys: dict[str, Any]) -> None:
    ins = [x] if indices is None else [x, indices]
    low.emit(op, ins, out, {"shape": list(out.shape), **keys})


@rule("index_select", "gather", "take_along_dim", "take")
def _gather(low: Lowering, call: Call) -> None:
    x = low.now(call.args[0])
    if call.op == "index_select":
        _gathered(low, "index_select", x, call.args[2], call.out, {})
    else:
        _gathered(low, "take_along", x, call.args[2 if call.op == "gather" else 1], call.out, {})


@rule("index", "_unsafe_index")
def _index(low: Lowering, call: Call) -> None:
    x = low.now(call.args[0])
    indices = [i for i in call.args[1] if isinstance(i, Value)]
    if any(i.dtype == torch.bool for i in indices):
        low.emit("masked_select", [x, indices[0]], call.out, {"shape": list(call.out.shape)})
        return
    whole_rows = len(call.args[1]) < len(x.shape) and call.args[1][0] is not None and x.dtype.is_floating_point
    _gathered(low, "index" if whole_rows else "take_along", x, indices[0] if indices else None, call.out, {})


@rule("index_put", "index_put_", "_index_put_impl_", "scatter", "scatter_", "scatter_add", "scatter_add_", "index_add")
@rule("index_add_", "index_copy", "index_copy_", "index_fill", "index_fill_", "slice_scatter", "select_scatter")
@rule("scatter_reduce", "scatter_reduce_", "masked_scatter", "masked_scatter_", "_unsafe_index_put", "put_", "fill_diagonal_")
def _scatter(low: Lowering, call: Call) -> None:
    x = low.now(call.args[0])
    in_place = call.op.endswith("_")
    name = call.op.rstrip("_")
    source = _scattered(call)
    adds = name in ("scatter_add", "index_add", "scatter_reduce") or bool(call.arg(3, "accumulate", False)) and "put" in name
    op = "index_add" if adds else "index_put" if "index" in name or "put" in name else "scatter"
    if source is None:
        op = "index_fill"
    indices = [v for v in call.tensors() if v is not call.args[0] and v is not source and not v.dtype.is_floating_point]
    keys: dict[str, Any] = {"in_place": True} if in_place else {}
    ins = [x, source] if source is not None else [x]
    if source is None:
        keys["count"] = max((i.numel for i in indices), default=1)
    low.emit(op, ins, call.out, keys)
    if in_place and x.role == "made":
        low.alias(x, call.out)


def _scattered(call: Call) -> Value | None:
    """The tensor whose elements go somewhere, where it is not a number."""
    name = call.op.rstrip("_")
    place = {"index_put": 2, "_index_put_impl": 2, "_unsafe_index_put": 2, "slice_scatter": 1, "select_scatter": 1}
    place |= {"masked_scatter": 2, "put": 2}
    found = call.args[place.get(name, 3)] if len(call.args) > place.get(name, 3) else call.kwargs.get("src")
    return found if isinstance(found, Value) and found.numel > 1 else None


@rule("one_hot")
def _one_hot(low: Lowering, call: Call) -> None:
    low.emit("one_hot", [call.args[0]], call.out, {"classes": call.out.shape[-1]})


@rule("masked_select", "nonzero", "unique", "bincount", "histc", "unique_consecutive", "_unique2", "nonzero_static")
def _by_data(low: Lowering, call: Call) -> None:
    x = low.now(call.args[0])
    shape = list(call.out.shape) or [1]
    typed = {} if call.out.dtype == x.dtype else {"dtype": low.word(call.out.dtype)}
    low.emit("masked_select", [x], call.out, {"shape": shape, **typed})


# -- joining -----------------------------------------------------------------------------------------


@rule("cat", "concat", "concatenate", "stack", "hstack", "vstack", "column_stack")
def _cat(low: Lowering, call: Call) -> None:
    parts = [low.now(x) for x in call.args[0]]
    parts = [x for x in parts if x.numel > 0]
    if len(parts) == 1:
        low.emit("copy", parts, call.out, {"shape": list(call.out.shape)})
        return
    low.emit("cat", parts, call.out, {"shape": list(call.out.shape)})


@rule("repeat", "tile", "repeat_interleave", "roll", "flip", "rot90", "fliplr", "flipud")
def _repeat(low: Lowering, call: Call) -> None:
    x = low.now(call.args[0])
    if call.out.numel == x.numel and call.op in ("repeat", "tile"):
        low.view(x, call.out)
        return
    if call.op == "roll":  # a kernel for every axis, which computes where each element comes from
        axes = call.arg(2, "dims", ())
        for _ in range(max(1, len(axes)) - 1):
            made = low.value(call.out.shape, call.out.dtype)
            low.emit("copy", [x], made, {"shape": list(made.shape), "across": True})
            x = made
        low.emit("copy", [x], call.out, {"shape": list(call.out.shape), "across": True})
        return
    low.emit("copy", [x], call.out, {"shape": list(call.out.shape)})


@rule("triu", "tril", "triu_", "tril_")
def _triangle(low: Lowering, call: Call) -> None:
    pointwise(low, call.op.rstrip("_"), [call.args[0]], call.out)


# -- constants ---------------------------------------------------------------------------------------


@rule("arange", "full", "zeros", "ones", "empty", "empty_strided", "rand", "randn", "randint", "randperm", "scalar_tensor")
@rule("zeros_like", "ones_like", "full_like", "empty_like", "rand_like", "randn_like", "randint_like", "linspace", "eye")
@rule("new_zeros", "new_ones", "new_full", "new_empty", "new_empty_strided", "tril_indices", "triu_indices", "bernoulli")
@rule("normal", "fill", "logspace", "hann_window")
def _fill(low: Lowering, call: Call) -> None:
    device = call.kwargs.get("device")
    if call.out.numel <= 1 and isinstance(device, torch.device) and device.type == "cpu":
        call.out.role = "constant"  # a number on the host: nothing is launched
        return
    if call.op.startswith(("empty", "new_empty")):
        low.emit("empty", [], call.out, {"shape": list(call.out.shape) or [1], "dtype": low.word(call.out.dtype)})
        return
    low.emit("fill", [], call.out, {"shape": list(call.out.shape) or [1], "dtype": low.word(call.out.dtype)})


@rule("fill_", "zero_", "normal_", "uniform_", "bernoulli_", "exponential_", "random_", "clamp_fill_")
def _fill_in_place(low: Lowering, call: Call) -> None:
    x = low.now(call.args[0])
    low.emit("fill", [], call.out, {"shape": list(call.out.shape) or [1], "dtype": low.word(call.out.dtype)})
    if x.role == "made":
        low.alias(x, call.out)


# -- losses ------------------------------------------------------------------------------------------


@rule("cross_entropy_loss")
def _cross_entropy(low: Lowering, call: Call) -> None:
    logits, labels = low.now(call.args[0]), low.now(call.args[1])
    if len(logits.shape) > 2:  # classes on the second axis
        rows = logits.numel // logits.shape[1]
        flat = low.value((rows, logits.shape[1]), logits.dtype)
        low.view(logits, flat)
        logits = flat
    if low.training:
        low.emit("cross_entropy", [logits, labels], call.out)
        return
    likelihood = low.like(logits)  # asked for without a gradient: a file's losses are training's alone
    low.emit("log_softmax", [logits], likelihood)
    _chosen(low, likelihood, labels, call.out)


def _chosen(low: Lowering, likelihood: Value, labels: Value, out: Value) -> None:
    """nll_loss: a number of every row."""
    rows = max(1, likelihood.numel // max(1, likelihood.shape[-1]))
    low.emit("nll_loss_forward", [likelihood, labels], out, {"bytes": 64 * rows, "shape": list(out.shape) or [1]})


@rule("nll_loss", "nll_loss_nd", "nll_loss2d", "nll_loss_forward")
def _nll(low: Lowering, call: Call) -> None:
    likelihood, labels = low.now(call.args[0]), low.now(call.args[1])
    if low.training:
        low.emit("nll_loss", [likelihood, labels], call.outs[0])
    else:
        _chosen(low, likelihood, labels, call.outs[0])


@rule("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "binary_cross_entropy", "soft_margin_loss")
def _pair_loss(low: Lowering, call: Call) -> None:
    names = {"mse_loss": "mse_loss", "l1_loss": "l1_loss", "binary_cross_entropy": "bce_with_logits"}
    _loss_over(low, names.get(call.op, "smooth_l1_loss"), call)


@rule("binary_cross_entropy_with_logits")
def _bce(low: Lowering, call: Call) -> None:
    _loss_over(low, "bce_with_logits", call)


def _loss_over(low: Lowering, op: str, call: Call) -> None:
    x, y = low.now(call.args[0]), low.now(call.args[1])
    if call.out.shape == () and low.training:
        low.emit(op, [x, y], call.out)
        return
    if call.out.shape == ():  # without a gradient: differences, their function, its mean
        made = low.value(x.shape, x.dtype)
        pointwise(low, "sub", [x, y], made)
        low.emit("mean", [made], call.out, {"axes": list(range(len(x.shape))), "keepdim": False})
        return
    made = low.value(call.out.shape, call.out.dtype)
    pointwise(low, "sub", [x, y], made)
    pointwise(low, "mul", [made, made], call.out)


# -- what nothing is launched for --------------------------------------------------------------------


@rule("_assert_tensor_metadata", "_assert_async", "_assert_scalar", "sym_size", "sym_stride", "sym_numel", "sym_constrain_range")
@rule("_functional_assert_async", "sym_constrain_range_for_size", "resolve_conj", "resolve_neg", "is_same_size")
@rule("record_stream", "set_", "retain_grad", "size", "numel", "stride", "is_floating_point", "_backward")
def _nothing(low: Lowering, call: Call) -> None:
    for out in call.outs:
        if call.args and isinstance(call.args[0], Value):
            low.alias(out, call.args[0])


@rule("item", "_local_scalar_dense")
def _item(low: Lowering, call: Call) -> None:
    low.emit("sync", [call.args[0]], [], {})
