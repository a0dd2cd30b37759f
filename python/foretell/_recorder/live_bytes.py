"""Bytes that live tensors hold, as CUDA's caching allocator would count them.

Each storage counts once, however many views it has, from the first operator that shows it until Python lets go of it.
The allocator hands out multiples of 512 bytes.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch

__all__ = ["LiveBytes"]

_BLOCK = 512


class LiveBytes:
    """Counts storages as they are seen and as they die."""

    def __init__(self) -> None:
        self.live = 0
        self.peak = 0
        self.before = 0  # of what existed already: weights, states, inputs
        self._seen: dict[int, weakref.ref[Any]] = {}

    def see(self, tensor: torch.Tensor, fresh: bool) -> None:
        """Counts a tensor's storage if it is new; ``fresh`` tells results from what existed before."""
        if tensor.layout != torch.strided or (tensor.dim() == 0 and tensor.device.type == "cpu" and not fresh):
            return
        try:
            storage = tensor.untyped_storage()
            size = -(-storage.nbytes() // _BLOCK) * _BLOCK
        except (NotImplementedError, RuntimeError):  # tensors without memory of their own
            return
        key = id(storage)
        known = self._seen.get(key)
        if size == 0 or (known is not None and known() is storage):
            return

        def gone(_: Any, size: int = size, key: int = key) -> None:
            self.live -= size
            self._seen.pop(key, None)

        self._seen[key] = weakref.ref(storage, gone)
        self.live += size
        if not fresh:
            self.before += size
            self.peak += size  # it was there all along
        self.peak = max(self.peak, self.live)
