"""Which point to measure next.

Time is dealt out between cells by their weights: the next point comes from the cell that has had least of its share,
so that a run cut off at any second has covered everything it could. Within a cell points follow a sequence that fills
the space of its shapes evenly; once a cell has a score of points, two in five go where the forecast has been wrong or
is uncertain (neighbours.py), and cells that keep missing get up to half as much again.

Points held out for the errors before and after come from the even sequence alone, by a hash of their shape: they are
no harder and no easier than what users ask, and never a shape that was fitted in another number format.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from .cell import Cell, Request, key_of, kind_of, shape_of
from .forecaster import Forecast, Forecaster
from .neighbours import Neighbours, Place, place_of
from .sequence import Spread, fraction_of
from .work import footprint_of

EVEN_AT_ONCE, SHARP_AT_ONCE = 6, 4  # points planned together: even ones, and those where the forecast is in doubt
CANDIDATES = 40  # that the latter are picked from
EVEN_FIRST = 20  # points of a cell before any is picked by doubt
MOST_DRAWS = 400  # draws in vain before a cell counts as exhausted
GIVE_UP_AFTER = 3  # failures of a kind that never worked
# What a point is charged at most: the first of a cell load code, and cuDNN builds an attention kernel for up to 1.5 s
# that the next shapes use in 0.06. A cell that paid for this in full would have nothing to show for its first minute.
CHARGED_FIRST_S, CHARGED_MOST_S = 0.15, 0.3
REMEMBERED = 100  # points of a kind that a run that goes on looks back at
NEED_FROM_S, NEED_LEAST, NEED_MOST = 60.0, 0.85, 1.5  # how far a cell's misses move its share, and from when
MEMORY_SHARE = 0.35  # of the memory that one point may take


@dataclass(frozen=True)
class Point:
    request: Request
    cell: Cell
    id: str
    held_out: bool
    forecast: Forecast
    place: Place


def _apart(point: Point, others: Sequence[Point]) -> float:
    """1 two octaves from all others, less when nearer: two points at one place teach little more than one."""
    return min([1.0, *(0.5 * point.place.to(other.place) for other in others)])


@dataclass
class _State:
    cell: Cell
    even: Spread
    sharp: Spread
    even_at: int = 0
    sharp_at: int = 0
    queue: deque[Point] = field(default_factory=deque)
    known: Neighbours = field(default_factory=Neighbours)
    spent_s: float = 0.0
    points: int = 0
    exhausted: bool = False


class Chooser:
    def __init__(
        self,
        cells: Sequence[Cell],
        forecaster: Forecaster,
        *,
        held_out: float = 0.15,
        seed: int = 0,
        memory_bytes: float = math.inf,
    ) -> None:
        self.forecaster = forecaster
        self.held_out_share = held_out
        self.memory_bytes = memory_bytes
        self.held_out = self.points = 0
        self.spent_s = 0.0
        self.given_up: set[str] = set()
        self._failures: Counter[str] = Counter()
        self._works: set[str] = set()
        self._seen: set[str] = set()
        self._states = {
            cell.name: _State(
                cell, Spread(cell.name, seed, cell.dimensions), Spread(cell.name + " sharp", seed, cell.dimensions)
            )
            for cell in cells
        }

    def next(self) -> Point | None:
        """None when no cell has anything left, which a run of hours may see."""
        while True:
            states = [state for state in self._states.values() if not state.exhausted]
            if not states:
                return None
            shares = sum(state.cell.weight for state in states)
            mean = sum(state.cell.weight * state.known.error for state in states) / shares
            state = min(states, key=lambda s: (s.spent_s / self._weight(s, mean), -s.cell.weight))
            while state.queue:
                point = state.queue.popleft()
                if kind_of(point.request) not in self.given_up:
                    return point
            self._plan(state)

    def measured(self, point: Point, ms: float, cost_s: float) -> None:
        self._works.add(kind_of(point.request))
        self._charge(point.cell.name, cost_s)
        self.points += 1
        self.held_out += point.held_out
        state = self._states[point.cell.name]
        state.points += 1
        if not point.held_out:  # nothing may be chosen by what is held out
            state.known.add(point.place, math.log(ms / point.forecast.ms))
        self.forecaster.learn(point.request, ms)

    def failed(self, point: Point, cost_s: float, lasting: bool) -> bool:
        """`lasting`: of the kind, not of its size. True where the kind is given up with it."""
        self._charge(point.cell.name, cost_s)
        kind = kind_of(point.request)
        if not lasting or kind in self._works or kind in self.given_up:
            return False
        self._failures[kind] += 1
        if self._failures[kind] < GIVE_UP_AFTER:
            return False
        self.given_up.add(kind)
        return True

    def restore(self, rows: Iterable[tuple[str, Request, float | None, bool, float]]) -> None:
        """What an earlier run measured: (id, request, ms or None where it failed, held out, seconds it took)."""
        fitted: dict[str, deque[tuple[_State, Request, float]]] = {}  # the last of each kind: enough to go on by
        for name, request, ms, held_out, cost_s in rows:
            self._seen.add(key_of(request))
            cell, _, index = name.replace("~", "#").partition("#")
            state = self._states.get(cell)
            if state is None:
                continue
            self._charge(cell, cost_s)
            if "~" in name and index.isdigit():
                state.sharp_at = max(state.sharp_at, int(index) + 1)
            if ms is None:
                continue
            self._works.add(kind_of(request))
            self.points += 1
            self.held_out += held_out
            state.points += 1
            if not held_out:
                fitted.setdefault(f"{cell} {kind_of(request)}", deque(maxlen=REMEMBERED)).append((state, request, ms))
            self.forecaster.learn(request, ms)
        remembered = [entry for entries in fitted.values() for entry in entries]
        forecasts = self.forecaster.ask([request for _, request, _ in remembered])
        for (state, request, ms), forecast in zip(remembered, forecasts, strict=True):
            if forecast:
                state.known.add(place_of(request), math.log(ms / forecast.ms))

    def holds_out(self, request: Request) -> bool:
        """Of points that it did not choose: collectives."""
        return fraction_of(shape_of(request)) < self.held_out_share

    def counts(self) -> dict[str, tuple[int, float]]:
        """By cell: points and seconds."""
        return {name: (state.points, state.spent_s) for name, state in self._states.items()}

    def _charge(self, cell: str, cost_s: float) -> None:
        state = self._states[cell]
        state.spent_s += min(cost_s, CHARGED_FIRST_S if state.points < 3 else CHARGED_MOST_S)
        self.spent_s += cost_s

    def _weight(self, state: _State, mean_error: float) -> float:
        if self.spent_s < NEED_FROM_S or state.points < EVEN_FIRST or mean_error <= 0:
            return state.cell.weight
        need = math.sqrt(state.known.error / mean_error)
        return state.cell.weight * max(NEED_LEAST, min(NEED_MOST, need))

    def _plan(self, state: _State) -> None:
        even = self._draw_even(state)
        sharp = self._draw_sharp(state) if state.points >= EVEN_FIRST else []
        state.exhausted = not even and not sharp
        while even or sharp:  # interleaved, so that a cut-off finds both
            if even:
                state.queue.append(even.pop(0))
            if sharp and len(even) < len(sharp) + 2:
                state.queue.append(sharp.pop(0))

    def _draw_even(self, state: _State) -> list[Point]:
        points: list[Point] = []
        for _ in range(MOST_DRAWS):
            index, state.even_at = state.even_at, state.even_at + 1
            request = self._usable(state.cell, state.even(index), index)
            if request is None:
                continue
            eligible = self._eligible(request)
            if eligible and self.held_out + sum(p.held_out for p in points) >= self.held_out_share * (self.points + 4):
                continue  # enough for now; it must not be fitted either
            forecast = self.forecaster.ask([request])[0]
            if forecast is None or not self._affordable(state.cell, request, forecast):
                continue
            self._seen.add(key_of(request))
            points.append(
                Point(request, state.cell, f"{state.cell.name}#{index}", eligible, forecast, place_of(request))
            )
            if len(points) == EVEN_AT_ONCE:
                break
        return points

    def _draw_sharp(self, state: _State) -> list[Point]:
        drawn: dict[str, tuple[int, Request]] = {}
        for _ in range(CANDIDATES * 2):
            index, state.sharp_at = state.sharp_at, state.sharp_at + 1
            request = self._usable(state.cell, state.sharp(index), index)
            if request is not None and not self._eligible(request):
                drawn.setdefault(key_of(request), (index, request))
            if len(drawn) == CANDIDATES:
                break
        told = self.forecaster.ask([request for _, request in drawn.values()])
        points: list[tuple[float, Point]] = []
        for (index, request), forecast in zip(drawn.values(), told, strict=True):
            if forecast is None or not self._affordable(state.cell, request, forecast):
                continue
            place = place_of(request)
            # The predictor's own doubt counts beside the neighbours'; a dear point must be worth its time.
            doubt = math.hypot(state.known.doubt(place), 0.2 * math.log(forecast.high_ms / forecast.low_ms))
            worth = doubt / (1.0 + forecast.ms / 2.0) ** 0.5
            points.append((worth, Point(request, state.cell, f"{state.cell.name}~{index}", False, forecast, place)))
        picked: list[Point] = []
        while points and len(picked) < SHARP_AT_ONCE:
            best = max(points, key=lambda pair: pair[0] * _apart(pair[1], picked))
            points.remove(best)
            picked.append(best[1])
            self._seen.add(key_of(best[1].request))
        return picked

    def _usable(self, cell: Cell, u: tuple[float, ...], index: int) -> Request | None:
        request = cell.draw(u, index)
        if request is None or kind_of(request) in self.given_up or key_of(request) in self._seen:
            return None
        return request if footprint_of(request) <= MEMORY_SHARE * self.memory_bytes else None

    def _eligible(self, request: Request) -> bool:
        """Twice the share may be held out; which of them are is decided point by point, by how many there are."""
        return self.held_out_share > 0 and fraction_of(shape_of(request)) < min(1.6 * self.held_out_share, 0.9)

    @staticmethod
    def _affordable(cell: Cell, request: Request, forecast: Forecast) -> bool:
        """Long ones now and then: one in four at twice the cell's limit, one in sixteen at four times, none beyond."""
        over = forecast.ms / cell.max_ms
        return over <= 1.0 or (over <= 4.0 and fraction_of("long " + key_of(request)) < 1.0 / over**2)
