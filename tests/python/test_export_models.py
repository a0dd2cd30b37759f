"""Catalogue models through PyTorch and through their configs: the same parameters, arithmetic, time and memory."""

from __future__ import annotations

import resource
import time
from typing import Any

import pytest
import torch

from export_models import ask, build, compare, config_of
from foretell.export import ExportError, example_inputs, export

TRAIN: dict[str, Any] = {"task": "train", "dtype": "bf16"}
MORE = [TRAIN, {**TRAIN, "execution": "compile"}, {**TRAIN, "dtype": "amp_bf16"}, {**TRAIN, "recompute": "full"}]

# Catalogue name, batch, seq, requests, and how the release of transformers that the config front end describes runs it.
# T5's and gemma2's attention changed since: T5 is compared where both write it out. Deep models have eight layers here:
# exporting costs by the layer, and the rest of them is the same block; llama-3-8b stands whole below.
EIGHT = {"num_hidden_layers": 8}
CASES: dict[str, tuple[int, int, list[dict[str, Any]], dict[str, Any]]] = {
    "gpt2": (8, 1024, [*MORE, {**TRAIN, "attention": "flash"}, {"task": "forward", "dtype": "bf16"}], {}),
    "smollm2-135m": (8, 1024, MORE, {}),
    "qwen2.5-0.5b": (4, 1024, [TRAIN], {}),
    "qwen3-0.6b": (4, 1024, [TRAIN], EIGHT),
    "mistral-7b-v0.3": (2, 2048, [TRAIN, {**TRAIN, "execution": "compile"}], EIGHT),
    "gemma-2b": (2, 1024, [TRAIN], EIGHT),
    "gemma-2-2b": (2, 1024, [TRAIN, {"task": "forward", "dtype": "bf16"}], {**EIGHT, "attn_implementation": "sdpa"}),
    "bert-base": (16, 512, MORE, {}),
    "roberta-base": (16, 512, [TRAIN], {}),
    "opt-125m": (8, 1024, [TRAIN], {}),
    "pythia-1b": (4, 1024, [TRAIN], {}),
    "phi-1.5": (4, 1024, [TRAIN], EIGHT),
    "phi-3-mini": (2, 1024, [TRAIN], EIGHT),
    "t5-small": (
        8,
        512,
        [{**TRAIN, "dtype": dtype, "attention": "eager"} for dtype in ("fp32", "bf16")],
        {"attn_implementation": "eager"},
    ),
    "bloom-560m": (4, 1024, [TRAIN, {**TRAIN, "dtype": "amp_bf16"}, {"task": "forward", "dtype": "bf16"}], {"n_layer": 8}),
    "clip-vit-l-14": (32, 77, [TRAIN, {"task": "forward", "dtype": "bf16"}], {}),
    "qwen1.5-moe-a2.7b": (2, 1024, [TRAIN], EIGHT),
    "vit-b-16": (32, 1, [*MORE[:2], {"task": "forward", "dtype": "bf16"}], {}),
    "resnet-50": (64, 1, [TRAIN, {**TRAIN, "layout": "nchw", "dtype": "fp32"}], {}),
    "convnext-tiny": (64, 1, MORE[:2], {}),
    "whisper-tiny": (8, 448, [TRAIN], {}),
}


@pytest.mark.parametrize("name", CASES)
def test_both_front_ends_agree(name: str) -> None:
    batch, seq, requests, more = CASES[name]
    for request, found in zip(requests, compare(name, batch, seq, requests, config={**config_of(name), **more}), strict=True):
        assert found.config["ok"], found.config
        assert found.exported["ok"], found.exported
        assert found.graph.warnings == ()
        said = (name, request, {key: f"{100 * error:+.2f} %" for key, error in found.errors.items()})
        assert found.errors["parameters"] == 0, said
        assert abs(found.errors["flops"]) < 0.01, said
        assert abs(found.errors["time"]) < (0.035 if name == "whisper-tiny" else 0.03), said
        assert abs(found.errors["memory"]) < 0.05, said


def test_llama_3_8b_is_exported_without_its_weights() -> None:
    """They would take 16 GB."""
    model = build(config_of("llama-3-8b"))
    began, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    graph = export(model, example_inputs(model, 1, 2048))
    more_gib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20
    print(f"llama-3-8b: {time.process_time() - began:.1f} s, {more_gib:.2f} GiB more than before")
    assert more_gib < 4
    common = {"gpu": "h200_sxm", "dtype": "bf16", "attention": "sdpa", "batch": 1, "seq": 2048}
    by_config, by_export = ask([{**common, "model": "llama-3-8b"}, {**common, "model": graph.to_dict()}])
    assert by_export["step_ms"] == pytest.approx(by_config["step_ms"], rel=0.01)
    assert graph.parameters == 8030261248
    assert [(b["name"], b.get("repeat", 1)) for b in graph.to_dict()["blocks"]] == [("embed", 1), ("layers", 32), ("head", 1)]


def test_padding_among_the_example_inputs_is_a_mask() -> None:
    config = {**config_of("smollm2-135m"), "num_hidden_layers": 2}
    model = build(config)
    tokens = torch.zeros(2, 64, dtype=torch.long)
    full, cut = torch.ones(2, 64, dtype=torch.long), torch.ones(2, 64, dtype=torch.long)
    cut[0, :9] = 0
    masked = []
    for mask in (full, cut):
        graph = export(model, {"input_ids": tokens, "attention_mask": mask, "labels": tokens})
        layer = next(b for b in graph.to_dict()["blocks"] if b.get("repeat") == 2)
        masked += [bool(node.get("masked")) for node in layer["nodes"] if node["op"] == "attention"]
    assert masked == [False, True]


def test_labels_are_made_and_said() -> None:
    model = build({**config_of("gpt2"), "num_hidden_layers": 1, "n_layer": 1})
    graph = export(model, {"input_ids": torch.zeros(2, 64, dtype=torch.long)})
    assert "labels" in graph.to_dict()["inputs"]
    assert any("labels" in note for note in graph.warnings)


def test_checkpointing_of_transformers() -> None:
    model = build({**config_of("smollm2-135m"), "num_hidden_layers": 3})
    model.gradient_checkpointing_enable()
    graph = export(model, example_inputs(model, 2, 64))
    assert graph.recompute == "full"
    assert model.is_gradient_checkpointing


def test_the_model_keeps_its_attention() -> None:
    model = build({**config_of("smollm2-135m"), "num_hidden_layers": 1})
    before = model.config._attn_implementation
    export(model, example_inputs(model, 2, 64))
    assert model.config._attn_implementation == before == "sdpa"


def test_torchvision_and_timm_models() -> None:
    timm = pytest.importorskip("timm")
    torchvision = pytest.importorskip("torchvision")
    with torch.device("meta"):
        models = [torchvision.models.mobilenet_v3_small(), torchvision.models.vit_b_16(), timm.create_model("efficientnet_b0")]
        pictures = torch.zeros(8, 3, 224, 224)
    for model in models:
        graph = export(model, pictures)
        (answer,) = ask([{"gpu": "h200_sxm", "dtype": "bf16", **graph.request, "model": graph.to_dict()}])
        assert answer["ok"], (type(model).__name__, answer)
        assert answer["parameters"] == sum(p.numel() for p in model.parameters())
        assert all("no rule" not in note for note in graph.warnings), graph.warnings


def test_wrong_inputs_of_a_transformers_model() -> None:
    model = build({**config_of("gpt2"), "n_layer": 1})
    with pytest.raises(ExportError, match="specify either input_ids"):
        export(model, {"input_idz": torch.zeros(2, 64, dtype=torch.long)})
    with pytest.raises(ExportError, match="transformers models alone"):
        example_inputs(torch.nn.Linear(8, 8))
