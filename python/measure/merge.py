"""Adds freshly measured tables to a folder of them: python merge.py NEW_DIR... DATA_DIR [--graph-start-us 6]

Rows whose shape DATA_DIR already holds are dropped, so merging twice changes nothing; so are disturbed rows (see
below). Families that DATA_DIR lacks get a gzipped file of their own. The launches column moves to launches.csv.gz
(family, row of its table counted from 0, launches).

--graph-start-us makes samples taken two ways compare. A sample contains what lies between the start of a graph and
its first kernel, divided by the graph's launches: nothing where the graph was queued behind a long one, a wait for
the host where it was short. The first H200 set behaves as if every replay had begun on an idle device, the start then
being the same each time: on 264 of its rows timed again (`measure.py --recheck`) the difference per graph had a
median of -4 us for graphs under 30 us, zero around 45 us, and 4 to 6 us from 80 us on. The line below was fitted to
those rows. With 0 nothing is added.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import tables
from tables import TIMES

Row = dict[str, str]
SIDE_TABLE = "launches"
SHORT_GRAPH_US = 30.0
SPREAD_MAX = 1.2


def shape_of(row: Row) -> tuple[str, ...]:
    return tuple(value for column, value in row.items() if column not in TIMES and not column.endswith("_ms"))


def disturbed(row: Row) -> bool:
    """The host was in the way: a graph too short to hide it, or a median far from the fastest replay."""
    graph_us = float(row["ms"]) * 1e3 * int(row.get(tables.LAUNCHES, 1 << 20))
    return graph_us < SHORT_GRAPH_US or float(row["ms"]) > SPREAD_MAX * float(row["ms_min"])


def start_difference_us(graph_us: float, start_us: float) -> float:
    """What a host that waits before each replay adds to a graph: -start_us below 10 us of work, +start_us above 80."""
    return start_us * (2 * min(max((graph_us - 10) / 70, 0.0), 1.0) - 1)


def as_timed_there(row: Row, start_us: float) -> Row:
    """The row in the columns, and by the host, of DATA_DIR."""
    row = dict(row)
    launches = int(row.pop(tables.LAUNCHES, 0))
    if launches and start_us:
        shift_ms = start_difference_us(float(row["ms"]) * 1e3 * launches, start_us) / 1e3 / launches
        row.update({column: f"{float(row[column]) + shift_ms:.6f}" for column in TIMES})
    return row


def merge(new_dir: Path, data_dir: Path, start_us: float) -> dict[str, tuple[int, int]]:
    """Family -> (rows before, rows after)."""
    counts: dict[str, tuple[int, int]] = {}
    side = tables.read(data_dir, SIDE_TABLE)
    for name in sorted(p.name.split(".csv")[0] for p in new_dir.glob("*.csv*")):
        rows = tables.read(data_dir, name)
        before, known = len(rows), {shape_of(row) for row in rows}
        for measured in tables.read(new_dir, name):
            row = as_timed_there(measured, start_us)
            if rows and list(row) != list(rows[0]):
                raise SystemExit(f"{name}: columns differ from those in {data_dir}")
            if shape_of(row) not in known and not disturbed(measured):
                known.add(shape_of(row))
                side.append({"family": name, "row": str(len(rows)), "launches": measured.get(tables.LAUNCHES, "")})
                rows.append(row)
        if len(rows) > before:
            tables.write(tables.find(data_dir, name) or data_dir / f"{name}.csv.gz", rows)
        counts[name] = (before, len(rows))
    if side:
        tables.write(data_dir / f"{SIDE_TABLE}.csv.gz", side)
    return counts


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("new_dirs", type=Path, nargs="+")
    parser.add_argument("data_dir", type=Path)
    parser.add_argument("--graph-start-us", type=float, default=0.0)
    arguments = parser.parse_args()
    for new_dir in arguments.new_dirs:
        for family, (before, after) in merge(new_dir, arguments.data_dir, arguments.graph_start_us).items():
            print(f"{family:12} {before:6} -> {after:6} rows")
