#!/usr/bin/env python3
"""The record of what was fuzzed: runs of a day add up, days stand apart, and SECURITY.md shows what the record says."""

import datetime
import pathlib
import subprocess
import sys
import tempfile

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/fuzz_record"


def call(*arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, SCRIPT, *map(str, arguments)], capture_output=True, text=True)


with tempfile.TemporaryDirectory() as folder:
    record = pathlib.Path(folder) / "record.tsv"
    record.write_text("target\tdate\tcommit\texecutions\tedges\tseconds\nfuzz_csv\t2026-01-02\t-\t5\t6\t7\n")
    for numbers in ((100, 30, 2), (1000, 20, 3)):
        done = call("add", record, "fuzz_csv", "abcdef123", *numbers)
        assert done.returncode == 0, done.stderr
    before = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    rows = [line.split("\t") for line in record.read_text().splitlines()[1:]]
    assert rows[0] == ["fuzz_csv", "2026-01-02", "-", "5", "6", "7"], rows
    sums = [sum(int(row[i]) for row in rows[1:]) for i in (3, 5)]  # a midnight between two calls makes two rows
    assert sums == [1100, 5] and max(int(row[4]) for row in rows[1:]) == 30, rows
    assert rows[-1][1] == before or len(rows) == 3, rows
    done = call("add", record, "fuzz_csv", "0123456+", 7, 1, 1)  # another commit is another row
    assert done.returncode == 0 and record.read_text().count("\t0123456+\t7\t1\t1\n") == 1, record.read_text()
    refused = call("add", record, "fuzz_csv", "today", 1, 1, 1)
    assert refused.returncode == 1 and "no commit" in refused.stderr, refused
    record.write_text("target\tdate\n")
    refused = call("add", record, "fuzz_csv", "abcdef123", 1, 1, 1)
    assert refused.returncode == 1 and "line 1: expected the columns" in refused.stderr, refused

checked = call("check")
print(checked.stdout + checked.stderr, end="")
sys.exit(checked.returncode)
