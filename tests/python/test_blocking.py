"""Launches that block (the trait launches_block), against steps of transformers measured with CUDA_LAUNCH_BLOCKING 0 and 1."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
from pathlib import Path

ROWS = Path(__file__).resolve().parents[2] / "data" / "measurements" / "h200" / "blocking.jsonl"
BLOCKING = {"base": "pytorch", "traits": {"launches_block": True}}


def test_the_host_waits_for_every_kernel() -> None:
    rows = [json.loads(line) for line in ROWS.read_text().splitlines()]
    plain = {"task": "train", "gpu": "h200_sxm", "dtype": "bf16", "attention": "sdpa", "execution": "eager", "optimizer": "none"}
    asked = [plain | {key: row[key] for key in ("model", "batch", "seq")} | more for row in rows for more in ({}, {"stack": BLOCKING})]
    lines = "".join(json.dumps(request) + "\n" for request in asked)
    done = subprocess.run([os.environ["FORETELL_PROGRAM"], "batch"], input=lines, capture_output=True, text=True, check=True)
    times = [json.loads(line)["step_ms"] for line in done.stdout.splitlines()]
    errors = []
    for row, async_ms, blocking_ms in zip(rows, times[::2], times[1::2], strict=True):
        assert abs(async_ms / statistics.median(row["wall_ms"]) - 1) < 0.1
        errors.append(blocking_ms / statistics.median(row["blocking_wall_ms"]) - 1)
        assert blocking_ms > 1.3 * async_ms
    assert statistics.mean(map(abs, errors)) < 0.06
