"""How a small module of user_modules.py is written down: a function without arguments that gives a module and its example inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

Made = tuple[nn.Module, Any]
MODULES: dict[str, Callable[[], Made]] = {}
REFUSED: dict[str, tuple[str, Callable[[], Made]]] = {}


def works(make: Callable[[], Made]) -> Callable[[], Made]:
    MODULES[make.__name__] = make
    return make


def refused(code: str) -> Callable[[Callable[[], Made]], Callable[[], Made]]:
    def add(make: Callable[[], Made]) -> Callable[[], Made]:
        REFUSED[make.__name__] = (code, make)
        return make

    return add


def module(forward: Callable[..., Any], **parts: Any) -> nn.Module:
    """A module whose forward is a function of it and its inputs."""

    class Written(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for name, part in parts.items():
                setattr(self, name, part)

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return forward(self, *args, **kwargs)

    return Written()


def x(*shape: int) -> Tensor:
    return torch.zeros(*shape)


def ids(*shape: int) -> Tensor:
    return torch.zeros(*shape, dtype=torch.long)
