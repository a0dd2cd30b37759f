"""Drawn convolutions under the profiler: which kernels the library takes, and for how long.

    python profiled.py SEED SECONDS out.csv            as networks have them, and by powers of two
    python profiled.py SEED SECONDS out.csv points     filters of one pixel four times in five, then clips, signals, dilated

A graph times a layer well in a twentieth of a second; the profiler times it passably in a hundredth, and names its
kernels. 120 layers share a session. Each is called once to let the library choose, then three times between two marks,
with L2 overwritten before each where its operands exceed 5 MB; of every kernel the fastest of the three counts. Groups
run apart on streams of their own: the span of a call is an upper bound of its time, the sum of its kernels and half a
microsecond between them another.

Several of these may run beside each other, which is how data/measurements/h200/layers.csv.gz came about: six at once,
with an earlier form of this script, a fifth of the rows by two calls and warm.
Layers above 1 ms or 100 MB, which waited for each other, and those of groups were left out of it.
"""

from __future__ import annotations

import csv
import json
import math
import os
import random
import re
import sys
import tempfile
import time
from typing import Any

import torch
from convolutions import COLUMNS, build_convolution, outer, sizes
from family import Case, choice, log_uniform, multiple, pick
from layers import BATCHES, SIDES, WIDTHS, draw_layer, near
from torch.profiler import ProfilerActivity, profile

from foretell.calibrate.operands import Operands

CALLS, TOGETHER, GAP_US, COLD_BYTES = 3, 120, 0.5, 5e6
MAX_ELEMENTS, MAX_FLOP = 1.5e8, 1.5e12
MARK = "bitwise_not"
TILES = (r"tilesize(\d+)x(\d+)x(\d+)", r"_(\d+)x(\d+)_(\d+)x\d+_", r"GemmShapeILi(\d+)ELi(\d+)ELi(\d+)E")

OTHERS = {"fft": re.compile("fft"), "wino": re.compile("winograd"), "legacy": re.compile("conv|grad|gemm")}

Kernel = tuple[str, float, float]  # name, microseconds, when it began


def draw_power(rng: random.Random) -> Case:
    """As dense.py draws them: the ImageNet halving series, channels by powers of two."""
    side, taps = choice(rng, [7, 14, 28, 56, 112, 224]), choice(rng, [1, 1, 3, 3, 5, 7])
    return {
        "kind": "dense",
        "dtype": "bf16",
        "layout": pick(rng, {"nhwc": 2.0, "nchw": 1.0}),
        "pass": pick(rng, {"fwd": 3.0, "bwd": 2.0}),
        "benchmark": 0,
        "n": choice(rng, [1, 8, 16, 32, 64, 128]),
        "c": choice(rng, [3, 16, 32, 64, 128, 256, 512, 1024, 2048]),
        "k": choice(rng, [16, 32, 64, 128, 256, 512, 1024, 2048]),
        "groups": 1,
        "size": f"{side}x{side}",
        "filter": f"{taps}x{taps}",
        "stride": choice(rng, [1, 1, 2]),
        "pad": taps // 2,
        "dilation": 1,
    }


def draw_point(rng: random.Random) -> Case:
    """A product: channels by powers of two, as networks have them, or any."""
    c, k, side = choice(rng, WIDTHS), 0, choice(rng, SIDES)
    kind = pick(rng, {"power": 25.0, "network": 55.0, "eights": 14.0, "any": 6.0})
    if kind == "power":
        c, k, side = 2 ** rng.randint(4, 11), 2 ** rng.randint(4, 11), choice(rng, [7, 14, 28, 56, 112, 224])
    elif kind == "network":
        k = near(c * pick(rng, {0.25: 2.0, 0.5: 2.0, 1: 3.0, 2: 2.5, 4: 2.0, 0.17: 1.0, 6: 1.0}))
    else:
        c, k = (multiple(log_uniform(rng, 8, 5000), 8 if kind == "eights" else 1) for _ in range(2))
        side = log_uniform(rng, 1, 400)
    return {
        "kind": "dense",
        "dtype": "bf16",
        "layout": pick(rng, {"nhwc": 11.0, "nchw": 9.0}),
        "pass": pick(rng, {"fwd": 45.0, "bwd": 40.0, "input": 7.0, "filter": 8.0}),
        "benchmark": 0,
        "n": choice(rng, BATCHES),
        "c": c,
        "k": k,
        "groups": 1,
        "size": f"{side}x{side}",
        "filter": "1x1",
        "stride": 1,
        "pad": "0x0",
        "dilation": 1,
    }


def draw_rare(rng: random.Random) -> Case | None:
    """Clips, signals and dilated filters of one group."""
    case = draw_layer(rng)
    rare = case and case["groups"] == 1 and (case["kind"] in ("one", "three") or case["dilation"] > 1)
    return case if rare else None


def draw(rng: random.Random, odds: str) -> Case | None:
    if odds == "points":
        case = draw_point(rng) if rng.random() < 0.3 else draw_rare(rng)  # which is there once in fourteen
    else:
        case = draw_layer(rng) if rng.random() < 0.6 else draw_power(rng)
    if case is None or min(outer(case)) < 1:
        return None
    if case["pass"] == "bwd" and rng.random() < 0.2:
        case["pass"] = choice(rng, ["input", "filter"])
    inner, out = math.prod(sizes(case["size"])), math.prod(outer(case))
    places = inner if case["kind"] == "transposed" else out
    flop = 2.0 * case["n"] * places * case["k"] * case["c"] // case["groups"] * math.prod(sizes(case["filter"]))
    largest = case["n"] * max(case["c"] * inner, case["k"] * out)
    return None if largest > MAX_ELEMENTS or flop > MAX_FLOP else case


def main_kernel(kernels: list[Kernel]) -> str:
    """The generation and tile of the longest kernel that has one, or what else computes."""
    for name, _, _ in sorted(kernels, key=lambda kernel: -kernel[1]):
        for pattern in TILES:
            if found := re.search(pattern, name):
                kind = "cutlass" if "cutlass" in name else "gemm" if "implicit" not in name else name[:4]
                return f"{kind}_{'x'.join(found.groups())}"
    names = " ".join(name for name, _, _ in kernels).lower()
    return next((kind for kind in ("fft", "wino", "legacy") if OTHERS[kind].search(names)), "other")


def traced(cases: list[Case], operands: Operands, mark: torch.Tensor, cold: torch.Tensor) -> list[list[Kernel]]:
    """The kernels between marks, in turn: before the first, then of every call and of what lies between two calls."""
    with profile(activities=[ProfilerActivity.CUDA]) as session:
        for case in cases:
            operands.bytes_taken = 0
            run = build_convolution(case, operands)()
            large = operands.bytes_taken > COLD_BYTES
            run()
            for _ in range(CALLS):
                if large:
                    cold.fill_(1)
                torch.bitwise_not(mark, out=mark)
                run()
                torch.bitwise_not(mark, out=mark)
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        session.export_chrome_trace(path)
        with open(path) as file:
            events: list[dict[str, Any]] = json.load(file)["traceEvents"]
    parts: list[list[Kernel]] = [[]]
    kinds = ("kernel", "gpu_memset", "gpu_memcpy")
    for event in sorted((e for e in events if e.get("cat") in kinds), key=lambda e: e["ts"]):
        if MARK in event["name"]:
            parts.append([])
        else:
            parts[-1].append((event["name"], event["dur"], event["ts"]))
    return parts


def summed(calls: list[list[Kernel]]) -> float:
    """Microseconds of a layer: the shorter of the two bounds."""
    ordered = [sorted(call) for call in calls]
    fastest = sum(min(kernel[1] for kernel in same) for same in zip(*ordered, strict=True))
    spans = [max(k[2] + k[1] for k in call) - min(k[2] for k in call) for call in calls]
    return min(fastest + GAP_US * len(calls[0]), min(spans) + GAP_US)


def main() -> None:
    rng, until, path = random.Random(int(sys.argv[1])), time.monotonic() + float(sys.argv[2]), sys.argv[3]
    odds = sys.argv[4] if len(sys.argv) > 4 else ""
    operands = Operands(torch.device("cuda"), 1 << 31)
    mark = torch.zeros(64, dtype=torch.int64, device="cuda")
    cold = torch.empty(1 << 27, dtype=torch.uint8, device="cuda")
    with open(path, "w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow([*COLUMNS, "ms", "kernels", "main"])
        while time.monotonic() < until:
            cases: list[Case] = []
            while len(cases) < TOGETHER:
                case = draw(rng, odds)
                if case:
                    cases.append(case)
            parts = traced(cases, operands, mark, cold)
            for i, case in enumerate(cases):
                first = 2 * CALLS * i + 1
                calls = parts[first : first + 2 * CALLS : 2]
                names = {tuple(sorted(kernel[0] for kernel in call)) for call in calls}
                if len(calls) == CALLS and len(names) == 1 and calls[0]:
                    ms = round(summed(calls) * 1e-3, 5)
                    table.writerow([*(case[c] for c in COLUMNS), ms, len(calls[0]), main_kernel(calls[0])])


if __name__ == "__main__":
    main()
