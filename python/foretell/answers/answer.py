"""What every answer can do: print itself, show itself in a notebook, become a data frame or a dictionary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .._frame import Tabular, flat
from .._part import Part
from .._sheet import Sheet

__all__ = ["Answer"]


@dataclass(frozen=True, kw_only=True)
class Answer(Part, Tabular):
    """An answer of the library, beside the request that it answers."""

    ok: bool = True
    id: Any = None
    warnings: tuple[str, ...] = ()
    request: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    settings: Any = field(default=None, repr=False, compare=False)  # predictor and calibration that were asked with

    def sheet(self) -> Sheet:
        """What is shown of it."""
        return Sheet(type(self).__name__, warnings=self.warnings)

    def __str__(self) -> str:
        return self.sheet().text()

    def _repr_html_(self) -> str:
        return self.sheet().html()

    def rows(self) -> list[dict[str, Any]]:
        """The rows of its data frame."""
        return [flat(self.raw)]


def described(request: Mapping[str, Any], *keys: str) -> str:
    """A request in a line: what is said of the model, then some of its keys."""
    words = []
    model = request.get("model")
    if isinstance(model, str):
        words.append(model)
    elif isinstance(model, Mapping):
        words.append(str(model.get("name") or model.get("_name_or_path") or model.get("model_type") or "model"))
    for key in keys:
        value = request.get(key)
        if isinstance(value, Mapping):
            value = value.get("name") or value.get("base") or key
        if value is not None:
            words.append(f"{key} {value}" if isinstance(value, (int, float)) else str(value))
    return " · ".join(words)
