"""Several things of one kind: a tuple that can be shown as a table and made a data frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, TypeVar

from .._frame import Tabular, flat
from .._part import Part
from .._sheet import Sheet, Table, number
from ..errors import Error
from .drawn import draw, shown
from .kernel import staircase

__all__ = ["Collection"]

T = TypeVar("T")

# What a table shows of each kind, where the rows have it.
_COLUMNS = (
    "id name title task model op gpu dtype batch seq step_ms ms low_ms high_ms mfu memory.peak_bytes memory.fits "
    "memory_gib memory_gbps year model_type parameters layers hidden error"
).split()
_SHOWN = 200


class Collection(tuple[T, ...], Tabular):
    """An immutable list of answers, or of GPUs or models.

    >>> import foretell
    >>> table = foretell.gpus()
    >>> table["h100_sxm"].memory_gib
    80
    """

    warnings: Sequence[str] = ()  # of a sweep: what all of its points warn of

    def __getitem__(self, key: Any) -> Any:
        """By place, or by name or id."""
        if not isinstance(key, str):
            found = super().__getitem__(key)
            return Collection(found) if isinstance(key, slice) else found
        for each in self:
            if key in (getattr(each, "name", None), getattr(each, "id", None)):
                return each
        raise KeyError(self._unknown(key))

    def _unknown(self, key: str) -> str:
        names = [str(name) for each in self if (name := getattr(each, "name", None) or getattr(each, "id", None))]
        near = [name for name in names if key.lower() in name] or get_close_matches(key.lower(), names)
        if not near:
            return f"nothing here is called {key!r}"
        return f"nothing here is called {key!r}; there are {', '.join(near[:8])}"

    def rows(self) -> list[dict[str, Any]]:
        """A flat row per element; what an answer was asked stands beside it."""
        out = []
        for each in self:
            asked: Mapping[str, Any] = getattr(each, "request", None) or {}
            row = {key: value for key, value in flat(asked).items() if not key.startswith("model.")}
            if isinstance(each, Error):
                row["error"] = str(each)
            elif isinstance(each, Part):
                row.update(flat(each.raw))
            out.append(row)
        return out

    def sheet(self) -> Sheet:
        """The columns that tell the elements apart."""
        rows = self.rows()
        columns = [key for key in _COLUMNS if any(row.get(key) is not None for row in rows)]
        shown = [[_cell(key, row.get(key)) for key in columns] for row in rows[:_SHOWN]]
        words = [at for at, key in enumerate(columns) if any(isinstance(row.get(key), str) for row in rows)]
        table = Table("", columns, shown, left=words, more=max(0, len(rows) - _SHOWN))
        return Sheet(f"{len(self)} of them", tables=[table] if columns else [], warnings=self.warnings)

    def __str__(self) -> str:
        return self.sheet().text()

    def _repr_html_(self) -> str:
        """The table; below it, of a kernel over a range of one size, the staircase."""
        return self.sheet().html(shown(draw, staircase(self)))


def _cell(key: str, value: Any) -> str:
    if value is None:
        return ""
    if key == "year":
        return str(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value) if isinstance(value, (int, float)) else str(value)
