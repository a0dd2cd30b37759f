"""x[rows, cols]: the operator works along cols unless its name says otherwise."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F

from ..operands import DTYPES, Operands
from ..timing import Launch, Make
from .case import Case

aten = torch.ops.aten
Tensor = torch.Tensor

RowwiseOp = Callable[..., Launch]  # (operands, dtype, rows, cols), and the vocabulary of an embedding
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


def embedding(operands: Operands, dtype: torch.dtype, rows: int, cols: int, vocab: int = 0) -> Launch:
    vocab = vocab or table_rows(cols)
    table, taken = operands.take(dtype, vocab, cols), operands.bytes_taken
    ids = operands.integers(vocab, rows)
    # Only the rows that are looked up are read: they decide how many copies it takes to stay cold, not the table.
    operands.bytes_taken = taken - table.numel() * table.element_size() + rows * cols * table.element_size()
    return lambda: F.embedding(ids, table)


def embedding_backward(operands: Operands, dtype: torch.dtype, rows: int, cols: int, vocab: int = 0) -> Launch:
    """The dense gradient: the whole table is zeroed, then rows are added; from 3072 rows on they are sorted first."""
    vocab = vocab or table_rows(cols)
    grad, ids = operands.take(dtype, rows, cols), operands.integers(vocab, rows)
    return lambda: aten.embedding_dense_backward(grad, ids, vocab, -1, False)


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


def build_rowwise(case: Case, operands: Operands) -> Make:
    bind = ROWWISE_OPS[case["op"]]
    if case.get("vocab"):  # of an embedding
        bind = partial(bind, vocab=case["vocab"])
    return lambda: bind(operands, DTYPES[case["dtype"]], case["rows"], case["cols"])
