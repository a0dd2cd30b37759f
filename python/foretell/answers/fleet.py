"""Plans and choices for serving: which engines, how many of them, on which GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .._frame import flat
from .._sheet import Sheet, Table, ms, number, percent
from .answer import Answer
from .choice import Chosen

__all__ = ["ServeChoice", "ServePlan"]

_DEGREES = ("tp", "pp", "dp", "ep")


def _engine(layout: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {layout[key]}" for key in _DEGREES if layout.get(key, 1) > 1) or "one GPU"


def _way(each: Mapping[str, Any]) -> str:
    """One way to serve in words."""
    if "disaggregated" in each:
        sides = [f"{side['workers']} × ({_engine(side)}) {name}" for name, side in each["disaggregated"].items()]
        return " + ".join(sides)
    return f"{each['replicas']} × ({_engine(each['parallel'])})" if "parallel" in each else "-"


def _fewer(each: Mapping[str, Any]) -> str:
    """What fewer GPUs would cost, and why."""
    paid = f"$ {each['usd_per_hour']:.2f} an hour" if "usd_per_hour" in each else "not for rent this way"
    return f"{_way(each)}: {paid}" + (", needs a network" if each["needs_network"] else "")


def _time(each: Mapping[str, Any], key: str) -> str:
    return ms(each[key]) if key in each else "-"


def _joules(each: Mapping[str, Any]) -> str:
    return number(each["energy"]["joules_per_token"]) if "energy" in each else "-"


def _rows(ways: tuple[Mapping[str, Any], ...]) -> list[dict[str, Any]]:
    return [flat({key: value for key, value in each.items() if key != "request"}) for each in ways]


@dataclass(frozen=True, kw_only=True)
class ServePlan(Answer):
    """What ``foretell plan --task serve`` answers; ``plans`` is empty and ``fits`` false where nothing meets the objectives.

    >>> import foretell
    >>> answer = foretell.plan_serve("llama-3.1-8b", gpu="h100_sxm", rate=4, isl=256, osl=32, slo={"ttft_ms": 300}, search={"tp": 1})
    >>> answer.fits, answer.proof, answer.plans[0]["gpus"]
    (True, 'optimal', 1)
    """

    model: str = ""
    gpu: str = ""
    engine: str = ""
    objective: str = ""
    candidates: int = 0
    simulations: int = 0
    proof: str = ""
    proof_covers: str = ""
    fits: bool = False
    least_gpus: int | None = None
    plans: tuple[Mapping[str, Any], ...] = ()
    losers: tuple[Mapping[str, Any], ...] = ()

    def sheet(self) -> Sheet:
        """The ways to serve side by side, and what others lose by."""
        sheet = Sheet(f"plan · {self.model} · {self.engine} on {self.gpu}", warnings=self.warnings)
        sheet.add("ways", number(self.candidates), f"{number(self.simulations)} simulations; {self.proof_covers}")
        if not self.plans:
            sheet.add("none", "meets the objectives" if self.least_gpus is None else f"fits; {self.least_gpus} GPUs would do")
        rows = [
            [
                _way(each),
                number(each["gpus"]),
                number(each["rate"]),
                _time(each, "ttft_ms"),
                _time(each, "tpot_ms"),
                number(each["tokens_per_s_per_gpu"]),
                _joules(each),
                percent(each["chance_best"]),
            ]
            for each in self.plans
        ]
        heads = ["engines", "GPUs", "requests/s", "TTFT", "TPOT", "tokens/s/GPU", "J/token", "best"]
        sheet.tables.append(Table("Plans, the best first", heads, rows))
        lost = [[_way(each), number(each["gpus"]), each["loses_by"]] for each in self.losers]
        if lost:
            sheet.tables.append(Table("Others", ["engines", "GPUs", "lose by"], lost))
        return sheet

    def rows(self) -> list[dict[str, Any]]:
        """A row per plan."""
        return _rows(self.plans)


@dataclass(frozen=True, kw_only=True)
class ServeChoice(Chosen):
    """What ``foretell choose --task serve`` and ``--task infer`` answer; ``chosen`` is None and ``found`` false where none is left.

    >>> import foretell
    >>> answer = foretell.choose_serve(
    ...     "llama-3.1-8b", gpu=["h100_sxm"], rate=4, isl=256, osl=32, slo={"ttft_ms": 300}, today="2026-11-16"
    ... )
    >>> answer.found, answer.chosen["verdict"], answer.chosen["kwh_per_million_tokens"] > 0
    (True, 'chosen', True)
    """

    rate: float | None = None
    requests: float | None = None

    def sheet(self) -> Sheet:
        """Every kind of GPUs, and of an inference job every number."""
        asked = f"{number(self.rate)} requests/s" if self.rate is not None else f"{number(self.requests or 0)} requests"
        sheet = Sheet(f"choose · {asked} · {self.objective}", warnings=self.warnings)
        if self.chosen is None:
            sheet.add("none", "meets the objectives, has a price, and meets deadline and budget")
            if self.least_gpus is not None:
                sheet.add("smallest", f"{self.least_gpus} × {self.least_gpu}", "would do")
        else:
            sheet.add("chosen", f"{self.chosen['gpus']} × {self.chosen['gpu']}", _way(self.chosen))
            fewer = self.chosen.get("fewer")
            if fewer:
                sheet.add("fewer GPUs", f"{fewer['gpus']} × {self.chosen['gpu']}", _fewer(fewer))
        rows = [
            [
                each["gpu"],
                number(each["gpus"]) if "gpus" in each else "-",
                _way(each),
                _time(each, "tpot_ms"),
                number(each["price"]["usd_per_hour"]) if "price" in each else "-",
                number(each["usd_per_million_tokens"]) if "usd_per_million_tokens" in each else "-",
                number(each["kwh_per_million_tokens"]) if "kwh_per_million_tokens" in each else "-",
                "yes" if each.get("front") else "",
                each["verdict"],
            ]
            for each in self.choices
        ]
        heads = ["GPU", "number", "engines", "TPOT", "$/hour", "$/M tokens", "kWh/M tokens", "front", "loses by"]
        sheet.tables.append(Table("Choices", heads, rows))
        return sheet

    def rows(self) -> list[dict[str, Any]]:
        """A row per choice."""
        return _rows(self.choices)
