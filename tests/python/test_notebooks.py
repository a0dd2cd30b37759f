"""examples/notebooks: every cell runs, and none is kept with what it printed. `make release-check` runs them under Jupyter too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import ROOT

NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


def test_every_question_of_the_tutorial_has_one() -> None:
    asked = [line[3:] for line in (ROOT / "docs" / "tutorial.md").read_text().splitlines() if line.startswith("## ")]
    titles = ["".join(json.loads(path.read_text())["cells"][0]["source"]).splitlines()[0][2:] for path in NOTEBOOKS]
    assert titles == [question for question in asked if question.endswith("?")] and len(titles) == 5


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_cells_run_and_are_kept_without_output(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    notebook = json.loads(path.read_text())
    names: dict[str, object] = {}
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert code and all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    for number, cell in enumerate(code):
        exec(compile("".join(cell["source"]), f"{path.name}, cell {number}", "exec"), names)
