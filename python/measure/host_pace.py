"""What sets the pace of the host beside a GPU: host_pace.py OUT [SECONDS]

Before every visit two loops say how fast the machine is just then: calls of Python alone, and an addition. Nothing is profiled before
the last part. Random weights, bf16.
- steps: prompts and tokens of GPT-2 and of Llamas of 1 and 8 billion parameters, six rounds in turn: with a cache, without, tokens by
  FlashAttention, and against a cache that grows, so that cuDNN plans each length anew, then the same lengths once more.
- ways: prompts with the collector of garbage on, off and frozen, pinned to one core, and behind a long kernel, so that the queue is full.
- kinds: models of transformers that kinds.py and host_rounds.py do not have, of 4 to 12 layers, twelve rounds in turn: inference, the
  recorded forward pass, backward, fused AdamW, zeroing; every third round the same with clipping and AdamW by lists.
- then launches and busy time of the kinds, and the steps again, in a process that has profiled by now.
"""
from __future__ import annotations

import collections.abc
import contextlib
import gc
import json
import os
import pathlib
import statistics
import sys
import time
import typing

import host_rounds
import torch
import transformers
from torch.nn.attention import SDPBackend, sdpa_kernel

ROUNDS, KIND_ROUNDS, VISITS, CALLS, GROWN = 6, 12, 5, 4000, 8
_ONE = {"vocab_size": 128256, "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "tie_word_embeddings": True}
_EIGHT = {"vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32}
_HEADS = {"num_attention_heads": 32, "num_key_value_heads": 8}
BIG: dict[str, transformers.PretrainedConfig] = {
    "gpt2": transformers.GPT2Config(),
    "llama_1b": transformers.LlamaConfig(**_ONE, **_HEADS),
    "llama_8b": transformers.LlamaConfig(**_EIGHT, **_HEADS),
}
Key = tuple[str, int, int]  # model, batch, tokens
PROMPTS: tuple[Key, ...] = (("gpt2", 1, 128), ("llama_1b", 1, 128), ("llama_1b", 1, 2048), ("llama_8b", 1, 128), ("llama_8b", 1, 1024))
TOKENS: tuple[Key, ...] = (("gpt2", 1, 512), ("gpt2", 64, 512), ("llama_1b", 1, 1024), ("llama_1b", 32, 1024))
TOKENS += (("llama_8b", 1, 1024), ("llama_8b", 16, 1024), ("llama_8b", 8, 8192))
Call = collections.abc.Callable[[], typing.Any]
Config = dict[str, typing.Any]


def decoder(kind: str, layers: int, **more: typing.Any) -> Config:
    shape = {"hidden_size": 1024, "intermediate_size": 2816, "num_attention_heads": 16, "num_key_value_heads": 8}
    return {"model_type": kind, **shape, "num_hidden_layers": layers, "vocab_size": 32000, **more}


def encoder(kind: str, layers: int, vocab: int, **more: typing.Any) -> Config:
    shape = {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": layers, "num_attention_heads": 12}
    return {"model_type": kind, **shape, **({"vocab_size": vocab} if vocab else {}), **more}


def pair(kind: str, layers: int, vocab: int, **more: typing.Any) -> Config:
    shape = {"d_model": 512, "encoder_ffn_dim": 2048, "decoder_ffn_dim": 2048, "encoder_layers": layers, "decoder_layers": layers}
    return {"model_type": kind, **shape, "encoder_attention_heads": 8, "decoder_attention_heads": 8, "vocab_size": vocab, **more}


_OLD = {"n_embd": 1024, "n_layer": 7, "n_head": 16, "vocab_size": 50304}
_NEO = {"hidden_size": 768, "num_layers": 8, "num_heads": 12, "attention_types": [[["global", "local"], 4]], "vocab_size": 50257}
_XGLM = {"d_model": 768, "ffn_dim": 3072, "num_layers": 8, "attention_heads": 12, "vocab_size": 32000}
_PARTED = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 256, "max_relative_positions": -1}
_PARTED |= {"share_att_key": True, "norm_rel_ebd": "layer_norm", "position_biased_input": False}
_T5 = {"d_model": 512, "d_ff": 1024, "d_kv": 64, "num_layers": 5, "num_decoder_layers": 5, "num_heads": 6, "vocab_size": 32128}
_PICTURE = {"image_size": 224, "patch_size": 16}
KINDS: tuple[tuple[str, Config], ...] = (
    ("CausalLM", {"model_type": "gpt_bigcode", **_OLD}),
    ("CausalLM", {"model_type": "codegen", **_OLD, "rotary_dim": 32}),
    ("CausalLM", {"model_type": "gpt_neo", **_NEO}),
    ("CausalLM", {"model_type": "mpt", "d_model": 1024, "n_heads": 16, "n_layers": 8, "vocab_size": 50368}),
    ("CausalLM", decoder("starcoder2", 9)),
    ("CausalLM", decoder("phi", 7)),
    ("CausalLM", decoder("persimmon", 7)),
    ("CausalLM", decoder("olmo", 9)),
    ("CausalLM", decoder("olmo3", 5)),
    ("CausalLM", decoder("cohere2", 5)),
    ("CausalLM", decoder("glm", 7, head_dim=64, pad_token_id=0)),
    ("CausalLM", decoder("nemotron", 8)),
    ("CausalLM", decoder("smollm3", 10, pad_token_id=0)),
    ("CausalLM", decoder("arcee", 8)),
    ("CausalLM", decoder("helium", 5, head_dim=64)),
    ("CausalLM", decoder("exaone4", 9)),
    ("CausalLM", decoder("seed_oss", 12, head_dim=64)),
    ("CausalLM", decoder("hunyuan_v1_dense", 6, head_dim=64)),
    ("CausalLM", decoder("ernie4_5", 8)),
    ("CausalLM", {"model_type": "xglm", **_XGLM}),
    ("CausalLM", encoder("biogpt", 8, 42384)),
    ("MaskedLM", encoder("albert", 10, 30000, embedding_size=128)),
    ("MaskedLM", encoder("mpnet", 8, 30527)),
    ("MaskedLM", encoder("deberta-v2", 5, 128100, **_PARTED)),
    ("MaskedLM", encoder("megatron-bert", 10, 29056)),
    ("MaskedLM", encoder("modernbert", 9, 50368)),
    ("MaskedLM", encoder("roformer", 7, 50000)),
    ("MaskedLM", encoder("xlm-roberta", 9, 250002)),
    ("MaskedLM", encoder("rembert", 5, 30522, input_embedding_size=256, output_embedding_size=512)),
    ("ImageClassification", encoder("beit", 8, 0, **_PICTURE)),
    ("ImageClassification", encoder("dinov2", 8, 0, image_size=224, patch_size=14)),
    ("Seq2SeqLM", pair("marian", 6, 58101, pad_token_id=58100, decoder_start_token_id=58100)),
    ("Seq2SeqLM", pair("mbart", 4, 32000)),
    ("Seq2SeqLM", pair("pegasus", 7, 32000)),
    ("Seq2SeqLM", pair("m2m_100", 5, 32000)),
    ("Seq2SeqLM", {"model_type": "mt5", **_T5, "decoder_start_token_id": 0}),
)


class Cell:
    """Something for Python to call."""

    def __init__(self) -> None:
        self.value = 1

    def more(self, x: int, **kept: int) -> int:
        return self.value + x + len(kept)


def pace() -> dict[str, float]:
    cell, start = Cell(), time.perf_counter()
    for i in range(CALLS):
        cell.more(i, a=1, b=2)
    taken = time.perf_counter() - start
    return {"python_ns": round(taken / CALLS * 1e9, 1), "add_us": host_rounds.addition_us()}


def clock(run: Call) -> dict[str, float]:
    run()
    host, wall = [], []
    for _ in range(VISITS):
        start = host_rounds.waited()
        run()
        host.append(1e6 * (time.perf_counter() - start))
        wall.append(1e6 * (host_rounds.waited() - start))
    return {"host_us": round(statistics.median(host), 1), "wall_us": round(statistics.median(wall), 1), "least_us": round(min(host), 1)}


class Rows:
    """Figures of the same case, visit by visit."""

    def __init__(self) -> None:
        self.rows: dict[str, tuple[dict[str, typing.Any], dict[str, list[float]]]] = {}

    def add(self, case: dict[str, typing.Any], figures: dict[str, float]) -> None:
        kept = self.rows.setdefault(json.dumps(case), (case, {}))[1]
        for name, value in figures.items():
            kept.setdefault(name, []).append(value)

    def write(self, path: pathlib.Path) -> None:
        path.write_text("".join(json.dumps(case | figures) + "\n" for case, figures in self.rows.values()))


class Steps:
    """Prompts and tokens of models as large as those that people run."""

    def __init__(self) -> None:
        self.models = {}
        for name, config in BIG.items():
            with torch.device("cuda"):
                self.models[name] = transformers.AutoModelForCausalLM.from_config(config).to(torch.bfloat16).eval()
        self.ids = {key: torch.randint(5, 400, key[1:], device="cuda") for key in PROMPTS + TOKENS}

    def prompt(self, key: Key, cache: bool = True) -> Call:
        return lambda: self.models[key[0]](self.ids[key], use_cache=cache, logits_to_keep=1)

    def token(self, key: Key) -> tuple[typing.Any, Call]:
        cache, one = self.prompt(key)().past_key_values, self.ids[key][:, :1].clone()
        return cache, lambda: self.models[key[0]](one, past_key_values=cache, use_cache=True, logits_to_keep=1)

    def visit(self, rows: Rows, **more: typing.Any) -> None:
        def put(part: str, key: Key, run: Call) -> None:
            rows.add({"part": part, "model": key[0], "batch": key[1], "tokens": key[2], **more}, pace() | clock(run))

        for key in PROMPTS:
            put("prompt", key, self.prompt(key))
        for key in PROMPTS[:2]:
            put("no_cache", key, self.prompt(key, False))
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            for key in (TOKENS[0], TOKENS[2], TOKENS[4], TOKENS[5]):
                put("token_flash", key, self.token(key)[1])

    def grow(self, rows: Rows) -> None:
        for key in TOKENS:
            speed, (cache, run) = pace(), self.token(key)
            case = {"part": "token", "model": key[0], "batch": key[1], "tokens": key[2]}
            rows.add(case, speed)
            for name in ("new_ms", "known_ms"):
                for _ in range(GROWN):
                    start = host_rounds.waited()
                    run()
                    rows.add(case, {name: round(1e3 * (host_rounds.waited() - start), 1)})
                cache.crop(key[2])


@contextlib.contextmanager
def as_it(way: str) -> collections.abc.Iterator[None]:
    cores = os.sched_getaffinity(0)
    if way == "collector off":
        gc.disable()
    elif way == "collector frozen":
        gc.freeze()
    elif way == "pinned":
        os.sched_setaffinity(0, {sorted(cores)[len(cores) // 2]})
    yield
    gc.enable()
    gc.unfreeze()
    os.sched_setaffinity(0, cores)


def ways(steps: Steps, rows: Rows) -> None:
    wide = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    for key in PROMPTS[:3]:
        run, case = steps.prompt(key), {"part": "way", "model": key[0], "tokens": key[2]}
        for way in ("collector on", "collector off", "collector frozen", "pinned", "idle"):
            with as_it(way):
                rows.add(case | {"way": way}, pace() | clock(run))
        host_rounds.waited()
        for _ in range(40):
            wide @ wide
        start = time.perf_counter()
        run()
        rows.add(case | {"way": "behind products"}, {"host_us": round(1e6 * (time.perf_counter() - start), 1)})


class Kind(host_rounds.Small):
    """A model of host_rounds.py that also clips and updates by lists."""

    def __init__(self, head: str, config: Config) -> None:
        super().__init__(head, config)
        self.lists = torch.optim.AdamW(self.tensors, lr=1e-6, foreach=True)

    def listed(self) -> dict[str, float]:
        spans = []
        for _ in range(4):
            self.loss().backward()
            marks = [time.perf_counter()]
            for part in (lambda: torch.nn.utils.clip_grad_norm_(self.tensors, 1.0), self.lists.step):
                part()
                marks.append(time.perf_counter())
            self.lists.zero_grad(set_to_none=True)
            spans.append([1e6 * (b - a) for a, b in zip(marks, marks[1:], strict=False)])
        return {name: round(statistics.median(span[i] for span in spans[1:])) for i, name in enumerate(("clip_us", "listed_us"))}


def main() -> None:
    until = time.monotonic() + float(sys.argv[2] if len(sys.argv) > 2 else 400)
    rows, kinds, steps = Rows(), [], Steps()
    with torch.no_grad():
        for _ in range(ROUNDS):
            steps.visit(rows)
        steps.grow(rows)
        for _ in range(3):
            ways(steps, rows)
    for head, config in KINDS:
        torch.manual_seed(0)
        kinds.append(Kind(head, config))
        kinds[-1].train()
    gc.collect()
    gc.freeze()
    for turn in range(KIND_ROUNDS):
        for kind in kinds if time.monotonic() < until else ():
            case = {"part": "kind", "name": kind.config["model_type"], "head": kind.head, "config": kind.config, "tensors": len(kind.tensors)}
            speed = pace()
            kind.took.clear()
            kind.visit()
            figures = {name: us[-1] for name, us in kind.took.items()} | speed
            rows.add(case, figures | (kind.listed() if turn % 3 == 0 else {}))
    gc.unfreeze()
    for kind in kinds:
        rows.add({"part": "launches", "name": kind.config["model_type"]}, kind.launches())
    with torch.no_grad():
        for _ in range(3):
            steps.visit(rows, profiled=True)
    rows.write(pathlib.Path(sys.argv[1]))


if __name__ == "__main__":
    main()
