"""One file for all sizes: the same model captured twice, at different sizes, and what differs written as formulas.

Symbolic shapes would do it in one capture, but any comparison of a size in the model's code pins it. Two captures always
work, and whatever they disagree on is either a product of batch and seq, or named.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from .capture import Inputs
from .errors import ExportError

__all__ = ["Axes", "axes_of", "merge", "other_sizes", "resized"]

Axes = dict[str, dict[int, str]]  # input -> axis -> "batch" or "seq"


def axes_of(inputs: Inputs, dynamic: bool | Mapping[str, Mapping[int, str]], batch_axis: int | None) -> Axes:
    """Which axes of the inputs are batch and sequence. By default the first is the batch; of tokens, the second is the
    sequence."""
    if isinstance(dynamic, Mapping):
        axes: Axes = {}
        for name, given in dynamic.items():
            if name not in inputs.names:
                raise ExportError(f'dynamic names "{name}", the inputs are {", ".join(inputs.names)}', where="dynamic")
            shape = inputs.tensors[inputs.names.index(name)].shape
            axes[name] = {}
            for axis, word in given.items():
                if word not in ("batch", "seq") or not -len(shape) <= axis < len(shape):
                    raise ExportError(
                        f'axes of "{name}" are numbers from 0 to {len(shape) - 1}, and "batch" or "seq"', where="dynamic"
                    )
                axes[name][axis % len(shape)] = word
        return axes
    axes = {}
    for name, x in zip(inputs.names, inputs.tensors, strict=True):
        axes[name] = {}
        if x.ndim and batch_axis is not None and batch_axis < x.ndim:
            axes[name][batch_axis] = "batch"
        tokens = not x.is_floating_point() and x.ndim == 2 and x.dtype != torch.bool
        if (tokens or "mask" in name or "token" in name) and x.ndim == 2 and batch_axis in (0, 1):
            axes[name][1 - batch_axis] = "seq"
    return axes


def example_sizes(inputs: Inputs, axes: Axes) -> dict[str, int]:
    """Batch and seq of the example inputs; inputs that contradict each other are an error."""
    found: dict[str, int] = {}
    where: dict[str, str] = {}
    for name, x in zip(inputs.names, inputs.tensors, strict=True):
        for axis, word in axes.get(name, {}).items():
            size = int(x.shape[axis])
            if found.setdefault(word, size) != size:
                raise ExportError(
                    f'"{name}" has {word} {size} on axis {axis}, "{where[word]}" has {found[word]}; say which axes are which '
                    'by dynamic={"input": {axis: "batch" or "seq"}}',
                    code="example_shapes",
                    where="dynamic",
                )
            where.setdefault(word, name)
    return found


def other_sizes(sizes: Mapping[str, int]) -> dict[str, int]:
    """Sizes to capture at the second time: three times the batch, half the sequence (learned positions have a limit)."""
    out = {}
    for word, size in sizes.items():
        if word == "batch":
            out[word] = 3 * size
        elif size % 2 == 0 and size >= 16:
            out[word] = size // 2
        else:
            out[word] = 2 * size if size < 16 else size - size // 3
    return out


def resized(inputs: Inputs, axes: Axes, sizes: Mapping[str, int]) -> Inputs:
    """The same inputs of other sizes, without memory."""
    tensors = []
    for name, x in zip(inputs.names, inputs.tensors, strict=True):
        shape = list(x.shape)
        for axis, word in axes.get(name, {}).items():
            shape[axis] = sizes[word]
        last = x.ndim == 4 and x.is_contiguous(memory_format=torch.channels_last) and not x.is_contiguous()
        y = torch.empty(shape, dtype=x.dtype, device="meta")
        tensors.append(y.to(memory_format=torch.channels_last) if last else y)
    return Inputs(tensors, inputs.names, inputs.spec, inputs.places, inputs.leaves, inputs.padded)


class _Merger:
    def __init__(self, first: Mapping[str, int], second: Mapping[str, int]) -> None:
        self.words = list(first)
        self.first, self.second = first, second

    def formula(self, a: int, b: int) -> str | None:
        """A formula that gives a at the first sizes and b at the second: a product, or a size with something added."""
        products = []
        for i in range(3):
            for j in range(3):
                powers = dict(zip(("batch", "seq"), (i, j), strict=True))
                if any(p and w not in self.first for w, p in powers.items()) or not i + j:
                    continue
                x = y = 1
                for word, p in powers.items():
                    if p:
                        x *= self.first[word] ** p
                        y *= self.second[word] ** p
                products.append((i + j, x, y, "*".join(w for w, p in powers.items() for _ in range(p))))
        for _, x, y, text in sorted(products):
            if a * y == b * x:
                if a % x == 0:
                    return text if a == x else f"{a // x}*{text}"
                if x % a == 0 and x // a > 1:
                    return f"{text}/{x // a}"
        for _, x, y, text in sorted(products):  # c * product + d
            if x != y and (a - b) % (x - y) == 0:
                c = (a - b) // (x - y)
                d = a - c * x
                if c >= 1 and abs(d) < max(a, 2) and c * y + d == b:
                    head = text if c == 1 else f"{c}*{text}"
                    return f"{head}{'+' if d > 0 else '-'}{abs(d)}" if d else head
        for _, x, y, text in sorted(products):  # rounded up or down: seq/2+1 and the like
            for divisor in range(2, 65):
                d = a - x // divisor
                if abs(d) <= 2 and b - y // divisor == d:
                    return f"{text}/{divisor}" + (f"{'+' if d > 0 else '-'}{abs(d)}" if d else "")
        return None

    def merge(self, a: Any, b: Any, where: str) -> Any:
        if isinstance(a, dict) and isinstance(b, dict):
            for each, other in ((a, b), (b, a)):
                if "across" in each and "across" not in other:  # said of large tensors: small ones are too small for it
                    other["across"] = each["across"]
            if a.keys() != b.keys():
                raise _Differs(where)
            return {key: self.merge(a[key], b[key], f"{where} {key}".strip()) for key in a}
        if isinstance(a, list) and isinstance(b, list):
            if len(a) != len(b):
                raise _Differs(where)
            return [self.merge(x, y, where) for x, y in zip(a, b, strict=True)]
        if type(a) is type(b) and a == b:
            return a
        if isinstance(a, int) and isinstance(b, int) and not isinstance(a, bool):
            found = self.formula(a, b)
            if found is not None:
                return found
        raise _Differs(f"{where}: {a!r} and {b!r}")


class _Differs(Exception):
    pass


def _nodes(file: dict[str, Any]) -> list[dict[str, Any]]:
    return [node for block in file["blocks"] for node in block["nodes"]]


def merge(a: dict[str, Any], b: dict[str, Any], first: Mapping[str, int], second: Mapping[str, int]) -> dict[str, Any]:
    """The file for all sizes."""
    merger = _Merger(first, second)
    for each, other in [(a, b), *zip(_nodes(a), _nodes(b), strict=False)]:
        held = [one.pop("held_bytes", None) for one in (each, other)]
        formula = merger.formula(held[0], held[1]) if None not in held else None
        if formula is not None:  # otherwise the peak is at another place at other sizes
            each["held_bytes"] = other["held_bytes"] = formula
    try:
        merged: dict[str, Any] = merger.merge(a, b, "")
        return merged
    except _Differs as error:
        sizes = f"{dict(first)} and {dict(second)}"
        raise ExportError(
            f"the model runs other operators at {sizes} ({error}); export it for fixed sizes (dynamic=False)",
            code="dynamic",
            where="dynamic",
        ) from None
