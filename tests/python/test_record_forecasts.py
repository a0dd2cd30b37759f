"""Forecasts of what was recorded, and of what an H200 ran."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import ROOT, run
from recording import _recorded, _step

import foretell

pytestmark = pytest.mark.old_torch

# -- forecasts ---------------------------------------------------------------------------------------------------------


def test_forecast_of_what_ran() -> None:
    recording = _recorded(_step("meta", torch.bfloat16))
    answer = recording.answer
    assert answer is recording.answer
    assert answer.low_ms <= answer.step_ms <= answer.high_ms
    assert "step" in str(answer) and "<div" in answer._repr_html_()
    assert recording.forecast("a100_sxm_80gb").step_ms > 0


def test_larger_work_takes_longer() -> None:
    def answer(width: int) -> Any:
        model = torch.nn.Linear(width, width, device="meta", dtype=torch.bfloat16)
        x = torch.empty(8192, width, device="meta", dtype=torch.bfloat16)
        return _recorded(lambda: model(x).sum().backward()).answer

    small, large = answer(4096), answer(8192)
    assert 2.5 * small.step_ms < large.step_ms < 6 * small.step_ms


def test_agrees_with_the_product_alone() -> None:
    a = torch.empty(8192, 8192, device="meta", dtype=torch.bfloat16)
    step = _recorded(lambda: a @ a).answer.forecasts[0].busy_ms
    assert step == pytest.approx(
        foretell.kernel("gemm", m=8192, n=8192, k=8192, layout="nn", gpu="h100_sxm").ms, rel=0.1
    )


def test_the_host_sets_the_pace_of_small_steps() -> None:
    """As in a forecast of the same model: operators take the host longer than the GPU, modules and views included."""
    import transformers

    with torch.device("meta"):
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=4)).to(torch.bfloat16)
        tokens = torch.zeros(1, 64, dtype=torch.long)
    optimizer = torch.optim.AdamW(model.parameters())

    def step() -> None:
        model(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    step()
    answer = _recorded(step).answer
    (here,) = answer.forecasts
    assert answer.step_ms > 3 * here.busy_ms
    assert 0.8 * answer.step_ms < here.host_ms < answer.step_ms  # nothing hides the update's kernels, which come last
    inputs = {"input_ids": tokens, "labels": tokens}
    whole = foretell.forecast(
        model, inputs, gpu="h100_sxm", task="train", dtype="bf16", attention="sdpa", optimizer="adamw_foreach"
    )
    assert answer.step_ms == pytest.approx(whole.step_ms, rel=0.15)


def test_steps_are_marked() -> None:
    step = _step("meta", torch.bfloat16)
    step()  # the first makes the optimizer's states
    with foretell.record(gpu="h100_sxm") as once:
        step()
    with foretell.record(gpu="h100_sxm") as thrice:
        for _ in range(3):
            step()
            thrice.step()
    assert thrice.answer.step_ms == pytest.approx(once.answer.step_ms, rel=0.02)


def test_saved_and_read_by_the_program(tmp_path: Path, program: Path) -> None:
    recording = _recorded(_step("meta", torch.bfloat16))
    for name in ("run.json", "run.json.gz"):
        recording.save(tmp_path / name)
        told = json.loads(run(program, "trace", tmp_path / name, "--gpu", "h100_sxm", "--json").stdout)
        assert told["step_ms"] == recording.answer.step_ms
    assert json.loads(gzip.decompress((tmp_path / "run.json.gz").read_bytes()))["foretell_record"] == 1


def test_what_is_wrong() -> None:
    with pytest.raises(foretell.Error, match="nothing was recorded"):
        foretell.record(gpu="h100_sxm").answer
    with foretell.record(gpu="h100_sxm") as recording:
        with pytest.raises(foretell.Error, match="not over"):
            recording.answer
    with pytest.raises(foretell.Error, match="no operator"):
        recording.answer
    with pytest.raises(foretell.Error, match="once"), recording:
        pass
    with pytest.raises(foretell.Error, match="which GPU"):
        unnamed = foretell.record()
        with unnamed:
            torch.zeros(4) + 1
        unnamed.answer
    with pytest.raises(foretell.Error, match="h1000"):
        _recorded(_step("meta", torch.bfloat16)).forecast("h1000")


# -- against a GPU -----------------------------------------------------------------------------------------------------

TRACES = ROOT / "tests" / "data" / "traces"


def _profiled(name: str) -> float:
    """Operators of a step that launched kernels on an H200."""
    events = json.loads(gzip.decompress((TRACES / f"{name}.json.gz").read_bytes()))["traceEvents"]
    named = {each["args"]["External id"] for each in events if each.get("cat") == "cpu_op"}
    launched = {
        each["args"].get("External id") for each in events if each.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")
    }
    steps = sum(each.get("cat") == "user_annotation" and each["name"].startswith("ProfilerStep") for each in events)
    return len(named & launched) / steps


def test_as_an_h200_ran_it() -> None:
    """The same step, recorded without a GPU: as many operators with kernels as the profile has, and its time."""
    import transformers

    with torch.device("meta"):
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=2)).to(torch.bfloat16)
        tokens = torch.zeros(16, 1024, dtype=torch.long)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6)

    def step() -> None:
        model(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    step()
    recording = _recorded(step)
    operators = _profiled("small_gpt2_train")
    assert sum(recording.operators.values()) == pytest.approx(operators, rel=0.1)
    (measured,) = (
        each["step_ms"]
        for each in json.loads((TRACES / "cases.json").read_text())["cases"]
        if each["name"] == "small_gpt2_train"
    )
    assert recording.forecast("h200_sxm").step_ms == pytest.approx(measured, rel=0.12)
