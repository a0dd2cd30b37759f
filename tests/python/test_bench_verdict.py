"""What `make bench` prints is held to what is wanted of it."""
import pathlib
import subprocess
import sys

from conftest import load

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "bench_verdict"
GOOD = """speed, 2 cores: a processor of 3 GHz
opening the library, predictor and all               0.41 ms   (wanted 5)
forecasts through the library, one core            310000 /s   (wanted 200000)
batch, peak memory on 1000 lines                       44 MiB
batch, two workers against one                       1.96 times
plan: 70B on 64 H100                                 0.05 s    (wanted 0.1; 0.09 s of processor, 300 layouts, 20 forecasts)
the library against batch                            1.11 times (wanted 0.9)
"""


def test_rows_are_read_with_what_is_wanted():
    found = load(SCRIPT).rows(GOOD)
    assert found["opening the library, predictor and all"] == (0.41, "ms", 5.0)
    assert found["plan: 70B on 64 H100"] == (0.05, "s", 0.1)
    assert found["batch, peak memory on 1000 lines"] == (44.0, "MiB", None)
    assert len(found) == 6


def test_times_may_be_at_most_and_rates_at_least_what_is_wanted():
    verdict = load(SCRIPT).verdict
    assert verdict(GOOD) == ([], 4)
    for old, new in (("0.41 ms", "5.01 ms"), ("310000 /s", "199999 /s"), ("0.05 s ", "0.11 s "), ("1.11 times", "0.89 times")):
        missed, judged = verdict(GOOD.replace(old, new))
        assert len(missed) == 1 and judged == 4, missed


def test_another_version_is_a_tenth_away_at_most():
    verdict = load(SCRIPT).verdict
    assert verdict(GOOD, GOOD) == ([], 10)
    assert verdict(GOOD.replace("310000", "290000"), GOOD)[0] == []
    for old, new in (("310000", "270000"), ("0.41 ms", "0.46 ms"), ("44 MiB", "49 MiB"), ("1.96", "1.70")):
        assert len(verdict(GOOD.replace(old, new), GOOD)[0]) == 1, new
    assert "not measured" in verdict(GOOD.replace("the library against batch", "else"), GOOD)[0][0]


def test_a_miss_and_nothing_to_judge_are_failures(tmp_path):
    for text, status in ((GOOD, 0), (GOOD.replace("0.41 ms", "9 ms"), 1), ("nothing\n", 1)):
        (tmp_path / "said").write_text(text)
        done = subprocess.run([sys.executable, str(SCRIPT), str(tmp_path / "said")], capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stdout
