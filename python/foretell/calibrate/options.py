"""The command line."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from .cells import DTYPES, FAMILIES
from .errors import EXIT_USAGE, CalibrateError

MOST_MINUTES = 24 * 60.0


@dataclass(frozen=True)
class Options:
    minutes: float = 5.0
    output: Path | None = None
    resume: Path | None = None
    families: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    held_out: float = 0.15
    seed: int = 0
    gpu: str | dict[str, Any] | None = None
    predictor: str | None = None
    calibration: Path | None = None
    fit: bool = True
    allow_busy: bool = False
    simulate: str | None = None


def _number(low: float, high: float, what: str) -> Callable[[str], float]:
    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f'"{text}" is no {what} from {low:g} to {high:g}')
        return value

    return parse


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _gpu(text: str) -> str | dict[str, Any]:
    """A catalogue name, or the object in a spec file."""
    path = Path(text)
    if not (path.suffix == ".json" or path.is_file()):
        return text
    try:
        spec = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CalibrateError(f"--gpu {path}: {error.strerror}") from None
    except ValueError as error:
        raise CalibrateError(f"--gpu {path}: {error}") from None
    if not isinstance(spec, dict) or not spec.get("name"):
        raise CalibrateError(f'--gpu {path}: a spec object with a "name" is expected')
    return spec


class _Parser(argparse.ArgumentParser):
    """Complains as the program does."""

    def error(self, message: str) -> NoReturn:
        raise CalibrateError(message + "\nTry: foretell calibrate --help", EXIT_USAGE)


def parser() -> argparse.ArgumentParser:
    p = _Parser(
        prog="foretell calibrate",
        description="Measures kernels on the GPU of this machine for a few minutes and adapts the forecasts to it.",
        epilog="Ctrl-C ends the measuring and keeps what there is. The calibration goes to every command with "
        "--calibration.",
    )
    p.add_argument("--minutes", type=_number(0.01, MOST_MINUTES, "time"), default=5.0, metavar="X",
                   help="time to measure, including the earlier runs of --resume [5]")  # fmt: skip
    p.add_argument("-o", "--output", type=Path, metavar="FILE",
                   help="where the measurements go [calibration-GPU.jsonl]; the calibration beside them")  # fmt: skip
    p.add_argument("--resume", type=Path, metavar="FILE", help="go on with these measurements")
    p.add_argument("--families", type=_names, default=(), metavar="LIST", help=f"of {','.join(FAMILIES)} [all]")
    p.add_argument("--dtypes", type=_names, default=(), metavar="LIST", help=f"of {','.join(DTYPES)} [all]")
    p.add_argument("--held-out", type=_number(0.0, 0.5, "share"), default=0.15, metavar="X",
                   help="share of the points held out from the fit, for the errors before and after [0.15]")  # fmt: skip
    p.add_argument("--seed", type=int, default=0, metavar="N", help="another choice of shapes [0]")
    p.add_argument("-g", "--gpu", metavar="GPU", help="catalogue name or spec file [as the driver names it]")
    p.add_argument("-p", "--predictor", metavar="FILE", help="the predictor to adapt [the one built in]")
    p.add_argument("--calibration", type=Path, metavar="FILE", help="where the calibration goes [OUTPUT.ftcal]")
    p.add_argument("--no-fit", action="store_true", help="only measure")
    p.add_argument("--allow-busy", action="store_true", help="measure even if somebody else is using the GPU")
    p.add_argument("--simulate", metavar="GPU", help="a dry run without a GPU: times are forecasts with noise")
    return p


def parse(arguments: Sequence[str]) -> Options:
    given = parser().parse_args(arguments)
    if given.output and given.resume and given.output != given.resume:
        raise CalibrateError("--resume goes on in its own file; leave --output out", EXIT_USAGE)
    return Options(
        minutes=given.minutes,
        output=given.output,
        resume=given.resume,
        families=given.families,
        dtypes=given.dtypes,
        held_out=given.held_out,
        seed=given.seed,
        gpu=_gpu(given.gpu) if given.gpu else None,
        predictor=given.predictor,
        calibration=given.calibration,
        fit=not given.no_fit,
        allow_busy=given.allow_busy,
        simulate=given.simulate,
    )
