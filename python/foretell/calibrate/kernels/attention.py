"""Attention as torch.nn.functional.scaled_dot_product_attention runs it, on the backend that PyTorch picks."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from ..operands import DTYPES, Operands
from ..timing import Launch, Make
from .case import Case


def build_attention(case: Case, operands: Operands) -> Make:
    dtype, batch, heads, kv_heads = DTYPES[case["dtype"]], case["batch"], case["heads"], case["kv_heads"]
    q_len, kv_len, head_dim = case["q_len"], case["kv_len"], case["head_dim"]
    causal, grouped = bool(case["causal"]), heads != kv_heads

    def make() -> Launch:
        q = operands.take(dtype, batch, heads, q_len, head_dim)
        k, v = (operands.take(dtype, batch, kv_heads, kv_len, head_dim) for _ in range(2))
        if case["pass"] == "fwd":
            return lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=grouped)
        grad = operands.take(dtype, batch, heads, q_len, head_dim)
        leaves = [x.detach().requires_grad_() for x in (q, k, v)]

        def forward_backward() -> tuple[torch.Tensor, ...]:
            with torch.enable_grad():
                x, y, z = leaves
                out = F.scaled_dot_product_attention(x, y, z, is_causal=causal, enable_gqa=grouped)
                return torch.autograd.grad(out, leaves, grad)

        return forward_backward

    return make
