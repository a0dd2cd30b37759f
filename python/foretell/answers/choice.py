"""Choices: which GPUs a training run should rent, and how many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .._frame import flat
from .._sheet import Sheet, Table, number, percent
from .answer import Answer

__all__ = ["Choice"]


@dataclass(frozen=True, kw_only=True)
class Chosen(Answer):
    """What every choice answers: one of several, by an objective; ``chosen`` is None and ``found`` false where none is left."""

    objective: str = ""
    found: bool = False
    chosen: Mapping[str, Any] | None = None
    choices: tuple[Mapping[str, Any], ...] = ()
    least_gpus: int | None = None
    least_gpu: str | None = None


@dataclass(frozen=True, kw_only=True)
class Choice(Chosen):
    """What ``foretell choose`` answers; ``chosen`` is None and ``found`` false where none meets deadline and budget.

    >>> import foretell
    >>> answer = foretell.choose("gpt2", tokens=1e9, gpu="h100_sxm", gpus=[1, 2], global_batch=64, today="2026-11-16")
    >>> answer.found, len(answer.choices), answer.chosen["verdict"]
    (True, 2, 'chosen')
    """

    tokens: float = 0
    steps: float = 0
    tokens_per_step: float = 0
    pue: float = 0
    kg_per_kwh: float = 0

    def sheet(self) -> Sheet:
        """Every kind and number of GPUs."""
        sheet = Sheet(f"choose · {number(self.tokens)} tokens · {self.objective}", warnings=self.warnings)
        if self.chosen is None:
            sheet.add("none", "meets the deadline and the budget")
            if self.least_gpus is not None:
                sheet.add("smallest", f"{self.least_gpus} × {self.least_gpu}", "are the smallest cluster that it fits on")
        else:
            sheet.add("chosen", f"{self.chosen['gpus']} × {self.chosen['gpu']}", f"{number(self.chosen['days'])} days")
        rows = [
            [
                each["gpu"],
                number(each["gpus"]),
                number(each["days"]) if "days" in each else "-",
                number(each["usd"]) if "usd" in each else "-",
                percent(each["goodput"]["useful"]) if "goodput" in each else "-",
                "knee" if each.get("knee") else "yes" if each.get("front") else "",
                each["verdict"],
            ]
            for each in self.choices
        ]
        sheet.tables.append(Table("Choices", ["GPU", "number", "days", "dollars", "useful", "front", "loses by"], rows))
        return sheet

    def rows(self) -> list[dict[str, Any]]:
        """A row per choice."""
        return [flat(dict(each)) for each in self.choices]
