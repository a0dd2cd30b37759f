"""One run: from an opened device to a file of measurements, until the time is over or somebody says stop."""

from __future__ import annotations

import math
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from .cell import kind_of
from .chooser import Chooser, Point
from .device import Device, State
from .errors import CalibrateError, OutOfMemory, Skip
from .noise import FIRST, Quiet
from .records import Writer

REFERENCE_EVERY_S = 12.0
EXCHANGE_SHARE, EXCHANGE_LEAST_S = 0.08, 10.0  # of the time, for collectives


@dataclass
class Result:
    points: int = 0  # of this run
    held_out: int = 0
    seconds: float = 0.0  # of all runs together
    interrupted: bool = False
    exhausted: bool = False
    lost: str | None = None
    capped: int = 0  # points while the power limit held the clock
    skipped: Counter[str] = field(default_factory=Counter)
    noise: float = 0.0
    noisy: bool = False
    warnings: list[str] = field(default_factory=list)


class Stop:
    """The first interrupt, or a request to terminate, ends the run after the point in hand, the second at once."""

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Stop:
        for number in (signal.SIGINT, signal.SIGTERM):
            try:
                self._before[number] = signal.signal(number, self._ask)
            except ValueError:  # not the main thread: nobody can interrupt
                break
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


Progress = Callable[[float, int, str], None]  # seconds spent, points so far, what is measured
Exchanges = Callable[[float], Iterator[dict[str, Any]]]  # seconds -> points of collectives


class Session:
    """`budget_s` counts from the first run's start; `spent_s` of it went before this one."""

    def __init__(
        self,
        device: Device,
        chooser: Chooser,
        writer: Writer,
        *,
        budget_s: float,
        spent_s: float = 0.0,
        progress: Progress | None = None,
        exchanges: Exchanges | None = None,
    ) -> None:
        """`exchanges` measures collectives. The time of this run begins now."""
        self._device = device
        self._chooser = chooser
        self._writer = writer
        self._budget_s = budget_s
        self._progress = progress or (lambda *_: None)
        self._begin = device.clock() - spent_s
        self._first = spent_s == 0.0
        self._exchanges = exchanges
        self._exchange_at = spent_s + 0.5 * max(budget_s - spent_s, 0.0)
        self._quiet = Quiet()
        self._reference_at = -math.inf
        self._said: set[str] = set()
        self.result = Result()

    def run(self, stop: Stop) -> Result:
        """Never raises for what the device does: the file holds all that was measured, and the result says the rest."""
        result = self.result
        try:
            for _ in range(FIRST):
                self._refer()
            if self._first:
                self._eager_gap()
            while not stop.asked and self._elapsed() < self._budget_s:
                self._refer_now_and_then()
                point = self._chooser.next()
                if self._exchanges and (point is None or self._elapsed() >= self._exchange_at):
                    self._exchange(stop, alone=point is None)
                if point is None:
                    result.exhausted = True
                    break
                if not self._fits(point):
                    break
                self._measure(point)
        except CalibrateError as error:
            result.lost = str(error)
        except KeyboardInterrupt:
            stop.asked = True
        result.interrupted = stop.asked
        result.seconds = self._elapsed()
        result.noise, result.noisy = self._quiet.spread(), self._quiet.noisy
        if result.noisy:
            self._warn(f"noisy: reference kernels scatter by {100 * result.noise:.0f} %; is the machine shared?")
        self._writer.note("interrupted" if stop.asked else result.lost or "ended", result.seconds)
        return result

    def _elapsed(self) -> float:
        return self._device.clock() - self._begin

    def _fits(self, point: Point) -> bool:
        """A point that would end long after the time is not begun."""
        return self._elapsed() + 6.0 * point.forecast.ms / 1e3 <= self._budget_s + 1.0

    def _measure(self, point: Point) -> None:
        begin = self._device.clock()
        self._progress(self._elapsed(), self._chooser.points, point.cell.name)
        try:
            measured = self._device.measure(point.request)
        except Skip as skip:
            self._skip(point, skip, self._device.clock() - begin)
            return
        state = self._device.state()
        self._watch(state)
        self._writer.point(
            point.id, point.request, measured.ms, self._elapsed(), point.held_out, spread=measured.spread,
            repeats=measured.repeats, **_figures(state),
        )  # fmt: skip
        self._chooser.measured(point, measured.ms, self._device.clock() - begin)
        self.result.points += 1
        self.result.held_out += point.held_out

    def _skip(self, point: Point, skip: Skip, cost_s: float) -> None:
        lasting = not isinstance(skip, OutOfMemory)
        kind = kind_of(point.request)
        self.result.skipped[f"{kind}: {skip}"] += 1
        self._writer.skipped(point.id, point.request, str(skip), self._elapsed())
        if self._chooser.failed(point, cost_s, lasting):
            self._warn(f"{kind}: not measured any more, this GPU or PyTorch lacks it: {skip}")

    def _exchange(self, stop: Stop, alone: bool) -> None:
        """Collectives once, halfway: building communicators costs seconds, so they get their time in one piece."""
        exchanges, self._exchanges = self._exchanges, None
        left = self._budget_s - self._elapsed()
        seconds = left if alone else min(max(EXCHANGE_SHARE * self._budget_s, EXCHANGE_LEAST_S), 0.5 * left)
        count = 0
        for entry in exchanges(seconds) if exchanges else ():
            self._progress(self._elapsed(), self._chooser.points + count, "collectives")
            held_out = self._chooser.holds_out(entry["request"])
            self._writer.point(
                entry["id"], entry["request"], entry["ms"], self._elapsed(), held_out, spread=entry["spread"],
                repeats=entry["repeats"],
            )  # fmt: skip
            count += 1
            self.result.held_out += held_out
            if stop.asked:
                break
        self.result.points += count
        if count == 0:
            self._warn("collectives: none could be measured between the GPUs of this machine")

    def _eager_gap(self) -> None:
        for request, measured in self._device.eager():
            self._writer.point(
                "eager", {**request, "timing": "op"}, measured.ms, self._elapsed(), False, spread=measured.spread,
                repeats=measured.repeats,
            )  # fmt: skip

    def _refer(self) -> None:
        try:
            said = self._quiet.add(self._device.reference())
        except Skip:  # so little memory is free that nothing can be said of the noise
            said = None
        self._reference_at = self._elapsed()
        if said:
            self._writer.note("noisy: " + said, self._reference_at)
            self.result.warnings.append(said)

    def _refer_now_and_then(self) -> None:
        if self._elapsed() - self._reference_at >= REFERENCE_EVERY_S:
            self._refer()

    def _watch(self, state: State) -> None:
        if state.held_back:
            self._warn(f"clocks are held back: {state.held_back}")
        if state.others:
            self._warn(f"others use the GPU: {state.others}")
        self.result.capped += state.power_capped

    def _warn(self, text: str) -> None:
        """Once each, in the file and in the result."""
        if text not in self._said:
            self._said.add(text)
            self.result.warnings.append(text)
            self._writer.note(text, self._elapsed())


def _figures(state: State) -> dict[str, float]:
    figures = {"clock_mhz": state.clock_mhz, "power_w": state.power_w, "temperature_c": state.temperature_c}
    return {name: value for name, value in figures.items() if value is not None}
