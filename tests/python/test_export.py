"""The exporter on modules of a few lines: what it says, what it leaves alone, what it refuses and where."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from exporting import TOKENS, Decoder, Layer, forecast, nodes, ops
from torch import nn
from torch.nn import functional as F

from export_models import ask
from foretell.export import export


pytestmark = pytest.mark.old_torch


# -- what is captured --------------------------------------------------------------------------------


def test_a_decoder_folds_to_three_blocks() -> None:
    model = Decoder()
    graph = export(model, TOKENS, loss=lambda y: F.cross_entropy(y.flatten(0, 1), y.new_zeros(128, dtype=torch.long)))
    blocks = graph.to_dict()["blocks"]
    assert [(b["name"], b.get("repeat", 1)) for b in blocks] == [("embed", 1), ("layers", 6), ("head", 1)]
    assert graph.parameters == sum(p.numel() for p in model.parameters())
    answer = forecast(graph)
    assert answer["parameters"] == graph.parameters
    assert graph.warnings == ()
    (attention,) = nodes(graph, "attention")
    assert attention["causal"] is True and attention["backend"] == "sdpa"
    # heads came from a transposed view, so the kernel writes them side by side: nothing is copied after it
    assert "contiguous" not in ops(graph)
    assert {n["name"] for n in blocks[1]["nodes"]} >= {"qkv", "out", "norm", "up", "down", "drop", "layer.residual"}


def test_flops_are_those_of_the_products() -> None:
    graph = export(Decoder(tied=False), TOKENS, task="forward")
    tokens, w = 128, 64
    layer = 2 * tokens * w * (3 * w + w + 8 * w) + 4 * 2 * 64 * 64 * w / 2
    assert graph.flops == pytest.approx(6 * layer + 2 * tokens * w * 512)
    assert forecast(graph)["model_flops"] == pytest.approx(graph.flops, rel=0.02)


def test_the_users_model_is_left_alone() -> None:
    model = Decoder(layers=1)
    model.eval()
    before = {name: x.clone() for name, x in model.state_dict().items()}
    export(model, TOKENS)
    assert not model.training
    assert all(torch.equal(x, model.state_dict()[name]) for name, x in before.items())
    assert all(p.grad is None and p.dtype == torch.float32 and p.device.type == "cpu" for p in model.parameters())


def test_a_model_without_memory() -> None:
    with torch.device("meta"):  # 260 GB in bf16
        model = Decoder(layers=40, vocab=32000, width=16384, heads=128)
        tokens = torch.zeros(1, 2048, dtype=torch.long)
    graph = export(model, tokens)
    assert graph.parameters > 128e9
    assert forecast(graph)["memory"]["fits"] is False


def test_dropout_runs_in_training_alone() -> None:
    assert "dropout" in ops(export(Decoder(layers=1), TOKENS))
    assert "dropout" not in ops(export(Decoder(layers=1), TOKENS, task="forward"))


def test_tied_weights_are_one() -> None:
    graph = export(Decoder(layers=1, tied=True), TOKENS, task="forward")
    assert nodes(graph, "embedding")[0]["table"] == nodes(graph, "linear")[-1]["weight"]
    assert forecast(graph)["parameters"] == graph.parameters


def test_frozen_parameters_have_no_gradient() -> None:
    model = Decoder(layers=4, tied=False)
    free = forecast(export(model, TOKENS))["memory"]
    for p in model.layers.parameters():
        p.requires_grad_(False)
    graph = export(model, TOKENS)
    held = forecast(graph)["memory"]
    assert graph.trained_parameters < graph.parameters
    assert forecast(graph)["parameters"] == graph.parameters
    assert held["optimizer_bytes"] < 0.6 * free["optimizer_bytes"]


def test_casts_are_the_requests() -> None:
    class Norm(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(64))
            self.up = nn.Linear(64, 64)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = x.float()
            y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)
            return self.up(self.weight * y.to(x.dtype))

    for model in (Norm(), Norm().bfloat16()):
        graph = export(model, torch.zeros(8, 64, dtype=model.weight.dtype), task="forward")
        to, back = nodes(graph, "cast")
        assert to["to"] == "fp32"
        assert back["like"] == to["in"]


def test_in_place_and_views() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Linear(64, 64)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.a(x)
            y += x
            y.relu_()
            return y.view(4, 2, 64).permute(1, 0, 2).unsqueeze(0).squeeze(0).contiguous()

    graph = export(Model(), torch.zeros(8, 64), task="forward")
    assert ops(graph) == ["linear", "add", "relu", "view", "contiguous"]
    assert nodes(graph, "add")[0]["in_place"] and nodes(graph, "relu")[0]["in_place"]
    forecast(graph)


def test_checkpointed_layers_ask_for_recomputation() -> None:
    from torch.utils.checkpoint import checkpoint

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(Layer() for _ in range(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for layer in self.layers:
                x = checkpoint(layer, x, use_reentrant=False)
            return x

    graph = export(Model(), torch.zeros(2, 64, 64))
    assert graph.recompute == "full" and graph.request["recompute"] == "full"
    assert forecast(graph)["recompute_ms"] > 0
    assert export(Model(), torch.zeros(2, 64, 64), task="forward").recompute == "none"


def test_patterns_of_layers_fold_as_a_whole() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Linear(64, 64)
            self.blocks = nn.ModuleList(Layer(heads=4 if i % 2 else 2) for i in range(8))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.stem(x)
            for block in self.blocks:
                x = block(x)
            return x.sum()

    graph = export(Model(), torch.zeros(2, 64, 64))
    assert ("blocks", 4) in [(b["name"], b.get("repeat", 1)) for b in graph.to_dict()["blocks"]]
    assert forecast(graph)["parameters"] == graph.parameters


def test_a_value_that_skips_layers_keeps_them_apart() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.steps = nn.ModuleList(Layer() for _ in range(4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            kept = []
            for step in self.steps:
                x = step(x)
                kept.append(x)
            return torch.stack(kept).mean()

    graph = export(Net(), torch.zeros(2, 64, 64))
    assert all(b.get("repeat", 1) == 1 for b in graph.to_dict()["blocks"])
    assert forecast(graph)["parameters"] == graph.parameters


def test_a_convolutional_network() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 32, 3, stride=2, padding=1, bias=False)
            self.bn = nn.BatchNorm2d(32)
            self.depth = nn.Conv2d(32, 32, 3, padding=1, groups=32)
            self.pool = nn.MaxPool2d(3, 2, 1)
            self.norm = nn.GroupNorm(8, 32)
            self.turn = nn.ConvTranspose2d(32, 16, 2, stride=2)
            self.fc = nn.Linear(16, 10)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.pool(F.relu(self.bn(self.conv(x))))
            x = self.turn(self.norm(self.depth(x)))
            x = F.interpolate(x, scale_factor=2)
            return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))

    model = Net()
    graph = export(model, torch.zeros(4, 3, 64, 64), loss=lambda y: F.cross_entropy(y, y.new_zeros(4, dtype=torch.long)))
    assert graph.warnings == ()
    assert forecast(graph)["parameters"] == sum(p.numel() for p in model.parameters())


def test_nothing_flows_back_through_no_grad() -> None:
    class Model(nn.Module):
        def __init__(self, stops: bool) -> None:
            super().__init__()
            self.first, self.second, self.stops = nn.Linear(256, 256), nn.Linear(256, 256), stops

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            h = self.first(x)
            if not self.stops:
                return self.second(h.exp())
            with torch.no_grad():
                h = h.exp()
            return self.second(h)

    x = torch.zeros(64, 256)
    flows, stops = (export(Model(each), x, loss=lambda y: y.sum()) for each in (False, True))
    assert len(nodes(flows, "detach")) == 0 and len(nodes(stops, "detach")) == 1
    assert forecast(stops)["launches"] < forecast(flows)["launches"]


def test_what_only_looks_free() -> None:
    """A border of nothing copies, a sum over one element launches; a weight whose axis goes and comes back is itself."""

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv1d(8, 8, 3, padding=1, groups=8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            w = self.conv.weight.squeeze(1).unsqueeze(1)
            x = nn.functional.conv1d(x, w, self.conv.bias, padding=1, groups=8)
            return nn.functional.pad(x, (0, 0))[..., None].sum(-1)

    graph = export(Model(), torch.zeros(2, 8, 64), task="forward")
    assert ops(graph) == ["conv1d", "copy", "view", "sum"]
    assert nodes(graph, "conv1d")[0]["bias"] is True
    assert graph.parameters == forecast(graph)["parameters"] == 8 * 3 + 8


def test_a_learned_mask_gets_its_gradient() -> None:
    """Where its last axis is innermost by the fused kernel, otherwise by PyTorch's own passes over the scores."""

    class Model(nn.Module):
        def __init__(self, turned: bool) -> None:
            super().__init__()
            self.table, self.project, self.turned = nn.Embedding(32, 4), nn.Linear(64, 64), turned

        def forward(self, x: torch.Tensor, buckets: torch.Tensor) -> torch.Tensor:
            bias = self.table(buckets).permute(2, 0, 1)[None]
            q = self.project(x).view(2, 128, 4, 16).transpose(1, 2)
            bias = bias if self.turned else bias.contiguous()
            return nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=bias)

    inputs = (torch.zeros(2, 128, 64), torch.zeros(128, 128, dtype=torch.long))
    for turned, fused in ((True, 0), (False, 1)):
        graph = export(Model(turned), inputs, loss=lambda y: y.sum())
        answer = forecast(graph, detail="kernels", batch=2, seq=128, attention="sdpa")
        kinds = [(each["op"], each.get("phase")) for each in answer["kernels"]]
        assert (("attention", "backward") in kinds) == bool(fused)
        assert any(op.startswith("embedding") and phase == "backward" for op, phase in kinds), kinds


def test_fused_by_hand_is_refused() -> None:
    graph = export(nn.Linear(64, 64), torch.zeros(8, 64), loss=lambda y: y.sum())
    (answer,) = ask([{"gpu": "h200_sxm", **graph.request, "execution": "fused", "model": graph.to_dict()}])
    assert not answer["ok"] and "fused" in answer["error"]["message"]


def test_composite_operators_are_taken_apart() -> None:
    class Model(nn.Module):
        def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return torch.einsum("bid,bjd->bij", a, b)

    graph = export(Model(), (torch.zeros(4, 16, 32), torch.zeros(4, 8, 32)), task="forward")
    assert "matmul" in ops(graph) and graph.warnings == ()
    assert graph.flops == 2 * 4 * 16 * 8 * 32


def test_unknown_operators_are_named() -> None:
    class Model(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.special.i0(torch.linalg.qr(x)[0])

    graph = export(Model(), torch.zeros(4, 16, 16), task="forward")
    (said, also) = sorted(graph.warnings)
    assert "aten.i0 " in said and "aten.linalg_qr " in also and "memory-bound" in said and __file__ in said
    (node,) = nodes(graph, "linalg_qr")[:1]
    assert node["bytes"] >= 2 * 4 * 16 * 16
    assert forecast(graph)["step_ms"] > 0


def test_module_names_reach_the_layer_report() -> None:
    answer = forecast(export(Decoder(layers=3), TOKENS), detail="kernels")
    names = {kernel["name"] for kernel in answer["kernels"]}
    assert {"qkv", "up", "down", "embed", "head"} <= names


def test_a_file_is_written_and_read_back(tmp_path: Path) -> None:
    graph = export(Decoder(layers=2), TOKENS)
    path = graph.save(tmp_path / "small.ft.json")
    assert json.loads(path.read_text()) == graph.to_dict()
    (answer,) = ask([{"task": "train", "model": str(path), "gpu": "h200_sxm", "batch": 2, "seq": 64}])
    assert answer["ok"], answer
