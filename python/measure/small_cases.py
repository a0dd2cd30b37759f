"""Cases of small.py: small kernels of many kinds, drawn by a fixed seed; each says its fields, and how to bind operands of its own."""


from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

aten = torch.ops.aten
DEV = "cuda"
DT = {"bf16": torch.bfloat16, "fp32": torch.float32, "fp16": torch.float16}
Run = Callable[[], Any]
rng = random.Random(20261118)


def lu(low: float, high: float) -> int:
    return int(math.exp(rng.uniform(math.log(low), math.log(high))))


def near(value: int, step: int) -> int:
    return max(step, value // step * step)


class Taker:
    """Random tensors, and how many bytes were asked for."""

    def __init__(self) -> None:
        self.bytes = 0

    def __call__(self, dtype: str, *shape: int) -> torch.Tensor:
        x = torch.randn(*shape, device=DEV, dtype=DT[dtype])
        self.bytes += x.numel() * x.element_size()
        return x

    def ints(self, high: int, *shape: int) -> torch.Tensor:
        self.bytes += math.prod(shape) * 8
        return torch.randint(0, high, shape, device=DEV)


take = Taker()

UNARY = {
    "neg": torch.neg, "scalar_mul": lambda x: x * 1.5, "silu": F.silu, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "tanh": torch.tanh,
    "exp": torch.exp, "cos": torch.cos, "rsqrt": torch.rsqrt, "pow": lambda x: x.pow(2), "relu": torch.relu, "copy": torch.clone, "sigmoid": torch.sigmoid,
    "cast": lambda x: x.float() if x.dtype != torch.float32 else x.bfloat16(), "add_number": lambda x: x + 1e-6, "zeros_like": torch.zeros_like,
    "dropout": lambda x: F.dropout(x, 0.1),
}
BINARY = {
    "add": torch.add, "mul": torch.mul, "div": torch.div, "silu_backward": aten.silu_backward, "gelu_backward": aten.gelu_backward,
    "relu_backward": lambda g, x: aten.threshold_backward(g, x, 0), "tanh_backward": aten.tanh_backward,
}
Drawn = tuple[dict[str, Any], Callable[[], Run]] | None


def dtype_of() -> str:
    return rng.choice(["bf16", "bf16", "fp32"])


def pointwise() -> Drawn:
    d = dtype_of()
    n = lu(256, 3.4e7)
    n = near(n, rng.choice([1024, 8, 1]))
    if rng.random() < 0.6:
        op = rng.choice(list(UNARY))
        def make() -> Run:
            x = take(d, n).abs_() if op == "rsqrt" else take(d, n)
            return lambda: UNARY[op](x)
    else:
        op = rng.choice(list(BINARY))
        def make() -> Run:
            x, y = take(d, n), take(d, n)
            return lambda: BINARY[op](x, y)
    return {"op": op, "dtype": d, "numel": n}, make


def matrix(most: float = 3.4e7) -> tuple[int, int]:
    while True:
        rows = lu(1, 33000)
        cols = rng.choice([64, 128, 256, 512, 768, 896, 1024, 1152, 1536, 2048, 2304, 2560, 3072, 3584, 4096, 5120, 8192, 10240, 14336]) if rng.random() < 0.75 else lu(32, 32000)
        if rows * cols <= most:
            return rows, cols


def spread() -> Drawn:
    """An operand of fewer elements, formats that differ."""
    rows, cols = matrix()
    op = rng.choice(["row", "col", "number", "mixed", "mixed_col", "mixed_row", "row_fp32", "half_number_tensor", "where", "masked_fill"])
    d = "fp32" if op.endswith("fp32") else dtype_of()
    other = "fp32" if d == "bf16" else "bf16"
    def make() -> Run:
        x = take(d, rows, cols)
        if op in ("row", "row_fp32"):
            r = take(d, rows, 1); return lambda: x * r
        if op == "col":
            r = take(d, cols); return lambda: x * r
        if op == "number":
            return lambda: x * 0.125
        if op == "half_number_tensor":
            r = take(d, 1)[0]; return lambda: x * r
        if op == "mixed":
            r = take(other, rows, cols); return lambda: x + r
        if op == "mixed_col":
            r = take(other, cols); return lambda: x * r
        if op == "mixed_row":
            r = take(other, rows, 1); return lambda: x * r
        m = take("bf16", rows, cols) > 0
        if op == "where":
            r = take(d, rows, cols); return lambda: torch.where(m, x, r)
        return lambda: x.masked_fill(m, 0.0)
    return {"op": op, "dtype": d, "rows": rows, "cols": cols}, make


def heads() -> Drawn:
    """Rotary embedding's parts, copies between [b, l, h, d] and [b, h, l, d], caches that grow."""
    b, h, d, l = rng.choice([1, 1, 1, 2, 4, 8, 16]), rng.choice([1, 2, 4, 8, 12, 16, 32]), rng.choice([64, 80, 128, 128, 256]), lu(1, 4200)
    if b * h * d * l > 3.4e7:
        return None
    op = rng.choice(["rope_cos", "rope_half", "rope_cat", "rope_neg", "rope_add", "heads_copy", "tokens_copy", "cache_cat", "cache_copy", "slice_add", "slice_copy", "gate_chunk", "repeat_kv"])
    t = dtype_of()
    def make() -> Run:
        if op == "rope_cos":
            x, c = take(t, b, l, h, d).transpose(1, 2), take(t, b, l, d).unsqueeze(1); return lambda: x * c
        if op == "rope_half":
            x, c = take(t, b, h, l, d), take(t, b, l, d).unsqueeze(1); return lambda: x * c
        if op == "rope_neg":
            x = take(t, b, l, h, d).transpose(1, 2); return lambda: -x[..., d // 2:]
        if op == "rope_cat":
            x, y = take(t, b, h, l, d // 2), take(t, b, l, h, d).transpose(1, 2); return lambda: torch.cat((x, y[..., : d // 2]), -1)
        if op == "rope_add":
            x, y = take(t, b, l, h, d).transpose(1, 2), take(t, b, h, l, d); return lambda: x + y
        if op == "heads_copy":
            x = take(t, b, l, h, d).transpose(1, 2); return lambda: x.contiguous()
        if op == "tokens_copy":
            x = take(t, b, h, l, d).transpose(1, 2); return lambda: x.contiguous()
        if op == "cache_cat":
            x, y = take(t, b, h, l, d), take(t, b, 1, h, d).transpose(1, 2); return lambda: torch.cat([x, y], -2)
        if op == "cache_copy":
            x, y, at = take(t, b, h, l, d), take(t, b, 1, h, d).transpose(1, 2), torch.tensor([l // 2], device=DEV); return lambda: x.index_copy_(2, at, y)
        if op == "slice_add":
            x, y = take(t, b, l, 2 * h * d), take(t, b, l, h * d); return lambda: x[..., : h * d] + y
        if op == "slice_copy":
            x = take(t, b, l, 3 * h * d); return lambda: x[..., h * d : 2 * h * d].contiguous()
        if op == "gate_chunk":
            x = take(t, b, l, 2 * h * d); return lambda: F.silu(x.chunk(2, -1)[0])
        x = take(t, b, h, l, d); return lambda: x[:, :, None].expand(b, h, 4, l, d).reshape(b, h * 4, l, d)
    return {"op": op, "dtype": t, "b": b, "h": h, "l": l, "d": d}, make


ROW = ["argmax", "mean_rows", "sum_rows", "softmax", "log_softmax", "softmax_backward", "layernorm", "layernorm_backward", "rmsnorm", "rmsnorm_backward", "bias_add", "cross_entropy",
       "cross_entropy_backward", "cumsum", "transpose_copy", "cat_halves", "embedding", "embedding_backward", "sum_cols", "amax_rows", "topk", "sort", "softmax_fp32"]


def rowwise() -> Drawn:
    rows, cols = matrix()
    op, d = rng.choice(ROW), dtype_of()
    if op == "transpose_copy" and 1 in (rows, cols) or op in ("sort", "topk") and rows * cols > 4e6:
        return None
    if op in ("topk", "sort") or op.startswith("softmax") and rng.random() < 0.3:
        cols = rng.choice([8, 16, 32, 60, 64, 128, 256]) if rng.random() < 0.7 else cols
    def make() -> Run:
        if op == "embedding":
            table, ids = take(d, 8192, cols), take.ints(8192, rows); take.bytes += (rows - 8192) * cols * table.element_size(); return lambda: F.embedding(ids, table)
        x = take(d, rows, cols)
        if op == "embedding_backward":
            ids = take.ints(8192, rows); return lambda: aten.embedding_dense_backward(x, ids, 8192, -1, False)
        if op == "layernorm":
            w, v = take(d, cols), take(d, cols); return lambda: F.layer_norm(x, (cols,), w, v)
        if op == "rmsnorm":
            w = take(d, cols); return lambda: F.rms_norm(x, (cols,), w)
        if op == "layernorm_backward":
            g, w, v, m, r = take(d, rows, cols), take(d, cols), take(d, cols), take("fp32", rows, 1), take("fp32", rows, 1)
            return lambda: aten.native_layer_norm_backward(g, x, [cols], m, r, w, v, [True, True, True])
        if op == "rmsnorm_backward":
            g, w, r = take(d, rows, cols), take(d, cols), take("fp32", rows, 1); return lambda: aten._fused_rms_norm_backward(g, x, [cols], r, w, [True, True])
        if op == "softmax_backward":
            g = take(d, rows, cols); return lambda: aten._softmax_backward_data(g, x, 1, DT[d])
        if op == "softmax_fp32":
            return lambda: F.softmax(x, -1, dtype=torch.float32)
        if op == "bias_add":
            w = take(d, cols); return lambda: x + w
        if op.startswith("cross"):
            y = take.ints(cols, rows)
            if op == "cross_entropy":
                return lambda: F.cross_entropy(x, y)
            g, w = torch.ones((), dtype=DT[d], device=DEV), torch.full((), rows, dtype=DT[d], device=DEV)
            return lambda: aten._log_softmax_backward_data(aten.nll_loss_backward(g, x, y, None, 1, -100, w), x, 1, DT[d])
        simple: dict[str, Callable[[torch.Tensor], Any]] = {
            "argmax": lambda x: x.argmax(1), "mean_rows": lambda x: x.mean(-1, keepdim=True), "sum_rows": lambda x: x.sum(1), "softmax": lambda x: F.softmax(x, 1),
            "log_softmax": lambda x: F.log_softmax(x, 1), "cumsum": lambda x: x.cumsum(1), "transpose_copy": lambda x: x.t().contiguous(),
            "cat_halves": lambda x: torch.cat([x[:, cols // 2:], x[:, : cols // 2]], 1), "sum_cols": lambda x: x.sum(0), "amax_rows": lambda x: x.amax(1),
            "topk": lambda x: x.topk(min(8, cols), -1), "sort": lambda x: x.sort(-1)}
        f = simple[op]
        return lambda: f(x)
    return {"op": op, "dtype": d, "rows": rows, "cols": cols}, make


def reduction() -> Drawn:
    """Sums over one side or two of [a, r, c]: bias gradients of convolutions, of expanded operands, means of images."""
    a, r, c = rng.choice([1, 2, 4, 8, 8, 16, 32, 64]), rng.choice([1, 3, 8, 12, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048]), lu(1, 70000)
    if not 64 < a * r * c <= 6.7e7:
        return None
    op, d = rng.choice(["outer_inner", "outer_inner", "middle", "middle", "last", "first", "inner_two", "nhwc", "expand_heads", "mean_inner", "amax_middle", "sum_keep"]), dtype_of()
    def make() -> Run:
        if op == "nhwc":
            x = take(d, a, c, r).transpose(1, 2); return lambda: x.sum((0, 2))
        if op == "expand_heads":
            x = take(d, a, r, max(c // 64, 1), 64); return lambda: x.sum((0, 2))
        x = take(d, a, r, c)
        dims: dict[str, Any] = {"outer_inner": (0, 2), "middle": 1, "last": -1, "first": 0, "inner_two": (1, 2), "sum_keep": (0, 1)}
        if op == "mean_inner":
            return lambda: x.mean(2, keepdim=True)
        if op == "amax_middle":
            return lambda: x.amax(1)
        over = dims[op]
        return lambda: x.sum(over)
    return {"op": op, "dtype": d, "a": a, "r": r, "c": c}, make


def channel_softmax() -> Drawn:
    """softmax along the middle of [a, r, c]."""
    a, r, c = rng.choice([1, 2, 4, 8, 8, 16, 64]), rng.choice([2, 3, 8, 19, 21, 32, 64, 100, 128, 150, 196, 256, 512, 1024, 2048]), lu(2, 70000)
    if a * r * c > 6.7e7:
        return None
    op, d = rng.choice(["softmax", "softmax", "softmax_backward", "log_softmax", "log_softmax_backward"]), dtype_of()
    def make() -> Run:
        x = take(d, a, r, c)
        if op == "softmax":
            return lambda: F.softmax(x, 1)
        if op == "log_softmax":
            return lambda: F.log_softmax(x, 1)
        g = take(d, a, r, c)
        f = aten._softmax_backward_data if op == "softmax_backward" else aten._log_softmax_backward_data
        return lambda: f(g, x, 1, DT[d])
    return {"op": op, "dtype": d, "a": a, "r": r, "c": c}, make


def group_norm() -> Drawn:
    n, g = rng.choice([1, 2, 4, 8, 16, 32]), rng.choice([1, 2, 4, 8, 16, 32, 32, 32, 64])
    c, hw = g * rng.choice([1, 2, 4, 8, 10, 16, 20, 32, 64]), rng.choice([49, 64, 196, 256, 784, 1000, 1024, 3136, 4096, 16000, 16384, 65536])
    if n * c * hw > 6.7e7 or c > 4096:
        return None
    op, d, layout = rng.choice(["forward", "backward"]), dtype_of(), rng.choice(["nchw", "nchw", "nhwc"])
    def make() -> Run:
        x, w, v = take(d, n, c, hw, 1), take(d, c), take(d, c)
        if layout == "nhwc":
            x = x.contiguous(memory_format=torch.channels_last)
        if op == "forward":
            return lambda: F.group_norm(x, g, w, v)
        y = torch.randn_like(x); take.bytes += y.numel() * y.element_size()
        m, s = take(d, n, g), take(d, n, g)
        return lambda: aten.native_group_norm_backward(y, x, m, s, w, n, c, hw, g, [True, True, True])
    return {"op": op, "dtype": d, "layout": layout, "n": n, "c": c, "hw": hw, "groups": g}, make


def gathers() -> Drawn:
    rows, cols = matrix(1.6e7)
    op, d = rng.choice(["index_select", "index", "gather", "scatter_add", "index_add", "index_put", "bool_index", "tril", "arange", "one_hot", "roll", "flip", "stack", "split_cat", "pad", "copy_", "fill", "argsort", "bincount", "cumsum_int", "index_rows_mul"]), dtype_of()
    def make() -> Run:
        if op == "arange":
            return lambda: torch.arange(rows, device=DEV)
        if op == "one_hot":
            i = take.ints(64, rows); return lambda: torch.zeros(rows, 64, dtype=torch.long, device=DEV).scatter_(1, i[:, None], 1)
        if op == "bincount":
            i = take.ints(64, rows); return lambda: torch.histc(i.float(), 64, 0, 63)
        if op == "argsort":
            i = take.ints(64, rows); return lambda: i.argsort()
        if op == "cumsum_int":
            i = take.ints(64, rows); return lambda: i.cumsum(0)
        x, i = take(d, rows, cols), take.ints(rows, rows)
        if op == "index_select":
            return lambda: x.index_select(0, i)
        if op == "index":
            return lambda: x[i]
        if op == "index_rows_mul":
            w = take(d, rows, 1); return lambda: x[i] * w
        if op == "gather":
            j = take.ints(cols, rows, min(cols, 8)); return lambda: x.gather(1, j)
        y = take(d, rows, cols)
        if op == "scatter_add":
            j = i[:, None].expand(rows, cols); return lambda: y.scatter_add_(0, j, x)
        if op == "index_add":
            return lambda: y.index_add_(0, i, x)
        if op == "index_put":
            return lambda: y.index_put_((i,), x)
        if op == "bool_index":
            m = torch.arange(rows, device=DEV) % 2 == 0; return lambda: torch.where(m[:, None], x, y)
        if op == "copy_":
            return lambda: y.copy_(x)
        if op == "fill":
            return lambda: y.fill_(0.0)
        if op == "stack":
            return lambda: torch.stack([x, y], -1)
        if op == "split_cat":
            return lambda: torch.cat([x, y], 0)
        f = {"tril": torch.tril, "roll": lambda t: torch.roll(t, 1, 0), "flip": lambda t: t.flip(0), "pad": lambda t: F.pad(t, (1, 1))}[op]
        return lambda: f(x)
    return {"op": op, "dtype": d, "rows": rows, "cols": cols}, make


def sdpa() -> Drawn:
    b, h, l = rng.choice([1, 2, 4, 8]), rng.choice([4, 8, 12, 16]), rng.choice([1, 64, 100, 196, 197, 256, 333, 512, 577, 1000, 1024, 1500, 2048])
    d = rng.choice([8, 16, 20, 24, 30, 32, 36, 40, 48, 50, 56, 60, 66, 72, 80, 88, 90, 96, 100, 104, 112, 120, 128, 136, 144, 160, 192, 200, 256])
    op, mask, dt = rng.choice(["forward", "forward", "backward"]), rng.choice(["none", "none", "causal", "mask", "row"]), rng.choice(["bf16", "bf16", "bf16", "fp32"])
    if l == 1 and mask == "causal" or b * h * l * d > 1.7e7:
        return None
    k = lu(64, 4096) if l == 1 else l
    def make() -> Run:
        q, key, v = take(dt, b, l, h, d).transpose(1, 2), take(dt, b, k, h, d).transpose(1, 2), take(dt, b, k, h, d).transpose(1, 2)
        m = None
        if mask == "mask":
            m = torch.zeros(b, 1, l, k, dtype=DT[dt], device=DEV)
        elif mask == "row":
            m = torch.ones(b, 1, 1, k, dtype=torch.bool, device=DEV).expand(b, 1, l, k)
        f = lambda: F.scaled_dot_product_attention(q, key, v, attn_mask=m, is_causal=mask == "causal")  # noqa: E731
        if op == "forward":
            return f
        for t in (q, key, v):
            t.requires_grad_()
        with torch.enable_grad():
            y = f()
        g = torch.randn_like(y)
        return lambda: torch.autograd.grad(y, (q, key, v), g, retain_graph=True)
    return {"op": op, "mask": mask, "dtype": dt, "b": b, "h": h, "l": l, "k": k, "d": d}, make


MASKS = [(b, h, q) for q in (256, 512, 1000, 1024, 2048, 4096, 8192) for b, h in ((None, None), (2, None), (2, 8))]


def block_mask() -> Drawn:
    from torch.nn.attention.flex_attention import create_block_mask
    if not MASKS:
        return None
    b, h, q = MASKS.pop(0)
    wide = rng.choice([0, 256])
    near_ = (lambda b_, h_, i, j: (i >= j) & (i - j <= wide)) if wide else (lambda b_, h_, i, j: i >= j)
    return {"op": "create_block_mask", "b": b or 1, "h": h or 1, "q": q, "wide": wide, "dtype": "bf16"}, lambda: lambda: create_block_mask(near_, b, h, q, q, device=DEV)


FAMILIES: dict[str, tuple[Callable[[], Drawn], int]] = {  # and how many of each in a round
    "pointwise": (pointwise, 5), "spread": (spread, 4), "heads": (heads, 5), "rowwise": (rowwise, 6), "reduction": (reduction, 5), "channel_softmax": (channel_softmax, 2),
    "group_norm": (group_norm, 2), "gathers": (gathers, 3), "sdpa": (sdpa, 2), "block_mask": (block_mask, 1)}
