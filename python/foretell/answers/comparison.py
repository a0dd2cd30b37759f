"""Answers side by side: what differs, and which part of the difference comes from where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .._frame import flat
from .._part import Part, many
from .._sheet import Sheet, Table, gib, ms, number
from .answer import Answer

__all__ = ["Cause", "Compared", "Comparison", "KernelChange"]


@dataclass(frozen=True, kw_only=True)
class Cause(Part):
    """A part of the difference; all of them add up to it."""

    part: str = ""
    a_ms: float = 0
    b_ms: float = 0
    change_ms: float = 0
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class KernelChange(Part):
    """A kernel of one answer against its like in the other."""

    name: str = ""
    op: str = ""
    phase: str = ""
    block: str = ""
    a_launches: float = 0
    b_launches: float = 0
    a_ms: float = 0
    b_ms: float = 0
    change_ms: float = 0


@dataclass(frozen=True, kw_only=True)
class Compared(Part):
    """One of the answers, against the first."""

    name: str = ""
    ms: float | None = None
    peak_bytes: float | None = None
    work: float | None = None
    speedup: float | None = None
    change_ms: float | None = None
    intervals_apart: bool | None = None
    causes: tuple[Cause, ...] = many(Cause)
    kernels: tuple[KernelChange, ...] = many(KernelChange)


@dataclass(frozen=True, kw_only=True)
class Comparison(Answer):
    """What ``foretell compare`` answers.

    >>> import foretell
    >>> ask = {"task": "train", "model": "gpt2", "gpu": "h100_sxm", "batch": 8, "seq": 1024}
    >>> both = foretell.compare(ask, {**ask, "execution": "compile"})
    >>> both.asked
    {'execution': [None, 'compile']}
    >>> both.answers[1].speedup > 1.2
    True
    """

    task: str = ""
    asked: Mapping[str, Any] = field(default_factory=dict)
    answers: tuple[Compared, ...] = many(Compared)

    def sheet(self) -> Sheet:
        """Times, then causes of each difference."""
        sheet = Sheet(f"{len(self.answers)} answers compared", warnings=self.warnings)
        for key, values in self.asked.items():
            sheet.add(key, " | ".join("-" if each is None else str(each) for each in values))
        rows = []
        for each in self.answers:
            change = "" if each.speedup is None else f"{number(each.speedup)} x"
            rows.append((each.name, ms(each.ms), change, ms(each.change_ms), gib(each.peak_bytes)))
        sheet.tables.append(Table("Answers", ("answer", "time", "speed", "change", "memory"), rows))
        for each in self.answers[1:]:
            causes = [(c.part, ms(c.a_ms), ms(c.b_ms), ms(c.change_ms), c.why) for c in each.causes if c.a_ms or c.b_ms]
            columns = ("part", "first", "this", "change", "why")
            sheet.tables.append(Table(f"Why {each.name} differs", columns, causes, left=(0, 4)))
        return sheet

    def rows(self) -> list[dict[str, Any]]:
        """A row per answer and cause; the first answer has none."""
        return [{"name": each.name, **flat(cause.raw)} for each in self.answers for cause in each.causes]
