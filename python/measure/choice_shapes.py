"""Convolutions that cuDNN's heuristic is asked about, drawn (choices.py)."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

from family import Case
from heuristic import Shape, outer
from layers import GROUP_WIDTHS, GROUPS, SIDES, WIDTHS, draw_layer

POWERS = [16, 32, 64, 128, 256, 512, 1024, 2048]
RARE = {"stem": 2.0, "dilated": 3.0, "transposed": 2.0, "one": 3.0, "three": 3.0}  # of layers.py


def drawn(rng: random.Random, dtype: str) -> Shape | None:
    """By powers of two, as networks have them, or anywhere; None where nobody would run it."""
    kind = rng.random()
    if kind < 0.4:
        c, k, side = rng.choice(POWERS), rng.choice(POWERS), rng.choice([7, 14, 28, 56, 112, 224])
        one = rng.choice([1, 1, 3, 3, 5, 7])
        taps = (one, one)
    elif kind < 0.9:
        c, side = rng.choice(WIDTHS), rng.choice(SIDES)
        wanted = c * rng.choice([0.17, 0.25, 0.25, 0.5, 0.5, 1, 1, 1, 2, 2, 4, 6])
        k = min(WIDTHS, key=lambda width: abs(width - wanted))
        taps = rng.choice([(3, 3)] * 6 + [(1, 1)] * 4 + [(5, 5), (7, 7), (1, 7), (7, 1), (2, 2)])
    else:
        c, k, side = 8 * int(2 ** rng.uniform(1, 8)), 8 * int(2 ** rng.uniform(1, 8)), int(2 ** rng.uniform(2.5, 8.5))
        one = rng.choice([3, 3, 3, 1, 1, 1, 5, 7])
        taps = (one, one)
    batch = rng.choice([1, 2, 4, 8, 16, 32, 64, 128, 256])
    stride = 2 if taps == (2, 2) else rng.choice([1, 1, 1, 2])
    pad = (0, 0) if taps == (2, 2) or rng.random() < 0.1 else (taps[0] // 2, taps[1] // 2)
    product, nhwc, groups = rng.randrange(3), rng.random() < 0.75, 1
    if dtype == "groups":
        groups = rng.choice(GROUPS)
        c = k = rng.choice(GROUP_WIDTHS) * groups
    pixels = batch * side * side
    flop = 2.0 * pixels * c * k / groups * taps[0] * taps[1] / stride / stride
    if pixels * max(c, k / stride / stride) > 2e8 or flop > 3e12 or c * side < 300 or side + 2 * pad[0] < max(taps):
        return None
    real = "bf16" if dtype == "groups" else dtype
    return Shape(product, nhwc, batch, c, k, (side, side), taps, (stride, stride), pad, real, groups)


def sizes_of(text: int | str) -> tuple[int, ...]:
    return tuple(map(int, str(text).split("x")))


def products_of(row: Case) -> list[Shape]:
    """What a layer of the tables, or a drawn one, asks the library for. One dimension is a row of pixels, as PyTorch has it; a
    transposed convolution is the image's gradient of the one that goes the other way."""
    sides, taps, stride, pad = (sizes_of(row[column]) for column in ("size", "filter", "stride", "pad"))
    axes, turned = len(sides), row["kind"] == "transposed"
    stride, pad, taps, apart = (each * (axes // len(each)) for each in (stride, pad, taps, sizes_of(row["dilation"])))
    asked = {"fwd": [0], "input": [1], "filter": [2], "bwd": [1, 2]}[row["pass"]]
    n, c, k = int(row["n"]), int(row["c"]), int(row["k"])
    if turned:
        asked = [(1, 0, 2)[product] for product in asked]
        c, k = k, c
        dims = zip(sides, taps, stride, pad, apart, strict=True)
        sides = tuple((side - 1) * step - 2 * border + gap * (tap - 1) + 1 for side, tap, step, border, gap in dims)
    if axes == 1:
        sides, taps, stride, pad, apart = (1, *sides), (1, *taps), (1, *stride), (0, *pad), (1, *apart)
    gaps = apart if any(gap > 1 and tap > 1 for gap, tap in zip(apart, taps, strict=True)) else ()
    nhwc, groups = row["layout"] == "nhwc", int(row["groups"])
    return [Shape(p, nhwc, n, c, k, sides, taps, stride, pad, row["dtype"], groups, gaps, turned) for p in asked]


def widened(rng: random.Random, row: Case) -> Case:
    """Half of them of other sizes, filters and strides than layers.py draws: as vocoders, clips and patches have them."""
    c, axes = rng.choice(WIDTHS), len(sizes_of(row["size"]))
    k = min(WIDTHS, key=lambda width: abs(width - c * rng.choice([0.25, 0.5, 1, 1, 2])))
    if axes == 2 and (row["kind"] == "transposed" or row["dilation"] > 1):
        return row
    if axes == 1:
        step = rng.choice([1, 1, 2, 4, 5, 8])
        taps, sides = [rng.choice([2, 3, 5, 7, 11, step, 2 * step])], [int(2 ** rng.uniform(5, 15))]
        gap = rng.choice([1, 1, 2, 4, 8, 16, 32, 64, 128, 255]) if step == 1 else 1
    elif axes == 2:
        step, gap = rng.choice([2, 4, 7, 8, 14, 16]), 1
        taps, sides = [rng.choice([step, step, 7])] * 2, [rng.choice(SIDES)] * 2
    else:
        step, gap, sides = rng.choice([1, 1, 2]), 1, [rng.choice([2, 3, 4, 5, 8, 9, 16, 32, 64]), *[rng.choice(SIDES)] * 2]
        taps = rng.choice([[3, 3, 3], [3, 3, 3], [1, 3, 3], [3, 1, 1], [2, 2, 2], [3, 7, 7], [2, 14, 14], [1, 1, 1]])
        step = 14 if taps[-1] == 14 else 2 if taps[-1] == 2 else step
    turned = step > 1 and axes != 2 and rng.random() < 0.3
    pad = "x".join(str(0 if taps[-1] == step else gap * (one - 1) // 2) for one in taps)
    size, filters = ("x".join(map(str, each)) for each in (sides, taps))
    kind = "transposed" if turned else row["kind"]
    wide = {"kind": kind, "c": c, "k": k, "size": size, "filter": filters, "stride": step, "pad": pad, "dilation": gap}
    return {**row, **wide}


def fits(s: Shape) -> bool:
    """Somebody may run it."""
    held = s.n * max(s.c * math.prod(s.sides), s.k * math.prod(outer(s)))
    return min(outer(s)) > 0 and min(s.sides) > 0 and held <= 2e8 and held * s.c * math.prod(s.taps) < 3e12


def odd(rng: random.Random, dtype: str) -> Shape | None:
    """What `drawn` leaves out in two dimensions: few channels, any number of them, filters of unequal sides, patches."""
    kind, side, stride = rng.random(), rng.choice(SIDES), rng.choice([1, 1, 1, 2])
    c, k, one = rng.choice(WIDTHS), rng.choice(WIDTHS), rng.choice([3, 3, 5, 7])
    taps = (one, one)
    if kind < 0.4:
        c, one = rng.choice([1, 2, 3, 3, 3, 3, 4, 6, 8, 12]), rng.choice([1, 3, 3, 5, 7, 7, 9, 11])
        stride = rng.choice([1, 2, 2, 4])
        taps = (one, one)
    elif kind < 0.7:
        taps = rng.choice([(1, 3), (3, 1), (1, 5), (5, 1), (1, 7), (7, 1)])
    elif kind < 0.85:
        stride = rng.choice([2, 4, 7, 8, 14, 16, 32])
        c, side, taps = rng.choice([3, 3, 6, c]), stride * rng.choice([4, 7, 8, 12, 14, 16, 28, 32]), (stride, stride)
    else:
        c, k = int(2 ** rng.uniform(2, 9)), int(2 ** rng.uniform(2, 9))
    pad = (0, 0) if 0.7 <= kind < 0.85 or rng.random() < 0.1 else (taps[0] // 2, taps[1] // 2)
    batch, product, nhwc = rng.choice([1, 2, 4, 8, 16, 32, 64, 128, 256]), rng.randrange(3), rng.random() < 0.6
    shape = Shape(product, nhwc, batch, c, k, (side, side), taps, (stride, stride), pad, dtype)
    return shape if fits(shape) else None


def layers(rng: random.Random, dtype: str, count: int) -> Iterator[Shape]:
    """Those that networks have and `drawn` has not: stems, patches, dilated, transposed, of one and of three dimensions."""
    for at in range(count):
        row = draw_layer(rng, RARE)
        if row and row["groups"] == 1:
            wide = widened(rng, row) if at % 2 else row
            yield from (shape for shape in products_of({**wide, "dtype": dtype}) if fits(shape))
