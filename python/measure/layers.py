"""Convolutions as networks have them, drawn: widths, sides, groups, dilations and batches of published ones, in bf16.

The rows of 16 November 2026 took 1,206 more from 35 models of timm and torchvision, run over meta tensors with every
aten.convolution written down, at batches of 4 to 128; none of the models by which exports are judged was among them.
"""

from __future__ import annotations

import random

from family import Case, choice, pick

# fmt: off
WIDTHS = [16, 24, 32, 40, 48, 56, 64, 72, 80, 96, 104, 112, 120, 128, 144, 160, 176, 192, 208, 224, 240, 256, 288, 320, 352, 384, 448,
          480, 512, 576, 640, 672, 768, 832, 896, 960, 1024, 1152, 1280, 1536, 1920, 2048, 2560]
SIDES = [7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 512]
GROUP_WIDTHS = [2, 4, 8, 8, 12, 16, 16, 20, 24, 24, 32, 32, 40, 48, 56, 64, 64, 72, 80, 96, 112, 120, 128, 168, 192, 224, 232]
GROUPS = [2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 32, 64, 64]
CLIPS = [(64, 16, 56), (128, 8, 28), (256, 4, 14), (512, 2, 7), (96, 8, 28), (192, 8, 28), (832, 4, 7), (480, 8, 14), (32, 96, 96),
         (32, 64, 64), (64, 48, 48), (64, 32, 32), (128, 24, 24), (256, 12, 12), (320, 8, 8)]
# fmt: on
BATCHES = [1, 2, 4, 8, 16, 32, 64, 128, 256]
KINDS = {
    "dense": 40.0,
    "stem": 7.0,
    "grouped": 30.0,
    "depthwise": 11.0,
    "dilated": 4.0,
    "transposed": 8.0,
    "one": 9.0,
    "three": 8.0,
}


def near(width: float) -> int:
    return min(WIDTHS, key=lambda known: abs(known - width))


def drawn(rng: random.Random) -> tuple[int, int]:
    """A width and a side that go together: images shrink as channels grow."""
    while True:
        width, side = choice(rng, WIDTHS), choice(rng, SIDES)
        if 1200 <= width * side <= 24000:
            return width, side


def draw_layer(rng: random.Random, kinds: dict[str, float] = KINDS) -> Case | None:
    kind = pick(rng, kinds)
    width, side = drawn(rng)
    c, k, groups, stride, dilation = width, width, 1, 1, 1
    size, taps, layout = [side, side], [3, 3], pick(rng, {"nhwc": 6.0, "nchw": 4.0})
    gradients = "bwd"
    pad: list[int] | None = None
    if kind == "dense":
        taps = list(pick(rng, {(3, 3): 50.0, (1, 1): 27.0, (5, 5): 4.0, (7, 7): 2.0, (1, 7): 3.0, (7, 1): 3.0, (2, 2): 4.0}))
        k = near(c * pick(rng, {0.25: 2.0, 0.5: 2.0, 1: 4.0, 2: 2.5, 4: 1.5, 0.17: 0.7, 6: 0.7}))
        stride = 2 if taps == [2, 2] else pick(rng, {1: 8.0, 2: 2.0})
        pad = [0, 0] if taps == [2, 2] else None
    elif kind == "stem":
        c, gradients = pick(rng, {3: 8.0, 1: 1.0, 4: 1.0}), "filter"
        one, stride = pick(rng, {(7, 2): 3.0, (3, 1): 3.0, (3, 2): 4.0, (4, 4): 1.5, (16, 16): 1.5, (14, 14): 1.0})
        taps, k = [one, one], choice(rng, [16, 24, 32, 48, 64, 96] if stride < 8 else [192, 384, 768, 1024])
        side = choice(rng, [32, 64, 128, 224, 256, 320, 384, 512]) // stride * stride
        size, pad = [side, side], [one // 2 if stride < 4 else 0] * 2
    elif kind == "grouped":
        groups = choice(rng, GROUPS)
        c = k = choice(rng, GROUP_WIDTHS) * groups
        if not (100 <= c <= 4000 and 1500 <= c * side <= 40000):
            return None
        stride = pick(rng, {1: 7.0, 2: 3.0})
    elif kind == "depthwise":
        one = pick(rng, {3: 5.0, 5: 3.0, 7: 3.0, 9: 0.5, 11: 0.5})
        groups, taps, stride = c, [one, one], pick(rng, {1: 7.0, 2: 3.0}) if one < 7 else 1
    elif kind == "dilated":
        dilation, k = choice(rng, [2, 2, 4, 6, 12, 18, 24, 36]), near(c * choice(rng, [0.25, 0.5, 1, 1]))
    elif kind == "transposed":
        one, stride, border = pick(rng, {(2, 2, 0): 4.0, (4, 2, 1): 4.0, (3, 2, 1): 1.0, (8, 4, 2): 0.5})
        taps, pad, k = [one, one], [border, border], near(c * choice(rng, [0.5, 0.5, 0.25, 1]))
    elif kind == "one":
        layout, c = "nchw", choice(rng, [32, 64, 80, 128, 192, 256, 384, 512, 768, 1024])
        size = [choice(rng, [100, 250, 500, 1000, 1500, 3000, 4000, 8000, 16000, 32000])]
        taps, dilation = [choice(rng, [1, 3, 3, 3, 5, 7, 9, 15, 31, 128])], choice(rng, [1, 1, 1, 1, 2, 4, 8, 16, 32, 64, 128])
        groups = pick(rng, {1: 6.0, c: 2.0, 16: 1.0})
        k = c if groups > 1 else near(c * choice(rng, [1, 1, 1, 2, 0.5, 4]))
        if c * size[0] > 4e6 or dilation * (taps[0] - 1) >= size[0] or c % groups or (groups > 1 and dilation > 1):
            return None
    else:
        c, depth, side = choice(rng, CLIPS)
        size, k, layout = [depth, side, side], choice(rng, [c, c, 2 * c]), pick(rng, {"nchw": 4.0, "nhwc": 1.0})
        taps = list(choice(rng, [(3, 3, 3), (3, 3, 3), (1, 3, 3), (3, 1, 1), (1, 1, 1)]))
    if pad is None:
        pad = [dilation * (one - 1) // 2 for one in taps]
    return {
        "kind": "dense" if kind in ("stem", "dilated") else kind,
        "dtype": "bf16",
        "layout": layout,
        "pass": choice(rng, ["fwd", gradients]),
        "benchmark": 0,
        "n": choice(rng, BATCHES),
        "c": c,
        "k": k,
        "groups": groups,
        "size": "x".join(map(str, size)),
        "filter": "x".join(map(str, taps)),
        "stride": stride,
        "pad": "x".join(map(str, pad)),
        "dilation": dilation,
    }
