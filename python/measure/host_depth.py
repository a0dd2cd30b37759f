"""What a pass costs the host before its layers and in each of them, and whole steps that wait for the host: host_depth.py OUT [SECONDS]

Every kind stands twice, with 2 and with 10 layers, in widths that leave the GPU nothing to do: what both have in common is the pass's, the
difference the layers'. Rounds in turn; before every visit a loop of Python alone says the pace of the core. Then prompts and tokens of GPT-2
and two Llamas, and ResNet-50, in rounds. Random weights, bf16.
"""
from __future__ import annotations

import gc
import json
import pathlib
import statistics
import sys
import time
import typing

import torch
import transformers

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SHALLOW, DEEP, TOKENS = 2, 10, 128
Config = dict[str, typing.Any]


def decoder(kind: str, **more: typing.Any) -> Config:
    shape = {"hidden_size": 512, "intermediate_size": 1024, "num_attention_heads": 8, "num_key_value_heads": 4}
    return {"model_type": kind, **shape, "num_hidden_layers": "L", "vocab_size": 8000, **more}


def encoder(kind: str, **more: typing.Any) -> Config:
    shape = {"hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": "L", "num_attention_heads": 8}
    return {"model_type": kind, **shape, "vocab_size": 8000, **more}


def pair(kind: str, **more: typing.Any) -> Config:
    shape = {"d_model": 512, "encoder_ffn_dim": 1024, "decoder_ffn_dim": 1024, "encoder_layers": "L", "decoder_layers": "L"}
    return {"model_type": kind, **shape, "encoder_attention_heads": 8, "decoder_attention_heads": 8, "vocab_size": 8000, **more}


_OLD = {"n_embd": 512, "n_layer": "L", "n_head": 8, "vocab_size": 8000}
_FALCON = {"new_decoder_architecture": False, "multi_query": True, "parallel_attn": True, "bias": False, "alibi": False}
_T5 = {"d_model": 512, "d_ff": 1024, "d_kv": 64, "num_layers": "L", "num_decoder_layers": "L", "num_heads": 8, "vocab_size": 8000}
_PARTED = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 256, "max_relative_positions": -1}
_PARTED |= {"share_att_key": True, "norm_rel_ebd": "layer_norm", "position_biased_input": False}
_PICTURE = {"image_size": 224, "patch_size": 16}
KINDS: tuple[tuple[str, Config], ...] = (
    ("CausalLM", {"model_type": "gpt2", **_OLD}),
    ("CausalLM", decoder("llama")),
    ("CausalLM", decoder("qwen2")),
    ("CausalLM", decoder("qwen3", head_dim=64)),
    ("CausalLM", decoder("mistral", sliding_window=None)),
    ("CausalLM", decoder("gemma2", head_dim=64)),
    ("CausalLM", decoder("phi3", pad_token_id=0)),
    ("CausalLM", decoder("olmo2")),
    ("CausalLM", encoder("opt", ffn_dim=1024, max_position_embeddings=2048, word_embed_proj_dim=512)),
    ("CausalLM", encoder("gpt_neox")),
    ("CausalLM", {"model_type": "bloom", "hidden_size": 512, "n_layer": "L", "n_head": 8, "vocab_size": 8000}),
    ("CausalLM", encoder("falcon", **_FALCON)),
    ("CausalLM", {"model_type": "gptj", **_OLD, "rotary_dim": 32}),
    ("CausalLM", {"model_type": "xglm", "d_model": 512, "ffn_dim": 1024, "num_layers": "L", "attention_heads": 8, "vocab_size": 8000}),
    ("CausalLM", decoder("starcoder2")),
    ("CausalLM", decoder("phi")),
    ("CausalLM", decoder("cohere2")),
    ("CausalLM", decoder("glm", head_dim=64, pad_token_id=0)),
    ("CausalLM", encoder("biogpt")),
    ("CausalLM", {"model_type": "mpt", "d_model": 512, "n_heads": 8, "n_layers": "L", "vocab_size": 8000}),
    ("MaskedLM", encoder("bert")),
    ("MaskedLM", {"model_type": "distilbert", "dim": 512, "hidden_dim": 1024, "n_layers": "L", "n_heads": 8, "vocab_size": 8000}),
    ("MaskedLM", encoder("electra", embedding_size=512)),
    ("MaskedLM", encoder("deberta-v2", **_PARTED)),
    ("MaskedLM", encoder("modernbert") | {"vocab_size": 50368}),
    ("ImageClassification", encoder("vit", **_PICTURE)),
    ("ImageClassification", encoder("dinov2", image_size=224, patch_size=14)),
    ("Seq2SeqLM", {"model_type": "t5", **_T5, "decoder_start_token_id": 0}),
    ("Seq2SeqLM", pair("bart")),
    ("Seq2SeqLM", pair("m2m_100")),
)


def deep(config: Config, layers: int) -> Config:
    return {key: layers if value == "L" else value for key, value in config.items()}


def waited() -> float:
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


class Cell:
    def __init__(self) -> None:
        self.value = 1

    def more(self, x: int, **kept: int) -> int:
        return self.value + x + len(kept)


def python_ns() -> float:
    cell, start = Cell(), time.perf_counter()
    for i in range(1500):
        cell.more(i, a=1, b=2)
    return round((time.perf_counter() - start) / 1500 * 1e9, 1)


def addition_us() -> float:
    x = torch.zeros(64, device=DEVICE)
    start = waited()
    for _ in range(60):
        x + x
    return round((time.perf_counter() - start) / 60 * 1e6, 3)


class Small:
    def __init__(self, head: str, config: Config) -> None:
        self.head, self.config = head, config
        named = dict(config)
        made = transformers.AutoConfig.for_model(named.pop("model_type"), **named)
        with torch.device(DEVICE):
            self.model = getattr(transformers, f"AutoModelFor{head}").from_config(made).to(DEVICE, torch.bfloat16)
        self.inputs: dict[str, typing.Any] = {}
        if head == "ImageClassification":
            self.inputs["pixel_values"] = torch.randn(1, 3, 224, 224, device=DEVICE, dtype=torch.bfloat16)
        else:
            tokens = torch.randint(5, 1000, (1, TOKENS), device=DEVICE)
            self.inputs["input_ids"] = tokens
            self.inputs |= {"labels": tokens} if head == "Seq2SeqLM" else {"use_cache": False} if head == "CausalLM" else {}
        self.took: dict[str, list[float]] = {}

    def loss(self) -> torch.Tensor:
        made = self.model(**self.inputs)
        return made.loss if "labels" in self.inputs else made.logits.float().mean()

    def put(self, name: str, value: float) -> None:
        self.took.setdefault(name, []).append(value)

    def infer(self, visits: int = 3) -> None:
        self.model.eval()
        with torch.no_grad():
            self.model(**self.inputs)
            spans = []
            for _ in range(visits):
                start = waited()
                self.model(**self.inputs)
                spans.append(time.perf_counter() - start)
        self.put("infer_us", round(1e6 * statistics.median(spans)))

    def train(self, visits: int = 2) -> None:
        self.model.train()
        spans = []
        for _ in range(visits + 1):
            start = waited()
            loss = self.loss()
            middle = time.perf_counter()
            loss.backward()
            end = time.perf_counter()
            waited()
            self.model.zero_grad(set_to_none=True)
            spans.append((middle - start, end - middle))
        self.put("forward_us", round(1e6 * statistics.median(a for a, _ in spans[1:])))
        self.put("backward_us", round(1e6 * statistics.median(b for _, b in spans[1:])))

    def visit(self, training: bool) -> None:
        self.put("python_ns", python_ns())
        self.put("add_us", addition_us())
        self.infer()
        if training:
            self.train()

    def launches(self) -> dict[str, float]:
        found = {}
        for name in ("infer", "train"):
            self.model.train(name == "train")
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as trace:
                if name == "train":
                    self.loss().backward()
                else:
                    with torch.no_grad():
                        self.model(**self.inputs)
                waited()
            self.model.zero_grad(set_to_none=True)
            kernels = [event for event in trace.events() if event.device_type == torch.autograd.DeviceType.CUDA]
            found[f"{name}_launches"] = len(kernels)
            found[f"{name}_busy_us"] = round(sum(event.device_time for event in kernels), 1)
        return found


_ONE = {"vocab_size": 128256, "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "tie_word_embeddings": True}
_EIGHT = {"vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32}
_HEADS = {"num_attention_heads": 32, "num_key_value_heads": 8}
Key = tuple[str, int, int]
PROMPTS: tuple[Key, ...] = (("gpt2", 1, 128), ("llama_1b", 1, 128), ("llama_1b", 1, 2048), ("llama_8b", 1, 128), ("llama_8b", 1, 1024))
GROW: tuple[Key, ...] = (("gpt2", 1, 512), ("gpt2", 64, 512), ("llama_1b", 1, 1024), ("llama_1b", 32, 1024), ("llama_8b", 1, 1024), ("llama_8b", 16, 1024))
GROW += (("llama_8b", 64, 2048), ("llama_8b", 8, 8192))


class Steps:
    def __init__(self) -> None:
        made = {"gpt2": transformers.GPT2Config()}
        made |= {"llama_1b": transformers.LlamaConfig(**_ONE, **_HEADS), "llama_8b": transformers.LlamaConfig(**_EIGHT, **_HEADS)}
        torch.set_default_dtype(torch.bfloat16)
        with torch.device(DEVICE):
            self.models = {name: transformers.AutoModelForCausalLM.from_config(config).eval() for name, config in made.items()}
            self.ids = {key: torch.randint(5, 400, key[1:]) for key in PROMPTS + GROW}
            self.net = transformers.ResNetForImageClassification(transformers.ResNetConfig()).eval()
            self.pictures = torch.randn(16, 3, 224, 224)
        torch.set_default_dtype(torch.float32)
        self.rows: dict[str, dict[str, typing.Any]] = {}

    def row(self, part: str, key: Key) -> dict[str, typing.Any]:
        return self.rows.setdefault(f"{part} {key}", {"part": part, "model": key[0], "batch": key[1], "tokens": key[2]})

    def clock(self, part: str, key: Key, run: typing.Callable[[], typing.Any]) -> None:
        row, spans = self.row(part, key), []
        row.setdefault("python_ns", []).append(python_ns())
        row.setdefault("add_us", []).append(addition_us())
        run()
        for _ in range(5):
            start = waited()
            run()
            spans.append(waited() - start)
        row.setdefault("wall_us", []).append(round(1e6 * statistics.median(spans)))

    def prompts(self) -> None:
        for key in PROMPTS:
            self.clock("prompt", key, lambda key=key: self.models[key[0]](self.ids[key], use_cache=True, logits_to_keep=1))
        self.clock("resnet", ("resnet50", 16, 0), lambda: self.net(self.pictures))

    def grow(self, steps: int) -> None:
        for key in GROW:
            row = self.row("token", key)
            cache = self.models[key[0]](self.ids[key], use_cache=True, logits_to_keep=1).past_key_values
            one = self.ids[key][:, :1].clone()
            run = lambda: self.models[key[0]](one, past_key_values=cache, use_cache=True, logits_to_keep=1)
            for name in ("new_ms", "known_ms"):
                row.setdefault("python_ns", []).append(python_ns())
                for _ in range(steps):
                    start = waited()
                    run()
                    row.setdefault(name, []).append(round(1e3 * (waited() - start), 2))
                cache.crop(key[2])
            del cache
            torch.cuda.empty_cache()


def main() -> None:
    out = pathlib.Path(sys.argv[1])
    begun, seconds = time.monotonic(), float(sys.argv[2] if len(sys.argv) > 2 else 280)
    left = lambda: seconds - (time.monotonic() - begun)
    small = []
    for head, config in KINDS:
        for layers in (SHALLOW, DEEP):
            torch.manual_seed(0)
            try:
                model = Small(head, deep(config, layers))
                model.infer(1)
                model.train(1)
                model.took.clear()
                small.append(model)
            except Exception as error:  # the others are worth having
                print(config["model_type"], layers, repr(error)[:200], flush=True)
    print(len(small), "models after", round(time.monotonic() - begun), "s", flush=True)
    gc.collect()
    gc.freeze()
    turn = 0
    while left() > 110:
        for model in small:
            if left() > 105:
                model.visit(turn % 2 == 0)
        turn += 1
    print(turn, "rounds after", round(time.monotonic() - begun), "s", flush=True)
    steps: Steps | None = None
    if DEVICE == "cuda":
        with torch.no_grad():
            steps = Steps()
            print("steps built after", round(time.monotonic() - begun), "s", flush=True)
            steps.grow(6)
            print("grown after", round(time.monotonic() - begun), "s", flush=True)
            while left() > 20:
                steps.prompts()
    with out.open("w") as file:
        cpu = [line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")][:1]
        file.write(json.dumps({"part": "environment", "cpu": cpu, "torch": torch.__version__, "transformers": transformers.__version__, "rounds": turn}) + "\n")
        for model in small:
            found = model.launches() if DEVICE == "cuda" and left() > 3 else {}
            file.write(json.dumps({"part": "kind", "name": model.config["model_type"], "head": model.head, "config": model.config} | model.took | found) + "\n")
        for row in steps.rows.values() if steps else ():
            file.write(json.dumps(row) + "\n")
    print("done after", round(time.monotonic() - begun), "s", flush=True)


if __name__ == "__main__":
    main()
