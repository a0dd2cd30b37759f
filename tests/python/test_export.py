"""The exporter on modules of a few lines: what it says, what it leaves alone, what it refuses and where."""

from __future__ import annotations

import inspect
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from export_models import ask
from foretell.export import ExportError, Graph, export, export_program, load_pt2

pytestmark = pytest.mark.old_torch


def line_of(thing: Any, text: str) -> str:
    """file:line of the first line of `thing` that holds `text`."""
    lines, first = inspect.getsourcelines(thing)
    return f"{__file__}:{first + next(i for i, line in enumerate(lines) if text in line)}"


def ops(graph: Graph) -> list[str]:
    return [node["op"] for block in graph.to_dict()["blocks"] for node in block["nodes"]]


def nodes(graph: Graph, op: str) -> list[dict[str, Any]]:
    return [node for block in graph.to_dict()["blocks"] for node in block["nodes"] if node["op"] == op]


def forecast(graph: Graph, **request: Any) -> dict[str, Any]:
    line = {"gpu": "h200_sxm", "dtype": "bf16", "batch": 1, "seq": 64, **graph.request, **request}
    (answer,) = ask([{**line, "model": graph.to_dict()}])
    assert answer["ok"], answer
    return answer


class Layer(nn.Module):
    def __init__(self, width: int = 64, heads: int = 4, drop: float = 0.1) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.drop = nn.Dropout(drop)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, s, w = x.shape
        q, k, v = self.qkv(self.norm(x)).chunk(3, dim=-1)
        q, k, v = (t.view(b, s, self.heads, w // self.heads).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.drop(self.out(y.transpose(1, 2).reshape(b, s, w)))
        return x + self.down(F.gelu(self.up(x)))


class Decoder(nn.Module):
    def __init__(self, layers: int = 6, vocab: int = 512, width: int = 64, tied: bool = True, heads: int = 4) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocab, bias=False)
        if tied:
            self.head.weight = self.embed.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def loss(tokens: torch.Tensor) -> Any:
    return lambda logits: F.cross_entropy(logits.flatten(0, 1), tokens.flatten())


TOKENS = torch.zeros(2, 64, dtype=torch.long)


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
            self.blocks = nn.ModuleList(Layer(heads=4 if i % 2 else 2) for i in range(8))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for block in self.blocks:
                x = block(x)
            return x.sum()

    graph = export(Model(), torch.zeros(2, 64, 64))
    assert [(b["name"], b.get("repeat", 1)) for b in graph.to_dict()["blocks"]][0] == ("blocks", 4)
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


# -- sizes -------------------------------------------------------------------------------------------


def test_one_file_for_all_sizes() -> None:
    model = Decoder()
    whole = export(model, TOKENS, dynamic=True)
    assert whole.dynamic and whole.to_dict()["inputs"]["tokens"]["shape"] == ["batch", "seq"]
    for batch, seq in ((1, 128), (8, 32), (5, 96)):
        fixed = export(model, torch.zeros(batch, seq, dtype=torch.long))
        a, b = (forecast(graph, batch=batch, seq=seq) for graph in (whole, fixed))
        assert a["step_ms"] == pytest.approx(b["step_ms"], rel=1e-3)
        assert a["model_flops"] == pytest.approx(b["model_flops"], rel=1e-9)


def test_axes_can_be_named() -> None:
    graph = export(nn.Linear(64, 8), torch.zeros(7, 3, 64), task="forward", dynamic={"input": {1: "batch", 0: "seq"}})
    assert graph.to_dict()["inputs"]["input"]["shape"] == ["seq", "batch", 64]
    assert graph.batch == 3 and graph.seq == 7
    with pytest.raises(ExportError, match="the inputs are input"):
        export(nn.Linear(64, 8), torch.zeros(7, 64), dynamic={"x": {0: "batch"}})
    with pytest.raises(ExportError, match='"batch" or "seq"'):
        export(nn.Linear(64, 8), torch.zeros(7, 64), dynamic={"input": {0: "rows"}})


def test_a_file_says_its_sizes() -> None:
    """A file of numbers has one batch: rates count it, and no request gets another."""
    network = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(), nn.Linear(8 * 30 * 30, 10))
    images = export(network, torch.zeros(32, 3, 32, 32), task="forward").to_dict()
    assert images["batch"] == 32 and "seq" not in images
    (alone, twice) = ask([{"task": "forward", "model": images, "gpu": "h200_sxm", **more} for more in ({}, {"batch": 64})])
    assert alone["samples_per_s_per_gpu"] == pytest.approx(32e3 / alone["step_ms"], rel=1e-4)
    assert alone["tokens_per_s_per_gpu"] == pytest.approx(alone["samples_per_s_per_gpu"], rel=1e-4)
    assert not twice["ok"] and "fixes the batch at 32, not 64" in twice["error"]["message"]
    tokens = export(Decoder(), TOKENS).to_dict()
    batch, seq = TOKENS.shape
    assert (tokens["batch"], tokens["seq"]) == (batch, seq)
    (step, longer) = ask([{"model": tokens, "gpu": "h200_sxm", **more} for more in ({}, {"seq": 2 * seq})])
    assert step["tokens_per_s_per_gpu"] == pytest.approx(batch * seq * 1e3 / step["step_ms"], rel=1e-4)
    assert not longer["ok"] and f"fixes the length at {seq}" in longer["error"]["message"]


def test_a_file_for_all_sizes_means_those_of_the_example() -> None:
    graph = export(Decoder(), TOKENS, dynamic=True).to_dict()
    assert isinstance(graph["batch"], int) and isinstance(graph["seq"], int)
    sizes = {"batch": graph["batch"], "seq": graph["seq"]}
    asked = ({}, sizes, {"batch": 2 * graph["batch"]})
    (left_out, said, doubled) = ask([{"model": graph, "gpu": "h200_sxm", **more} for more in asked])
    assert left_out["step_ms"] == said["step_ms"] and doubled["ok"]


def test_the_batch_may_be_any_axis() -> None:
    graph = export(nn.Linear(64, 8), torch.zeros(7, 3, 64), task="forward", batch_axis=1).to_dict()
    assert graph["batch"] == 3


def test_a_model_that_changes_with_size_says_so() -> None:
    class Model(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.relu() if x.shape[0] < 4 else x.relu().tanh()

    with pytest.raises(ExportError, match="other operators"):
        export(Model(), torch.zeros(2, 64), task="forward", dynamic=True)


# -- bad input ---------------------------------------------------------------------------------------


def test_a_module_that_raises() -> None:
    class Model(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise RuntimeError("no weights loaded")

    with pytest.raises(ExportError, match="no weights loaded") as told:
        export(Model(), torch.zeros(2, 64))
    assert told.value.code == "model_raised"
    assert told.value.where == line_of(Model.forward, "raise RuntimeError")


def test_control_flow_on_data(capfd: pytest.CaptureFixture[str]) -> None:
    class Model(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if x.sum() > 0:
                return x.relu()
            return x

    with pytest.raises(ExportError, match="depends on a tensor's values") as told:
        export(Model(), torch.zeros(2, 64))
    assert told.value.code == "data_dependent"
    assert told.value.where == line_of(Model.forward, "if x.sum()")
    assert capfd.readouterr() == ("", "")  # PyTorch's page about it stays away


def test_a_loop_over_data() -> None:
    class Model(nn.Module):
        def forward(self, x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
            for _ in range(int(n.max())):
                x = x.relu()
            return x

    with pytest.raises(ExportError) as told:
        export(Model(), (torch.zeros(2, 64), torch.ones(2, dtype=torch.long)))
    assert told.value.code == "data_dependent" and told.value.where == line_of(Model.forward, "range(int(")


def test_wrong_example_shapes() -> None:
    model = nn.Sequential(nn.Linear(64, 32), nn.Linear(64, 8))
    with pytest.raises(ExportError, match="do not fit the model") as told:
        export(model, torch.zeros(2, 64))
    assert told.value.code == "example_shapes"
    with pytest.raises(ExportError, match="do not fit the model") as told:
        export(Decoder(), {"words": TOKENS})
    assert told.value.code == "example_inputs"


@pytest.mark.parametrize(
    ("model", "inputs", "more", "what"),
    [
        ("not a module", torch.zeros(1), {}, "torch.nn.Module"),
        (nn.Linear(8, 8), "text", {}, "example inputs are"),
        (nn.Linear(8, 8), (), {}, "no tensor"),
        (nn.Linear(8, 8), torch.zeros(1, 8), {"task": "decode"}, "task must be"),
        (nn.Linear(8, 8), torch.zeros(1, 8), {"loss": lambda y: 3.0}, "loss must return a tensor"),
        (nn.Embedding(8, 8), torch.zeros(1, dtype=torch.long), {"dynamic": True, "batch_axis": None}, "batch or a sequence"),
        (nn.Identity(), torch.zeros(1, 8), {"task": "forward"}, "nothing is computed"),
    ],
)
def test_wrong_arguments(model: Any, inputs: Any, more: dict[str, Any], what: str) -> None:
    with pytest.raises(ExportError, match=what):
        export(model, inputs, **more)


# -- saved programs ----------------------------------------------------------------------------------


def saved(path: Path) -> Path:
    torch.export.save(torch.export.export(Decoder(layers=2).eval(), (TOKENS,)), path)
    return path


def test_a_saved_program(tmp_path: Path) -> None:
    graph = load_pt2(saved(tmp_path / "small.pt2"), task="forward")
    assert graph.name == "small"
    assert graph.parameters == sum(p.numel() for p in Decoder(layers=2).parameters())
    assert forecast(graph, batch=2)["parameters"] == graph.parameters
    direct = export(Decoder(layers=2), TOKENS, task="forward")
    assert graph.flops == pytest.approx(direct.flops, rel=1e-6)


def test_a_program_in_memory() -> None:
    program = torch.export.export(Layer().eval(), (torch.zeros(2, 64, 64),))
    assert export_program(program, task="forward").parameters == sum(p.numel() for p in Layer().parameters())
    assert "no loss" in export_program(program, task="train").warnings[0]


def test_broken_archives(tmp_path: Path) -> None:
    good = saved(tmp_path / "good.pt2").read_bytes()
    broken = tmp_path / "broken.pt2"
    for bad in (b"", b"PK", b"\0" * 4096, good[: len(good) // 2]):
        broken.write_bytes(bad)
        with pytest.raises(ExportError, match="not a .pt2 archive|broken|cannot read") as told:
            load_pt2(broken)
        assert told.value.where == str(broken)
    with pytest.raises(ExportError, match="no such file"):
        load_pt2(tmp_path / "missing.pt2")
    other = tmp_path / "other.pt2"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(ExportError, match="no exported program"):
        load_pt2(other)


def test_a_program_of_another_version(tmp_path: Path) -> None:
    """The same archive with a schema that no PyTorch has."""
    path = saved(tmp_path / "new.pt2")
    changed = tmp_path / "changed.pt2"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name.endswith(".json") and b"schema_version" in data:
                text = json.loads(data)
                text["schema_version"] = {"major": 9999, "minor": 1}
                data = json.dumps(text).encode()
            elif name.endswith(("archive_version", "/version")) or name == "version":
                data = b"9999"
            new.writestr(name, data)
    with pytest.raises(ExportError, match="the version of PyTorch that saved it") as told:
        load_pt2(changed)
    assert told.value.where == str(changed)


class _Outer(nn.Module):
    """A product of two broadcast operands, as a scan writes it: weights of pairs and what they weigh."""

    def forward(self, pairs: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return (pairs[..., None] * x).sum(1)


@pytest.mark.parametrize(
    ("order", "across"),
    [
        ((0, 1, 2), False),  # as it stands
        ((2, 0, 1), True),  # positions side by side, as a convolution leaves them
        ((1, 0, 2), False),  # whole rows elsewhere
    ],
)
def test_an_operand_across_the_order_is_said(order: tuple[int, int, int], across: bool) -> None:
    """CUDA walks the axes in the order of the first operand that says one."""
    sizes = (32, 48, 64)
    stored = torch.empty([sizes[order.index(at)] for at in range(3)], device="meta")
    x = stored.permute(order)
    assert x.shape == sizes
    graph = export(_Outer(), {"pairs": torch.empty(16, 32, 48, device="meta"), "x": x}, task="forward")
    (product,) = nodes(graph, "mul")
    assert product.get("across", False) is across
    reader = torch.empty(16, 32, 48, 1, device="meta") * x
    walked = min(range(4), key=lambda axis: reader.stride(axis))
    assert across == (x.stride()[walked - 1] >= 8), "what PyTorch itself made of it"
