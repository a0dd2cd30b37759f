"""Measurement tables: one CSV per family, plain or gzipped, figures in milliseconds with six decimals.

A table fresh from measure.py has one column more than those under data/measurements: `launches`, how many shared a
graph.
"""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # reading and merging tables needs no PyTorch
    from family import Case, Family

    from foretell.calibrate.timing import Sample

TIMES = ("ms", "ms_min", "ms_max")
LAUNCHES = "launches"


def find(folder: Path, name: str) -> Path | None:
    return next((p for p in (folder / f"{name}.csv.gz", folder / f"{name}.csv") if p.exists()), None)


def read(folder: Path, name: str) -> list[dict[str, str]]:
    path = find(folder, name)
    if path is None:
        return []
    with gzip.open(path, "rt", newline="") if path.suffix == ".gz" else open(path, newline="") as file:
        return list(csv.DictReader(file))


def write(path: Path, rows: list[dict[str, str]]) -> None:
    """The same rows give the same bytes: no time stamp in the gzip header."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    data = text.getvalue().encode()
    path.write_bytes(gzip.compress(data, 9, mtime=0) if path.suffix == ".gz" else data)


class Appender:
    """Writes rows as they come, so that a run that is cut off keeps what it has."""

    def __init__(self, path: Path, family: Family) -> None:
        self._file = open(path, "w", newline="")
        self._writer = csv.writer(self._file, lineterminator="\n")
        self._columns = family.columns
        self._pending = 0
        self._writer.writerow([*family.columns, *TIMES, *family.parts, LAUNCHES])

    def add(self, case: Case, sample: Sample, parts: list[float]) -> None:
        figures = [sample.ms, sample.ms_min, sample.ms_max, *parts]
        self._writer.writerow([*(case[c] for c in self._columns), *(f"{x:.6f}" for x in figures), sample.launches])
        self._pending += 1
        if self._pending % 20 == 0:
            self._file.flush()

    def close(self) -> None:
        self._file.close()
