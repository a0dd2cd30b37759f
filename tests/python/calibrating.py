"""What tests of calibration share: runs on a simulated H200, and what they wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from foretell.calibrate import command
from foretell.calibrate.forecaster import find_program
from foretell.calibrate.options import Options
from foretell.calibrate.simulated import Behaviour, Simulated

ROOT = Path(__file__).resolve().parents[2]
DTYPES = ("bf16", "fp16", "fp32", "tf32", "fp8")


@pytest.fixture(scope="module")
def program() -> Path:
    found = find_program()
    assert found is not None, "build the program first (make), or name it in FORETELL_PROGRAM"
    return found


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def points(path: Path) -> list[dict[str, Any]]:
    return [line for line in lines(path) if "request" in line and line["id"] != "eager"]


def family(point: dict[str, Any]) -> str:
    return point["id"].partition(".")[0]


def run(path: Path, minutes: float, behaviour: Behaviour | None = None, **more: Any) -> int:
    """One run on a simulated H200 by rooflines, which needs no program."""
    device = Simulated("h200_sxm", None, behaviour=behaviour or Behaviour())
    options = Options(minutes=minutes, output=None if more.get("resume") else path, fit=False, **more)
    return command.calibrate(options, device)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No program to ask."""
    monkeypatch.setattr(command, "find_program", lambda: None)
