"""Fused attention over few tokens, on this machine's GPU: attention_short.py OUT [SECONDS]

Rows of data/measurements/h200/attention_short.csv.gz: `scaled_dot_product_attention` over 16 to 1,024 tokens, square
and across, heads of 16 to 128, 8 to 20,000 of them, forward and with the gradients of q, k and v, without a mask and
with four kinds of them (a learned one has its gradient too), by the backend that PyTorch picks and by flash and
memory-efficient alone. q, k and v lie as a projection leaves them, [batch, length, heads, dim]. `ms` is of all kernels
of a call, timed as the tables of families are (foretell/calibrate/timing.py: a CUDA graph of calls with operands that
rotate past the cache). Kernels are named on stdout for the first case of each kind. Cases are drawn by a fixed seed
until the seconds are over. `foretell fit` reads those without a mask by the backend that PyTorch picks.
"""

from __future__ import annotations

import contextlib
import csv
import json
import math
import pathlib
import random
import sys
import time
import typing

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.profiler import ProfilerActivity, profile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))  # operands and timing are calibrate's

from foretell.calibrate.operands import DTYPES, Operands
from foretell.calibrate.timing import BRISK, GraphTimer, Launch, Make

Case = dict[str, typing.Any]
COLUMNS = ("dtype", "pass", "batch", "heads", "kv_heads", "q_len", "kv_len", "head_dim", "causal", "mask", "backend",
           "ms", "ms_min", "ms_max")  # fmt: skip
LENGTHS = (16, 25, 32, 36, 49, 50, 64, 65, 77, 81, 96, 100, 128, 144, 145, 160, 192, 196, 197, 198, 224, 256, 257, 289,
           320, 384, 400, 448, 484, 512, 576, 577, 640, 729, 785, 900, 1024)  # fmt: skip
KEYS = (49, 64, 77, 100, 128, 154, 196, 197, 256, 300, 333, 384, 512, 577, 1500)  # of another sequence
DIMS = {16: 4, 24: 3, 32: 25, 40: 6, 48: 5, 64: 26, 72: 5, 80: 8, 88: 3, 96: 6, 112: 2, 128: 7}
HEADS = (1, 2, 3, 4, 6, 8, 12, 16, 20, 24)
KINDS = {("picked", "fwd", False): 32, ("picked", "fwd_bwd", False): 24, ("picked", "fwd", True): 12,
         ("picked", "fwd_bwd", True): 9, ("flash", "fwd", False): 5, ("flash", "fwd_bwd", False): 4,
         ("efficient", "fwd", False): 4, ("efficient", "fwd_bwd", False): 3, ("efficient", "fwd", True): 4,
         ("efficient", "fwd_bwd", True): 3}  # fmt: skip
MASKS = ("keys", "full", "heads", "batch")
BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "efficient": SDPBackend.EFFICIENT_ATTENTION}
MOST_ELEMENTS, MOST_SCORES, MOST_MASK = 2.5e8, 9e8, 4e8


def drawn(rng: random.Random) -> Case | None:
    backend, direction, masked = rng.choices(list(KINDS), list(KINDS.values()))[0]
    across = rng.random() < 0.25
    q_len = rng.choice(LENGTHS)
    kv_len = rng.choice(KEYS) if across else q_len
    if across:
        q_len = rng.choice((*LENGTHS, 2304, 4096))
    dim = rng.choices(list(DIMS), list(DIMS.values()))[0]
    heads, total = rng.choice(HEADS), math.exp(rng.uniform(math.log(8), math.log(20000)))
    batch = max(1, round(total / heads))
    mask = rng.choice(MASKS) if masked else "none"
    if direction == "fwd_bwd" and mask == "heads" and rng.random() < 0.5:
        mask = "learned"
    causal = not masked and not across and rng.random() < 0.15
    count = batch * heads
    stored = count if mask == "batch" else 1
    pairs = q_len * kv_len
    if count * (q_len + kv_len) * dim > MOST_ELEMENTS or count * pairs > MOST_SCORES or stored * pairs > MOST_MASK:
        return None
    return {"dtype": "fp16" if rng.random() < 0.12 else "bf16", "pass": direction, "batch": batch, "heads": heads,
            "kv_heads": heads, "q_len": q_len, "kv_len": kv_len, "head_dim": dim, "causal": int(causal), "mask": mask,
            "backend": backend}  # fmt: skip


def build(case: Case, operands: Operands) -> Make:
    dtype, batch, heads, dim = DTYPES[case["dtype"]], case["batch"], case["heads"], case["head_dim"]
    q_len, kv_len, causal = case["q_len"], case["kv_len"], bool(case["causal"])
    shape = {"keys": (batch, 1, 1, kv_len), "full": (1, 1, q_len, kv_len), "heads": (1, heads, q_len, kv_len),
             "learned": (1, heads, q_len, kv_len), "batch": (batch, heads, q_len, kv_len)}  # fmt: skip

    def make() -> Launch:
        q, k, v = (operands.take(dtype, batch, n, heads, dim).transpose(1, 2) for n in (q_len, kv_len, kv_len))
        mask = operands.take(dtype, *shape[case["mask"]]) if case["mask"] != "none" else None
        if case["pass"] == "fwd":
            return lambda: F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)
        grad = operands.take(dtype, batch, q_len, heads, dim).transpose(1, 2)
        leaves = [x.detach().requires_grad_() for x in (q, k, v)]
        if case["mask"] == "learned" and mask is not None:
            mask = mask.detach().requires_grad_()
            leaves.append(mask)

        def forward_backward() -> tuple[torch.Tensor, ...]:
            with torch.enable_grad():
                out = F.scaled_dot_product_attention(*leaves[:3], attn_mask=mask, is_causal=causal)
                return torch.autograd.grad(out, leaves, grad)

        return forward_backward

    return make


def named(launch: Launch) -> dict[str, float]:
    """The kernels of one call, in us."""
    launch()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as seen:
        launch()
        torch.cuda.synchronize()
    took: dict[str, float] = {}
    for event in seen.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            name = event.name.replace("void ", "")[:90]
            took[name] = round(took.get(name, 0) + event.device_time, 2)
    return took


def kind_of(case: Case) -> tuple[typing.Any, ...]:
    keys = case["kv_len"]
    return (case["backend"], case["pass"], case["mask"], -(-case["head_dim"] // 32), keys % 2, keys % 8 == 0,
            case["q_len"] > 128)  # fmt: skip


def measured(case: Case, timer: GraphTimer, seen: set[tuple[typing.Any, ...]]) -> Case:
    make = build(case, timer.operands)
    sample = timer.time(make)
    if kind_of(case) not in seen:
        seen.add(kind_of(case))
        print(json.dumps(case | {"kernels": named(make())}), flush=True)
    return case | {"ms": f"{sample.ms:.6f}", "ms_min": f"{sample.ms_min:.6f}", "ms_max": f"{sample.ms_max:.6f}"}


def main() -> int:
    seconds, began = float(sys.argv[2]) if len(sys.argv) > 2 else 215.0, time.monotonic()
    torch.manual_seed(1)
    torch.set_grad_enabled(False)
    rng = random.Random(18)
    seen: set[tuple[typing.Any, ...]] = set()
    timer = GraphTimer(Operands(torch.device("cuda"), 8 << 30), BRISK)
    with pathlib.Path(sys.argv[1]).open("w", encoding="utf-8", newline="") as out:
        table = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        table.writeheader()
        while time.monotonic() - began < seconds:
            case = drawn(rng)
            if not case:
                continue
            alone = case["backend"] in BACKENDS
            with sdpa_kernel(BACKENDS[case["backend"]]) if alone else contextlib.nullcontext():
                table.writerow(measured(case, timer, seen))
            timer.reclaim()
    return 0


if __name__ == "__main__":
    sys.exit(main())
