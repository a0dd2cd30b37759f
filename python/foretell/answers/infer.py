"""Inference: prefill and decoding over batches and lengths, what the cache holds, offline throughput."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .._frame import flat
from .._part import Part, many, one
from .._sheet import Sheet, Table, count, gib, ms, number
from .drawn import CURVES, Drawing, Drawn, curve

__all__ = ["Capacity", "Cell", "Generation", "Infer", "Offline"]


@dataclass(frozen=True, kw_only=True)
class Cell(Part):
    """One batch and length: ``ttft_ms`` of a prefill, ``tpot_ms`` of decoding, ``step_ms`` of a forward pass."""

    batch: int = 1
    seq: int | None = None
    ttft_ms: float | None = None
    tpot_ms: float | None = None
    step_ms: float | None = None
    low_ms: float | None = None
    high_ms: float | None = None
    tokens_per_s_per_gpu: float | None = None
    samples_per_s_per_gpu: float | None = None
    fits: bool = True

    @property
    def ms(self) -> float | None:
        """Whichever of the three times it is."""
        return next((each for each in (self.ttft_ms, self.tpot_ms, self.step_ms) if each is not None), None)


@dataclass(frozen=True, kw_only=True)
class Capacity(Part):
    """What the cache holds beside the weights."""

    weights_bytes: float = 0
    kv_bytes_per_token: float = 0
    tokens: float = 0
    sequences: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Offline(Part):
    """Throughput with a large set of prompts at hand."""

    isl: int = 0
    osl: int = 0
    batch: int = 0
    tokens_per_s_per_gpu: float = 0
    low_tokens_per_s_per_gpu: float = 0
    high_tokens_per_s_per_gpu: float = 0
    total_tokens_per_s_per_gpu: float = 0
    requests_per_s: float = 0
    prefill_ms: float = 0
    tpot_ms: float = 0


@dataclass(frozen=True, kw_only=True)
class Generation(Part):
    """One batch of images or videos of their prompts, by the pipeline around a denoiser; ``parts`` says where the time goes."""

    pipeline: str = ""
    seconds: float = 0
    low_seconds: float = 0
    high_seconds: float = 0
    per_hour: float = 0
    batch: int = 1
    steps: int = 0
    guidance: str = ""
    image_size: str = ""
    frames: int | None = None
    tiled: bool = False
    execution: str = ""
    attention: str = ""
    parts: tuple[Mapping[str, Any], ...] = ()
    left_out: str = ""
    memory: Mapping[str, Any] | None = None
    offload: Mapping[str, Any] | None = None
    energy: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Infer(Drawn):
    """What ``foretell infer`` answers.

    >>> import foretell
    >>> answer = foretell.infer("llama-3-8b", gpu="h100_sxm", batch=[1, 64], seq=2048, isl=1024, osl=128)
    >>> [cell.batch for cell in answer.decode]
    [1, 64]
    >>> answer.decode[0].tpot_ms < answer.prefill[0].ttft_ms, answer.offline.batch > 64
    (True, True)
    """

    model: str = ""
    gpu: str = ""
    parameters: float | None = None
    prefill: tuple[Cell, ...] = many(Cell)
    decode: tuple[Cell, ...] = many(Cell)
    forward: tuple[Cell, ...] = many(Cell)
    capacity: Capacity | None = one(Capacity)
    offline: Offline | None = one(Offline)
    generation: Generation | None = one(Generation)

    def sheet(self) -> Sheet:
        """The grids, capacity, throughput."""
        sheet = Sheet(" · ".join(each for each in (self.model, "infer", self.gpu) if each), warnings=self.warnings)
        sheet.add("parameters", count(self.parameters))
        if self.capacity:
            sheet.add("weights", gib(self.capacity.weights_bytes))
            each = f"{gib(self.capacity.kv_bytes_per_token)} each"
            sheet.add("cache", f"{number(self.capacity.tokens)} tokens", each)
        if self.offline and self.offline.batch:
            o = self.offline
            sheet.add(
                "offline",
                f"{number(o.tokens_per_s_per_gpu)} tokens/s per GPU",
                f"{o.isl} tokens in, {o.osl} out, {o.batch} sequences at once",
            )
        if self.generation:
            p = self.generation
            what = "video" if p.frames else "image"
            sheet.add(what, f"{number(p.seconds)} s", f"{p.steps} steps of {p.image_size}, {p.execution}")
            rows = [[str(each["part"]), str(each.get("model", "")), number(each["seconds"])] for each in p.parts]
            sheet.tables.append(Table(f"A {what} of its prompt", ["part", "model", "seconds"], rows))
        for title, cells in (
            ("Prefill: time to the first token", self.prefill),
            ("Decoding: time of a token", self.decode),
            ("Forward pass", self.forward),
        ):
            if cells:
                sheet.tables.append(_grid(title, cells))
        return sheet

    def rows(self) -> list[dict[str, Any]]:
        """A row per phase, batch and length."""
        phases = (("prefill", self.prefill), ("decode", self.decode), ("forward", self.forward))
        return [{"phase": phase, **flat(cell.raw), "ms": cell.ms} for phase, cells in phases for cell in cells]

    def _drawings(self) -> list[Drawing]:
        """Times and rates over the batch, a curve for each length; one batch is no curve."""
        found = (
            _over_batches("steps", "Time per output token", self.decode),
            _over_batches("prefills", "Time to the first token", self.prefill),
            _over_batches("rates", "Generated tokens per second", self.decode, rate=True),
            _over_batches("steps", "Time of a forward pass", self.forward),
            _over_batches("rates", "Rate of forward passes", self.forward, rate=True),
        )
        return [each for each in found if each]

    def _shown(self) -> list[Drawing]:
        """The times: rates say the same once more."""
        return [each for each in self._drawings() if each["name"] != "rates"]


def _over_batches(name: str, title: str, cells: tuple[Cell, ...], rate: bool = False) -> Drawing | None:
    """What does not fit has no speed and is left out, as on the program's page."""
    lengths: dict[int, list[tuple[float, float, float | None, float | None]]] = {}
    for cell in sorted(cells, key=lambda each: (each.seq or 0, each.batch)):
        made = cell.samples_per_s_per_gpu if cell.tokens_per_s_per_gpu is None else cell.tokens_per_s_per_gpu
        if not cell.fits or not cell.ms or (rate and not made):
            continue
        point = (cell.ms, cell.low_ms, cell.high_ms)
        if rate and made:
            low, high = (made * cell.ms / each if each else None for each in (cell.high_ms, cell.low_ms))
            point = (made, low, high)
        lengths.setdefault(cell.seq or 0, []).append((cell.batch, *point))
    if not any(len(points) > 1 for points in lengths.values()):
        return None
    curves = [curve(f"{length} tokens" if length else "images", points) for length, points in lengths.items()]
    unit = "ms" if not rate else "images/s per GPU" if 0 in lengths else "tokens/s per GPU"
    said = {"title": title, "x": "batch", "y": unit, "log_x": True, "log_y": True}
    return {"what": "curves", "name": name, **said, "curves": curves[:CURVES]}


def _grid(title: str, cells: tuple[Cell, ...]) -> Table:
    batches = sorted({cell.batch for cell in cells})
    lengths = sorted({cell.seq or 0 for cell in cells})
    known = {(cell.seq or 0, cell.batch): cell for cell in cells}
    rows = []
    for length in lengths:
        row = [number(length) if length else ""]
        for batch in batches:
            cell = known.get((length, batch))
            row.append("" if cell is None else ms(cell.ms) if cell.fits else f"({ms(cell.ms)})")
        rows.append(row)
    note = "; (…) does not fit" if any(not cell.fits for cell in cells) else ""
    return Table(title + note, ["tokens", *(f"batch {batch}" for batch in batches)], rows)
