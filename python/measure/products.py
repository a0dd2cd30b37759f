#!/usr/bin/env python3
"""Profiled products as a table that fits read: products.py [FOLDER]

products.csv.gz has the kernels' own times, taken among seven other processes: nothing between launches, and operands that the
others drove out of L2. Shapes that gemm.csv.gz has too say what a graph takes instead: the median ratio of the two, by format, time,
number of kernels and the share of the time that reading the operands from memory would be. Times so corrected become
profiled_gemm.csv.gz, in the columns of gemm.csv.gz. Shapes that fits hold out correct nothing and are left out; shapes that
gemm.csv.gz has are left out as well, since their own times are there.
"""
from __future__ import annotations

import bisect
import collections
import csv
import gzip
import io
import pathlib
import statistics
import struct
import sys
from collections.abc import Iterator

H200 = pathlib.Path(__file__).resolve().parent.parent.parent / "data/measurements/h200"
BYTES = {"bf16": 2, "fp16": 2, "tf32": 4, "fp32": 4}
CLASS = {"bf16": "half", "fp16": "half", "tf32": "tf32", "fp32": "fp32"}
FILE = "profiled_gemm.csv.gz"
MICROSECONDS = (2.5, 3, 4, 5, 6, 8, 11, 16, 22, 32, 45, 64, 128, 256, 512)
SHARES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
MOST_KERNELS = 3
BANDWIDTH = 4.8e6  # bytes per microsecond of an H200
ENOUGH = 8  # pairs for a median
FURTHEST = 2  # a pair further apart is another kernel

Row = dict[str, str]


def held_out(row: Row) -> bool:
    """As src/fit/read_own.c holds rows out: by a hash of n and k."""
    value = 0xCBF29CE484222325 ^ 1
    for byte in struct.pack("<qqq", int(row["n"]), int(row["k"]), 0):
        value = (value ^ byte) * 0x100000001B3 & (1 << 64) - 1
    return ((value ^ value >> 32) & 0xFFFFFFFF) % 10 == 3


def shape(row: Row) -> tuple[str, ...]:
    return tuple(row[column] for column in ("dtype", "layout", "m", "n", "k"))


def cells(row: Row) -> Iterator[tuple[object, ...]]:
    """What a row is corrected by, the narrowest first."""
    us, m, n, k = float(row["us"]), int(row["m"]), int(row["n"]), int(row["k"])
    share = BYTES[row["dtype"]] * k * (m + n) / BANDWIDTH / us
    by_time = CLASS[row["dtype"]], bisect.bisect(MICROSECONDS, us), min(int(row["kernels"]), MOST_KERNELS)
    yield *by_time, bisect.bisect(SHARES, share)
    yield by_time
    yield by_time[:2]


def corrections(rows: list[Row], graphs: dict[tuple[str, ...], float]) -> dict[tuple[object, ...], float]:
    ratios: dict[tuple[object, ...], list[float]] = collections.defaultdict(list)
    for row in rows:
        if shape(row) not in graphs or held_out(row):
            continue
        ratio = graphs[shape(row)] / float(row["us"])
        if not 1 / FURTHEST < ratio < FURTHEST:
            continue
        for cell in cells(row):
            ratios[cell].append(ratio)
    return {cell: statistics.median(found) for cell, found in ratios.items() if len(found) >= ENOUGH}


def read(folder: pathlib.Path, name: str) -> list[Row]:
    with gzip.open(folder / name, "rt") as file:
        return list(csv.DictReader(file))


def table(folder: pathlib.Path) -> bytes:
    graphs = {shape(row): 1e3 * float(row["ms"]) for row in read(folder, "gemm.csv.gz")}
    rows = read(folder, "products.csv.gz")
    factor = corrections(rows, graphs)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["dtype", "layout", "m", "n", "k", "ms"])
    for row in rows:
        if shape(row) in graphs or held_out(row):
            continue
        known = [factor[cell] for cell in cells(row) if cell in factor]
        if known:
            writer.writerow([*shape(row), f"{1e-3 * float(row['us']) * known[0]:.4g}"])
    return gzip.compress(text.getvalue().encode(), mtime=0)


def main() -> None:
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else H200
    (folder / FILE).write_bytes(table(folder))


if __name__ == "__main__":
    main()
