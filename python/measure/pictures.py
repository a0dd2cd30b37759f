"""Kernels from an image to one of another size, and convolutions of groups: pictures.py [--queue] [--drawn] OUT [SECONDS]

Interpolations (nearest, bilinear, bicubic, with antialias), pools, pixels shuffled, filters of 3x3 in groups of 8 to 232
channels, by the loop of operators.py; `f_busy_us` and `b_busy_us` are the time in which any kernel ran, `f_us` and `b_us`
the sum of all, which run beside each other where a library uses several streams. Those named fp32 turn their image
to fp32 first. --queue: convolutions of groups once more, ten one behind the other while the host is far ahead
(`queued`), and five in a CUDA graph (`graph`), us of one. --drawn: 80 other interpolations and pools, drawn by a fixed seed.
"""

from __future__ import annotations

import json
import random
import sys
import time
import typing

import operators
import torch
import torch.nn.functional as F
from operators import CASES, Fn, add
from torch import Tensor, nn

CASES.clear()
BUSY: list[float] = []
AHEAD = 60_000_000  # cycles that the device sleeps while the host issues
RESIZED = """8.256.1.65 8.256.1.33 2.512.1.64 8.256.2.65 8.512.3.60 8.512.6.60 8.21.65.520 8.19.64.512 4.150.128.512
2.21.33.513 8.256.32.64 8.256.64.128 8.128.12.24 16.256.20.40 4.256.50.100 1.384.14.32 1.768.37.16 1.1024.37.37 1.768.24.24
11.384.32.32 1.96.7.256 1.768.14.24 1.1152.27.32 8.64.128.64 8.64.256.64 16.3.224.112"""
WIDE = "1.768.14.24 1.1024.37.16 1.384.32.32 8.256.32.64 8.21.65.520 8.256.1.65 4.150.128.512 8.64.128.64"
ADAPTIVE = "64.512.14.7 64.512.7.7 8.2048.60.2 8.2048.60.3 8.2048.60.6 16.256.32.16 32.64.56.3 32.256.28.5"


def sizes(text: str) -> list[list[int]]:
    return [[int(each) for each in case.split(".")] for case in text.split()]


def both(name: str, made: typing.Callable[[], nn.Module], *shapes: tuple[int, ...]) -> None:
    for last in (False, True):
        add(f"{name} {'nhwc' if last else 'nchw'}", made, *shapes, cl=last)


def resized(mode: str, side: int, wide: bool = False) -> typing.Callable[[], nn.Module]:
    def run(x: Tensor) -> Tensor:
        return F.interpolate(x.float() if wide else x, side, mode=mode.split()[0], antialias=" " in mode)

    return lambda: Fn(run)


for width in (56, 24, 48, 64, 112, 8, 16, 32, 40, 72, 80, 96, 128, 232):
    for groups, side in ((4, 56), (8, 28), (16, 14), (32, 7)):
        for stride in (1, 2) if width in (16, 24, 48, 56, 64, 112) else (1,):
            c, before = width * groups, side * stride
            made = lambda c=c, g=groups, s=stride: nn.Conv2d(c, c, 3, s, 1, groups=g, bias=False)
            both(f"group {width}x{groups} 64 {before} {stride}", made, (64, c, before, before))
for at, (n, c, before, side) in enumerate(sizes(RESIZED)):
    for mode in ("nearest", "bilinear", "bicubic", "bilinear aa", "bicubic aa"):
        if " " not in mode or at % 3:
            both(f"{mode} {n}x{c} {before} {side}", resized(mode, side), (n, c, before, before))
for n, c, before, side in sizes(ADAPTIVE):
    both(f"adaptive {n}x{c} {before} {side}", lambda to=side: nn.AdaptiveAvgPool2d(to), (n, c, before, before))
    both(f"adaptivemax {n}x{c} {before} {side}", lambda to=side: nn.AdaptiveMaxPool2d(to), (n, c, before, before))
for n, c, side in ((16, 512, 20), (16, 256, 40), (64, 192, 28)):
    for window, stride, pad in ((3, 1, 1), (5, 1, 2), (9, 1, 4), (13, 1, 6), (2, 2, 0)):
        how = (window, stride, pad)
        both(f"max {n}x{c} {side} {window} {stride}", lambda how=how: nn.MaxPool2d(*how), (n, c, side, side))
        if window < 6:
            both(f"avg {n}x{c} {side} {window} {stride}", lambda how=how: nn.AvgPool2d(*how), (n, c, side, side))
for n, c, side, by in ((8, 256, 64, 2), (8, 48, 128, 4), (2, 192, 256, 2)):
    few, long = c // by // by, side * by
    both(f"pixelshuffle {n}x{c} {side} {by}", lambda by=by: nn.PixelShuffle(by), (n, c, side, side))
    both(f"pixelunshuffle {n}x{few} {long} {by}", lambda by=by: nn.PixelUnshuffle(by), (n, few, long, long))
for n, c, before, side in sizes(WIDE):
    for mode in ("nearest", "bilinear", "bicubic"):
        both(f"{mode} fp32 {n}x{c} {before} {side}", resized(mode, side, wide=True), (n, c, before, before))


def drawn(seed: int, count: int) -> None:
    """Other cases in place of those above, in either order of memory."""
    CASES.clear()
    rng = random.Random(seed)
    while len(CASES) < count:
        mode = rng.choice(("nearest", "bilinear", "bicubic", "bicubic", "bilinear aa", "bicubic aa", "adaptive", "max", "avg"))
        n, c, last = rng.choice((1, 2, 4, 8, 16)), rng.choice((24, 64, 96, 160, 256, 384, 640, 768, 1024)), rng.random() < 0.5
        side, to = (rng.choice((5, 8, 10, 16, 18, 24, 28, 36, 48, 56, 80, 96, 112, 160)) for _ in "ab")
        window, stride = rng.choice((2, 3, 5, 7)), rng.choice((1, 2))
        if n * c * max(side, to) ** 2 > (1.2e7 if "bi" in mode else 4e7) or side == to or side < window:
            continue
        if mode in ("max", "avg"):
            pool = nn.MaxPool2d if mode == "max" else nn.AvgPool2d
            name = f"{mode} {n}x{c} {side} {window} {stride}"
            made = lambda w=window, s=stride, p=pool: p(w, s, w // 2 if s == 1 else 0)
        elif mode == "adaptive":
            to = min(to, side // 2)
            name, made = f"{mode} {n}x{c} {side} {to}", lambda to=to: nn.AdaptiveAvgPool2d(to)
        else:
            name, made = f"{mode} {n}x{c} {side} {to}", resized(mode, to)
        add(f"{name} {'nhwc' if last else 'nchw'}", made, (n, c, side, side), cl=last)


def spans(events: typing.Any) -> list[list[tuple[str, float]]]:
    """Kernels between one spin and the next; how long any of them ran is kept in BUSY."""
    runs: list[list[tuple[str, float]]] = []
    BUSY.clear()
    end = 0.0
    kernels = [each for each in events if each.device_type == torch.autograd.DeviceType.CUDA]
    for kernel in sorted(kernels, key=lambda each: each.time_range.start):
        ran = kernel.time_range
        if "spin" in kernel.name:
            runs.append([])
            BUSY.append(0)
        elif runs:
            runs[-1].append((kernel.name[:90], kernel.device_time_total))
            BUSY[-1] += max(0, ran.end - max(ran.start, end))
        end = max(end, ran.end)
    return runs


def together(kernels: list[tuple[str, float]]) -> list[list[typing.Any]]:
    """Name, sum, number."""
    found: dict[str, list[typing.Any]] = {}
    for name, us in kernels:
        one = found.setdefault(name, [name, 0, 0])
        one[1] = round(one[1] + us, 2)
        one[2] += 1
    return list(found.values())


def measured(case: operators.Case) -> dict[str, typing.Any]:
    row = operators.measure(case)
    for key in ("forward", "backward"):
        row[key] = together(row[key])
    middle = [round(sorted(BUSY[at:6:2])[1], 2) for at in (0, 1)]
    return {**row, "f_us": round(row["f_us"], 2), "b_us": round(row["b_us"], 2), "f_busy_us": middle[0], "b_busy_us": middle[1]}


def elapsed(run: typing.Callable[[], typing.Any], times: int) -> tuple[float, bool]:
    """us of one, and whether the host had issued all before the device began."""
    run()
    torch.cuda.synchronize()
    torch.cuda._sleep(AHEAD)
    first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    first.record()
    for _ in range(times):
        run()
    last.record()
    ahead = not first.query()
    torch.cuda.synchronize()
    return round(first.elapsed_time(last) / times * 1e3, 2), ahead


def replayed(run: typing.Callable[[], typing.Any]) -> float:
    run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(5):
            run()
    graph.replay()
    torch.cuda.synchronize()
    return round(min(elapsed(graph.replay, 3)[0] for _ in range(3)) / 5, 2)


def queued() -> typing.Iterator[dict[str, typing.Any]]:
    aten = torch.ops.aten
    for width in (56, 72, 24, 48, 112, 16):
        for groups, side, stride in ((4, 56, 1), (8, 28, 1), (16, 14, 1), (16, 14, 2), (36, 7, 1)):
            for last, form in ((False, torch.contiguous_format), (True, torch.channels_last)):
                c = width * groups
                shapes = ((64, c, side * stride, side * stride), (c, width, 3, 3), (64, c, side, side))
                x, k, d = (torch.randn(s, device="cuda", dtype=torch.bfloat16).to(memory_format=form) for s in shapes)
                how = ([stride] * 2, [1, 1], [1, 1], False, [0, 0], groups)
                row: dict[str, typing.Any] = {"case": f"group {width}x{groups} 64 {side * stride} {stride} {'nhwc' if last else 'nchw'}"}
                runs = {"f": lambda: aten.convolution(x, k, None, *how), "b": lambda: aten.convolution_backward(d, x, k, None, *how, [True, True, False])}
                for key, run in runs.items():
                    row[f"{key}_queued_us"], row[f"{key}_ahead"] = elapsed(run, 10)
                    row[f"{key}_graph_us"] = replayed(run)
                yield row


def main() -> int:
    queue, words = "--queue" in sys.argv, [each for each in sys.argv[1:] if not each.startswith("--")]
    if "--drawn" in sys.argv:
        drawn(2026, 80)
    if not words or not torch.cuda.is_available():
        print(__doc__, file=sys.stderr)
        return 2
    operators.spans = spans
    end = time.monotonic() + (float(words[1]) if len(words) > 1 else 600)
    with open(words[0], "w") as out:
        for row in queued() if queue else ():
            out.write(json.dumps(row) + "\n")
        for at, case in enumerate(() if queue else CASES):
            if time.monotonic() > end:
                print(f"out of time before {case[0]}", file=sys.stderr)
                break
            out.write(json.dumps(measured(case)) + "\n")
            if at % 20 == 0:
                torch.cuda.empty_cache()
    return 0


if __name__ == "__main__":
    sys.exit(main())
