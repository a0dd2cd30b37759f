"""A cell: one family in one number format and one part of its shapes. Time is shared out between cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Request = dict[str, Any]
Draw = Callable[[tuple[float, ...], int], Request | None]  # a point of the unit cube and its index -> a request


@dataclass(frozen=True)
class Cell:
    """`weight` is its share of the time, over all cells' weights; `draw` gives None outside the family's limits."""

    name: str
    family: str
    dtype: str
    weight: float
    dimensions: int
    draw: Draw
    max_ms: float = 12.0  # forecasts longer than this are not measured: their time buys many others


def kind_of(request: Request) -> str:
    """What a device either can do or cannot, whatever the sizes."""
    parts = [str(request["op"]), str(request.get("name", "")), str(request.get("pass", "")), str(request["dtype"])]
    if request["op"] == "attention" and request["q_len"] == 1:
        parts.append("decode")
    return " ".join(part for part in parts if part)


def key_of(request: Request) -> str:
    """The request as one line, its keys in order: two requests are the same when their keys are."""
    return " ".join(f"{name}={request[name]}" for name in sorted(request))


def shape_of(request: Request) -> str:
    """Its operator and sizes without number format, pass and layout: what is held out is held out in all of them.
    The three products of a linear layer, forward and backward, are one shape: their sizes are sorted."""
    sizes = sorted(v for v in request.values() if isinstance(v, int) and not isinstance(v, bool))
    return " ".join([str(request["op"]), *map(str, sizes)])
