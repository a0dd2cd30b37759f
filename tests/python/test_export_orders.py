"""The exporter on operators whose cost is in the order in which tensors lie, and in what autograd keeps."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from test_export import forecast, nodes, ops

from foretell.export import export


class Runs(nn.Module):
    """A function behind a convolution, so that a gradient flows to what it is given."""

    def __init__(self, run: Any, width: int = 64, *parts: nn.Module) -> None:
        super().__init__()
        self.run, self.first, self.parts = run, nn.Conv2d(width, width, 1), nn.ModuleList(parts)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.run(self.first(x), *self.parts)


def picture(*shape: int, last: bool = False) -> torch.Tensor:
    x = torch.empty(*shape, device="meta")
    return x.to(memory_format=torch.channels_last) if last else x


def busy(graph: Any, phase: str, *kinds: str) -> float:
    answer = forecast(graph, detail="kernels", task="train")
    return sum(k["total_ms"] for k in answer["kernels"] if k["phase"] == phase and k["op"] in kinds)


@pytest.mark.parametrize("layer", [nn.ReLU6, nn.Hardtanh, nn.Hardsigmoid, nn.SiLU])
def test_an_activation_in_place_whose_gradient_reads_its_input_copies_it(layer: Any) -> None:
    def peak(in_place: bool) -> float:
        model = Runs(lambda x, act: act(x), 64, layer(inplace=in_place)).to("meta")
        graph = export(model, picture(8, 64, 64, 64), loss=lambda out: out.mean())
        assert ("addu" in ops(graph)) == in_place
        return forecast(graph, task="train", batch=8)["memory"]["peak_bytes"]

    assert peak(True) >= peak(False)


def test_slopes_per_channel_are_a_product_with_gradients_of_both() -> None:
    graph = export(Runs(lambda x, act: act(x), 64, nn.PReLU(64)).to("meta"), picture(8, 64, 32, 32), loss=lambda out: out.mean())
    assert forecast(graph, task="train", batch=8)["parameters"] == 64 * 64 + 64 + 64
    kinds = [k["op"] for k in forecast(graph, task="train", batch=8, detail="kernels")["kernels"] if k["phase"] == "backward"]
    assert any(kind.startswith("sum") for kind in kinds)  # of the slope's gradient


def test_gated_halves_are_one_kernel() -> None:
    graph = export(Runs(lambda x: F.glu(x, 1)).to("meta"), picture(8, 64, 32, 32), task="forward")
    assert ops(graph).count("sigmoid") == 0 and ops(graph).count("mul") == 1


@pytest.mark.parametrize("run", [lambda x: F.pixel_shuffle(x, 2), lambda x: F.pixel_unshuffle(x, 2), lambda x: F.channel_shuffle(x, 4)])
@pytest.mark.parametrize("last", [False, True])
def test_shuffled_pixels_are_turned_and_copied(run: Any, last: bool) -> None:
    graph = export(Runs(run).to("meta"), picture(4, 64, 32, 32, last=last), task="forward")
    assert any(node.get("strided") for node in nodes(graph, "view")) and ops(graph).count("contiguous") == 1
    assert not any(node.get("across") for node in nodes(graph, "contiguous"))  # neighbours share a sector


def test_a_border_of_nothing_lies_as_what_it_is_around() -> None:
    def run(x: torch.Tensor) -> torch.Tensor:
        x = x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
        return F.pad(x, (0, 0, 0, 0)).permute(0, 2, 3, 1).reshape(-1, 64)

    graph = export(Runs(run).to("meta"), picture(4, 64, 32, 32), task="forward")
    assert ops(graph).count("contiguous") == 1  # the second permutation finds rows


def test_operands_in_unlike_orders_are_fetched_by_the_sector() -> None:
    def ms(turned: bool) -> float:
        def run(x: torch.Tensor) -> torch.Tensor:
            tokens = F.layer_norm(x.flatten(2).transpose(1, 2), (64,))
            return x.flatten(2).transpose(1, 2) + tokens if turned else tokens + tokens

        graph = export(Runs(run).to("meta"), picture(32, 64, 56, 56), task="forward")
        answer = forecast(graph, detail="kernels", task="forward", batch=32)
        return sum(k["ms"] for k in answer["kernels"] if k["op"] == "add")

    assert ms(True) > 1.7 * ms(False)  # 46.7 us on an H200 (data/measurements/h200/operators_second.jsonl)


def test_a_view_that_brings_rows_back_into_order_costs_nothing_on_the_way_back() -> None:
    def run(x: torch.Tensor, deep: nn.Module) -> torch.Tensor:
        tokens = F.layer_norm(x.flatten(2).transpose(1, 2), (64,))
        return deep(tokens.transpose(1, 2).view(8, 64, 32, 32)).flatten(2).transpose(1, 2) * 2

    model = Runs(run, 64, nn.Conv2d(64, 64, 3, padding=1, groups=64)).to("meta")
    graph = export(model, picture(8, 64, 32, 32), loss=lambda out: out.mean())
    answer = forecast(graph, detail="kernels", task="train", batch=8)
    copies = [k for k in answer["kernels"] if k["phase"] == "backward" and k["op"] == "copy"]
    assert sum(k["count"] for k in copies) <= 2  # of the norm's input and of the first convolution's gradient


def test_running_sums_along_an_outer_axis_take_their_steps() -> None:
    def ms(axis: int) -> float:
        graph = export(Runs(lambda x: x.flatten(2).cumsum(axis)).to("meta"), picture(8, 64, 32, 32), task="forward")
        answer = forecast(graph, detail="kernels", task="forward", batch=8)
        return sum(k["ms"] for k in answer["kernels"] if k["op"] == "cumsum")

    assert ms(1) > 0.02  # 64 steps of 0.37 us


def test_windows_of_a_picture_are_kernels_of_their_own() -> None:
    def outlook(x: torch.Tensor) -> torch.Tensor:
        return F.fold(F.unfold(x, 3, padding=1, stride=2) * 2, (32, 32), 3, padding=1, stride=2)

    graph = export(Runs(outlook).to("meta"), picture(8, 64, 32, 32), loss=lambda out: out.mean())
    (cut,), (put,) = nodes(graph, "unfold"), nodes(graph, "fold")
    assert cut["window"] == [3, 3] and cut["stride"] == [2, 2] and put["shape"] == [8, 64, 32, 32]
    assert not graph.warnings
    alone = export(Runs(lambda x: F.unfold(x[0], 2, stride=2)).to("meta"), picture(8, 64, 32, 32), task="forward")
    assert nodes(alone, "unfold")[0]["shape"] == [1, 256, 256]


def test_windows_that_overlap_are_added_up_going_back() -> None:
    def counted(x: torch.Tensor) -> torch.Tensor:
        return x.unfold(2, 8, 4).contiguous()

    def indexed(x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        return x.as_strided((8, 64, 7, 8, 32), (65536, 1024, 128, 32, 1)).contiguous()

    for run, how in ((counted, "count"), (indexed, "index")):
        graph = export(Runs(run).to("meta"), picture(8, 64, 32, 32), loss=lambda out: out.mean())
        assert nodes(graph, "expand")[0]["overlap"] == how and not graph.warnings


def test_a_weights_norm_along_its_last_axis_is_told_from_one_along_its_first() -> None:
    for dim in (0, 2):
        layer = nn.utils.parametrizations.weight_norm(nn.Conv1d(64, 64, 16, groups=4), dim=dim)
        graph = export(layer.to("meta"), torch.empty(2, 64, 128, device="meta"), loss=lambda out: out.mean())
        (norm,) = nodes(graph, "weight_norm")
        assert norm.get("last", False) == (dim == 2) and not graph.warnings


def test_what_a_model_asserts_of_all_its_inputs_is_taken_to_hold() -> None:
    class Sure(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(100, 8)

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            shifted = ids.new_zeros(ids.shape)
            shifted[..., 1:] = ids[..., :-1].clone()
            assert torch.all(shifted >= 0).item()
            return self.words(shifted)

    graph = export(Sure().to("meta"), torch.zeros(4, 16, dtype=torch.long, device="meta"), task="forward")
    assert "embedding" in ops(graph)


def test_some_channels_of_a_picture_that_lies_channels_last_are_copied_once() -> None:
    """PyTorch takes them to lie channels last too: a convolution copies them together, a join writes them so."""

    def mixed(x: torch.Tensor, a: nn.Module, c: nn.Module) -> torch.Tensor:
        left, right = x.chunk(2, 1)
        return torch.cat([a(left), c(right), left], 1)

    model = Runs(mixed, 64, nn.Conv2d(32, 32, 3, padding=1), nn.Conv2d(32, 32, 5, padding=2)).to("meta")
    graph = export(model.to(memory_format=torch.channels_last), picture(8, 64, 32, 32, last=True), task="forward")
    kinds = [k["op"] for k in forecast(graph, task="forward", batch=8, detail="kernels")["kernels"]]
    assert kinds.count("copy") == 2 and not any(kind.startswith("transpose") for kind in kinds)


def test_a_linear_layer_by_part_of_a_weight_is_one_product() -> None:
    """Cross-attention's keys and values: rows in another order are copied into one matrix, not multiplied one by one."""
    layer = nn.MultiheadAttention(64, 4, batch_first=True)

    class Looks(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer

        def forward(self, x: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
            return self.layer(x, memory, memory, need_weights=True)[0]

    given = (torch.empty(8, 16, 64, device="meta"), torch.empty(8, 32, 64, device="meta"))
    graph = export(Looks().to("meta"), given, loss=lambda out: out.mean())
    assert all(node.get("shape", [])[1:] != [64, 64] for node in nodes(graph, "expand"))
    assert ops(graph).count("matmul") == 4  # two of weights' parts, scores, what they weigh


def test_a_picture_of_one_pixel_lies_as_nchw() -> None:
    """It lies both ways; PyTorch takes it as NCHW, and what is drawn from it is turned for every convolution."""
    model = nn.Sequential(nn.ConvTranspose2d(64, 32, 4), nn.ConvTranspose2d(32, 16, 4, 2, 1))
    point = export(model, torch.empty(8, 64, 1, 1), task="forward").to_dict()
    assert "layout" not in next(iter(point["inputs"].values()))
    picture = torch.empty(8, 64, 2, 2).to(memory_format=torch.channels_last)
    assert next(iter(export(model, picture, task="forward").to_dict()["inputs"].values()))["layout"] == "nhwc"


class Asserts(nn.Module):
    """Two results that Python holds beside a third, behind a check of values that must hold."""

    def __init__(self) -> None:
        super().__init__()
        self.line = nn.Linear(64, 4096, bias=False)

    def forward(self, x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        assert torch.all(places >= 0).item(), "places start at 0"
        first = self.line(x)
        second = first.relu()
        return (second + 1).sum() + first.shape[0]


def test_what_is_held_is_counted_behind_an_assertion() -> None:
    with torch.device("meta"):
        model = Asserts().to(torch.bfloat16)
        inputs = (torch.empty(256, 64, dtype=torch.bfloat16), torch.zeros(256, dtype=torch.long))
    held = export(model, inputs, task="forward").to_dict()["held_bytes"]
    assert held >= 3 * 256 * 4096 * 2
