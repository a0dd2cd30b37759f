"""Steps of Hugging Face's Trainer as users call it: trainer.py CASES OUT [SECONDS]

CASES: a JSON line each with `request` (Foretell's own, whose model is one of data/models), `weights` (their format), `arguments` (of
TrainingArguments beyond batch, steps and where it writes) and, with adapters, `adapters` (of peft's LoraConfig). Weights and tokens are
random. Sequences are of one length or, with `lengths`, uniform between two and filled up to the longest of their batch; each has the mask
that a tokenizer returns. All else is as the Trainer has it: optimizer, clipping, loaders, what it asks of the GPU between steps.
A row is the case with `steps_ms`, from one step's end to the next without a synchronisation that the Trainer does not make, behind WARM
steps; `step_ms`, their mean; and the allocator's peaks over the whole run.
"""
from __future__ import annotations

import gc
import json
import pathlib
import random
import tempfile
import time
import typing

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


def sheet(case: Case) -> Case:
    return json.loads((SHEETS / f"{case['request']['model']}.json").read_text())["config"]


def made(case: Case) -> torch.nn.Module:
    model = architectures.build(sheet(case), "cuda").to(FORMATS[case["weights"]])
    if "adapters" in case:
        import peft

        model = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", **case["adapters"]))
        model.enable_input_require_grads()
    return model


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
        trainer.train()
    torch.cuda.synchronize()
    gaps = [1e3 * (b - a) for a, b in zip(clock.ends[WARM - 1:], clock.ends[WARM:])]
    yield case | {"step_ms": round(sum(gaps) / len(gaps), 3), "steps_ms": [round(gap, 2) for gap in gaps], "before_bytes": before,
                  "peak_bytes": torch.cuda.max_memory_allocated(), "reserved_bytes": torch.cuda.max_memory_reserved(),
                  "optimizer": str(trainer.args.optim), "clip": trainer.args.max_grad_norm, "transformers": transformers.__version__}
    del trainer, model
    gc.collect()
    torch.cuda.empty_cache()


if __name__ == "__main__":
    every(trained, lambda case: case["id"])
