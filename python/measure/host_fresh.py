"""The host's clock in kinds of models that were mended by reading their code: host_fresh.py forecast OUT FORETELL, or OUT [SECONDS]

Other sizes of kinds whose operators were counted in transformers' code (host_pace.py and host_rounds.py have the ones they were compared
with), and kinds that none of those have. forecast writes down what foretell says before anything is measured; otherwise rounds in turn as
host_rounds.py has them: inference, the recorded pass, backward, fused AdamW, launches and busy time behind them. Random weights, bf16.
"""
from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import time
import typing

TOKENS, ROUNDS = 128, 9
Config = dict[str, typing.Any]


def decoder(kind: str, layers: int, **more: typing.Any) -> Config:
    shape = {"hidden_size": 768, "intermediate_size": 2048, "num_attention_heads": 12, "num_key_value_heads": 4}
    return {"model_type": kind, **shape, "num_hidden_layers": layers, "vocab_size": 32000, **more}


def encoder(kind: str, layers: int, **more: typing.Any) -> Config:
    shape = {"hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": layers, "num_attention_heads": 8}
    return {"model_type": kind, **shape, "vocab_size": 32000, **more}


def pair(kind: str, layers: int, **more: typing.Any) -> Config:
    shape = {"d_model": 768, "encoder_ffn_dim": 3072, "decoder_ffn_dim": 3072, "encoder_layers": layers, "decoder_layers": layers}
    return {"model_type": kind, **shape, "encoder_attention_heads": 12, "decoder_attention_heads": 12, "vocab_size": 32000, **more}


_PARTED = {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_buckets": -1, "max_relative_positions": 128}
_PARTED |= {"share_att_key": False, "position_biased_input": True}
_NEO = {"hidden_size": 512, "num_layers": 6, "num_heads": 8, "attention_types": [[["global", "local"], 3]], "vocab_size": 32000}
KINDS: tuple[tuple[str, Config], ...] = (
    ("MaskedLM", encoder("deberta-v2", 8, **_PARTED)),
    ("CausalLM", {"model_type": "codegen", "n_embd": 768, "n_layer": 10, "n_head": 12, "rotary_dim": 64, "vocab_size": 32000}),
    ("CausalLM", {"model_type": "gptj", "n_embd": 512, "n_layer": 9, "n_head": 8, "rotary_dim": 64, "vocab_size": 32000}),
    ("Seq2SeqLM", pair("m2m_100", 3)),
    ("Seq2SeqLM", pair("blenderbot", 4)),
    ("Seq2SeqLM", pair("plbart", 5)),
    ("Seq2SeqLM", pair("bart", 3)),
    ("MaskedLM", encoder("modernbert", 12, vocab_size=50368)),
    ("CausalLM", encoder("modernbert-decoder", 8, vocab_size=50368)),
    ("CausalLM", decoder("gemma3_text", 9, head_dim=64)),
    ("CausalLM", decoder("gemma2", 9, head_dim=64)),
    ("CausalLM", decoder("olmo3", 9)),
    ("CausalLM", decoder("cohere2", 8)),
    ("CausalLM", decoder("exaone4", 5)),
    ("CausalLM", decoder("gpt_oss", 4, head_dim=64, num_local_experts=4, num_experts_per_tok=2)),
    ("CausalLM", decoder("cwm", 5, head_dim=64)),
    ("CausalLM", {"model_type": "gpt_neo", **_NEO}),
    ("CausalLM", {"model_type": "xglm", "d_model": 512, "ffn_dim": 2048, "num_layers": 12, "attention_heads": 8, "vocab_size": 32000}),
    ("CausalLM", {"model_type": "bloom", "hidden_size": 512, "n_layer": 10, "n_head": 8, "vocab_size": 32000}),
    ("CausalLM", decoder("llama", 4)),
    ("CausalLM", decoder("granite", 9)),
    ("CausalLM", {"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 10, "vocab_size": 50257}),
    ("MaskedLM", encoder("bert", 10)),
    ("MaskedLM", encoder("roformer", 4)),
)


def forecast(out: pathlib.Path, program: str) -> None:
    asked = []
    for _, config in KINDS:
        base = {"model": config, "gpu": "h200_sxm", "dtype": "bf16", "attention": "sdpa", "execution": "eager", "batch": 1, "seq": TOKENS}
        asked += [{"task": "forward", **base}, {"task": "train", "optimizer": "adamw", **base}]
    lines = "\n".join(json.dumps(row) for row in asked)
    answers = [json.loads(line) for line in subprocess.run([program, "batch"], input=lines, capture_output=True, text=True).stdout.splitlines()]
    kept = ("step_ms", "low_ms", "high_ms", "host_ms", "busy_ms", "launches")
    with out.open("w") as file:
        for (_, config), (a, b) in zip(KINDS, zip(answers[::2], answers[1::2], strict=True), strict=True):
            row = {"name": config["model_type"], "forward": {k: a.get(k) for k in kept}, "train": {k: b.get(k) for k in kept}}
            file.write(json.dumps(row if a["ok"] and b["ok"] else row | {"error": [a.get("error"), b.get("error")]}) + "\n")


def measure(out: pathlib.Path, seconds: float) -> None:
    import gc

    import host_pace
    import host_rounds
    import torch

    until, models = time.monotonic() + seconds, []
    for head, config in KINDS:
        torch.manual_seed(0)
        try:
            models.append(host_rounds.Small(head, config))
            models[-1].train()
        except Exception as error:  # the others are worth having
            print(config["model_type"], repr(error)[:200])
            models = [m for m in models if m.config is not config]
    gc.collect()
    gc.freeze()
    for _ in range(ROUNDS):
        for model in models:
            if time.monotonic() < until:
                model.took.setdefault("python_ns", []).append(host_pace.pace()["python_ns"])
                model.visit()
    with out.open("w") as file:
        for model in models:
            row = {"name": model.config["model_type"], "head": model.head, "config": model.config, "tensors": len(model.tensors)}
            file.write(json.dumps(row | model.took | model.launches()) + "\n")


def main() -> None:
    if sys.argv[1] == "forecast":
        forecast(pathlib.Path(sys.argv[2]), sys.argv[3])
    else:
        measure(pathlib.Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 200)


if __name__ == "__main__":
    main()
