"""pandas, only where a data frame is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .errors import Error

if TYPE_CHECKING:
    import pandas

__all__ = ["flat", "frame"]


def frame(rows: Iterable[Mapping[str, Any]]) -> pandas.DataFrame:
    """A data frame with a column per key."""
    try:
        import pandas
    except ImportError:
        raise Error("a data frame needs pandas (pip install pandas)", code="pandas_missing") from None
    return pandas.DataFrame(list(rows))


def flat(row: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """An object without objects inside; lists are left out.

    >>> flat({"step_ms": 1.5, "memory": {"peak_bytes": 3}, "kernels": []})
    {'step_ms': 1.5, 'memory.peak_bytes': 3}
    """
    out: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, Mapping):
            out.update(flat(value, f"{before}{key}."))
        elif not isinstance(value, (list, tuple)):
            out[before + key] = value
    return out
