"""Writes the operators of each row of models.py's output as readable text, one file a case.

    python models_dump.py models.jsonl.gz --out dumps

A line: phase, operator, shapes, dtypes, kernels x microseconds, the operator around it, then where there are any its
scalars, strides of inputs that are not contiguous, bytes taken and given back, and the kernels' names.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from pathlib import Path
from typing import Any

Row = dict[str, Any]
HEAD = (
    "model",
    "mode",
    "batch",
    "seq",
    "dtype",
    "attn",
    "experts",
    "ckpt",
    "compile",
    "static",
    "optimizer",
    "lora",
    "cls",
    "params",
    "ms",
    "fw_ms",
    "bw_ms",
    "opt_ms",
    "weights_bytes",
    "peak_bytes",
    "launches",
    "cpu_ops",
    "runtime",
)


def short_kernel(name: str) -> str:
    name = re.sub(r"^void ", "", name)
    name = re.sub(r"\(anonymous namespace\)::|at::native::|at_cuda_detail::cub::detail::", "", name)
    return name[:80]


def file_name(row: Row) -> str:
    usual = {"train": None, "inf": None, "prefill": (2, 1024), "decode": (8, 1024)}[row["mode"]]
    parts = [row["model"], row["mode"], row["dtype"]]
    if row["dtype"] == "fp32" and row["attn"] == "eager":
        parts.append("eager")
    parts += [k for k in ("ckpt", "compile", "static", "lora") if row.get(k)]
    parts += [row["optimizer"]] if row.get("optimizer") else []
    if row.get("set") == "recheck" or (usual and usual != (row["batch"], row["seq"])) or row["batch"] == 1:
        parts.append(f"b{row['batch']}s{row['seq']}")
    return ".".join(parts) + ".txt"


def text(row: Row) -> str:
    profile = row["profile"]
    lines = [f"# {k}: {row[k]}" for k in HEAD if row.get(k) not in (None, "")]
    lines.append(f"# busy_ms: {profile['busy_ms']:.4f}  kernels: {profile['kernels']}")
    lines.append(f"# config: {json.dumps({k: v for k, v in row['config'].items() if v is not None})}")
    for op in (dict(zip(row["ops_fields"], line)) for line in row["ops"]):
        line = f"{op['phase'] or '-':3} {op['op']} {op['shapes']} ({op['dtypes']})"
        line += f" {op['kernels']}x {op['device_us']:.2f}us <{op['outer']}>"
        line += f" args={op['scalars']}" if op["scalars"] else ""
        line += f" strides={op['strides']}" if op["strides"] else ""
        line += f" mem=+{op['alloc']}-{op['free']}={op['total']}" if op["alloc"] or op["free"] else ""
        names = [short_kernel(n) for n in [op["kernel"], *(m[0] for m in op["more"])] if n]
        lines.append(line + (f" | {' + '.join(names)}" if names else ""))
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    with gzip.open(arguments.rows, "rt") as file:
        for row in map(json.loads, file):
            (arguments.out / file_name(row)).write_text(text(row))


if __name__ == "__main__":
    main()
