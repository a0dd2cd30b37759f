"""What the host takes to issue small operators, through PyTorch. Kernels are so small that the GPU never holds it up."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from .host import NODE

ROUNDS, CALLS, WARM_UP = 7, 300, 50  # at most 300 calls wait: fewer than a launch queue holds
NODES = 1000


def operators(device: str = "cuda") -> dict[str, Callable[[], Any]]:
    """Named as in host.LOOPS_US."""
    half = torch.bfloat16
    a, b = (torch.randn(128, 128, device=device, dtype=half) for _ in range(2))
    out, bias = torch.empty_like(a), torch.randn(128, device=device, dtype=half)
    q, k, v = (torch.randn(1, 4, 64, 64, device=device, dtype=half) for _ in range(3))
    table, ids = torch.randn(1024, 128, device=device, dtype=half), torch.zeros(1, 64, dtype=torch.long, device=device)
    return {
        "add": lambda: a + b,
        "add_out": lambda: torch.add(a, b, out=out),
        "mm": lambda: torch.mm(a, b),
        "linear": lambda: F.linear(a, b, bias),
        "layernorm": lambda: F.layer_norm(a, (128,), bias, bias),
        "softmax": lambda: torch.softmax(a, -1),
        "gelu": lambda: F.gelu(a),
        "view": lambda: a.view(64, 256),
        "transpose": lambda: a.transpose(0, 1),
        "sdpa": lambda: F.scaled_dot_product_attention(q, k, v),
        "embedding": lambda: F.embedding(ids, table),
    }


def loop_us(call: Callable[[], Any], wait: Callable[[], Any]) -> float:
    """Median over rounds; the host's time alone, the GPU is waited for between rounds."""
    for _ in range(WARM_UP):
        call()
    rounds = []
    for _ in range(ROUNDS):
        wait()
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        rounds.append((time.perf_counter() - start) / CALLS)
    wait()
    return 1e6 * statistics.median(rounds)


def node_us() -> float:
    """From node to node of a replayed graph of small kernels."""
    x = torch.zeros(256, device="cuda")
    graph = torch.cuda.CUDAGraph()
    torch.add(x, 1.0, out=x)
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        for _ in range(NODES):
            torch.add(x, 1.0, out=x)
    rounds = []
    for _ in range(ROUNDS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        graph.replay()
        torch.cuda.synchronize()
        rounds.append((time.perf_counter() - start) / NODES)
    return 1e6 * statistics.median(rounds)


def measure() -> dict[str, float]:
    """Microseconds by name. An operator that this build or GPU lacks is left out."""
    found: dict[str, float] = {}
    with torch.no_grad():
        for name, call in operators().items():
            try:
                found[name] = loop_us(call, torch.cuda.synchronize)
            except (RuntimeError, NotImplementedError):
                continue
        try:
            found[NODE] = node_us()
        except RuntimeError:
            pass
    return found
