"""scripts/graft: families of one predictor put into another."""

from __future__ import annotations

import gzip
import json
import pathlib
import subprocess
import sys

from conftest import ROOT, load

SHIPPED = ROOT / "data" / "predictors" / "default.ftp"


def graft(*files: pathlib.Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(ROOT / "scripts" / "graft"), *map(str, files)], capture_output=True, text=True, check=False)


def test_a_predictor_grafted_onto_itself_is_as_good(tmp_path: pathlib.Path) -> None:
    """What is the same in both stays; doing it again must change nothing at all."""
    once, twice = tmp_path / "once.ftp", tmp_path / "twice.ftp"
    assert graft(SHIPPED, SHIPPED, once).returncode == 0
    assert graft(once, SHIPPED, twice).returncode == 0
    assert once.read_bytes() == twice.read_bytes()
    assert once.stat().st_size == SHIPPED.stat().st_size


def test_equal_trees_stay_and_bring_their_errors_alone(tmp_path: pathlib.Path) -> None:
    """A family that comes out as shipped changes nothing but its record, each line where it was."""
    module = load(ROOT / "scripts" / "graft")
    data = SHIPPED.read_bytes()
    head, body = bytearray(data[:module.HEADER.size]), data[module.HEADER.size:]
    other = bytearray(body.replace(b'"median":0.', b'"median":9.'))
    head[16:24] = module.checksum(bytes(other)).to_bytes(8, "little")
    (tmp_path / "other.ftp").write_bytes(bytes(head) + other)
    done = graft(SHIPPED, tmp_path / "other.ftp", tmp_path / "out.ftp")
    assert done.returncode == 0 and "nothing replaced" in done.stderr
    old, new = module.Predictor(str(SHIPPED)), module.Predictor(str(tmp_path / "out.ftp"))
    assert new.experts == old.experts and new.leaves == old.leaves and new.tests == old.tests
    assert new.error_lines() == [line.replace('"median":0.', '"median":9.') for line in old.error_lines()]
    other[module.LEAVES - 1] ^= 1  # a tree of one cell: that cell moves, and is the other file's
    head[16:24] = module.checksum(bytes(other)).to_bytes(8, "little")
    (tmp_path / "other.ftp").write_bytes(bytes(head) + other)
    done = graft(SHIPPED, tmp_path / "other.ftp", tmp_path / "out.ftp")
    theirs, new = module.Predictor(str(tmp_path / "other.ftp")), module.Predictor(str(tmp_path / "out.ftp"))
    changed = [cell for cell in {module.cell_of(e) for e in old.experts} if module.content(old, cell) != module.content(new, cell)]
    assert done.returncode == 0 and len(changed) == 1 and "/".join(changed[0]) in done.stderr
    assert module.content(new, changed[0]) == module.content(theirs, changed[0]) and len(new.experts) == len(old.experts)


def test_a_damaged_file_is_refused(tmp_path: pathlib.Path) -> None:
    bad = tmp_path / "bad.ftp"
    data = bytearray(SHIPPED.read_bytes())
    data[1000] ^= 1
    bad.write_bytes(data)
    done = graft(SHIPPED, bad, tmp_path / "out.ftp")
    assert done.returncode != 0 and "damaged" in done.stderr and not (tmp_path / "out.ftp").exists()
    assert graft(SHIPPED).returncode != 0


def test_refit_compares_by_family_and_variant(tmp_path: pathlib.Path) -> None:
    """The shipped file against itself is the same; one byte of one tree changed is seen in its family alone."""
    refit = [sys.executable, str(ROOT / "scripts" / "refit"), "--fitted"]
    same = subprocess.run([*refit, str(SHIPPED)], capture_output=True, text=True, check=False)
    assert same.returncode == 0 and "gemm_tensor: the same bytes" in same.stdout and "differ" not in same.stdout
    module = load(ROOT / "scripts" / "graft")
    shipped = module.Predictor(str(SHIPPED))
    head, data = module.HEADER, bytearray(SHIPPED.read_bytes())
    data[shipped.header_bytes + module.LEAVES - 1] ^= 1
    fields = list(head.unpack_from(data))
    fields[3] = module.checksum(bytes(data[shipped.header_bytes:]))
    head.pack_into(data, 0, *fields)
    other = tmp_path / "other.ftp"
    other.write_bytes(data)
    told = subprocess.run([*refit, str(other)], capture_output=True, text=True, check=False)
    assert told.returncode == 1 and told.stdout.count("differ") == 1, told.stdout
    assert subprocess.run([*refit[:2]], capture_output=True, text=True, check=False).returncode == 2


def test_what_our_own_rows_alone_are_fitted_to_comes_out_as_shipped(tmp_path: pathlib.Path) -> None:
    """`scripts/refit --family F`: the shipped bytes again, of parts that take seconds."""
    out = tmp_path / "refit.ftp"
    parts = ["optimizer", "conv/depthwise_forward"]
    line = [sys.executable, str(ROOT / "scripts" / "refit"), "-o", str(out), *(word for part in parts for word in ("--family", part))]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "optimizer: the same bytes" in done.stdout and "conv: the same bytes" in done.stdout and "differ" not in done.stdout


def test_points_are_those_of_the_calibration() -> None:
    """The tables that fits read beside the calibration hold its products, and none that it holds out."""
    module = load(ROOT / "python" / "measure" / "points.py")
    lines = module.points(module.H200)
    assert sum(line["held_out"] for line in lines) > 6000
    for op, name in module.FILES.items():
        assert gzip.decompress((module.H200 / name).read_bytes()) == gzip.decompress(module.table(lines, op)), name


def test_profiled_products_are_corrected_and_none_is_held_out() -> None:
    """The table that fits read is what the script makes of the profiler's; shapes that are held out, or timed by a graph, are not there."""
    module = load(ROOT / "python" / "measure" / "products.py")
    text = gzip.decompress((module.H200 / module.FILE).read_bytes())
    assert text == gzip.decompress(module.table(module.H200))
    rows, graphs = module.read(module.H200, module.FILE), {module.shape(row) for row in module.read(module.H200, "gemm.csv.gz")}
    assert len(rows) > 100_000 and not any(module.held_out(row) or module.shape(row) in graphs for row in rows)
    held = [row for row in module.read(module.H200, "gemm.csv.gz") if module.held_out(row)]
    assert 0.08 < len(held) / len(module.read(module.H200, "gemm.csv.gz")) < 0.13


def test_the_table_of_families_is_the_file_s_own_record() -> None:
    """docs/accuracy/fits.md says of all twelve families how they were fitted, with the errors that the shipped file records."""
    module = load(ROOT / "scripts" / "graft")
    shipped = module.Predictor(str(SHIPPED))
    record = [json.loads(line) for line in shipped.error_lines()]
    text = (ROOT / "docs" / "accuracy" / "fits.md").read_text().split("## The predictor, fitted again")[1].split("## ")[0]
    told = {cells[0]: cells for line in text.splitlines() if line.startswith("| ") for cells in [[c.strip() for c in line.strip("| ").split(" | ")]] if len(cells) == 4}
    families = {module.cell_of(expert)[0].lstrip("~") for expert in shipped.experts}
    assert families == set(told) - {"family"} and len(families) == 12
    for family in families:
        assert "shipped" in told[family][1] or told[family][1] == "the same bytes", family
        means = [line["mean"] for line in record if line["family"] == family and line["kind"] == "known"]
        assert abs(float(told[family][2].split(" → ")[-1]) - 100 * sum(means) / len(means)) < 0.06, family
