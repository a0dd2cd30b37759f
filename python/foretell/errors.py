"""What can go wrong, as exceptions.

Every refusal of the library arrives as an :class:`Error` that carries the same three facts as a JSON answer: a code
that programs can compare, a sentence for people, and the place inside the request that it is about.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["Error", "ExportError", "NotFoundError", "TorchMissingError", "error_from"]


class Error(Exception):
    """A request that cannot be answered.

    >>> import foretell
    >>> try:
    ...     foretell.train("lama-3-8b", gpu="h100_sxm")
    ... except foretell.Error as error:
    ...     print(error.code, "|", error.where)
    unknown_name | model
    """

    code: str
    message: str
    where: str

    def __init__(self, message: str, *, code: str = "bug", where: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.where = where

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message

    def __reduce__(self) -> tuple[Any, ...]:  # exceptions with keywords do not pickle by themselves
        return (_rebuild, (type(self), self.message, self.code, self.where))


class ExportError(Error):
    """A PyTorch model that cannot be captured: what, and in which line of the user's code."""

    def __init__(self, message: str, *, code: str = "export", where: str = "") -> None:
        super().__init__(message, code=code, where=where)


class TorchMissingError(Error, ImportError):
    """Something was asked that needs PyTorch, and there is none."""

    def __init__(self, message: str, *, code: str = "torch_missing", where: str = "") -> None:
        Error.__init__(self, message, code=code, where=where)


class NotFoundError(Error, OSError):
    """Neither libforetell nor the program was found: the package is not installed and nothing is built."""

    def __init__(self, message: str, *, code: str = "not_found", where: str = "") -> None:
        Error.__init__(self, message, code=code, where=where)

    def __str__(self) -> str:
        return Error.__str__(self)


def _rebuild(kind: type[Error], message: str, code: str, where: str) -> Error:
    return kind(message, code=code, where=where)


def error_from(answer: Mapping[str, Any]) -> Error:
    """The exception for ``{"ok": false, "error": {...}}``."""
    told = answer.get("error")
    if not isinstance(told, Mapping):
        return Error(f"an answer without a reason: {dict(answer)!r}")
    return Error(
        str(told.get("message", "no reason given")),
        code=str(told.get("code", "bug")),
        where=str(told.get("where", "") or ""),
    )
