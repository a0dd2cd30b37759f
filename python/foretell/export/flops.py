"""Arithmetic of a graph's forward pass: products, attention, convolutions."""

from __future__ import annotations

from .nodes import Node

__all__ = ["flops_of"]


def flops_of(node: Node) -> float:
    """Multiplications and additions, counted separately; a causal mask by halves."""
    keys = node.keys
    if node.op == "linear":
        return 2.0 * node.ins[0].numel * node.out.shape[-1]
    if node.op == "recurrence":
        return 2.0 * sum(x.numel for x in node.ins) * node.parameters["weight"].shape[-1]
    if node.op == "matmul":
        return 2.0 * node.out.numel * node.ins[0].shape[-1]
    if node.op == "attention":
        q, k, v = node.ins[:3]
        pairs = float(q.shape[0]) * q.shape[1] * q.shape[2] * k.shape[2]
        window = int(keys.get("window", 0))
        if keys.get("causal"):
            pairs *= 0.5
        elif 0 < window < k.shape[2]:
            pairs *= window / k.shape[2]
        return 2.0 * pairs * (q.shape[3] + v.shape[3])
    if node.op in ("conv1d", "conv2d", "conv3d"):
        weight = node.parameters["weight"] if "weight" in node.parameters else node.ins[1]
        if keys.get("transposed"):
            return 2.0 * node.ins[0].numel * weight.numel / max(1, weight.shape[0])
        return 2.0 * node.out.numel * weight.numel / max(1, weight.shape[0])
    if node.op == "experts":
        x = node.ins[0]
        return 6.0 * x.numel * float(keys["topk"]) * float(keys["inter"])
    return float(keys.get("flops", 0))
