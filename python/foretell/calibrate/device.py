"""What measuring needs of a device. Two have it: the GPU through PyTorch, and a simulated one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from .cell import Request


@dataclass(frozen=True)
class Measured:
    """A median over `repeats`; `spread` is the range of their middle half over the median."""

    ms: float
    spread: float
    repeats: int


@dataclass(frozen=True)
class Description:
    """`gpu` is what the forecaster and the fit call it: a catalogue name or a spec object."""

    gpu: str | dict[str, Any]
    title: str
    dtypes: tuple[str, ...]
    memory_bytes: float  # free for measuring
    facts: dict[str, Any] = field(default_factory=dict)  # for the header: device, clocks, software
    gpus: int = 1
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class State:
    """How the device does while it is measured; what is not known is None. `held_back` names why clocks are low."""

    clock_mhz: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    held_back: str | None = None
    others: str | None = None  # what other processes do to it
    power_capped: bool = False  # the power limit holds the clock: normal for large products, worth knowing


class Device(Protocol):
    def describe(self) -> Description: ...

    def clock(self) -> float:
        """Seconds that pass as measuring does."""
        ...

    def measure(self, request: Request) -> Measured:
        """Raises Skip, or OutOfMemory, for this point alone; CalibrateError where the device is lost."""
        ...

    def eager(self) -> list[tuple[Request, Measured]]:
        """A few small operators called one by one: the gap that the launch of an eager call adds."""
        ...

    def host_us(self) -> dict[str, float]:
        """Microseconds that the host takes to issue small operators, by name (host.LOOPS_US)."""
        ...

    def reference(self) -> dict[str, float]:
        """Milliseconds of kernels that are timed again and again, by name: they tell a quiet machine from another."""
        ...

    def state(self) -> State: ...

    def close(self) -> None: ...
