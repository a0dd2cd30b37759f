"""A profiled or recorded run: what it spent its time on, and forecasts of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .._frame import flat
from .._part import Part, many, one
from .._sheet import Sheet, Table, ms, number, percent, range_of
from .answer import Answer
from .step import Regime
from .step_parts import shares_of

__all__ = ["Elsewhere", "Operator", "Trace"]


@dataclass(frozen=True, kw_only=True)
class Operator(Part):
    """Equal operators of a profile: what they took, and what they should take on that GPU."""

    name: str = ""
    kernel: str = ""
    calls: float = 0
    ms: float = 0
    forecast_ms: float | None = None
    low_ms: float | None = None
    high_ms: float | None = None
    above_ms: float | None = None
    bound: str = ""
    source: str = ""
    roofline_ms: float | None = None
    tensor_cores: bool | None = None
    why: str = ""
    could_take_ms: float | None = None


@dataclass(frozen=True, kw_only=True)
class Elsewhere(Part):
    """The run on a GPU, forecast: from its operators, from their shapes, or by the ratio of two forecasts (``how``)."""

    gpu: str = ""
    how: str = ""
    step_ms: float = 0
    low_ms: float | None = None
    high_ms: float | None = None
    busy_ms: float | None = None
    idle_ms: float | None = None
    host_ms: float | None = None  # of a recording: what issuing its operators takes eager PyTorch
    speedup: float | None = None
    guessed: float | None = None
    other_formats: bool | None = None
    classes: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Trace(Answer):
    """What ``foretell trace`` answers. Of a recording, which has no times, ``step_ms`` is the forecast itself."""

    gpu: str = ""
    recorded_on: str = ""
    events: float | None = None
    operators_seen: float | None = None
    ranks: int | None = None
    partial: bool = False
    steps: int | None = None
    step_ms: float | None = None
    low_ms: float | None = None
    high_ms: float | None = None
    bare_step_ms: float | None = None  # without the profiler, as far as can be told
    shortest_ms: float | None = None
    longest_ms: float | None = None
    busy_ms: float | None = None
    kernels: float | None = None
    streams: float | None = None
    comm_ms: float | None = None
    comm_exposed_ms: float | None = None
    copy_ms: float | None = None
    copy_exposed_ms: float | None = None
    wait_ms: float | None = None
    regime: Regime | None = one(Regime)
    tensor_cores: Mapping[str, float] = field(default_factory=dict)
    forecast_busy_ms: float | None = None
    forecast_of_ms: float | None = None
    idle: Mapping[str, float] = field(default_factory=dict)
    gaps: tuple[Mapping[str, Any], ...] = ()
    waits: tuple[Mapping[str, Any], ...] = ()
    forecasts: tuple[Elsewhere, ...] = many(Elsewhere)
    operators: tuple[Operator, ...] = many(Operator)
    peak_bytes: int | None = None

    def sheet(self) -> Sheet:
        """Time, regime, forecasts, and the operators that leave the most on the table."""
        where = self.recorded_on or self.gpu
        sheet = Sheet(f"a profiled run on {where}" if where else "a recorded run", warnings=self.warnings)
        spread = range_of(self.shortest_ms, self.longest_ms)
        sheet.add("step", ms(self.step_ms), spread or range_of(self.low_ms, self.high_ms))
        sheet.add("GPU busy", ms(self.busy_ms), percent(_share(self.busy_ms, self.step_ms)))
        sheet.add("exposed exchanges", ms(self.comm_exposed_ms) if self.comm_exposed_ms else "")
        sheet.add("on tensor cores", percent(self.tensor_cores.get("share")), "of products")
        if self.peak_bytes:
            sheet.add("tensors", f"{number(self.peak_bytes / 2**30)} GiB", "at most, at once")
        if self.regime:
            sheet.shares = shares_of(self.regime)
        if self.forecasts:
            rows = [
                (each.gpu, ms(each.step_ms), range_of(each.low_ms, each.high_ms), ms(each.busy_ms), each.how)
                for each in self.forecasts
            ]
            columns = ("GPU", "step", "interval", "busy", "from")
            sheet.tables.append(Table("Forecasts", columns, rows, left=(0, 2, 4)))
            if not self.operators:
                sheet.tables.append(_classes(self.forecasts[0]))
        if self.operators:
            slow = [
                (each.name, number(each.calls), ms(each.ms), ms(each.forecast_ms), ms(each.above_ms), each.why)
                for each in self.operators[:_SHOWN]
            ]
            heads = ("operator", "calls", "took", "should take", "above", "why")
            more = max(0, len(self.operators) - _SHOWN)
            sheet.tables.append(Table("Operators", heads, slow, left=(0, 5), more=more))
        return sheet

    def rows(self) -> list[dict[str, Any]]:
        """A row per operator of a profile; of a recording, per forecast."""
        return [flat(each.raw) for each in self.operators or self.forecasts]


_SHOWN = 12


def _share(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


def _classes(forecast: Elsewhere) -> Table:
    rows = [(name.removesuffix("_ms"), ms(value)) for name, value in forecast.classes.items()]
    return Table("By kind of operator", ("kind", "time"), rows)
