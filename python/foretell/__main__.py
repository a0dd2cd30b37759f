"""``python -m foretell``: the program, and the two commands that need PyTorch.

``export`` and ``calibrate`` are Python; every other word goes to the program as it stands, which takes this process
over, so that its output, its exit status and its signals are its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from . import _find
from .errors import Error

__all__ = ["main"]

_EXIT = {"usage": 2, "bug": 4}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command line and gives back its exit status, unless the program takes over."""
    line = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if line[:1] == ["export"]:
            from ._export_command import run

            return run(line[1:])
        if line[:1] == ["calibrate"]:
            return _become([sys.executable, "-m", "foretell.calibrate", *line[1:]])
        return _become([str(_find.program()), *line])
    except Error as error:
        print(f"foretell: {error}", file=sys.stderr)
        return _EXIT.get(error.code, 3)


def _become(line: list[str]) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(line[0], line)


if __name__ == "__main__":
    sys.exit(main())
