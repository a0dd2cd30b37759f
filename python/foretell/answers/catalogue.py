"""GPUs and models that are known by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .._part import Part

__all__ = ["Gpu", "Model"]


@dataclass(frozen=True, kw_only=True)
class Gpu(Part):
    """A GPU as its spec sheet has it; peaks are dense."""

    name: str = ""
    title: str = ""
    vendor: str = ""
    architecture: str = ""
    generation: str = ""
    compute_capability: str = ""
    year: int | None = None
    sms: int | None = None
    clock_mhz: float | None = None
    tdp_w: float | None = None
    memory_gib: float | None = None
    memory_gbps: float | None = None
    l2_mib: float | None = None
    peak_tflops: Mapping[str, float] = field(default_factory=dict)
    balance_flop_per_byte: Mapping[str, float] = field(default_factory=dict)
    link: Mapping[str, Any] = field(default_factory=dict)
    price_usd_per_hour: float | None = None


@dataclass(frozen=True, kw_only=True)
class Model(Part):
    """A model of the catalogue."""

    name: str = ""
    hub: str = ""
    model_type: str = ""
    parameters: float | None = None
    active_parameters: float | None = None
    published_parameters: float | None = None
    layers: int | None = None
    hidden: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    ffn: int | None = None
    vocab: int | None = None
    max_position: int | None = None
    kv_bytes_per_token: float | None = None
    source: str = ""
