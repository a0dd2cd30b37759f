"""Requests through `foretell batch`, for scripts that hold forecasts against what others measured.

PROGRAM is that of the build directory BUILD (build).
"""
from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = ROOT / os.environ.get("BUILD", "build") / "foretell"


def rows(path: str | pathlib.Path) -> list[dict]:
    """The objects of a file that has one a line."""
    return [json.loads(line) for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines()]


def ask(requests: list[dict], program: str | pathlib.Path | None = None) -> list[dict]:
    """One answer per request, in order; one that is refused has "ok": false."""
    text = "".join(json.dumps(request) + "\n" for request in requests)
    done = subprocess.run([str(program or PROGRAM), "batch"], input=text, capture_output=True, text=True, check=False)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    if len(answers) != len(requests):
        sys.exit(f"{len(requests)} requests, {len(answers)} answers: {done.stderr}")
    return answers


def forecasts(requests: list[dict], names: list[str]) -> list[dict]:
    """The same; one that is refused ends the script with its name."""
    answers = ask(requests)
    for name, answer in zip(names, answers, strict=True):
        if not answer["ok"]:
            sys.exit(f"{name}: {answer['error']['message']}")
    return answers
