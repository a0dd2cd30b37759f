"""Clocks and power: what nvidia-smi tells, read beside the measuring.

All of it is optional. Where nvidia-smi is missing (AMD, a container without it) PyTorch's own readings are tried, and
what is still unknown is left out of the file.
"""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any

from .device import State

FIELDS = "clocks.sm,clocks.mem,power.draw,temperature.gpu,clocks_event_reasons.active,utilization.gpu,clocks.max.sm"
OLD_FIELDS = FIELDS.replace("clocks_event_reasons", "clocks_throttle_reasons")  # drivers before 535
EVERY_MS = 1000
# Bits of clocks_event_reasons.active (nvml.h, nvmlClocksEventReason*). A power cap is how large GPUs live: it is
# counted, not complained of.
POWER_CAP = 0x4
HELD_BACK = {0x8: "hardware slowdown", 0x20: "heat (driver)", 0x40: "heat (hardware)", 0x80: "power brake"}


class Readings:
    """PyTorch's own, by NVML or AMD SMI where their Python modules are installed; given up at the first failure."""

    def __init__(self, readers: dict[str, Callable[[], float]]) -> None:
        self._readers = readers
        self._at = -EVERY_MS / 1e3
        self._state = State()

    def state(self) -> State:
        now = time.monotonic()
        if self._readers and now - self._at >= EVERY_MS / 1e3:
            self._at = now
            try:
                told: dict[str, Any] = {name: float(read()) for name, read in self._readers.items()}
                self._state = State(**told)
            except Exception:  # a missing module, a driver that does not tell: whatever it is, it will stay so
                self._readers = {}
        return self._state


def _figure(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _bits(text: str) -> int:
    try:
        return int(text, 16)
    except ValueError:
        return 0


class Monitor:
    """nvidia-smi in a loop of its own; `latest` is what it printed last."""

    def __init__(self, device: str) -> None:
        """`device`: its UUID or number, as nvidia-smi -i takes it."""
        self._device = device
        self._process: subprocess.Popen[str] | None = None
        self.latest: dict[str, float | int | None] = {}
        program = shutil.which("nvidia-smi")
        for fields in (FIELDS, OLD_FIELDS):
            if not program:
                break
            first = self._run([program, f"--query-gpu={fields}"])
            if first and self._take(first.splitlines()[0]):
                line = [program, "-i", device, f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
                self._process = subprocess.Popen(
                    [*line, "-lms", str(EVERY_MS)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                    start_new_session=True,
                )  # fmt: skip
                threading.Thread(target=self._read, daemon=True).start()
                break

    def utilisation(self) -> float | None:
        """Per cent of the last moments in which a kernel ran, asked now."""
        program = shutil.which("nvidia-smi")
        told = self._run([program, "--query-gpu=utilization.gpu"]) if program else None
        return _figure(told.strip().splitlines()[0]) if told and told.strip() else None

    def driver(self) -> str | None:
        program = shutil.which("nvidia-smi")
        told = self._run([program, "--query-gpu=driver_version"]) if program else None
        return told.strip().splitlines()[0] if told and told.strip() else None

    def state(self) -> State:
        latest = self.latest
        if not latest:
            return State()
        bits = int(latest.get("reasons") or 0)
        reasons = [name for bit, name in HELD_BACK.items() if bits & bit]
        return State(
            clock_mhz=latest.get("clock"),
            power_w=latest.get("power"),
            temperature_c=latest.get("temperature"),
            held_back=", ".join(reasons) or None,
            power_capped=bool(bits & POWER_CAP),
        )

    def close(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            self._process = None

    def _run(self, line: list[str]) -> str | None:
        try:
            done = subprocess.run(
                [*line, "-i", self._device, "--format=csv,noheader,nounits"],
                capture_output=True, text=True, timeout=10, check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout if done.returncode == 0 else None

    def _take(self, line: str) -> bool:
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) != FIELDS.count(",") + 1:
            return False
        clock, memory, power, temperature, reasons, busy, most = cells
        self.latest = {
            "clock": _figure(clock),
            "memory_clock": _figure(memory),
            "power": _figure(power),
            "temperature": _figure(temperature),
            "reasons": _bits(reasons),
            "utilisation": _figure(busy),
            "max_clock": _figure(most),
        }
        return True

    def _read(self) -> None:
        process = self._process
        if process is None or process.stdout is None:
            return
        for line in process.stdout:
            self._take(line)
