"""``with foretell.record(gpu=…) as run:`` around a training step that exists: what it would take on that GPU."""

from __future__ import annotations

import dataclasses
import gzip
import json
import os
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any

from ._library import DEFAULT, Settings
from .answers import Trace
from .errors import Error, TorchMissingError
from .tracing import trace_with

__all__ = ["Recording", "record"]


def record(
    gpu: Any = None,
    *,
    predictor: str | os.PathLike[str] | None = None,
    calibration: str | os.PathLike[str] | None = None,
) -> Recording:
    """Records the operators that run inside a ``with`` block and forecasts them for a GPU.

    The block is ordinary PyTorch, forward, backward and optimizer, on any device: a GPU, the CPU, or the meta device,
    where nothing is computed and nothing needs memory. What CUDA would run in one kernel (attention, dropout,
    multi-tensor optimizers) is recorded as that kernel wherever it ran. The block computes what it would compute
    without.

    >>> import torch, foretell
    >>> model = torch.nn.Linear(1024, 1024, device="meta")
    >>> optimizer = torch.optim.AdamW(model.parameters())
    >>> with foretell.record(gpu="h100_sxm") as run:
    ...     model(torch.empty(4096, 1024, device="meta")).sum().backward()
    ...     optimizer.step()
    >>> run.operators["aten::addmm"], run.operators["aten::mm"]
    (1, 1)
    >>> run.answer.step_ms > 0
    True
    """
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise TorchMissingError(f"PyTorch is needed to record, and it cannot be imported ({error})") from None
    settings = Settings(
        None if predictor is None else os.fspath(predictor), None if calibration is None else os.fspath(calibration)
    )
    return Recording(gpu, settings)


class Recording:
    """What ran inside the block. ``answer`` is its forecast, made when it is first asked for."""

    def __init__(self, gpu: Any = None, settings: Settings = DEFAULT) -> None:
        from ._recorder.mode import Log

        self.gpu = gpu
        self._settings = settings
        self._log = Log()
        self._inside: Any = None
        self._state = "new"
        self._answer: Trace | None = None

    def __enter__(self) -> Recording:
        from ._recorder.mode import recording

        if self._state != "new":
            raise Error("a recording is made once; call foretell.record() again", code="usage")
        self._state = "open"
        self._inside = recording(self._log)
        self._inside.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._state = "closed" if error is None else "broken"
        self._inside.__exit__(kind, error, trace)

    def step(self) -> None:
        """Marks the end of a step, where several run in one block; the answer is then of one step."""
        self._log.step()

    @property
    def events(self) -> list[dict[str, Any]]:
        """Events in the form of a profiler trace."""
        return self._log.events

    @property
    def operators(self) -> Counter[str]:
        """How often each operator ran, views and allocations left out."""
        return Counter(each["name"] for each in self.events if each["args"].get("Kernels"))

    @property
    def peak_bytes(self) -> int:
        """The most that tensors held at once, as CUDA's allocator counts; what kernels work in is not known."""
        return self._log.memory.peak

    def to_dict(self) -> dict[str, Any]:
        """The trace."""
        import torch

        return {
            "schemaVersion": 1,
            "foretell_record": 1,
            "torch_version": str(torch.__version__),
            "allow_tf32": torch.get_float32_matmul_precision() != "highest",
            "cudnn_allow_tf32": bool(torch.backends.cudnn.allow_tf32),
            "deviceProperties": [],
            "traceEvents": self.events,
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the trace; a name that ends in .gz is compressed. ``foretell trace FILE --gpu G`` reads it."""
        text = json.dumps(self.to_dict())
        if os.fspath(path).endswith(".gz"):
            with gzip.open(path, "wt", encoding="utf-8") as file:
                file.write(text)
        else:
            Path(path).write_text(text, encoding="utf-8")

    @property
    def answer(self) -> Trace:
        """The forecast for the GPU that the recording was made for."""
        if self._answer is None:
            if self.gpu is None:
                raise Error("which GPU? record(gpu=...) or run.forecast(gpu)", code="missing", where="gpu")
            self._answer = self.forecast(self.gpu)
        return self._answer

    def forecast(self, gpu: Any) -> Trace:
        """The same run on this GPU."""
        if self._state != "closed":
            why = {
                "new": "nothing was recorded yet",
                "open": "the block is not over yet",
                "broken": "the block raised an exception",
            }[self._state]
            raise Error(f"no forecast: {why}", code="usage")
        if not self.operators:
            raise Error("no operator ran inside the block", code="missing")
        with TemporaryDirectory(prefix="foretell-") as folder:
            path = Path(folder) / "record.json"
            self.save(path)
            answer = trace_with(path, gpu, settings=self._settings)
        return dataclasses.replace(answer, peak_bytes=self.peak_bytes)
