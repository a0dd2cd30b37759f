"""How far a long run is: tqdm's bar where tqdm is installed (a notebook gets its own), a line on the terminal elsewhere.

It appears after two seconds, and by itself only where somebody is looking.
"""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

__all__ = ["Progress"]

QUIET_SECONDS = 2.0


def _watched() -> bool:
    return sys.stderr.isatty() or "ipykernel" in sys.modules


class Progress:
    """Counts answers. ``wanted`` is True, False, or None for wherever it can be seen."""

    def __init__(self, wanted: bool | None) -> None:
        self._shown = _watched() if wanted is None else wanted
        self._began = time.monotonic()
        self._last: float | None = None  # when something was shown
        self._count = 0
        self._bar: Any = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self._last is not None:
            self._write_line(time.monotonic())
            sys.stderr.write("\n")

    def advance(self, count: int) -> None:
        self._count += count
        now = time.monotonic()
        if not self._shown or now - self._began < QUIET_SECONDS:
            return
        if self._bar is None and self._last is None:
            self._bar = _bar()
            count = self._count
        if self._bar is not None:
            self._bar.update(count)
        elif self._last is None or now - self._last > 0.2:
            self._write_line(now)
            self._last = now

    def _write_line(self, now: float) -> None:
        rate = self._count / max(now - self._began, 1e-9)
        sys.stderr.write(f"\r{self._count:,} answered, {rate:,.0f} a second")
        sys.stderr.flush()


def _bar() -> Any:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm(unit=" answers", unit_scale=True)
