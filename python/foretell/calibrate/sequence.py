"""Points that fill a cube evenly however many are taken.

The additive recurrence of Martin Roberts ("The unreasonable effectiveness of quasirandom sequences", 2018): with g the
positive root of g^(d+1) = g + 1, point i of d dimensions is frac(start + i * (1/g, 1/g^2, ..., 1/g^d)). Any stretch of
it is spread out, so a run can be cut off, resumed, or thinned at any index without a hole in its coverage.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache


def fraction_of(text: str) -> float:
    """A number in [0, 1) that depends on every byte of `text` and on nothing else: the same on every machine."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") / 2.0**64


@lru_cache
def _steps(dimensions: int) -> tuple[float, ...]:
    root = 1.5
    for _ in range(64):  # x = (1 + x)^(1/(d+1)) contracts: 64 rounds are far past double precision
        root = (1.0 + root) ** (1.0 / (dimensions + 1))
    return tuple(root ** -(axis + 1) for axis in range(dimensions))


class Spread:
    """Point `i` of a sequence in `dimensions` dimensions; `name` and `seed` decide where it starts."""

    def __init__(self, name: str, seed: int, dimensions: int) -> None:
        self._steps = _steps(dimensions)
        self._start = tuple(fraction_of(f"{name} {seed} {axis}") for axis in range(dimensions))

    def __call__(self, index: int) -> tuple[float, ...]:
        return tuple((start + index * step) % 1.0 for start, step in zip(self._start, self._steps, strict=True))
