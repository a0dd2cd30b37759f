"""Foretell: how fast a deep-learning model trains or serves on GPUs, how much memory it takes, and why.

>>> import foretell
>>> step = foretell.train("llama-3-8b", gpu="h100_sxm", batch=1, seq=2048)
>>> print(f"{step.memory.peak_bytes / 2**30:.0f} GiB, bound by {step.regime.bound}")
60 GiB, bound by compute

Any ``torch.nn.Module`` can stand in the place of the name, with example inputs beside it; see :func:`forecast`. A
training step that exists already is forecast by wrapping it in :func:`record`.
"""

from __future__ import annotations

from typing import Any

from ._version import __version__
from .answers import (
    Advice,
    Answer,
    Choice,
    Collection,
    Collective,
    Comparison,
    Energy,
    Gpu,
    Infer,
    Kernel,
    KernelRow,
    Largest,
    Layer,
    Memory,
    Model,
    Plan,
    Regime,
    Scale,
    Serve,
    ServeChoice,
    ServePlan,
    Step,
    Trace,
)
from .api import batch, collective, forecast, kernel, train
from .errors import Error, ExportError, NotFoundError, TorchMissingError
from .mapping import Mapped, map, ray_executor
from .recording import Recording, record
from .serving import choose_serve, plan_serve, serve
from .studies import choose, compare, gpus, infer, largest, models, plan, scale, sweep
from .tracing import trace

# Without `map`: a star import must not take Python's own away.
__all__ = [
    "Advice",
    "Answer",
    "Choice",
    "Collection",
    "Collective",
    "Comparison",
    "Energy",
    "Error",
    "ExportError",
    "Gpu",
    "Infer",
    "Kernel",
    "KernelRow",
    "Largest",
    "Layer",
    "Mapped",
    "Memory",
    "Model",
    "Plan",
    "NotFoundError",
    "Recording",
    "Regime",
    "Scale",
    "Serve",
    "ServeChoice",
    "ServePlan",
    "Step",
    "TorchMissingError",
    "Trace",
    "__version__",
    "batch",
    "collective",
    "choose",
    "choose_serve",
    "compare",
    "forecast",
    "gpus",
    "infer",
    "kernel",
    "largest",
    "models",
    "plan",
    "plan_serve",
    "ray_executor",
    "record",
    "scale",
    "serve",
    "sweep",
    "trace",
    "train",
]


def __getattr__(name: str) -> Any:
    """``foretell.export`` without an import of its own; it needs PyTorch, so it is not imported with the package."""
    if name == "export":
        from ._model import exporter

        return exporter()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
