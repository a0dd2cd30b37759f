"""What parts of GPT-2 and Llama cost the host, in place: host_parts.py OUT [SECONDS]

Twelve layers each, one prompt of 128 tokens, bf16, random weights. Sixteen rounds go through all cases in turn: the host's clock around a
call from an idle GPU, the median of five. A part's cost in place is what a pass takes less when the part returns its input: attention,
feed-forward, activation, norms, rotary embedding. Tokens one by one take FlashAttention, so that no plan is made. Then parts in loops of
their own, 200 calls each. Nothing is profiled.
"""
from __future__ import annotations

import collections.abc
import contextlib
import gc
import json
import pathlib
import statistics
import sys
import time
import typing

import torch
import torch.nn.functional as F
import transformers
from torch.nn.attention import SDPBackend, sdpa_kernel
from transformers.models.llama import modeling_llama

LAYERS, TOKENS, ROUNDS, VISITS, CALLS = 12, 128, 16, 5, 200
_LLAMA = {"hidden_size": 1024, "intermediate_size": 2816, "num_attention_heads": 16, "num_key_value_heads": 8, "vocab_size": 32000}
CONFIGS: dict[str, typing.Any] = {
    "gpt2": transformers.GPT2Config(n_layer=LAYERS, n_embd=768, n_head=12),
    "llama": transformers.LlamaConfig(num_hidden_layers=LAYERS, **_LLAMA),
}
Call = collections.abc.Callable[[], typing.Any]


def same(x: typing.Any, *_: typing.Any, **__: typing.Any) -> typing.Any:
    return x


def paired(hidden_states: typing.Any, *_: typing.Any, **__: typing.Any) -> tuple[typing.Any, None]:
    return hidden_states, None


def unturned(q: typing.Any, k: typing.Any, *_: typing.Any, **__: typing.Any) -> tuple[typing.Any, typing.Any]:
    return q, k


def clock(run: Call) -> float:
    run()
    taken = []
    for _ in range(VISITS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        run()
        taken.append(1e6 * (time.perf_counter() - start))
    torch.cuda.synchronize()
    return statistics.median(taken)


def loop(run: Call) -> float:
    for _ in range(20):
        run()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(CALLS):
        run()
    taken = 1e6 * (time.perf_counter() - start) / CALLS
    torch.cuda.synchronize()
    return taken


class Kind:
    """One model, its pass with and without its parts."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.model = transformers.AutoModelForCausalLM.from_config(CONFIGS[name]).to("cuda", torch.bfloat16).eval()
        self.ids = torch.randint(5, 1000, (1, TOKENS), device="cuda")
        self.blocks = self.model.transformer.h if name == "gpt2" else self.model.model.layers

    def without(self, part: str) -> list[tuple[typing.Any, str, typing.Any]]:
        old = self.name == "gpt2"
        if part == "rotary":
            return [(modeling_llama, "apply_rotary_pos_emb", unturned)]
        if part == "norms":
            names = ("ln_1", "ln_2") if old else ("input_layernorm", "post_attention_layernorm")
            return [(getattr(b, n), "forward", same) for b in self.blocks for n in names]
        if part == "attention":
            return [(b.attn if old else b.self_attn, "forward", paired) for b in self.blocks]
        if part == "act":
            return [(b.mlp.act if old else b.mlp.act_fn, "forward", same) for b in self.blocks]
        return [(b.mlp, "forward", same) for b in self.blocks]

    def run(self, cache: bool = True) -> float:
        return clock(lambda: self.model(self.ids, use_cache=cache, logits_to_keep=1))

    def run_without(self, part: str) -> float:
        with contextlib.ExitStack() as stack:
            for holder, name, value in self.without(part):
                was = vars(holder).get(name)
                setattr(holder, name, value)
                stack.callback(setattr, holder, name, was) if was else stack.callback(delattr, holder, name)
            return self.run()

    def token(self) -> float:
        cache, one = self.model(self.ids, use_cache=True).past_key_values, self.ids[:, :1]
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            return clock(lambda: self.model(one, past_key_values=cache, use_cache=True))


def half(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def loops(kinds: dict[str, Kind]) -> dict[str, Call]:
    g, m = kinds["gpt2"].blocks[0], kinds["llama"].blocks[0]
    x, y, wide, q = half(1, TOKENS, 768), half(1, TOKENS, 1024), half(1, TOKENS, 3072), half(1, 12, TOKENS, 64)
    turned = (half(1, TOKENS, 64), half(1, TOKENS, 64))
    linear = torch.nn.Linear(768, 768, device="cuda", dtype=torch.bfloat16)
    conv = torch.nn.Conv2d(16, 16, 3, padding=1, device="cuda", dtype=torch.bfloat16)
    group = torch.nn.GroupNorm(4, 16, device="cuda", dtype=torch.bfloat16)
    picture, window, ids = half(1, 16, 32, 32), half(1, 56, 56, 32), kinds["gpt2"].ids
    return {
        "block_gpt2": lambda: g(x), "block_llama": lambda: m(y, position_embeddings=turned),
        "attention_gpt2": lambda: g.attn(x), "mlp_gpt2": lambda: g.mlp(x), "mlp_llama": lambda: m.mlp(y),
        "attention_llama": lambda: m.self_attn(y, position_embeddings=turned, attention_mask=None),
        "conv1d": lambda: g.attn.c_proj(x), "linear": lambda: linear(x), "norm": lambda: g.ln_1(x), "rmsnorm": lambda: m.input_layernorm(y),
        "gelu_new": lambda: g.mlp.act(wide), "silu": lambda: m.mlp.act_fn(wide), "dropout": lambda: g.mlp.dropout(x),
        "sdpa": lambda: F.scaled_dot_product_attention(q, q, q, is_causal=True),
        "cache_made": lambda: transformers.DynamicCache(config=CONFIGS["gpt2"]),
        "cache_first": lambda: transformers.DynamicCache(config=CONFIGS["gpt2"]).update(q, q, 0),
        "empty_tensor": lambda: torch.tensor([], dtype=torch.bfloat16, device="cuda"), "cat": lambda: torch.cat([q, q], dim=-2),
        "add": lambda: x + x, "view": lambda: x.view(TOKENS, -1), "split": lambda: wide.split(1024, dim=2),
        "item_wait": lambda: (ids == ids).all().item(), "conv2d": lambda: conv(picture), "group_norm": lambda: group(picture),
        "roll": lambda: torch.roll(window, (-3, -3), (1, 2)), "pad": lambda: F.pad(window, (0, 0, 0, 2, 0, 2)),
        "windows": lambda: window.view(1, 8, 7, 8, 7, 32).permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, 49, 32),
        "interpolate": lambda: F.interpolate(picture, scale_factor=2.0), "silu_f": lambda: F.silu(picture),
        "softmax": lambda: wide.softmax(-1), "index": lambda: x[0][ids[0] % TOKENS],
    }


@torch.no_grad()
def main() -> None:
    until = time.monotonic() + float(sys.argv[2] if len(sys.argv) > 2 else 130)
    kinds = {name: Kind(name) for name in CONFIGS}
    cases: list[tuple[str, collections.abc.Callable[[], float]]] = []
    for name, kind in kinds.items():
        cases += [(f"{name} no cache", lambda k=kind: k.run(False)), (f"{name} cache", kind.run), (f"{name} token", kind.token)]
        parts = ("attention", "mlp", "act", "norms") + (("rotary",) if name == "llama" else ())
        cases += [(f"{name} without {part}", lambda k=kind, p=part: k.run_without(p)) for part in parts]
    cases += [(f"loop {name}", lambda c=call: loop(c)) for name, call in loops(kinds).items()]
    gc.collect()
    gc.freeze()
    took: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        for name, run in cases if time.monotonic() < until else ():
            took.setdefault(name, []).append(round(run(), 1))
    with pathlib.Path(sys.argv[1]).open("w") as out:
        versions = {"torch": torch.__version__, "transformers": transformers.__version__, "layers": LAYERS}
        out.write(json.dumps({"rounds": len(next(iter(took.values()))), **versions}) + "\n")
        for name, us in took.items():
            out.write(json.dumps({"case": name, "us": us}) + "\n")


if __name__ == "__main__":
    main()
