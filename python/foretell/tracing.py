"""Profiler traces: what a run spent its time on, and the same run on other GPUs."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from . import _library
from ._library import DEFAULT, Settings
from ._request import request_of
from .answers import Trace
from .errors import error_from

__all__ = ["trace"]


def trace(
    path: str | os.PathLike[str],
    *,
    gpu: Any | Sequence[Any] = None,
    on: Any = None,
    host: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    predictor: str | os.PathLike[str] | None = None,
    calibration: str | os.PathLike[str] | None = None,
) -> Trace:
    """Reads a trace of ``torch.profiler`` (``export_chrome_trace``, plain or .gz), recorded with shapes.

    ``gpu`` is a GPU, or a list of them, to forecast the run for; ``on`` the one it was recorded on, where the trace
    does not say so in words that are known. ``host`` (a name, a file, its object) issues the operators of a trace
    without kernels.

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
    return trace_with(path, gpu, on, settings, host)


def trace_with(
    path: str | os.PathLike[str], gpu: Any, on: Any = None, settings: Settings = DEFAULT, host: Any = None
) -> Trace:
    """The same with settings that were made before."""
    several = list(gpu) if isinstance(gpu, (list, tuple)) else [] if gpu is None else [gpu]
    with TemporaryDirectory(prefix="foretell-") as folder:

        def named(one: Any) -> str:
            """A trace names its GPUs: a spec object becomes a file."""
            spec = request_of(gpu=one)["gpu"]
            if not isinstance(spec, Mapping):
                return str(spec)
            file = Path(folder) / f"{len(os.listdir(folder))}.json"
            file.write_text(json.dumps(spec), encoding="utf-8")
            return str(file)

        asked: dict[str, Any] = {"task": "trace", "file": os.fspath(path), "gpu": [named(each) for each in several]}
        if on is not None:
            asked["on"] = named(on)
        if host is not None:
            asked["host"] = host if isinstance(host, Mapping) else os.fspath(host)
        raw = _library.answer(asked, settings)
    if raw.get("ok") is not True:
        raise error_from(raw)
    return Trace.from_dict(raw)
