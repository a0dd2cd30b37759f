"""Random operands without the cost of making them.

Thousands of kernels are timed on operands that must be random (a matrix product of zeros draws less power and runs up
to 13 % faster than one of real numbers) and cold in L2. Drawing fresh numbers for every case would take longer than
timing it, so one buffer per dtype is filled once with standard normal numbers and operands are windows into it.
Windows move forward from request to request and start over at the buffer's end, which is why two copies of an operand
never share cache lines unless together they exceed the buffer, that is, many times L2.
"""

from __future__ import annotations

import math

import torch

DTYPES: dict[str, torch.dtype] = {
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "fp32": torch.float32,
    "tf32": torch.float32,  # fp32 in memory, tf32 in the tensor cores: see set_tf32
    "fp8": torch.float8_e4m3fn,
}

ALIGN_BYTES = 512  # what the caching allocator gives its own blocks
FILL_CHUNK = 1 << 28  # elements drawn at a time where a dtype has no generator of its own


class TooLarge(Exception):
    """An operand does not fit the buffer; the case is skipped."""


def set_tf32(dtype: str) -> None:
    """`tf32` lets fp32 operands through the tensor cores; every other dtype forbids it."""
    torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
    torch.backends.cudnn.allow_tf32 = dtype == "tf32"


def use_fnuz_fp8() -> None:
    """CDNA3 (gfx94x) multiplies the e4m3 without infinities and negative zero; everybody else the OCP one."""
    DTYPES["fp8"] = torch.float8_e4m3fnuz


class Operands:
    """Hands out random tensors and counts their bytes."""

    def __init__(self, device: torch.device, buffer_bytes: int) -> None:
        self.device = device
        self.buffer_bytes = buffer_bytes
        self.bytes_taken = 0
        self._buffers: dict[torch.dtype, torch.Tensor] = {}
        self._next: dict[torch.dtype, int] = {}

    def take(self, dtype: torch.dtype, *shape: int) -> torch.Tensor:
        """A contiguous tensor of standard normal numbers. Read only: windows overlap over time."""
        buffer = self._buffers.get(dtype)
        if buffer is None:
            buffer = self._buffers[dtype] = self._filled(dtype)
            self._next[dtype] = 0
        numel, align = math.prod(shape), ALIGN_BYTES // buffer.element_size()
        if numel > buffer.numel():
            raise TooLarge(f"{numel} elements of {dtype}")
        start = self._next[dtype]
        if start + numel > buffer.numel():
            start = 0
        self._next[dtype] = -(-(start + numel) // align) * align
        self.bytes_taken += numel * buffer.element_size()
        return buffer[start : start + numel].view(shape)

    def integers(self, high: int, *shape: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
        """Uniform integers below `high`: token ids, class labels."""
        values = torch.randint(0, high, shape, dtype=dtype, device=self.device)
        self.bytes_taken += values.numel() * values.element_size()
        return values

    def _filled(self, dtype: torch.dtype) -> torch.Tensor:
        buffer = torch.empty(self.buffer_bytes // dtype.itemsize, dtype=dtype, device=self.device)
        for chunk in buffer.split(FILL_CHUNK):
            if dtype.itemsize > 1:
                chunk.normal_()
            else:
                chunk.copy_(torch.randn(chunk.numel(), dtype=torch.bfloat16, device=self.device))
        return buffer
