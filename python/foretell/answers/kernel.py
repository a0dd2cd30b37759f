"""One kernel, one exchange."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._part import one
from .._picture import Picture
from .._sheet import Sheet, gib, ms, number, range_of
from .answer import Answer, described
from .drawn import CURVES, Drawing, Drawn, curve, draw
from .step import Energy, Regime

__all__ = ["Collective", "Kernel", "staircase"]

_SIZES = (
    "b m n k batch heads kv_heads q_len kv_len head_dim rows cols numel c h w r s tokens hidden inter topk experts "
    "params bytes"
).split()


@dataclass(frozen=True, kw_only=True)
class Kernel(Drawn):
    """One kernel on one GPU.

    >>> import foretell
    >>> a = foretell.kernel("gemm", m=4096, n=50257, k=768, gpu="h200_sxm")
    >>> b = foretell.kernel("gemm", m=4096, n=50304, k=768, gpu="h200_sxm")
    >>> a.ms > 2 * b.ms, "aligned" in a.note
    (True, True)
    """

    ms: float = 0
    low_ms: float = 0
    high_ms: float = 0
    bound: str = ""
    source: str = ""
    kin: str = ""
    family: str = ""
    tile: str = ""
    tiles: float | None = None
    waves: float | None = None
    split_k: int | None = None
    flops: float | None = None
    bytes: float | None = None
    intensity: float | None = None
    roofline_ms: float | None = None
    launch_ms: float | None = None
    sustained_ms: float | None = None
    achieved_tflops: float | None = None
    achieved_gbps: float | None = None
    note: str = ""
    energy: Energy | None = one(Energy)
    regime: Regime | None = one(Regime)

    def sheet(self) -> Sheet:
        """Time, roofline, tile, rates."""
        sizes = [f"{key} {self.request[key]}" for key in dict.fromkeys(_SIZES) if key in self.request]
        words = [str(self.request.get("op", "kernel")), *sizes, described(self.request, "dtype", "gpu")]
        sheet = Sheet(" · ".join(word for word in words if word), warnings=self.warnings)
        sheet.add("time", ms(self.ms), range_of(self.low_ms, self.high_ms))
        sheet.add("roofline", ms(self.roofline_ms), f"{self.bound}-bound" if self.bound else "")
        if self.achieved_tflops:
            sheet.add("arithmetic", f"{number(self.achieved_tflops)} TFLOP/s")
        if self.achieved_gbps:
            sheet.add("traffic", f"{number(self.achieved_gbps)} GB/s", gib(self.bytes))
        if self.tile:
            sheet.add("tile", self.tile, f"{number(self.tiles)} tiles, {number(self.waves)} waves")
        sheet.add("source", self.source, self.kin)
        sheet.add("note", self.note)
        return sheet

    def _drawings(self) -> list[Drawing]:
        """Under the roofs of its GPU."""
        return [{"what": "roofline", "name": "roofline"}] if self.request else []

    def _draw(self, drawings: Sequence[Drawing]) -> list[Picture]:
        return draw(drawings, self.request, self.settings)


def staircase(answers: Sequence[Any]) -> list[Drawing]:
    """The time of kernels that differ in one size, and perhaps in the GPU, over that size; nothing of other answers."""
    if not all(isinstance(each, Kernel) and each.request for each in answers):
        return []
    asked = [each.request for each in answers]
    keys = dict.fromkeys(key for each in asked for key in each if key not in ("gpu", "id"))
    over = [key for key in keys if any(each.get(key) != asked[0].get(key) for each in asked)]
    if len(over) != 1 or not all(type(each.get(over[0])) in (int, float) for each in asked):
        return []
    stairs: dict[str, list[tuple[float, float, float | None, float | None]]] = {}
    for kernel in answers:
        gpu = kernel.request.get("gpu")
        name = gpu if isinstance(gpu, str) else str(gpu.get("name", "")) if isinstance(gpu, Mapping) else ""
        stairs.setdefault(name, []).append((kernel.request[over[0]], kernel.ms, kernel.low_ms, kernel.high_ms))
    for points in stairs.values():
        points.sort()
    first = [point[0] for point in next(iter(stairs.values()), [])]
    if len(set(first)) < max(2, len(first)) or any([point[0] for point in points] != first for points in stairs.values()):
        return []
    doubles = len(first) > 2 and first[0] >= 1 and first[-1] > 1.5 * first[-2]  # then both rulers are logarithmic
    alone = len(stairs) == 1  # several intervals would hide each other
    curves = [
        curve(name, points if alone else [(x, y, None, None) for x, y, _, _ in points], steps=not doubles)
        for name, points in stairs.items()
    ]
    said = {"title": "Time over the range", "x": over[0], "y": "ms", "log_x": doubles, "log_y": doubles}
    return [{"what": "curves", "name": "sweep", **said, "curves": curves[:CURVES]}]


@dataclass(frozen=True, kw_only=True)
class Collective(Answer):
    """One exchange over a group of ranks.

    >>> import foretell
    >>> foretell.collective("all_reduce", bytes=100_000_000, ranks=8, gpu="h100_sxm").algorithm
    'nvls'
    """

    ms: float = 0
    low_ms: float = 0
    high_ms: float = 0
    bound: str = ""
    source: str = ""
    algorithm: str = ""
    protocol: str = ""
    algbw_gbps: float | None = None
    busbw_gbps: float | None = None
    latency_ms: float | None = None
    tier: str = ""
    understood: str = ""

    def sheet(self) -> Sheet:
        """Time, algorithm, bandwidth."""
        words = [str(self.request.get("op", "exchange")), described(self.request, "bytes", "ranks", "gpu")]
        sheet = Sheet(" · ".join(word for word in words if word), warnings=self.warnings)
        sheet.add("time", ms(self.ms), range_of(self.low_ms, self.high_ms))
        sheet.add("algorithm", self.algorithm, self.protocol)
        if self.busbw_gbps:
            sheet.add("bus bandwidth", f"{number(self.busbw_gbps)} GB/s", f"{number(self.algbw_gbps)} GB/s of payload")
        sheet.add("latency", ms(self.latency_ms))
        sheet.add("cluster", self.understood)
        return sheet
