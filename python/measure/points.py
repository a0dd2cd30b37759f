#!/usr/bin/env python3
"""Points of a calibration as tables that fits read: points.py [FOLDER]

`foretell calibrate` leaves a point per line (calibration.jsonl.gz). Its products in device time become calibrated_gemm.csv.gz and
calibrated_bmm.csv.gz, in the columns of the tables without that word. Points that the calibration held out are left
out here too: no fit sees them, so that they can judge every one. Single
products in half precision are left out as well: with them our tables' rows came out 1.7 % too fast. Operands of fp8 products arrive quantised, as in every table of this folder.
"""
from __future__ import annotations

import csv
import gzip
import io
import json
import pathlib
import sys
from typing import Any

H200 = pathlib.Path(__file__).resolve().parent.parent.parent / "data/measurements/h200"
COLUMNS = {
    "gemm": ("dtype", "layout", "m", "n", "k"),
    "bmm": ("dtype", "layout", "b", "m", "n", "k"),
}
LEFT = {"gemm": ("bf16", "fp16")}  # said in docs/models/gemm.md
FILES = {"gemm": "calibrated_gemm.csv.gz", "bmm": "calibrated_bmm.csv.gz"}


def points(folder: pathlib.Path) -> list[dict[str, Any]]:
    with gzip.open(folder / "calibration.jsonl.gz", "rt") as file:
        lines = [json.loads(line) for line in file]
    return [line for line in lines if "request" in line and line["request"].get("timing") != "op"]


def table(lines: list[dict[str, Any]], op: str) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*COLUMNS[op], "ms"])
    for line in lines:
        request = line["request"]
        if request["op"] != op or line["held_out"] or request["dtype"] in LEFT.get(op, ()):
            continue
        unknown = set(request) - set(COLUMNS[op]) - {"op"} - ({"quantized"} if request.get("quantized") is True else set())
        if unknown:
            raise SystemExit(f"points.py: a point of {op} says {', '.join(sorted(unknown))}, for which there is no column")
        writer.writerow([*(request[column] for column in COLUMNS[op]), line["ms"]])
    return gzip.compress(text.getvalue().encode(), mtime=0)


def main() -> None:
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else H200
    lines = points(folder)
    for op, name in FILES.items():
        (folder / name).write_bytes(table(lines, op))


if __name__ == "__main__":
    main()
