"""``python -m foretell``: the program, and what needs PyTorch.

``export`` and ``calibrate`` are Python, and so is ``web`` in a wheel; every other word goes to the program as it stands, which takes this process
over, so that its output, its exit status and its signals are its own. A ``.pt2`` file in the place of a model is made a
graph file on the way.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

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
        if line[:1] == ["web"] and _find.program().parent == _find.NATIVE:  # the wheel's program has no server
            from ._web import main as serve

            return serve(line[1:])
        saved = [at for at, word in enumerate(line) if at and word.endswith(".pt2") and os.path.isfile(word)]
        if line[:1] in (["train"], ["infer"]) and saved:
            return _with_graph(line, saved[0])
        return _become([str(_find.program()), *line])
    except Error as error:
        print(f"foretell: {error}", file=sys.stderr)
        return _EXIT.get(error.code, 3)


def _with_graph(line: list[str], at: int) -> int:
    """The command line with the saved program at ``at`` as a graph file, which lives as long as the program runs."""
    from ._export_command import captured

    graph, name = captured(line[at], "train" if line[0] == "train" else "forward")
    for warning in graph.warnings:
        print(f"foretell: warning: {warning}", file=sys.stderr)
    with TemporaryDirectory() as folder:
        place = Path(folder) / f"{name}.ft.json"
        graph.save(place)
        return subprocess.run([str(_find.program()), *line[:at], str(place), *line[at + 1 :]], check=False).returncode


def _become(line: list[str]) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(line[0], line)


if __name__ == "__main__":
    sys.exit(main())
