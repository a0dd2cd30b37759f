"""From measurements to a calibration: `foretell fit --calibrate`, when the program is there."""

from __future__ import annotations

import subprocess
from pathlib import Path


def command_of(program: Path | str, measurements: Path, calibration: Path, predictor: str | None) -> list[str]:
    more = ["--predictor", predictor] if predictor else []
    return [str(program), "fit", "--calibrate", str(measurements), *more, "-o", str(calibration)]


def fit(program: Path, measurements: Path, calibration: Path, predictor: str | None) -> int:
    """Prints its table of errors before and after; the exit status is the program's."""
    return subprocess.run(command_of(program, measurements, calibration, predictor), check=False).returncode
