"""Forward passes, and forward with backward where a case says so, of encoders and denoisers: encoders.py CASES OUT [SECONDS]

CASES: a JSON line each with `class` (of transformers or diffusers), `config`, `inputs` (name -> shape, {"tokens": [batch, length], "below": words},
{"ones": shape} for a mask, {"pair": shape} for two tables, {"steps": shape} for whole numbers, or a number), and the request that was
forecast. A training pass without tokens has the mean square of the first result for its loss. The rows of data/measurements/h200/encoders.jsonl: bf16, sdpa, eager, random weights. `busy_ms`
is the sum of the kernels' and copies' times of one pass under the profiler (the median of three), bytes are the allocator's peak.
"""
from __future__ import annotations

import gc
import typing

import torch
import transformers

from passes import Case, every, measured


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
        if isinstance(shape, int):
            out[name] = shape
        elif isinstance(shape, dict) and "ones" in shape:
            out[name] = torch.ones(tuple(shape["ones"]), device="cuda", dtype=torch.bool)
        elif isinstance(shape, dict) and "pair" in shape:
            out[name] = tuple(torch.rand(tuple(shape["pair"]), device="cuda") for _ in range(2))
        elif isinstance(shape, dict) and "steps" in shape:
            out[name] = torch.randint(1, 999, tuple(shape["steps"]), device="cuda")
        elif isinstance(shape, dict) and "tokens" in shape:
            out[name] = torch.randint(4, shape.get("below", 1000), tuple(shape["tokens"]), device="cuda")
        elif isinstance(shape, dict):
            out[name] = {key: torch.randn(tuple(each), device="cuda", dtype=torch.bfloat16) for key, each in shape.items()}
        else:
            low = torch.float32 if name in ("timestep", "img_ids", "txt_ids") else torch.bfloat16
            out[name] = torch.rand(tuple(shape), device="cuda", dtype=low)
    return out


def measure(case: Case) -> typing.Iterator[Case]:
    gc.collect()
    torch.cuda.empty_cache()
    model, inputs = build(case), given(case)
    count = sum(each.numel() for each in model.parameters())

    def forward() -> None:
        with torch.no_grad():
            model(**inputs)

    def train() -> None:
        if "input_ids" in inputs:
            model(**inputs, labels=inputs["input_ids"]).loss.backward()
        else:
            made = model(**inputs)[0]
            torch.nn.functional.mse_loss(made, torch.zeros_like(made)).backward()
        model.zero_grad(set_to_none=True)

    for task in case["tasks"]:
        row = measured(model, task, train if task == "train" else forward, most=30)
        yield {"class": case["class"], "request": case["request"], "task": task, "parameters": count, **row}


if __name__ == "__main__":
    every(measure, lambda case: f"{case['class']} {case['request']['model']}")
