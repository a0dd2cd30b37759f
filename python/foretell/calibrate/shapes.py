"""Widths that models really have: where a calibration is asked for most.

Layer sizes are those of the models' published configurations (config.json of each on the Hugging Face hub).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Block:
    """One layer's widths; `gated` feed-forwards have an up and a gate product of the same shape."""

    name: str
    hidden: int
    inter: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    gated: bool = True


BLOCKS = (
    Block("bert-base", 768, 3072, 12, 12, 64, 30522, False),
    Block("bert-large", 1024, 4096, 16, 16, 64, 30522, False),
    Block("gpt2", 768, 3072, 12, 12, 64, 50257, False),
    Block("gpt2-large", 1280, 5120, 20, 20, 64, 50257, False),
    Block("gpt2-xl", 1600, 6400, 25, 25, 64, 50257, False),
    Block("gpt3-2.7b", 2560, 10240, 32, 32, 80, 50257, False),
    Block("gpt3-13b", 5120, 20480, 40, 40, 128, 50257, False),
    Block("opt-1.3b", 2048, 8192, 32, 32, 64, 50272, False),
    Block("opt-6.7b", 4096, 16384, 32, 32, 128, 50272, False),
    Block("pythia-2.8b", 2560, 10240, 32, 32, 80, 50304, False),
    Block("llama-3.2-1b", 2048, 8192, 32, 8, 64, 128256),
    Block("llama-3.2-3b", 3072, 8192, 24, 8, 128, 128256),
    Block("llama-2-7b", 4096, 11008, 32, 32, 128, 32000),
    Block("llama-2-13b", 5120, 13824, 40, 40, 128, 32000),
    Block("llama-3-8b", 4096, 14336, 32, 8, 128, 128256),
    Block("llama-3-70b", 8192, 28672, 64, 8, 128, 128256),
    Block("mistral-7b", 4096, 14336, 32, 8, 128, 32000),
    Block("qwen2.5-0.5b", 896, 4864, 14, 2, 64, 151936),
    Block("qwen2.5-1.5b", 1536, 8960, 12, 2, 128, 151936),
    Block("qwen2.5-7b", 3584, 18944, 28, 4, 128, 152064),
    Block("qwen3-0.6b", 1024, 3072, 16, 8, 128, 151936),
    Block("qwen3-8b", 4096, 12288, 32, 8, 128, 151936),
    Block("gemma-2-2b", 2304, 9216, 8, 4, 256, 256000),
    Block("gemma-2-9b", 3584, 14336, 16, 8, 256, 256000),
    Block("phi-3-mini", 3072, 8192, 32, 32, 96, 32064),
    Block("phi-4", 5120, 17920, 40, 10, 128, 100352),
    Block("smollm2-360m", 960, 2560, 15, 5, 64, 49152),
    Block("falcon-7b", 4544, 18176, 71, 1, 64, 65024, False),
    Block("vit-base", 768, 3072, 12, 12, 64, 1000, False),
    Block("vit-large", 1024, 4096, 16, 16, 64, 1000, False),
)
SEQUENCES = (128, 197, 256, 384, 512, 1024, 1536, 2048, 4096, 8192)
TOKENS = (64, 128, 197, 256, 394, 512, 1024, 1576, 2048, 3072, 4096, 6304, 8192, 12288, 16384)
DECODE_ROWS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)


def pick(u: float, values: Sequence[T]) -> T:
    """The value that `u` in [0, 1) stands at."""
    return values[min(int(u * len(values)), len(values) - 1)]


def inner(u: float, count: int) -> float:
    """What is left of `u` inside its one of `count` equal parts: a coordinate used twice."""
    return (u * count) % 1.0


def between(u: float, low: float, high: float) -> int:
    """An integer whose logarithm is even: as many between 16 and 32 as between 8192 and 16384."""
    return round(math.exp(math.log(low) + u * (math.log(high) - math.log(low))))


def multiple(value: float, of: int) -> int:
    """The nearest multiple, never zero."""
    return max(of, round(value / of) * of)


def linear_of(block: Block, which: int) -> tuple[int, int]:
    """(inputs, outputs) of one of a layer's six kinds of matrix products."""
    q, kv = block.heads * block.head_dim, block.kv_heads * block.head_dim
    return (
        (block.hidden, q),
        (block.hidden, q + 2 * kv if q == kv else kv),  # fused where heads are not grouped, as GPT's are
        (q, block.hidden),
        (block.hidden, block.inter),
        (block.inter, block.hidden),
        (block.hidden, block.vocab),
    )[which]
