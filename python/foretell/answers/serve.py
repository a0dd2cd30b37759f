"""Serving under load: what clients of an engine see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .._frame import flat
from .._sheet import Sheet, Table, ms, number, percent, range_of
from .answer import Answer

__all__ = ["Serve"]


@dataclass(frozen=True, kw_only=True)
class Serve(Answer):
    """What ``foretell serve`` answers; times are means, ``ttft_ms_p99`` and the like percentiles.

    >>> import foretell
    >>> answer = foretell.serve("llama-3.1-8b", gpu="h100_sxm", concurrency=8, isl=512, osl=64)
    >>> answer.stable, answer.ttft_low_ms < answer.ttft_ms < answer.ttft_high_ms
    (True, True)
    """

    model: str = ""
    gpu: str = ""
    engine: str = ""
    gpus: int = 1
    ttft_ms: float | None = None
    ttft_low_ms: float | None = None
    ttft_high_ms: float | None = None
    ttft_ms_p50: float | None = None
    ttft_ms_p90: float | None = None
    ttft_ms_p95: float | None = None
    ttft_ms_p99: float | None = None
    tpot_ms: float | None = None
    tpot_low_ms: float | None = None
    tpot_high_ms: float | None = None
    tpot_ms_p50: float | None = None
    tpot_ms_p90: float | None = None
    tpot_ms_p95: float | None = None
    tpot_ms_p99: float | None = None
    itl_ms: float | None = None
    itl_low_ms: float | None = None
    itl_high_ms: float | None = None
    itl_ms_p50: float | None = None
    itl_ms_p90: float | None = None
    itl_ms_p95: float | None = None
    itl_ms_p99: float | None = None
    e2e_ms: float | None = None
    e2e_low_ms: float | None = None
    e2e_high_ms: float | None = None
    e2e_ms_p50: float | None = None
    e2e_ms_p90: float | None = None
    e2e_ms_p95: float | None = None
    e2e_ms_p99: float | None = None
    queue_ms: float | None = None
    frontend_ms: float | None = None
    requests: float = 0
    seconds: float = 0
    requests_per_s: float = 0
    tokens_per_s_per_gpu: float = 0
    tokens_per_s_per_user: float | None = None
    usd_per_million_tokens: float | None = None
    energy: Mapping[str, Any] | None = None
    goodput_per_s: float | None = None
    slo_share: float | None = None
    slo_met: bool | None = None
    slo_nearest: Mapping[str, Any] | None = None
    rate: float | None = None
    concurrency: float | None = None
    running_mean: float = 0
    running_max: float = 0
    kv: Mapping[str, Any] = field(default_factory=dict)
    steps: Mapping[str, Any] = field(default_factory=dict)
    fairness: Mapping[str, Any] | None = None
    bound: str = ""
    stable: bool = True
    advice: tuple[Mapping[str, Any], ...] = ()
    per_request: tuple[Mapping[str, Any], ...] = ()
    recipe: tuple[str, ...] = ()

    def sheet(self) -> Sheet:
        """Times with percentiles, then rates."""
        where = f"{self.gpus} × {self.gpu}" if self.gpus > 1 else self.gpu
        sheet = Sheet(" · ".join(each for each in (self.model, self.engine, where) if each), warnings=self.warnings)
        rows = []
        for key in ("ttft", "tpot", "itl", "e2e"):
            mean = getattr(self, f"{key}_ms")
            if mean is not None:
                interval = range_of(getattr(self, f"{key}_low_ms"), getattr(self, f"{key}_high_ms"))
                shares = [ms(getattr(self, f"{key}_ms_{share}")) for share in ("p50", "p90", "p95", "p99")]
                rows.append([key.upper(), ms(mean), interval, *shares])
        sheet.add("throughput", f"{number(self.requests_per_s)} requests/s")
        sheet.add("generated", f"{number(self.tokens_per_s_per_gpu)} tokens/s per GPU")
        if self.energy is not None:
            sheet.add("energy", f"{number(self.energy['joules_per_token'])} J per token")
        sheet.add("bound by", self.bound, "" if self.stable else "requests come faster than they are served")
        if self.slo_share is not None:
            sheet.add("good", percent(self.slo_share), "met" if self.slo_met else "missed")
        sheet.tables.append(Table("What clients see", ["", "mean", "interval", "p50", "p90", "p95", "p99"], rows))
        return sheet

    def rows(self) -> list[dict[str, Any]]:
        """A row per request where ``per_request=True`` asked for them; otherwise one for the run."""
        return [dict(each) for each in self.per_request] or [flat(self.raw)]
