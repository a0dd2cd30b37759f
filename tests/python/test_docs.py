"""docs/python.md: every Python block runs, one after the other, and names only what exists."""

from __future__ import annotations

import re
from pathlib import Path

import foretell
import pytest
import torch
from conftest import ROOT

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
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.S)
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


def test_functions_are_listed() -> None:
    listed = set(re.findall(r"^\| `(\w+)\(", PAGE, re.M)) | {"models"}
    functions = {name for name in (*foretell.__all__, "map") if callable(getattr(foretell, name)) and name.islower()}
    assert listed == functions
