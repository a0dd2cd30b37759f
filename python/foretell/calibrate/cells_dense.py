"""Cells of matrix products, convolutions and experts."""

from __future__ import annotations

from .cell import Cell, Draw, Request
from .shapes import BLOCKS, DECODE_ROWS, SEQUENCES, TOKENS, between, inner, linear_of, multiple, pick

WEIGHT_MAX, OUTPUT_MAX = 8e8, 1.1e9  # elements of the weights and of the result


def _gemm(dtype: str, layout: str, m: int, n: int, k: int) -> Request | None:
    if dtype == "fp8":  # the hardware has one layout, and takes multiples of 16
        layout, m, n, k = "nt", multiple(m, 16), multiple(n, 16), multiple(k, 16)
    if n * k > WEIGHT_MAX or m * n > OUTPUT_MAX or m * k > WEIGHT_MAX:
        return None
    request: Request = {"op": "gemm", "dtype": dtype, "m": m, "n": n, "k": k, "layout": layout}
    if dtype == "fp8":
        request["quantized"] = True
    return request


def gemm_model(dtype: str) -> Draw:
    """Layers of real models over a training or prefill batch, whole or split over 2, 4, 8 GPUs: y = x W^T (nt), and
    of its backward pass the gradients of x (nn) and of W (tn). Every fifth is a model nobody has built yet: widths in
    multiples of 64."""

    def draw(u: tuple[float, ...], index: int) -> Request | None:
        inputs, outputs = linear_of(pick(u[0], BLOCKS), int(inner(u[0], len(BLOCKS)) * 6) % 6)
        tokens = pick(u[1], TOKENS) if index % 3 else multiple(between(u[1], 64, 16384), 8 if index % 2 else 1)
        split = (1, 1, 1, 2, 4, 8)[int(u[2] * 6)]
        if outputs % split == 0 and inner(u[2], 6) < 0.5:
            outputs //= split
        elif inputs % split == 0:
            inputs //= split
        if index % 5 == 4:
            inputs, outputs = multiple(between(u[0], 256, 20480), 64), multiple(between(u[2], 256, 20480), 64)
        layout = ("nt", "nn", "nt", "tn")[index % 4]
        if layout == "tn":
            return _gemm(dtype, "tn", outputs, inputs, tokens)
        if layout == "nn":
            return _gemm(dtype, "nn", tokens, inputs, outputs)
        return _gemm(dtype, "nt", tokens, outputs, inputs)

    return draw


def gemm_decode(dtype: str) -> Draw:
    """One token for each of a batch of 1 to 64: as many rows, the weights as they lie."""

    def draw(u: tuple[float, ...], index: int) -> Request | None:
        inputs, outputs = linear_of(pick(u[0], BLOCKS), int(inner(u[0], len(BLOCKS)) * 6) % 6)
        split = (1, 1, 2, 4, 8)[int(u[2] * 5)]
        if outputs % split == 0:
            outputs //= split
        rows = pick(u[1], DECODE_ROWS) if index % 2 else between(u[1], 1, 64)
        return _gemm(dtype, "nt", rows, outputs, inputs)

    return draw


def gemm_aligned(dtype: str) -> Draw:
    """Anything from 16 to 16384 in multiples of 8, half of it of 64."""

    def draw(u: tuple[float, ...], index: int) -> Request | None:
        of = 64 if index % 2 and min(u) > 0.2 else 8
        m, n, k = (multiple(between(x, 16, 16384), of) for x in u)
        return _gemm(dtype, ("nt", "nn", "tn", "nt")[index % 4], m, n, k)

    return draw


def gemm_any(dtype: str) -> Draw:
    """Any size from 8 to 12288; every third only its columns odd, as an unpadded vocabulary is."""

    def draw(u: tuple[float, ...], index: int) -> Request | None:
        m, n, k = (between(x, 8, 12288) for x in u)
        if index % 3 == 0:
            m, k = multiple(m, 8), multiple(k, 8)
        return _gemm(dtype, ("nt", "nn", "tn", "nt")[index % 4], m, n, k)

    return draw


def bmm(dtype: str) -> Draw:
    """Half: scores (seq x seq x head) and values (seq x head x seq) of attention; half: 8 to 2048 a side."""

    def draw(u: tuple[float, ...], index: int) -> Request | None:
        b = between(u[0], 2, 768)
        layout = "nt" if index % 4 < 2 else "nn"
        if index % 2:
            seq, head = pick(u[1], SEQUENCES[:9]), pick(u[2], (32, 64, 64, 80, 96, 128, 128))
            m, n, k = (seq, seq, head) if u[3] < 0.5 else (seq, head, seq)
        else:
            of = pick(u[3], (1, 8, 8, 64))
            m, n, k = multiple(between(u[1], 8, 2048), of), multiple(between(u[2], 8, 2048), of), 0
            k = multiple(between(inner(u[3], 4), 8, 2048), of)
        if b * (m * k + n * k + m * n) > 1e9:
            return None
        return {"op": "bmm", "dtype": dtype, "b": b, "m": m, "n": n, "k": k, "layout": layout}

    return draw


# (channels in, filters, side of the image, of the filter, stride) of ResNet-50, VGG-16, ConvNeXt, a diffusion U-Net
CONV_LAYERS = (
    (3, 64, 224, 7, 2), (64, 64, 56, 1, 1), (64, 64, 56, 3, 1), (64, 256, 56, 1, 1), (256, 64, 56, 1, 1),
    (256, 128, 56, 1, 1), (128, 128, 56, 3, 2), (128, 512, 28, 1, 1), (512, 128, 28, 1, 1), (128, 128, 28, 3, 1),
    (512, 256, 28, 1, 1), (256, 256, 28, 3, 2), (256, 1024, 14, 1, 1), (1024, 256, 14, 1, 1), (256, 256, 14, 3, 1),
    (1024, 512, 14, 1, 1), (512, 512, 14, 3, 2), (512, 2048, 7, 1, 1), (2048, 512, 7, 1, 1), (512, 512, 7, 3, 1),
    (3, 64, 224, 3, 1), (64, 128, 112, 3, 1), (256, 512, 28, 3, 1), (512, 512, 28, 3, 1), (3, 96, 224, 4, 4),
    (320, 320, 64, 3, 1), (640, 640, 32, 3, 1), (1280, 1280, 16, 3, 1), (4, 320, 64, 3, 1), (3, 768, 224, 16, 16),
)  # fmt: skip


def conv(dtype: str) -> Draw:
    """Half: layers of ResNet, VGG, ConvNeXt, a U-Net and a patch embedding; half: the halving series of sides."""

    def draw(u: tuple[float, ...], index: int) -> Request | None:
        n = pick(u[0], (1, 2, 4, 8, 16, 32, 64, 128))
        if index % 2:
            c, k, h, r, stride = pick(u[1], CONV_LAYERS)
        else:
            c, k = pick(u[1], (3, 16, 32, 64, 128, 256, 512, 1024, 2048)), pick(u[2], (16, 32, 64, 128, 256, 512, 1024))
            h, r = pick(u[3], (7, 14, 28, 56, 112, 224)), pick(inner(u[3], 6), (1, 1, 3, 3, 5, 7))
            stride = 1 if inner(u[2], 7) < 0.67 else 2
        pad = 0 if r == stride else r // 2
        out = (h + 2 * pad - r) // stride + 1
        if max(n * c * h * h, n * k * out * out) > 2.5e8:
            return None
        return {
            "op": "conv2d", "dtype": dtype, "n": n, "c": c, "h": h, "w": h, "k": k, "r": r, "s": r, "stride": stride,
            "pad": pad, "layout": "nchw" if index % 6 < 2 else "nhwc", "pass": "bwd" if index % 5 < 2 else "fwd",
        }  # fmt: skip

    return draw


def moe(dtype: str) -> Draw:
    """Widths and counts of Mixtral, Qwen-MoE, OLMoE, DeepSeek and their expert-parallel shards."""

    def draw(u: tuple[float, ...], index: int) -> Request | None:
        tokens, topk = between(u[0], 1, 16384), pick(u[1], (1, 2, 2, 4, 6, 8, 8))
        experts = pick(inner(u[1], 7), (4, 8, 16, 32, 64, 128, 256))
        hidden = pick(u[2], (1024, 2048, 2560, 3072, 4096, 5120, 6144, 7168))
        inter = pick(u[3], (512, 768, 1024, 1408, 1536, 2048, 3072, 4096, 8192, 14336))
        if index % 2:
            tokens = 1 << tokens.bit_length() - 1
        if topk > experts or 6.0 * experts * hidden * inter > 6e9:
            return None
        return {
            "op": "moe", "dtype": dtype, "tokens": tokens, "hidden": hidden, "inter": inter, "topk": topk,
            "experts": experts, "engine": "bare",
        }  # fmt: skip

    return draw


FULL = ((gemm_model, 0.56), (gemm_decode, 0.20), (gemm_aligned, 0.14), (gemm_any, 0.10))
SHORT = ((gemm_model, 0.75), (gemm_any, 0.25))
FP8 = ((gemm_model, 0.55), (gemm_decode, 0.45))  # its sizes are multiples of 16 whatever is drawn


def gemm_cells(dtype: str, weight: float, full: bool) -> list[Cell]:
    """Products in one format, `weight` their share together; `full` for the one that is asked for most."""
    parts = FULL if full else FP8 if dtype == "fp8" else SHORT
    return [
        Cell(f"gemm.{dtype}.{make.__name__.removeprefix('gemm_')}", "gemm", dtype, weight * share, 3, make(dtype))
        for make, share in parts
    ]
