"""Which function lowers which ATen operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["RULES", "rule"]

RULES: dict[str, Callable[[Any, Any], None]] = {}


def rule(*names: str) -> Callable[[Callable[[Any, Any], None]], Callable[[Any, Any], None]]:
    """Registers a function for operators by name, without namespace and overload."""

    def register(function: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
        for name in names:
            RULES[name] = function
        return function

    return register
