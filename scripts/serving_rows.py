#!/usr/bin/env python3
"""Measured serving runs as rows for fit_serving.py: serving_rows.py SERVING.csv.gz [--all] > ROWS.jsonl.

SERVING.csv.gz is aiconfigurator's table of measured runs (docs/models/serving.md says what its rows are). A row is
{"request": {"task": "serve", ...}, "ttft_ms": 210.5, "tpot_ms": 9.8, "what": "..."}. Without --all, rows whose settings
cannot be told are left out: what SKIPPED says, DeepSeek R1 under TensorRT-LLM (some ran with drafts, some without), and
of SGLang what is older than 0.5.9 or ran with drafts (of two runs of one configuration the faster).
"""
from __future__ import annotations

import csv
import gzip
import json
import re
import sys

GPUS = {"a100_sxm": "a100_sxm_80gb"}
SKIPPED = (  # engine, GPU, part of the model's name, part of the source
    ("vllm", "h100_sxm", "gpt-oss", "2025-12-0"),  # the client's number is not what it says
    ("vllm", "h200_sxm", "Llama-3.1-8B", "aic-auto"),  # prompts that were cached
    ("trtllm", "", "DeepSeek", ""),
    ("trtllm", "h100_sxm", "gpt-oss", "aic-auto"),
)


def whole(row: dict, key: str) -> int:
    return int(row[key] or 1) or 1


def layout(row: dict) -> tuple[int, int, int, int]:
    """tp, dp, ep and clients. Tables of 2026 multiply tp or dp by ep; ids say what was run."""
    tp, dp, ep = whole(row, "tp_size"), whole(row, "attention_dp_size"), whole(row, "moe_ep_size")
    inner = whole(row, "moe_tp_size")
    said = re.search(r"silicon_concurrency=(\d+)", row["silicon_data_source"])
    if "aic-auto" in row["silicon_data_source"]:
        dp = inner * ep // tp if tp * dp < inner * ep else dp
        return tp, dp, ep, int(row["batch_size"]) * dp
    name = re.search(r"_tp(\d+)(?:_0)?_ep(\d+)(?:_0)?_\d+$", row["id"])
    gpus = tp * dp
    if name:
        gpus, ep = int(name.group(1)), int(name.group(2)) or 1
    elif gpus == inner * ep and inner == ep > 1:
        gpus = inner
    elif tp == dp > 1 and ep == gpus:
        gpus, ep = tp, dp
    clients = int(said.group(1)) if said else int(row["batch_size"]) * dp
    return (1, gpus, ep, clients) if dp > 1 else (gpus, 1, ep, clients)


def request(row: dict) -> dict:
    tp, dp, ep, clients = layout(row)
    formats = {"fp8": "fp8", "fp4": "fp4", "nvfp4": "fp4"}
    asked = {
        "task": "serve", "model": row["model_path"], "gpu": GPUS.get(row["system"], row["system"]),
        "dtype": "fp4" if "gpt-oss" in row["model_path"] else formats.get(row["precision"], "bf16"),
        "isl": int(row["isl"]), "osl": int(row["osl"]), "concurrency": clients, "engine": row["backend"],
        "parallel": {"tp": tp, "pp": whole(row, "pp_size"), "dp": dp, "ep": ep},
    }  # fmt: skip
    if row["precision"] == "int4":
        asked.update(dtype="bf16", weights_dtype="int4")
    if "aic-auto" not in row["silicon_data_source"]:
        asked.update(length_range=[0.8, 1.0], requests=10 * clients)
    return asked


def skipped(row: dict) -> bool:
    source = row["silicon_data_source"]
    if row["backend"] == "sglang":
        return row["backend_version"] != "0.5.9" and "aic-auto" not in source
    parts = (row["backend"], row["system"], row["model_path"], source)
    return any(all(word in part for word, part in zip(words, parts)) for words in SKIPPED)


def without_drafts(rows: list[dict]) -> list[dict]:
    """SGLang's fp8 DeepSeek on B200: its script without drafts has at most 64 clients, long prompts on four GPUs."""
    slowest: dict[str, dict] = {}
    for row in rows:
        asked = row["request"]
        unsure = asked["dtype"] == "fp8" and asked["gpu"] == "b200_sxm" and asked["engine"] == "sglang"
        most = 4 if asked["isl"] > 4096 and asked["parallel"]["tp"] == 8 else 64
        if unsure and asked["concurrency"] > most:
            continue
        key = json.dumps(asked if unsure else row)
        if key not in slowest or slowest[key]["tpot_ms"] < row["tpot_ms"]:
            slowest[key] = row
    return list(slowest.values())


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    every = "--all" in sys.argv
    with gzip.open(sys.argv[1], "rt", newline="") as file:
        table = [row for row in csv.DictReader(file) if row["mode"] == "agg" and row["batch_size"]]
    seen: set[tuple[str, str]] = set()
    rows = []
    for row in table:
        times = (row["silicon_ttft_ms"], row["silicon_tpot_ms"])
        if times in seen or (not every and skipped(row)):
            continue
        seen.add(times)
        measured = {key: float(text) for key, text in zip(("ttft_ms", "tpot_ms"), times) if text}
        rows.append({"request": request(row), **measured})
    for row in rows if every else without_drafts(rows):
        print(json.dumps(row))


if __name__ == "__main__":
    main()
