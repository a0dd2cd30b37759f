"""What torch.compile is given, and products in fp8: four blocks of Llama 3 8B on one GPU: compile_scope.py OUT

`eager` compiles nothing; `layers` every block by itself, so that the loss runs as written (how FSDP is used with a compiler);
`layers_loss` the loss too, by itself (torchtitan since 2025); `model` the whole model with its loss. fp8 rows replace the linear
layers of the blocks, not the head, by products of dynamically scaled tensors, as torchao trains: one scale per tensor, gradients
in e5m2, operands cast again in the backward pass. `kernels` are a profiled step's, in microseconds, the costliest first.
"""
from __future__ import annotations

import gc
import json
import pathlib
import sys
import typing

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from steps import timed_step

VOCAB = 128256
E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2


class Case(typing.NamedTuple):
    layers: int
    batch: int
    seq: int
    scope: str
    fp8: bool
    attention: str


def scaled(x: torch.Tensor, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """x in 8 bits, and what to multiply it by."""
    largest = torch.finfo(dtype).max
    scale = (largest / x.abs().amax().float().clamp(min=1e-12)).float()
    return (x.float() * scale).clamp(-largest, largest).to(dtype), scale.reciprocal()


def product(a: torch.Tensor, a_type: torch.dtype, b: torch.Tensor, b_type: torch.dtype) -> torch.Tensor:
    """a @ b in 8 bits; rows of a and columns of b are contiguous, as the units want them."""
    a8, a_scale = scaled(a, a_type)
    b8, b_scale = scaled(b, b_type)
    return torch._scaled_mm(a8.contiguous(), b8.t().contiguous().t(), scale_a=a_scale, scale_b=b_scale,
                            out_dtype=torch.bfloat16, use_fast_accum=True)


class Fp8Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: typing.Any, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x, weight)
        return product(x, E4M3, weight.t(), E4M3)

    @staticmethod
    def backward(ctx: typing.Any, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x, weight = ctx.saved_tensors
        return product(gradient, E5M2, weight, E4M3), product(gradient.t(), E5M2, x, E4M3)


class Linear(torch.nn.Module):
    def __init__(self, weight: torch.nn.Parameter) -> None:
        super().__init__()
        self.weight = weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return Fp8Linear.apply(x.reshape(-1, x.shape[-1]), self.weight).reshape(*x.shape[:-1], -1)


def replace_linears(module: torch.nn.Module) -> None:
    for name, child in module.named_children():
        if isinstance(child, torch.nn.Linear):
            setattr(module, name, Linear(child.weight))
        else:
            replace_linears(child)


def loss_of(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(0, 1))


def build(case: Case) -> torch.nn.Module:
    config = LlamaConfig(hidden_size=4096, intermediate_size=14336, num_hidden_layers=case.layers, num_attention_heads=32,
                         num_key_value_heads=8, vocab_size=VOCAB, max_position_embeddings=32768, tie_word_embeddings=False,
                         attn_implementation="sdpa", use_cache=False)
    with torch.device("cuda"):
        model = LlamaForCausalLM(config).train().to(torch.bfloat16)
    if case.fp8:
        replace_linears(model.model.layers)
    if case.scope.startswith("layers"):
        for i, layer in enumerate(model.model.layers):
            model.model.layers[i] = torch.compile(layer)
    return model


def stepper(case: Case) -> typing.Callable[[], list[float]]:
    model = build(case)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    tokens = torch.randint(0, VOCAB, (case.batch, case.seq), device="cuda")
    loss = torch.compile(loss_of) if case.scope == "layers_loss" else loss_of
    whole = lambda: loss(model(input_ids=tokens).logits, tokens)
    forward = torch.compile(whole) if case.scope == "model" else whole
    backends = {"flash": [torch.nn.attention.SDPBackend.FLASH_ATTENTION],
                "cudnn": [torch.nn.attention.SDPBackend.CUDNN_ATTENTION]}.get(case.attention)

    def chosen() -> list[float]:
        if backends is None:
            return timed_step(forward, optimizer)
        with torch.nn.attention.sdpa_kernel(backends):
            return timed_step(forward, optimizer)

    return chosen


def kernels(step: typing.Callable[[], list[float]]) -> list:
    """[name, launches, microseconds] of one step's kernels."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        step()
    rows = [(e.key[:120], e.count, round(e.self_device_time_total)) for e in profile.key_averages()]
    return sorted((r for r in rows if r[2] > 0), key=lambda r: -r[2])[:40]


def measure(case: Case) -> dict:
    gc.collect()
    torch.cuda.empty_cache()
    torch._dynamo.reset()
    step = stepper(case)
    for _ in range(3):
        step()
    torch.cuda.reset_peak_memory_stats()
    ms, forward, backward, update = sorted(step() for _ in range(5))[2]
    row = {**case._asdict(), "ms": ms, "fw_ms": forward, "bw_ms": backward, "opt_ms": update,
           "peak_bytes": torch.cuda.max_memory_allocated(), "reserved_bytes": torch.cuda.max_memory_reserved()}
    return {**row, "kernels": kernels(step)}


def cases() -> list[Case]:
    scopes = ("eager", "layers", "layers_loss", "model")
    return ([Case(4, 2, 8192, scope, False, "sdpa") for scope in scopes]
            + [Case(4, 8, 2048, scope, False, "sdpa") for scope in scopes[:2]]
            + [Case(4, 2, 8192, "layers", False, kind) for kind in ("flash", "cudnn")]
            + [Case(4, 2, 8192, scope, True, "sdpa") for scope in scopes[1:3]]
            + [Case(4, 8, 2048, "layers", True, "sdpa")])


def main() -> None:
    with pathlib.Path(sys.argv[1]).open("a") as out:
        for case in cases():
            try:
                row = measure(case)
            except Exception as error:
                row = {**case._asdict(), "error": str(error)[:500]}
            out.write(json.dumps(row) + "\n")
            out.flush()


if __name__ == "__main__":
    main()
