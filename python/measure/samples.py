"""Kernels of torch.nn.functional.grid_sample, forward and back: samples.py OUT. One row for each shape, mode and format:
us of the sampling kernel under the profiler, mean of three calls. `shape`: n, c, h, w and the places' two sides, or n, c, d, h, w.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch.profiler import ProfilerActivity, profile

SHAPES = [(1, 1536, 24, 24, 1024, 1), (1, 1536, 24, 24, 4096, 1), (1, 1536, 24, 24, 256, 1), (1, 256, 24, 24, 4096, 1)]
SHAPES += [(16, 32, 100, 134, 900, 4), (16, 32, 50, 67, 900, 4), (16, 32, 25, 34, 17821, 4), (64, 32, 50, 67, 300, 4)]
SHAPES += [(2, 64, 256, 256, 256, 256), (8, 3, 224, 224, 224, 224), (16, 128, 56, 56, 56, 56), (4, 256, 28, 28, 112, 112)]
SHAPES += [(8, 16, 128, 128, 512, 512), (1, 3, 1080, 1920, 1080, 1920), (32, 512, 14, 14, 14, 14)]


def kernel_us(call: Callable[[], Any], times: int = 3) -> float:
    for _ in range(2):
        call()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        for _ in range(times):
            call()
        torch.cuda.synchronize()
    return round(sum(e.device_time_total for e in seen.events() if "grid_sampl" in e.name) / times, 2)


def places_of(n: int, c: int, h: int, w: int, oh: int, ow: int) -> torch.Tensor:
    """Near a regular grid where the sizes allow one, anywhere otherwise."""
    if oh % h:
        return torch.rand(n, oh, ow, 2, device="cuda") * 2 - 1
    grid = F.affine_grid(torch.eye(2, 3, device="cuda").repeat(n, 1, 1), [n, c, oh, ow], align_corners=False)
    return grid + 0.02 * torch.randn_like(grid)


def measured(shape: tuple[int, ...], mode: str, dtype: torch.dtype, last: bool) -> dict[str, Any]:
    order = torch.channels_last if last else torch.contiguous_format
    x = torch.randn(*shape[:4], device="cuda", dtype=dtype).to(memory_format=order).requires_grad_(True)
    places = places_of(*shape).to(dtype)

    def run() -> torch.Tensor:
        return F.grid_sample(x, places, mode=mode, align_corners=False)

    y = run()
    back = torch.randn_like(y)
    row = {"shape": list(shape), "mode": mode, "dtype": str(dtype)[6:], "last": last}
    row["forward_us"] = kernel_us(lambda: run().detach())
    row["backward_us"] = kernel_us(lambda: torch.autograd.grad(y, x, back, retain_graph=True))
    return row


def main() -> None:
    with open(sys.argv[1], "a", encoding="utf-8") as out:
        for shape in SHAPES:
            for mode in ("bilinear", "bicubic", "nearest"):
                for dtype, last in ((torch.float32, False), (torch.bfloat16, False), (torch.float32, True)):
                    out.write(json.dumps(measured(shape, mode, dtype, last)) + "\n")
                    out.flush()


if __name__ == "__main__":
    main()
