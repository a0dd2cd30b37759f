"""Profiler traces: what a run spent its time on, and the same run on other GPUs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from . import _program
from ._library import DEFAULT, Settings
from ._request import request_of
from .answers import Trace

__all__ = ["trace"]


def trace(
    path: str | os.PathLike[str],
    *,
    gpu: Any | Sequence[Any] = None,
    on: Any = None,
    predictor: str | os.PathLike[str] | None = None,
    calibration: str | os.PathLike[str] | None = None,
) -> Trace:
    """Reads a trace of ``torch.profiler`` (``export_chrome_trace``, plain or .gz), recorded with shapes.

    ``gpu`` is a GPU, or a list of them, to forecast the run for; ``on`` the one it was recorded on, where the trace
    does not say so in words that are known.

    >>> import foretell, tempfile, torch
    >>> with foretell.record() as run:
    ...     _ = torch.empty(4096, 4096, device="meta") @ torch.empty(4096, 4096, device="meta")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run.save(f"{folder}/run.json.gz")
    ...     answer = foretell.trace(f"{folder}/run.json.gz", gpu=["h100_sxm", "a100_sxm_80gb"])
    >>> [each.gpu for each in answer.forecasts]
    ['h100_sxm', 'a100_sxm_80gb']
    """
    settings = Settings(
        None if predictor is None else os.fspath(predictor), None if calibration is None else os.fspath(calibration)
    )
    return trace_with(path, gpu, on, settings)


def trace_with(path: str | os.PathLike[str], gpu: Any, on: Any = None, settings: Settings = DEFAULT) -> Trace:
    """The same with settings that were made before."""
    several = list(gpu) if isinstance(gpu, (list, tuple)) else [] if gpu is None else [gpu]
    line = []
    with ExitStack() as files:
        for flag, each in [*(("--gpu", each) for each in several), *([("--on", on)] if on is not None else [])]:
            named = request_of(gpu=each)["gpu"]
            if isinstance(named, Mapping):
                named = files.enter_context(_program.json_file(named, "gpu.json"))
            line += [flag, str(named)]
        raw = _program.ask("trace", os.fspath(path), *line, settings=settings)
    return Trace.from_dict(raw)
