"""Every Python block of every page runs; those of docs/python.md one after the other, and it names only what exists."""

from __future__ import annotations

import re
from pathlib import Path

import foretell
import pytest
import torch
from conftest import ROOT

BLOCK = re.compile(r"```python\n(.*?)```", re.S)
PAGES = ["README.md", "docs/profiler.md", "docs/pytorch.md", "python/README.md"]
PAGE = (ROOT / "docs" / "python.md").read_text()


class MyModel(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 32, 7, stride=4)
        self.head = torch.nn.Linear(32, 1000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.stem(x)).mean((2, 3)))


def test_blocks_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import transformers

    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall(PAGE)
    assert len(blocks) >= 4
    config = transformers.GPT2Config(n_layer=1, n_embd=64, n_head=2, vocab_size=256)
    with torch.device("meta"):
        module = transformers.GPT2LMHeadModel(config)
        tokens = torch.zeros(2, 16, dtype=torch.long)

    def model(x: torch.Tensor) -> object:
        return module(input_ids=x, labels=x)

    names: dict[str, object] = {"MyModel": MyModel}
    for block in blocks:
        if "foretell.record" in block:
            names.update(model=model, x=tokens, optimizer=torch.optim.AdamW(module.parameters()))
        exec(compile(block, "docs/python.md", "exec"), names)
    assert (tmp_path / "step.json.gz").stat().st_size > 1000


class Tokens(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(256, 64)
        self.head = torch.nn.Linear(64, 256)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.table(tokens)))


def test_no_page_is_forgotten() -> None:
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("*/README.md")]
    names = {path.relative_to(ROOT).as_posix() for path in found if BLOCK.search(path.read_text(encoding="utf-8"))}
    assert names == {*PAGES, "docs/python.md"}


@pytest.mark.parametrize("page", PAGES)
def test_blocks_of_other_pages_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what a reader would have: a model, its inputs, a loader and a step."""
    import transformers

    monkeypatch.chdir(tmp_path)
    with torch.device("meta"):
        config = transformers.GPT2Config(n_layer=1, n_embd=64, n_head=2, vocab_size=256)
        model = transformers.GPT2LMHeadModel(config)
        tokens = torch.zeros(2, 16, dtype=torch.long)
    names: dict[str, object] = {"torch": torch, "foretell": foretell, "model": model, "inputs": {"input_ids": tokens, "labels": tokens}}
    if page == "docs/pytorch.md":
        names.update(MyModel=Tokens, inputs={"tokens": tokens})
    names.update(my_module=MyModel(), example_input=torch.zeros(2, 3, 64, 64))
    names.update(loader=[torch.ones(4, 4)] * 7, train=lambda batch: batch @ batch)
    for block in BLOCK.findall((ROOT / page).read_text(encoding="utf-8")):
        exec(compile(block, page, "exec"), names)
    if page == "docs/profiler.md":
        assert (tmp_path / "run.json.gz").stat().st_size > 100


def test_functions_are_listed() -> None:
    listed = set(re.findall(r"^\| `(\w+)\(", PAGE, re.M)) | {"models"}
    functions = {name for name in (*foretell.__all__, "map") if callable(getattr(foretell, name)) and name.islower()}
    assert listed == functions


def test_functions_have_examples() -> None:
    """--doctest-modules runs them."""
    functions = [name for name in (*foretell.__all__, "map") if name.islower() and callable(getattr(foretell, name))]
    assert len(functions) > 20
    assert [name for name in functions if ">>> " not in (getattr(foretell, name).__doc__ or "")] == []
