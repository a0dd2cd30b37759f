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
    assert f"| timm | {len(rows)} | {len(rows)} | 0 | 0 | 0 |" in sweep.table(rows)


def test_what_cannot_be_exported_is_said_in_a_sentence(sweep: Any) -> None:
    import torch

    class Looks(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x if x.sum() > 0 else -x

    row = sweep.export_one(lambda: (Looks(), torch.zeros(2, 2)), "forward")
    assert row["result"] == "refused" and row["code"] == "data_dependent" and "\n" not in row["why"]
    row = sweep.export_one(lambda: (_ for _ in ()).throw(ValueError("no such\nmodel")), "forward")
    assert row == {"result": "not built", "why": "ValueError: no such"}
