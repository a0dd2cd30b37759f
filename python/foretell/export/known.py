"""Models whose loops and sizes follow whole numbers among their inputs: places of images, lengths, steps.

A capture knows no values. Where it fails because the model looks at some, it is tried once more with small whole numbers of
the example as constants, which PyTorch then follows: every operator on nothing but constants is computed, and code may look at
what comes out. Real values live on the CPU, so the shadow is there too, without memory.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes

__all__ = ["LIMIT", "constant", "followed", "is_known", "on_cpu", "values_mode"]

LIMIT = 1 << 16  # elements of a constant that is given
_FOLLOWED = 1 << 23  # of one that is computed from others: masks of a sequence by itself
_SOUND = {"isnan": False, "isinf": False, "isfinite": True, "isneginf": False, "isposinf": False}  # what checks are taken to find
_LIKELY = 0.5  # what a single random number is taken to be: what is dropped less often than not is kept
_MADE = ("arange", "linspace")  # of plain numbers alone: known as well
_FILLED = ("zeros", "ones")  # the same, by a size


def is_known(x: torch.Tensor) -> bool:
    """Whole numbers and truths that are there and few: what a model looks at."""
    return type(x) is torch.Tensor and x.device.type == "cpu" and not x.is_floating_point() and not x.is_complex() and x.numel() <= LIMIT


def constant(x: torch.Tensor) -> torch.Tensor:
    """The same values as a constant of the program that is being captured."""
    return torch.tensor(x.tolist(), dtype=x.dtype).reshape(x.shape)


def values_mode() -> Any:
    """A place for tensors without memory that say they are on the CPU."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    return FakeTensorMode(shape_env=ShapeEnv(), allow_non_fake_inputs=True, static_shapes=True)


def on_cpu(x: torch.Tensor, mode: Any) -> torch.Tensor:
    """A tensor of the shadow as one that says it is on the CPU, still without memory."""
    if not x.is_meta:
        return x
    with mode:
        made = torch.empty_strided(x.size(), x.stride(), dtype=x.dtype, device="cpu")
    return torch.nn.Parameter(made, requires_grad=x.requires_grad) if isinstance(x, torch.nn.Parameter) else made


def _single(args: Any, kwargs: Any) -> bool:
    """Whether a size of one element is asked for, on the CPU: a draw that code compares with a probability."""
    sizes = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
    return all(size == 1 for size in sizes) and str(kwargs.get("device") or "cpu") == "cpu"


def _few(args: Any, kwargs: Any) -> bool:
    """Whether a tensor of one number is made, on the CPU, that is small enough to be followed."""
    sizes = args[0] if args and isinstance(args[0], (list, tuple)) else [x for x in args if isinstance(x, int)]
    plain = all(type(size) is int for size in sizes) and "out" not in kwargs
    return bool(sizes) and plain and math.prod(sizes) <= LIMIT and str(kwargs.get("device") or "cpu") == "cpu"


class _Known(TorchFunctionMode):
    """Tensors that code makes of plain numbers, as constants; numbers that nobody knows are taken to be sound."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        numbers = all(isinstance(x, (int, float)) for x in args) and all(not isinstance(x, torch.Tensor) for x in kwargs.values())
        if getattr(func, "__name__", "") in _MADE and numbers and str(kwargs.get("device") or "cpu") == "cpu":
            with _disable_current_modes():
                real = func(*args, **kwargs)
            if real.numel() <= LIMIT:
                return torch.tensor(real.tolist(), dtype=real.dtype)
        if getattr(func, "__name__", "") in _FILLED and _few(args, kwargs):
            with _disable_current_modes():
                real = func(*args, **kwargs)
            return torch.tensor(real.tolist(), dtype=real.dtype)
        if getattr(func, "__name__", "") == "rand" and _single(args, kwargs):
            return torch.tensor(_LIKELY).reshape((1,) * len(args if numbers else args[0]))
        if getattr(func, "__name__", "") in _SOUND and len(args) == 1 and isinstance(args[0], torch.Tensor):
            size = args[0].shape if args[0].numel() <= LIMIT else (1,) * args[0].ndim
            return torch.tensor([_SOUND[func.__name__]] * math.prod(size)).reshape(size)
        made = func(*args, **kwargs)
        if getattr(func, "__name__", "") == "all" and len(args) == 1 and not kwargs and getattr(made, "constant", None) is None:
            return torch.tensor(True)  # what a model asserts of all its inputs is taken to hold
        return made


@contextlib.contextmanager
def followed() -> Iterator[None]:
    """While a model is captured: constants of more than one element are followed too."""
    from torch._subclasses import fake_tensor
    from torch.fx.experimental import proxy_tensor

    modules: tuple[Any, ...] = (fake_tensor, proxy_tensor)
    before = [module.CONSTANT_NUMEL_LIMIT for module in modules]
    try:
        for module in modules:
            module.CONSTANT_NUMEL_LIMIT = _FOLLOWED
        with _Known():
            yield
    finally:
        for module, limit in zip(modules, before, strict=True):
            module.CONSTANT_NUMEL_LIMIT = limit
