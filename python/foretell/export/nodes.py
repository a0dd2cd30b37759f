"""Nodes of a graph file while they are made: operators on values, with the module they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from .values import Call, Program, Value

__all__ = ["Lowering", "Node", "dtype_name", "row_major"]

_NAMES = {
    torch.float64: "fp64",
    torch.float32: "fp32",
    torch.float16: "fp16",
    torch.bfloat16: "bf16",
    torch.int64: "int64",
    torch.int32: "int32",
    torch.int16: "int16",
    torch.int8: "int8",
    torch.uint8: "uint8",
    torch.bool: "bool",
}


def dtype_name(dtype: torch.dtype) -> str:
    """Foretell's word; formats it has no word for count as the nearest of their size."""
    if dtype in _NAMES:
        return _NAMES[dtype]
    size = dtype.itemsize
    if "float8" in str(dtype):
        return "fp8"
    return {1: "uint8", 2: "bf16", 4: "fp32"}.get(size, "fp64")


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    strides: list[int] = []
    n = 1
    for size in reversed(shape):
        strides.insert(0, n)
        n *= max(size, 1)
    return tuple(strides)


def lies_across(x: Value, out: Value) -> bool:
    """Whether neighbours of `out` lie far apart in x: a sector of memory is fetched for each. Along an axis shorter than a
    warp the same threads come back to the sector for what lies next in it."""
    axes = [i for i, size in enumerate(out.shape) if size > 1]
    if not axes or len(x.stride) != len(out.shape) or len(out.stride) != len(out.shape):
        return False
    inner = min(axes, key=lambda i: out.stride[i])
    return x.stride[inner] >= 8 and out.shape[inner] >= 32  # elements: 32 bytes of fp32; threads


@dataclass(slots=True, eq=False)
class Node:
    """One operator. ``keys`` are those of the graph file; numbers in them may become products with batch and seq."""

    op: str
    ins: list[Value]
    outs: list[Value]
    keys: dict[str, Any] = field(default_factory=dict)
    path: tuple[str, ...] = ()
    modules: tuple[tuple[str, ...], ...] = ()
    parameters: dict[str, Value] = field(default_factory=dict)  # key -> the parameter it stands for
    where: str = ""
    what: str = ""  # the ATen operator

    @property
    def out(self) -> Value:
        return self.outs[0]


class Lowering:
    """Turns calls into nodes. Handlers (``lower_*.py``) call ``emit`` and ``alias``."""

    def __init__(self, program: Program, *, main: torch.dtype, training: bool) -> None:
        self.program, self.main, self.training = program, main, training
        self.nodes: list[Node] = []
        self.warnings: list[str] = []
        self.unknown: dict[str, str] = {}  # ATen operators without a rule -> where first met
        self._alias: dict[Value, Value] = {}
        self._fresh = 0
        self.call: Call | None = None
        self.raised: dict[Value, tuple[Value, tuple[str, ...]]] = {}  # fp32 value -> what it was raised from, by which module
        self.turned: dict[Value, Value] = {}  # view of a parameter with its two axes swapped -> the parameter
        self.restrided: set[Value] = set()  # values whose real strides are not those of the capture
        self.learned: set[Value] = set()  # values that a gradient flows to
        self.origin: dict[Value, Value] = {}  # dense view of a parameter -> the parameter
        self._detached: dict[Value, Value] = {}  # what code without gradients reads -> the same behind a detach

    # -- values

    def now(self, x: Value) -> Value:
        """What stands for x today: the value behind views that do nothing and in-place changes."""
        while x in self._alias:
            x = self._alias[x]
        return x

    def alias(self, x: Value, stands: Value) -> None:
        stands = self.now(stands)
        if x is not stands:
            self._alias[x] = stands

    def value(self, shape: Sequence[int], dtype: torch.dtype, stride: Sequence[int] | None = None) -> Value:
        self._fresh += 1
        shape = tuple(int(s) for s in shape)
        return Value(f"t{self._fresh}", shape, dtype, tuple(stride) if stride is not None else row_major(shape))

    def like(self, x: Value, dtype: torch.dtype | None = None) -> Value:
        return self.value(x.shape, dtype or x.dtype, x.stride if x.dense else None)

    # -- nodes

    def emit(
        self,
        op: str,
        ins: Sequence[Value],
        out: Value | Sequence[Value],
        keys: dict[str, Any] | None = None,
        parameters: dict[str, Value] | None = None,
    ) -> Node:
        call = self.call
        ins = [self.now(x) for x in ins]
        if call is not None and call.frozen and self.training and op != "detach":
            ins = [self.without_gradient(x) for x in ins]
        node = Node(
            op,
            ins,
            [out] if isinstance(out, Value) else list(out),
            dict(keys or {}),
            call.path if call else (),
            call.modules if call else (),
            dict(parameters or {}),
            call.where if call else "",
            call.op if call else "",
        )
        self.nodes.append(node)
        if not (call is not None and call.frozen):
            sources = [*node.ins, *node.parameters.values()]
            if op != "detach" and any(x in self.learned or (x.role == "parameter" and x.trained) for x in sources):
                self.learned.update(x for x in node.outs if x.dtype.is_floating_point)
        return node

    def without_gradient(self, x: Value) -> Value:
        """x as ``torch.no_grad`` sees it: from here on nothing flows back."""
        if x not in self.learned:
            return x
        if x not in self._detached:
            self._detached[x] = self.like(x)
            self.emit("detach", [x], self._detached[x])
        return self._detached[x]

    def view(self, x: Value, out: Value, axes: list[int] | None = None) -> None:
        """out sees x's memory: nothing runs. What changes neither sizes nor order does not even appear. `axes`: the new
        order of x's, where only that changes."""
        x = self.now(x)
        if x.shape == out.shape and (x.stride == out.stride or (x.contiguous and out.contiguous)):
            self.alias(out, x)
            return
        origin = self.origin.get(x, x)
        if origin.role == "parameter" and origin.contiguous and x.contiguous and out.contiguous:
            if out.shape == origin.shape:  # an axis dropped and added again
                self.alias(out, origin)
                return
            self.origin[out] = origin
        keys: dict[str, Any] = {"axes": axes} if axes is not None else {"shape": list(out.shape), "strided": not out.contiguous}
        self.emit("transpose" if axes is not None else "view", [x], out, keys)

    def copy(self, x: Value, out: Value) -> None:
        """out has x's elements in memory of its own."""
        keys: dict[str, Any] = {"shape": list(out.shape)}
        if x.shape == out.shape and lies_across(x, out):
            keys["across"] = True
        self.emit("contiguous", [x], out, keys)

    def warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)

    def is_main(self, dtype: torch.dtype) -> bool:
        return dtype == self.main

    def word(self, dtype: torch.dtype) -> str:
        """A dtype in the file: `model` for the one that the request chooses."""
        return "model" if dtype == self.main else dtype_name(dtype)

