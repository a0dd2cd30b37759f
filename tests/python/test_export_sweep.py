"""scripts/export_sweep over sixty architectures of the libraries that are installed: all of them are exported and read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT, load


@pytest.fixture(scope="module")
def sweep() -> Any:
    return load(ROOT / "scripts" / "export_sweep")


# Sixty architectures of the libraries that are installed here, one of a kind each and cheap to export: timm's own small ones
# of every building block, convolutions over pictures and films, mixers, attention over pictures, sound and texts, experts and
# states. Nothing is computed on the meta device: each is as wide as its library makes it, transformers' have two layers.
SAMPLE = {
    "timm": (
        *("test_byobnet", "test_convnext", "test_convnext2", "test_convnext3", "test_efficientnet", "test_efficientnet_evos"),
        *("test_efficientnet_gn", "test_efficientnet_ln", "test_mambaout", "test_nfnet", "test_resnet", "test_vit", "test_vit2"),
        *("test_vit3", "test_vit4", "fasternet_t0", "mixer_s32_224", "poolformer_s12", "repvgg_a0", "skresnet18"),
        "starnet_s050",
    ),
    "torchvision": ("alexnet", "mnasnet0_5", "r3d_18", "resnet18", "squeezenet1_1", "vgg11_bn", "vit_b_32"),
    "transformers": (
        *("albert", "bart", "bert", "bloom", "clip_text_model", "cohere", "deit", "dinov2", "distilbert", "electra"),
        *("falcon", "gemma", "gpt2", "gpt_bigcode", "gpt_neo", "gpt_neox", "gptj", "llama", "mamba2", "mixtral"),
        *("modernbert", "mpnet", "olmo2", "opt", "phi3", "qwen2_moe", "qwen3", "siglip_vision_model", "squeezebert"),
        *("stablelm", "vit", "whisper"),
    ),
}
NAMES = [(library, name) for library, names in SAMPLE.items() for name in names]


@pytest.fixture(scope="module")
def cases(sweep: Any) -> dict[tuple[str, str], Any]:
    return {(library, name): make for library in SAMPLE for _, name, make in sweep.LIBRARIES[library](False)}


@pytest.mark.parametrize(("library", "name"), NAMES, ids=["-".join(case) for case in NAMES])
def test_a_sample_of_sixty(sweep: Any, cases: dict[tuple[str, str], Any], library: str, name: str) -> None:
    parameters = []

    def make() -> Any:
        model, inputs = cases[library, name]()
        parameters.append(sum(p.numel() for p in model.parameters()))
        return model, inputs

    row = sweep.export_one(make, "forward")
    assert row["result"] == "exported", f"{library} {name}: {row['why']}"
    assert [row["answered"]] == parameters and row["step_ms"] > 0
    assert row["unknown"] == []


@pytest.mark.parametrize("name", ["axk2", "deepseek_v32", "glm_moe_dsa", "mistral_large4_text"])
def test_models_that_read_their_own_mask(sweep: Any, cases: dict[tuple[str, str], Any], name: str) -> None:
    """An indexer has its mask made even where it hides nothing but what comes later."""
    row = sweep.export_one(cases["transformers", name], "forward")
    assert row["result"] == "exported", row["why"]
    assert row["unknown"] == []


def test_the_sample_is_sixty_with_all_small_models(cases: dict[tuple[str, str], Any]) -> None:
    assert len(NAMES) == len(set(NAMES)) == 60
    assert {name for library, name in cases if name.startswith("test_")} <= set(SAMPLE["timm"])


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
            until = time.process_time() + 5
            while time.process_time() < until:
                pass
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
