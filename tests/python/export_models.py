"""Catalogue models as transformers builds them, and both ways to forecast them. Shared by the exporter's tests."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import transformers

from foretell.export import Graph, example_inputs, export

ROOT = Path(__file__).resolve().parents[2]

# model_type -> the class that trains it
CLASSES = {
    "bert": "BertForMaskedLM",
    "bloom": "BloomForCausalLM",
    "clip": "CLIPModel",
    "convnext": "ConvNextForImageClassification",
    "distilbert": "DistilBertForMaskedLM",
    "falcon": "FalconForCausalLM",
    "gemma": "GemmaForCausalLM",
    "gemma2": "Gemma2ForCausalLM",
    "gpt2": "GPT2LMHeadModel",
    "gpt_neox": "GPTNeoXForCausalLM",
    "llama": "LlamaForCausalLM",
    "mamba2": "Mamba2ForCausalLM",
    "mistral": "MistralForCausalLM",
    "mixtral": "MixtralForCausalLM",
    "olmo2": "Olmo2ForCausalLM",
    "opt": "OPTForCausalLM",
    "phi": "PhiForCausalLM",
    "phi3": "Phi3ForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen2_moe": "Qwen2MoeForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "qwen3_moe": "Qwen3MoeForCausalLM",
    "resnet": "ResNetForImageClassification",
    "roberta": "RobertaForMaskedLM",
    "starcoder2": "Starcoder2ForCausalLM",
    "t5": "T5ForConditionalGeneration",
    "vit": "ViTForImageClassification",
    "whisper": "WhisperForConditionalGeneration",
}


def program() -> str:
    return os.environ.get("FORETELL_PROGRAM", str(ROOT / "build" / "foretell"))


def config_of(name: str) -> dict[str, Any]:
    """A catalogue entry's config."""
    return dict(json.loads((ROOT / "data" / "models" / f"{name}.json").read_text())["config"])


def build(config: dict[str, Any], cls: str | None = None) -> torch.nn.Module:
    """The model of a config, without memory."""
    config = dict(config)
    kind = getattr(transformers, cls or CLASSES[config.pop("model_type")])
    config.pop("model_type", None)
    if kind.config_class.model_type in ("t5", "switch_transformers"):
        config.setdefault("decoder_start_token_id", 0)
    attention = config.pop("attn_implementation", None)
    made = kind.config_class(**config)
    if attention == "eager":
        made._attn_implementation = attention
    with torch.device("meta"):
        model = kind(made)
    if attention == "sdpa":  # as the releases that were measured ran it
        model.config._attn_implementation_internal = attention
    return model


def ask(requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Answers of the program, in order."""
    lines = "\n".join(json.dumps({"id": i, **request}) for i, request in enumerate(requests))
    done = subprocess.run([program(), "batch"], input=lines, capture_output=True, text=True, check=False, timeout=600)
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.strip()]
    assert len(answers) == len(requests), done.stderr
    return answers


@dataclass
class Agreement:
    """One model, forecast from its config and from its export."""

    name: str
    graph: Graph
    config: dict[str, Any]
    exported: dict[str, Any]
    errors: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        a, b = self.config, self.exported
        if not (a.get("ok") and b.get("ok")):
            return
        self.errors = {
            "parameters": b["parameters"] / a["parameters"] - 1,
            "flops": b["model_flops"] / a["model_flops"] - 1,
            "time": b["step_ms"] / a["step_ms"] - 1,
            "busy": b["busy_ms"] / a["busy_ms"] - 1,
            "memory": b["memory"]["peak_bytes"] / a["memory"]["peak_bytes"] - 1,
        }


def compare(
    name: str,
    batch: int,
    seq: int,
    requests: list[dict[str, Any]],
    *,
    config: dict[str, Any] | None = None,
    cls: str | None = None,
) -> list[Agreement]:
    """Every request to both front ends; the model is exported once per task."""
    config = config if config is not None else config_of(name)
    asked = {k: v for k, v in config.items() if k != "attn_implementation"}
    model = build(config, cls)
    if cls:
        asked["architectures"] = [cls]
    graphs: dict[str, Graph] = {}
    lines: list[dict[str, Any]] = []
    for request in requests:
        task = request.get("task", "train")
        if task not in graphs:
            graphs[task] = export(model, example_inputs(model, batch, seq, task=task), task=task)
        common = {"gpu": "h200_sxm", "batch": batch, "seq": seq, "attention": "sdpa", "layout": "nchw", **request}
        lines += [{**common, "model": asked}, {**common, "model": graphs[task].to_dict()}]
    answers = ask(lines)
    return [
        Agreement(name, graphs[r.get("task", "train")], answers[2 * i], answers[2 * i + 1]) for i, r in enumerate(requests)
    ]
