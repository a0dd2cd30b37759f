"""Answers with pictures: what the library's task ``draw`` makes of them, below the sheet in a notebook.

A kernel is drawn by the library from its request, as a step is. Curves are drawn from the figures of the answer itself,
so that one from a file has its pictures too; their names and titles are those of the program's pages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from .._picture import Picture
from ..errors import Error, error_from
from .answer import Answer

__all__ = ["CURVES", "Drawing", "Drawn", "curve", "draw", "shown"]

CURVES = 16  # that the library draws in one picture
Drawing = Mapping[str, Any]  # an element of "pictures" of a request to draw


@dataclass(frozen=True, kw_only=True)
class Drawn(Answer):
    """An answer that can be drawn."""

    def picture(self, name: str | None = None) -> Picture:
        """The drawing of that name as SVG, without a name the first; a notebook shows it, ``save`` writes it to a file.

        >>> import foretell
        >>> foretell.scale("gpt2", gpu="h100_sxm", gpus=16).picture().heading
        'Tokens per second and GPU over GPUs'
        """
        drawings = self._drawings()
        chosen = [each for each in drawings if name in (None, each["name"])]
        if not chosen:
            there = ", ".join(str(each["name"]) for each in drawings)
            rest = f"; there is {there}" if there else ""
            raise Error(f"this answer has no {name or 'picture'} to draw{rest}", code="missing", where="name")
        return self._draw(chosen[:1])[0]

    def _repr_html_(self) -> str:
        """The sheet, and below it the pictures that there are."""
        return self.sheet().html(shown(self._draw, self._shown()))

    def _drawings(self) -> list[Drawing]:
        """What can be drawn of it, each with its name."""
        return []

    def _shown(self) -> list[Drawing]:
        """What a notebook shows of these."""
        return self._drawings()

    def _draw(self, drawings: Sequence[Drawing]) -> list[Picture]:
        return draw(drawings)


def draw(drawings: Sequence[Drawing], of: Mapping[str, Any] | None = None, settings: Any = None) -> list[Picture]:
    """Asks the library for pictures, of a request or of the figures that stand in them."""
    from .. import _library

    asked: dict[str, Any] = {"task": "draw", "pictures": [dict(each) for each in drawings]}
    told = _library.answer(asked if of is None else {**asked, "of": dict(of)}, settings or _library.DEFAULT)
    if told.get("ok") is not True:
        raise error_from(told)
    return [Picture(each) for each in told["pictures"]]


def shown(by: Callable[[Sequence[Drawing]], list[Picture]], drawings: Sequence[Drawing]) -> str:
    """Pictures as HTML, each below its title: curves of two phases look alike.

    Nothing where there are none, or where the library or the files of an answer are not here.
    """
    try:
        drawn = by(drawings) if drawings else []
        return "".join(f"<p><strong>{escape(each.heading)}</strong></p>{each._repr_html_()}" for each in drawn)
    except (Error, OSError, MemoryError):
        return ""


def curve(name: str, points: Sequence[tuple[float, float, float | None, float | None]], **more: Any) -> dict[str, Any]:
    """A curve of places, values and the ends of their intervals, where every value has some."""
    x, y, low, high = (list(each) for each in zip(*points, strict=True))
    band = {} if None in low or None in high else {"low": low, "high": high}
    return {"name": name, "x": x, "y": y, **band, "dots": True, **more}
