"""What Foretell itself would say of a point before it is measured: `foretell batch` in a dialogue.

Where the program cannot be found or started, a roofline takes its place; points are then chosen by how far they lie
from others and by how badly the roofline fits around them.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from .cell import Request
from .work import Roofline

WIDE = 1.5  # how far off a roofline is taken to be, either way


@dataclass(frozen=True)
class Forecast:
    ms: float
    low_ms: float
    high_ms: float


class Forecaster(Protocol):
    name: str

    def ask(self, requests: Sequence[Request]) -> list[Forecast | None]:
        """None for a request that it cannot answer."""
        ...

    def learn(self, request: Request, ms: float) -> None: ...

    def close(self) -> None: ...


class ByRoofline:
    name = "roofline"

    def __init__(self, roofline: Roofline | None = None) -> None:
        self.roofline = roofline or Roofline()

    def ask(self, requests: Sequence[Request]) -> list[Forecast | None]:
        times = [self.roofline.ms(request) for request in requests]
        return [Forecast(ms, ms / WIDE, ms * WIDE) for ms in times]

    def learn(self, request: Request, ms: float) -> None:
        self.roofline.learn(request, ms)

    def close(self) -> None:
        pass


class ByProgram:
    """The program stays; a batch of requests goes in, as many lines come out. When it ends, a roofline goes on."""

    def __init__(self, program: Path, gpu: str | dict[str, Any], predictor: str | None = None) -> None:
        self.name = "foretell"
        self.gpu = gpu
        self._roofline = ByRoofline()
        line = [str(program), "batch", *(["--predictor", predictor] if predictor else [])]
        # Its own session: an interrupt at the terminal is for the measuring, which then closes the dialogue itself.
        self._process: subprocess.Popen[str] | None = subprocess.Popen(
            line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            start_new_session=True,
        )  # fmt: skip

    def ask(self, requests: Sequence[Request]) -> list[Forecast | None]:
        told = self._roofline.ask(requests)
        for at, request in enumerate(requests):
            answer = self._one(request)
            if answer is None:
                break
            ok = answer.get("ok") and answer.get("ms", 0) > 0
            told[at] = Forecast(answer["ms"], answer["low_ms"], answer["high_ms"]) if ok else None
        return told

    def learn(self, request: Request, ms: float) -> None:
        self._roofline.learn(request, ms)

    def close(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        for stream in (process.stdin, process.stdout):
            if stream:
                try:
                    stream.close()
                except OSError:
                    pass
        try:
            process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _one(self, request: Request) -> dict[str, Any] | None:
        """Line in, line out: never more in the pipe than it holds. None: the program is gone."""
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            return None
        try:
            process.stdin.write(json.dumps({"task": "kernel", "gpu": self.gpu, **request}) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
            if line:
                told: dict[str, Any] = json.loads(line)
                return told
        except (OSError, ValueError):
            pass
        self.close()
        self.name = "roofline"
        return None


def find_program() -> Path | None:
    """FORETELL_PROGRAM, the wheel's, one built in the source tree, or the system's; None where there is none."""
    try:
        from .._find import program
    except ImportError:
        named = os.environ.get("FORETELL_PROGRAM")
        return Path(named) if named and Path(named).is_file() else None
    try:
        return program()
    except Exception:  # whatever it is, measuring does not need the program
        return None


def open_forecaster(program: Path | None, gpu: str | dict[str, Any], predictor: str | None) -> Forecaster:
    """The program's forecasts where it starts and answers, a roofline otherwise."""
    if program is not None:
        try:
            asked = ByProgram(program, gpu, predictor)
        except OSError:
            return ByRoofline()
        if asked.ask([{"op": "gemm", "dtype": "fp32", "m": 512, "n": 512, "k": 512}])[0] and asked.name == "foretell":
            return asked
        asked.close()
    return ByRoofline()
