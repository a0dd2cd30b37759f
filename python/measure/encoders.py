"""Forward passes, and forward with backward where a case says so, of encoders and denoisers: encoders.py CASES OUT SECONDS

CASES: a JSON line each with `class` (of transformers or diffusers), `config`, `inputs` (name -> shape, or {"tokens": [batch, length]}),
and the request that was forecast. The rows of data/measurements/h200/encoders.jsonl: bf16, sdpa, eager, random weights. `busy_ms`
is the sum of the kernels' and copies' times of one pass under the profiler (the median of three), bytes are the allocator's peak.
"""
from __future__ import annotations

import gc
import json
import pathlib
import sys
import time
import typing

import torch
import transformers
from torch.profiler import ProfilerActivity, profile

Case = dict[str, typing.Any]


def build(case: Case) -> typing.Any:
    said = dict(case["config"])
    with torch.device("cuda"):
        if case["class"].startswith("diffusers."):
            import diffusers

            return getattr(diffusers, case["class"].split(".")[1])(**said).to(torch.bfloat16)
        kind = getattr(transformers, case["class"])
        name = said.pop("model_type")
        built = transformers.AutoConfig.for_model(name, **said)
        built.use_cache = False
        try:
            return kind.from_config(built, attn_implementation="sdpa", dtype=torch.bfloat16)
        except ValueError:
            return kind.from_config(transformers.AutoConfig.for_model(name, **said), dtype=torch.bfloat16)


def given(case: Case) -> dict[str, torch.Tensor]:
    out: dict[str, typing.Any] = {}
    for name, shape in case["inputs"].items():
        if isinstance(shape, dict) and "tokens" in shape:
            out[name] = torch.randint(10, 1000, tuple(shape["tokens"]), device="cuda")
        elif isinstance(shape, dict):
            out[name] = {key: torch.randn(tuple(each), device="cuda", dtype=torch.bfloat16) for key, each in shape.items()}
        else:
            low = torch.float32 if name in ("timestep", "img_ids", "txt_ids") else torch.bfloat16
            out[name] = torch.rand(tuple(shape), device="cuda", dtype=low)
    return out


def busy_ms(run: typing.Callable[[], None]) -> tuple[float, int, list[typing.Any]]:
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        run()
        torch.cuda.synchronize()
    found = [each for each in profiled.key_averages() if each.device_time_total > 0]
    found.sort(key=lambda each: -each.device_time_total)
    longest = [[each.key[:120], each.count, round(each.device_time_total, 1)] for each in found[:30]]
    return sum(each.device_time_total for each in found) / 1e3, sum(each.count for each in found), longest


def measure(case: Case) -> typing.Iterator[Case]:
    gc.collect()
    torch.cuda.empty_cache()
    model, inputs = build(case), given(case)
    count = sum(each.numel() for each in model.parameters())

    def forward() -> None:
        with torch.no_grad():
            model(**inputs)

    def train() -> None:
        model(**inputs, labels=inputs["input_ids"]).loss.backward()
        model.zero_grad(set_to_none=True)

    for task in case["tasks"]:
        run = train if task == "train" else forward
        model.train(task == "train")
        for _ in range(2):
            run()
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        run()
        torch.cuda.synchronize()
        peak = torch.cuda.max_memory_allocated()
        busy, kernels, longest = sorted(busy_ms(run) for _ in range(3))[1]
        yield {
            "class": case["class"], "request": case["request"], "task": task, "parameters": count, "busy_ms": round(busy, 4),
            "kernels": kernels, "peak_bytes": peak, "by_kernel": longest,
        }  # fmt: skip


def main() -> None:
    cases = [json.loads(line) for line in pathlib.Path(sys.argv[1]).read_text().splitlines() if line]
    until = time.monotonic() + float(sys.argv[3])
    with pathlib.Path(sys.argv[2]).open("a") as out:
        for case in cases:
            if time.monotonic() > until:
                print("out of time before", case["request"]["model"], file=sys.stderr)
                break
            try:
                for row in measure(case):
                    out.write(json.dumps(row) + "\n")
                    out.flush()
            except Exception as why:  # noqa: BLE001
                print(f"{case['class']} {case['request']['model']}: {type(why).__name__}: {why}"[:500], file=sys.stderr)


if __name__ == "__main__":
    main()
