"""Calibration runs that go wrong, end early or go on: what is kept, what is said, what is not measured twice."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from pathlib import Path

import pytest
from calibrating import alone, family, lines, points, run

from foretell.calibrate import records
from foretell.calibrate.errors import CalibrateError
from foretell.calibrate.noise import Quiet
from foretell.calibrate.simulated import Behaviour
from foretell.calibrate.work import footprint_of

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
        ('{"foretell_calibration": 1, "gpu": "h200_sxm"}\n{"request": {"op": "x"}, "ms": -1}\n', "not a time"),
        ('{"foretell_calibration": 1, "gpu": "h200_sxm"}\n{"request": {"op": "x"}, "ms": NaN}\n', "not a time"),
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
