"""What CUDA would run in one kernel where other devices run several.

PyTorch chooses its implementation by the device of the tensors. A step that is recorded on the CPU or on the meta
device decomposes attention, dropout and RMSNorm into parts that a GPU never sees. So the call is noticed before it
decomposes, the parts inside it are left out of the recording, and one event with CUDA's name takes their place. The
parts of its backward pass are known by their sequence numbers: autograd numbers its nodes as they are made, and those
made inside the call form an unbroken range.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from .events import Tensor, spec_of

__all__ = ["FUSIBLE", "Fused", "Plan", "fused_call"]

FUSIBLE = ("scaled_dot_product_attention", "dropout", "rms_norm")  # names in torch.nn.functional


@dataclass
class Fused:
    """One kernel forward and, where gradients flow, one backward: operator names and their arguments by name."""

    forward: str
    forward_args: dict[str, Any]
    results: tuple[Any, ...]
    backward: str
    backward_args: dict[str, Any]
    backward_results: tuple[Any, ...]


def _as_they_are(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    return args, kwargs


@dataclass
class Plan:
    """How a call becomes one kernel. Arguments and result may be laid out in memory as that kernel leaves them."""

    fused: Fused
    arguments: Callable[..., tuple[tuple[Any, ...], Mapping[str, Any]]] = _as_they_are
    result: Callable[[Any], Any] = lambda result: result


def _bound(args: tuple[Any, ...], kwargs: Mapping[str, Any], names: str) -> dict[str, Any] | None:
    """Arguments by name; None when there are more than the call is known to have."""
    known = names.split()
    if len(args) > len(known) or any(key not in known for key in kwargs):
        return None
    return {**dict(zip(known, args, strict=False)), **kwargs}


def fused_call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Plan | None:
    """How this call becomes one kernel; None for a call that is recorded as it runs."""
    for known, make in _KNOWN:
        if function in known:
            return make(args, kwargs)
    return None


# -- attention -------------------------------------------------------------------------------------------------------

_HALF = (torch.float16, torch.bfloat16)
_LARGEST_HEAD = 256  # of FlashAttention


def _attention(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Plan | None:
    """Flash where CUDA would take it (16 bits, no mask tensor, heads of one size), otherwise memory-efficient."""
    said = _bound(args, kwargs, "query key value attn_mask dropout_p is_causal scale enable_gqa")
    if said is None:
        return None
    query, key, value = (said.get(name) for name in ("query", "key", "value"))
    tensors = [each for each in (query, key, value) if isinstance(each, torch.Tensor)]
    if len(tensors) < 3 or tensors[0].is_cuda or any(each.dim() != 4 for each in tensors):
        return None
    assert query is not None and key is not None and value is not None
    mask = said.get("attn_mask")
    same_heads = query.shape[1] == key.shape[1]
    flash = (
        mask is None
        and query.dtype in _HALF
        and query.shape[-1] == value.shape[-1]
        and query.shape[-1] <= _LARGEST_HEAD
    )
    if not flash and (not same_heads or query.dtype not in (*_HALF, torch.float32)):
        return None  # CUDA would decompose it as well
    dropout, causal = float(said.get("dropout_p") or 0.0), bool(said.get("is_causal") or False)
    specs = [spec_of(each) for each in (query, key, value)]
    bias = spec_of(mask) if isinstance(mask, torch.Tensor) else None

    batch, heads, length = query.shape[:3]
    size = value.shape[-1]
    result = Tensor((batch, heads, length, size), query.dtype, (length * heads * size, size, heads * size, 1))
    sums = Tensor((batch, heads, length), torch.float32, ())
    inputs = dict(zip(("query", "key", "value"), specs, strict=True))
    shared: dict[str, Any] = {**inputs, "dropout_p": dropout, "is_causal": causal, "scale": said.get("scale")}
    if flash:
        fused = Fused(
            "_scaled_dot_product_flash_attention",
            shared,
            (result, sums),
            "_scaled_dot_product_flash_attention_backward",
            {**shared, "grad_out": result, "out": result, "logsumexp": sums},
            tuple(specs),
        )
    else:
        shared["attn_bias"] = bias
        learns = torch.is_grad_enabled() and any(each.requires_grad for each in tensors)
        fused = Fused(
            "_scaled_dot_product_efficient_attention",
            {**shared, "compute_log_sumexp": learns},
            (result, sums),
            "_scaled_dot_product_efficient_attention_backward",
            {**shared, "grad_out_": result, "out": result, "logsumexp": sums},
            tuple(specs),
        )
    return Plan(fused, _with_gradients_laid_out, _laid_out)


def _laid_out(out: Any) -> Any:
    """CUDA's kernels write [batch, length, heads, size], so that joining the heads afterwards copies nothing."""
    return out.transpose(1, 2).contiguous().transpose(1, 2) if isinstance(out, torch.Tensor) else out


def _with_gradients_laid_out(
    args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    """CUDA's kernels give gradients the layout of what they are gradients of."""

    def like(tensor: torch.Tensor) -> torch.Tensor:
        alias = tensor.view_as(tensor)
        alias.register_hook(lambda gradient: torch.empty_like(tensor).copy_(gradient))
        return alias

    def each(value: Any) -> Any:
        learns = isinstance(value, torch.Tensor) and value.requires_grad and torch.is_grad_enabled()
        return like(value) if learns else value

    return tuple(each(value) for value in args), {key: each(value) for key, value in kwargs.items()}


# -- dropout and RMSNorm -----------------------------------------------------------------------------------------------


def _dropout(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Plan | None:
    said = _bound(args, kwargs, "input p training inplace train")
    if said is None or not isinstance(said.get("input"), torch.Tensor) or said["input"].is_cuda:
        return None
    training = said.get("training", said.get("train", True))
    probability = float(said.get("p", 0.5))
    if said.get("inplace") or not training or not 0 < probability < 1:
        return None
    spec = spec_of(said["input"])
    mask = Tensor(spec.shape, torch.bool, spec.strides)

    return Plan(
        Fused(
            "native_dropout",
            {"input": spec, "p": probability, "train": True},
            (spec, mask),
            "native_dropout_backward",
            {"grad_output": spec, "mask": mask, "scale": 1 / (1 - probability)},
            (spec,),
        )
    )


def _rms_norm(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Plan | None:
    said = _bound(args, kwargs, "input normalized_shape weight eps")
    if said is None or not isinstance(said.get("input"), torch.Tensor) or said["input"].is_cuda:
        return None
    spec, shape = spec_of(said["input"]), list(said["normalized_shape"])
    weight = spec_of(said["weight"]) if isinstance(said.get("weight"), torch.Tensor) else None
    if weight is not None and weight.dtype != spec.dtype:
        return None  # decomposed on CUDA too
    rows = Tensor(spec.shape[: len(spec.shape) - len(shape)] + (1,) * len(shape), torch.float32, ())

    inputs = {"input": spec, "normalized_shape": shape, "weight": weight}
    return Plan(
        Fused(
            "_fused_rms_norm",
            {**inputs, "eps": said.get("eps")},
            (spec, rows),
            "_fused_rms_norm_backward",
            {**inputs, "grad_out": spec, "rstd": rows, "output_mask": [True, weight is not None]},
            (spec, weight) if weight is not None else (spec,),
        )
    )


def _has_fused_rms_norm() -> bool:
    """CUDA has it since 2.9, with its own backward."""
    return hasattr(torch.ops.aten, "_fused_rms_norm_backward")


_Maker = Callable[[tuple[Any, ...], Mapping[str, Any]], "Plan | None"]
_KNOWN: list[tuple[tuple[Any, ...], _Maker]] = [
    ((F.scaled_dot_product_attention, torch._C._nn.scaled_dot_product_attention), _attention),  # pyright: ignore[reportAttributeAccessIssue]
    ((F.dropout, torch.dropout), _dropout),
]
if _has_fused_rms_norm():
    _KNOWN.append(((F.rms_norm, torch.rms_norm), _rms_norm))
