"""Kernels that move bytes: element by element, row by row, normalisation of images, quantisation to fp8."""

from __future__ import annotations

import random
from collections.abc import Callable

import torch
import torch.nn.functional as F

from dense import image
from family import Case, Family, choice, log_uniform, multiple, pick
from operands import DTYPES, Operands
from timing import Launch, Make

aten = torch.ops.aten
Tensor = torch.Tensor

# --- elementwise: `inputs` tensors of numel elements in, one out. `cast_x` names the dtype of the output.

UNARY: dict[str, Callable[[Tensor], Tensor]] = {
    "cast_bf16": lambda x: x.to(torch.bfloat16),
    "cast_fp32": lambda x: x.to(torch.float32),
    "copy": torch.clone,
    "cos": torch.cos,
    "dropout": lambda x: F.dropout(x, 0.1),
    "exp": torch.exp,
    "gelu": F.gelu,
    "neg": torch.neg,
    "pow": lambda x: x.pow(2),
    "relu": torch.relu,
    "rsqrt": torch.rsqrt,
    "scalar_mul": lambda x: x * 1.5,
    "silu": F.silu,
    "tanh": torch.tanh,
}
BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "add": torch.add,
    "div": torch.div,
    "gelu_backward": aten.gelu_backward,
    "mul": torch.mul,
    "relu_backward": lambda grad, x: aten.threshold_backward(grad, x, 0),
    "silu_backward": aten.silu_backward,
    "tanh_backward": aten.tanh_backward,
}
ELEMENTWISE_WEIGHTS = {**{op: 1.0 for op in UNARY}, **{op: 1.4 for op in BINARY}}


def draw_elementwise(rng: random.Random) -> Case | None:
    """1 Ki to 470 M elements: a third in multiples of 1024, a third of 8, the rest as they fall."""
    dtype, op = pick(rng, {"bf16": 2.0, "fp16": 1.0, "fp32": 1.0}), pick(rng, ELEMENTWISE_WEIGHTS)
    if op == "cast_" + dtype:
        return None
    numel = multiple(log_uniform(rng, 1024, 4.7e8), pick(rng, {1024: 0.33, 8: 0.34, 1: 0.33}))
    return {"dtype": dtype, "op": op, "inputs": 2 if op in BINARY else 1, "numel": numel}


def build_elementwise(case: Case, operands: Operands) -> Make:
    dtype, op, numel = DTYPES[case["dtype"]], case["op"], case["numel"]

    def make() -> Launch:
        x = operands.take(dtype, numel)
        if op in UNARY:
            return lambda: UNARY[op](x)
        y = operands.take(dtype, numel)
        return lambda: BINARY[op](x, y)

    return make


# --- rowwise: x[rows, cols], the operator works along cols unless its name says otherwise.

RowwiseOp = Callable[[Operands, torch.dtype, int, int], Launch]
VOCABULARY, SMALL_VOCABULARY = 50257, 4096  # rows of an embedding table; the small one
TABLE_MAX = 7e8  # where the other would exceed this many elements


def table_rows(cols: int) -> int:
    return VOCABULARY if VOCABULARY * cols <= TABLE_MAX else SMALL_VOCABULARY


def on_matrix(function: Callable[[Tensor], Tensor]) -> RowwiseOp:
    """An operator of x alone."""

    def bind(operands: Operands, dtype: torch.dtype, rows: int, cols: int) -> Launch:
        x = operands.take(dtype, rows, cols)
        return lambda: function(x)

    return bind


def bias_add(operands: Operands, dtype: torch.dtype, rows: int, cols: int) -> Launch:
    x, bias = operands.take(dtype, rows, cols), operands.take(dtype, cols)
    return lambda: x + bias


def cat_halves(x: Tensor) -> Tensor:
    half = x.shape[1] // 2
    return torch.cat([x[:, half:], x[:, :half]], dim=1)


def layernorm(operands: Operands, dtype: torch.dtype, rows: int, cols: int) -> Launch:
    x, weight, bias = operands.take(dtype, rows, cols), operands.take(dtype, cols), operands.take(dtype, cols)
    return lambda: F.layer_norm(x, (cols,), weight, bias)


def layernorm_backward(operands: Operands, dtype: torch.dtype, rows: int, cols: int) -> Launch:
    grad, x = operands.take(dtype, rows, cols), operands.take(dtype, rows, cols)
    weight, bias = operands.take(dtype, cols), operands.take(dtype, cols)
    mean, rstd = operands.take(torch.float32, rows, 1), operands.take(torch.float32, rows, 1)
    return lambda: aten.native_layer_norm_backward(grad, x, [cols], mean, rstd, weight, bias, [True, True, True])


def rmsnorm(operands: Operands, dtype: torch.dtype, rows: int, cols: int) -> Launch:
    x, weight = operands.take(dtype, rows, cols), operands.take(dtype, cols)
    return lambda: F.rms_norm(x, (cols,), weight)


def rmsnorm_backward(operands: Operands, dtype: torch.dtype, rows: int, cols: int) -> Launch:
    grad, x, weight = operands.take(dtype, rows, cols), operands.take(dtype, rows, cols), operands.take(dtype, cols)
    rstd = operands.take(torch.float32, rows, 1)
    return lambda: aten._fused_rms_norm_backward(grad, x, [cols], rstd, weight, [True, True])


def softmax_backward(operands: Operands, dtype: torch.dtype, rows: int, cols: int) -> Launch:
    grad, y = operands.take(dtype, rows, cols), operands.take(dtype, rows, cols)
    return lambda: aten._softmax_backward_data(grad, y, 1, dtype)


def log_softmax_backward(operands: Operands, dtype: torch.dtype, rows: int, cols: int) -> Launch:
    grad, y = operands.take(dtype, rows, cols), operands.take(dtype, rows, cols)
    return lambda: aten._log_softmax_backward_data(grad, y, 1, dtype)


def cross_entropy(operands: Operands, dtype: torch.dtype, rows: int, cols: int) -> Launch:
    logits, labels = operands.take(dtype, rows, cols), operands.integers(cols, rows)
    return lambda: F.cross_entropy(logits, labels)


def cross_entropy_backward(operands: Operands, dtype: torch.dtype, rows: int, cols: int) -> Launch:
    """As autograd runs it: the gradient of nll_loss (zeros and one figure a row), then that of log_softmax."""
    log_probs, labels = operands.take(dtype, rows, cols), operands.integers(cols, rows)
    grad, weight = (
        torch.ones((), dtype=dtype, device=operands.device),
        torch.full((), rows, dtype=dtype, device=operands.device),
    )

    def launch() -> Tensor:
        grad_log_probs = aten.nll_loss_backward(grad, log_probs, labels, None, 1, -100, weight)
        return aten._log_softmax_backward_data(grad_log_probs, log_probs, 1, dtype)

    return launch


def embedding(operands: Operands, dtype: torch.dtype, rows: int, cols: int) -> Launch:
    table, taken = operands.take(dtype, table_rows(cols), cols), operands.bytes_taken
    ids = operands.integers(table_rows(cols), rows)
    # Only the rows that are looked up are read: they decide how many copies it takes to stay cold, not the table.
    operands.bytes_taken = taken - table.numel() * table.element_size() + rows * cols * table.element_size()
    return lambda: F.embedding(ids, table)


def embedding_backward(operands: Operands, dtype: torch.dtype, rows: int, cols: int) -> Launch:
    """The dense gradient: the whole table is zeroed, then rows are added; from 3072 rows on they are sorted first."""
    grad, ids = operands.take(dtype, rows, cols), operands.integers(table_rows(cols), rows)
    return lambda: aten.embedding_dense_backward(grad, ids, table_rows(cols), -1, False)


ROWWISE_OPS: dict[str, RowwiseOp] = {
    "argmax": on_matrix(lambda x: x.argmax(1)),
    "bias_add": bias_add,
    "cat_halves": on_matrix(cat_halves),
    "cross_entropy": cross_entropy,
    "cross_entropy_backward": cross_entropy_backward,
    "cumsum": on_matrix(lambda x: x.cumsum(1)),
    "embedding": embedding,
    "embedding_backward": embedding_backward,
    "layernorm": layernorm,
    "layernorm_backward": layernorm_backward,
    "log_softmax": on_matrix(lambda x: F.log_softmax(x, 1)),
    "log_softmax_backward": log_softmax_backward,
    "mean_all": on_matrix(torch.mean),
    "rmsnorm": rmsnorm,
    "rmsnorm_backward": rmsnorm_backward,
    "softmax": on_matrix(lambda x: F.softmax(x, 1)),
    "softmax_backward": softmax_backward,
    "sum_cols": on_matrix(lambda x: x.sum(0)),
    "sum_rows": on_matrix(lambda x: x.sum(1)),
    "transpose_copy": on_matrix(lambda x: x.t().contiguous()),
}
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


def build_rowwise(case: Case, operands: Operands) -> Make:
    bind = ROWWISE_OPS[case["op"]]
    return lambda: bind(operands, DTYPES[case["dtype"]], case["rows"], case["cols"])


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
        "dtype": pick(rng, {"bf16": 2.0, "fp32": 1.0}),
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

FP8 = torch.float8_e4m3fn
FP8_MAX = torch.finfo(FP8).max


def cast(x: Tensor, scale: Tensor) -> Tensor:
    return x.to(FP8)


def tensor_static(x: Tensor, scale: Tensor) -> Tensor:
    return (x * scale).to(FP8)


def tensor_dynamic(x: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    inverse = x.abs().amax().float().clamp(min=1e-12) / FP8_MAX
    return (x / inverse).clamp(-FP8_MAX, FP8_MAX).to(FP8), inverse


def row_dynamic(x: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    inverse = x.abs().amax(1, keepdim=True).float().clamp(min=1e-12) / FP8_MAX
    return (x / inverse).clamp(-FP8_MAX, FP8_MAX).to(FP8), inverse


QUANTIZE_OPS = {
    "cast": cast,
    "tensor_static": tensor_static,
    "tensor_dynamic": tensor_dynamic,
    "row_dynamic": row_dynamic,
}


def draw_quantize(rng: random.Random) -> Case | None:
    shape = draw_matrix(rng)
    return shape and {"dtype": "bf16", "op": choice(rng, list(QUANTIZE_OPS)), "rows": shape[0], "cols": shape[1]}


def build_quantize(case: Case, operands: Operands) -> Make:
    op, dtype = QUANTIZE_OPS[case["op"]], DTYPES[case["dtype"]]

    def make() -> Launch:
        x, scale = operands.take(dtype, case["rows"], case["cols"]), torch.ones((), dtype=dtype, device=operands.device)
        return lambda: op(x, scale)

    return make


ELEMENTWISE = Family("elementwise", ("dtype", "op", "inputs", "numel"), draw_elementwise, build_elementwise)
ROWWISE = Family("rowwise", ("dtype", "op", "rows", "cols"), draw_rowwise, build_rowwise)
NORM = Family("norm", ("dtype", "op", "layout", "pass", "n", "c", "h", "w"), draw_norm, build_norm)
QUANTIZE = Family("quantize", ("dtype", "op", "rows", "cols"), draw_quantize, build_quantize)
