"""Convolutions as real networks have them: grouped, depthwise, transposed, in one and three dimensions, gradients apart.

`conv.csv.gz` (dense.py) holds plain two-dimensional ones of random widths, both gradients in one figure. These rows say
what it leaves open: cuDNN has other kernels for each of the kinds below, for each gradient, and with benchmark mode on.
Half of the cases are layers of the list below, half have widths and sizes drawn as networks have them (layers.py), dilated
and of unequal sides among them; `bwd` is both gradients of one call, as training asks for them.
"""

from __future__ import annotations

import random

import torch
from family import Case, Family, choice, pick

from layers import draw_layer

from foretell.calibrate.operands import DTYPES, Operands, set_tf32
from foretell.calibrate.timing import Launch, Make

aten = torch.ops.aten

# kind: (channels in, channels out, groups, sizes, filter, stride, padding). Widths and resolutions of published networks.
LAYERS: dict[str, list[tuple[int, int, int, tuple[int, ...], tuple[int, ...], int, int]]] = {
    "grouped": [  # ResNeXt-50 32x4d, RegNetY, ResNeXt-101 64x4d
        *[(w, w, 32, (s, s), (3, 3), 1, 1) for w, s in ((128, 56), (256, 28), (512, 14), (1024, 7))],
        *[(w, w, 32, (2 * s, 2 * s), (3, 3), 2, 1) for w, s in ((256, 28), (512, 14), (1024, 7))],
        *[(w, w, w // 24, (s, s), (3, 3), 1, 1) for w, s in ((48, 56), (120, 28), (336, 14), (888, 7))],
        *[(w, w, 64, (s, s), (3, 3), 1, 1) for w, s in ((256, 56), (512, 28), (1024, 14), (2048, 7))],
    ],
    "depthwise": [  # EfficientNet, MobileNet, ConvNeXt, MaxViT
        *[(w, w, w, (s, s), (3, 3), 1, 1) for w, s in ((32, 112), (144, 56), (240, 28), (480, 14), (1152, 7))],
        *[(w, w, w, (s, s), (5, 5), 1, 2) for w, s in ((240, 28), (480, 14), (672, 14), (1152, 7))],
        *[(w, w, w, (2 * s, 2 * s), (3, 3), 2, 1) for w, s in ((96, 56), (240, 14), (672, 7))],
        *[(w, w, w, (s, s), (7, 7), 1, 3) for w, s in ((96, 56), (192, 28), (384, 14), (768, 7), (1536, 7))],
    ],
    "dense": [  # stems, ResNet-50, patches, UNets of latent diffusion, their decoders
        (3, 64, 1, (224, 224), (7, 7), 2, 3),
        (3, 32, 1, (224, 224), (3, 3), 2, 1),
        *[(3, w, 1, (224, 224), (p, p), p, 0) for w, p in ((768, 16), (1024, 14), (96, 4))],
        *[(w, 4 * w, 1, (s, s), (1, 1), 1, 0) for w, s in ((64, 56), (128, 28), (256, 14), (512, 7))],
        *[(4 * w, w, 1, (s, s), (1, 1), 1, 0) for w, s in ((64, 56), (128, 28), (256, 14), (512, 7))],
        *[(w, w, 1, (s, s), (3, 3), 1, 1) for w, s in ((64, 56), (128, 28), (256, 14), (512, 7))],
        *[(w, w, 1, (s, s), (3, 3), 1, 1) for w, s in ((320, 64), (640, 32), (1280, 16), (1280, 8), (320, 128))],
        *[(w, w, 1, (s, s), (3, 3), 1, 1) for w, s in ((512, 64), (512, 128), (256, 256), (128, 512))],
        *[(2 * w, w, 1, (s, s), (1, 1), 1, 0) for w, s in ((320, 64), (640, 32), (1280, 16))],
    ],
    "transposed": [  # UNets of segmentation, generators, DETR-like upsampling
        *[(2 * w, w, 1, (s, s), (2, 2), 2, 0) for w, s in ((64, 112), (128, 56), (256, 28), (512, 14))],
        *[(2 * w, w, 1, (s, s), (4, 4), 2, 1) for w, s in ((64, 32), (128, 16), (256, 8), (512, 4))],
        *[(w, w, 1, (s, s), (3, 3), 2, 1) for w, s in ((256, 32), (128, 64))],
    ],
    "one": [  # wav2vec 2.0, Whisper, TCNs, Mamba's short filters
        (1, 512, 1, (80000,), (10,), 5, 0),
        *[(512, 512, 1, (s,), (3,), 2, 0) for s in (16000, 8000, 4000, 2000)],
        (768, 768, 16, (249,), (128,), 1, 64),
        (80, 384, 1, (3000,), (3,), 1, 1),
        (128, 1280, 1, (3000,), (3,), 1, 1),
        (1280, 1280, 1, (3000,), (3,), 2, 1),
        *[(w, w, w, (s,), (4,), 1, 3) for w, s in ((1536, 1024), (4096, 2048), (8192, 2048))],
        *[(w, w, 1, (1024,), (3,), 1, 1) for w in (128, 256, 512)],
    ],
    "three": [  # R3D-18, video patches, video autoencoders
        (3, 64, 1, (16, 112, 112), (3, 7, 7), 1, 1),
        *[(w, w, 1, (d, s, s), (3, 3, 3), 1, 1) for w, d, s in ((64, 16, 56), (128, 8, 28), (256, 4, 14), (512, 2, 7))],
        (3, 1152, 1, (2, 224, 224), (2, 14, 14), 14, 0),
        *[(w, w, 1, (5, s, s), (3, 3, 3), 1, 1) for w, s in ((384, 60), (192, 120), (96, 240))],
    ],
}
MAX_ELEMENTS = 2.5e8
MAX_FLOP = {"bf16": 3e12, "fp16": 3e12, "tf32": 2e12, "fp32": 4e11}
FORMATS = {1: torch.contiguous_format, 2: torch.channels_last, 3: torch.channels_last_3d}
COLUMNS = "kind dtype layout pass benchmark n c k groups size filter stride pad dilation".split()


def sizes(text: str) -> list[int]:
    return [int(each) for each in str(text).split("x")]


def each(case: Case, column: str) -> list[int]:
    """One figure for every dimension; a single one stands for all of them."""
    given, dims = sizes(case[column]), len(sizes(case["size"]))
    return given * dims if len(given) == 1 else given


def outer(case: Case) -> list[int]:
    """What comes out, by dimension."""
    columns = ("size", "filter", "stride", "pad", "dilation")
    dims = zip(*(each(case, column) for column in columns), strict=True)
    if case["kind"] == "transposed":
        return [(side - 1) * stride - 2 * pad + dilation * (taps - 1) + 1 for side, taps, stride, pad, dilation in dims]
    return [(side + 2 * pad - dilation * (taps - 1) - 1) // stride + 1 for side, taps, stride, pad, dilation in dims]


def draw_convolution(rng: random.Random) -> Case | None:
    """A layer of the list above with a batch of 1 to 256, or one as networks have them."""
    case = draw_listed(rng) if rng.random() < 0.5 else draw_layer(rng)
    if case is None or min(outer(case)) < 1:
        return None
    inner, out = torch.Size(sizes(case["size"])).numel(), torch.Size(outer(case)).numel()
    places = inner if case["kind"] == "transposed" else out
    taps = torch.Size(sizes(case["filter"])).numel()
    flop = 2.0 * case["n"] * places * case["k"] * case["c"] // case["groups"] * taps
    if case["n"] * max(case["c"] * inner, case["k"] * out) > MAX_ELEMENTS or flop > MAX_FLOP[case["dtype"]]:
        return None
    return case


def draw_listed(rng: random.Random) -> Case:
    kind = pick(rng, {"dense": 3.0, "grouped": 2.0, "depthwise": 2.0, "transposed": 1.5, "one": 1.5, "three": 1.0})
    c, k, groups, size, filter_, stride, pad = choice(rng, LAYERS[kind])
    flat = len(size) == 1
    return {
        "kind": kind,
        "dtype": pick(rng, {"bf16": 2.0, "fp16": 2.0, "tf32": 1.0, "fp32": 1.0}),
        "layout": "nchw" if flat else choice(rng, ["nhwc", "nchw"]),
        "pass": choice(rng, ["fwd", "input", "filter"]),
        "benchmark": pick(rng, {0: 4.0, 1: 1.0}),
        "n": choice(rng, [1, 2, 4, 8, 16, 32, 64, 128, 256]),
        "c": c,
        "k": k,
        "groups": groups,
        "size": "x".join(map(str, size)),
        "filter": "x".join(map(str, filter_)),
        "stride": stride,
        "pad": pad,
        "dilation": 1,
    }


def build_convolution(case: Case, operands: Operands) -> Make:
    dtype, dims = DTYPES[case["dtype"]], len(sizes(case["size"]))
    transposed, n, c, k, groups = case["kind"] == "transposed", case["n"], case["c"], case["k"], case["groups"]
    form = FORMATS[dims] if case["layout"] == "nhwc" else torch.contiguous_format
    lists = [each(case, column) for column in ("stride", "pad", "dilation")]
    set_tf32(case["dtype"])
    torch.backends.cudnn.benchmark = bool(case["benchmark"])

    def tensor(*shape: int) -> torch.Tensor:
        flat = operands.take(dtype, torch.Size(shape).numel())
        if form is torch.contiguous_format:
            return flat.view(shape)
        order = [0, *range(2, dims + 2), 1]
        back = [0, dims + 1, *range(1, dims + 1)]
        return flat.view([shape[i] for i in order]).permute(back)

    def make() -> Launch:
        x = tensor(n, c, *sizes(case["size"]))
        shape = (c, k // groups) if transposed else (k, c // groups)
        filters = tensor(*shape, *sizes(case["filter"]))
        if case["pass"] == "fwd":
            return lambda: aten.convolution(x, filters, None, *lists, transposed, [0] * dims, groups)
        grad = tensor(n, k, *outer(case))
        mask = [case["pass"] != "filter", case["pass"] != "input", False]
        return lambda: aten.convolution_backward(
            grad, x, filters, None, *lists, transposed, [0] * dims, groups, mask
        )

    return make


CONVOLUTION = Family("convolution", tuple(COLUMNS), draw_convolution, build_convolution)
