"""A model's shadow: the same modules over tensors without memory.

Capturing never touches the user's weights. A deep copy is made in which every parameter and buffer is replaced by one on
the meta device, so that a model of 70 billion parameters costs its Python objects alone, and nothing that the capture
changes (attention, dtype, training flag) is seen by the original.

The shadow computes in bf16: casts to fp32 then stand in the graph where the model raises its precision, and casts to bf16
are those back to the model's own format, whichever the request chooses later.
"""

from __future__ import annotations

import copy
from collections import Counter
from types import CellType, FunctionType
from typing import Any

import torch

from .compat import keeps_deepcopy
from .errors import SPARSE, ExportError
from .known import on_cpu

__all__ = ["MODEL_DTYPE", "main_dtype", "shadow", "shadow_tensor"]

MODEL_DTYPE = torch.bfloat16


def main_dtype(model: torch.nn.Module) -> torch.dtype:
    """The floating-point format of most of the model's parameters."""
    count: Counter[torch.dtype] = Counter()
    for p in model.parameters():
        if p.is_floating_point():
            count[p.dtype] += p.numel()
    return count.most_common(1)[0][0] if count else torch.float32


def shadow_tensor(x: torch.Tensor, main: torch.dtype) -> torch.Tensor:
    """The same sizes on the meta device, in the shadow's format where it had the model's."""
    dtype = MODEL_DTYPE if x.dtype == main else x.dtype
    if x.layout != torch.strided:
        raise ExportError(SPARSE, code="operator", where="model")
    return torch.empty_strided(x.size(), x.stride(), dtype=dtype, device="meta")


def _rebound(function: Any, memo: dict[int, Any]) -> Any:
    """A function of the original's whose closure or defaults hold parts that were copied, with the copies."""
    if not isinstance(function, FunctionType):
        return function

    def now(x: Any) -> Any:
        return memo.get(id(x), x)

    try:
        cells = tuple(CellType(now(cell.cell_contents)) for cell in function.__closure__ or ())
    except ValueError:  # a name that has no value yet
        return function
    made = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, cells or None)
    made.__defaults__ = tuple(now(x) for x in function.__defaults__) if function.__defaults__ else None
    made.__kwdefaults__ = {k: now(x) for k, x in function.__kwdefaults__.items()} if function.__kwdefaults__ else None
    return made


def _rebind_hooks(copied: torch.nn.Module, memo: dict[int, Any]) -> None:
    """Hooks are functions, which copies share: those that write to the model they were made in would write to the original."""
    for module in copied.modules():
        for table in (module._forward_hooks, module._forward_pre_hooks):
            for key, hook in table.items():
                table[key] = _rebound(hook, memo)


def shadow(model: torch.nn.Module, main: torch.dtype, mode: Any = None) -> torch.nn.Module | None:
    """The copy, or None when the module cannot be copied. `mode`: see known.py."""
    memo: dict[int, Any] = {}
    for p in model.parameters():
        memo[id(p)] = torch.nn.Parameter(shadow_tensor(p.detach(), main), requires_grad=p.requires_grad)
    for b in model.buffers():
        memo[id(b)] = shadow_tensor(b.detach(), main)
    for module in model.modules():
        for value in vars(module).values():
            if isinstance(value, torch.Tensor) and id(value) not in memo:
                memo[id(value)] = shadow_tensor(value.detach(), main)
    if mode is not None:
        memo = {key: on_cpu(x, mode) for key, x in memo.items()}
    try:
        copied = copy.deepcopy(model, memo)
        _rebind_hooks(copied, memo)
        return copied
    except Exception as error:  # noqa: BLE001 - whatever a module's own copying raises
        if keeps_deepcopy(error):
            return None
        raise
