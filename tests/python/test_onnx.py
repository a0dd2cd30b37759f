"""ONNX files that PyTorch's two exporters write of torchvision, timm and transformers: parameters to the last one,
arithmetic as PyTorch counts it."""

from __future__ import annotations

import functools
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

onnx = pytest.importorskip("onnx")
models = pytest.importorskip("onnx_models")

PROGRAM = Path(os.environ.get("FORETELL_PROGRAM", ROOT / "build" / "foretell"))
PRODUCTS = ("linear", "bmm", "matmul", "gemm", "conv2d", "conv3d", "attention")


def ask(*requests: dict[str, Any]) -> list[dict[str, Any]]:
    text = "".join(json.dumps({"gpu": "h200_sxm", **each}) + "\n" for each in requests)
    done = subprocess.run([PROGRAM, "batch"], input=text, capture_output=True, text=True, check=False)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(requests), done.stderr
    return answers


def products(answer: dict[str, Any]) -> float:
    return sum(each["flops"] * each["count"] for each in answer["kernels"] if each["op"] in PRODUCTS)


def sizes(case: Any) -> dict[str, int]:
    return {"batch": models.BATCH} | ({"seq": models.SEQ} if 1 in case.free else {})


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """An export is seconds of one core: the file of a case is made once, whoever asks for it."""

    @functools.cache
    def made(name: str, exporter: str, optimize: bool) -> Any:
        folder = tmp_path_factory.mktemp("onnx")
        if optimize and exporter == "dynamo":
            return models.optimized(made(name, exporter, False), folder)
        return models.export(models.CASES[name], exporter, folder, optimize)

    return lambda name, exporter="dynamo", optimize=False: made(name, exporter, optimize)


EXPORTS = [
    (name, exporter)
    for name, case in models.CASES.items()
    for exporter in ("dynamo", "script")
    if (case.dynamo if exporter == "dynamo" else case.script)
]


@pytest.mark.parametrize(("name", "exporter"), EXPORTS, ids=lambda each: each.replace(" ", "-"))
def test_counts(name: str, exporter: str, export: Any) -> None:
    case = models.CASES[name]
    made = export(name, exporter, case.optimize)
    common = {"model": str(made.path), "dtype": "fp32", "detail": "kernels", **sizes(case)}
    eager, flash, train = ask(
        {**common, "task": "forward", "attention": "eager"},
        {**common, "task": "forward", "attention": "sdpa"},
        {**common, "task": "train", "optimizer": "adamw"},
    )
    for answer in (eager, flash, train):
        assert answer["ok"], answer["error"]
        assert answer["parameters"] == made.parameters + case.twice
        assert not answer.get("warnings"), answer["warnings"]
    assert products(eager) == pytest.approx(made.flops, rel=0.01)
    assert products(flash) == pytest.approx(made.flops, rel=0.01)
    # Two products backward for each one forward, but for the first layer's input.
    backward = products(train) - products(flash)
    assert 1.4 * made.flops < backward < 2.6 * made.flops


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "vit"])
def test_attention_is_recognised(name: str, export: Any) -> None:
    """Written out for eager, one kernel per layer where the request asks for it."""
    case = models.CASES[name]
    made = export(name, "dynamo", True)
    common = {"model": str(made.path), "detail": "kernels", "task": "forward", **sizes(case)}
    eager, flash = ask({**common, "attention": "eager"}, {**common, "attention": "flash"})
    assert eager["ok"] and flash["ok"]
    assert sum(each["count"] for each in eager["kernels"] if each["op"] == "attention") == 0
    assert sum(each["count"] for each in flash["kernels"] if each["op"] == "attention") == 2
    assert sum(each["count"] for each in flash["kernels"] if each["op"] == "softmax") == 0
    assert flash["launches"] < eager["launches"]


def test_batch_and_length_come_from_the_request(export: Any) -> None:
    made = export("bert")
    common = {"model": str(made.path), "task": "forward", "seq": 24, "detail": "kernels"}
    small, large = ask(*({**common, "batch": batch} for batch in (2, 8)))
    assert products(large) == pytest.approx(4 * products(small))


def test_a_fixed_file_says_so(tmp_path: Path) -> None:
    case = models.CASES["vit"]
    made = models.export(models.Case(case.make, case.inputs, {}), "dynamo", tmp_path)
    plain, other = ask(
        {"model": str(made.path), "task": "forward"}, {"model": str(made.path), "task": "forward", "batch": 7}
    )
    assert plain["ok"] and not other["ok"]
    assert other["error"]["where"].endswith("batch") and "fixes the batch at 2" in other["error"]["message"]


def test_what_needs_layers_is_refused(export: Any) -> None:
    made = export("bert")
    common = {"model": str(made.path), "task": "train", "batch": 2, "seq": 24}
    full, selective, fused, plain = ask(
        {**common, "recompute": "full"}, {**common, "recompute": "selective"}, {**common, "execution": "fused"}, common
    )
    assert plain["ok"]
    for answer, word in ((full, "recompute"), (selective, "recompute"), (fused, "fused")):
        assert not answer["ok"] and answer["error"]["code"] == "unsupported"
        assert word in answer["error"]["message"]


def test_norms_of_an_fp32_file_are_raised_in_bf16(export: Any) -> None:
    """The file lost the casts that the model makes in 16 bits, and wrote silu and rsqrt out."""
    case = models.CASES["llama"]
    made = export("llama")
    common = {"model": str(made.path), "detail": "kernels", "task": "forward", "attention": "eager", **sizes(case)}
    wide, low = ask({**common, "dtype": "fp32"}, {**common, "dtype": "bf16"})

    def count(answer: dict[str, Any], op: str) -> float:
        return sum(each["count"] for each in answer["kernels"] if each["op"] == op)

    assert count(wide, "cast_fp32") == 0
    assert count(low, "cast_fp32") == 5 + 2  # two norms a layer and the last one; the scores of each layer
    assert count(low, "cast_bf16") == 5 + 2
    for answer in (wide, low):
        assert count(answer, "silu") == 2 and count(answer, "sigmoid") == 0
        assert count(answer, "rsqrt") == 5 and count(answer, "sqrt") == count(answer, "reciprocal") == 0
