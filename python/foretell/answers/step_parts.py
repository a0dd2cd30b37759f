"""Parts of a step's answer: its memory, energy, regime and source, advice, findings, rows of kernels, layers and stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .._part import Part
from .._sheet import count, ms

__all__ = ["Advice", "Energy", "Finding", "KernelRow", "Layer", "Memory", "Regime", "Source", "Stage"]


@dataclass(frozen=True, kw_only=True)
class Memory(Part):
    """Memory at its peak: the parts add up to ``peak_bytes``, what the framework's allocator would report."""

    weights_bytes: float = 0
    gradients_bytes: float = 0
    optimizer_bytes: float = 0
    activations_bytes: float = 0
    temporary_bytes: float = 0
    kv_cache_bytes: float = 0
    communication_bytes: float = 0
    context_bytes: float = 0
    peak_bytes: float = 0
    reserved_bytes: float = 0
    capacity_bytes: float = 0
    peak_at: str = ""
    fits: bool = True
    short_bytes: float | None = None
    remedy: str | Mapping[str, Any] | None = None
    stage: int | None = None
    in_flight: int | None = None


@dataclass(frozen=True, kw_only=True)
class Energy(Part):
    """What a step takes of the GPUs' power, or one launch of a kernel (``joules``, ``watts``)."""

    joules_per_step: float | None = None
    joules: float | None = None
    low_joules: float | None = None
    high_joules: float | None = None
    watts_per_gpu: float | None = None
    watts: float | None = None
    node_watts_per_gpu: float | None = None
    tokens_per_joule: float | None = None
    samples_per_joule: float | None = None


@dataclass(frozen=True, kw_only=True)
class Regime(Part):
    """Shares of the step by what they wait for, and the largest of them."""

    compute: float = 0
    memory: float = 0
    overhead: float = 0
    communication: float = 0
    bound: str = ""


def shares_of(r: Regime) -> list[tuple[str, float]]:
    """As a sheet draws them."""
    return [("compute", r.compute), ("memory", r.memory), ("overhead", r.overhead), ("communication", r.communication)]


@dataclass(frozen=True, kw_only=True)
class Source(Part):
    """Shares of the busy time by where the forecast comes from."""

    learned: float = 0
    calibrated: float = 0
    roofline: float = 0


@dataclass(frozen=True, kw_only=True)
class Advice(Part):
    """A change, and what it saves of the step; ``request`` is what to merge into the request."""

    change: str = ""
    saves_ms: float = 0
    low_ms: float | None = None
    high_ms: float | None = None
    step_ms: float | None = None
    memory_bytes: float | None = None
    fits: bool | None = None
    exact: bool | None = None
    why: str = ""
    request: Mapping[str, Any] = field(default_factory=dict)
    on_top: bool | None = None
    verdict: str | None = None


@dataclass(frozen=True, kw_only=True)
class Finding(Part):
    """What is odd about one operator, and the way out."""

    kind: str = ""
    block: str = ""
    name: str = ""
    phase: str = ""
    finding: str = ""
    fix: str = ""
    ms: float | None = None
    saves_ms: float | None = None


@dataclass(frozen=True, kw_only=True)
class KernelRow(Part):
    """Equal kernels of a step: times are of one launch, ``total_ms`` is of all ``count``."""

    name: str = ""
    op: str = ""
    count: float = 1
    phase: str = ""
    block: str = ""
    ms: float = 0
    low_ms: float | None = None
    high_ms: float | None = None
    total_ms: float = 0
    flops: float = 0
    bytes: float = 0
    bound: str = ""
    source: str = ""
    members: tuple[Any, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Layer(Part):
    """A block of the model, all its repetitions together."""

    name: str = ""
    repeat: int = 1
    forward_ms: float = 0
    backward_ms: float = 0
    recompute_ms: float = 0
    flops: float = 0
    parameters: float = 0
    activations_bytes: float = 0


@dataclass(frozen=True, kw_only=True)
class Stage(Part):
    """A stage of a pipeline; times are of one micro-batch."""

    forward_ms: float = 0
    backward_ms: float = 0
    update_ms: float = 0
    exposed_ms: float = 0
    in_flight: int = 1
    saved_bytes: float = 0
    peak_bytes: float = 0
