"""Modules as users write them (user_modules.py): each is exported and read for training and inference, or refused in a sentence."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from user_modules import MODULES, REFUSED

import foretell
from foretell.export import ExportError, export


def total(out: Any) -> torch.Tensor:
    found = [t for t in torch.utils._pytree.tree_leaves(out) if isinstance(t, torch.Tensor) and t.is_floating_point()]
    return torch.stack([t.float().mean() for t in found]).sum()


@pytest.mark.parametrize("task", ["forward", "train"])
@pytest.mark.parametrize("name", MODULES)
def test_is_exported(name: str, task: str) -> None:
    model, inputs = MODULES[name]()
    graph = export(model, inputs, task=task, loss=total)
    step = foretell.forecast(graph, gpu="h200_sxm", task=task, dtype="bf16", execution="eager")
    assert step["busy_ms"] > 0 and step["memory"]["peak_bytes"] > 0


@pytest.mark.parametrize("name", REFUSED)
def test_is_refused(name: str) -> None:
    code, make = REFUSED[name]
    model, inputs = make()
    with pytest.raises(ExportError) as error:
        export(model, inputs, task="forward")
    assert error.value.code == code
    assert error.value.message and "\n" not in error.value.message.strip()
