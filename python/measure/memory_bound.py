"""Kernels that move bytes: element by element, row by row, normalisation of images, quantisation to fp8."""

from __future__ import annotations

import random

import torch
import torch.nn.functional as F
from family import Case, Family, choice, log_uniform, multiple, pick

from foretell.calibrate.kernels.dense import image
from foretell.calibrate.kernels.elementwise import BINARY, UNARY, build_elementwise
from foretell.calibrate.kernels.quantize import QUANTIZE_OPS, build_quantize
from foretell.calibrate.kernels.rowwise import ROWWISE_OPS, build_rowwise
from foretell.calibrate.operands import DTYPES, Operands
from foretell.calibrate.timing import Launch, Make

# --- elementwise: `inputs` tensors of numel elements in, one out. `cast_x` names the dtype of the output.

ELEMENTWISE_WEIGHTS = {**{op: 1.0 for op in UNARY}, **{op: 1.4 for op in BINARY}}


def draw_elementwise(rng: random.Random) -> Case | None:
    """1 Ki to 470 M elements: a third in multiples of 1024, a third of 8, the rest as they fall."""
    dtype, op = pick(rng, {"bf16": 2.0, "fp16": 1.0, "fp32": 1.0}), pick(rng, ELEMENTWISE_WEIGHTS)
    if op == "cast_" + dtype:
        return None
    numel = multiple(log_uniform(rng, 1024, 4.7e8), pick(rng, {1024: 0.33, 8: 0.34, 1: 0.33}))
    return {"dtype": dtype, "op": op, "inputs": 2 if op in BINARY else 1, "numel": numel}


# --- rowwise: x[rows, cols], the operator works along cols unless its name says otherwise.

OFTEN = (
    "cumsum",
    "embedding_backward",
    "mean_all",
    "sum_cols",
    "layernorm_backward",
    "cross_entropy",
    "cross_entropy_backward",
    "log_softmax_backward",
    "rmsnorm_backward",
)
ROWWISE_WEIGHTS = {op: 2.0 if op in OFTEN else 1.0 for op in ROWWISE_OPS}
COMMON_COLS = [64, 128, 512, 768, 1024, 2048, 4096, 5120, 8192, 16384, 32000, 50257, 128256]
ROWWISE_MAX_ELEMENTS = 7e8


def draw_matrix(rng: random.Random) -> tuple[int, int] | None:
    """Rows from 1 to 128 Ki; half of the columns are widths of real models, half lie anywhere from 32 to 64 Ki."""
    rows = log_uniform(rng, 1, 131073)
    cols = choice(rng, COMMON_COLS) if rng.random() < 0.5 else log_uniform(rng, 32, 65537)
    return (rows, cols) if rows * cols <= ROWWISE_MAX_ELEMENTS else None


def draw_rowwise(rng: random.Random) -> Case | None:
    dtype, op, shape = pick(rng, {"bf16": 2.0, "fp32": 1.0}), pick(rng, ROWWISE_WEIGHTS), draw_matrix(rng)
    if shape is None or (op == "transpose_copy" and 1 in shape):  # a transposed vector is itself: nothing would run
        return None
    return {"dtype": dtype, "op": op, "rows": shape[0], "cols": shape[1]}


# --- norm: batch and group normalisation of images x[n,c,h,w], in training.

GROUPS = 32
IMAGE_MAX_ELEMENTS = 2.5e8  # as for convolutions


def draw_norm(rng: random.Random) -> Case | None:
    op = choice(rng, ["batch_norm", "group_norm"])
    n, h = choice(rng, [1, 2, 4, 8, 16, 32, 64, 128]), choice(rng, [7, 14, 28, 32, 56, 64, 112, 128, 224])
    c = choice(rng, [32, 64, 128, 256, 320, 512, 640, 1024, 1280, 2048])
    if n * c * h * h > IMAGE_MAX_ELEMENTS:
        return None
    return {
        "dtype": pick(rng, {"bf16": 1.0, "fp16": 3.0, "fp32": 1.0}),
        "op": op,
        "layout": choice(rng, ["nhwc", "nchw"]),
        "pass": choice(rng, ["fwd", "bwd"]),
        "n": n,
        "c": c,
        "h": h,
        "w": h,
    }


def build_norm(case: Case, operands: Operands) -> Make:
    """Weights, bias and statistics of batch norm stay fp32 under bf16, as in mixed precision; group norm's follow x."""
    dtype, layout, n, c, h, w = DTYPES[case["dtype"]], case["layout"], case["n"], case["c"], case["h"], case["w"]
    batch = case["op"] == "batch_norm"

    def make() -> Launch:
        x = image(operands, dtype, layout, n, c, h, w)
        weight, bias = (operands.take(torch.float32 if batch else dtype, c) for _ in range(2))
        if batch:
            mean, var = torch.zeros(c, device=operands.device), torch.ones(c, device=operands.device)
            forward = lambda t: F.batch_norm(t, mean, var, weight, bias, training=True)  # noqa: E731
        else:
            forward = lambda t: F.group_norm(t, GROUPS, weight, bias)  # noqa: E731
        if case["pass"] == "fwd":
            return lambda: forward(x)
        # The forward pass runs once, here; its saved tensors serve every launch of the backward pass.
        leaves = [x.detach().requires_grad_()] + [p.detach().requires_grad_() for p in (weight, bias)]
        weight, bias = leaves[1:]
        with torch.enable_grad():
            out = forward(leaves[0])
        grad = image(operands, dtype, layout, n, c, h, w)
        return lambda: torch.autograd.grad(out, leaves, grad, retain_graph=True)

    return make


# --- quantize: x[rows, cols] in bf16 to fp8 (e4m3), in eager PyTorch.

def draw_quantize(rng: random.Random) -> Case | None:
    shape = draw_matrix(rng)
    return shape and {"dtype": "bf16", "op": choice(rng, list(QUANTIZE_OPS)), "rows": shape[0], "cols": shape[1]}


ELEMENTWISE = Family("elementwise", ("dtype", "op", "inputs", "numel"), draw_elementwise, build_elementwise)
ROWWISE = Family("rowwise", ("dtype", "op", "rows", "cols"), draw_rowwise, build_rowwise)
NORM = Family("norm", ("dtype", "op", "layout", "pass", "n", "c", "h", "w"), draw_norm, build_norm)
QUANTIZE = Family("quantize", ("dtype", "op", "rows", "cols"), draw_quantize, build_quantize)
