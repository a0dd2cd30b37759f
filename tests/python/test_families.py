"""Every architecture of decoders: the same parameters as transformers allocates, and both front ends agree on a small one."""

from __future__ import annotations

from typing import Any

import pytest
from export_models import CLASSES, compare

TRAIN: dict[str, Any] = {"task": "train", "dtype": "bf16"}
FORWARD: dict[str, Any] = {"task": "forward", "dtype": "bf16"}

# Small enough to be exported in seconds, large enough that kernels and not the host take the time.
SMALL: dict[str, tuple[str, dict[str, Any]]] = {
    "nemotron": (
        "NemotronForCausalLM",
        {"hidden_size": 3072, "intermediate_size": 9216, "num_attention_heads": 24, "num_key_value_heads": 8},
    ),
}


@pytest.mark.parametrize("name", SMALL)
def test_both_front_ends_agree(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cls, more = SMALL[name]
    monkeypatch.setitem(CLASSES, name, cls)
    config = {"model_type": name, "num_hidden_layers": 4, "vocab_size": 64000, **more}
    for found in compare(name, 4, 1024, [TRAIN, FORWARD, {**TRAIN, "execution": "compile"}], config=config):
        assert found.config["ok"], found.config
        assert found.exported["ok"], found.exported
        assert found.graph.warnings == ()
        said = (name, {key: f"{100 * error:+.2f} %" for key, error in found.errors.items()})
        assert found.errors["parameters"] == 0, said
        assert abs(found.errors["flops"]) < 0.01, said
        assert abs(found.errors["time"]) < 0.03, said
        assert abs(found.errors["memory"]) < 0.05, said
