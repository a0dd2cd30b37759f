"""What a worker does: answers one chunk. Everything here travels by pickle and needs nothing but the package.

Requests and answers go as JSON Lines in bytes: that is what the library reads and writes, it is small on the wire, and
a worker neither parses an answer nor builds an object.
"""

from __future__ import annotations

import json
import time
from typing import NamedTuple

from .. import _library
from .._library import Settings

__all__ = ["Done", "answer_chunk"]


class Done(NamedTuple):
    """A finished chunk."""

    answers: bytes  # JSON Lines, one per request, in order
    seconds: dict[str, tuple[int, float]]  # per task: how many, and how long they took together


def answer_chunk(lines: bytes, settings: Settings) -> Done:
    """Answers requests that stand one to a line."""
    context = _library.context(settings)
    answers: list[bytes] = []
    seconds: dict[str, tuple[int, float]] = {}
    for line in lines.splitlines():
        task = str(json.loads(line).get("task", "train"))
        began = time.perf_counter()
        answers.append(context.answer_bytes(line))
        count, total = seconds.get(task, (0, 0.0))
        seconds[task] = (count + 1, total + time.perf_counter() - began)
    return Done(b"\n".join(answers), seconds)
