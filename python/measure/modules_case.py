"""How a case of modules_cases.py is written down: a function that gives a module and its inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

Made = Callable[..., Tensor]
CASES: dict[str, Callable[[Made, Made], tuple[nn.Module, tuple[Any, ...]]]] = {}


def case(name: str) -> Callable[[Any], Any]:
    def add(make: Any) -> Any:
        CASES[name] = make
        return make

    return add


class Residual(nn.Module):
    def __init__(self, *inner: nn.Module) -> None:
        super().__init__()
        self.inner = nn.Sequential(*inner)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.inner(x)
