"""Matrix products, alone and batched, and convolutions: what the tensor cores do."""

from __future__ import annotations

import random

from family import Case, Family, choice, log_uniform, multiple, pick

from foretell.calibrate.kernels.dense import build_bmm, build_conv, build_gemm, conv_side

# --- gemm: C[m,n] = A[m,k] B[k,n]. Layout `nt`: B is stored [n,k], as F.linear has it; `tn`: A is stored [k,m], as
# gradients of weights have it.

MODEL_ROWS = [1 << i for i in range(15)]
MODEL_WIDTHS = [768, 1024, 1280, 1536, 1600, 2048, 2304, 2560, 3072, 3584, 4096, 5120, 6144, 7168, 8192, 11008, 14336]
MODEL_WIDTHS += [16384, 18944, 28672]
VOCABULARIES = [32000, 50257, 50304, 128256]
GEMM_DTYPES = {"bf16": 3.0, "fp16": 1.0, "tf32": 1.0, "fp32": 1.0, "fp8": 1.0}
GEMM_MAX_FLOP = {"fp32": 2e12}
DENSE_MAX_FLOP = 2.4e13
WEIGHT_MAX, OUTPUT_MAX = 8e8, 1.1e9  # elements


def draw_gemm(rng: random.Random) -> Case | None:
    """Half: a power of two rows against layer and vocabulary widths of real models. 30 %: multiples of 8 from 16 to
    16384. 20 %: any size from 8 to 12288. fp8 takes multiples of 16 only and one layout (the hardware's)."""
    dtype = pick(rng, GEMM_DTYPES)
    layout = "nt" if dtype == "fp8" else pick(rng, {"nt": 2.0, "nn": 1.0, "tn": 1.0})
    kind = pick(rng, {"model": 0.5, "aligned": 0.3, "any": 0.2})
    if kind == "model":
        m, n, k = choice(rng, MODEL_ROWS), choice(rng, MODEL_WIDTHS + VOCABULARIES), choice(rng, MODEL_WIDTHS)
    elif kind == "aligned" or dtype == "fp8":
        m, n, k = (multiple(log_uniform(rng, 16, 16384), 8) for _ in range(3))
    else:
        m, n, k = (log_uniform(rng, 8, 12288) for _ in range(3))
    if dtype == "fp8":
        m, n, k = multiple(m, 16), multiple(n, 16), multiple(k, 16)
    if 2.0 * m * n * k > GEMM_MAX_FLOP.get(dtype, DENSE_MAX_FLOP) or n * k > WEIGHT_MAX or m * n > OUTPUT_MAX:
        return None
    return {"dtype": dtype, "layout": layout, "m": m, "n": n, "k": k}


# --- bmm: b products of one shape, as eager attention runs them.

SEQUENCES = [128, 256, 512, 1024, 2048, 4096]
HEAD_DIMS = [32, 64, 80, 96, 128]
BMM_MAX_ELEMENTS = 1e9


def draw_bmm(rng: random.Random) -> Case | None:
    """Half: scores (seq x seq x head) and values (seq x head x seq) of attention. Half: each side from 8 to 2048,
    rounded to 1, 8 or 64."""
    dtype = pick(rng, {"bf16": 2.0, "fp16": 1.0, "tf32": 1.0, "fp32": 1.0})
    batch = log_uniform(rng, 2, 769)
    if rng.random() < 0.5:
        seq, head = choice(rng, SEQUENCES), choice(rng, HEAD_DIMS)
        m, n, k = choice(rng, [(seq, seq, head), (seq, head, seq)])
    else:
        m, n, k = (multiple(log_uniform(rng, 8, 2049), choice(rng, [1, 8, 64])) for _ in range(3))
    if batch * (m * k + n * k + m * n) > BMM_MAX_ELEMENTS:
        return None
    return {"dtype": dtype, "layout": choice(rng, ["nn", "nt"]), "b": batch, "m": m, "n": n, "k": k}


# --- conv: x[n,c,h,w] with k filters of r x s. `bwd` is both gradients, of the input and of the filters.

CONV_MAX_ELEMENTS = 2.5e8
CONV_MAX_FLOP = {"bf16": 3e12, "tf32": 3e12, "fp32": 4e11}


def draw_conv(rng: random.Random) -> Case | None:
    """Images of the ImageNet halving series, 3 or a power of two channels, square filters, `same` padding."""
    dtype = pick(rng, {"bf16": 2.0, "tf32": 1.0, "fp32": 1.0})
    n, h = choice(rng, [1, 8, 16, 32, 64, 128]), choice(rng, [7, 14, 28, 56, 112, 224])
    c, k = choice(rng, [3, 16, 32, 64, 128, 256, 512, 1024, 2048]), choice(rng, [16, 32, 64, 128, 256, 512, 1024, 2048])
    r, stride = pick(rng, {1: 2.0, 3: 2.0, 5: 1.0, 7: 1.0}), pick(rng, {1: 2.0, 2: 1.0})
    out = conv_side(h, r, stride, r // 2)
    if (
        max(n * c * h * h, n * k * out * out) > CONV_MAX_ELEMENTS
        or 2.0 * n * k * out * out * c * r * r > CONV_MAX_FLOP[dtype]
    ):
        return None
    layout, direction = pick(rng, {"nhwc": 2.0, "nchw": 1.0}), pick(rng, {"fwd": 3.0, "bwd": 2.0})
    return {
        "dtype": dtype,
        "layout": layout,
        "pass": direction,
        "n": n,
        "c": c,
        "h": h,
        "w": h,
        "k": k,
        "r": r,
        "s": r,
        "stride": stride,
        "pad": r // 2,
    }


GEMM = Family("gemm", ("dtype", "layout", "m", "n", "k"), draw_gemm, build_gemm)
BMM = Family("bmm", ("dtype", "layout", "b", "m", "n", "k"), draw_bmm, build_bmm)
CONV = Family(
    "conv", ("dtype", "layout", "pass", "n", "c", "h", "w", "k", "r", "s", "stride", "pad"), draw_conv, build_conv
)
