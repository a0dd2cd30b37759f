"""What a family of kernels is: the columns that name a case, how cases are drawn, and how one is bound to operands."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from foretell.calibrate.kernels.case import Case
from foretell.calibrate.operands import Operands
from foretell.calibrate.timing import Make

T = TypeVar("T")


@dataclass(frozen=True)
class Family:
    """`draw` returns None for a shape outside the family's limits; it is then drawn again."""

    name: str
    columns: tuple[str, ...]
    draw: Callable[[random.Random], Case | None]
    build: Callable[[Case, Operands], Make]
    rotate: bool = True
    parts: dict[str, Callable[[Case, Operands], Make]] = field(default_factory=dict)  # column -> part timed alone

    def key(self, case: Case) -> tuple[str, ...]:
        return tuple(str(case[column]) for column in self.columns)

    def parse(self, row: dict[str, str]) -> Case:
        """A CSV row as a case: figures become integers, names stay."""
        return {c: int(row[c]) if row[c].lstrip("-").isdigit() else row[c] for c in self.columns}


def log_uniform(rng: random.Random, low: float, high: float) -> int:
    """An integer whose logarithm is uniform: as many cases between 16 and 32 as between 8192 and 16384."""
    return int(math.exp(rng.uniform(math.log(low), math.log(high))))


def multiple(value: int, of: int) -> int:
    """The multiple of `of` at or below, never zero."""
    return max(of, value // of * of)


def pick(rng: random.Random, weights: dict[T, float]) -> T:
    return rng.choices(list(weights), list(weights.values()))[0]


def choice(rng: random.Random, values: Sequence[T]) -> T:
    return values[rng.randrange(len(values))]
