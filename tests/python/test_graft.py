"""scripts/graft: families of one predictor put into another."""

from __future__ import annotations

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "data" / "predictors" / "default.ftp"


def graft(*files: pathlib.Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(ROOT / "scripts" / "graft"), *map(str, files)], capture_output=True, text=True, check=False)


def test_a_predictor_grafted_onto_itself_is_as_good(tmp_path: pathlib.Path) -> None:
    """Every record moves; what it says must not change, and doing it again must change nothing at all."""
    once, twice = tmp_path / "once.ftp", tmp_path / "twice.ftp"
    assert graft(SHIPPED, SHIPPED, once).returncode == 0
    assert graft(once, SHIPPED, twice).returncode == 0
    assert once.read_bytes() == twice.read_bytes()
    assert once.stat().st_size == SHIPPED.stat().st_size


def test_a_damaged_file_is_refused(tmp_path: pathlib.Path) -> None:
    bad = tmp_path / "bad.ftp"
    data = bytearray(SHIPPED.read_bytes())
    data[1000] ^= 1
    bad.write_bytes(data)
    done = graft(SHIPPED, bad, tmp_path / "out.ftp")
    assert done.returncode != 0 and "damaged" in done.stderr and not (tmp_path / "out.ftp").exists()
    assert graft(SHIPPED).returncode != 0
