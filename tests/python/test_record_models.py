"""record() against the config front end: the same training steps of whole models, recorded on meta tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import transformers as hub
import transformers.masking_utils

import foretell


def recorded(step: Callable[[], Any]) -> foretell.Recording:
    with foretell.record(gpu="h100_sxm") as recording:
        step()
    return recording


def _model(name: str) -> Any:
    small_rope = {"rope_theta": 500000.0, "rope_type": "default"}
    with torch.device("meta"):
        if name == "gpt2":
            model: Any = hub.GPT2LMHeadModel(hub.GPT2Config())
        elif name == "bert":
            model = hub.BertForMaskedLM(hub.BertConfig())
        else:
            config = hub.LlamaConfig(
                vocab_size=128256, hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, head_dim=64,
                num_attention_heads=32, num_key_value_heads=8, tie_word_embeddings=True, rope_parameters=small_rope,
            )  # fmt: skip
            model = hub.LlamaForCausalLM(config)
    return model.to(torch.bfloat16).train()


@pytest.mark.parametrize("optimizer", ["adamw", "adamw_foreach"])
@pytest.mark.parametrize(
    ("name", "batch", "seq"),
    [
        ("gpt2", 8, 512),
        ("gpt2", 2, 256),
        ("bert", 16, 512),
        ("bert", 4, 128),
        ("llama", 4, 2048),
        ("llama", 1, 256),
    ],
)
def test_agrees_with_the_config(
    name: str, batch: int, seq: int, optimizer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same step recorded and forecast from the model's config: its time, the GPU's part and the host's."""
    # Values of meta tensors cannot be looked at; without a cache transformers asks whether samples are packed.
    monkeypatch.setattr(hub.masking_utils, "find_packed_sequence_indices", lambda *_: None, raising=False)
    model = _model(name)
    tokens = torch.zeros(batch, seq, dtype=torch.long, device="meta")
    inputs = {"input_ids": tokens, "labels": tokens, **({} if name == "bert" else {"use_cache": False})}
    update = torch.optim.AdamW(model.parameters(), fused=optimizer == "adamw" or None)

    def step() -> None:
        model(**inputs).loss.backward()
        update.step()
        update.zero_grad(set_to_none=True)

    recorded(step)  # the first makes the optimizer's states
    answer = recorded(step).forecast("h200_sxm")
    (here,) = answer.forecasts
    whole = foretell.train(
        model.config, gpu="h200_sxm", batch=batch, seq=seq, attention="sdpa", optimizer=optimizer
    )
    # Views cost the host most going back, and a capture has all of them, a config those that its builder knows of.
    assert answer.step_ms == pytest.approx(whole.step_ms, rel=0.11)
    assert here.busy_ms == pytest.approx(whole.busy_ms, rel=0.04)
    assert here.host_ms == pytest.approx(whole.host_ms, rel=0.16)
