"""The host's time in small models of many kinds: kinds.py forecast OUT FORETELL, kinds.py measure OUT [SECONDS]

Six layers (ResNet-50 and ConvNeXt whole), one sequence of 128 tokens or two images: nothing but the host holds these steps up.
forecast writes down what foretell says before anything is measured. measure takes the wall time of a forward pass without autograd
and of a forward and backward pass, three rounds in turn, the launches and the GPU's busy time of each once, and the host's time in
the parts of a GPT-2 block, each called in a loop of its own. Random weights, bf16, transformers' own choice of attention.
"""
from __future__ import annotations

import json
import pathlib
import statistics
import subprocess
import sys
import time
import typing

LAYERS, WIDTH, HEADS, TOKENS, PICTURES, ROUNDS = 6, 768, 12, 128, 2, 3


def decoder(kind: str, **more: typing.Any) -> dict[str, typing.Any]:
    shape = {"hidden_size": 1024, "intermediate_size": 2816, "num_attention_heads": 16, "num_key_value_heads": 8}
    return {"model_type": kind, **shape, "num_hidden_layers": LAYERS, "vocab_size": 32000, **more}


def encoder(kind: str, vocab: int, **more: typing.Any) -> dict[str, typing.Any]:
    shape = {"hidden_size": WIDTH, "intermediate_size": 4 * WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS}
    return {"model_type": kind, **shape, "vocab_size": vocab, **more}


_OPT = {"ffn_dim": 4 * WIDTH, "max_position_embeddings": 2048, "word_embed_proj_dim": WIDTH}
_FALCON = {"new_decoder_architecture": False, "multi_query": True, "parallel_attn": True, "bias": False, "alibi": False}
_WIDE = {"num_attention_heads": 16, "hidden_size": 1024}
_T5 = {"d_model": WIDTH, "d_ff": 4 * WIDTH, "d_kv": 64, "num_layers": LAYERS, "num_decoder_layers": LAYERS, "num_heads": HEADS}
_BART = {"encoder_ffn_dim": 4 * WIDTH, "decoder_ffn_dim": 4 * WIDTH, "encoder_layers": LAYERS, "decoder_layers": LAYERS}
_BART |= {"d_model": WIDTH, "encoder_attention_heads": HEADS, "decoder_attention_heads": HEADS, "vocab_size": 50265}
_RESNET = {"depths": [3, 4, 6, 3], "hidden_sizes": [256, 512, 1024, 2048], "embedding_size": 64, "layer_type": "bottleneck"}

# class of transformers, config
CASES: tuple[tuple[str, dict[str, typing.Any]], ...] = (
    ("CausalLM", {"model_type": "gpt2", "n_embd": WIDTH, "n_head": HEADS, "n_layer": LAYERS, "vocab_size": 50257}),
    ("CausalLM", decoder("llama")),
    ("CausalLM", decoder("qwen2")),
    ("CausalLM", decoder("qwen3", head_dim=64)),
    ("CausalLM", decoder("mistral", sliding_window=None)),
    ("CausalLM", decoder("gemma2", head_dim=64)),
    ("CausalLM", decoder("phi3", pad_token_id=0)),
    ("CausalLM", decoder("stablelm")),
    ("CausalLM", decoder("olmo2")),
    ("CausalLM", encoder("opt", 50272, **_OPT)),
    ("CausalLM", encoder("gpt_neox", 50304, **_WIDE)),
    ("CausalLM", {"model_type": "bloom", "hidden_size": 1024, "n_layer": LAYERS, "n_head": 16, "vocab_size": 50304}),
    ("CausalLM", encoder("falcon", 50304, **_WIDE, **_FALCON)),
    ("CausalLM", {"model_type": "gptj", "n_embd": 1024, "n_layer": LAYERS, "n_head": 16, "rotary_dim": 32, "vocab_size": 50400}),
    ("MaskedLM", encoder("bert", 30522)),
    ("MaskedLM", encoder("roberta", 50265)),
    ("MaskedLM", {"model_type": "distilbert", "dim": WIDTH, "hidden_dim": 4 * WIDTH, "n_layers": LAYERS, "n_heads": HEADS}),
    ("MaskedLM", encoder("electra", 30522, embedding_size=WIDTH)),
    ("ImageClassification", encoder("vit", 0, image_size=224, patch_size=16)),
    ("ImageClassification", {"model_type": "resnet", **_RESNET}),
    ("ImageClassification", {"model_type": "convnext", "depths": [3, 3, 9, 3], "hidden_sizes": [96, 192, 384, 768]}),
    ("Seq2SeqLM", {"model_type": "t5", **_T5, "vocab_size": 32128, "decoder_start_token_id": 0}),
    ("Seq2SeqLM", {"model_type": "bart", **_BART}),
)


def plain(config: dict[str, typing.Any]) -> dict[str, typing.Any]:
    return {key: value for key, value in config.items() if not (key == "vocab_size" and value == 0)}


def forecast(out: pathlib.Path, program: str) -> None:
    asked = []
    for head, config in CASES:
        base = {"model": plain(config), "gpu": "h200_sxm", "dtype": "bf16", "attention": "sdpa", "execution": "eager"}
        base |= {"batch": PICTURES} if head == "ImageClassification" else {"batch": 1, "seq": TOKENS}
        name = config["model_type"]
        asked.append({"id": f"{name} forward", "task": "forward", **base})
        asked.append({"id": f"{name} train", "task": "train", "optimizer": "none", **base})
    lines = "\n".join(json.dumps(row) for row in asked)
    answers = subprocess.run([program, "batch"], input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
    kept = ("id", "step_ms", "low_ms", "high_ms", "busy_ms", "launches")
    with out.open("w") as file:
        for line in answers:
            answer = json.loads(line)
            file.write(json.dumps({key: answer.get(key) for key in kept}) + "\n")


class Kind:
    """One model and its two passes."""

    def __init__(self, head: str, config: dict[str, typing.Any]) -> None:
        import torch
        import transformers

        self.torch, self.device = torch, "cuda" if torch.cuda.is_available() else "cpu"
        named = plain(config)
        made = transformers.AutoConfig.for_model(named.pop("model_type"), **named)
        self.model = getattr(transformers, f"AutoModelFor{head}").from_config(made).to(self.device, torch.bfloat16)
        if head == "ImageClassification":
            self.inputs = {"pixel_values": torch.randn(PICTURES, 3, 224, 224, device=self.device, dtype=torch.bfloat16)}
        else:
            tokens = torch.randint(5, 1000, (1, TOKENS), device=self.device)
            self.inputs = {"input_ids": tokens} | ({"labels": tokens} if head == "Seq2SeqLM" else {})

    def wait(self) -> None:
        if self.device == "cuda":
            self.torch.cuda.synchronize()

    def forward(self) -> None:
        with self.torch.no_grad():
            self.model(**self.inputs)

    def train(self) -> None:
        made = self.model(**self.inputs)
        (made.loss if "labels" in self.inputs else made.logits.float().mean()).backward()
        self.model.zero_grad(set_to_none=True)

    def clock(self, run: typing.Callable[[], None], times: int) -> float:
        for _ in range(3):
            run()
        taken = []
        for _ in range(times):
            self.wait()
            start = time.perf_counter()
            run()
            self.wait()
            taken.append(1e3 * (time.perf_counter() - start))
        return round(statistics.median(taken), 3)

    def launches(self, run: typing.Callable[[], None]) -> list[float]:
        profiler = self.torch.profiler
        with profiler.profile(activities=[profiler.ProfilerActivity.CUDA]) as trace:
            run()
            self.wait()
        kernels = [event for event in trace.events() if event.device_type == self.torch.autograd.DeviceType.CUDA]
        return [len(kernels), round(sum(event.device_time for event in kernels) / 1e3, 4)]


def parts(kind: Kind) -> dict[str, float]:
    """Microseconds of the host in the parts of a GPT-2 block."""
    torch, block = kind.torch, kind.model.transformer.h[0]
    kind.model.eval()
    x = torch.randn(1, TOKENS, WIDTH, device=kind.device, dtype=torch.bfloat16)
    wide = torch.randn(1, TOKENS, 4 * WIDTH, device=kind.device, dtype=torch.bfloat16)
    linear = torch.nn.Linear(WIDTH, WIDTH, device=kind.device, dtype=torch.bfloat16)
    calls: dict[str, typing.Callable[[], typing.Any]] = {
        "block": lambda: block(x), "attention": lambda: block.attn(x), "mlp": lambda: block.mlp(x), "norm": lambda: block.ln_1(x),
        "conv1d": lambda: block.mlp.c_fc(x), "gelu_new": lambda: block.mlp.act(wide), "dropout": lambda: block.mlp.dropout(x),
        "linear": lambda: linear(x), "add": lambda: x + x, "pow": lambda: torch.pow(x, 3.0), "times": lambda: 0.5 * x,
        "tanh": lambda: torch.tanh(x), "view": lambda: x.view(TOKENS, -1), "split": lambda: x.split(256, dim=2),
    }
    taken = {}
    for name, call in calls.items():
        for _ in range(20):
            call()
        kind.wait()
        start = time.perf_counter()
        for _ in range(200):
            call()
        taken[name] = round(1e6 * (time.perf_counter() - start) / 200, 2)
        kind.wait()
    return taken


def measure(out: pathlib.Path, seconds: float) -> None:
    end, kinds = time.time() + seconds, {}
    with out.open("a") as file:
        for turn in range(ROUNDS):
            for head, config in CASES:
                name = config["model_type"]
                if time.time() > end:
                    break
                row: dict[str, typing.Any] = {"name": name, "round": turn}
                try:
                    if name not in kinds:
                        kinds[name] = Kind(head, config)
                    kind = kinds[name]
                    kind.model.eval()
                    row["forward_ms"] = kind.clock(kind.forward, 14)
                    kind.model.train()
                    row["train_ms"] = kind.clock(kind.train, 8)
                    if turn == 0:
                        row["train_launches"] = kind.launches(kind.train)
                        kind.model.eval()
                        row["forward_launches"] = kind.launches(kind.forward)
                except Exception as fault:  # the next kind is measured all the same
                    row["error"] = repr(fault)[:300]
                file.write(json.dumps(row) + "\n")
                file.flush()
        for recorded in (False, True):
            with kinds["gpt2"].torch.set_grad_enabled(recorded):
                file.write(json.dumps({"parts": "gpt2", "recorded": recorded, "us": parts(kinds["gpt2"])}) + "\n")
                file.flush()


if __name__ == "__main__":
    if sys.argv[1] == "forecast":
        forecast(pathlib.Path(sys.argv[2]), sys.argv[3])
    else:
        measure(pathlib.Path(sys.argv[2]), float(sys.argv[3]) if len(sys.argv) > 3 else 120)
