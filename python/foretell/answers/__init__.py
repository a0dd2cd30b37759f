"""Answers: frozen dataclasses with units in their names.

Each prints as a compact table, shows itself in a notebook, and has ``to_dict()``, ``to_dataframe()``, ``raw`` (the JSON
object as it came), ``request`` (what was asked) and ``extra`` (keys of ``raw`` that have no field here).
"""

from __future__ import annotations

from .answer import Answer
from .catalogue import Gpu, Model
from .choice import Choice
from .collection import Collection
from .comparison import Cause, Compared, Comparison, KernelChange
from .fleet import ServeChoice, ServePlan
from .infer import Capacity, Cell, Generation, Infer, Offline
from .kernel import Collective, Kernel
from .plan import Plan
from .scale import Largest, Point, Scale
from .serve import Serve
from .step import Advice, Energy, Finding, KernelRow, Layer, Memory, Regime, Source, Stage, Step
from .trace import Elsewhere, Operator, Trace

__all__ = [
    "Advice",
    "Answer",
    "Capacity",
    "Cause",
    "Cell",
    "Choice",
    "Collection",
    "Collective",
    "Compared",
    "Comparison",
    "Elsewhere",
    "Energy",
    "Finding",
    "Generation",
    "Gpu",
    "Infer",
    "Kernel",
    "KernelChange",
    "KernelRow",
    "Largest",
    "Layer",
    "Memory",
    "Model",
    "Offline",
    "Operator",
    "Plan",
    "Point",
    "Regime",
    "Scale",
    "Serve",
    "ServeChoice",
    "ServePlan",
    "Source",
    "Stage",
    "Step",
    "Trace",
]
