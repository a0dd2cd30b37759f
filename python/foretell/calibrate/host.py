"""The host: what it takes to issue an operator, as a file that `--host` takes.

A forecast's host figures (data/hosts) are of whole models, which take hours to measure. What a minute can tell is how this
machine compares with the one they are of: the same small operators called in a loop, here and there, the median of the
ratios as `slowdown`. Two figures are measured as such: a small operator in a loop, a node of a replayed graph.
"""

from __future__ import annotations

import json
import statistics
import time
from pathlib import Path
from typing import Any

BASE = "h200_vm"
# Microseconds a call on the base's machine: data/measurements/h200/overhead.json, eager_op, cpu_us, without autograd.
LOOPS_US = {
    "add": 8.51, "add_out": 5.97, "mm": 10.94, "linear": 16.04, "layernorm": 15.48, "softmax": 7.07, "gelu": 7.03,
    "view": 1.30, "transpose": 1.20, "sdpa": 18.79, "embedding": 17.71,
}  # fmt: skip
LEAST_OPERATORS = 5
NODE = "graph_node"  # microseconds between nodes of a replayed graph
SUFFIX = ".host.json"


def slowdown_of(measured_us: dict[str, float]) -> float | None:
    """How many times as long this host takes; None where too few operators were measured to say."""
    ratios = [measured_us[name] / LOOPS_US[name] for name in LOOPS_US if measured_us.get(name, 0.0) > 0.0]
    return statistics.median(ratios) if len(ratios) >= LEAST_OPERATORS else None


def describe(measured_us: dict[str, float], name: str, title: str, software: str) -> dict[str, Any] | None:
    """A host file; None where there is nothing to say."""
    slowdown = slowdown_of(measured_us)
    if slowdown is None:
        return None
    said = {
        "name": name,
        "title": title,
        "software": software,
        "date": time.strftime("%Y-%m-%d"),
        "source": "foretell calibrate: operators in a loop, against the same on the base's machine",
        "base": BASE,
        "slowdown": round(slowdown, 4),
    }
    if "add" in measured_us:
        said["python"] = {"loop_us": round(measured_us["add"], 3)}
    if measured_us.get(NODE, 0.0) > 0.0:
        said["launches"] = {"replay_gap_us": round(measured_us[NODE], 3)}
    return said


def path_beside(measurements: Path) -> Path:
    return measurements.with_suffix(SUFFIX)


def write(path: Path, host: dict[str, Any]) -> None:
    path.write_text(json.dumps(host, indent=2) + "\n", encoding="utf-8")
