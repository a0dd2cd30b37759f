"""Answers on disk: a folder of Parquet files and a manifest of the chunks that are finished.

``part-000000001000.parquet`` holds the answers to request 1000 and those behind it, so that the files in the order of
their names are the answers in the order of the requests. A file is written under another name and renamed; only then
does the manifest gain its line. Whatever an interruption leaves half done is done again, and nothing is there twice.

Every file has the same columns: ``index``, ``ok``, ``error`` (its message, or null), a column for each number, word or
switch that the first answers held (or those asked for), and ``request`` and ``answer`` as JSON, where everything is.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .._frame import flat
from .._version import __version__
from ..errors import Error
from .chunks import Chunk, Range

__all__ = ["Parts"]

MANIFEST = "manifest.jsonl"
_OWN = ("index", "ok", "error", "request", "answer")


def _arrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise Error("Parquet needs pyarrow (pip install pyarrow)", code="pyarrow_missing", where="output") from None
    return pyarrow


class Parts:
    """The folder that ``foretell.map(..., output=FOLDER)`` writes."""

    def __init__(self, folder: str | os.PathLike[str], columns: Sequence[str] | None, settings: Sequence[Any]) -> None:
        self._arrow = _arrow()
        self.folder = Path(folder)
        self.finished: dict[int, Range] = {}
        self._columns: dict[str, str] | None = None  # name -> "number", "text" or "switch"
        self._wanted = list(columns) if columns is not None else None
        self._settings = list(settings)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._read()
        except OSError as error:
            raise Error(f"{error.strerror}: {error.filename}", code="file", where="output") from None

    # -- the manifest ------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        path = self.folder / MANIFEST
        if not path.exists():
            if any(self.folder.glob("part-*.parquet")):
                raise self._refuse(f"holds Parquet files but no {MANIFEST}")
            return
        lines = path.read_bytes().split(b"\n")
        if lines.pop():  # cut off in the middle of a line: that chunk is not finished
            path.write_bytes(b"".join(line + b"\n" for line in lines))
        if not lines:
            return
        try:
            head, *rest = [json.loads(line) for line in lines]
            self._columns = dict(head["columns"])
            said = (head["foretell"], head["settings"], head["wanted"])
            ranges = [Range(row["first"], row["count"], row["digest"]) for row in rest]
        except (ValueError, KeyError, TypeError):
            raise self._refuse(f"has a {MANIFEST} that is not ours") from None
        if said != (__version__, self._settings, self._wanted):
            raise self._refuse("was begun with another version, predictor, calibration or other columns")
        for where in ranges:
            if self._part(where.first).exists():
                self.finished[where.first] = where

    def _refuse(self, why: str) -> Error:
        return Error(f'"{self.folder}" {why}; name another folder, or delete it', code="file", where="output")

    def _append(self, line: Mapping[str, Any]) -> None:
        with open(self.folder / MANIFEST, "ab") as manifest:
            manifest.write(json.dumps(line).encode() + b"\n")
            manifest.flush()
            os.fsync(manifest.fileno())

    # -- the parts ---------------------------------------------------------------------------------------------------

    def _part(self, first: int) -> Path:
        return self.folder / f"part-{first:012d}.parquet"

    def write(self, chunk: Chunk, answers: bytes) -> None:
        """A chunk's answers; on return they are on disk and in the manifest."""
        told = [json.loads(line) for line in answers.splitlines()]
        rows = [flat(each) for each in told]
        if self._columns is None:
            self._columns = _columns(rows, self._wanted)
            self._append(
                {
                    "foretell": __version__,
                    "settings": self._settings,
                    "wanted": self._wanted,
                    "columns": self._columns,
                }
            )
        table = self._table(chunk, told, rows, answers)
        path = self._part(chunk.where.first)
        half = path.with_suffix(f".half-{os.getpid()}")
        try:
            self._arrow.parquet.write_table(table, half, compression="zstd")
            os.replace(half, path)
            self._append(asdict(chunk.where))
        except OSError as error:
            half.unlink(missing_ok=True)
            raise Error(f"{error.strerror or error}: {path}", code="file", where="output") from None
        self.finished[chunk.where.first] = chunk.where

    def _table(self, chunk: Chunk, told: list[Any], rows: list[dict[str, Any]], answers: bytes) -> Any:
        kinds = {"number": self._arrow.float64(), "text": self._arrow.string(), "switch": self._arrow.bool_()}
        first = chunk.where.first
        columns: dict[str, Any] = {
            "index": self._arrow.array(range(first, first + len(told)), self._arrow.int64()),
            "ok": self._arrow.array([each.get("ok") is True for each in told], self._arrow.bool_()),
            "error": self._arrow.array([_message(each) for each in told], self._arrow.string()),
        }
        for name, kind in (self._columns or {}).items():
            columns[name] = self._arrow.array([_value(row.get(name), kind) for row in rows], kinds[kind])
        for name, text in (("request", chunk.lines), ("answer", answers)):
            columns[name] = self._arrow.array([line.decode() for line in text.splitlines()], self._arrow.string())
        return self._arrow.table(columns)


def _message(answer: Mapping[str, Any]) -> str | None:
    error = answer.get("error")
    return str(error.get("message")) if isinstance(error, Mapping) else None


def _kind(value: Any) -> str:
    return "switch" if isinstance(value, bool) else "number" if isinstance(value, (int, float)) else "text"


def _value(value: Any, kind: str) -> Any:
    """The value where it is of the column's kind; null elsewhere (it stands in ``answer``)."""
    if value is None or _kind(value) != kind:
        return None
    return float(value) if kind == "number" else value


def _columns(rows: Iterable[Mapping[str, Any]], wanted: Sequence[str] | None) -> dict[str, str]:
    """Names and kinds: what was asked for, or what the first answers hold. A column no answer holds yet is a number."""
    seen: dict[str, str] = {}
    for row in rows:
        for name, value in row.items():
            if value is not None and name not in _OWN and not name.startswith("error."):
                seen.setdefault(name, _kind(value))
    return seen if wanted is None else {name: seen.get(name, "number") for name in wanted}
