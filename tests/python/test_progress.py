"""How far foretell.map is: tqdm's bar where there is tqdm, a line elsewhere, nothing where nobody looks."""

from __future__ import annotations

import io
import sys
from types import ModuleType
from typing import Any

import foretell
import pytest
from foretell.mapping import progress

ASKED = [{"task": "kernel", "op": "gemm", "m": 1 + i, "n": 64, "k": 64, "gpu": "h200_sxm"} for i in range(300)]


class Terminal(io.StringIO):
    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


def shown(monkeypatch: pytest.MonkeyPatch, terminal: bool, **keys: Any) -> str:
    """What stderr gets of a run whose first answers come late."""
    monkeypatch.setattr(progress, "QUIET_SECONDS", 0.0)
    stderr = Terminal(terminal)
    monkeypatch.setattr(sys, "stderr", stderr)
    assert len(list(foretell.map(ASKED, chunk=50, **keys))) == len(ASKED)
    return stderr.getvalue()


def test_a_bar_of_tqdm_counts_all_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tqdm")
    said = shown(monkeypatch, terminal=True)
    assert "300" in said and "answers" in said, said
    assert shown(monkeypatch, terminal=True, progress=False) == ""


def test_a_line_where_there_is_no_tqdm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    said = shown(monkeypatch, terminal=True)
    assert said.startswith("\r50 answered, ") and said.endswith(" a second\n"), said
    assert said.rsplit("\r", 1)[1].startswith("300 answered, "), said


def test_nothing_where_nobody_looks_and_a_bar_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    assert shown(monkeypatch, terminal=False) == ""
    made: list[Bar] = []

    class Bar:
        """The notebook's own, as tqdm.auto chooses it."""

        def __init__(self, **keys: Any) -> None:
            self.count, self.closed = 0, False
            made.append(self)

        def update(self, count: int) -> None:
            self.count += count

        def close(self) -> None:
            self.closed = True

    auto = ModuleType("tqdm.auto")
    monkeypatch.setattr(auto, "tqdm", Bar, raising=False)
    monkeypatch.setitem(sys.modules, "tqdm.auto", auto)
    monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
    assert shown(monkeypatch, terminal=False) == ""
    assert [(bar.count, bar.closed) for bar in made] == [(len(ASKED), True)]
