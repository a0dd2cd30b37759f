"""Every key that docs/interface.md has for a model's forecast is a keyword of Python's, in its place."""

from __future__ import annotations

import pathlib
import re

import pytest

from foretell._request import ModelRequest, request_of

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "interface.md"
ARGUMENTS = {"task", "model", "gpu", "dtype"}  # of the functions themselves
PROGRAM = {"network"}  # the library refuses it


def keys(heading: str) -> list[str]:
    """First column of the table under this row of headings."""
    table = PAGE.read_text(encoding="utf-8").split(f"\n| {heading} | values (default first) |\n", 1)[1]
    rows = table.split("\n\n", 1)[0].splitlines()[1:]
    return [key for row in rows for key in re.findall(r"`(\w+)`", row.split("|")[1])]


def test_keys_of_a_request() -> None:
    asked = keys("key")
    assert "recompute_modules" in asked
    assert set(asked) - ARGUMENTS <= set(ModelRequest.__annotations__)


@pytest.mark.parametrize("inside", ["parallel", "cluster"])
def test_keys_of_a_layout_and_a_cluster_go_where_they_belong(inside: str) -> None:
    asked = set(keys(f"key of `{inside}`")) - PROGRAM
    assert len(asked) > 6
    assert asked <= set(ModelRequest.__annotations__)
    for key in asked:
        value = "bf16" if key.endswith("dtype") else 1
        assert request_of(task="train", **{key: value}) == {"task": "train", inside: {key: value}}
