"""Which kernels cuDNN's heuristic answers, asked without a GPU: data/choices/convolutions.bin.

    python choices.py device.json COUNT convolutions.bin

cuDNN 9 takes a description of a device (data/choices/h200.json has ours) and answers engine and knobs for a shape from
that alone, in a fifth of a millisecond. COUNT convolutions in bf16 are drawn and asked, and those of the profiled
layers, but for plain products; a decision tree for each of the three products learns the answers: the first choice's
engine and tile. A tenth of the shapes is not fitted, and the share of it that is told right is printed.

What an engine's tile is, and which engines are of a kind, is read off the kernels that profiled layers name.
Needs libcudnn.so.9 and its libcublasLt on the loader's path, NumPy and scikit-learn.
"""

from __future__ import annotations

import collections
import csv
import gzip
import itertools
import random
import re
import struct
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from heuristic import Heuristic, Shape, outer
from layers import SIDES, WIDTHS
from sklearn.tree import DecisionTreeClassifier

TABLES = Path(__file__).resolve().parents[2] / "data/measurements/h200"
SMS = 132
LEAVES, CUTS, FEATURES, LEAF, MAGIC = 6000, 250, 24, 255, 0x31435446
KINDS = ["sm90", "cutlass", "sm80", "gemm", "legacy"]  # what `main` of a profiled layer begins with; others behind
POWERS = [16, 32, 64, 128, 256, 512, 1024, 2048]

Answer = tuple[int, int]  # engine, and the knob that says its tile
Kernels = dict[Answer, collections.Counter[str]]


def plain(s: Shape) -> bool:
    """A product, which cuBLAS takes: its own heuristic answers on a GPU alone."""
    return s.taps == (1, 1) and s.stride == (1, 1)


def drawn(rng: random.Random) -> Shape | None:
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
    pad = (0, 0) if taps == (2, 2) else (taps[0] // 2, taps[1] // 2)
    product, nhwc = rng.randrange(3), rng.random() < 0.75
    pixels = batch * side * side
    flop = 2.0 * pixels * c * k * taps[0] * taps[1] / stride / stride
    if pixels * max(c, k / stride / stride) > 2e8 or flop > 3e12 or c * side < 300 or side + 2 * pad[0] < taps[0]:
        return None
    shape = Shape(product, nhwc, batch, c, k, (side, side), taps, (stride, stride), pad)
    return None if plain(shape) else shape


def profiled() -> Iterator[tuple[Shape, str]]:
    """Layers of one group in bf16, and the kernel that each took; "" where it has two products."""
    for table in ("layers.csv.gz", "layers_half.csv.gz"):
        with gzip.open(TABLES / table, "rt") as file:
            for row in csv.DictReader(file):
                columns = ("size", "filter", "stride", "pad")
                sides, taps, stride, pad = (tuple(map(int, row[column].split("x"))) for column in columns)
                if row["kind"] != "dense" or row["dtype"] != "bf16" or row["groups"] != "1" or row["dilation"] != "1":
                    continue
                products = {"fwd": [0], "input": [1], "filter": [2], "bwd": [1, 2]}[row["pass"]]
                stride, pad = stride * (2 // len(stride)), pad * (2 // len(pad))
                for product in products:
                    n, c, k = int(row["n"]), int(row["c"]), int(row["k"])
                    shape = Shape(product, row["layout"] == "nhwc", n, c, k, sides, taps, stride, pad)
                    if not plain(shape):
                        yield shape, row["main"] if len(products) == 1 else ""


def twos(x: int) -> int:
    return next((t for t in range(8) if x >> t & 1), 8)


def features(s: Shape) -> list[float]:
    """As src/kernel/conv_choice.c has them."""
    oh, ow = outer(s)
    (h, w), (r, taps_w), taps = s.sides, s.taps, s.taps[0] * s.taps[1]
    pixels = s.n * oh * ow
    m, n, k = ((pixels, s.k, s.c * taps), (s.n * h * w, s.c, s.k * taps), (s.k, s.c * taps, pixels))[s.product]

    def blocks(tile_m: int, tile_n: int) -> int:
        return -(-m // tile_m) * -(-n // tile_n)

    def fill(count: int) -> float:
        return count / SMS / -(-count // SMS)

    large, small = blocks(128, 128), blocks(64, 64)
    sizes = [s.nhwc, s.n, s.c, s.k, h, w, oh * ow, taps, r, taps_w, s.stride[0], m, n, k, float(m) * n * k]
    return [*sizes, s.c / s.k, m / n, twos(s.c), twos(s.k), large, blocks(256, 128), small, fill(large), fill(small)]


def cuts_of(column: np.ndarray) -> np.ndarray:
    values = np.unique(column)
    if len(values) > CUTS:
        values = np.unique(np.quantile(column, np.linspace(0, 1, CUTS), method="nearest"))
    return ((values[:-1].astype(np.float64) + values[1:]) / 2).astype(np.float32)


def nodes_of(tree: Any) -> bytes:
    """Parents before children, the left one next: feature and cut, or the class; where the right one is."""
    order: list[tuple[int, int]] = []
    right: dict[int, int] = {}
    stack: list[tuple[int, int | None]] = [(0, None)]
    while stack:
        node, parent = stack.pop()
        at = len(order)
        if parent is not None:
            right[parent] = at
        if tree.children_left[node] < 0:
            order.append((LEAF, int(np.argmax(tree.value[node]))))
        else:
            order.append((int(tree.feature[node]), int(tree.threshold[node])))
            stack += [(tree.children_right[node], at), (tree.children_left[node], None)]
    return b"".join(struct.pack("<BBH", *node, right.get(at, 0)) for at, node in enumerate(order))


def classes_of(answers: list[Answer], kernels: Kernels) -> bytes:
    """Every answer's number, by kind of engine, engine and size of tile, and its tile in steps of 8."""
    engines: dict[int, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for (engine, _), names in kernels.items():
        for name, times in names.items():
            engines[engine][name.split("_")[0]] += times
    told = []
    for answer in answers:
        kind = engines[answer[0]].most_common(1)[0][0] if engines[answer[0]] else ""
        common = kernels[answer].most_common(1)
        tile = re.match(r"\w+?_(\d+)x(\d+)x", common[0][0]) if common and common[0][1] > 1 else None
        m, n = (int(tile[1]), int(tile[2])) if tile else (0, 0)
        told.append((KINDS.index(kind) if kind in KINDS else len(KINDS), answer[0], -m * n, answer[1], m // 8, n // 8))
    number = {each: at + 1 for at, each in enumerate(sorted(told))}
    return b"".join(struct.pack("<BBBB", number[each], min(255, each[4]), min(255, each[5]), 0) for each in told)


def grow(product: int, shapes: list[Shape], answers: list[Answer], kernels: Kernels) -> tuple[int, int, int, bytes]:
    """A tree's counts and its bytes."""
    table = np.array([features(s) for s in shapes]).astype(np.float32)
    names = sorted(set(answers))
    cuts = [cuts_of(table[:, i]) for i in range(FEATURES)]
    place = np.stack([np.searchsorted(cuts[i], table[:, i]) for i in range(FEATURES)], 1).astype(np.float32)
    said = np.array([names.index(answer) for answer in answers])
    fitted = np.array([zlib.crc32(repr(s).encode()) % 10 > 0 for s in shapes])
    tree = DecisionTreeClassifier(max_leaf_nodes=LEAVES, random_state=0).fit(place[fitted], said[fitted])
    right = np.mean(tree.predict(place[~fitted]) == said[~fitted])
    print(f"product {product}: {len(shapes)} shapes, {len(names)} answers, {100 * right:.1f} % told right of those left out")
    nodes, classes = nodes_of(tree.tree_), classes_of(names, kernels)
    counts = bytes(len(c) for c in cuts)
    body = counts + np.concatenate(cuts).astype("<f4").tobytes() + classes + nodes
    return sum(counts), len(names), len(nodes) // 4, body


def main() -> None:
    asked, rng = Heuristic(Path(sys.argv[1]).read_bytes()), random.Random(1)
    shapes: list[list[Shape]] = [[], [], []]
    answers: list[list[Answer]] = [[], [], []]
    kernels: list[Kernels] = [collections.defaultdict(collections.Counter) for _ in range(3)]
    draws = ((shape, "") for shape in iter(lambda: drawn(rng), "") if shape)
    for shape, kernel in itertools.chain(profiled(), itertools.islice(draws, int(sys.argv[2]))):
        answer = asked.first(shape)
        if answer:
            shapes[shape.product].append(shape)
            answers[shape.product].append(answer)
            if kernel:
                kernels[shape.product][answer][kernel] += 1
    head, body = struct.pack("<II", MAGIC, FEATURES), b""
    for product in range(3):
        cuts, classes, nodes, tree = grow(product, shapes[product], answers[product], kernels[product])
        head += struct.pack("<IIII", 8 + 3 * 16 + len(body), cuts, classes, nodes)
        body += tree
    Path(sys.argv[3]).write_bytes(head + body)


if __name__ == "__main__":
    main()
