"""The GPU of this machine, through PyTorch: CUDA and ROCm by the same calls."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import Any

import torch

from .catalogue import BASES_AMD, BASES_NVIDIA, name_of, spec_of
from .cell import Request
from .device import Description, Measured, State
from .errors import EXIT_USAGE, CalibrateError, OutOfMemory, Skip
from .kernels.of_request import bind
from .machine import Monitor, Readings
from .operands import DTYPES, Operands, TooLarge, use_fnuz_fp8
from .timing import BRISK, GraphTimer, Sample

BUFFER_BYTES = 6 << 30  # of random numbers, per dtype
BUFFER_SHARE = 1 / 14  # of the free memory at most
INFINITY_CACHE = {"gfx942": 256 << 20, "gfx950": 256 << 20}  # behind the L2 that the driver tells of
BUSY_PERCENT = 20.0
TAKEN_SHARE, TAKEN_BYTES = 0.1, 2 << 30  # of the memory: above both it is somebody else's
MEANWHILE_BYTES = 4 << 30  # the code that libraries load is less
RETRY_SPREAD = 0.1  # a point that scatters more is timed once more
WARM_UP_S = 0.5
REFERENCES: dict[str, Request] = {
    "product": {"op": "gemm", "dtype": "fp32", "m": 1024, "n": 1024, "k": 1024, "layout": "nt"},
    "copy": {"op": "elementwise", "dtype": "fp32", "name": "copy", "inputs": 1, "numel": 1 << 25},
}
EAGER: tuple[Request, ...] = (
    {"op": "elementwise", "dtype": "fp32", "name": "add", "inputs": 2, "numel": 1024},
    {"op": "elementwise", "dtype": "fp32", "name": "gelu", "inputs": 1, "numel": 1024},
    {"op": "gemm", "dtype": "fp32", "m": 64, "n": 64, "k": 64, "layout": "nt"},
    {"op": "bmm", "dtype": "fp32", "b": 4, "m": 64, "n": 64, "k": 64, "layout": "nn"},
    {"op": "layernorm", "dtype": "fp32", "rows": 8, "cols": 1024, "pass": "fwd"},
    {"op": "softmax", "dtype": "fp32", "rows": 8, "cols": 1024, "pass": "fwd"},
    {
        "op": "attention", "dtype": "fp16", "batch": 1, "heads": 4, "kv_heads": 4, "q_len": 64, "kv_len": 64,
        "head_dim": 64, "causal": False, "engine": "bare", "pass": "fwd",
    },
)  # fmt: skip


def open_device(gpu: str | dict[str, Any] | None, allow_busy: bool, seed: int) -> TorchDevice:
    """Raises CalibrateError where there is no GPU, PyTorch was built without, or somebody else uses it."""
    if torch.version.cuda is None and torch.version.hip is None:
        raise CalibrateError(
            f"PyTorch {torch.__version__} is built for the CPU alone; calibrate needs one built for CUDA or ROCm"
        )
    try:
        count = torch.cuda.device_count()
    except RuntimeError as error:
        raise CalibrateError(f"the GPU's driver does not answer: {_first_line(error)}") from None
    if count == 0 or not torch.cuda.is_available():
        raise CalibrateError("no GPU: PyTorch sees none on this machine (nvidia-smi or rocm-smi shows what there is)")
    try:
        return TorchDevice(gpu, allow_busy, seed)
    except torch.cuda.OutOfMemoryError:
        raise CalibrateError("the GPU has too little free memory to begin with; is somebody else using it?") from None
    except RuntimeError as error:
        raise CalibrateError(f"the GPU cannot be used: {_first_line(error)}") from None


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


class TorchDevice:
    def __init__(
        self, gpu: str | dict[str, Any] | None, allow_busy: bool, seed: int, device: torch.device | None = None
    ) -> None:
        self._device = device or torch.device("cuda", torch.cuda.current_device())
        self._properties = torch.cuda.get_device_properties(self._device)
        # On CUDA the same attribute repeats the name.
        hip = torch.version.hip is not None
        self._arch = str(getattr(self._properties, "gcnArchName", "")).partition(":")[0] if hip else ""
        self._monitor = Monitor(self._identity())
        self._readings = Readings(
            {
                "clock_mhz": torch.cuda.clock_rate,
                "power_w": lambda: torch.cuda.power_draw() / 1e3,
                "temperature_c": torch.cuda.temperature,
            }
        )
        self._warnings: list[str] = []
        self._others: str | None = None
        try:
            self._refuse_busy(allow_busy)
            self._gpu = gpu or self._recognise()
            torch.manual_seed(seed)
            torch.set_grad_enabled(False)
            if self._arch.startswith("gfx94"):
                use_fnuz_fp8()
            free, _ = torch.cuda.mem_get_info(self._device)
            self._operands = Operands(self._device, int(min(BUFFER_BYTES, free * BUFFER_SHARE)))
            self._timer = GraphTimer(self._operands, BRISK, INFINITY_CACHE.get(self._arch, 0))
            self._timer.memory_limit = min(self._timer.memory_limit, free * 2 // 3)
            self._free = free
            self._warm_up()
            self._taken_at_first = self._taken()
        except BaseException:
            self._monitor.close()
            raise

    def describe(self) -> Description:
        p, hip = self._properties, torch.version.hip
        latest = self._monitor.latest
        facts = {
            "device": {
                "name": p.name,
                "sms": p.multi_processor_count,
                "memory_bytes": p.total_memory,
                "l2_bytes": p.L2_cache_size,
                "capability": self._arch or f"sm_{p.major}{p.minor}",
                "driver": self._monitor.driver(),
            },
            "clocks": {key: latest.get(key) for key in ("clock", "max_clock", "memory_clock", "power", "temperature")},
            "software": {
                "torch": torch.__version__,
                "rocm" if hip else "cuda": hip or torch.version.cuda,
                "cudnn": torch.backends.cudnn.version() if torch.backends.cudnn.is_available() else None,
            },
            "timing": "device time over graphs, operands rotated past the cache, median",
        }
        return Description(
            gpu=self._gpu,
            title=p.name,
            dtypes=self._dtypes(),
            memory_bytes=float(self._free),
            facts=facts,
            gpus=torch.cuda.device_count(),
            warnings=tuple(self._warnings),
        )

    def clock(self) -> float:
        return time.monotonic()

    def measure(self, request: Request) -> Measured:
        try:
            bound = bind(request, self._operands)
            sample = self._timer.time(bound.make, bound.rotate, bound.rest)
            if sample.spread > RETRY_SPREAD:
                again = self._timer.time(bound.make, bound.rotate, bound.rest)
                sample = min(sample, again, key=lambda s: s.spread)
            return _measured(sample)
        except TooLarge:
            raise OutOfMemory("larger than the buffer of operands") from None
        except torch.cuda.OutOfMemoryError:
            pass  # handled below, where the exception no longer holds its tensors
        except (RuntimeError, NotImplementedError, AttributeError, TypeError, ValueError) as error:
            self._still_there(error)
            raise Skip(_first_line(error)) from None
        finally:
            self._timer.reclaim()
        self._timer.release()
        raise OutOfMemory("out of memory")

    def eager(self) -> list[tuple[Request, Measured]]:
        told = []
        for request in EAGER:
            try:
                launch = bind(request, self._operands).make()
                told.append((request, _measured(self._timer.eager_call(launch))))
            except (RuntimeError, NotImplementedError) as error:
                self._still_there(error)
        return told

    def host_us(self) -> dict[str, float]:
        from . import torch_host

        try:
            return torch_host.measure()
        except RuntimeError as error:
            self._still_there(error)
            return {}

    def reference(self) -> dict[str, float]:
        self._others = self._taken_meanwhile()
        return {name: self.measure(request).ms for name, request in REFERENCES.items()}

    def state(self) -> State:
        state = self._monitor.state() if self._monitor.latest else self._readings.state()
        return replace(state, others=self._others)

    def close(self) -> None:
        self._monitor.close()

    def _identity(self) -> str:
        """As nvidia-smi -i takes it. CUDA_VISIBLE_DEVICES renumbers; the UUID does not."""
        uuid = str(getattr(self._properties, "uuid", "") or "")
        if uuid:
            return uuid if uuid.startswith("GPU-") else "GPU-" + uuid
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
        return visible.split(",")[0] if visible else str(self._device.index or 0)

    def _recognise(self) -> str | dict[str, Any]:
        p = self._properties
        name = name_of(p.name)
        if name:
            return name
        base = BASES_AMD.get(self._arch) if torch.version.hip else BASES_NVIDIA.get((p.major, p.minor))
        spec = spec_of(p.name, base, p.multi_processor_count, p.total_memory)
        if spec is None:
            raise CalibrateError(
                f'"{p.name}" is not in the catalogue, nor is its architecture; describe it in a spec file and name '
                "that with --gpu (docs/devices.md)",
                EXIT_USAGE,
            )
        self._warnings.append(f'"{p.name}" is not in the catalogue; taken as {base} with its own units and memory')
        return spec

    def _refuse_busy(self, allow_busy: bool) -> None:
        free, total = torch.cuda.mem_get_info(self._device)
        reasons = []
        if total - free > max(TAKEN_SHARE * total, TAKEN_BYTES):
            reasons.append(f"{(total - free) / 2**30:.1f} of its {total / 2**30:.1f} GiB are taken")
        readings = []
        for _ in range(3):
            percent = self._monitor.utilisation()
            if percent is None:
                break
            readings.append(percent)
            time.sleep(0.1)
        if readings and min(readings) > BUSY_PERCENT:
            reasons.append(f"it is {min(readings):.0f} % busy")
        if not reasons:
            return
        what = f"somebody else is using the GPU: {' and '.join(reasons)}"
        if not allow_busy:
            raise CalibrateError(f"{what}; free it, or measure all the same with --allow-busy")
        self._warnings.append(what)

    def _taken(self) -> int:
        """Bytes that are not PyTorch's: the driver's, the libraries' code, and other processes'."""
        free, total = torch.cuda.mem_get_info(self._device)
        return total - free - torch.cuda.memory_reserved(self._device)

    def _taken_meanwhile(self) -> str | None:
        more = self._taken() - self._taken_at_first
        return f"{more / 2**30:.0f} GiB of its memory have been taken meanwhile" if more > MEANWHILE_BYTES else None

    def _dtypes(self) -> tuple[str, ...]:
        p = self._properties
        if torch.version.hip:
            matrix = self._arch in BASES_AMD
            fp8 = self._arch.startswith(("gfx94", "gfx95"))
            able = {"fp32": True, "fp16": True, "bf16": matrix, "tf32": False, "fp8": fp8}
        else:
            at = (p.major, p.minor)
            able = {"fp32": True, "fp16": at >= (5, 3), "bf16": at >= (8, 0), "tf32": at >= (8, 0), "fp8": at >= (8, 9)}
        return tuple(dtype for dtype in DTYPES if able[dtype])

    def _warm_up(self) -> None:
        """Clocks up, libraries loaded: the first half second is nobody's measurement."""
        a = self._operands.take(torch.float32, 2048, 2048)
        end = time.monotonic() + WARM_UP_S
        while time.monotonic() < end:
            for _ in range(10):
                torch.mm(a, a)
            torch.cuda.synchronize()

    def _still_there(self, error: BaseException) -> None:
        """After some errors every later call fails: the device is lost, no later figure would be true."""
        try:
            torch.cuda.synchronize()
        except RuntimeError:
            raise CalibrateError(f"the GPU was lost: {_first_line(error)}") from None


def _measured(sample: Sample) -> Measured:
    return Measured(sample.ms, sample.spread, sample.repeats)
