"""A request as the bytes that the library reads, or which of its values JSON does not have."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Any

from .errors import Error

__all__ = ["encoded", "look", "number_of"]

_DEEPEST = 200  # far beyond any request, far below where Python and the library give up


def encoded(request: Mapping[str, Any], *, sort_keys: bool = False) -> bytes:
    """JSON in UTF-8. Numbers of NumPy and PyTorch count as Python's, paths as their text, at any depth.

    >>> encoded({"seq": 8})
    b'{"seq": 8}'
    >>> encoded({"lora": {"targets": {"q_proj"}}})
    Traceback (most recent call last):
    foretell.errors.Error: lora.targets: "targets" is a set, which JSON does not have; use a list
    """
    try:
        return json.dumps(request, allow_nan=False, ensure_ascii=False, sort_keys=sort_keys, default=_plain).encode()
    except (TypeError, ValueError, RecursionError) as error:
        look(request)
        raise Error(f"the request is not JSON: {error}", code="syntax") from None


def look(request: Mapping[str, Any]) -> None:
    """Raises, by its key, the first value that JSON or the library's reader of it cannot take."""
    _look(request, "", 0)


def number_of(value: Any) -> Any:
    """A scalar of NumPy or PyTorch as Python's number; everything else as it is."""
    if isinstance(value, (str, bytes, bool, int, float, Mapping, list, tuple)) or not hasattr(value, "item"):
        return value
    try:
        return value.item()
    except (TypeError, ValueError, RuntimeError):  # an array of several, a tensor on the meta device
        return value


def _plain(value: Any) -> Any:
    """What json asks about a value that it does not know."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    number = number_of(value)
    if number is value:
        raise TypeError(type(value).__name__)
    return number


def _look(value: Any, path: str, depth: int) -> None:
    if depth > _DEEPEST:
        shown = ".".join(path.split(".")[:2])
        raise Error("nested too deeply, or contains itself", code="syntax", where=shown)
    if isinstance(value, Mapping):
        for key, each in value.items():
            inside = f"{path}.{key}" if path else str(key)
            if not isinstance(key, (str, int, float)):
                raise Error(f"keys must be strings, not {_a(key)}", code="wrong_type", where=path or _name(key))
            _look(key, inside, depth)
            _look(each, inside, depth + 1)
    elif isinstance(value, (list, tuple)):
        for at, each in enumerate(value):
            _look(each, f"{path}[{at}]", depth + 1)
    elif isinstance(value, str):
        _look_at_text(value, path)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise Error(f"{_called(path)} is {float(value)}, which JSON cannot represent", code="out_of_range", where=path)
    elif isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise Error(f"{_called(path)} is a whole number beyond 2^63", code="out_of_range", where=path)
    elif value is not None:
        try:
            plain = _plain(value)
        except TypeError:
            raise Error(f"{_called(path)} is {_a(value)}{_instead(value)}", code="wrong_type", where=path) from None
        _look(plain, path, depth + 1)


def _look_at_text(value: str, path: str) -> None:
    if "\0" in value:
        raise Error(f"{_called(path)} contains a null character", code="syntax", where=path)
    try:
        value.encode()
    except UnicodeEncodeError as error:
        code = ord(value[error.start])
        raise Error(
            f"{_called(path)} has U+{code:04X} at character {error.start + 1}, half of a surrogate pair: not UTF-8",
            code="syntax",
            where=path.encode(errors="replace").decode(),
        ) from None


def _called(path: str) -> str:
    return f'"{path.rpartition(".")[2]}"'.encode(errors="replace").decode() if path else "the request"


def _name(value: Any) -> str:
    """How its type is called, with whose it is."""
    kind = type(value)
    whose = kind.__module__.partition(".")[0]
    return kind.__name__ if whose in ("builtins", "__main__") else f"{whose}.{kind.__name__}"


def _a(value: Any) -> str:
    name = _name(value)
    return f"an {name}" if name[0].lower() in "aeiou" else f"a {name}"


def _instead(value: Any) -> str:
    """What would be taken for it."""
    if isinstance(value, (set, frozenset, range)):
        return ", which JSON does not have; use a list"
    if isinstance(value, (bytes, bytearray)):
        return ", which JSON does not have; use text"
    if hasattr(value, "tolist"):
        shape = "×".join(str(each) for each in getattr(value, "shape", ()))
        return f"{f' of {shape}' if shape else ''}, which JSON does not have; use its tolist()"
    if hasattr(value, "__float__"):
        return ", which JSON does not have; use float() or int() of it"
    return ", which JSON does not have"
