"""A captured program as plain data: calls of ATen operators on values, in the order in which they run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from .held import Held

__all__ = ["Call", "Program", "Value"]


@dataclass(slots=True, eq=False)
class Value:
    """A tensor of the program. Values are told apart by identity."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    stride: tuple[int, ...]
    role: str = "made"  # made, input, parameter, buffer, constant
    trained: bool = False  # parameters: requires_grad
    target: str = ""  # parameters and buffers: the dotted name; tied ones share it

    @property
    def numel(self) -> int:
        n = 1
        for size in self.shape:
            n *= size
        return n

    @property
    def bytes(self) -> int:
        return self.numel * self.dtype.itemsize

    @property
    def contiguous(self) -> bool:
        """In row-major order without gaps (axes of size 1 do not count)."""
        expected = 1
        for size, stride in zip(reversed(self.shape), reversed(self.stride), strict=True):
            if size == 0:
                return True
            if size != 1 and stride != expected:
                return False
            expected *= size
        return True

    @property
    def dense(self) -> bool:
        """Without gaps or repetition, whatever the order of its axes."""
        axes = sorted((st, sz) for sz, st in zip(self.shape, self.stride, strict=True) if sz != 1)
        expected = 1
        for stride, size in axes:
            if stride != expected:
                return False
            expected *= size
        return True


@dataclass(slots=True, eq=False)
class Call:
    """One ATen operator: ``op`` is its name without namespace and overload, ``linear`` or ``add_``."""

    op: str
    overload: str
    args: list[Any]
    kwargs: dict[str, Any]
    outs: list[Value]
    path: tuple[str, ...]  # of the module that runs it: ("model", "layers", "0", "mlp")
    modules: tuple[tuple[str, ...], ...]  # every module on the way there, outermost first
    module_type: str = ""
    where: str = ""  # file:line of the user's code
    namespace: str = "aten"
    target: Any = None
    frozen: bool = False  # under no_grad
    checkpoint: bool = False  # inside a checkpointed region

    @property
    def out(self) -> Value:
        return self.outs[0]

    def arg(self, index: int, name: str, default: Any = None) -> Any:
        if index < len(self.args):
            return self.args[index]
        return self.kwargs.get(name, default)

    def tensors(self) -> list[Value]:
        found: list[Value] = []
        _collect(self.args, found)
        _collect(list(self.kwargs.values()), found)
        return found


def _collect(item: Any, found: list[Value]) -> None:
    if isinstance(item, Value):
        found.append(item)
    elif isinstance(item, (list, tuple)):
        for part in item:
            _collect(part, found)
    elif isinstance(item, dict):
        for part in item.values():
            _collect(part, found)


@dataclass(slots=True)
class Program:
    """What was captured."""

    calls: list[Call] = field(default_factory=list)
    inputs: list[Value] = field(default_factory=list)
    parameters: list[Value] = field(default_factory=list)
    buffers: list[Value] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    checkpointed: bool = False
    traces_masks: bool = False  # traced by a compiler, the code makes a mask that no exported operator shows
    held: Held | None = None  # what an inference pass holds, beyond weights and inputs
