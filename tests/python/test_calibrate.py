"""`foretell calibrate` on a simulated device: choosing, recording, resuming, interrupting, running out of memory."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import statistics
from calibrating import DTYPES, alone, family, lines, points, program, run

from foretell.calibrate.cell import kind_of, shape_of
from foretell.calibrate.cells import FAMILIES, all_cells, chosen_cells
from foretell.calibrate.chooser import Chooser
from foretell.calibrate.errors import CalibrateError
from foretell.calibrate.forecaster import ByProgram, ByRoofline
from foretell.calibrate.neighbours import Neighbours, place_of
from foretell.calibrate.sequence import Spread, fraction_of
from foretell.calibrate.work import Roofline, footprint_of, work_of

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
        middle = statistics.median(ratios)
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
