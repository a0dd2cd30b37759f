"""Every type of transformers that Foretell reads, by its defaults: parameters and arithmetic (scripts/model_types)."""

from __future__ import annotations

import csv
import json
import re
import types

import pytest

from conftest import ROOT, load
from export_models import program


def script() -> types.ModuleType:
    return load(ROOT / "scripts/model_types")


def rows() -> dict[str, dict[str, str]]:
    with (ROOT / "tests/data/transformers_types.csv").open() as file:
        return {row["model_type"]: row for row in csv.DictReader(file)}


def test_parameters_and_arithmetic_are_the_librarys() -> None:
    """The library's figures are kept: here ours are asked for, all at once."""
    known, sweep = rows(), script()
    kinds = sorted(known)
    assert len(kinds) >= 180
    few, many = sweep.forecasts(program(), kinds), sweep.forecasts(program(), kinds, sweep.MANY)
    for kind in kinds:
        row, answer = known[kind], few[kind]
        assert answer.get("ok"), (kind, answer)
        assert answer["parameters"] == pytest.approx(float(row["parameters"]), rel=float(row["within"])), kind
        if not row["flops"]:
            continue
        counted = {"flops": float(row["flops"]), "attention": float(row["attention"])}
        bound = float(row["flops_within"])
        near = abs(answer["model_flops"] / counted["flops"] - 1) < bound
        if not near and many[kind].get("ok"):
            theirs = float(row["flops_many"]) if row["flops_many"] else sweep.longer(counted, sweep.MANY)
            near = abs(many[kind]["model_flops"] / theirs - 1) < bound
        assert near, (kind, answer["model_flops"], counted)
    held = [row for row in known.values() if row["flops"]]
    assert len(held) > 0.9 * len(known)
    assert all(float(row["flops_within"]) <= 0.01 for row in held)
    assert all(float(row["within"]) <= 0.01 for row in known.values())


def test_the_page_says_why_of_each_type_that_is_not_answered() -> None:
    page = (ROOT / "docs/model_types.md").read_text()
    table, rest = page.split("<!-- types: end -->")
    refused = set(re.findall(r"^\| `([^`]+)` \| no \|", table, flags=re.MULTILINE))
    explained = {name for line in rest.splitlines() if line.startswith("| `") for name in re.findall(r"`([^`]+)`", line.split("|")[1])}
    assert refused == explained
    reasons = json.loads((ROOT / "data/refused_types.json").read_text())["types"]
    assert set(reasons) == refused
    answers = script().forecasts(program(), sorted(reasons))
    for kind, why in reasons.items():
        assert f"| `{kind}` | {why} |" in rest, kind
        assert f'"{kind}" is not modelled: {why};' in answers[kind]["error"]["message"], kind


def test_a_mask_is_counted_over_every_pair_and_a_flag_over_half_of_them() -> None:
    torch = pytest.importorskip("torch")
    query, mask = torch.zeros(1, 2, 16, 8), torch.ones(16, 16, dtype=torch.bool)
    pairs = {"all": 16 * 16, "causal": 16 * 17 / 2}
    for said, more in (("all", {}), ("all", {"attn_mask": mask}), ("causal", {"is_causal": True})):
        counter = script().Counter()
        counter.attend(query, query, query, **more)
        assert counter.attention == 2 * 2 * pairs[said] * (8 + 8), (said, more)


@pytest.mark.parametrize("kind", ["cohere2_vision", "electra", "qwen3_vl", "reformer", "pi0", "evolla", "modernbert-decoder"])
def test_the_figures_that_are_kept_are_those_of_the_library(kind: str) -> None:
    counted, row = script().count(kind), rows()[kind]
    assert counted["parameters"] == int(row["parameters"])
    assert counted["flops"] == int(row["flops"])
