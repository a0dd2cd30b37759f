"""Questions that ask several times are answered by the library as the program answers them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import run

import foretell

GPU = "h100_sxm"


def told(program: Path, *line: str) -> list[Any]:
    """What the program prints with --json, a document a line, without what it says about itself and the question."""
    documents = [json.loads(each) for each in run(program, *line, "--json").stdout.splitlines()]
    return [{key: value for key, value in each.items() if key not in ("request", "version")} for each in documents]


def test_infer(program: Path) -> None:
    line = ["infer", "gpt2", "--gpu", GPU, "-b", "1", "-b", "8", "--seq", "512", "--isl", "256", "--osl", "64"]
    answer = foretell.infer("gpt2", gpu=GPU, batch=(1, 8), seq=512, isl=256, osl=64)
    assert [answer.to_dict()] == told(program, *line)
    assert answer.offline is not None and answer.offline.low_tokens_per_s_per_gpu < answer.offline.tokens_per_s_per_gpu
    assert all(cell.low_ms < cell.ms < cell.high_ms for cell in (*answer.prefill, *answer.decode))
    with_advice = foretell.infer("gpt2", gpu=GPU, batch=1, seq=512, advice=True)
    assert [each["id"] for each in with_advice["steps"]] == ["prefill", "decode"]


def test_largest(program: Path) -> None:
    answer = foretell.largest(gpu=GPU, gpus=4, family="gpt", recompute="full")
    line = ["largest", "--gpu", GPU, "--gpus", "4", "--family", "gpt", "--recompute", "full"]
    assert [answer.to_dict()] == told(program, *line)
    assert answer.fits and answer.need_bytes <= answer.capacity_bytes and "layers of" in str(answer)
    serving = foretell.largest(gpu=GPU, use="infer")
    assert serving.parameters > answer.parameters / 4 and serving.training is None
    none = foretell.largest(gpu="p4", dtype="fp32", batch=4096)
    assert not none.fits and none.parameters is None and "not even" in str(none)
    with pytest.raises(foretell.Error, match="family") as caught:
        foretell.largest(gpu=GPU, family="bert")
    assert caught.value.code == "unknown_name" and caught.value.where == "family"


def test_serve(program: Path) -> None:
    asked = {"isl": 512, "osl": 32, "concurrency": 4, "requests": 20}
    answer = foretell.serve("llama-3.1-8b", gpu=GPU, engine="sglang", **asked)
    line = ["serve", "llama-3.1-8b", "--gpu", GPU, "--engine", "sglang", "--isl", "512", "--osl", "32", "-c", "4"]
    assert [answer.to_dict()] == told(program, *line, "--requests", "20")
    assert answer.stable and answer.tpot_low_ms < answer.tpot_ms < answer.tpot_high_ms and "requests/s" in str(answer)
    listed = foretell.serve("llama-3.1-8b", gpu=GPU, per_request=True, **asked)
    assert len(listed.rows()) == 20 and all(row["ttft_ms"] <= row["e2e_ms"] for row in listed.rows())
    with pytest.raises(foretell.Error, match="exactly one of") as caught:
        foretell.serve("llama-3.1-8b", gpu=GPU)
    assert caught.value.where == "concurrency"


def test_plan(program: Path) -> None:
    answer = foretell.plan("llama-3-8b", gpu=GPU, gpus=8, global_batch=32, seq=4096, search={"cp": 1})
    line = ["plan", "llama-3-8b", "--gpu", GPU, "--gpus", "8", "--global-batch-size", "32", "--seq", "4096"]
    (told_of,) = told(program, *line, "--fix", "cp=1")
    ours = answer.to_dict()
    for said in (ours, told_of):
        said["search_ms"] = 0
        for each in said["plans"]:
            each["request"].pop("dtype", None)  # Python names the default
    assert ours == told_of
    assert answer.fits and answer.proof == "optimal" and "tp" in str(answer)
    assert len(answer.to_dataframe()) == len(answer.plans) == 5
    step = foretell.batch([answer.plans[0]["request"]])[0]
    assert step.step_ms == answer.plans[0]["step_ms"]
    none = foretell.plan("llama-3-70b", gpu=GPU, gpus=2, global_batch=16)
    assert not none.fits and none.least_gpus > 2 and "would do" in str(none)


def test_choose(program: Path) -> None:
    answer = foretell.choose(
        "llama-3-8b", tokens=1e11, gpu=[GPU, "a100_sxm_80gb"], gpus="8:16", price={GPU: 2.1}, today="2026-11-16"
    )
    line = ["choose", "llama-3-8b", "--tokens", "1e11", "--gpu", GPU, "--gpu", "a100_sxm_80gb", "--gpus", "8:16"]
    (told_of,) = told(program, *line, "--price", f"{GPU}=2.1", "--today", "2026-11-16")
    assert answer.to_dict() == told_of
    assert answer.found and answer.chosen is not None and len(answer.to_dataframe()) == len(answer.choices) == 4
    assert "chosen" in str(answer) and {each["verdict"] for each in answer.choices} >= {"chosen"}
    late = foretell.choose("llama-3-8b", tokens=1e13, gpu=GPU, gpus=8, deadline="1d", today="2026-11-16")
    assert not late.found and late.chosen is None and late.choices[0]["verdict"] == "deadline"


def test_scale(program: Path) -> None:
    answer = foretell.scale("llama-3-8b", gpu=GPU, gpus=64, tp=8, pp=2, global_batch=64)
    line = ["scale", "llama-3-8b", "--gpu", GPU, "--gpus", "64", "--tp", "8", "--pp", "2", "--global-batch-size", "64"]
    assert [answer.to_dict()] == told(program, *line, "--dtype", "bf16")
    assert answer.strong[-1].gpus == 64 and answer.pipeline is not None and answer.pipeline["stages"] == 2
    assert len(answer.to_dataframe()) == len(answer.strong) + len(answer.weak) and "Weak" in str(answer)
    with pytest.raises(foretell.Error, match="replicas") as caught:
        foretell.scale("llama-3-8b", gpu=GPU, gpus=100, tp=8)
    assert caught.value.where == "gpus"


def test_sweep(program: Path) -> None:
    steps = foretell.sweep("batch=1:4:x2", "gpt2", gpu=[GPU, "l4"], seq=512)
    line = ["train", "gpt2", "--gpu", GPU, "--gpu", "l4", "--seq", "512", "--sweep", "batch=1:4:x2"]
    assert [each.to_dict() for each in steps] == told(program, *line)
    assert steps["l4 batch=2"].step_ms > steps[f"{GPU} batch=2"].step_ms and len(steps.to_dataframe()) == 6
    degrees = foretell.sweep({"tp": [1, 2]}, "gpt2", gpu=GPU, dp=2)
    assert [each.ranks for each in degrees] == [2, 4]
    kernels = foretell.sweep({"n": range(64, 257, 64)}, gpu=GPU, of="kernel", op="gemm", m=64, k=64)
    assert all(isinstance(each, foretell.Kernel) for each in kernels) and len(kernels) == 4
    with pytest.raises(foretell.Error, match=r"at batch = 0"):
        foretell.sweep({"batch": [0]}, "gpt2", gpu=GPU)


def test_serving_is_planned_and_chosen(program: Path) -> None:
    asked = {"isl": 256, "osl": 32, "slo": {"ttft_ms": 300, "tpot_ms": 20}}
    answer = foretell.plan_serve("llama-3.1-8b", gpu=GPU, gpus=2, search={"tp": [1, 2]}, **asked)
    line = ["plan", "llama-3.1-8b", "--gpu", GPU, "--gpus", "2", "--fix", "tp=1|2", "--isl", "256", "--osl", "32"]
    (said,) = told(program, *line, "--slo", "ttft=300ms,tpot=20ms")
    for plan, same in zip(answer.plans, said["plans"], strict=True):  # the program's requests leave defaults out
        assert {**plan, "request": None} == {**same, "request": None}
    assert len(answer.to_dataframe()) == len(answer.plans) > 0
    assert "J/token" in str(answer)
    assert "<table" in answer._repr_html_()
    assert all(plan["gpus"] <= 2 for plan in answer.plans)
    none = foretell.plan_serve("llama-3.1-8b", gpu=GPU, gpus=1, rate=1000, search={"tp": 1}, **asked)
    assert not none.fits
    assert "would do" in str(none)
    choice = foretell.choose_serve("llama-3.1-8b", gpu=[GPU, "l40s"], rate=2, today="2026-11-16", **asked)
    assert len(choice.to_dataframe()) == 2
    assert choice.chosen is not None
    assert choice.chosen["verdict"] == "chosen"
    assert "kWh" in choice._repr_html_()


def test_what_is_known(program: Path) -> None:
    assert [each.to_dict() for each in foretell.gpus()] == json.loads(run(program, "gpus", "--json").stdout)
    assert [each.to_dict() for each in foretell.models()] == json.loads(run(program, "models", "--json").stdout)


def test_compare(program: Path, tmp_path: Path) -> None:
    requests = [{"task": "train", "model": "gpt2", "gpu": GPU, "execution": how} for how in ("eager", "compile")]
    for request in requests:
        (tmp_path / f"{request['execution']}.json").write_text(json.dumps(request))
    paths = [str(tmp_path / f"{each['execution']}.json") for each in requests]
    assert [foretell.compare(*requests, names=paths).to_dict()] == told(program, "compare", *paths)


def test_no_program_is_started(tmp_path: Path) -> None:
    """Everything is answered where there is no program at all."""
    code = (
        "import foretell, os, subprocess\n"
        "def refuse(*line, **more): raise AssertionError(line)\n"
        "subprocess.run = subprocess.Popen = os.execv = refuse\n"
        "foretell.gpus(), foretell.models()\n"
        "foretell.infer('gpt2', gpu='l4', batch=1, seq=64), foretell.largest(gpu='l4', seq=64)\n"
        "foretell.scale('gpt2', gpu='l4', gpus=8), foretell.sweep('batch=1:2', 'gpt2', gpu='l4')\n"
        "asked = {'task': 'train', 'model': 'gpt2', 'gpu': 'l4'}\n"
        "print(len(foretell.compare(asked, asked).answers))\n"
    )
    done = run(sys.executable, "-c", code, cwd=tmp_path)
    assert done.stdout.strip() == "2", done.stderr
