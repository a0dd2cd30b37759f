"""Errors of the exporter: what could not be captured, why, and in which line of the user's code."""

from __future__ import annotations

import os
import traceback
from types import TracebackType

import torch

from ..errors import ExportError

__all__ = ["SPARSE", "ExportError", "explain", "user_line"]

_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep


def user_line(trace: TracebackType | None) -> str:
    """file:line of the innermost frame that belongs neither to PyTorch nor to the exporter."""
    found = ""
    for frame in traceback.extract_tb(trace):
        path = os.path.abspath(frame.filename)
        # code compiled at run time (dataclasses, einops, functools) has no file
        if path.startswith((_TORCH, _OURS)) or not os.path.isfile(path):
            continue
        if os.path.basename(path) in ("contextlib.py", "functools.py", "__init__.py") and "/python3" in path:
            continue
        found = f"{frame.filename}:{frame.lineno}"
    return found


def _first_sentence(error: BaseException) -> str:
    text = str(error).strip()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    message = lines[0] if lines else type(error).__name__
    return message if len(message) <= 300 else message[:297] + "..."


def _root(error: BaseException) -> BaseException:
    """torch.export wraps what it met; the innermost error that has a traceback is what the user can act on."""
    seen: set[int] = set()
    while True:
        seen.add(id(error))
        inner = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        if inner is None or id(inner) in seen or not user_line(inner.__traceback__):
            return error
        error = inner


_SHAPE_WORDS: tuple[str, ...] = ("size mismatch", "shapes cannot be multiplied", "must match the size", "shape mismatch", "mismatch in shape")
_SHAPE_WORDS += ("expected input", "Expected size", "invalid for input of size", "not broadcastable", "a and b must have")
_SHAPE_WORDS += ("Sizes of tensors must match", "to have", "out of bounds for dimension", "Incompatible shapes")


SPARSE = "sparse tensors cannot be captured: how much is computed depends on what they hold"

# What PyTorch says of things that have no shape to capture, and what that means for the author of the model.
_REFUSED = {
    "SparseMeta": SPARSE,
    "__obj_flatten__": "weights that are packed into an object (quantised modules of torch.ao) have no shape that can be read",
    "TorchScript interpreter": "a TorchScript module cannot be captured: export the Python module that it was made of",
}


def explain(error: BaseException) -> ExportError:
    """One sentence for whatever torch.export raised."""
    if isinstance(error, ExportError):
        return error
    where = user_line(error.__traceback__)
    root = _root(error)
    where = user_line(root.__traceback__) or where
    kind, text = type(root).__name__, _first_sentence(root)
    full = f"{error} {root}"
    # an unbacked symbol is a size that was a tensor's value
    if "data-dependent" in full or "DataDependent" in kind or "GuardOnDataDependent" in full or "unbacked symbol" in full:
        what = (
            "control flow that depends on a tensor's values (an if, a loop or .item() on data) cannot be captured: "
            "which way it goes is known only when the model runs"
        )
        return ExportError(f"{what}; {text}" if where == "" else what, code="data_dependent", where=where)
    if ".numpy() is not supported" in full or "numpy()" in text:
        return ExportError(
            "values leave PyTorch (.numpy()) and cannot be followed: nothing is computed while a model is captured",
            code="data_dependent",
            where=where,
        )
    if "nonzero" in full and ("meta" in full or "fake" in full.lower()):
        return ExportError(
            "an operator whose result's size depends on data (nonzero, a boolean index) cannot be captured",
            code="data_dependent",
            where=where,
        )
    for word, sentence in _REFUSED.items():
        if word in full:
            return ExportError(sentence, code="operator", where=where)
    if isinstance(root, (RuntimeError, ValueError, IndexError)) and any(w in text for w in _SHAPE_WORDS):
        return ExportError(f"the example inputs do not fit the model: {text}", code="example_shapes", where=where)
    if isinstance(root, TypeError) and ("argument" in text or "missing" in text):
        return ExportError(f"the example inputs do not fit the model: {text}", code="example_inputs", where=where)
    return ExportError(f"the model raised {kind}: {text}", code="model_raised", where=where)
