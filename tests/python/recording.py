"""A small training step, and recordings of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

import foretell

HIDDEN, HEADS, LENGTH, BATCH = 64, 4, 32, 2


class Layer(torch.nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(HIDDEN)
        self.qkv = torch.nn.Linear(HIDDEN, 3 * HIDDEN)
        self.out = torch.nn.Linear(HIDDEN, HIDDEN)
        self.dropout = dropout

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        q, k, v = (
            each.view(BATCH, LENGTH, HEADS, HIDDEN // HEADS).transpose(1, 2)
            for each in self.qkv(self.norm(x)).split(HIDDEN, dim=-1)
        )
        p = self.dropout if self.training else 0.0
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=p, is_causal=mask is None)
        mixed = mixed.transpose(1, 2).reshape(BATCH, LENGTH, HIDDEN)
        return x + F.dropout(self.out(mixed), self.dropout, self.training)


def _step(device: str, dtype: torch.dtype, dropout: float = 0.1, masked: bool = False) -> Callable[[], torch.Tensor]:
    torch.manual_seed(0)
    model = torch.nn.ModuleList(Layer(dropout) for _ in range(3)).to(device=device, dtype=dtype)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    x = torch.randn(BATCH, LENGTH, HIDDEN).to(device=device, dtype=dtype)
    mask = torch.zeros(BATCH, 1, LENGTH, LENGTH, device=device, dtype=dtype) if masked else None

    def step() -> torch.Tensor:
        y = x
        for layer in model:
            y = layer(y, mask)
        loss = y.float().pow(2).mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return torch.cat([each.detach().flatten() for each in model.parameters()])

    return step


def _recorded(step: Callable[[], Any], **more: Any) -> foretell.Recording:
    with foretell.record(gpu="h100_sxm", **more) as recording:
        step()
    return recording


def _phases(recording: foretell.Recording) -> dict[str, Counter[str]]:
    out: dict[str, Counter[str]] = {"forward": Counter(), "backward": Counter(), "optimizer": Counter()}
    for each in recording.events:
        if each["cat"] == "cpu_op" and each["args"]["Kernels"]:
            out[each["args"]["Phase"]][each["name"].removeprefix("aten::")] += 1
    return out
