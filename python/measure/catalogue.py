"""Training steps of catalogue models at full depth, random weights: catalogue.py OUT

A blind check: which models, batches and ways was written down before anything was forecast, and nothing is fitted to the rows.
bf16, sdpa, fused AdamW, eager; `full` is transformers' own checkpointing. `ms` is the median of nine steps between CUDA events,
`busy_ms` the kernels' time of one more step under the profiler, bytes the allocator's peaks.
"""
from __future__ import annotations

import gc
import json
import pathlib
import statistics
import sys

import torch
import transformers
from torch.profiler import ProfilerActivity, profile

from steps import timed_step

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CASES = [
    ("qwen3-1.7b", 4, 1024, "none"), ("qwen3-1.7b", 4, 1024, "full"), ("qwen3-4b", 2, 2048, "full"), ("gemma-2-2b", 2, 1024, "none"),
    ("llama-3.2-3b", 4, 2048, "none"), ("llama-3.2-3b", 8, 2048, "full"), ("starcoder2-3b", 2, 2048, "none"), ("olmo-2-1b", 4, 2048, "none"),
    ("olmo-2-7b", 2, 1024, "full"), ("pythia-1.4b", 8, 1024, "none"), ("opt-1.3b", 8, 1024, "none"), ("smollm2-1.7b", 8, 1024, "none"),
    ("qwen2.5-3b", 4, 1024, "full"),
]  # fmt: skip


def measure(model_of: str | dict, batch: int, seq: int, recompute: str) -> dict:
    """One row; the model is a name of the catalogue or a config with its `model_type`."""
    gc.collect()
    torch.cuda.empty_cache()
    named = isinstance(model_of, str)
    config = dict(json.loads((ROOT / f"data/models/{model_of}.json").read_text())["config"] if named else model_of)
    built = transformers.AutoConfig.for_model(config.pop("model_type"), **config)
    built.use_cache = False
    with torch.device("cuda"):
        model = transformers.AutoModelForCausalLM.from_config(built, attn_implementation="sdpa", dtype=torch.bfloat16).train()
    if recompute == "full":
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    tokens = torch.randint(0, 1000, (batch, seq), device="cuda")

    def step() -> float:
        return timed_step(lambda: model(input_ids=tokens, labels=tokens).loss, optimizer)[0]

    for _ in range(3):
        step()
    torch.cuda.reset_peak_memory_stats()
    times = [step() for _ in range(9)]
    row = {"model": model_of, "batch": batch, "seq": seq, "recompute": recompute, "ms": statistics.median(times),
           "peak_bytes": torch.cuda.max_memory_allocated(), "reserved_bytes": torch.cuda.max_memory_reserved()}
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        step()
    row["busy_ms"] = sum(each.device_time_total for each in profiled.key_averages()) / 1e3
    return row


def main() -> None:
    with pathlib.Path(sys.argv[1]).open("a") as out:
        for case in CASES:
            out.write(json.dumps(measure(*case)) + "\n")
            out.flush()


if __name__ == "__main__":
    main()
