"""What tests of the exporter share: a small decoder, and what is in a graph."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from export_models import ask
from foretell.export import Graph


def line_of(thing: Any, text: str) -> str:
    """file:line of the first line of `thing` that holds `text`."""
    lines, first = inspect.getsourcelines(thing)
    return f"{inspect.getsourcefile(thing)}:{first + next(i for i, line in enumerate(lines) if text in line)}"


def ops(graph: Graph) -> list[str]:
    return [node["op"] for block in graph.to_dict()["blocks"] for node in block["nodes"]]


def nodes(graph: Graph, op: str) -> list[dict[str, Any]]:
    return [node for block in graph.to_dict()["blocks"] for node in block["nodes"] if node["op"] == op]


def forecast(graph: Graph, **request: Any) -> dict[str, Any]:
    line = {"gpu": "h200_sxm", "dtype": "bf16", "batch": 1, "seq": 64, **graph.request, **request}
    (answer,) = ask([{**line, "model": graph.to_dict()}])
    assert answer["ok"], answer
    return answer


class Layer(nn.Module):
    def __init__(self, width: int = 64, heads: int = 4, drop: float = 0.1) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.drop = nn.Dropout(drop)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, s, w = x.shape
        q, k, v = self.qkv(self.norm(x)).chunk(3, dim=-1)
        q, k, v = (t.view(b, s, self.heads, w // self.heads).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.drop(self.out(y.transpose(1, 2).reshape(b, s, w)))
        return x + self.down(F.gelu(self.up(x)))


class Decoder(nn.Module):
    def __init__(self, layers: int = 6, vocab: int = 512, width: int = 64, tied: bool = True, heads: int = 4) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocab, bias=False)
        if tied:
            self.head.weight = self.embed.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def loss(tokens: torch.Tensor) -> Any:
    return lambda logits: F.cross_entropy(logits.flatten(0, 1), tokens.flatten())


TOKENS = torch.zeros(2, 64, dtype=torch.long)
