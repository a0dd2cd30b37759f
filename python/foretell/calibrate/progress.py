"""A bar on stderr, on terminals alone."""

from __future__ import annotations

import os
import shutil
import sys
import time
from typing import TextIO

EVERY_S = 0.2


def clock(seconds: float) -> str:
    """
    >>> clock(133.4)
    '2:13'
    """
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


class Bar:
    def __init__(self, budget_s: float, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._budget_s = budget_s
        self._shown = self._stream.isatty() and os.environ.get("TERM") != "dumb"
        self._next = 0.0

    def __call__(self, seconds: float, points: int, what: str) -> None:
        now = time.monotonic()
        if not self._shown or now < self._next:
            return
        self._next = now + EVERY_S
        part = min(seconds / self._budget_s, 1.0) if self._budget_s > 0 else 1.0
        text = f" {clock(seconds)} of {clock(self._budget_s)}  {points} points  {what}"
        room = max(shutil.get_terminal_size().columns - len(text) - 4, 8)
        width = min(room, 30)
        filled = round(part * width)
        self._stream.write(f"\r\x1b[K[{'#' * filled}{'.' * (width - filled)}]{text[: room + len(text) - width]}")
        self._stream.flush()

    def close(self) -> None:
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
