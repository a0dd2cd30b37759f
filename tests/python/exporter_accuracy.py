"""Measured steps beside both forecasts: the config front end's and the exporter's.

    python tests/python/exporter_accuracy.py [--seconds 600] [MEASURED.jsonl.gz ...]

Without files, the measurements of the tree are taken. Prints a row per measured case that exists as a Hugging Face model,
and the mean errors; the exporter is meant to stay within a point of the config front end. Host-bound cases are compared by
busy time alone.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import sys
import time
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

import torch  # noqa: E402
from export_models import ask, build, config_of  # noqa: E402

from foretell.export import ExportError, example_inputs, export  # noqa: E402

# names of the measured models -> catalogue entry and what differs from it
NAMES: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("gpt2", {}),
    "gpt2_pad": ("gpt2", {"vocab_size": 50304}),
    "gpt2_medium": ("gpt2-medium", {}),
    "gpt2_large": ("gpt2-large", {}),
    "gpt3_xl": ("gpt3-1.3b", {}),
    "bert_base": ("bert-base", {}),
    "bert_large": ("bert-large", {}),
    "llama_1b": ("llama-3.2-1b", {}),
    "llama_8b": ("llama-3-8b", {}),
    "resnet50": ("resnet-50", {}),
}


def case_model(row: dict[str, Any]) -> tuple[dict[str, Any], str | None] | None:
    """A row's config and class, or None where it is none of transformers'."""
    if "config" in row:
        config = {k: v for k, v in row["config"].items() if v is not None and k not in ("dtype", "_name_or_path")}
        return config, row["cls"]
    if row["model"] not in NAMES:
        return None
    name, more = NAMES[row["model"]]
    return {**config_of(name), **more}, None


def request_of(row: dict[str, Any]) -> dict[str, Any]:
    asked: dict[str, Any] = {
        "gpu": "h200_sxm",
        "task": "train" if row["mode"] == "train" else "forward",
        "dtype": "amp_bf16" if row["dtype"] == "amp" else row["dtype"],
        "batch": row["batch"],
        "seq": max(1, row["seq"]),
        "attention": "eager" if row.get("attn") == "eager" else "sdpa",
        # pictures in 16 bits were measured channels last, those in fp32 as PyTorch makes them
        "layout": "nchw" if row["dtype"] == "fp32" or "config" in row else "nhwc",
    }
    if row.get("ckpt"):
        asked["recompute"] = "full"
    if row.get("compile"):
        asked["execution"] = "compile"
    return asked


def rows_of(paths: list[Path]) -> list[dict[str, Any]]:
    rows = []
    for path in paths:
        with gzip.open(path, "rt") as lines:
            rows += [json.loads(line) for line in lines]
    plain = [r for r in rows if r["mode"] in ("train", "inf") and not r.get("lora") and r.get("optimizer", "adamw") == "adamw"]
    return [r for r in plain if r.get("profile")]


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("files", nargs="*", type=Path)
    options.add_argument("--seconds", type=float, default=600)
    options.add_argument("--only", default="", help="names that hold this")
    given = options.parse_args()
    warnings.simplefilter("ignore")
    paths = given.files or [ROOT / "data" / "measurements" / "h200" / "models.jsonl.gz"]
    began = time.monotonic()
    errors: dict[str, list[tuple[float, float]]] = {"busy": [], "memory": []}
    print(f"{'model':20} {'case':34} {'measured':>9} {'config':>9} {'export':>9}   {'config':>7} {'export':>7}   memory")
    for row in rows_of(paths):
        found = case_model(row)
        if found is None or given.only not in row["model"]:
            continue
        if time.monotonic() - began > given.seconds:
            print("time is up")
            break
        config, cls = found
        request = request_of(row)
        try:
            if row.get("attn") == "eager":
                config = {**config, "attn_implementation": "eager"}
            model = build(config, cls)
            task = request["task"]
            inputs = example_inputs(model, request["batch"], request["seq"], task=task)
            if request["layout"] == "nhwc" and "pixel_values" in inputs:
                inputs["pixel_values"] = inputs["pixel_values"].to(memory_format=torch.channels_last)
            graph = export(model, inputs, task=task)
            if abs(graph.parameters / row["params"] - 1) > 1e-3:
                print(f"{row['model']:20} another model: {row['params']} parameters were measured, {graph.parameters} exported")
                continue
        except (ExportError, KeyError, TypeError, ValueError, AttributeError) as error:
            print(f"{row['model']:20} {type(error).__name__}: {str(error)[:120]}")
            continue
        asked = {k: v for k, v in config.items() if k != "attn_implementation"}
        a, b = ask([{**request, "model": asked}, {**request, "model": graph.to_dict()}])
        if not (a["ok"] and b["ok"]):
            print(f"{row['model']:20} config: {a.get('error')} export: {b.get('error')}")
            continue
        real = row["profile"]["busy_ms"]
        busy = [x["busy_ms"] / real - 1 for x in (a, b)]
        memory = [x["memory"]["peak_bytes"] / row["peak_bytes"] - 1 for x in (a, b)]
        errors["busy"].append((abs(busy[0]), abs(busy[1])))
        errors["memory"].append((abs(memory[0]), abs(memory[1])))
        about = " ".join(str(row.get(k)) for k in ("mode", "batch", "seq", "dtype", "attn", "ckpt", "compile") if row.get(k))
        print(
            f"{row['model']:20} {about:34} {real:9.2f} {a['busy_ms']:9.2f} {b['busy_ms']:9.2f}   "
            f"{100 * busy[0]:+6.1f}% {100 * busy[1]:+6.1f}%   {100 * memory[0]:+6.1f}% {100 * memory[1]:+6.1f}%",
            flush=True,
        )
    for what, pairs in errors.items():
        if pairs:
            config_error, export_error = (100 * statistics.fmean(p[i] for p in pairs) for i in (0, 1))
            print(f"{what}: {len(pairs)} cases, mean error {config_error:.2f} % by config, {export_error:.2f} % by export")
    return 0


if __name__ == "__main__":
    sys.exit(main())
