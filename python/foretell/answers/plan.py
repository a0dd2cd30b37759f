"""Plans: the best layouts of a training job, and why not others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .._frame import flat
from .._sheet import Sheet, Table, gib, ms, number, percent
from .answer import Answer

__all__ = ["Plan"]

_DEGREES = ("tp", "cp", "ep", "pp", "vpp", "dp")


def _layout(plan: Mapping[str, Any]) -> str:
    parallel = plan["parallel"]
    degrees = [f"{key} {parallel[key]}" for key in _DEGREES if parallel.get(key, 1) > 1]
    return ", ".join([*degrees, f"zero {parallel['zero']}"] if parallel.get("zero") else degrees) or "one GPU"


@dataclass(frozen=True, kw_only=True)
class Plan(Answer):
    """What ``foretell plan`` answers; ``plans`` is empty and ``fits`` false where nothing fits.

    >>> import foretell
    >>> answer = foretell.plan("gpt2", gpu="h100_sxm", gpus=2, global_batch=16, top=2)
    >>> answer.fits, len(answer.plans), answer.plans[0]["step_ms"] <= answer.plans[1]["step_ms"]
    (True, 2, True)
    """

    framework: str = ""
    gpus: int = 1
    candidates: int = 0
    fit: int = 0
    tight: int = 0
    too_large: int = 0
    forecast: int = 0
    proof: str = ""
    search_ms: float = 0
    fits: bool = False
    least_gpus: int | None = None
    plans: tuple[Mapping[str, Any], ...] = ()
    runners_up: tuple[Mapping[str, Any], ...] = ()
    would_fit: tuple[Mapping[str, Any], ...] = ()
    pareto: tuple[Mapping[str, Any], ...] = ()
    sensitivity: tuple[Mapping[str, Any], ...] = ()

    def sheet(self) -> Sheet:
        """The plans side by side."""
        sheet = Sheet(f"plan · {self.gpus} GPUs · {self.framework}", warnings=self.warnings)
        sheet.add("layouts", number(self.candidates), f"{number(self.forecast)} forecast, {number(self.too_large)} too large")
        if not self.plans:
            sheet.add("none", "fits" if self.least_gpus is None else f"fits; {self.least_gpus} GPUs would do")
            return sheet
        rows = [
            [
                _layout(each),
                f"{each['batch']} × {each['micro_batches']}",
                each["recompute"],
                ms(each["step_ms"]),
                percent(each["mfu"]),
                gib(each["memory"]["reserved_bytes"] + each["memory"]["context_bytes"]),
                percent(each["chance_best"]),
            ]
            for each in self.plans
        ]
        heads = ["layout", "micro-batch", "recompute", "step", "MFU", "memory", "best"]
        sheet.tables.append(Table("Plans, the best first", heads, rows))
        return sheet

    def rows(self) -> list[dict[str, Any]]:
        """A row per plan."""
        return [flat({key: value for key, value in each.items() if key != "request"}) for each in self.plans]
