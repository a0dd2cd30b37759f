"""Which kernels cuDNN's heuristic answers: data/choices/convolutions.bin.

    python choices.py gpu SECONDS SEED asked.csv         on a GPU: what is answered there alone
    python choices.py grow device.json COUNT out.bin     elsewhere: asks the rest and grows the trees
    python choices.py grow device.json COUNT out.bin data/choices/convolutions.bin bf16
                                                         the same of the kinds named; the other trees are that file's

cuDNN 9 takes a description of a device (data/choices/h200.json has ours) and answers engine and knobs for a shape from
that alone, in a fifth of a millisecond. In bf16 and tf32 COUNT convolutions each and more are drawn and asked so, and those of
the profiled layers, but for plain products, which cuBLAS takes: dilated and transposed ones, of one dimension and of three too. fp32 may go to Fourier transforms, which are answered on a GPU
alone, and groups to kernels that differ there: those answers are read from data/choices/asked.csv.gz. A decision tree for
each format and product learns the first choice's engine and tile; in bf16 its cluster, workspace, depth of a step and
split of a sum too. A tenth of the shapes is not fitted; the share of it that is told right is printed, of engine and tile
and of all.

What an engine's tile is, and which engines are of a kind, is read off the kernels that profiled layers name.
Needs libcudnn.so.9 and its libcublasLt on the loader's path; to grow, NumPy and scikit-learn.
"""

from __future__ import annotations

import collections
import csv
import gzip
import itertools
import math
import random
import re
import struct
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from choice_shapes import drawn, layers, odd, products_of
from heuristic import CLUSTER, DEEP, ROOM, SPLITS, Heuristic, Shape, outer, tile_of
from sklearn.tree import DecisionTreeClassifier

DATA = Path(__file__).resolve().parents[2] / "data"
TABLES, ASKED = DATA / "measurements/h200", DATA / "choices/asked.csv.gz"
SMS = 132
CUTS, FEATURES, LEAF, MAGIC = 250, 32, 255, 0x33435446
LEAVES = {"bf16": 10000, "tf32": 4000, "fp32": 3000, "groups": 2000}  # in the order of conv_choice.c
MORE = {"bf16": 1600000, "tf32": 640000}  # drawn beside COUNT
LAYERS = {"bf16": 300000, "tf32": 100000}  # and of the kinds in RARE
HOLES = 4  # what a shape counts that may be one
ODD = {"bf16": 150000, "tf32": 60000}  # and by `odd`
KINDS = ["sm90", "cutlass", "sm80", "gemm", "legacy"]  # what `main` of a profiled layer begins with; others behind

Way = tuple[int, int]  # engine, and the knob that says its tile
Answer = tuple[int, ...]  # a way, and how it is run: HOW of them
HOW = (0, 0, 0, 0, 0)  # nothing is said of it
Kernels = dict[Way, collections.Counter[str]]
Tree = tuple[int, int, int, bytes]  # cuts, classes, nodes, all of them


def kind_of(s: Shape) -> str:
    return "groups" if s.groups > 1 else s.dtype


def plain(s: Shape) -> bool:
    """A product, which cuBLAS takes unless it is fp32: what it answers says little of its time."""
    return set(s.taps) == {1} and set(s.stride) == {1} and kind_of(s) in ("bf16", "tf32")


def may_be_a_hole(s: Shape) -> bool:
    """Gradients of large filters in 16 bits have no answer in places: a wrong one there is wrong by a factor of ten."""
    return kind_of(s) == "bf16" and s.product > 0 and s.taps[-1] * s.taps[-2] > 25


def on_a_gpu(s: Shape) -> bool:
    """Fourier transforms and groups are answered on a GPU alone."""
    return kind_of(s) in ("fp32", "groups")


def asked_of_a_gpu(s: Shape) -> bool:
    return on_a_gpu(s) and len(s.sides) == 2 and not s.dilation and not s.transposed and not row_of_pixels(s)


def how(s: Shape, knobs: dict[int, int]) -> Answer:
    """Depth of a step, workspace, a cluster's tiles each way, powers of two in the split; 0: the engine has no such knob."""
    if kind_of(s) != "bf16":
        return HOW
    split = max((knobs.get(knob, 0) for knob in SPLITS), default=0)
    if CLUSTER[0] not in knobs:  # what other engines vary is said by their tile
        return (0, 0, 0, 0, 1 + int(math.log2(split)) if split > 0 else 0)
    return (1 + knobs.get(DEEP, -1), 1 + knobs.get(ROOM, -1), knobs[CLUSTER[0]], knobs[CLUSTER[1]], 0)


def profiled() -> Iterator[tuple[Shape, str]]:
    """Layers of the tables, and the kernel that each took; "" where it has two products."""
    for table in ("layers.csv.gz", "layers_half.csv.gz", "layers_points.csv.gz", "layers_wide.csv.gz"):
        with gzip.open(TABLES / table, "rt") as file:
            for row in csv.DictReader(file):
                groups, asked = int(row["groups"]), products_of(row)
                grouped = row["kind"] == "grouped" and row["dtype"] == "bf16"
                if row["dtype"] != "fp16" and (groups == 1 or grouped):
                    yield from ((shape, row["main"] if len(asked) == 1 else "") for shape in asked)


COLUMNS = ["dtype", "product", "nhwc", "n", "c", "k", "groups", "h", "w", "r", "s", "stride", "pad_h", "pad_w", "engine", "tile"]


def asked_there() -> dict[Shape, Answer]:
    """What a GPU answered."""
    found = {}
    with gzip.open(ASKED, "rt") as file:
        for row in itertools.islice(csv.reader(file), 1, None):
            product, nhwc, n, c, k, groups, h, w, r, s, stride, pad_h, pad_w, engine, tile = map(int, row[1:])
            sizes = ((h, w), (r, s), (stride, stride), (pad_h, pad_w))
            found[Shape(product, bool(nhwc), n, c, k, *sizes, row[0], groups)] = (engine, tile, *HOW)
    return found


def ask_there(seconds: float, seed: int, path: str) -> None:
    """On a GPU: shapes of the tables in an order of their own, then drawn ones."""
    asked, rng, until = Heuristic(None), random.Random(seed), time.monotonic() + seconds
    known = sorted({shape for shape, _ in profiled()})
    rng.shuffle(known)
    more = (drawn(rng, rng.choice(list(LEAVES))) for _ in itertools.count())
    with open(path, "w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(COLUMNS)
        for s in itertools.chain(known, more):
            if time.monotonic() > until:
                break
            answer = asked.first(s) if s and asked_of_a_gpu(s) else None
            if s and answer:
                sizes = [s.n, s.c, s.k, s.groups, *s.sides, *s.taps, s.stride[0], *s.pad]
                table.writerow([s.dtype, s.product, int(s.nhwc), *sizes, *answer])


def twos(x: int) -> int:
    return next((t for t in range(8) if x >> t & 1), 8)


def row_of_pixels(s: Shape) -> bool:
    return s.sides[0] == s.taps[0] == 1 and len(s.sides) == 2


def stand_in(s: Shape) -> tuple[int, int, int, int, int, int]:
    """Pictures, channels, an image's sides, border and depth, as src/graph/convolution.c has them: borders are part of the
    image, and depth of images and channels, unless it is a plain convolution of two dimensions."""
    out, stride = outer(s), s.stride[-1]
    regular = len(s.sides) == 2 and s.stride[0] == s.stride[1] and s.pad[0] == s.pad[1]
    if regular and not s.dilation and not s.transposed and not row_of_pixels(s):
        return s.n, s.c, s.sides[0], s.sides[1], s.pad[0], 1
    h, w = ((o - 1) * stride + taps for o, taps in zip(out[-2:], s.taps[-2:], strict=True))
    if len(s.sides) == 2:
        return s.n, s.c, h, w, 0, 1
    return s.n * out[0], s.c * s.taps[0], h, w, 0, max(1, s.taps[0] // s.stride[0])


def features(s: Shape) -> list[float]:
    """As src/kernel/conv_choice.c has them."""
    oh, ow = outer(s)[-2:]
    (r, taps_w), taps, stride = s.taps[-2:], s.taps[-2] * s.taps[-1], s.stride[-1]
    pictures, channels, h, w, pad, depth = stand_in(s)
    pixels, c, f = pictures * oh * ow, channels // s.groups, s.k // s.groups
    m, n, k = ((pixels, f, c * taps), (pictures * h * w, c, f * taps), (f, c * taps, pixels))[s.product]

    def blocks(tile_m: int, tile_n: int) -> int:
        return -(-m // tile_m) * -(-n // tile_n)

    def fill(count: int) -> float:
        return count / SMS / -(-count // SMS)

    large, small = blocks(128, 128), blocks(64, 64)
    sizes = [s.nhwc, pictures, channels, s.k, h, w, oh * ow, taps, r, taps_w, stride, m, n, k, float(m) * n * k]
    tiles = [large, blocks(256, 128), small, fill(large), fill(small)]
    kind = [min(255, max(s.dilation, default=0)), 1 if row_of_pixels(s) else len(s.sides), depth, n / (-(-n // 256) * 256)]
    return [*sizes, channels / s.k, m / n, twos(c), twos(f), *tiles, s.groups, pad, oh, float(m) * n, *kind]


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
    """Every way's number, by kind of engine, engine and size of tile, its tile in steps of 8, and how it is run."""
    engines: dict[int, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for (engine, _), names in kernels.items():
        for name, times in names.items():
            engines[engine][name.split("_")[0]] += times
    told = []
    for engine, knob in (answer[:2] for answer in answers):
        kind = engines[engine].most_common(1)[0][0] if engines[engine] else ""
        common = kernels[engine, knob].most_common(1)
        most = bool(common) and 2 * common[0][1] > max(2, kernels[engine, knob].total())  # cuBLAS has many tiles for one
        tile = re.match(r"\w+?_(\d+)x(\d+)x", common[0][0]) if most else None
        m, n = (int(tile[1]), int(tile[2])) if tile else (0, 0)
        told.append((KINDS.index(kind) if kind in KINDS else len(KINDS), engine, -m * n, knob, m // 8, n // 8))
    number = {each: at + 1 for at, each in enumerate(sorted(set(told)))}
    sides = ((number[each], min(255, each[4]), min(255, each[5])) for each in told)
    return b"".join(struct.pack("<8B", *side, *answer[2:]) for side, answer in zip(sides, answers, strict=True))


def grow(leaves: int, shapes: list[Shape], answers: list[Answer], kernels: Kernels) -> Tree:
    """A tree's counts and its bytes."""
    table = np.array([features(s) for s in shapes]).astype(np.float32)
    names = sorted(set(answers))
    cuts = [cuts_of(table[:, i]) for i in range(FEATURES)]
    place = np.stack([np.searchsorted(cuts[i], table[:, i]) for i in range(FEATURES)], 1).astype(np.float32)
    said = np.array([names.index(answer) for answer in answers])
    fitted = np.array([zlib.crc32(repr(s).encode()) % 10 > 0 for s in shapes])
    counts_as = np.array([HOLES if may_be_a_hole(s) else 1 for s in shapes])
    grower = DecisionTreeClassifier(max_leaf_nodes=leaves, random_state=0)
    tree = grower.fit(place[fitted], said[fitted], sample_weight=counts_as[fitted])
    told = tree.predict(place[~fitted])
    ways = np.array([sorted({name[:2] for name in names}).index(name[:2]) for name in names])
    right, way = (100 * np.mean(one == other) for one, other in ((told, said[~fitted]), (ways[told], ways[said[~fitted]])))
    print(f"{len(shapes)} shapes, {len(names)} answers; right of those left out: ways {way:.1f} %, all {right:.1f}", flush=True)
    nodes, classes = nodes_of(tree.tree_), classes_of(names, kernels)
    counts = bytes(len(c) for c in cuts)
    body = counts + np.concatenate(cuts).astype("<f4").tobytes() + classes + nodes
    return sum(counts), len(names), len(nodes) // 4, body


def kept(path: str, without: set[str]) -> dict[tuple[str, int], Tree]:
    """The trees of a file, but for some kinds."""
    data, found = Path(path).read_bytes(), {}
    features = struct.unpack_from("<I", data, 4)[0]  # of fewer, the others have no cuts
    for at, (kind, product) in enumerate(itertools.product(LEAVES, range(3))):
        first, cuts, classes, nodes = struct.unpack_from("<IIII", data, 8 + 16 * at)
        if kind not in without:
            end = first + features + 4 * (cuts + 2 * classes + nodes)
            tree = data[first : first + features] + bytes(FEATURES - features) + data[first + features : end]
            found[kind, product] = cuts, classes, nodes, tree
    return found


def grow_all(device: bytes, count: int, old: dict[tuple[str, int], Tree]) -> bytes:
    asked, there, rng = Heuristic(device), asked_there(), random.Random(1)
    other = {dtype: random.Random(2) for dtype in MORE}
    shapes: dict[tuple[str, int], dict[Shape, Answer]] = {(kind, p): {} for kind in LEAVES for p in range(3)}
    kernels: dict[tuple[str, int], Kernels] = {at: collections.defaultdict(collections.Counter) for at in shapes}
    for shape, answer in there.items():
        shapes[kind_of(shape), shape.product][shape] = answer
    draws = ((shape, "") for dtype in MORE for shape in (drawn(rng, dtype) for _ in range(count)))
    more = ((shape, "") for dtype, extra in MORE.items() for shape in (drawn(other[dtype], dtype) for _ in range(extra)))
    rare = ((shape, "") for dtype, extra in LAYERS.items() for shape in layers(random.Random(3), dtype, extra))
    odds = ((shape, "") for dtype, extra in ODD.items() for shape in map(odd, [random.Random(4)] * extra, [dtype] * extra))
    for shape, kernel in itertools.chain(profiled(), draws, more, rare, odds):
        if not shape or plain(shape) or on_a_gpu(shape) and shape not in there:
            continue
        at = kind_of(shape), shape.product
        if at in old:
            continue
        answer = shapes[at].get(shape)
        if not answer and (said := asked.answer(shape)):
            answer = (said[0], tile_of(said[1]), *how(shape, said[1]))
        if answer:
            shapes[at][shape] = answer
            if kernel:
                kernels[at][answer[:2]][kernel] += 1
    head, body = struct.pack("<II", MAGIC, FEATURES), b""
    for at, found in shapes.items():
        print(*at, end=": ", flush=True)
        told = old.get(at) or grow(LEAVES[at[0]], list(found), list(found.values()), kernels[at])
        cuts, classes, nodes, tree = told
        head += struct.pack("<IIII", 8 + len(shapes) * 16 + len(body), cuts, classes, nodes)
        body += tree
    return head + body


def main() -> None:
    if sys.argv[1] == "gpu":
        ask_there(float(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
    else:
        old = kept(sys.argv[5], set(sys.argv[6:])) if len(sys.argv) > 5 else {}
        Path(sys.argv[4]).write_bytes(grow_all(Path(sys.argv[2]).read_bytes(), int(sys.argv[3]), old))


if __name__ == "__main__":
    main()
