"""The exporter on layers that tracing shows otherwise than a GPU runs them, and on models that decide by tracing."""

from __future__ import annotations

import io
import time
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from test_export import forecast, nodes, ops

import foretell
from foretell.export import export


class Recurrent(nn.Module):
    def __init__(self, layer: nn.Module, width: int) -> None:
        super().__init__()
        self.layer, self.head = layer, nn.Linear(width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.layer(x)[0])


@pytest.mark.parametrize(
    ("layer", "gates", "ways"),
    [
        (nn.LSTM(32, 64, 2, batch_first=True, dropout=0.1), 256, 1),
        (nn.GRU(32, 64, bidirectional=True), 192, 2),
        (nn.RNN(32, 64, bias=False), 64, 1),
    ],
)
def test_recurrent_layers_are_one_chain(layer: nn.RNNBase, gates: int, ways: int) -> None:
    model = Recurrent(layer, 64 * ways)
    graph = export(model, torch.zeros(16, 24, 32), loss=lambda out: out.mean())
    steps = nodes(graph, "recurrence")
    assert len(steps) == layer.num_layers and len(ops(graph)) < 40
    assert all(node["kind"] == layer.mode.split("_")[0].lower() for node in steps)
    assert [node["features"] for node in nodes(graph, "linear")[:-1]] == [gates] * layer.num_layers * ways
    assert nodes(graph, "dropout") == [] or layer.num_layers > 1
    answer = forecast(graph, batch=16)
    assert answer["parameters"] == sum(p.numel() for p in model.parameters())
    steps_run = 24 if layer.batch_first else 16
    assert answer["launches"] > 4 * steps_run * ways * layer.num_layers  # forward and back, two each


def test_packed_sequences_and_last_states() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.LSTM(32, 64)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            _, (state, _) = self.layer(x)
            return state[-1]

    graph = export(Model(), torch.zeros(16, 4, 32), loss=lambda out: out.sum())
    assert len(nodes(graph, "recurrence")) == 1
    assert forecast(graph, batch=16)["busy_ms"] > 0


def test_projections_are_taken_apart() -> None:
    graph = export(Recurrent(nn.LSTM(32, 64, proj_size=16), 16), torch.zeros(3, 4, 32), task="forward")
    assert nodes(graph, "recurrence") == []


@pytest.mark.parametrize("first", [False, True])
def test_encoder_layers_take_their_fast_path(first: bool) -> None:
    torch.backends.mha.set_fastpath_enabled(True)  # ONNX exports of other tests turn it off
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, activation="gelu", norm_first=first)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    x = torch.zeros(4, 16, 64)
    fast = ops(export(model, x, task="forward"))
    assert "gelu" not in fast and fast.count("add") == 2 and fast.count("linear") == 4
    trained = ops(export(model, x, task="train", loss=lambda out: out.mean()))
    assert "gelu" in trained and "dropout" in trained
    odd = nn.TransformerEncoderLayer(60, 3, 128, batch_first=True, activation="gelu")
    assert "gelu" in ops(export(odd, torch.zeros(4, 16, 60), task="forward"))
    assert nn.TransformerEncoderLayer.forward.__module__.startswith("torch.nn")  # everything is put back


def test_filters_of_three_sides() -> None:
    graph = export(nn.Conv3d(3, 8, (2, 4, 6), stride=(2, 4, 6)), torch.zeros(2, 3, 4, 8, 12), task="forward")
    (node,) = nodes(graph, "conv3d")
    assert (node["t"], node["r"], node["s"]) == (2, 4, 6)
    forecast(graph, batch=2)


def test_standardised_filters() -> None:
    class Standardised(nn.Conv2d):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            w = F.batch_norm(self.weight.reshape(1, self.out_channels, -1), None, None, training=True)
            return self._conv_forward(x, w.reshape_as(self.weight), self.bias)

    graph = export(Standardised(4, 8, 3), torch.zeros(2, 4, 16, 16), loss=lambda out: out.mean())
    (norm,), (conv,) = nodes(graph, "batchnorm"), nodes(graph, "conv2d")
    assert norm["statistics"] == "batch" and len(conv["in"]) == 2
    assert forecast(graph, batch=2)["parameters"] == 8 * 4 * 9 + 8


def test_products_of_rows_out_of_order_add_their_bias_apart() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(64, 8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(x.transpose(0, 1))

    assert ops(export(Model(), torch.zeros(4, 16, 64), task="forward")).count("add") == 1
    assert "add" not in ops(export(nn.Linear(64, 8), torch.zeros(4, 16, 64), task="forward"))


def test_files_of_checkpointed_models_recompute_by_themselves() -> None:
    from torch.utils.checkpoint import checkpoint

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            parts = [nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64)) for _ in range(4)]
            self.layers = nn.ModuleList(parts)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for layer in self.layers:
                x = checkpoint(layer, x, use_reentrant=False)
            return x

    import foretell

    graph = export(Model(), torch.zeros(2, 64, 64), loss=lambda out: out.mean())
    assert graph.to_dict()["recompute"] == "full"
    assert foretell.forecast(graph, gpu="h200_sxm")["recompute_ms"] > 0
    assert foretell.forecast(graph, gpu="h200_sxm", recompute="none")["recompute_ms"] == 0


def test_inference_holds_what_python_holds() -> None:
    class Model(nn.Module):
        def __init__(self, keeps: bool) -> None:
            super().__init__()
            self.keeps, self.layers = keeps, nn.ModuleList(nn.Linear(256, 256) for _ in range(8))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            kept = []
            for layer in self.layers:
                x = layer(x)
                if self.keeps:
                    kept.append(x)
            return x

    x = torch.zeros(1024, 256)
    one = 1024 * 256 * 2
    plain, keeping = (export(Model(keeps), x, task="forward") for keeps in (False, True))
    assert plain.to_dict()["held_bytes"] == 2 * one and keeping.to_dict()["held_bytes"] == 8 * one
    peaks = [forecast(graph, batch=1024)["memory"]["peak_bytes"] for graph in (plain, keeping)]
    assert peaks[1] - peaks[0] == 6 * one
    wide = forecast(keeping, batch=1024, dtype="fp32")["memory"]["activations_bytes"]
    assert wide == 2 * forecast(keeping, batch=1024)["memory"]["activations_bytes"]


def test_workspaces_come_on_top_of_what_python_holds() -> None:
    """A loop whose variables still see the last turn's result while the next convolution runs."""

    class Model(nn.Module):
        def __init__(self, keeps: bool) -> None:
            super().__init__()
            self.keeps, self.layers = keeps, nn.ModuleList(nn.Conv1d(64, 64, 3, padding=1) for _ in range(4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            kept = []
            for layer in self.layers:
                x = layer(x)
                if self.keeps:
                    kept.append(x)
            return x

    x = torch.zeros(8, 64, 16000)
    one = 8 * 64 * 16000 * 2
    plain, keeping = (export(Model(keeps), x, task="forward") for keeps in (False, True))
    assert max(node["held_bytes"] for node in nodes(plain, "conv1d")) == 2 * one
    assert max(node["held_bytes"] for node in nodes(keeping, "conv1d")) == 4 * one
    peaks = [forecast(graph)["memory"]["peak_bytes"] for graph in (plain, keeping)]
    assert peaks[1] - peaks[0] == 2 * one
    assert peaks[0] > 4 * one  # pictures in and out are copied into another order
    sizes = export(Model(True), x, task="forward", dynamic=True)
    assert all("batch" in str(node["held_bytes"]) for node in nodes(sizes, "conv1d"))


def test_slices_without_elements_and_rows_of_numbers() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.row, self.layer = nn.Parameter(torch.zeros(12)), nn.Linear(12, 12)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            mask = x.new_zeros(12, 12)
            for at in (slice(0, 0), slice(0, 6), slice(6, None)):
                mask[at, at] = 1
            one, two = self.row.split([4, 8])
            none, all_ = x.split([0, 8])  # no history yet
            return self.layer(torch.cat([none * 2, all_])) + mask.sum() + torch.cat([one * 2, two])

    assert forecast(export(Model(), torch.zeros(8, 12), task="forward"), batch=8)["launches"] > 0


def test_attention_by_name_is_one_kernel_too() -> None:
    class Model(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return F.scaled_dot_product_attention(query=x, key=x, value=x)

    graph = export(Model(), torch.zeros(1, 4, 2048, 64), task="forward")
    assert graph.to_dict()["held_bytes"] == 4 * 2048 * 64 * 2  # no scores


@pytest.mark.parametrize(("shape", "backend"), [((8, 4, 256, 64), "sdpa"), ((2, 4, 4, 256, 64), "math"), ((32, 256, 64), "math")])
def test_fused_attention_takes_four_axes(shape: tuple[int, ...], backend: str) -> None:
    class Model(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return F.scaled_dot_product_attention(x, x, x)

    graph = export(Model(), torch.zeros(shape), task="forward")
    assert [node["backend"] for node in nodes(graph, "attention")] == [backend]
    scores = 32 * 256 * 256 * 2
    assert (graph.to_dict()["held_bytes"] > scores) == (backend == "math")


def test_a_look_at_values_does_not_end_the_count_of_what_is_held() -> None:
    class Model(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if not torch.compiler.is_compiling() and not x.is_meta:
                assert not (x == 1).any()
            elif not torch.compiler.is_compiling() and (x == 1).any():
                return x
            return x * 2

    assert export(Model(), torch.zeros(64, 64), task="forward").to_dict()["held_bytes"] == 64 * 64 * 2


def test_attention_that_is_written_out_adds_no_mask_that_hides_nothing() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.RoFormerConfig(hidden_size=64, num_hidden_layers=1, num_attention_heads=4, intermediate_size=128)
    with torch.device("meta"):
        model = transformers.RoFormerModel(config)
    tokens = torch.zeros(2, 32, dtype=torch.long, device="meta")
    graph = export(model, {"input_ids": tokens}, task="forward")
    padded = export(model, {"input_ids": tokens, "attention_mask": torch.ones(2, 32).tril()}, task="forward")
    assert len(nodes(padded, "add")) == len(nodes(graph, "add")) + 1
    assert graph.to_dict()["held_bytes"] > 0  # though the model looks for padding among its tokens


@pytest.mark.parametrize(("name", "copies"), [("SiLU", 1), ("Hardswish", 1), ("ReLU", 0)])
def test_activations_in_place_copy_what_their_gradient_reads(name: str, copies: int) -> None:
    model = nn.Sequential(nn.Linear(64, 64), getattr(nn, name)(inplace=True), nn.Linear(64, 64))
    x = torch.zeros(8, 64)
    assert ops(export(model, x, loss=lambda out: out.mean())).count("addu") == copies
    assert "addu" not in ops(export(model, x, task="forward"))


def test_the_greatest_of_a_row_goes_back_by_its_place() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up = nn.Linear(64, 4096)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.up(x).max(dim=-1).values

    graph = export(Model(), torch.zeros(2048, 64), loss=lambda out: out.mean())
    assert ops(graph).count("argmax") == 1 and "amax" not in ops(graph)
    wide = 2048 * 4096 * 2
    assert forecast(graph, batch=2048)["memory"]["activations_bytes"] < wide  # the row itself is not kept


class Terminal(io.StringIO):
    def __init__(self, looks: bool) -> None:
        super().__init__()
        self.looks = looks

    def isatty(self) -> bool:
        return self.looks


@pytest.mark.parametrize("looks", [True, False])
def test_long_captures_say_so(looks: bool) -> None:
    from foretell.export.progress import progress

    out = Terminal(looks)
    with progress("capturing Model", out, after=0.05):
        until = time.monotonic() + (60 if looks else 0.4)
        while not out.getvalue() and time.monotonic() < until:
            time.sleep(0.01)
    assert ("capturing Model, " in out.getvalue()) == looks
    quick = Terminal(looks)
    with progress("capturing Model", quick):
        pass
    assert quick.getvalue() == ""


def test_bags_of_indices_are_summed_as_they_are_read() -> None:
    model = nn.Sequential(nn.EmbeddingBag(1000, 64, mode="mean"), nn.Linear(64, 1))
    graph = export(model, torch.zeros(32, 8, dtype=torch.long), loss=lambda out: out.mean())
    (node,) = nodes(graph, "embedding")
    assert node["bag"] == 8 and "sum" not in ops(graph)
    assert forecast(graph, batch=32)["launches"] > 30  # the gradient sorts its indices
    assert forecast(export(model, torch.zeros(32, 8, dtype=torch.long), task="forward"), batch=32)["launches"] < 8


def _transformers(name: str, **config: Any) -> nn.Module:
    transformers = pytest.importorskip("transformers")
    with torch.device("meta"):
        return getattr(transformers, f"{name}Model")(getattr(transformers, f"{name}Config")(**config))


def test_layers_that_may_be_dropped_are_kept() -> None:
    small = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
    model = _transformers("Wav2Vec2", **small, layerdrop=0.1, mask_time_prob=0.0, num_conv_pos_embeddings=16)
    graph = export(model, {"input_values": torch.zeros(2, 4000)}, loss=lambda out: out[0].mean())
    blocks = [block for block in graph.to_dict()["blocks"] if block["name"].endswith("layers")]
    assert sum(block.get("repeat", 1) for block in blocks) == 2 and model.config.layerdrop == 0.1


def test_the_loss_is_part_of_a_forward_pass_that_asks_for_it() -> None:
    transformers = pytest.importorskip("transformers")
    with torch.device("meta"):
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=1, n_embd=64, n_head=4))
    tokens = torch.zeros(2, 32, dtype=torch.long)
    plain = export(model, {"input_ids": tokens}, task="forward")
    asked = export(model, {"input_ids": tokens, "labels": tokens}, task="forward")
    assert "log_softmax" in ops(asked) and "log_softmax" not in ops(plain)
    assert forecast(asked, batch=2, seq=32)["busy_ms"] > forecast(plain, batch=2, seq=32)["busy_ms"]


def test_a_stream_that_stays_transposed_is_copied_by_every_norm() -> None:
    """Tokens of pictures lie channel by channel (``flatten(2).transpose(1, 2)``), and sums keep that order."""

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.mlp = nn.LayerNorm(96), nn.Linear(96, 96)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.mlp(self.norm(x))

    class Patches(nn.Module):
        def __init__(self, classes: bool) -> None:
            super().__init__()
            self.patch, self.layers = nn.Conv2d(3, 96, 16, 16), nn.ModuleList(Layer() for _ in range(4))
            self.place, self.one = nn.Parameter(torch.zeros(1, 196 + classes, 96)), nn.Parameter(torch.zeros(1, 1, 96))
            self.classes = classes

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.patch(x).flatten(2).transpose(1, 2)
            if self.classes:
                x = torch.cat([self.one.expand(x.shape[0], -1, -1), x], 1)
            x = x + self.place
            for layer in self.layers:
                x = layer(x)
            return x

    def launched(classes: bool) -> Any:
        graph = export(Patches(classes), torch.zeros(8, 3, 224, 224), task="forward")
        assert [node["axes"] for node in nodes(graph, "transpose")] == [[0, 2, 1]]
        return forecast(graph, task="forward")

    apart, joined = launched(False), launched(True)
    assert apart["launches"] == joined["launches"] + 4 - 1  # a copy for each norm, no concatenation
    assert apart["busy_ms"] > joined["busy_ms"]


def test_tokens_as_pictures_have_their_channels_last() -> None:
    """As in SegFormer: a depthwise convolution over tokens, in the order in which they lie."""

    class Mix(nn.Module):
        def __init__(self, turned: bool) -> None:
            super().__init__()
            self.one, self.two = nn.Linear(64, 256), nn.Linear(256, 64)
            self.deep, self.turned = nn.Conv2d(256, 256, 3, padding=1, groups=256), turned

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.one(x).transpose(1, 2).view(8, 256, 64, 64)
            y = self.deep(y.contiguous() if self.turned else y)
            return x + self.two(y.flatten(2).transpose(1, 2))

    last, first = (forecast(export(Mix(turned), torch.zeros(8, 4096, 64), task="forward")) for turned in (False, True))
    assert last["launches"] == first["launches"] - 3  # no copy before it, none after, and a bias inside the product
    assert last["busy_ms"] < first["busy_ms"]


def test_the_host_of_modules_is_less_certain() -> None:
    """Nobody timed their own Python: where the host holds a step, its interval is wider than that of known models."""
    model = nn.Sequential(*(nn.Sequential(nn.Linear(64, 64), nn.GELU()) for _ in range(8)))
    module = forecast(export(model, torch.zeros(4, 64), task="forward"), execution="eager")
    known = foretell.forecast("gpt2", gpu="h200_sxm", task="train", batch=1, seq=64, execution="eager")
    assert module["high_ms"] / module["step_ms"] > 1.05 * known["high_ms"] / known["step_ms"] > 1.05
