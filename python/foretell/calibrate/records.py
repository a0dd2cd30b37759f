"""The file of measurements: JSON Lines, a header and then a line per point, each flushed whole.

docs/calibrate.md describes it; `foretell fit --calibrate` reads it. A point that could not be measured leaves a remark
that holds its request, so that a run that goes on does not try it again.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from .cell import Request
from .errors import EXIT_USAGE, CalibrateError

VERSION = 1
SKIPPED = "skipped "  # "skipped ID: REASON: REQUEST"


@dataclass(frozen=True)
class Row:
    """A measured point, or, without `ms`, one that was skipped."""

    id: str
    request: Request
    ms: float | None
    at_s: float
    held_out: bool


@dataclass
class Earlier:
    """What a file holds already."""

    header: dict[str, Any]
    rows: list[Row] = field(default_factory=list)
    spent_s: float = 0.0
    whole_bytes: int = 0  # up to here the file is lines; what follows was cut off while it was written


def read(path: Path) -> Earlier:
    """Raises CalibrateError, with the line, for anything but a measurement file whose last line may be cut off."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CalibrateError(f"{path}: {error.strerror}") from None
    earlier: Earlier | None = None
    whole, number = 0, 0
    for number, line in enumerate(data.split(b"\n"), 1):
        last = whole + len(line) >= len(data)
        if line.strip():
            try:
                entry = json.loads(line)
            except ValueError:
                if last:
                    break
                raise CalibrateError(f"{path}:{number}: not JSON") from None
            if not isinstance(entry, dict):
                raise CalibrateError(f"{path}:{number}: an object is expected")
            if "foretell_calibration" in entry:
                earlier = _header(entry, earlier, path, number)
            elif earlier is None:
                raise CalibrateError(f"{path}:{number}: no measurements of calibrate (its first line names the GPU)")
            else:
                _entry(entry, earlier, path, number)
        whole += len(line) + (0 if last else 1)
    if earlier is None:
        raise CalibrateError(f"{path}: no measurements of calibrate (the file is empty)")
    earlier.whole_bytes = min(whole, len(data))
    return earlier


def _header(entry: dict[str, Any], earlier: Earlier | None, path: Path, number: int) -> Earlier:
    if entry["foretell_calibration"] != VERSION:
        raise CalibrateError(
            f"{path}:{number}: format {entry['foretell_calibration']!r}; this version writes and continues {VERSION}"
        )
    if earlier is None:
        return Earlier(entry)
    if entry.get("gpu") != earlier.header.get("gpu"):
        raise CalibrateError(f"{path}:{number}: two GPUs in one file")
    earlier.header = entry
    return earlier


def _entry(entry: dict[str, Any], earlier: Earlier, path: Path, number: int) -> None:
    at_s = entry.get("at_s", 0.0)
    if not isinstance(at_s, (int, float)) or not 0 <= at_s < math.inf:
        raise CalibrateError(f"{path}:{number}: at_s {at_s!r} is not a time")
    earlier.spent_s = max(earlier.spent_s, float(at_s))
    if "note" in entry:
        row = _skipped(str(entry["note"]), float(at_s))
        if row:
            earlier.rows.append(row)
        return
    request, ms = entry.get("request"), entry.get("ms")
    if not isinstance(request, dict) or "op" not in request:
        raise CalibrateError(f"{path}:{number}: a point needs a request with an op")
    if not isinstance(ms, (int, float)) or not 0 < ms < math.inf:
        raise CalibrateError(f"{path}:{number}: ms {ms!r} is not a time")
    earlier.rows.append(Row(str(entry.get("id", "")), request, float(ms), float(at_s), bool(entry.get("held_out"))))


def _skipped(note: str, at_s: float) -> Row | None:
    if not note.startswith(SKIPPED):
        return None
    name, _, rest = note.removeprefix(SKIPPED).partition(": ")
    try:
        request = json.loads(rest[rest.index("{") :])
    except ValueError:
        return None
    return Row(name, request, None, at_s, False)


def refuse_existing(path: Path) -> None:
    """A file that is there and not to be continued is never written over."""
    if path.exists():
        raise CalibrateError(
            f"{path} is there already: --resume {path} goes on with it, --output names another", EXIT_USAGE
        )


class Writer:
    """Appends lines; each is with the system before the next point is begun."""

    def __init__(self, path: Path, keep_bytes: int | None = None) -> None:
        """A new file, or with `keep_bytes` an old one, cut behind its last whole line."""
        self.path = path
        if keep_bytes is None:
            refuse_existing(path)
        try:
            if keep_bytes is None:
                self._file: TextIO = open(path, "x", encoding="utf-8")
            else:
                os.truncate(path, keep_bytes)
                self._file = open(path, "a", encoding="utf-8")
                if keep_bytes and path.read_bytes()[-1:] != b"\n":
                    self._file.write("\n")
        except OSError as error:
            raise CalibrateError(f"{path}: {error.strerror}") from None

    def header(self, gpu: str | dict[str, Any], facts: dict[str, Any]) -> None:
        self._line({"foretell_calibration": VERSION, "gpu": gpu, **facts})

    def point(self, name: str, request: Request, ms: float, at_s: float, held_out: bool, **more: float) -> None:
        """`more`: spread, repeats, clock_mhz, power_w, temperature_c."""
        entry = {"request": request, "ms": float(f"{ms:.6g}"), "at_s": round(at_s, 3), "held_out": held_out, "id": name}
        rounded = {key: float(f"{value:.4g}") if isinstance(value, float) else value for key, value in more.items()}
        self._line({**entry, **rounded})

    def skipped(self, name: str, request: Request, reason: str, at_s: float) -> None:
        reason = reason.replace("{", "(").replace("}", ")")
        self.note(f"{SKIPPED}{name}: {reason}: {json.dumps(request)}", at_s)

    def note(self, text: str, at_s: float) -> None:
        self._line({"note": text, "at_s": round(at_s, 3)})

    def close(self) -> None:
        self._file.close()

    def _line(self, entry: dict[str, Any]) -> None:
        try:
            self._file.write(json.dumps(entry, separators=(",", ":")) + "\n")
            self._file.flush()
        except OSError as error:
            raise CalibrateError(f"{self.path}: {error.strerror}") from None


def lines_of(rows: list[Row]) -> Iterator[tuple[str, Request, float | None, bool, float]]:
    """As Chooser.restore takes them: what each took is the time since the one before."""
    before = 0.0
    for row in rows:
        took = max(row.at_s - before, 0.0)
        before = max(before, row.at_s)
        if row.request.get("timing") != "op":
            yield row.id, row.request, row.ms, row.held_out, took
