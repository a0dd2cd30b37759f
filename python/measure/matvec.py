"""Decoding one token under torch.compile: whole steps, and products of few rows.

    python matvec.py OUT SECONDS        on a GPU; JSON lines

gpt-fast, torchao's and torchchat's scripts turn on Inductor's coordinate descent (torch._inductor.config.coordinate_descent_tuning),
as mode "max-autotune" does. Then a product of one row is not cuBLAS's: torch/_inductor/decomposition.py writes it as a product and a
sum, which Inductor makes a kernel of its own. Here layers of Llama 2 7B and Mixtral with a preallocated cache decode with and
without it, and single products are timed over weights that do not fit into L2.
"""

from __future__ import annotations

import json
import sys
import time

import torch
import torch._inductor.config as inductor
from torch import nn
from torch.nn import functional as F
from torch.profiler import ProfilerActivity, profile

DEVICE, SLOTS = "cuda", 256


class Int8(nn.Module):
    """Weights of 8 bits with a scale for each row, widened inside of the product."""

    def __init__(self, k: int, n: int) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randint(-128, 127, (n, k), dtype=torch.int8, device=DEVICE))
        self.register_buffer("scales", torch.rand(n, device=DEVICE, dtype=torch.bfloat16) / 1000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, self.weight.to(dtype=x.dtype)) * self.scales


class Int4(nn.Module):
    """Weights of 4 bits through tinygemm, groups of 32."""

    def __init__(self, k: int, n: int) -> None:
        super().__init__()
        packed = torch.randint(0, 255, (n, k // 2), dtype=torch.uint8, device=DEVICE)
        self.register_buffer("weight", torch.ops.aten._convert_weight_to_int4pack(packed, 8))
        self.register_buffer("scales", torch.rand(k // 32, n, 2, device=DEVICE, dtype=torch.bfloat16) / 1000)
        self.n = n

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = x.reshape(-1, x.shape[-1])
        return torch.ops.aten._weight_int4pack_mm(rows, self.weight, 32, self.scales).reshape(*x.shape[:-1], self.n)


def linear(k: int, n: int, weights: str) -> nn.Module:
    if weights == "int8":
        return Int8(k, n)
    if weights == "int4":
        return Int4(k, n)
    return nn.Linear(k, n, bias=False, device=DEVICE, dtype=torch.bfloat16)


class Norm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width, device=DEVICE, dtype=torch.bfloat16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)).type_as(x) * self.weight


class Experts(nn.Module):
    """Two of eight, whose weights are taken out of the stack by index."""

    def __init__(self, width: int, inner: int, weights: str) -> None:
        super().__init__()
        self.gate = linear(width, 8, "bf16")
        self.narrow = weights == "int8"
        for name, shape in (("w1", (8, inner, width)), ("w2", (8, width, inner)), ("w3", (8, inner, width))):
            if self.narrow:
                self.register_buffer(name, torch.randint(-128, 127, shape, dtype=torch.int8, device=DEVICE))
                self.register_buffer("scales" + name, torch.rand(shape[:2], device=DEVICE, dtype=torch.bfloat16) / 1000)
            else:
                self.register_buffer(name, torch.randn(shape, device=DEVICE, dtype=torch.bfloat16) / 64)

    def take(self, name: str, index: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | float]:
        one = getattr(self, name)[index]
        return (one.to(torch.bfloat16), getattr(self, "scales" + name)[index]) if self.narrow else (one, 1.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = x.view(-1, x.shape[-1])
        share, index = torch.topk(F.softmax(self.gate(rows), dim=-1), 2, dim=-1)
        share = share / share.sum(-1, keepdim=True)
        (w1, s1), (w3, s3), (w2, s2) = (self.take(name, index) for name in ("w1", "w3", "w2"))
        inner = F.silu(torch.einsum("ti,taoi->tao", rows, w1) * s1) * (torch.einsum("ti,taoi->tao", rows, w3) * s3)
        out = torch.einsum("tao,taio->tai", inner, w2) * s2
        return torch.einsum("tai,ta->ti", out, share).view_as(x)


class Layer(nn.Module):
    def __init__(self, width: int, heads: int, kv: int, inner: int, batch: int, weights: str, experts: bool) -> None:
        super().__init__()
        self.heads, self.kv, self.head = heads, kv, width // heads
        self.norm, self.norm2 = Norm(width), Norm(width)
        self.qkv = linear(width, (heads + 2 * kv) * self.head, weights)
        self.out = linear(width, width, weights)
        self.experts = Experts(width, inner, weights) if experts else None
        if not experts:
            self.w1, self.w3, self.w2 = linear(width, inner, weights), linear(width, inner, weights), linear(inner, width, weights)
        shape = (batch, kv, SLOTS, self.head)
        self.register_buffer("keys", torch.zeros(shape, device=DEVICE, dtype=torch.bfloat16))
        self.register_buffer("values", torch.zeros(shape, device=DEVICE, dtype=torch.bfloat16))

    def turn(self, x: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
        pairs = x.float().reshape(*x.shape[:-1], -1, 2)
        c, s = angles[..., 0], angles[..., 1]
        return torch.stack([pairs[..., 0] * c - pairs[..., 1] * s, pairs[..., 1] * c + pairs[..., 0] * s], -1).flatten(3).type_as(x)

    def forward(self, x: torch.Tensor, angles: torch.Tensor, mask: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        batch = x.shape[0]
        q, k, v = self.qkv(self.norm(x)).split([self.heads * self.head, self.kv * self.head, self.kv * self.head], -1)
        q = self.turn(q.view(batch, 1, self.heads, self.head), angles).transpose(1, 2)
        k = self.turn(k.view(batch, 1, self.kv, self.head), angles).transpose(1, 2)
        self.keys[:, :, at] = k
        self.values[:, :, at] = v.view(batch, 1, self.kv, self.head).transpose(1, 2)
        keys, values = (t.repeat_interleave(self.heads // self.kv, dim=1) for t in (self.keys, self.values))
        y = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)
        x = x + self.out(y.transpose(1, 2).reshape(batch, 1, -1))
        y = self.norm2(x)
        return x + (self.experts(y) if self.experts else self.w2(F.silu(self.w1(y)) * self.w3(y)))


class Model(nn.Module):
    def __init__(self, layers: int, vocab: int, *shape: int, batch: int, weights: str, experts: bool) -> None:
        super().__init__()
        width, heads, kv, inner = shape
        self.embed = nn.Embedding(vocab, width, device=DEVICE, dtype=torch.bfloat16)
        self.layers = nn.ModuleList(Layer(width, heads, kv, inner, batch, weights, experts) for _ in range(layers))
        self.norm, self.head = Norm(width), linear(width, vocab, weights)
        self.register_buffer("angles", torch.rand(SLOTS, width // heads // 2, 2, device=DEVICE))
        self.register_buffer("causal", torch.tril(torch.ones(SLOTS, SLOTS, dtype=torch.bool, device=DEVICE)))

    def forward(self, tokens: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        x, angles, mask = self.embed(tokens), self.angles[at][None, :, None], self.causal[None, None, at]
        for layer in self.layers:
            x = layer(x, angles, mask, at)
        return self.head(self.norm(x))


def wall(run, times: int = 60) -> float:
    for _ in range(5):
        run()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(times):
        run()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / times * 1e3


def kernels(run) -> list[tuple[str, int, float]]:
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        for _ in range(3):
            run()
        torch.cuda.synchronize()
    found: dict[str, list[float]] = {}
    for event in seen.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            one = found.setdefault(event.name[:90], [0, 0.0])
            one[0] += 1
            one[1] += event.device_time
    return sorted(((name, int(n) // 3, round(us / 3, 2)) for name, (n, us) in found.items()), key=lambda each: -each[2])


def step(case: dict) -> dict:
    torch._dynamo.reset()
    inductor.coordinate_descent_tuning = case["tuned"]
    model = Model(case["layers"], case["vocab"], *case["shape"], batch=case["batch"], weights=case["weights"], experts=case["experts"])
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    tokens, at = torch.zeros(case["batch"], 1, dtype=torch.long, device=DEVICE), torch.tensor([105], device=DEVICE)
    run = model
    if case["mode"] == "graph":
        stream = torch.cuda.Stream()
        with torch.no_grad(), torch.cuda.stream(stream):
            for _ in range(3):
                model(tokens, at)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.graph(graph):
            model(tokens, at)
        call = graph.replay
    else:
        compiled = torch.compile(run, mode=case["mode"], fullgraph=True)

        def call() -> None:
            with torch.no_grad():
                compiled(tokens, at)

        for _ in range(4):
            call()
    found = kernels(call)
    return {**case, "ms": round(wall(call), 4), "busy_ms": round(sum(us for _, _, us in found) / 1e3, 4), "kernels": found[:24]}


def product(m: int, n: int, k: int, tuned: bool, weights: str) -> dict:
    torch._dynamo.reset()
    inductor.coordinate_descent_tuning = tuned
    copies = max(2, min(24, int(200e6 / (n * k))))
    layers = [linear(k, n, weights) for _ in range(copies)]
    x = torch.randn(m, k, device=DEVICE, dtype=torch.bfloat16)

    def many(x: torch.Tensor) -> list[torch.Tensor]:
        return [layer(x) for layer in layers]

    compiled = torch.compile(many, fullgraph=True)
    with torch.no_grad():
        for _ in range(3):
            compiled(x)
        found = kernels(lambda: compiled(x))
    us = sum(total for _, _, total in found) / copies
    return {"m": m, "n": n, "k": k, "tuned": tuned, "weights": weights, "us": round(us, 3), "launches": sum(c for _, c, _ in found) / copies, "kernel": found[0][0]}


def main() -> None:
    out, until = sys.argv[1], time.monotonic() + float(sys.argv[2])
    llama = {"layers": 8, "vocab": 32000, "shape": (4096, 32, 32, 11008), "experts": False}
    mixtral = {"layers": 4, "vocab": 32000, "shape": (4096, 32, 8, 14336), "experts": True}
    cases: list = []
    for tuned, mode in ((True, "reduce-overhead"), (False, "reduce-overhead"), (False, "default"), (False, "graph")):
        for weights in ("bf16", "int8", "int4"):
            if weights != "bf16" and mode in ("default", "graph"):
                continue
            cases.append({**llama, "batch": 1, "weights": weights, "mode": mode, "tuned": tuned})
        for weights in ("bf16", "int8") if mode == "reduce-overhead" else ("bf16",):
            cases.append({**mixtral, "batch": 1, "weights": weights, "mode": mode, "tuned": tuned})
    sizes = [(4096, 4096), (12288, 4096), (11008, 4096), (4096, 11008), (32000, 4096), (1024, 4096), (512, 4096), (1536, 4096), (4096, 512),
             (4096, 1376), (1376, 4096), (8192, 8192), (28672, 8192), (8192, 28672), (2048, 2048), (8192, 2048), (1024, 8192), (8192, 1024), (896, 896), (4864, 896)]
    for weights, tuned in (("bf16", True), ("bf16", False), ("int8", True), ("int8", False)):
        cases += [(1, n, k, tuned, weights) for n, k in (sizes if weights == "bf16" else sizes[:12])]
    cases += [{**llama, "batch": batch, "weights": "bf16", "mode": "reduce-overhead", "tuned": True} for batch in (2, 8)]
    cases += [(2, n, k, True, "bf16") for n, k in sizes[:6]]
    with open(out, "w") as file:
        for case in cases:
            if time.monotonic() > until:
                break
            begin = time.monotonic()
            try:
                found = step(case) if isinstance(case, dict) else product(*case)
            except Exception as error:  # the others are worth having
                found = {"case": case, "error": repr(error)[:300]}
            torch.cuda.empty_cache()
            file.write(json.dumps({**found, "took_s": round(time.monotonic() - begin, 1)}) + "\n")
            file.flush()


if __name__ == "__main__":
    with torch.inference_mode(False):
        main()
