"""`foretell calibrate` as it is typed: usage, GPUs by name, programs that die, its bar, exchanges, the host."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from calibrating import ROOT, alone, lines, points, program, run

from foretell.calibrate import command, host
from foretell.calibrate.catalogue import NAMES, name_of, spec_of
from foretell.calibrate.errors import CalibrateError
from foretell.calibrate.forecaster import ByProgram, open_forecaster
from foretell.calibrate.options import parse
from foretell.calibrate.progress import Bar
from foretell.calibrate.simulated import Behaviour

# --- the command


def command_line(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "foretell.calibrate", *arguments], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python"), **environment},
    )  # fmt: skip


def test_a_dry_run_from_the_command_line(tmp_path: Path, program: Path) -> None:
    path = tmp_path / "dry.jsonl"
    done = command_line("--simulate", "h200_sxm", "--minutes", "0.5", "-o", str(path), "--no-fit")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "" and "\r" not in done.stderr  # no bar where there is no terminal
    assert "held out" in done.stderr
    assert lines(path)[0]["chosen_by"] == "foretell"
    assert len(points(path)) > 6 * 60
    absent = command_line(
        "--simulate", "h200_sxm", "--minutes", "0.1", "-o", str(tmp_path / "b"), FORETELL_PROGRAM="/nowhere/foretell"
    )
    assert absent.returncode == 0 and "chosen without its forecasts" in absent.stderr
    assert "fit --calibrate" in absent.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--minutes", "0"], "no time"),
        (["--minutes", "nan"], "no time"),
        (["--held-out", "0.9"], "no share"),
        (["--families", "gemm,gmm", "--simulate", "l4"], 'unknown "gmm"'),
        (["--dtypes", "bf17", "--simulate", "l4"], 'unknown "bf17"'),
        (["--resume", "a", "--output", "b"], "leave --output out"),
        (["--nonsense"], "unrecognized"),
    ],
)
def test_wrong_usage(tmp_path: Path, arguments: list[str], said: str) -> None:
    if "--simulate" in arguments:
        arguments = [*arguments, "-o", str(tmp_path / "m")]
    done = command_line(*arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert not list(tmp_path.iterdir())


def test_no_such_gpu_to_simulate(tmp_path: Path, program: Path) -> None:
    done = command_line("--simulate", "h2000", "-o", str(tmp_path / "m"))
    assert done.returncode == 3 and "h2000" in done.stderr


def test_without_pytorch(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('no torch here')")
    done = subprocess.run(
        [sys.executable, "-m", "foretell.calibrate", "-o", str(tmp_path / "m")], capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT / 'python'}"}, check=False,
    )  # fmt: skip
    assert done.returncode == 3
    assert "pip install torch" in done.stderr and "Traceback" not in done.stderr


def test_spec_files(tmp_path: Path) -> None:
    spec = tmp_path / "mine.json"
    spec.write_text('{"base": "h100_sxm", "name": "mine", "sms": 114}')
    assert parse(["--gpu", str(spec)]).gpu == {"base": "h100_sxm", "name": "mine", "sms": 114}
    assert parse(["--gpu", "h100_sxm"]).gpu == "h100_sxm"
    for text, said in (("[1]", "name"), ("{", "Expecting"), ('{"sms": 3}', "name")):
        spec.write_text(text)
        with pytest.raises(CalibrateError, match=said):
            parse(["--gpu", str(spec)])
    with pytest.raises(CalibrateError, match="No such file"):
        parse(["--gpu", str(tmp_path / "absent.json")])


def test_names_of_drivers(program: Path) -> None:
    for title, name in {
        "NVIDIA H200": "h200_sxm", "NVIDIA H100 80GB HBM3": "h100_sxm", "NVIDIA H100 PCIe": "h100_pcie",
        "NVIDIA A100-SXM4-80GB": "a100_sxm_80gb", "NVIDIA A100 80GB PCIe": "a100_pcie_80gb", "Tesla T4": "t4",
        "Tesla V100-SXM2-16GB": "v100_sxm_16gb", "NVIDIA GH200 480GB": "gh200", "NVIDIA L40S": "l40s",
        "NVIDIA L40": "l40", "NVIDIA L4": "l4", "AMD Instinct MI300X": "mi300x", "NVIDIA B200": "b200_sxm",
        "NVIDIA GeForce RTX 4090": "rtx_4090", "NVIDIA H20": "h20", "NVIDIA A10": "a10", "NVIDIA GB200": "gb200",
    }.items():  # fmt: skip
        assert name_of(title) == name
    for title in ("NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA A100-SXM4-40GB MIG 1g.5gb", "NVIDIA H200 NVL", "x"):
        assert name_of(title) is None
    told = subprocess.run([program, "gpus", "--json"], capture_output=True, text=True, check=True).stdout
    assert all(f'"{name}"' in told for _, name in NAMES)
    assert spec_of("NVIDIA Odd-One 3g", "h100_sxm", 60, 40 << 30) == {
        "base": "h100_sxm", "name": "nvidia_odd_one_3g", "sms": 60, "memory_gib": 40.0,
    }  # fmt: skip


def test_a_program_that_dies_is_replaced_by_a_roofline(tmp_path: Path, program: Path) -> None:
    asked = ByProgram(program, "h200_sxm")
    request = {"op": "gemm", "dtype": "bf16", "m": 64, "n": 64, "k": 64}
    assert asked.ask([request])[0] is not None
    assert asked.ask([{"op": "gemm", "dtype": "bf16", "m": -1, "n": 64, "k": 64}]) == [None]
    assert asked._process is not None
    asked._process.kill()
    asked._process.wait()
    assert asked.ask([request, request])[1] is not None and asked.name == "roofline"
    asked.close()
    broken = tmp_path / "foretell"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    assert open_forecaster(broken, "h200_sxm", None).name == "roofline"
    assert open_forecaster(tmp_path, "h200_sxm", None).name == "roofline"


class Terminal:
    def __init__(self) -> None:
        self.text = ""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> None:
        self.text += text

    def flush(self) -> None: ...


def test_a_bar_on_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    terminal = Terminal()
    bar = Bar(300.0, terminal)  # type: ignore[arg-type]
    bar(150.0, 1234, "gemm.bf16.model")
    bar(150.1, 1235, "gemm.bf16.model")  # too soon to be drawn again
    assert terminal.text.count("\r") == 1
    assert "2:30 of 5:00  1234 points  gemm.bf16.model" in terminal.text and "###" in terminal.text
    bar.close()
    assert terminal.text.endswith("\r\x1b[K")


def exchanged(seconds: float) -> Iterator[dict[str, Any]]:
    for index in range(8):
        request = {"task": "collective", "op": "all_reduce", "bytes": 1024 << index, "ranks": 2}
        yield {"id": f"collectives#{index}", "request": request, "ms": 0.01, "spread": 0.0, "repeats": 5}


def test_collectives_come_halfway(tmp_path: Path, alone: None, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.jsonl"
    monkeypatch.setattr(command, "_exchanges", lambda *_: exchanged)
    assert run(path, 0.5) == 0
    at = [p["at_s"] for p in points(path) if p["request"].get("task") == "collective"]
    assert len(at) == 8 and all(14.0 < t < 17.0 for t in at)
    run(path, 0.6, resume=path)  # a file with collectives is read again
    assert run(tmp_path / "c.jsonl", 0.5, families=("collectives",)) == 0
    assert all(p["request"].get("task") == "collective" for p in points(tmp_path / "c.jsonl"))


# --- the host


def test_a_host_file_says_how_this_one_compares(tmp_path: Path, alone: None) -> None:
    path = tmp_path / "mine.jsonl"
    assert run(path, 0.02, Behaviour(host=0.8)) == 0
    said = json.loads((tmp_path / "mine.host.json").read_text())
    assert said["base"] == "h200_vm" and said["slowdown"] == pytest.approx(0.8)
    assert said["python"]["loop_us"] == pytest.approx(0.8 * host.LOOPS_US["add"], rel=1e-3)


def test_one_odd_operator_does_not_make_a_slow_host() -> None:
    odd = {**host.LOOPS_US, "sdpa": 40 * host.LOOPS_US["sdpa"]}
    assert host.slowdown_of(odd) == pytest.approx(1.0)
    few = dict(list(host.LOOPS_US.items())[: host.LEAST_OPERATORS - 1])
    assert host.slowdown_of(few) is None and host.describe(few, "mine", "", "") is None


def test_the_loops_are_those_of_the_measurements() -> None:
    rows = json.loads((ROOT / "data/measurements/h200/overhead.json").read_text())
    measured = {r["op"]: r["cpu_us"] for r in rows if r["what"] == "eager_op" and not r["grad"]}
    assert host.LOOPS_US == {name: pytest.approx(us, abs=0.006) for name, us in measured.items()}
