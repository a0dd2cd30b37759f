"""Rows added to where an index says: python index_put.py OUT. Device time by the profiler, operands not in L2.

What the kernel of PyTorch takes is a matter of how many rows share an index, how wide they are and in which format.
"""

from __future__ import annotations

import json
import pathlib
import statistics
import sys

import torch
from torch.profiler import ProfilerActivity, profile

# rows, places, columns: experts' biases, embeddings, biases of relative positions
CASES = (
    (4096, 32, 2880), (16384, 32, 2880), (16384, 32, 5760), (65536, 32, 2880), (32768, 128, 5760), (16384, 4, 2880),
    (16384, 16, 5760), (16384, 512, 2880), (16384, 4096, 2880), (16384, 16384, 1024), (2048, 1, 2880), (8192, 8, 768),
    (8192, 8, 128), (65536, 64, 64), (38416, 732, 12), (38416, 169, 4), (9604, 169, 32), (262144, 1024, 16),
    (262144, 4096, 1), (65536, 2, 1),
)  # fmt: skip
TIMES = 4
KERNELS = {"stride_1": "single", "small_stride": "narrow"}


def timed(table: torch.Tensor, index: torch.Tensor, rows: torch.Tensor, cold: torch.Tensor) -> dict[str, object]:
    """The kernel that adds, all kernels of a call, and how many they are."""
    with profile(activities=[ProfilerActivity.CUDA]) as trace:
        for _ in range(TIMES + 1):
            cold.add_(1)
            table.index_put_((index,), rows, accumulate=True)
        torch.cuda.synchronize()
    calls: list[list[tuple[str, float]]] = []
    for event in sorted(trace.events(), key=lambda e: e.time_range.start):
        if "CUDAFunctorOnSelf_add" in event.name and event.time_range.elapsed_us() > 60:
            calls.append([])
        elif calls and event.device_type == torch.autograd.DeviceType.CUDA:
            calls[-1].append((event.name, event.time_range.elapsed_us()))
    calls = calls[1:]
    adds = [next(kernel for kernel in call if "indexing_backward" in kernel[0]) for call in calls]
    return {
        "kernel": next((kind for part, kind in KERNELS.items() if part in adds[0][0]), "wide"),
        "kernel_us": round(statistics.median(us for _, us in adds), 2),
        "call_us": round(statistics.median(sum(us for _, us in call) for call in calls), 2),
        "kernels": len(calls[0]),
    }


def main() -> None:
    """Every case in both formats, indices in order and at random."""
    cold = torch.empty(48 << 20, device="cuda")
    with pathlib.Path(sys.argv[1]).open("w") as out:
        for dtype, name in ((torch.bfloat16, "bf16"), (torch.float32, "fp32")):
            for count, places, cols in CASES:
                for order in ("sorted", "random"):
                    index = torch.randint(0, places, (count,), device="cuda")
                    if order == "sorted":
                        index = index.sort().values
                    rows = torch.randn(count, cols, device="cuda", dtype=dtype)
                    table = torch.zeros(places, cols, device="cuda", dtype=dtype)
                    row = {"rows": count, "places": places, "cols": cols, "dtype": name, "order": order}
                    out.write(json.dumps(row | timed(table, index, rows, cold)) + "\n")


if __name__ == "__main__":
    main()
