"""What an inference pass holds at once, counted while the model's own code runs.

How long a tensor lives is decided by Python: by a function's variables, by arguments that callers still hold. A graph of
operators does not show it. So the model runs once more, over tensors without memory, while storages are counted as they
come and go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from .._recorder.live_bytes import LiveBytes

__all__ = ["Held", "held_bytes"]


@dataclass
class Held:
    """Bytes beyond weights and inputs."""

    peak: int
    convolutions: list[int]  # while each of them ran, in the order of their calls, without their workspaces


class _Counted(TorchDispatchMode):
    def __init__(self, live: LiveBytes, answer: bool) -> None:
        super().__init__()
        self.live, self.answer = live, answer
        self.convolutions: list[int] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        for x in pytree.tree_leaves((args, kwargs)):
            if isinstance(x, torch.Tensor):
                self.live.see(x, fresh=False)
        if func is torch.ops.aten._local_scalar_dense.default and args[0].is_meta:  # a check of values that are not there
            return self.answer
        if func is torch.ops.foretell.attention.default and written_out(args[3]) and args[0].shape[1] == args[1].shape[1]:
            with self:  # scores and all, as PyTorch's fallback makes them
                torch.ops.aten._scaled_dot_product_attention_math.default.decompose(*args[:4])
        out = func(*args, **(kwargs or {}))
        for x in pytree.tree_leaves(out):
            if isinstance(x, torch.Tensor):
                self.live.see(x, fresh=True)
        if func is torch.ops.aten.convolution.default:
            self.convolutions.append(self.live.live - self.live.before + _copied(args[0]))
        return out


def _copied(x: torch.Tensor) -> int:
    """Bytes of the copy that PyTorch makes of a sequence which lies turned, before it is convolved (ATen's Convolution.cpp).
    How images lie is not known here: convolutions over tensors without memory do not keep channels last."""
    return x.numel() * x.element_size() if x.dim() == 3 and not x.is_contiguous() else 0


class _AsOneKernel(TorchFunctionMode):
    """Operators that a GPU runs as one kernel and tensors without memory take apart: their results alone."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name == "scaled_dot_product_attention":
            q, _, v = _operands(args, kwargs, ("query", "key", "value"))
            mask = args[3] if len(args) > 3 else (kwargs or {}).get("attn_mask")
            if q.dim() == 4 and not written_out(mask):  # others are, scores and all
                return _attended(q, v)
        if name == "linear":
            x, weight = _operands(args, kwargs, ("input", "weight"))
            if x.dim() > 1 and weight.dim() == 2:
                rows = x if x.is_contiguous() else x.contiguous()
                return rows.new_empty(*rows.shape[:-1], weight.shape[0])
        return func(*args, **(kwargs or {}))


def written_out(mask: torch.Tensor | None) -> bool:
    """Whether PyTorch's fused kernels do not read a mask as it lies: they want its last axis innermost."""
    return mask is not None and mask.dim() > 0 and mask.shape[-1] > 1 and mask.stride(-1) != 1


def _operands(args: Any, kwargs: Any, names: tuple[str, ...]) -> list[torch.Tensor]:
    """Operands by place or by name, as models write them."""
    return [args[i] if i < len(args) else kwargs[name] for i, name in enumerate(names)]


def _attended(q: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    if q.stride(1) < q.stride(2):  # heads side by side, as the kernel writes them
        batch, heads, length, _ = q.shape
        return q.new_empty(batch, length, heads, v.shape[-1]).transpose(1, 2)
    return q.new_empty(*q.shape[:-1], v.shape[-1])


def held_bytes(run: Callable[[], Any], before: Iterable[torch.Tensor]) -> Held | None:
    """The most bytes that tensors made by `run` hold at once, and those at each convolution, whose workspace comes on
    top; `before`: what is there already. None where the model cannot run over tensors without memory."""
    there = list(before)
    for answer in (False, True):  # models look for what is wrong and find nothing, or assert that all is right
        live = LiveBytes()
        for x in there:
            live.see(x, fresh=False)
        counted = _Counted(live, answer)
        try:
            with torch.no_grad(), _AsOneKernel(), counted:
                run()
        except Exception:  # noqa: BLE001, S112 - a model may look at values, which captures answer and this does not
            continue
        held = live.peak - live.before
        return Held(held, counted.convolutions) if held > 0 else None
    return None
