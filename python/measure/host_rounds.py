"""The host's clock by phase in small models of many kinds, in rounds: host_rounds.py OUT [SECONDS]

The models of kinds.py and five more are built once and stay; twelve rounds go through all of them in turn, so that a machine that
changes its pace does so under all. A visit: an addition in a loop, then the host's clock around inference, the recorded forward
pass, backward, fused AdamW and the loop that drops gradients, each from an idle GPU, the median of three. Nothing is profiled
before the last round; launches and busy time come behind it. Random weights, bf16, no cache.
"""
from __future__ import annotations

import gc
import json
import pathlib
import statistics
import sys
import time
import typing

import kinds
import torch
import transformers

ROUNDS, VISITS, ADDITIONS, WIDTH = 12, 3, 300, 64
MORE: tuple[tuple[str, dict[str, typing.Any]], ...] = (
    ("CausalLM", kinds.decoder("gemma")),
    ("CausalLM", kinds.decoder("gemma3_text", head_dim=64)),
    ("CausalLM", kinds.decoder("granite")),
    ("CausalLM", kinds.decoder("cohere")),
    ("CausalLM", kinds.decoder("glm4", head_dim=64, pad_token_id=0)),
)
PHASES = ("forward", "backward", "update", "zero")


def waited() -> float:
    torch.cuda.synchronize()
    return time.perf_counter()


def addition_us() -> float:
    x = torch.zeros(WIDTH, device="cuda")
    start = waited()
    for _ in range(ADDITIONS):
        x + x
    return round((time.perf_counter() - start) / ADDITIONS * 1e6, 3)


class Small:
    """One model, and what its visits took in us."""

    def __init__(self, head: str, config: dict[str, typing.Any]) -> None:
        self.head, self.config = head, config
        named = kinds.plain(config)
        made = transformers.AutoConfig.for_model(named.pop("model_type"), **named)
        self.model = getattr(transformers, f"AutoModelFor{head}").from_config(made).to("cuda", torch.bfloat16)
        self.inputs: dict[str, typing.Any] = {}
        if head == "ImageClassification":
            self.inputs["pixel_values"] = torch.randn(kinds.PICTURES, 3, 224, 224, device="cuda", dtype=torch.bfloat16)
        else:
            tokens = torch.randint(5, 1000, (1, kinds.TOKENS), device="cuda")
            self.inputs["input_ids"] = tokens
            self.inputs |= {"labels": tokens} if head == "Seq2SeqLM" else {"use_cache": False} if head == "CausalLM" else {}
        self.tensors = [p for p in self.model.parameters() if p.requires_grad]
        self.update = torch.optim.AdamW(self.tensors, lr=1e-6, fused=True)
        self.took: dict[str, list[float]] = {}

    def loss(self) -> torch.Tensor:
        made = self.model(**self.inputs)
        return made.loss if "labels" in self.inputs else made.logits.float().mean()

    def infer(self) -> list[float]:
        start = waited()
        with torch.no_grad():
            self.model(**self.inputs)
        host = time.perf_counter()
        return [host - start, waited() - start]

    def train(self) -> list[float]:
        marks = [waited()]
        loss = self.loss()
        marks.append(time.perf_counter())
        loss.backward()
        marks.append(time.perf_counter())
        self.update.step()
        marks.append(time.perf_counter())
        self.update.zero_grad(set_to_none=True)
        marks.append(time.perf_counter())
        return [b - a for a, b in zip(marks, marks[1:], strict=False)] + [waited() - marks[0]]

    def visit(self) -> None:
        figures = {"add_us": addition_us()}
        names = (("infer", "infer_wall"), (*PHASES, "train_wall"))
        for run, called, training in zip((self.infer, self.train), names, (False, True), strict=True):
            self.model.train(training)
            run()
            spans = [run() for _ in range(VISITS)]
            for place, name in enumerate(called):
                figures[f"{name}_us"] = round(1e6 * statistics.median(span[place] for span in spans))
        for name, us in figures.items():
            self.took.setdefault(name, []).append(us)

    def launches(self) -> dict[str, float]:
        profiler, found = torch.profiler, {}
        for name, run in (("infer", self.infer), ("train", lambda: self.loss().backward())):
            self.model.train(name == "train")
            with profiler.profile(activities=[profiler.ProfilerActivity.CUDA]) as trace:
                run()
                torch.cuda.synchronize()
            self.update.zero_grad(set_to_none=True)
            kernels = [event for event in trace.events() if event.device_type == torch.autograd.DeviceType.CUDA]
            found[f"{name}_launches"] = len(kernels)
            found[f"{name}_busy_us"] = round(sum(event.device_time for event in kernels), 1)
        return found


def main() -> None:
    out, until = pathlib.Path(sys.argv[1]), time.monotonic() + float(sys.argv[2] if len(sys.argv) > 2 else 220)
    models = []
    for head, config in (*kinds.CASES, *MORE):
        torch.manual_seed(0)
        models.append(Small(head, config))
        models[-1].train()
    gc.collect()
    gc.freeze()
    for _ in range(ROUNDS):
        for model in models:
            if time.monotonic() < until:
                model.visit()
    with out.open("w") as file:
        for model in models:
            row = {"name": model.config["model_type"], "head": model.head, "config": model.config}
            row |= {"modules": sum(1 for _ in model.model.modules()), "tensors": len(model.tensors)}
            file.write(json.dumps(row | model.took | model.launches()) + "\n")


if __name__ == "__main__":
    main()
