"""Attention: fused where the request has it so, of one's own shape, or written out as PyTorch does without a fused kernel."""

from __future__ import annotations

from typing import Any

from .nodes import Lowering
from .registry import rule
from .values import Call, Value

__all__: list[str] = []


def _attention(low: Lowering, q: Value, k: Value, v: Value, out: Value, extra: list[Value], keys: dict[str, Any]) -> None:
    keys = {name: value for name, value in keys.items() if value not in (False, 0, 0.0, None)}
    if extra and extra[0].dtype.is_floating_point and extra[0] not in low.restrided and _fused_takes(extra[0]):
        keys["mask_in_order"] = True
    low.emit("attention", [q, k, v, *extra], out, keys)


def _fused_takes(mask: Value) -> bool:
    """Whether PyTorch's fused kernels read a mask as it lies: only with its last axis innermost."""
    return not mask.shape or mask.shape[-1] == 1 or mask.stride[-1] == 1


@rule("gelu_again")
def _gelu_again(low: Lowering, call: Call) -> None:
    low.emit("gelu_again", [call.args[0], call.args[2]], call.out)


@rule("attention")
def _our_attention(low: Lowering, call: Call) -> None:
    q, k, v, mask, causal, masked, window, softcap, dropout, scale = call.args
    del scale
    q, k, v = low.now(q), low.now(k), low.now(v)
    batch, heads, length, _ = q.shape
    merged = low.value((batch, length, heads * v.shape[-1]), call.out.dtype)
    keys = {"causal": causal, "masked": masked, "window": window, "softcap": softcap}
    if low.training:
        keys["dropout"] = dropout
    _attention(low, q, k, v, merged, [low.now(mask)] if mask is not None else [], keys)
    low.view(merged, call.out)


@rule("flexible")
def _flexible(low: Lowering, call: Call) -> None:
    q, k, v, causal, window, scale = call.args
    del scale
    q, k, v = low.now(q), low.now(k), low.now(v)
    batch, heads, length, _ = q.shape
    merged = low.value((batch, length, heads * v.shape[-1]), call.out.dtype)
    _attention(low, q, k, v, merged, [], {"causal": causal, "window": window, "backend": "flash"})
    low.view(merged, call.out)


@rule("scaled_dot_product_attention", "_scaled_dot_product_attention_math_for_mps")
def _sdpa(low: Lowering, call: Call) -> None:
    q, k, v = (low.now(x) for x in call.args[:3])
    mask, p, causal = call.arg(3, "attn_mask"), call.arg(4, "dropout_p", 0.0), call.arg(5, "is_causal", False)
    shape = q.shape
    q, k, v = _four(low, q), _four(low, k), _four(low, v)
    batch, heads, length, _ = q.shape
    width = v.shape[-1]
    merged = low.value((batch, length, heads * width), call.out.dtype)
    # fused kernels take four axes and no others (sdp_utils' check_tensor_shapes), heads that are broadcast only when told so
    # (enable_gqa); otherwise PyTorch writes it out
    apart = len(shape) != 4 or (k.shape[1] != heads and not call.kwargs.get("enable_gqa", False))
    apart = apart or (mask is not None and not _fused_takes(low.now(mask)))
    keys: dict[str, Any] = {"causal": bool(causal), "masked": mask is not None, "backend": "math" if apart else "sdpa"}
    if low.training:
        keys["dropout"] = float(p or 0.0)
    _attention(low, q, k, v, merged, [low.now(mask)] if mask is not None else [], keys)
    # the kernel writes in the order of its queries: heads side by side where those came from a transposed view
    like = q if len(shape) == 4 else None
    four = low.value((batch, heads, length, width), call.out.dtype, _in_order_of(like, (batch, heads, length, width)))
    low.view(merged, four)
    low.restrided.add(four)
    low.view(four, call.out) if len(shape) != 4 else low.alias(call.out, four)


def _in_order_of(like: Value | None, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Strides of a dense result whose axes lie in memory as those of `like` do."""
    if like is None or like.stride[-1] != 1 or 0 in like.stride:
        return None
    stride, n = [0] * len(shape), 1
    for axis in sorted(range(len(shape)), key=lambda i: (like.stride[i], -i)):
        stride[axis] = n
        n *= shape[axis]
    return tuple(stride)


def _four(low: Lowering, x: Value) -> Value:
    """[..., heads, length, dim] with exactly one axis before the heads."""
    if len(x.shape) == 4:
        return x
    if len(x.shape) == 3:
        out = low.value((x.shape[0], 1, *x.shape[1:]), x.dtype, (x.stride[0], x.stride[0], *x.stride[1:]))
    elif len(x.shape) == 2:
        out = low.value((1, 1, *x.shape), x.dtype, (x.numel, x.numel, *x.stride))
    else:
        lead = 1
        for size in x.shape[:-3]:
            lead *= size
        out = low.value((lead, *x.shape[-3:]), x.dtype)
    low.view(x, out)
    return out
