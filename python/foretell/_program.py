"""The program as a function: for commands that ask the library many times over (infer, compare, trace)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from . import _find, _library
from ._library import DEFAULT, Settings
from .errors import Error, error_from

__all__ = ["ask", "dumps", "flags_of", "json_file"]

# Exit statuses 0 and 1 are answers: yes, and no (it does not fit).
_ANSWERED = (0, 1)
_CODE_OF_STATUS = {2: "usage", 3: "bad_input", 4: "bug"}


def flags_of(request: Mapping[str, Any]) -> list[str]:
    """Keys of a request as options of the program: ``{"batch": [1, 4]}`` becomes ``--batch 1 --batch 4``.

    >>> flags_of({"kv_dtype": "fp8", "batch": [1, 4], "parallel": {"tp": 2, "sp": True}})
    ['--kv-dtype', 'fp8', '--batch', '1', '--batch', '4', '--tp', '2', '--sp']
    """
    flags: list[str] = []
    for key, value in request.items():
        if value is None:
            continue
        if isinstance(value, Mapping):
            flags += flags_of(value)
            continue
        flag = "--" + key.replace("_", "-")
        for one in value if isinstance(value, (list, tuple, range)) else [value]:
            if one is True:
                flags.append(flag)
            elif one is False:
                flags.append("--no-" + key.replace("_", "-"))
            else:
                flags += [flag, str(one)]
    return flags


def dumps(document: Any) -> str:
    """JSON, or an :class:`Error` where the document is none."""
    try:
        return json.dumps(document, allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise Error(f"this is not JSON: {error}", code="syntax") from None


def ask(command: str, *arguments: str, settings: Settings = DEFAULT) -> Any:
    """Runs ``foretell COMMAND … --json`` and gives back what it printed, or raises what it complained of."""
    line = [str(_find.program()), command, *arguments, "--json"]
    if any(settings):
        _library.context(settings)  # says what is wrong with either, with its code
    if settings.predictor:
        line += ["--predictor", settings.predictor]
    if settings.calibration:
        line += ["--calibration", settings.calibration]
    done = subprocess.run(line, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    try:
        told = json.loads(done.stdout) if done.stdout.strip() else None
    except ValueError:
        told = None
    if isinstance(told, dict) and told.get("ok") is False:
        raise error_from(told)
    if done.returncode not in _ANSWERED or told is None:
        raise Error(_complaint(done.stderr, command), code=_CODE_OF_STATUS.get(done.returncode, "bug"))
    return told


def _complaint(stderr: str, command: str) -> str:
    """The sentence after the program's name; hints about --help are for people at a terminal."""
    for line in stderr.splitlines():
        for start in (f"foretell {command}: ", "foretell: "):
            if line.startswith(start) and ": warning: " not in line:
                return line[len(start) :]
    return stderr.strip() or f"foretell {command} ended without an answer"


@contextmanager
def json_file(document: Any, name: str = "config.json") -> Iterator[Path]:
    """A document as a file that is gone afterwards."""
    with TemporaryDirectory(prefix="foretell-") as folder:
        path = Path(folder) / name
        path.write_text(dumps(document), encoding="utf-8")
        yield path
