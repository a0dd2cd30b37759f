"""FLOPs, bytes and a rough time of a request, so that a run can plan without a predictor.

Rough is enough: it decides what is too long to measure and what to compare a measurement with when nobody forecasts.
"""

from __future__ import annotations

from dataclasses import dataclass

from .cell import Request

BYTES = {"bf16": 2, "fp16": 2, "fp32": 4, "tf32": 4, "fp8": 1}
# Rates over the bf16 one, as the data centre GPUs of the last generations have them.
RATE = {"bf16": 1.0, "fp16": 1.0, "fp8": 1.8, "tf32": 0.45, "fp32": 0.065}
LAUNCH_MS = 0.002
OPTIMIZER_BYTES = {"adamw": 28.0, "sgd": 12.0, "sgd_momentum": 20.0, "clip": 12.0}  # of fp32, a parameter
ROW_PASSES = {"embedding": 2.0, "sum_rows": 1.0, "sum_cols": 1.0, "mean_all": 1.0, "argmax": 1.0}


def work_of(request: Request) -> tuple[float, float]:
    """(flops of the matrix units, bytes moved)"""
    op, size = request["op"], float(BYTES[request["dtype"]])
    if op in ("gemm", "bmm"):
        b, m, n, k = request.get("b", 1), request["m"], request["n"], request["k"]
        return 2.0 * b * m * n * k, b * (size * (m * k + n * k) + max(size, 2.0) * m * n)
    if op == "attention":
        heads, q, kv, d = request["batch"] * request["heads"], request["q_len"], request["kv_len"], request["head_dim"]
        flops = 4.0 * heads * q * kv * d * (0.5 if request["causal"] and q > 1 else 1.0)
        moved = size * d * (2.0 * heads * q + 2.0 * request["batch"] * request["kv_heads"] * kv)
        return (3.5 * flops, 3.0 * moved) if request["pass"] == "fwd_bwd" else (flops, moved)
    if op == "conv2d":
        n, c, k, r = request["n"], request["c"], request["k"], request["r"]
        out = (request["h"] + 2 * request["pad"] - r) // request["stride"] + 1
        flops = 2.0 * n * k * out * out * c * r * request["s"]
        moved = size * (n * c * request["h"] * request["w"] + n * k * out * out + k * c * r * r)
        return (2.0 * flops, 3.0 * moved) if request["pass"] == "bwd" else (flops, moved)
    if op == "moe":
        rows, wide = request["tokens"] * request["topk"], 3.0 * request["hidden"] * request["inter"]
        active = min(request["experts"], rows)
        return 2.0 * rows * wide, size * (active * wide + rows * (2.0 * request["hidden"] + 3.0 * request["inter"]))
    if op == "optimizer":
        kind = max((name for name in OPTIMIZER_BYTES if request["name"].startswith(name)), key=len)
        passes = 2.0 if "foreach" in request["name"] else 1.0
        return 0.0, request["params"] * OPTIMIZER_BYTES[kind] * size / 4.0 * passes
    if op == "elementwise":
        return 0.0, size * request["numel"] * (request["inputs"] + 1.0)
    cells = float(request["rows"]) * request["cols"]
    if op.startswith("quantize"):
        return 0.0, cells * (4.0 if op == "quantize_cast" else 16.0)
    table = request.get("vocab", 0) * request["cols"] * size if request["pass"] == "bwd" else 0.0
    return 0.0, size * cells * ROW_PASSES.get(op, 2.0) * (1.5 if request["pass"] == "bwd" else 1.0) + table


def footprint_of(request: Request) -> float:
    """Bytes that measuring it takes, with a second copy of the operands."""
    op, (_, moved) = request["op"], work_of(request)
    if op == "optimizer":
        return float(5.0 * request["params"] * BYTES[request["dtype"]])
    return 2.5 * moved


@dataclass
class Roofline:
    """A time from two rates. They begin low, so that the first points of a slow GPU do not take seconds, and are raised
    by what is measured."""

    tflops: float = 25.0  # of bf16
    gbps: float = 250.0

    def ms(self, request: Request) -> float:
        flops, moved = work_of(request)
        rate = self.tflops * RATE[request["dtype"]] * 1e9
        return LAUNCH_MS + max(flops / rate, moved / (self.gbps * 1e6))

    def learn(self, request: Request, ms: float) -> None:
        """A measurement faster than the roof raises it."""
        flops, moved = work_of(request)
        if ms < 0.02 or request["op"] not in ("gemm", "elementwise"):
            return
        if request["op"] == "gemm" and flops / RATE[request["dtype"]] / ms / 1e9 > self.tflops:
            self.tflops = flops / RATE[request["dtype"]] / ms / 1e9
        if request["op"] == "elementwise" and moved > 2e8 and moved / ms / 1e6 > self.gbps:
            self.gbps = moved / ms / 1e6
