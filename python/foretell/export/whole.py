"""Layers of torch.nn that run as one call on a GPU, and as something else over tensors without memory.

Recurrent layers are one call of cuDNN; tracing takes them apart into their steps. ``nn.TransformerEncoderLayer`` has a
fast path in evaluation, which asks for a real device before it is taken. Both stacks of ``nn.Transformer`` look at a mask's
values to see whether it is the causal one. While a model is captured they are answered as a GPU would run them.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from . import operators
from .lower_dense import linear
from .nodes import Lowering
from .registry import rule
from .values import Call, Value

__all__ = ["whole_layers"]

_KINDS = {"lstm": "lstm", "gru": "gru", "rnn_tanh": "rnn", "rnn_relu": "rnn"}


# -- recurrent layers --------------------------------------------------------------------------------


def _called(name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    """``torch._VF``'s function of this name, as one operator."""

    def run(x: torch.Tensor, *rest: Any) -> Any:
        packed: torch.Tensor | None = None
        if isinstance(rest[0], torch.Tensor) and not rest[0].is_floating_point():  # sizes of a packed sequence's steps
            packed, (states, weights, bias, layers, dropout, train, both) = rest[0], rest[1:]
            first = False
        else:
            states, weights, bias, layers, dropout, train, both, first = rest
        states = list(states) if isinstance(states, (list, tuple)) else [states]
        each = (4 if bias else 2) * layers * (2 if both else 1)
        if len(weights) != each:  # with projections: not what one kernel does
            return plain(x, *rest)
        alone = x.dim() == 2 and packed is None  # one sequence, without a batch
        if alone:
            x, first = x.unsqueeze(1), False
            states = [s.unsqueeze(1) if s.dim() == 2 else s for s in states]
        dropped = float(dropout) if train else 0.0
        kind = _KINDS[name]
        y, h, c = operators.recurrent(x, states, list(weights), packed, kind, bias, layers, dropped, both, first)
        if alone:
            y, h, c = y.squeeze(1), h.squeeze(1), c.squeeze(1)
        return (y, h, c) if kind == "lstm" else (y, h)

    return run


@rule("recurrent")
def _recurrent(low: Lowering, call: Call) -> None:
    x, _, weights, packed, kind, bias, layers, dropout, both, first = call.args
    x = low.now(x)
    if first and packed is None:  # cuDNN wants steps first: a copy in, a view out
        turned = low.value((x.shape[1], x.shape[0], x.shape[2]), x.dtype, (x.stride[1], x.stride[0], x.stride[2]))
        low.view(x, turned, [1, 0, 2])
        x = low.value(turned.shape, x.dtype)
        low.copy(turned, x)
    ways = 2 if both else 1
    per = 4 if bias else 2
    hidden = low.now(weights[1]).shape[-1]
    held = {"layers": int(layers), "inputs": x.shape[-1]}  # one call holds the weights of all layers
    given = iter(range(0, len(weights), per))
    for layer in range(layers):
        gates: list[Value] = []
        parameters: dict[str, Value] = {}
        for suffix in ("", "_reverse")[:ways]:
            at = next(given)
            w_in, w_state = low.now(weights[at]), low.now(weights[at + 1])
            made = low.value((*x.shape[:-1], w_in.shape[0]), x.dtype)
            linear(low, x, w_in, weights[at + 2] if bias else None, made, "nk")
            gates.append(made)
            parameters["weight" + suffix] = w_state
            if bias:
                parameters["bias" + suffix] = low.now(weights[at + 3])
        keys: dict[str, Any] = {"kind": kind, **held}
        if packed is not None:
            keys["steps"] = low.now(packed).numel
        y = low.value((*x.shape[:-1], ways * hidden), x.dtype)
        low.emit("recurrence", gates, y, keys, parameters)
        x = y
        if dropout and low.training and layer + 1 < layers:
            x = low.like(y)
            low.emit("dropout", [y], x, {"p": float(dropout)})
    if first and packed is None:
        low.view(x, call.outs[0], [1, 0, 2])
    else:
        low.alias(call.outs[0], x)
    for state in call.outs[1:]:  # written by the same kernels
        op = "view" if state.numel == x.numel else "slice" if state.numel < x.numel else "expand"
        low.emit(op, [x], state, {"shape": list(state.shape), **({"strided": False} if op == "view" else {})})


@rule("lstm_cell", "gru_cell")
def _cell(low: Lowering, call: Call) -> None:
    """A step: a product with the input, one with the state, and one kernel for all the gates (PyTorch's
    ``_thnn_fused_lstm_cell`` and ``_thnn_fused_gru_cell``), which adds the biases too."""
    x, states, w_in, w_state = call.args[:4]
    states = [low.now(s) for s in (states if isinstance(states, (list, tuple)) else [states])]
    gates = []
    for operand, weight in ((x, w_in), (states[0], w_state)):
        operand, weight = low.now(operand), low.now(weight)
        made = low.value((*operand.shape[:-1], weight.shape[0]), operand.dtype)
        linear(low, operand, weight, None, made, "nk")
        gates.append(made)
    biases = [low.now(b) for b in call.args[4:6] if b is not None]
    kept = gates[0].bytes * (1 if call.op == "lstm_cell" else 5 / 3)  # what its gradient wants again
    for i, out in enumerate(call.outs):
        moved = out.bytes if i else sum(g.bytes for g in gates) + kept + states[-1].bytes + out.bytes
        operands = [*gates, states[-1], *biases] if i == 0 else [gates[0]]
        low.emit(call.op, operands, out, {"bytes": int(moved), "shape": list(out.shape)})


# -- the encoder's fast path -------------------------------------------------------------------------


def _fast(layer: nn.TransformerEncoderLayer, src: torch.Tensor, masks: tuple[Any, ...]) -> bool:
    """Whether evaluation takes the fast path (the conditions of PyTorch's own ``forward``; with a mask its kernels are
    others, and the ordinary path is near enough)."""
    return (
        src.dim() == 3
        and not layer.training
        and all(mask is None for mask in masks)
        and _fast_attention(layer.self_attn)
        and layer.activation_relu_or_gelu != 0
        and layer.norm1.eps == layer.norm2.eps
        and layer.linear1.bias is not None
    )


def _fast_attention(attention: nn.MultiheadAttention) -> bool:
    return (
        not attention.training
        and not torch.is_grad_enabled()
        and attention.batch_first
        and attention.in_proj_bias is not None
        and attention.bias_k is None
        and not attention.add_zero_attn
        and attention._qkv_same_embed_dim
        and attention.num_heads % 2 == 0
        and attention.head_dim % 8 == 0
        and torch.backends.mha.get_fastpath_enabled()
    )


def _attend(attention: nn.MultiheadAttention, x: torch.Tensor) -> torch.Tensor:
    heads = (attention.num_heads, attention.head_dim)
    qkv = nn.functional.linear(x, attention.in_proj_weight, attention.in_proj_bias)
    q, k, v = (part.unflatten(-1, heads).transpose(1, 2) for part in qkv.chunk(3, -1))
    y = nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
    del qkv, q, k, v
    return nn.functional.linear(y, attention.out_proj.weight, attention.out_proj.bias)


def _encode(layer: nn.TransformerEncoderLayer, src: torch.Tensor) -> torch.Tensor:
    """What ``torch._transformer_encoder_layer_fwd`` launches."""
    x = _attend(layer.self_attn, layer.norm1(src) if layer.norm_first else src)
    x = x.add_(src)
    if not layer.norm_first:
        x = layer.norm1(x)
    before = x
    if layer.norm_first:
        x = layer.norm2(x)
    name = "relu" if layer.activation_relu_or_gelu == 1 else "gelu"
    x = operators.linear_then(x, layer.linear1.weight, layer.linear1.bias, name)
    x = nn.functional.linear(x, layer.linear2.weight, layer.linear2.bias)
    x = x.add_(before)
    return x if layer.norm_first else layer.norm2(x)


@rule("linear_then")
def _linear_then(low: Lowering, call: Call) -> None:
    x, w, bias, name = call.args
    linear(low, x, low.now(w), bias, call.out, "nk")
    low.nodes[-1].keys["activation"] = name


def _causal(mask: torch.Tensor | None, is_causal: bool | None = None, size: int | None = None) -> bool:
    """What ``nn.Transformer`` finds out by comparing a mask with the causal one of its size and format: values are not
    there, and a square mask is taken to be it."""
    if is_causal is not None or mask is None:
        return bool(is_causal)
    length = size if size is not None else mask.shape[-2]
    return tuple(mask.shape) == (length, length)


@contextlib.contextmanager
def whole_layers() -> Iterator[None]:
    """While a model is captured: recurrent layers and encoder layers as a GPU runs them."""
    functions = torch._VF
    stacks = nn.modules.transformer
    looked = stacks._detect_is_causal_mask
    before = {name: functions.__dict__.get(name) for name in _KINDS}
    plain = nn.TransformerEncoderLayer.forward

    def forward(
        self: nn.TransformerEncoderLayer,
        src: torch.Tensor,
        src_mask: torch.Tensor | None = None,
        src_key_padding_mask: torch.Tensor | None = None,
        is_causal: bool = False,
    ) -> torch.Tensor:
        if _fast(self, src, (src_mask, src_key_padding_mask)):
            return _encode(self, src)
        return plain(self, src, src_mask, src_key_padding_mask, is_causal)

    multi = nn.MultiheadAttention.forward

    def attend(self: nn.MultiheadAttention, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        """The fast path of evaluation, under the conditions of PyTorch's own ``forward``."""
        given = inspect.signature(multi).bind(self, query, key, value, *args, **kwargs)
        given.apply_defaults()
        said = given.arguments
        plainly = said["key_padding_mask"] is None and said["attn_mask"] is None and not said["need_weights"]
        if query is key and key is value and plainly and query.dim() == 3 and _fast_attention(self):
            return _attend(self, query), None
        return multi(self, query, key, value, *args, **kwargs)

    try:
        nn.MultiheadAttention.forward = attend  # type: ignore[method-assign]
        for name in _KINDS:
            setattr(functions, name, _called(name, getattr(functions, name)))
        nn.TransformerEncoderLayer.forward = forward  # type: ignore[method-assign]
        stacks._detect_is_causal_mask = _causal
        yield
    finally:
        nn.MultiheadAttention.forward = multi  # type: ignore[method-assign]
        stacks._detect_is_causal_mask = looked
        nn.TransformerEncoderLayer.forward = plain  # type: ignore[method-assign]
        for name, value in before.items():
            if value is None:
                delattr(functions, name)
            else:
                setattr(functions, name, value)
