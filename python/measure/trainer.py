"""Steps of Hugging Face's Trainer as users call it: trainer.py CASES OUT [SECONDS]

CASES: a JSON line each with `request` (Foretell's own, whose model is one of data/models), `weights` (their format), `arguments` (of
TrainingArguments beyond batch, steps and where it writes) and, with adapters, `adapters` (of peft's LoraConfig). Weights and tokens are
random. Sequences are of one length or, with `lengths`, uniform between two and filled up to the longest of their batch; each has the mask
that a tokenizer returns. All else is as the Trainer has it: optimizer, clipping, loaders, what it asks of the GPU between steps.
A row is the case with `steps_ms`, from one step's end to the next without a synchronisation that the Trainer does not make, behind WARM
steps; `step_ms`, their mean; and the allocator's peaks over the whole run. With `parts` in a case it also has `parts_ms`, the host's clock
around what a step is made of (medians; `loss_check` waits for the GPU), and the same steps without a Trainer: `plain_ms`, nothing of them
waiting, and `waiting_ms`, behind each backward pass. Liger's kernels replace a library's for good: cases with them want a process of their own.
"""
from __future__ import annotations

import gc
import json
import pathlib
import random
import statistics
import tempfile
import time
import typing

import accelerate
import torch
import transformers

import architectures
from passes import Case, every

WARM, STEPS, LONGEST_S, IGNORED = 6, 24, 12, -100
FORMATS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
SHEETS = pathlib.Path(__file__).parents[2] / "data/models"
Example = dict[str, torch.Tensor]


class Texts(torch.utils.data.Dataset):
    """Random tokens, as a tokenizer would hand them over."""

    def __init__(self, case: Case, count: int) -> None:
        drawn = random.Random(1)
        longest = case["request"]["seq"]
        least, most = case.get("lengths", (longest, longest))
        self.lengths = [drawn.randint(least, most) for _ in range(count)]

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, at: int) -> Example:
        words = torch.randint(10, 1000, (self.lengths[at],))
        return {"input_ids": words, "attention_mask": torch.ones_like(words), "labels": words.clone()}


def padded(examples: list[Example]) -> Example:
    """A batch filled up to its longest example, as DataCollatorForSeq2Seq makes it."""
    longest = max(len(each["input_ids"]) for each in examples)
    fill = {"input_ids": 0, "attention_mask": 0, "labels": IGNORED}
    row = torch.nn.functional.pad
    return {key: torch.stack([row(each[key], (0, longest - len(each[key])), value=value) for each in examples]) for key, value in fill.items()}


class Clock(transformers.TrainerCallback):
    """When each step ended; no more steps than there is time for."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def on_step_end(self, _args: typing.Any, _state: typing.Any, control: typing.Any, **_kept: typing.Any) -> None:
        self.ends.append(time.perf_counter())
        if len(self.ends) > WARM + 4 and self.ends[-1] - self.ends[WARM] > LONGEST_S:
            control.should_training_stop = True


class Parts:
    """The host's clock around named calls while it is entered, ms, by the call that each is in."""

    def __init__(self) -> None:
        self.spans: dict[str, list[float]] = {}
        self.within: list[str] = []
        self.put_back: list[tuple[typing.Any, str, typing.Any]] = []

    def around(self, owner: typing.Any, method: str, name: str) -> None:
        inner = getattr(owner, method)

        def timed(*args: typing.Any, **kept: typing.Any) -> typing.Any:
            self.within.append(name)
            start = time.perf_counter()
            try:
                return inner(*args, **kept)
            finally:
                self.spans.setdefault("/".join(self.within), []).append(1e3 * (time.perf_counter() - start))
                self.within.pop()

        self.put_back.append((owner, method, vars(owner).get(method)))
        setattr(owner, method, timed)

    def restore(self) -> None:
        for owner, method, own in reversed(self.put_back):
            if own is None:
                delattr(owner, method)
            else:
                setattr(owner, method, own)

    def medians(self) -> dict[str, list[float]]:
        """Of each how long it took, and how often a step."""
        return {name: [round(statistics.median(spans[len(spans) // 4:]), 3), len(spans)] for name, spans in self.spans.items()}


def sheet(case: Case) -> Case:
    return json.loads((SHEETS / f"{case['request']['model']}.json").read_text())["config"]


def made(case: Case) -> torch.nn.Module:
    model = architectures.build(sheet(case), "cuda").to(FORMATS[case["weights"]])
    if "adapters" in case:
        import peft

        model = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", **case["adapters"]))
        model.enable_input_require_grads()
    return model


def watched(trainer: transformers.Trainer) -> Parts:
    """The Trainer with clocks around the parts of a step; `asks`: a tensor's truth, for which the host waits."""
    parts = Parts()
    for method in ("get_batch_samples", "_prepare_inputs", "compute_loss", "floating_point_ops", "_clip_grad_norm", "training_step"):
        parts.around(trainer, method, method)
    parts.around(trainer.accelerator, "backward", "backward")
    parts.around(trainer.model, "train", "train_mode")
    parts.around(trainer.model, "zero_grad", "zero_grad")
    parts.around(accelerate.optimizer.AcceleratedOptimizer, "step", "update")
    parts.around(accelerate.scheduler.AcceleratedScheduler, "step", "scheduler")
    parts.around(torch.Tensor, "__bool__", "asks")
    return parts


def without_trainer(case: Case, model: torch.nn.Module) -> typing.Iterator[tuple[str, float]]:
    """The same step in a loop of one's own, ms: by what it waits for."""
    texts, asked = Texts(case, case["request"]["batch"]), case["request"]
    batch = {key: value.cuda() for key, value in padded([texts[i] for i in range(asked["batch"])]).items()}
    optimizer = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], lr=1e-6, fused=True)
    low = torch.bfloat16 if case["arguments"].get("bf16") else torch.float16
    lowered = torch.autocast("cuda", dtype=low, enabled=bool(case["arguments"].get("bf16") or case["arguments"].get("fp16")))
    for name in ("plain_ms", "waiting_ms"):
        for turn in range(WARM + STEPS):
            if turn == WARM:
                torch.cuda.synchronize()
                start = time.perf_counter()
            with lowered:
                loss = model(**batch).loss
            loss.backward()
            if name == "waiting_ms":
                loss.isnan().item()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        torch.cuda.synchronize()
        yield name, round(1e3 * (time.perf_counter() - start) / STEPS, 3)


def trained(case: Case) -> typing.Iterable[Case]:
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before, model, clock, asked = torch.cuda.memory_allocated(), made(case), Clock(), case["request"]
    each = asked.get("global_batch", asked["batch"])
    with tempfile.TemporaryDirectory() as where:
        said = {"output_dir": where, "max_steps": WARM + STEPS, "per_device_train_batch_size": asked["batch"], "report_to": [], "save_strategy": "no",
                "gradient_accumulation_steps": each // asked["batch"], "disable_tqdm": True, **case["arguments"]}
        trainer = transformers.Trainer(model=model, args=transformers.TrainingArguments(**said), callbacks=[clock], data_collator=padded,
                                       train_dataset=Texts(case, each * (WARM + STEPS)))
        parts = watched(trainer) if case.get("parts") else None
        trainer.train()
        if parts:
            parts.restore()
    torch.cuda.synchronize()
    gaps = [1e3 * (b - a) for a, b in zip(clock.ends[WARM - 1:], clock.ends[WARM:])]
    row = case | {"step_ms": round(sum(gaps) / len(gaps), 3), "steps_ms": [round(gap, 2) for gap in gaps], "before_bytes": before,
                  "peak_bytes": torch.cuda.max_memory_allocated(), "reserved_bytes": torch.cuda.max_memory_reserved(),
                  "optimizer": str(trainer.args.optim), "clip": trainer.args.max_grad_norm, "transformers": transformers.__version__}
    if parts:
        row |= {"parts_ms": parts.medians(), "modules": sum(1 for _ in model.modules()), "tensors": sum(1 for _ in model.parameters())}
        row |= dict(without_trainer(case, model))
    yield row
    del trainer, model
    gc.collect()
    torch.cuda.empty_cache()


if __name__ == "__main__":
    every(trained, lambda case: case["id"])
