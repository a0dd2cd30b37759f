"""The exporter on loops over a sequence's steps, and on sequences that a convolution copies first."""

from __future__ import annotations

import collections
from typing import Any

import pytest
import torch
from torch import nn

from test_export import forecast, nodes

from foretell.export import export, hugging_face

transformers = pytest.importorskip("transformers")


@pytest.mark.parametrize("task", ["forward", "train"])
def test_a_scan_in_one_operator_is_the_loop_that_the_library_runs(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers.models.mamba import modeling_mamba as library

    if not hasattr(library, "mamba_selective_scan"):
        pytest.skip("a release whose loop stands in the layer itself")
    size = {"hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 100, "state_size": 8}
    with torch.device("meta"):
        model = transformers.MambaForCausalLM(transformers.MambaConfig(**size))
        tokens = torch.zeros(2, 12, dtype=torch.long)
    given = {"input_ids": tokens, "labels": tokens}
    ours = export(model, given, task=task)
    monkeypatch.setattr(hugging_face, "SCAN", "no function of that name")
    plain = export(model, given, task=task)

    def launched(graph: Any) -> collections.Counter[str]:
        return collections.Counter(
            node["op"] for block in graph.to_dict()["blocks"] for node in block["nodes"] for _ in range(block.get("repeat", 1))
        )

    views = ("view", "slice", "transpose", "expand")
    assert {k: n for k, n in launched(ours).items() if k not in views} == {k: n for k, n in launched(plain).items() if k not in views}
    assert launched(ours)["matmul"] >= 2 * 12  # a product a step
    assert forecast(ours, task=task)["busy_ms"] == pytest.approx(forecast(plain, task=task)["busy_ms"], rel=0.01)


def test_sequences_that_are_copied_first_are_held_twice() -> None:
    class Model(nn.Module):
        def __init__(self, turned: bool) -> None:
            super().__init__()
            self.turned, self.filters = turned, nn.Conv1d(64, 64, 3, padding=1, bias=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = x + 1
            return self.filters(x.transpose(1, 2) if self.turned else x.reshape(4, 64, 4096))

    one = 4 * 64 * 4096 * 2
    held = [nodes(export(Model(turned), torch.zeros(4, 4096, 64), task="forward"), "conv1d")[0]["held_bytes"] for turned in (False, True)]
    assert held == [2 * one, 3 * one]


def test_tokens_that_become_pictures_lie_channels_last() -> None:
    """The new order of the axes is told, so that convolutions run channels last as they do on a GPU."""

    class Model(nn.Module):
        def __init__(self, last: bool) -> None:
            super().__init__()
            self.last, self.filters = last, nn.Conv2d(1024, 1024, 3, padding=1, groups=1024, bias=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            pictures = (x + 1).unflatten(1, (32, 32)).permute(0, 3, 1, 2)
            return self.filters(pictures if self.last else pictures.contiguous())

    last, first = (export(Model(last), torch.zeros(8, 1024, 1024), task="forward") for last in (True, False))
    assert [node["axes"] for node in nodes(last, "transpose")] == [[0, 3, 1, 2]]
    assert forecast(last, task="forward")["busy_ms"] < 0.7 * forecast(first, task="forward")["busy_ms"]


@pytest.mark.parametrize("kept_axis", [True, False])
def test_the_largest_along_an_axis_keeps_its_place_alone(kept_axis: bool) -> None:
    """``max(dim)`` goes back by indices; ``torch.gather``, which looks alike, keeps what it picks from."""

    class Model(nn.Module):
        def __init__(self, gathers: bool) -> None:
            super().__init__()
            self.gathers, self.weights = gathers, nn.ModuleList(nn.Linear(64, 4096) for _ in range(8))

        def picked(self, scores: torch.Tensor) -> torch.Tensor:
            if self.gathers:
                return scores.gather(-1, scores.argmax(-1, keepdim=True))
            return scores.max(-1, keepdim=kept_axis).values

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return sum(self.picked(weight(x) * 2).sum() for weight in self.weights)

    x = torch.zeros(4096, 64)
    largest, gathered = (export(Model(gathers), x, loss=lambda out: out.float()) for gathers in (False, True))
    peaks = [forecast(graph)["memory"]["peak_bytes"] for graph in (largest, gathered)]
    assert peaks[1] - peaks[0] >= 6 * 4096 * 4096 * 2


def test_attention_writes_in_the_order_of_its_queries() -> None:
    """Steps before the batch, as nn.MultiheadAttention has them: what comes out is not copied into that order."""

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attends = nn.MultiheadAttention(512, 8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.attends(x, x, x, need_weights=False)[0]

    graph = export(Model(), torch.zeros(128, 16, 512), loss=lambda out: out.float().mean())
    made = [node for op in ("contiguous", "copy") for node in nodes(graph, op)]
    assert len(made) == 1  # queries, keys and values, cut from one product


@pytest.mark.parametrize("frozen", [True, False])
def test_a_first_layer_without_gradients_stands_apart(frozen: bool) -> None:
    """Adapters beside frozen weights: what the first layer is given has no gradient, what the others are given has."""

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.base, self.adapter = nn.LayerNorm(64), nn.Linear(64, 64), nn.Linear(64, 64, bias=False)
            if frozen:
                self.norm.requires_grad_(False)
                self.base.requires_grad_(False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            h = self.norm(x)
            return x + self.base(h) + self.adapter(h)

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(100, 64).requires_grad_(not frozen)
            self.layers = nn.ModuleList(Layer() for _ in range(4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.embed(x)
            for layer in self.layers:
                x = layer(x)
            return x

    graph = export(Model(), torch.zeros(4, 32, dtype=torch.long), loss=lambda out: out.float().mean())
    layers = [block.get("repeat", 1) for block in graph.to_dict()["blocks"] if block["name"].startswith("layers")]
    assert layers == ([1, 3] if frozen else [4])
