"""Operators of our own, which stand for what a request decides later.

How attention is launched (fused, written out) and how experts are is a question of the request and of the GPU, not of the
model. While a Hugging Face model is captured, its pluggable attention and experts call these; each becomes one node.
So does an activation that has a gradient of its own. Plain ``scaled_dot_product_attention`` calls need no such help.
"""

from __future__ import annotations

from typing import List, Optional, Tuple  # noqa: UP035 - what custom_op reads in every version that is supported

import torch
from torch import Tensor

__all__ = ["attention", "ctc_loss", "experts", "flexible", "gelu_again", "linear_then", "recurrent", "state_steps"]


@torch.library.custom_op("foretell::attention", mutates_args=())
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    causal: bool,
    masked: bool,
    window: int,
    softcap: float,
    dropout: float,
    scale: float,
) -> Tensor:
    """softmax(q k' scale + mask) v of [batch, heads, length, dim] operands; [batch, length, heads, dim] comes out."""
    raise NotImplementedError("foretell::attention is captured, never run")


@attention.register_fake
def _(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    causal: bool,
    masked: bool,
    window: int,
    softcap: float,
    dropout: float,
    scale: float,
) -> Tensor:
    batch, heads, length, _ = q.shape
    return q.new_empty(batch, length, heads, v.shape[-1])


@torch.library.custom_op("foretell::flexible", mutates_args=())
def flexible(q: Tensor, k: Tensor, v: Tensor, causal: bool, window: int, scale: float) -> Tensor:
    """Attention that passes over what its mask hides, whatever the request says of other attention."""
    raise NotImplementedError("foretell::flexible is captured, never run")


@flexible.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, causal: bool, window: int, scale: float) -> Tensor:
    batch, heads, length, _ = q.shape
    return q.new_empty(batch, length, heads, v.shape[-1])


@torch.library.custom_op("foretell::experts", mutates_args=())
def experts(
    x: Tensor,
    chosen: Tensor,
    weights: Tensor,
    up: Tensor,
    down: Tensor,
    up_bias: Tensor | None,
    down_bias: Tensor | None,
    inter: int,
    gated: bool,
    activation: str,
) -> Tensor:
    """Every token through the experts it was routed to, weighed and summed."""
    raise NotImplementedError("foretell::experts is captured, never run")


@experts.register_fake
def _(
    x: Tensor,
    chosen: Tensor,
    weights: Tensor,
    up: Tensor,
    down: Tensor,
    up_bias: Tensor | None,
    down_bias: Tensor | None,
    inter: int,
    gated: bool,
    activation: str,
) -> Tensor:
    return torch.empty_like(x)


@torch.library.custom_op("foretell::recurrent", mutates_args=())
def recurrent(
    x: Tensor,
    states: List[Tensor],  # noqa: UP006
    weights: List[Tensor],  # noqa: UP006
    packed: Optional[Tensor],  # noqa: UP045
    kind: str,
    bias: bool,
    layers: int,
    dropout: float,
    both_ways: bool,
    batch_first: bool,
) -> Tuple[Tensor, Tensor, Tensor]:  # noqa: UP006
    """All layers and steps of an LSTM, a GRU or a plain recurrence: results of every step, the last states."""
    raise NotImplementedError("foretell::recurrent is captured, never run")


@recurrent.register_fake
def _(
    x: Tensor,
    states: List[Tensor],  # noqa: UP006
    weights: List[Tensor],  # noqa: UP006
    packed: Optional[Tensor],  # noqa: UP045
    kind: str,
    bias: bool,
    layers: int,
    dropout: float,
    both_ways: bool,
    batch_first: bool,
) -> Tuple[Tensor, Tensor, Tensor]:  # noqa: UP006
    width = states[0].shape[-1] * (2 if both_ways else 1)
    if batch_first and packed is None:
        y = x.new_empty(x.shape[1], x.shape[0], width).transpose(0, 1)
    else:
        y = x.new_empty(*x.shape[:-1], width)
    return y, torch.empty_like(states[0]), torch.empty_like(states[-1])


@torch.library.custom_op("foretell::linear_then", mutates_args=())
def linear_then(x: Tensor, weight: Tensor, bias: Tensor, activation: str) -> Tensor:
    """A product with its bias and activation in one kernel of the library's (``_addmm_activation``)."""
    raise NotImplementedError("foretell::linear_then is captured, never run")


@linear_then.register_fake
def _(x: Tensor, weight: Tensor, bias: Tensor, activation: str) -> Tensor:
    return x.new_empty(*x.shape[:-1], weight.shape[0])


@torch.library.custom_op("foretell::gelu_again", mutates_args=())
def gelu_again(x: Tensor, half: Tensor, inner: Tensor) -> Tensor:
    """half * inner, whose gradient keeps x alone and computes everything again (bloom's autograd function)."""
    raise NotImplementedError("foretell::gelu_again is captured, never run")


@gelu_again.register_fake
def _(x: Tensor, half: Tensor, inner: Tensor) -> Tensor:
    return torch.empty_like(x)


@torch.library.custom_op("foretell::ctc_loss", mutates_args=())
def ctc_loss(log_probs: Tensor, targets: Tensor) -> Tensor:
    """A loss for each sequence of [steps, batch, classes] scores."""
    raise NotImplementedError("foretell::ctc_loss is captured, never run")


@ctc_loss.register_fake
def _(log_probs: Tensor, targets: Tensor) -> Tensor:
    return log_probs.new_empty(log_probs.shape[1] if log_probs.dim() == 3 else ())


@torch.library.custom_op("foretell::state_steps", mutates_args=())
def state_steps(kept: Tensor, added: Tensor, rows: Tensor, narrow: torch.dtype) -> Tuple[Tensor, Tensor]:  # noqa: UP006
    """state = kept[:, :, i] * state + added[:, :, i], then state in `narrow` times rows[:, i], for every step i of
    [batch, width, steps, size] operands: products of all steps [batch, width, steps], and the last state."""
    raise NotImplementedError("foretell::state_steps is captured, never run")


@state_steps.register_fake
def _(kept: Tensor, added: Tensor, rows: Tensor, narrow: torch.dtype) -> Tuple[Tensor, Tensor]:  # noqa: UP006
    batch, width, steps, size = kept.shape
    return kept.new_empty(batch, width, steps, dtype=narrow), kept.new_empty(batch, width, size)
