"""Cells of attention and of the operators that move bytes."""

from __future__ import annotations

from .cell import Draw, Request
from .shapes import BLOCKS, SEQUENCES, TOKENS, between, inner, multiple, pick

HEAD_DIMS = (128, 64, 128, 64, 96, 80, 128, 64)
MAX_TENSOR, MAX_SCORES = 4e8, 4e10  # elements of Q or of K with every head; of the score matrix, which is never stored


def attention(dtype: str, direction: str) -> Draw:
    """Two in three have heads of real models; every third length lies between the usual ones. `decode` is one token
    against a cache."""

    def draw(u: tuple[float, ...], index: int) -> Request | None:
        kv_len = pick(u[0], (*SEQUENCES, 16384)) if index % 3 else multiple(between(u[0], 64, 12288), 8)
        batch = between(u[1], 1, 128 if direction == "decode" else 48)
        if index % 3 == 1:
            heads, group = pick(u[2], (8, 12, 16, 20, 24, 32, 40, 64)), pick(u[3], (1, 1, 2, 4, 8))
            kv_heads = heads // group if heads % group == 0 else heads
            head_dim = HEAD_DIMS[index // 3 % len(HEAD_DIMS)]
        else:
            block = pick(u[2], BLOCKS)
            heads, kv_heads, head_dim = block.heads, block.kv_heads, block.head_dim
            split = pick(u[3], (1, 1, 1, 2, 4, 8))  # tensor parallel
            if heads % split == 0 and kv_heads % split == 0:
                heads, kv_heads = heads // split, kv_heads // split
        q_len, causal = (1, False) if direction == "decode" else (kv_len, index % 4 != 3)
        if batch * heads * kv_len * head_dim > MAX_TENSOR or batch * heads * q_len * kv_len > MAX_SCORES:
            return None
        return {
            "op": "attention", "dtype": dtype, "batch": batch, "heads": heads, "kv_heads": kv_heads, "q_len": q_len,
            "kv_len": kv_len, "head_dim": head_dim, "causal": causal, "engine": "bare",
            "pass": "fwd" if direction == "decode" else direction,
        }  # fmt: skip

    return draw


# The operators of models, those they launch most more than once: a cycle that is walked through point by point.
POINTWISE = (
    "add", "mul", "copy", "gelu", "silu", "cast_fp32", "add", "dropout", "mul", "scalar_mul", "relu", "gelu_backward",
    "copy", "silu_backward", "div", "cast_bf16", "pow", "tanh", "add", "exp", "relu_backward", "rsqrt", "neg", "cos",
    "tanh_backward",
)  # fmt: skip
BINARY = {"add", "mul", "div", "gelu_backward", "silu_backward", "relu_backward", "tanh_backward"}


def elementwise(dtype: str) -> Draw:
    """1 Ki to 400 M elements: half tokens x a model's width, the rest in multiples of 1024, of 8 and as they fall."""
    names = [name for name in POINTWISE if name != "cast_" + dtype]

    def draw(u: tuple[float, ...], index: int) -> Request | None:
        name = names[index % len(names)]
        if index // len(names) % 2:
            block, tokens = pick(u[1], BLOCKS), between(u[0], 1, 32768)
            width = pick(inner(u[1], len(BLOCKS)), (block.hidden, block.inter, block.hidden * 2, block.vocab))
            numel = tokens * width
        else:
            numel = multiple(between(u[0], 1024, 4e8), pick(u[1], (1, 8, 1024)))
        if not 512 <= numel <= 4e8:
            return None
        return {"op": "elementwise", "dtype": dtype, "name": name, "inputs": 2 if name in BINARY else 1, "numel": numel}

    return draw


# (operator, pass), what models launch most more than once.
ROW_OPS = (
    ("rmsnorm", "fwd"), ("layernorm", "fwd"), ("softmax", "fwd"), ("cross_entropy", "fwd"), ("layernorm", "bwd"),
    ("embedding", "fwd"), ("softmax", "bwd"), ("rmsnorm", "bwd"), ("sum_cols", "fwd"), ("cross_entropy", "bwd"),
    ("bias_add", "fwd"), ("embedding", "bwd"), ("log_softmax", "fwd"), ("mean_all", "fwd"), ("transpose_copy", "fwd"),
    ("layernorm", "fwd"), ("rmsnorm", "bwd"), ("cat_halves", "fwd"), ("log_softmax", "bwd"), ("sum_rows", "fwd"),
    ("softmax", "fwd"), ("cumsum", "fwd"), ("layernorm", "bwd"), ("argmax", "fwd"), ("cross_entropy", "bwd"),
)  # fmt: skip
OVER_VOCABULARY = {"cross_entropy", "log_softmax", "argmax"}
OVER_SCORES = {"softmax", "cumsum"}
TABLE_MAX = 7e8  # elements of an embedding's table


def rowwise(dtype: str) -> Draw:
    """Every second as models have them: tokens x hidden, tokens x vocabulary, batch x heads x queries rows of scores;
    the others anywhere from 1 to 128 Ki rows of 32 to 64 Ki columns."""

    def draw(u: tuple[float, ...], index: int) -> Request | None:
        (op, direction), block = ROW_OPS[index % len(ROW_OPS)], pick(u[1], BLOCKS)
        if index // len(ROW_OPS) % 2:
            rows, cols = between(u[0], 1, 131072), between(u[1], 32, 65536)
        elif op in OVER_SCORES:
            cols = pick(inner(u[1], len(BLOCKS)), SEQUENCES)
            rows = cols * block.heads * between(u[0], 1, 16)
        else:
            rows = pick(u[0], TOKENS) if u[1] < 0.6 else between(u[0], 1, 32768)
            cols = block.vocab if op in OVER_VOCABULARY else block.hidden
        if rows * cols > 5e8 or (op == "transpose_copy" and 1 in (rows, cols)):
            return None  # a transposed vector is itself: nothing would run
        request: Request = {"op": op, "dtype": dtype, "rows": rows, "cols": cols, "pass": direction}
        if op == "embedding":
            request["vocab"] = block.vocab if block.vocab * cols <= TABLE_MAX else 4096
        return request

    return draw


QUANTIZERS = ("quantize", "quantize_rows", "quantize_cast", "quantize_static")


def quantize(dtype: str) -> Draw:
    def draw(u: tuple[float, ...], index: int) -> Request | None:
        rows = between(u[0], 1, 131072)
        cols = pick(u[1], BLOCKS).hidden if index // 4 % 2 else between(u[1], 64, 32768)
        if rows * cols > 5e8:
            return None
        return {"op": QUANTIZERS[index % 4], "dtype": dtype, "rows": rows, "cols": cols}

    return draw


OPTIMIZERS = (
    "adamw_fused", "adamw_foreach", "clip_grad_norm", "sgd_momentum_foreach", "adamw_fused", "sgd_foreach",
    "sgd_momentum_fused", "adamw_foreach", "sgd_fused",
)  # fmt: skip


def optimizer(dtype: str) -> Draw:
    """256 Ki to 512 Mi parameters in 1 to 400 tensors of one size."""

    def draw(u: tuple[float, ...], index: int) -> Request | None:
        tensors = between(u[1], 1, 400)
        size = between(u[0], 1 << 18, 1 << 29) // tensors
        if size < 1024:
            return None
        name = OPTIMIZERS[index % len(OPTIMIZERS)]
        return {"op": "optimizer", "dtype": dtype, "name": name, "params": size * tensors, "tensors": tensors}

    return draw
