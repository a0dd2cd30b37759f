"""What can go wrong while measuring, and the exit status each ends with (0 to 4 as the program's)."""

from __future__ import annotations

EXIT_USAGE = 2
EXIT_INPUT = 3
EXIT_INTERRUPTED = 130  # as a shell reports SIGINT


class CalibrateError(Exception):
    """Ends the run: one sentence for the user, and an exit status."""

    def __init__(self, message: str, status: int = EXIT_INPUT) -> None:
        super().__init__(message)
        self.status = status


class Skip(Exception):
    """One point cannot be measured here; the run goes on without it."""


class OutOfMemory(Skip):
    """The point does not fit the memory that is free."""
