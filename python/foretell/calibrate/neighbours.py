"""How well a cell is known around a point: by its nearest measured neighbours.

What is kept of a measured point is by how much it missed its forecast (the logarithm of measured over forecast) and by
how much its neighbours would have got that wrong before it was known. A point where neighbours disagree, or that lies
far from all of them, teaches most.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

from .cell import Request, kind_of

NEAREST = 4
OTHER_KIND = 3.0  # octaves that another operator, pass or layout is away
FAR = 0.06  # error that one octave of distance is worth
FIRST_ERROR = 0.3  # of a cell nobody knows anything of
MOST_KEPT = 300  # of a kind
NOT_SIZES = ("causal", "quantized")


@dataclass(frozen=True)
class Place:
    """Sizes in octaves, and how aligned they are: 16 bytes or not decides which kernel a library picks."""

    at: tuple[float, ...]
    kind: str

    def to(self, other: Place) -> float:
        if len(self.at) != len(other.at):
            return OTHER_KIND * 2
        return math.dist(self.at, other.at) + (0.0 if self.kind == other.kind else OTHER_KIND)


def place_of(request: Request) -> Place:
    sizes = [v for key, v in request.items() if isinstance(v, int) and key not in NOT_SIZES]
    octaves = [math.log2(max(size, 1)) for size in sizes]
    aligned = [0.4 * math.log2(math.gcd(size, 16)) for size in sizes]
    return Place((*octaves, *aligned), f"{kind_of(request)} {request.get('layout', '')} {request.get('causal', '')}")


@dataclass(frozen=True)
class _Known:
    at: tuple[float, ...]
    miss: float
    surprise: float


class Neighbours:
    def __init__(self) -> None:
        self._known: dict[str, list[_Known]] = {}  # by kind
        self._error = FIRST_ERROR
        self.count = 0

    @property
    def error(self) -> float:
        """What the last few points missed their neighbours' opinion by."""
        return self._error

    def add(self, place: Place, miss: float) -> None:
        near = self._near(place)
        if near:
            weights = [1.0 / (distance + 0.25) for distance, _ in near]
            opinion = sum(w * known.miss for w, (_, known) in zip(weights, near, strict=True)) / sum(weights)
            surprise = min(abs(miss - opinion), 1.0)
            self._error += 0.1 * (surprise - self._error)
        else:
            surprise = FIRST_ERROR
        same = self._known.setdefault(place.kind, [])
        same.append(_Known(place.at, miss, surprise))
        if len(same) > MOST_KEPT:
            del same[: MOST_KEPT // 8]
        self.count += 1

    def doubt(self, place: Place) -> float:
        """The error to expect of a guess there: what neighbours got wrong, and how far they are."""
        near = self._near(place)
        if not near:
            return FIRST_ERROR
        surprise = sum(known.surprise for _, known in near) / len(near)
        misses = [known.miss for _, known in near]
        apart = (max(misses) - min(misses)) / 2.0
        return math.hypot(surprise, 0.5 * apart, FAR * near[0][0])

    def _near(self, place: Place) -> list[tuple[float, _Known]]:
        """The nearest, those of other kinds only where its own kind has too few close by: this is where the time goes
        that choosing takes."""
        near = _nearest(place.at, self._known.get(place.kind, []), 0.0)
        if len(near) == NEAREST and near[-1][0] <= OTHER_KIND:
            return near
        for kind, others in self._known.items():
            if kind != place.kind:
                near += _nearest(place.at, others, OTHER_KIND)
        return heapq.nsmallest(NEAREST, near, key=_distance)


def _nearest(at: tuple[float, ...], known: list[_Known], farther: float) -> list[tuple[float, _Known]]:
    if not known or len(known[0].at) != len(at):
        return []
    pairs = [(math.dist(at, one.at) + farther, one) for one in known]
    return heapq.nsmallest(NEAREST, pairs, key=_distance)


def _distance(pair: tuple[float, _Known]) -> float:
    return pair[0]
