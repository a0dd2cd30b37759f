"""Scaling: closed forms beside the timeline, and curves over the number of GPUs; and the largest model of a family."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .._frame import flat
from .._part import Part, many
from .._sheet import Sheet, Table, count, gib, ms, number, percent, range_of
from .answer import Answer
from .drawn import Drawing, Drawn, curve

__all__ = ["Largest", "Point", "Scale"]


@dataclass(frozen=True, kw_only=True)
class Point(Part):
    """A training step on so many GPUs."""

    gpus: int = 1
    dp: int = 1
    micro_batches: int = 1
    global_batch: int = 1
    step_ms: float = 0
    low_ms: float = 0
    high_ms: float = 0
    tokens_per_s: float = 0
    tokens_per_s_per_gpu: float = 0
    efficiency: float = 0
    mfu: float = 0
    comm_ms: float = 0
    comm_exposed_ms: float = 0
    bubble_ms: float = 0
    peak_bytes: float = 0
    fits: bool = True


@dataclass(frozen=True, kw_only=True)
class Scale(Drawn):
    """What ``foretell scale`` answers: ``strong`` keeps the global batch, ``weak`` the tokens per GPU.

    >>> import foretell
    >>> answer = foretell.scale("gpt2", gpu="h100_sxm", gpus=16)
    >>> answer.data["fsdp_tokens_per_gpu"] > 0, answer.strong[0].efficiency
    (True, 1)
    """

    model: str = ""
    gpu: str = ""
    dtype: str = ""
    gpus: int = 0
    parameters: float | None = None
    active_parameters: float | None = None
    cluster: Mapping[str, Any] = field(default_factory=dict)
    peak_tflops: float = 0
    data: Mapping[str, Any] = field(default_factory=dict)
    tensor: Mapping[str, Any] = field(default_factory=dict)
    expert: Mapping[str, Any] | None = None
    pipeline: Mapping[str, Any] | None = None
    strong: tuple[Point, ...] = many(Point)
    weak: tuple[Point, ...] = many(Point)

    def sheet(self) -> Sheet:
        """Limits, then both curves."""
        sheet = Sheet(" · ".join(each for each in (self.model, "scale", self.gpu) if each), warnings=self.warnings)
        sheet.add("parameters", count(self.parameters))
        sheet.add("cluster", str(self.cluster.get("understood", "")))
        sheet.add("FSDP", f"{number(self.data.get('fsdp_tokens_per_gpu'))} tokens", "per GPU hide the exchange")
        sheet.add("tensor", f"{number(self.tensor.get('limit_ways'))} ways", "exchange as long as they compute")
        for title, points in (("Strong: the global batch kept", self.strong), ("Weak: the tokens kept", self.weak)):
            rows = [
                [
                    number(each.gpus),
                    ms(each.step_ms),
                    number(each.tokens_per_s_per_gpu),
                    percent(each.efficiency),
                    gib(each.peak_bytes) if each.fits else f"({gib(each.peak_bytes)})",
                ]
                for each in points
            ]
            if rows:
                sheet.tables.append(Table(title, ["GPUs", "step", "tokens/s per GPU", "efficiency", "memory"], rows))
        return sheet

    def _drawings(self) -> list[Drawing]:
        """Throughput over GPUs, where there are several points."""
        curves = [
            curve(
                name,
                [(each.gpus, each.tokens_per_s_per_gpu, *_rates(each)) for each in points],
                hollow=[not each.fits for each in points],
            )
            for name, points in (
                ("weak: the batch grows with the GPUs", self.weak),
                ("strong: the batch stays", self.strong),
            )
            if points
        ]
        if not any(len(each["x"]) > 1 for each in curves):
            return []
        said = {"title": "Tokens per second and GPU over GPUs", "x": "GPUs", "y": "tokens/s per GPU", "log_x": True}
        return [{"what": "curves", "name": "scaling", **said, "rings": "rings: does not fit", "curves": curves}]

    def rows(self) -> list[dict[str, Any]]:
        """A row per curve and number of GPUs."""
        curves = (("strong", self.strong), ("weak", self.weak))
        return [{"curve": curve, **flat(each.raw)} for curve, points in curves for each in points]


def _rates(point: Point) -> tuple[float | None, float | None]:
    """The interval of its throughput: the longest step makes the least."""
    if not (point.low_ms and point.high_ms):
        return None, None
    made = point.tokens_per_s_per_gpu * point.step_ms
    return made / point.high_ms, made / point.low_ms


@dataclass(frozen=True, kw_only=True)
class Largest(Answer):
    """What ``foretell largest`` answers; ``fits`` is false where not even the smallest of the family does."""

    family: str = ""
    gpu: str = ""
    gpus: int = 1
    task: str = "train"
    fits: bool = False
    parameters: float | None = None
    layers: int | None = None
    hidden: int | None = None
    heads: int | None = None
    ffn: int | None = None
    vocab: int | None = None
    need_bytes: float | None = None
    states_bytes: float | None = None
    capacity_bytes: float | None = None
    next_parameters: float | None = None
    step_ms: float | None = None
    low_ms: float | None = None
    high_ms: float | None = None
    tokens_per_s_per_gpu: float | None = None
    mfu: float | None = None
    training: Mapping[str, Any] | None = None

    def sheet(self) -> Sheet:
        """Its shape, its memory, its step."""
        where = f"{self.gpus} × {self.gpu}" if self.gpus > 1 else self.gpu
        sheet = Sheet(f"largest {self.family} · {self.task} · {where}", warnings=self.warnings)
        if not self.fits:
            sheet.add("none", "not even the smallest of the family fits")
            return sheet
        sheet.add("parameters", count(self.parameters), f"{self.layers} layers of {self.hidden}, {self.heads} heads")
        sheet.add("memory", gib(self.need_bytes), f"of {gib(self.capacity_bytes)}")
        sheet.add("step", ms(self.step_ms), range_of(self.low_ms, self.high_ms))
        sheet.add("rate", f"{number(self.tokens_per_s_per_gpu)} tokens/s per GPU", f"MFU {percent(self.mfu)}")
        if self.training:
            sheet.add("training", f"{number(self.training.get('days'))} days")
        return sheet
