"""scripts/layout_sweep: errors, regret and verdicts of runs that are given by column."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "layout_sweep"


def report(file: Path, *flags: str) -> list[str]:
    program = Path(os.environ["FORETELL_PROGRAM"])
    environment = {**os.environ, "BUILD": str(program.parent)}
    command = [sys.executable, str(SCRIPT), *flags, str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.splitlines()


def test_runs_are_forecast_and_counted(tmp_path: Path) -> None:
    """Two layouts that ran, one measured as twice as long; a third that holds more than there is."""
    job = {
        "source": "S", "what": "J", "gpus": 8,
        "request": {"task": "train", "model": "llama-3-8b", "gpu": "h100_sxm", "seq": 2048, "global_batch": 64},
        "kernels": {"k": {"stack": "megatron"}},
        "columns": ["kernel", "recompute", "batch", "tp", "pp", "sp", "seconds"],
    }  # fmt: skip
    regrets = []
    for took in ((1.0, 2.0), (2.0, 1.0)):
        runs = [["k", "full", 1, 8, 1, 0, took[0]], ["k", "full", 1, 4, 1, 0, took[1]]]
        file = tmp_path / "jobs.jsonl"
        file.write_text(json.dumps({**job, "runs": [*runs, ["k", "none", 8, 1, 1, 0, None]]}) + "\n")
        said = report(file)
        (row,) = (line for line in said if line.startswith("| J |"))
        regrets.append(row.split(" | ")[4])
        assert row.split(" | ")[1] == "2" and row.endswith("| 50.0 |")
        assert "| tp 8 | 1 |" in "\n".join(said)
        assert "| out of memory | 0 | 0 | 1 |" in said
        assert any(line.startswith("| ran | 2 |") for line in said)
    assert sorted(regrets) == ["0.0", "100.0"]


def test_what_kernels_add_is_left_out_where_asked_plainly() -> None:
    rows = Path(__file__).resolve().parents[2] / "data" / "published" / "layouts.jsonl"
    whole, plain = ([line for line in report(rows, *flags) if line.startswith("| all |")][0] for flags in ((), ("--plain",)))
    assert float(whole.split(" | ")[2].split(" / ")[1]) < 12 < 16 < float(plain.split(" | ")[2].split(" / ")[1])
