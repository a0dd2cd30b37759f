"""Cuts a stream of requests into chunks that take about as long as each other.

A kernel takes microseconds and a plan a second, so chunks are sized by cost and not by count. What a request of a task
costs is learned from the chunks that came back; until the first has, chunks are small. Ranges that an earlier run
finished are kept as they were cut then.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from .._encode import encoded
from ..errors import Error

__all__ = ["Chunk", "Cutter", "Range"]

CHUNK_SECONDS = 0.5  # long beside what an engine spends on a task, short beside what a dead worker loses
MOST_REQUESTS = 20_000
FIRST_REQUESTS = 16  # while nothing is known of a task's cost


@dataclass(frozen=True)
class Range:
    """Requests ``first`` to ``first + count - 1``, known by what they ask."""

    first: int
    count: int
    digest: str


class Chunk(NamedTuple):
    where: Range
    lines: bytes  # the requests, as JSON Lines
    finished: bool  # an earlier run answered it


class Cutter:
    """Takes requests one by one and hands chunks out."""

    def __init__(self, requests: Iterator[Mapping[str, Any]], finished: Mapping[int, Range], size: int | None) -> None:
        self._requests = requests
        self._finished = dict(finished)
        self._size = size
        self._at = 0
        self._cost: dict[str, tuple[int, float]] = {}

    def learn(self, seconds: Mapping[str, tuple[int, float]]) -> None:
        """What a chunk took, per task."""
        for task, (count, total) in seconds.items():
            before, so_far = self._cost.get(task, (0, 0.0))
            self._cost[task] = (before + count, so_far + total)

    def next(self) -> Chunk | None:
        """The next chunk; None behind the last request."""
        known = self._finished.get(self._at)
        limit = known.count if known else self._limit()
        lines: list[bytes] = []
        seconds = 0.0
        while len(lines) < limit and (known or self._size or seconds < CHUNK_SECONDS):
            request = next(self._requests, None)
            if request is None:
                break
            try:
                lines.append(encoded(request, sort_keys=True))
            except Error as error:
                number = self._at + len(lines)
                raise Error(f"request {number}: {error}", code=error.code) from None
            seconds += self._estimate(str(request.get("task", "train")))
        if not lines:
            return None
        text = b"\n".join(lines)
        where = Range(self._at, len(lines), hashlib.blake2b(text, digest_size=16).hexdigest())
        self._at += len(lines)
        return Chunk(where, text, known == where)

    def _limit(self) -> int:
        """How many at most: not into what is finished already."""
        ahead = [first - self._at for first in self._finished if first > self._at]
        return min([self._size or MOST_REQUESTS, *ahead])

    def _estimate(self, task: str) -> float:
        count, total = self._cost.get(task, (0, 0.0))
        return total / count if count else CHUNK_SECONDS / FIRST_REQUESTS
