"""Functions of PyTorch that compile what they are given, and so cannot run while a model is captured.

``flex_attention``, ``scan`` and ``associative_scan`` hand a Python function to a compiler; under a capture they refuse tensors
without memory or fall over their own tracing. Users hold the functions
themselves (``from ... import flex_attention``), so that their code is exchanged and not their names: attention becomes one operator
with the shape of its mask, a scan the loop that it is when it runs eagerly, an associative one its tree.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import torch
from torch.utils import _pytree as pytree

from . import operators
from .elsewhere import STAND_INS, InItsOwnWay

__all__ = ["associated", "flexible", "in_plain_words", "scanned"]

_LOOKED = 24  # rows and columns of a mask that are looked at


# -- attention ---------------------------------------------------------------------------------------


def _mask_shape(seen: Callable[..., Any], rows: int, cols: int) -> tuple[bool, int]:
    """Whether a mask hides what comes later, and how many columns before its own a row sees at most (0: all), by asking
    for single places; a function that does not take plain numbers hides nothing."""
    low = max(1, rows // _LOOKED)
    places = sorted({*range(0, rows, low), rows - 1})
    try:
        truth = {(i, j): bool(seen(0, 0, i, j)) for i in places for j in {*places, *range(0, cols, max(1, cols // _LOOKED))}}
        causal = rows == cols and not any(truth[i, j] for i, j in truth if j > i)
        if not causal or not all(truth[i, i] for i in places):
            return causal, 0
        last, below, above = rows - 1, 0, rows  # the farthest column that the last row sees
        if bool(seen(0, 0, last, 0)):
            return True, 0
        while above - below > 1:
            middle = (below + above) // 2
            below, above = (middle, above) if bool(seen(0, 0, last, last - middle)) else (below, middle)
        return True, above
    except Exception:  # noqa: BLE001 - whatever a user's function makes of numbers
        return False, 0


def flexible(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, block_mask: Any, scale: float | None, lse: bool, aux: Any) -> Any:
    """``flex_attention`` as one operator: scores that a function changes cost what others do, blocks that a mask hides
    are left out."""
    seen = getattr(block_mask, "mask_mod", None)
    causal, window = _mask_shape(seen, q.shape[-2], k.shape[-2]) if seen is not None else (False, 0)
    y = operators.flexible(q, k, v, causal, window, scale or q.shape[-1] ** -0.5).transpose(1, 2)
    sums = q.new_empty(q.shape[:-1], dtype=torch.float32) if lse or aux is not None else None
    if aux is not None:
        return y, type("AuxOutput", (), {"lse": sums, "max_scores": sums})()
    return (y, sums) if lse else y


def _flex(query, key, value, score_mod=None, block_mask=None, scale=None, enable_gqa=False, return_lse=False, kernel_options=None, **more):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN003, ANN202
    from foretell.export.higher import flexible

    return flexible(query, key, value, block_mask, scale, return_lse, more.get("return_aux"))


def _blocks(mask_mod, B, H, Q_LEN, KV_LEN, *args, **more):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN002, ANN003, ANN202, N803
    """``create_block_mask``: made once and kept, where people mind the time; its kernels are not counted."""
    from types import SimpleNamespace

    return SimpleNamespace(mask_mod=mask_mod, shape=(B or 1, H or 1, Q_LEN, KV_LEN))


# -- scans -------------------------------------------------------------------------------------------


def scanned(step: Callable[..., Any], carry: Any, items: Any, dim: int, reverse: bool) -> Any:
    """A scan as it runs without a compiler: a step after the other."""
    length = pytree.tree_leaves(items)[0].shape[dim]
    made = []
    for i in reversed(range(length)) if reverse else range(length):
        carry, out = step(carry, pytree.tree_map(lambda x, i=i: x.select(dim, i), items))
        made.append(out)
    made = made[::-1] if reverse else made
    return carry, pytree.tree_map(lambda *parts: torch.stack(parts), *made)


def _scan(combine_fn, init, xs, *, dim=0, reverse=False, **more):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN003, ANN202
    from foretell.export.higher import scanned

    return scanned(combine_fn, init, xs, dim, reverse)


def _tree(combine: Callable[..., Any], parts: Any, dim: int) -> Any:
    """Neighbours first, then what they became, then those between: log n steps."""
    length = pytree.tree_leaves(parts)[0].shape[dim]
    if length < 2:
        return parts

    def along(start: int, end: int | None, step: int = 1) -> tuple[slice, ...]:
        return (*[slice(None)] * dim, slice(start, end, step))

    def cut(tree: Any, start: int, end: int, step: int = 2) -> Any:
        return pytree.tree_map(lambda x: x[along(start, end, step)], tree)

    odd = _tree(combine, combine(cut(parts, 0, length - 1), cut(parts, 1, length)), dim)
    even = cut(parts, 0, 1)
    if length > 2:
        rest = combine(cut(odd, 0, (length - 1) // 2, 1), cut(parts, 2, length))
        even = pytree.tree_map(lambda a, b: torch.cat([a, b], dim), even, rest)

    def mixed(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        paired = b.shape[dim]
        both = torch.stack([a[along(0, paired)], b], dim + 1).flatten(dim, dim + 1)
        return both if a.shape[dim] == paired else torch.cat([both, a[along(paired, None)]], dim)

    return pytree.tree_map(mixed, even, odd)


def associated(combine: Callable[..., Any], items: Any, dim: int, reverse: bool) -> Any:
    """An associative scan as it runs without a compiler: a tree."""
    dim = dim % pytree.tree_leaves(items)[0].dim()
    turned = pytree.tree_map(lambda x: x.flip(dim), items) if reverse else items
    made = _tree(combine, turned, dim)
    return pytree.tree_map(lambda x: x.flip(dim), made) if reverse else made


def _associative(combine_fn, xs, dim, reverse=False, combine_mode="pointwise"):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    from foretell.export.higher import associated

    return associated(combine_fn, xs, dim, reverse)


_STAND_INS = (
    ("torch.nn.attention.flex_attention", "flex_attention", _flex),
    ("torch.nn.attention.flex_attention", "create_block_mask", _blocks),
    ("torch._higher_order_ops.scan", "scan", _scan),
    ("torch._higher_order_ops.associative_scan", "associative_scan", _associative),
)


@contextlib.contextmanager
def in_plain_words() -> Iterator[None]:
    """While a model is captured: what these functions compute, without the compiler."""
    undo: list[tuple[FunctionType, Any, Any, Any]] = []
    try:
        for module, name, stand_in in (*_STAND_INS, *STAND_INS):
            with contextlib.suppress(ImportError):
                importlib.import_module(module)
            function = getattr(sys.modules.get(module), name, None)
            if not isinstance(function, FunctionType) or function.__closure__:
                continue
            undo.append((function, function.__code__, function.__defaults__, function.__kwdefaults__))
            function.__code__ = stand_in.__code__
            function.__defaults__, function.__kwdefaults__ = stand_in.__defaults__, stand_in.__kwdefaults__
        with InItsOwnWay():
            yield
    finally:
        for function, code, defaults, named in undo:
            function.__code__, function.__defaults__, function.__kwdefaults__ = code, defaults, named
