"""What goes into an export: sizes that vary, modules and arguments that are wrong, saved programs."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from exporting import TOKENS, Decoder, Layer, forecast, line_of, loss, nodes
from torch import nn

from export_models import ask
from foretell.export import ExportError, export, export_program, load_pt2

pytestmark = pytest.mark.old_torch

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
        export(Model(), (torch.zeros(2, 64), torch.ones(2, dtype=torch.long, device="meta")))
    assert told.value.code == "data_dependent" and told.value.where == line_of(Model.forward, "range(int(")
    graph = export(Model(), (torch.zeros(2, 64), torch.tensor([2, 5])), task="forward")  # whole numbers that are there
    assert len(nodes(graph, "relu")) == 5
    assert any("those of the example (n) decide" in note for note in graph.warnings)


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
