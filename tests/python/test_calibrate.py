"""`foretell calibrate` on a simulated device: choosing, recording, resuming, interrupting, running out of memory."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from foretell.calibrate import command, host, records
from foretell.calibrate.catalogue import NAMES, name_of, spec_of
from foretell.calibrate.cell import kind_of, shape_of
from foretell.calibrate.cells import FAMILIES, all_cells, chosen_cells
from foretell.calibrate.chooser import Chooser
from foretell.calibrate.errors import CalibrateError
from foretell.calibrate.forecaster import ByProgram, ByRoofline, find_program, open_forecaster
from foretell.calibrate.neighbours import Neighbours, place_of
from foretell.calibrate.noise import Quiet
from foretell.calibrate.options import Options, parse
from foretell.calibrate.progress import Bar
from foretell.calibrate.sequence import Spread, fraction_of
from foretell.calibrate.simulated import Behaviour, Simulated
from foretell.calibrate.work import Roofline, footprint_of, work_of

ROOT = Path(__file__).resolve().parents[2]
DTYPES = ("bf16", "fp16", "fp32", "tf32", "fp8")


@pytest.fixture(scope="module")
def program() -> Path:
    found = find_program()
    assert found is not None, "build the program first (make), or name it in FORETELL_PROGRAM"
    return found


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def points(path: Path) -> list[dict[str, Any]]:
    return [line for line in lines(path) if "request" in line and line["id"] != "eager"]


def family(point: dict[str, Any]) -> str:
    return point["id"].partition(".")[0]


def run(path: Path, minutes: float, behaviour: Behaviour | None = None, **more: Any) -> int:
    """One run on a simulated H200 by rooflines, which needs no program."""
    device = Simulated("h200_sxm", None, behaviour=behaviour or Behaviour())
    options = Options(minutes=minutes, output=None if more.get("resume") else path, fit=False, **more)
    return command.calibrate(options, device)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No program to ask."""
    monkeypatch.setattr(command, "find_program", lambda: None)


# --- what is drawn


def test_every_draw_can_be_forecast(program: Path) -> None:
    """A request with a wrong key would be refused by the fit, and with it the whole file."""
    asked = ByProgram(program, "h200_sxm")
    for cell in all_cells("bf16") + all_cells("fp16"):
        spread = Spread(cell.name, 1, cell.dimensions)
        drawn = [r for r in (cell.draw(spread(i), i) for i in range(120)) if r]
        assert len(drawn) > 60, cell.name
        assert all(forecast is not None for forecast in asked.ask(drawn)), cell.name
        assert all(request["dtype"] == cell.dtype for request in drawn)
    assert asked.name == "foretell"
    asked.close()


def test_rough_times_are_within_reach_of_forecasts(program: Path) -> None:
    """The roofline that plans without a program must know a microsecond from a second."""
    asked, roofline = ByProgram(program, "h200_sxm"), Roofline(700.0, 4000.0)
    for cell in all_cells():
        spread = Spread(cell.name, 2, cell.dimensions)
        drawn = [r for r in (cell.draw(spread(i), i) for i in range(60)) if r]
        ratios = [roofline.ms(r) / f.ms for r, f in zip(drawn, asked.ask(drawn), strict=True) if f]
        middle = sorted(ratios)[len(ratios) // 2]
        assert 0.2 < middle < 3.0, (cell.name, middle)
        assert all(footprint_of(r) > 0 and work_of(r)[1] > 0 for r in drawn)
    asked.close()


def test_the_sequence_fills_the_cube() -> None:
    spread = Spread("x", 0, 2)
    for first in (0, 1000):  # any stretch of it
        boxes = Counter((int(4 * u), int(4 * v)) for u, v in (spread(i) for i in range(first, first + 160)))
        assert len(boxes) == 16 and max(boxes.values()) <= 2 * min(boxes.values())
    assert Spread("x", 1, 2)(0) != spread(0)
    assert 0.0 <= fraction_of("") < 1.0


def test_backward_products_of_a_layer_share_its_shape() -> None:
    forward = {"op": "gemm", "dtype": "bf16", "m": 512, "n": 4096, "k": 1024, "layout": "nt"}
    backward = {"op": "gemm", "dtype": "fp16", "m": 4096, "n": 1024, "k": 512, "layout": "tn"}
    assert shape_of(forward) == shape_of(backward)
    assert kind_of(forward) != kind_of(backward)


def test_families_and_dtypes_can_be_chosen() -> None:
    assert {cell.family for cell in chosen_cells(DTYPES, (), ())} == set(FAMILIES) - {"collectives"}
    assert {cell.family for cell in chosen_cells(DTYPES, ("conv", "bmm"), ())} == {"conv", "bmm"}
    assert {cell.dtype for cell in chosen_cells(DTYPES, (), ("fp16",))} == {"fp16"}
    assert any("decode" in cell.name for cell in chosen_cells(DTYPES, ("gemm",), ("fp16",)))  # it is the main one then
    with pytest.raises(CalibrateError, match="unknown \"gem\"") as caught:
        chosen_cells(DTYPES, ("gem",), ())
    assert caught.value.status == 2
    with pytest.raises(CalibrateError, match="none of fp8"):
        chosen_cells(("fp32",), (), ("fp8",))
    with pytest.raises(CalibrateError, match="no kernel is left"):
        chosen_cells(DTYPES, ("moe",), ("fp32",))


# --- a run


def test_any_cut_off_is_spread_over_families(tmp_path: Path, alone: None) -> None:
    path = tmp_path / "m.jsonl"
    assert run(path, 1.0) == 0
    measured = points(path)
    for until in (10.0, 30.0, 61.0):
        so_far = [p for p in measured if p["at_s"] <= until]
        share = Counter(family(p) for p in so_far)
        assert set(share) == set(FAMILIES) - {"collectives"}, until
        bf16 = [p for p in so_far if p["request"]["op"] == "gemm" and p["request"]["dtype"] == "bf16"]
        assert 0.2 < len(bf16) / len(so_far) < 0.6
        assert {p["request"]["layout"] for p in bf16} == {"nt", "nn", "tn"}
        assert min(p["request"]["m"] for p in bf16) <= 4
        assert any(p["request"]["n"] % 2 for p in bf16)
        assert 0.1 < sum(p["held_out"] for p in so_far) / len(so_far) < 0.2
    assert len(measured) >= 12 * 60
    operators = Counter(kind_of(p["request"]) for p in measured)
    assert sum(family(p) == "attention" for p in measured) >= 40  # although a new kernel takes a second to build
    for kind in ("softmax fwd bf16", "layernorm bwd bf16", "cross_entropy bwd bf16", "embedding fwd bf16"):
        assert operators[kind] >= 4
    assert len({json.dumps(p["request"], sort_keys=True) for p in measured}) == len(measured)


def test_the_file_is_as_documented(tmp_path: Path, alone: None) -> None:
    path = tmp_path / "m.jsonl"
    run(path, 0.2)
    header, *rest = lines(path)
    assert header["foretell_calibration"] == 1 and header["gpu"] == "h200_sxm" and header["simulated"]
    allowed = {"request", "ms", "at_s", "held_out", "id", "spread", "repeats", "clock_mhz", "power_w", "temperature_c"}
    before = 0.0
    for line in rest:
        assert set(line) <= allowed or set(line) == {"note", "at_s"}
        assert line["at_s"] >= before
        before = line["at_s"]
        if "ms" in line:
            assert line["ms"] > 0
    eager = [line for line in rest if line.get("id") == "eager"]
    assert eager and all(line["request"]["timing"] == "op" and not line["held_out"] for line in eager)
    assert 11.0 < before < 13.5


def test_what_is_held_out_is_never_fitted(tmp_path: Path, alone: None) -> None:
    path = tmp_path / "m.jsonl"
    run(path, 0.8)
    held = {shape_of(p["request"]) for p in points(path) if p["held_out"]}
    fitted = {shape_of(p["request"]) for p in points(path) if not p["held_out"]}
    assert held and not held & fitted
    assert not any("~" in p["id"] for p in points(path) if p["held_out"])  # only from the even sequence
    nobody = tmp_path / "n.jsonl"
    run(nobody, 0.2, held_out=0.0)
    assert not any(p["held_out"] for p in points(nobody))


def test_another_seed_measures_other_points(tmp_path: Path, alone: None) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        run(tmp_path / name, 0.3, seed=seed)
    a, b, c = ({json.dumps(p["request"]) for p in points(tmp_path / name)} for name in "abc")
    assert a == b
    assert len(a & c) < len(a) / 4


def test_long_kernels_do_not_eat_the_time(tmp_path: Path, alone: None) -> None:
    path = tmp_path / "m.jsonl"
    run(path, 0.5)
    times = [p["ms"] for p in points(path)]
    assert max(times) < 60.0
    assert sum(ms > 12.0 for ms in times) < 0.03 * len(times)


def test_more_points_where_forecasts_are_wrong() -> None:
    """A forecaster that is right everywhere but for odd columns: the points picked by doubt go there."""
    cells = [cell for cell in all_cells() if cell.name == "gemm.bf16.any"]

    def odd(request: dict[str, Any]) -> bool:
        return request["n"] % 8 != 0 and request["k"] > 512

    chooser = Chooser(cells, ByRoofline(), held_out=0.0)
    drawn: dict[bool, list[bool]] = {False: [], True: []}
    for count in range(600):
        point = chooser.next()
        assert point is not None
        wrong = (0.5 + fraction_of(point.id)) if odd(point.request) else 0.0
        chooser.measured(point, point.forecast.ms * math.exp(wrong), 0.02)
        if count > 200:
            drawn["~" in point.id].append(odd(point.request))
    even, sharp = (sum(drawn[key]) / len(drawn[key]) for key in (False, True))
    assert len(drawn[True]) > 0.3 * len(drawn[False])
    assert sharp > even + 0.15


def test_cells_that_keep_missing_get_more_time() -> None:
    cells = [replace(cell, weight=1.0) for cell in all_cells() if cell.name in ("gemm.bf16.any", "elementwise.bf16")]
    chooser = Chooser(cells, ByRoofline(), held_out=0.0)
    for _ in range(2500):
        point = chooser.next()
        assert point is not None
        noise = 3.0 * fraction_of(point.id) if point.cell.family == "gemm" else 0.0
        chooser.measured(point, point.forecast.ms * math.exp(noise), 0.05)
    counts = chooser.counts()
    assert counts["gemm.bf16.any"][1] > 1.3 * counts["elementwise.bf16"][1]


def test_neighbours_know_what_they_know() -> None:
    known = Neighbours()
    base = {"op": "gemm", "dtype": "bf16", "m": 1024, "n": 1024, "k": 1024, "layout": "nt"}
    assert known.doubt(place_of(base)) == pytest.approx(0.3)
    for m in (512, 1024, 2048, 4096):
        known.add(place_of({**base, "m": m}), 0.1)
    near, far = known.doubt(place_of({**base, "m": 1536})), known.doubt(place_of({**base, "m": 16, "n": 64}))
    assert near < far
    known.add(place_of({**base, "m": 1500}), 0.9)
    assert known.doubt(place_of({**base, "m": 1536})) > near


def test_an_exhausted_cell_ends_quietly() -> None:
    cell = replace(all_cells()[0], draw=lambda u, index: None)
    assert Chooser([cell], ByRoofline()).next() is None


# --- what goes wrong


def test_out_of_memory_skips_the_point(tmp_path: Path, alone: None, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.jsonl"
    assert run(path, 0.5, Behaviour(out_of_memory_above=2e8)) == 0
    notes = [line["note"] for line in lines(path) if "note" in line and line["note"].startswith("skipped")]
    assert notes and all("out of memory" in note for note in notes)
    assert all(footprint_of(p["request"]) <= 2e8 for p in points(path))
    assert "out of memory" in capsys.readouterr().err


def test_points_larger_than_the_memory_are_not_tried(tmp_path: Path, alone: None) -> None:
    path = tmp_path / "m.jsonl"
    run(path, 0.5, Behaviour(memory_bytes=8e9))
    assert max(footprint_of(p["request"]) for p in points(path)) < 0.35 * 8e9


def test_what_the_gpu_lacks_is_given_up(tmp_path: Path, alone: None, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.jsonl"
    assert run(path, 0.6, Behaviour(lacks=frozenset({"moe bf16", "rmsnorm bwd bf16"}))) == 0
    skipped = [line["note"] for line in lines(path) if line.get("note", "").startswith("skipped")]
    tried = Counter(note.replace("~", "#").split("#")[0] for note in skipped)
    assert tried == {"skipped moe.bf16": 3, "skipped rowwise.bf16": 3}
    assert "rmsnorm bwd bf16: not measured any more" in capsys.readouterr().err
    assert any(p["request"]["op"] == "rmsnorm" and p["request"]["pass"] == "fwd" for p in points(path))


def test_a_noisy_machine_is_said(tmp_path: Path, alone: None, capsys: pytest.CaptureFixture[str]) -> None:
    quiet, noisy = tmp_path / "q.jsonl", tmp_path / "n.jsonl"
    run(quiet, 0.5)
    assert "noisy:" not in capsys.readouterr().err
    run(noisy, 0.5, Behaviour(reference_noise=0.15))
    assert "noisy: reference kernels scatter" in capsys.readouterr().err
    assert any(line.get("note", "").startswith("noisy") for line in lines(noisy))
    assert not any(line.get("note", "").startswith("noisy") for line in lines(quiet))


def test_held_back_clocks_and_other_processes_are_said(
    tmp_path: Path, alone: None, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path / "m.jsonl", 0.1, Behaviour(held_back="heat (hardware)", others="python3"))
    said = capsys.readouterr().err
    assert said.count("heat (hardware)") == 1 and said.count("others use the GPU: python3") == 1


def test_a_drifting_reference() -> None:
    quiet = Quiet()
    assert not any(quiet.add({"copy": 1.0 + 0.001 * i}) for i in range(8))
    assert not quiet.noisy
    assert "usually" in (quiet.add({"copy": 1.2}) or "")


def test_a_lost_gpu_keeps_what_was_measured(tmp_path: Path, alone: None, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.jsonl"
    assert run(path, 1.0, Behaviour(lost_after=50)) == 3
    assert len(points(path)) == 50
    assert "the GPU was lost" in capsys.readouterr().err
    assert run(path, 0.3, resume=path) == 0
    assert len(points(path)) > 300


# --- going on


def test_resume_measures_nothing_twice_and_counts_the_time(tmp_path: Path, alone: None) -> None:
    path = tmp_path / "m.jsonl"
    run(path, 0.5)
    first = points(path)
    run(path, 1.0, resume=path)
    both = points(path)
    assert both[: len(first)] == first
    assert len({json.dumps(p["request"], sort_keys=True) for p in both}) == len(both)
    assert 58.0 < both[-1]["at_s"] < 61.5
    assert both[len(first)]["at_s"] > first[-1]["at_s"]
    assert sum(line.get("id") == "eager" for line in lines(path)) == 2  # the gap is measured once
    assert sum("foretell_calibration" in line for line in lines(path)) == 2
    # In two parts or in one: the same families get the same share.
    whole = tmp_path / "w.jsonl"
    run(whole, 1.0)
    for name, count in Counter(family(p) for p in points(whole)).items():
        parted = sum(family(p) == name for p in both)
        assert parted == pytest.approx(count, rel=0.35, abs=8), name


def test_resume_does_not_try_again_what_failed(tmp_path: Path, alone: None) -> None:
    path = tmp_path / "m.jsonl"
    run(path, 0.4, Behaviour(out_of_memory_above=2e8))
    skipped = [row.request for row in records.read(path).rows if row.ms is None]
    assert skipped
    run(path, 0.8, resume=path)
    measured = [p["request"] for p in points(path)]
    assert not any(request in measured for request in skipped)


def test_resume_with_nothing_left(tmp_path: Path, alone: None, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.jsonl"
    run(path, 0.2)
    before = path.read_bytes()
    assert run(path, 0.1, resume=path) == 0
    assert path.read_bytes() == before
    assert "already" in capsys.readouterr().err


def test_a_cut_off_line_is_dropped(tmp_path: Path, alone: None) -> None:
    path = tmp_path / "m.jsonl"
    run(path, 0.2)
    whole = path.read_bytes()
    for cut in (7, 1):  # inside the last line; its newline alone
        path.write_bytes(whole[:-cut])
        run(path, 0.3, resume=path)
        assert all(isinstance(line, dict) for line in lines(path))
        assert len({json.dumps(p["request"], sort_keys=True) for p in points(path)}) == len(points(path))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ('{"request": {"op": "gemm"}, "ms": 1}\n', "first line"),
        ('{"foretell_calibration": 2, "gpu": "h200_sxm"}\n', "format 2"),
        ('{"foretell_calibration": 1, "gpu": "l4"}\n', "measured on l4, this is h200_sxm"),
        ('{"foretell_calibration": 1, "gpu": "h200_sxm"}\nnonsense\n{"note": "", "at_s": 1}\n', ":2: not JSON"),
        ('{"foretell_calibration": 1, "gpu": "h200_sxm"}\n[1]\n', ":2: an object"),
        ('{"foretell_calibration": 1, "gpu": "h200_sxm"}\n{"request": {}, "ms": 1}\n', "an op"),
        ('{"foretell_calibration": 1, "gpu": "h200_sxm"}\n{"request": {"op": "x"}, "ms": -1}\n', "no time"),
        ('{"foretell_calibration": 1, "gpu": "h200_sxm"}\n{"request": {"op": "x"}, "ms": NaN}\n', "no time"),
        ('{"foretell_calibration": 1, "gpu": "h200_sxm"}\n{"note": "x", "at_s": "y"}\n', "at_s"),
        ('{"foretell_calibration": 1, "gpu": "a"}\n{"foretell_calibration": 1, "gpu": "b"}\n', "two GPUs"),
    ],
)
def test_files_that_cannot_be_continued(tmp_path: Path, alone: None, text: str, said: str) -> None:
    path = tmp_path / "m.jsonl"
    path.write_text(text)
    with pytest.raises(CalibrateError, match=said) as caught:
        run(path, 1.0, resume=path)
    assert caught.value.status == 3
    assert path.read_text() == text


def test_a_missing_file_and_one_in_the_way(tmp_path: Path, alone: None) -> None:
    with pytest.raises(CalibrateError, match="No such file") as caught:
        run(tmp_path / "m.jsonl", 1.0, resume=tmp_path / "m.jsonl")
    assert caught.value.status == 3
    (tmp_path / "there").write_text("precious")
    with pytest.raises(CalibrateError, match="--resume") as caught:
        run(tmp_path / "there", 1.0)
    assert caught.value.status == 2
    assert (tmp_path / "there").read_text() == "precious"
    with pytest.raises(CalibrateError, match="No such file"):
        run(tmp_path / "no" / "folder", 1.0)


def test_an_interrupt_keeps_everything(tmp_path: Path, alone: None, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.jsonl"
    before = signal.getsignal(signal.SIGINT)  # ignored where the tests run in a shell's background

    def interrupt(count: int) -> None:
        if count == 40:
            os.kill(os.getpid(), signal.SIGINT)

    assert run(path, 5.0, Behaviour(before=interrupt)) == 130
    assert len(points(path)) == 41  # the point in hand is finished
    assert lines(path)[-1]["note"] == "interrupted"
    assert "--resume" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGINT) is before
    assert run(path, 0.5, resume=path) == 0


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
