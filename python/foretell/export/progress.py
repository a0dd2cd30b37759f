"""A line on the terminal when a capture takes longer than people wait without one."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from typing import TextIO

__all__ = ["progress"]

AFTER_S = 2.0  # of silence


@contextlib.contextmanager
def progress(what: str, out: TextIO | None = None, after: float = AFTER_S) -> Iterator[None]:
    """Says every few seconds what is going on, over and over in one line; nothing where nobody looks at a terminal."""
    stream = out if out is not None else sys.stderr
    if not (hasattr(stream, "isatty") and stream.isatty()):
        yield
        return
    done = threading.Event()
    began = time.monotonic()

    def tell() -> None:
        wait = after
        while not done.wait(wait):
            stream.write(f"\rforetell: {what}, {time.monotonic() - began:.0f} s")
            stream.flush()
            wait = 1.0

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()
        if time.monotonic() - began > after:
            stream.write("\r\033[K")
            stream.flush()
