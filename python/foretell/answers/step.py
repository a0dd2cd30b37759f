"""A step of a whole model: training, a forward pass, prefill, decoding, or its memory alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from .._frame import arrow_table, flat, frame, polars_frame
from .._part import Part, many, one
from .._picture import Picture
from .._sheet import Sheet, Table, count, gib, ms, number, percent, range_of
from ..errors import Error, error_from
from .answer import Answer, described
from .step_parts import Advice, Energy, Finding, KernelRow, Layer, Memory, Regime, Source, Stage, shares_of

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

Detail = Literal["kernels", "layers", "summary"]

__all__ = ["Advice", "Energy", "Finding", "KernelRow", "Layer", "Memory", "Regime", "Source", "Stage", "Step"]

_SHOWN = 12  # kernels in a table that people read


@dataclass(frozen=True, kw_only=True)
class Step(Answer):
    """One step of a model on one GPU, or on one of many.

    >>> import foretell
    >>> step = foretell.train("gpt2", gpu="h100_sxm", batch=8, seq=1024)
    >>> step.low_ms < step.step_ms < step.high_ms
    True
    >>> step.memory.fits, step.regime.bound
    (True, 'compute')
    >>> round(step.parameters / 1e6)
    124
    """

    step_ms: float | None = None
    low_ms: float | None = None
    high_ms: float | None = None
    ttft_ms: float | None = None
    tpot_ms: float | None = None
    forward_ms: float | None = None
    backward_ms: float | None = None
    optimizer_ms: float | None = None
    recompute_ms: float | None = None
    host_ms: float | None = None
    comm_ms: float | None = None
    comm_exposed_ms: float | None = None
    bubble_ms: float | None = None
    busy_ms: float | None = None
    idle_ms: float | None = None
    between_ms: float | None = None
    launches: float | None = None
    tokens_per_s_per_gpu: float | None = None
    samples_per_s_per_gpu: float | None = None
    model_tflops_per_gpu: float | None = None
    mfu: float | None = None
    hfu: float | None = None
    model_flops: float | None = None
    executed_flops: float | None = None
    host: str | None = None  # where the request names one
    stack: str | None = None  # the software, by name
    parameters: float | None = None
    active_parameters: float | None = None
    ranks: int | None = None
    micro_batches: int | None = None
    memory: Memory | None = one(Memory)
    energy: Energy | None = one(Energy)
    regime: Regime | None = one(Regime)
    source: Source | None = one(Source)
    classes: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    parallel: Mapping[str, Any] = field(default_factory=dict)
    cluster: Mapping[str, Any] = field(default_factory=dict)
    comm: Mapping[str, float] = field(default_factory=dict)
    slowest_stage: int | None = None
    dealt: str | None = None  # how layers are dealt over the stages of a pipeline, in words
    stages: tuple[Stage, ...] = many(Stage)
    layers: tuple[Layer, ...] = many(Layer)
    kernels: tuple[KernelRow, ...] = many(KernelRow)
    advice: tuple[Advice, ...] = many(Advice)
    advice_together: Advice | None = one(Advice)
    other_gpus: tuple[Advice, ...] = many(Advice)
    techniques: tuple[Advice, ...] = many(Advice)
    lint: tuple[Finding, ...] = many(Finding)
    verdict: Mapping[str, Any] = field(default_factory=dict)
    loading: Mapping[str, Any] = field(default_factory=dict)
    pictures: Mapping[str, str] = field(default_factory=dict)  # SVG by name, where the request asks for some
    training: Mapping[str, Any] = field(default_factory=dict)
    planned: Mapping[str, Any] = field(default_factory=dict)

    @property
    def fits(self) -> bool:
        """Whether it fits into the GPU's memory."""
        return self.memory.fits if self.memory else True

    def sheet(self) -> Sheet:
        """Time, rates, phases, memory, regime; then advice, layers and the kernels that take longest."""
        about = described(self.request, "task", "gpu", "dtype", "batch", "seq")
        sheet = Sheet(about or "one step", warnings=self.warnings)
        sheet.add("step", ms(self.step_ms), range_of(self.low_ms, self.high_ms))
        for label, value in (
            ("forward", self.forward_ms),
            ("backward", self.backward_ms),
            ("recompute", self.recompute_ms),
            ("optimizer", self.optimizer_ms),
            ("exposed exchanges", self.comm_exposed_ms),
            ("pipeline bubble", self.bubble_ms),
            ("waits for the host", self.idle_ms),
            ("from a kernel to the next", self.between_ms),
        ):
            if value:
                sheet.add("  " + label, ms(value), percent(value / self.step_ms) if self.step_ms else "")
        if self._without_length():
            sheet.add("rate", f"{number(self.samples_per_s_per_gpu)} images/s per GPU")
        elif self.tokens_per_s_per_gpu:
            sheet.add("rate", f"{number(self.tokens_per_s_per_gpu)} tokens/s per GPU")
        if self.mfu is not None:
            sheet.add("MFU", percent(self.mfu), f"{number(self.model_tflops_per_gpu)} TFLOP/s")
        if self.memory:
            _add_memory(sheet, self.memory)
        sheet.add("parameters", count(self.parameters))
        if self.regime:
            sheet.shares = shares_of(self.regime)
        sheet.tables = [table for table in (self._advised(), self._layered(), self._launched()) if table]
        return sheet

    def _without_length(self) -> bool:
        """Whether samples are images: the program then counts each as one token. A text of one token is a text."""
        if not self.samples_per_s_per_gpu or self.tokens_per_s_per_gpu not in (None, self.samples_per_s_per_gpu):
            return False
        return self.request.get("seq") != 1 and self.request.get("task") != "decode"

    def _advised(self) -> Table | None:
        rows = [(each.change, ms(each.saves_ms), each.why) for each in self.advice]
        return Table("What to change", ("change", "saves", "why"), rows, left=(0, 2)) if rows else None

    def _layered(self) -> Table | None:
        rows = [
            (
                each.name,
                number(each.repeat),
                ms(each.forward_ms),
                ms(each.backward_ms),
                count(each.parameters),
                gib(each.activations_bytes),
            )
            for each in self.layers
        ]
        columns = ("layer", "times", "forward", "backward", "parameters", "activations")
        return Table("Layers", columns, rows) if rows else None

    def _launched(self) -> Table | None:
        longest = sorted(self.kernels, key=lambda each: -each.total_ms)
        rows = [
            (each.name, each.op, each.phase, number(each.count), ms(each.ms), ms(each.total_ms), each.bound)
            for each in longest[:_SHOWN]
        ]
        columns = ("kernel", "op", "phase", "times", "one", "all", "bound")
        more = max(0, len(longest) - _SHOWN)
        return Table("Kernels, longest first", columns, rows, left=(0, 1, 2, 6), more=more) if rows else None

    def rows(self, what: Detail | None = None) -> list[dict[str, Any]]:
        """The rows of a data frame: the finest detail that the answer has, or what is asked for."""
        if what not in (None, "kernels", "layers", "summary"):
            raise Error(f'what is "kernels", "layers" or "summary", not {what!r}', code="out_of_range", where="what")
        if what is None:
            what = "kernels" if self.kernels else "layers" if self.layers else "summary"
        if what == "summary":
            return [flat(self.raw)]
        parts: tuple[Part, ...] = self.kernels if what == "kernels" else self.layers
        if not parts:
            raise Error(f'the answer has no {what}; ask with detail="{what}"', code="missing", where="detail")
        return [flat(each.raw) for each in parts]

    def to_dataframe(self, what: Detail | None = None) -> pandas.DataFrame:
        """A pandas data frame with a row per kernel, per layer, or of the whole step.

        >>> import foretell
        >>> step = foretell.train("gpt2", gpu="h100_sxm", batch=8, seq=1024, detail="kernels")
        >>> table = step.to_dataframe()
        >>> bool(abs(table["total_ms"].sum() / step.busy_ms - 1) < 0.01)
        True
        """
        return frame(self.rows(what))

    def to_pandas(self, what: Detail | None = None) -> pandas.DataFrame:
        """The same under another name."""
        return self.to_dataframe(what)

    def to_polars(self, what: Detail | None = None) -> polars.DataFrame:
        """The same as a polars data frame."""
        return polars_frame(self.rows(what))

    def to_arrow(self, what: Detail | None = None) -> pyarrow.Table:
        """The same as an Arrow table."""
        return arrow_table(self.rows(what))

    def picture(self, name: str = "timeline") -> Picture:
        """A drawing of the step: ``timeline``, ``memory``, ``roofline``, ``layers``, ``classes``, ``intervals``; of several stages ``pipeline``.

        The library draws it. A notebook shows it where it is the last line of a cell, and ``save`` writes it to a file.

        >>> import foretell
        >>> step = foretell.train("gpt2", gpu="h100_sxm", batch=8)
        >>> step.picture("roofline").heading
        'Roofline of the step'
        """
        if name in self.pictures:
            return Picture(self.pictures[name])
        drawn = _drawn(self, [name])
        if name not in drawn:
            raise Error(f"this step has no {name} to draw", code="missing", where="name")
        return Picture(drawn[name])

    def _repr_html_(self) -> str:
        """The sheet, and below it the pictures: time, then memory, then the pipeline where there is one."""
        names = [name for name in ("timeline", "memory", "pipeline") if self._drawable(name)]
        try:
            drawn = {**_drawn(self, names), **self.pictures}
        except (Error, OSError, MemoryError):
            drawn = dict(self.pictures)  # an answer from elsewhere, without the library or the files that it is about
        shown = "".join(Picture(drawn[name])._repr_html_() for name in names if name in drawn)
        return self.sheet().html(shown)

    def _drawable(self, name: str) -> bool:
        if name == "pipeline":
            return bool(self.parallel.get("pp", 1) > 1)
        return name == "memory" or self.step_ms is not None


def _drawn(step: Step, names: list[str]) -> dict[str, str]:
    """Asks the library for the pictures of the same step: it answers as before, whatever was asked in between."""
    from .. import _library

    if not step.request:
        return {}
    asked = {key: value for key, value in step.request.items() if key not in ("advice", "techniques", "detail", "course")}
    told = _library.answer({**asked, "pictures": names}, step.settings or _library.DEFAULT)
    if told.get("ok") is not True:
        raise error_from(told)
    return dict(told.get("pictures", {}))


def _add_memory(sheet: Sheet, memory: Memory) -> None:
    fits = "fits" if memory.fits else f"does not fit: {gib(memory.short_bytes)} short"
    reserved = f"{gib(memory.reserved_bytes)} reserved of {gib(memory.capacity_bytes)}"
    sheet.add("memory", gib(memory.peak_bytes), reserved)
    for label, value in (
        ("weights", memory.weights_bytes),
        ("gradients", memory.gradients_bytes),
        ("optimizer", memory.optimizer_bytes),
        ("activations", memory.activations_bytes),
        ("temporary", memory.temporary_bytes),
        ("cache", memory.kv_cache_bytes),
        ("communication", memory.communication_bytes),
    ):
        if value:
            sheet.add("  " + label, gib(value))
    sheet.add("  verdict", fits)
