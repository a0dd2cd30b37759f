"""The recorder of profiler traces runs, and what it writes is read: on the CPU, where no kernels are recorded."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from conftest import ROOT, run

pytest.importorskip("torch")
pytest.importorskip("transformers")


def test_recorded_on_the_cpu(program: Path, tmp_path: Path) -> None:
    recorder = ROOT / "python" / "measure" / "record_trace.py"
    done = run(sys.executable, recorder, "--cpu", "--only", "small_vit", "--only", "small_gpt2_fp32", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    cases = json.loads((tmp_path / "cases.json").read_text())["cases"]
    assert [c["name"] for c in cases] == ["small_gpt2_fp32", "small_vit_infer"]
    assert all(c["step_ms"] > 0 for c in cases)
    for case in cases:
        trace = tmp_path / f"{case['name']}.json.gz"
        refused = run(program, "trace", trace)
        assert refused.returncode == 3 and "--gpu" in refused.stderr
        answer = json.loads(run(program, "trace", trace, "--gpu", "h100_sxm", "--gpu", "t4", "--json").stdout)
        assert answer["ok"] and "no kernels" in answer["warnings"][0]
        first, second = answer["forecasts"]
        assert 0 < first["low_ms"] <= first["step_ms"] <= first["high_ms"]
        assert second["step_ms"] > first["step_ms"]
        assert first["guessed"] < 0.1, "operators that the table does not know"


def test_recorder_without_a_gpu(tmp_path: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is one")
    done = run(sys.executable, ROOT / "python" / "measure" / "record_trace.py", "--out", tmp_path)
    assert done.returncode == 3 and "--cpu" in done.stderr
