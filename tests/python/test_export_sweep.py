"""scripts/export_sweep over timm's small test models, one of each of its building blocks: all of them are exported and read."""

from __future__ import annotations

import importlib.machinery
import importlib.util
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).resolve().parent.parent.parent / "scripts" / "export_sweep"


@pytest.fixture(scope="module")
def sweep() -> Any:
    loader = importlib.machinery.SourceFileLoader("export_sweep", str(SCRIPT))
    spec = importlib.util.spec_from_loader("export_sweep", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_small_models_are_exported(sweep: Any) -> None:
    cases = [case for case in sweep.timm_cases(False) if case[1].startswith("test_")]
    assert len(cases) >= 10
    rows = [{"library": library, "name": name, **sweep.export_one(make, "forward")} for library, name, make in cases]
    assert [(row["name"], row.get("why")) for row in rows if row["result"] != "exported"] == []
    assert f"| timm | {len(rows)} | {len(rows)} | 0 | 0 | 0 | 0 |" in sweep.table(rows)


def test_what_cannot_be_exported_is_said_in_a_sentence(sweep: Any) -> None:
    import torch

    class Looks(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x if x.sum() > 0 else -x

    row = sweep.export_one(lambda: (Looks(), torch.zeros(2, 2)), "forward")
    assert row["result"] == "refused" and row["code"] == "data_dependent" and "\n" not in row["why"]
    row = sweep.export_one(lambda: (_ for _ in ()).throw(ValueError("no such\nmodel")), "forward")
    assert row == {"result": "not built", "why": "ValueError: no such"}


def test_a_sweep_goes_on_where_it_was_stopped(
    sweep: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import torch

    tried: list[str] = []

    def cases(_: bool) -> Any:
        for name in ("a", "b", "c", "d", "e"):

            def make(name: str = name) -> Any:
                tried.append(name)
                return torch.nn.Linear(4, 4), torch.zeros(2, 4)

            yield "small", name, make

    monkeypatch.setattr(sweep, "LIBRARIES", {"small": cases})
    monkeypatch.setattr(sweep, "MADE", {})
    out = tmp_path / "rows.jsonl"

    def run(*words: str) -> int:
        monkeypatch.setattr("sys.argv", ["export_sweep", "--out", str(out), *words])
        return int(sweep.main())

    assert run("--sample", "2") == 0 and len(tried) == 2
    first = set(tried)
    assert run() == 0 and sorted(tried) == ["a", "b", "c", "d", "e"]  # none twice
    assert len(out.read_text().splitlines()) == 5 and first < set(tried)
    assert "| small | 5 | 5 | 0 | 0 | 0 | 0 |" in capsys.readouterr().out
    assert run("--library", "smal") == 2
    assert "there are small" in capsys.readouterr().err


def test_a_model_that_takes_too_long_is_let_go(sweep: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    import torch

    class Slow(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            time.sleep(5)
            return x

    monkeypatch.setattr(sweep, "MADE", {("small", "slow"): lambda: (Slow(), torch.zeros(2))})
    row = sweep.work(("small", "slow", "forward", 0.5))
    assert row["result"] == "out of time" and row["why"] == "more than 0.5 s"


def test_every_beginning_of_a_sweep_is_spread(sweep: Any) -> None:
    for count in (1, 2, 60, 1279):
        order = sweep.spread(list(range(count)))
        assert sorted(order) == list(range(count))
    first = sorted(sweep.spread(list(range(1000)))[:20])
    assert max(b - a for a, b in zip(first, first[1:], strict=False)) < 120
