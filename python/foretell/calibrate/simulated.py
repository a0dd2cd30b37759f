"""A device that is not there: its times are forecasts, bent and with noise, and its clock moves by what measuring
would take. For dry runs (`--simulate GPU`) and for the tests of everything around the measuring.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .cell import Request, key_of, kind_of
from .device import Description, Measured, State
from .errors import CalibrateError, OutOfMemory, Skip
from .forecaster import ByProgram, ByRoofline, Forecaster
from .host import LOOPS_US, NODE
from .sequence import fraction_of
from .work import Roofline, footprint_of

# As an H200 took: binding, capturing and instantiating; for attention what the library's search for a kernel takes
# beside that, every time, and when it builds a new one.
PREPARE_S, SEARCH_S, BUILD_S = 0.005, 0.05, 0.6
SAMPLED_MS, LEAST_MS = 6.0, 3.0  # what is sampled of a short kernel, and of the shortest


@dataclass
class Behaviour:
    """What goes wrong on it."""

    noise: float = 0.01  # of each figure
    reference_noise: float = 0.003
    bent: float = 0.15  # how far the truth lies from the forecast, by kind and size
    memory_bytes: float = 140e9  # free
    out_of_memory_above: float = math.inf  # bytes of one point
    lacks: frozenset[str] = frozenset()  # kinds that the library refuses
    lost_after: int | None = None  # points
    held_back: str | None = None
    others: str | None = None
    dtypes: tuple[str, ...] = ("bf16", "fp16", "fp32", "tf32", "fp8")
    host: float = 1.25  # times as slow as the host that is built in
    before: Callable[[int], None] | None = None  # called with the count of points before each


@dataclass
class Simulated:
    gpu: str | dict[str, Any]
    program: Path | None = None
    seed: int = 0
    behaviour: Behaviour = field(default_factory=Behaviour)

    def __post_init__(self) -> None:
        self._forecaster: Forecaster = (
            ByProgram(self.program, self.gpu) if self.program else ByRoofline(Roofline(700.0, 4000.0))
        )
        if self._forecaster.ask([EXAMPLE])[0] is None:
            self._forecaster.close()
            raise CalibrateError(f'no GPU "{self.gpu}" to simulate (foretell gpus lists them)')
        self._now = 0.0
        self._built: set[str] = set()
        self._random = random.Random(self.seed)
        self.measured = 0

    def describe(self) -> Description:
        facts = {"device": {"name": f"simulated {self.gpu}"}, "simulated": True}
        return Description(
            self.gpu, f"a simulated {self.gpu}", self.behaviour.dtypes, self.behaviour.memory_bytes, facts
        )

    def clock(self) -> float:
        return self._now

    def measure(self, request: Request) -> Measured:
        b = self.behaviour
        if b.before:
            b.before(self.measured)
        self.measured += 1
        if b.lost_after is not None and self.measured > b.lost_after:
            raise CalibrateError("the GPU was lost: simulated")
        self._now += PREPARE_S + self._search_s(request)
        if kind_of(request) in b.lacks:
            raise Skip("not implemented for this GPU")
        if footprint_of(request) > b.out_of_memory_above:
            raise OutOfMemory("out of memory")
        ms = self.truth(request)
        self._now += (ms * 4 if ms > 3.0 else max(SAMPLED_MS, LEAST_MS + ms)) / 1e3
        return Measured(ms * math.exp(self._random.gauss(0.0, b.noise)), b.noise, 5)

    def _search_s(self, request: Request) -> float:
        if request["op"] != "attention":
            return 0.0
        passes = 2.5 if request["pass"] == "fwd_bwd" else 1.0
        grouped = request["heads"] != request["kv_heads"]
        built = f"{kind_of(request)} {request['head_dim']} {request['causal']} {grouped} {request['kv_len'] % 128 == 0}"
        new = built not in self._built
        self._built.add(built)
        return passes * (BUILD_S if new else SEARCH_S)

    def truth(self, request: Request) -> float:
        """Off by a constant of its kind and a slow wave over its sizes: what a fit can learn and a forecast lacks."""
        told = self._forecaster.ask([request])[0] or ByRoofline(Roofline(700.0, 4000.0)).ask([request])[0]
        assert told is not None
        phase = fraction_of(kind_of(request))
        wave = math.sin(6.28 * phase + 0.6 * math.log2(1.0 + told.ms * 1e3))
        return told.ms * math.exp(self.behaviour.bent * ((phase - 0.5) + 0.5 * wave))

    def eager(self) -> list[tuple[Request, Measured]]:
        requests = [EXAMPLE, {"op": "softmax", "dtype": "fp32", "rows": 8, "cols": 1024, "pass": "fwd"}]
        self._now += 0.05
        return [(request, Measured(0.012 + 0.002 * fraction_of(key_of(request)), 0.02, 30)) for request in requests]

    def host_us(self) -> dict[str, float]:
        self._now += 0.3
        return {**{name: us * self.behaviour.host for name, us in LOOPS_US.items()}, NODE: 0.8}

    def reference(self) -> dict[str, float]:
        self._now += 0.02
        wobble = self.behaviour.reference_noise
        return {name: ms * math.exp(self._random.gauss(0.0, wobble)) for name, ms in (("product", 0.05), ("copy", 0.1))}

    def state(self) -> State:
        return State(1980.0, 410.0, 50.0, self.behaviour.held_back, self.behaviour.others)

    def close(self) -> None:
        self._forecaster.close()


EXAMPLE: Request = {"op": "elementwise", "dtype": "fp32", "name": "add", "inputs": 2, "numel": 1024}
