"""More operators of modules whose forecasts were far off: python operators_fourth.py OUT [SECONDS], by the loop of
operators.py.

Filters of one pixel in groups, transposed filters of small images and the norms between them, norms of narrow rows,
stacked images added, products of narrow heads, long filters of single channels, a conformer's convolutions.
"""

from __future__ import annotations

import sys

import operators
import torch
from operators import CASES, Fn, add
from torch import nn

CASES.clear()


def both(name: str, made: operators.Callable[[], nn.Module], *shapes: tuple[int, ...]) -> None:
    add(name.replace("LIES", "nhwc"), made, *shapes, cl=True)
    add(name.replace("LIES", "nchw"), made, *shapes)


# images, side; groups, channels of a group
for n, side in ((128, 14), (128, 7), (32, 14), (64, 28), (16, 7)):
    for g, wide in ((24, 16), (48, 16), (8, 16), (24, 8), (24, 32), (8, 64), (24, 24), (4, 16), (96, 16)):
        made = lambda g=g, w=wide: nn.Conv2d(g * w, g * w, 1, groups=g, bias=False)
        both(f"g1x1 LIES {n} {side} {g} of {wide}", made, (n, g * wide, side, side))
for side in (14, 7):
    made = lambda: nn.Conv2d(384, 384, 3, padding=1, groups=24, bias=False)
    both(f"g3x3 LIES 128 {side} 24 of 16", made, (128, 384, side, side))
_TURNED = ((128, 512, 1, 1), (100, 512, 1, 1), (512, 256, 4, 2), (256, 128, 8, 2), (128, 64, 16, 2), (64, 3, 32, 2))
for n in (128, 32):
    for c, k, side, step in (*_TURNED, (64, 64, 32, 2)):
        made = lambda c=c, k=k, s=step: nn.ConvTranspose2d(c, k, 4, s, s - 1, bias=False)
        both(f"turned LIES {n}x{c} to {k} side {side} step {step}", made, (n, c, side, side))
    for c, k, side, step in ((3, 64, 64, 2), (64, 128, 32, 2), (128, 256, 16, 2), (256, 512, 8, 2), (512, 1, 4, 1)):
        made = lambda c=c, k=k, s=step: nn.Conv2d(c, k, 4, s, s - 1, bias=False)
        both(f"conv4 LIES {n}x{c} to {k} side {side} step {step}", made, (n, c, side, side))
    for c, side in ((512, 4), (256, 8), (128, 16), (64, 32), (128, 8), (512, 7), (256, 14)):
        both(f"bn LIES {n}x{c} side {side}", lambda c=c: nn.BatchNorm2d(c), (n, c, side, side))
for rows in (200704, 12544, 50176):
    for cols in (24, 32, 40, 48, 64, 96, 128, 384):
        add(f"ln {rows}x{cols}", lambda c=cols: nn.LayerNorm(c), (rows, cols))
for n, c, side in ((64, 64, 56), (64, 128, 28), (64, 256, 14), (64, 512, 7)):
    two = ((n, c, side, side), (n, c, side, side))
    both(f"stack sum LIES {n}x{c} {side}", lambda: Fn(lambda x, y: torch.stack([x, y], 1).sum(1)), *two)
    mean = lambda: Fn(lambda x, y: torch.stack([x, y], 1).sum(1).mean((2, 3), keepdim=True))
    both(f"stack mean LIES {n}x{c} {side}", mean, *two)
for b, s, d in ((50176, 16, 6), (50176, 16, 8), (12544, 64, 8), (2048, 197, 8)):
    add(f"scores {b}x{s}x{d}", lambda: Fn(lambda q, k: q @ k.transpose(-1, -2)), (b, s, d), (b, s, d))
    add(f"weigh {b}x{s}x{d}", lambda: Fn(lambda a, v: a @ v), (b, s, s), (b, s, d))
_DEEP = ((64, 64, 56, 7), (64, 128, 28, 7), (64, 256, 14, 7), (64, 64, 64, 7), (64, 128, 32, 11), (64, 384, 16, 13))
for n, c, side, taps in _DEEP:
    made = lambda c=c, t=taps: nn.Conv2d(c, c, t, padding=t // 2, groups=c, bias=False)
    both(f"deep LIES {n}x{c} {side} taps {taps}", made, (n, c, side, side))
for n, c, long, taps in ((4, 1024, 499, 31), (8, 512, 249, 31), (8, 512, 1000, 15)):
    made = lambda c=c, t=taps: nn.Conv1d(c, c, t, padding=t // 2, groups=c, bias=False)
    add(f"deep1 {n}x{c} {long} taps {taps}", made, (n, c, long))
    add(f"point1 {n}x{c} {long}", lambda c=c: nn.Conv1d(c, 2 * c, 1, bias=False), (n, c, long))
    add(f"glu {n}x{c} {long}", lambda: nn.GLU(1), (n, 2 * c, long))
    add(f"bn1 {n}x{c} {long}", lambda c=c: nn.BatchNorm1d(c), (n, c, long))

if __name__ == "__main__":
    sys.exit(operators.main())
