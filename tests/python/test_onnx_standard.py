"""The ONNX standard's own test models, all of them: each is forecast, or refused with a reason. No crash, no bug."""

from __future__ import annotations

import json
import os
import subprocess
import warnings
from collections import Counter
from pathlib import Path

import pytest
from conftest import ROOT

onnx = pytest.importorskip("onnx")

PROGRAM = Path(os.environ.get("FORETELL_PROGRAM", ROOT / "build" / "foretell"))
# What may be wrong with a file; anything else is wrong with the reader.
REASONS = {"unsupported", "out_of_range", "missing", "unknown_name", "bad_format"}


def write_node_models(folder: Path) -> list[Path]:
    """One file for each operator test of the standard. They are made by code, not shipped."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    paths = []
    for case in cases:
        if case.model is not None:
            path = folder / f"{case.name}.onnx"
            path.write_bytes(case.model.SerializeToString())
            paths.append(path)
    return paths


def shipped_models() -> list[Path]:
    return sorted((Path(onnx.__file__).parent / "backend" / "test" / "data").rglob("*.onnx"))


def test_every_model_parses_or_is_refused(tmp_path: Path) -> None:
    paths = write_node_models(tmp_path) + shipped_models()
    assert len(paths) > 1500
    tasks = ("forward", "train", "memory")
    requests = [{"task": task, "model": str(path), "gpu": "h200_sxm"} for path in paths for task in tasks]
    text = "".join(json.dumps(each) + "\n" for each in requests)
    done = subprocess.run([PROGRAM, "batch"], input=text, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(requests)
    count = Counter()
    for request, answer in zip(requests, answers, strict=True):
        count[answer["ok"]] += 1
        if not answer["ok"]:
            error = answer["error"]
            assert error["code"] in REASONS and error["message"], (request, error)
        elif request["task"] != "memory":
            assert answer["step_ms"] > 0, request
    # Opsets before 13, control flow, sequences and text are refused; the rest is most of them.
    assert count[True] > 0.75 * len(answers), count


def test_one_file_through_the_program(tmp_path: Path) -> None:
    """Exit status 0 for an answer, 3 for bad input, with file and reason on stderr."""
    good = shipped_models()
    assert good
    statuses = set()
    for path in good[:40:8] + [tmp_path / "missing.onnx"]:
        done = subprocess.run(
            [PROGRAM, "infer", path, "--gpu", "h200_sxm", "--json"], capture_output=True, text=True, check=False
        )
        assert done.returncode in (0, 3), (path, done.stderr)
        statuses.add(done.returncode)
        if done.returncode == 3:
            assert json.loads(done.stdout)["error"]["message"]
    assert 3 in statuses
