"""``python -m foretell``: the program, and the commands that are Python."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import run

from foretell.__main__ import main

KERNEL = ["kernel", "gemm", "-m", "4096", "-n", "4096", "-k", "4096", "--gpu", "h100_sxm"]


def module(*line: str, **more: object) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "-m", "foretell", *line, **more)


@pytest.mark.parametrize(
    "line",
    [
        KERNEL,
        [*KERNEL, "--json"],
        ["train", "llama-3-70b", "--gpu", "h100_sxm"],  # does not fit: status 1
        ["train", "lama", "--gpu", "h100_sxm"],  # status 3
        ["kernel", "gemm", "--gpu", "h100_sxm", "--no-such-flag"],  # status 2
        ["--version"],
        ["--help"],
        [],
    ],
    ids=lambda line: " ".join(line) or "nothing",
)
def test_mirrors_the_program(program: Path, line: list[str]) -> None:
    """Output, complaints and exit status are the program's own."""
    there, here = run(program, *line), module(*line)
    assert (here.returncode, here.stdout, here.stderr) == (there.returncode, there.stdout, there.stderr)


def test_reads_standard_input(program: Path) -> None:
    asked = '{"task":"kernel","op":"softmax","rows":64,"cols":64,"gpu":"h100_sxm"}\n'
    assert module("batch", input=asked).stdout == run(program, "batch", input=asked).stdout != ""


def test_is_the_program_and_not_its_parent() -> None:
    """A signal ends it as it ends the program: there is no Python process in between."""
    process = subprocess.Popen(
        [sys.executable, "-m", "foretell", "batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(b'{"task":"kernel","op":"softmax","rows":64,"cols":64,"gpu":"h100_sxm"}\n')
    process.stdin.flush()
    process.stdout.readline()
    with open(f"/proc/{process.pid}/comm") as file:
        assert file.read().strip() == "foretell"
    process.send_signal(signal.SIGTERM)
    process.stdin.close()
    process.stdout.close()
    assert process.wait(timeout=600) == -signal.SIGTERM


def test_without_a_program(tmp_path: Path) -> None:
    done = module("gpus", env={**os.environ, "FORETELL_PROGRAM": str(tmp_path / "none")})
    assert done.returncode == 3 and "FORETELL_PROGRAM" in done.stderr and "Traceback" not in done.stderr


# -- export ------------------------------------------------------------------------------------------------------------

BUILDER = """
import torch

class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Linear(64, 256)
        self.down = torch.nn.Linear(256, 64)

    def forward(self, x):
        return self.down(torch.relu(self.up(x)))

def build():
    return Small(), (torch.zeros(8, 64),)

def broken():
    raise ValueError("no weights today")

def nothing():
    return Small()
"""


@pytest.fixture
def builder(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "small_model.py"
    path.write_text(BUILDER)
    yield path
    sys.modules.pop("small_model", None)


@pytest.mark.parametrize("place", ["small_model.py", "small_model"])
def test_export_of_a_function(
    builder: Path, place: str, program: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(builder.parent)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert main(["export", f"{place}:build", "-o", "small.ft.json"]) == 0
    assert capsys.readouterr().out == "small.ft.json\n"
    forecast = run(program, "train", "small.ft.json", "--gpu", "h100_sxm", "--json", cwd=builder.parent)
    assert json.loads(forecast.stdout)["parameters"] == 64 * 256 + 256 + 256 * 64 + 64, forecast.stderr


def test_export_of_a_saved_program(
    builder: Path, program: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import torch

    monkeypatch.chdir(builder.parent)
    monkeypatch.syspath_prepend(builder.parent)
    model, inputs = importlib.import_module("small_model").build()
    torch.export.save(torch.export.export(model, inputs), "small.pt2")
    assert main(["export", "small.pt2"]) == 0
    answered = module("train", "small.pt2", "--gpu", "h100_sxm", "--json")
    assert answered.returncode == 0 and json.loads(answered.stdout)["step_ms"] > 0
    assert module("infer", "small.pt2", "--gpu", "h100_sxm").returncode == 0
    assert capsys.readouterr().out == "small.ft.json\n"
    forecast = run(program, "train", "small.ft.json", "--gpu", "h100_sxm", "--json", cwd=builder.parent)
    assert json.loads(forecast.stdout)["parameters"] == 64 * 256 + 256 + 256 * 64 + 64


@pytest.mark.parametrize(
    ("what", "status", "said"),
    [
        ("missing.pt2", 3, "no such file"),
        ("cut.pt2", 3, "cut.pt2"),
        ("small_model", 2, "module:function"),
        ("small_model.py:none", 3, "has no function none"),
        ("small_model.py:broken", 3, "broken() raised ValueError: no weights today"),
        ("small_model.py:nothing", 3, "(model, example_inputs)"),
        ("no_such_module:build", 3, "cannot import no_such_module"),
        ("none.py:build", 3, "no such file"),
        (":", 2, "module:function"),
    ],
)
def test_export_of_what_is_wrong(
    builder: Path,
    what: str,
    status: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (builder.parent / "cut.pt2").write_bytes(b"PK\x03\x04 and no more")
    monkeypatch.chdir(builder.parent)
    assert main(["export", what]) == status
    told = capsys.readouterr()
    assert said in told.err and told.err.startswith("foretell: ") and told.out == ""


def test_export_to_where_nothing_can_be_written(
    builder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(builder.parent)
    assert main(["export", "small_model.py:build", "-o", "no/such/folder/x.ft.json"]) == 3
    assert "cannot write" in capsys.readouterr().err
