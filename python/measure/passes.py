"""Passes of a model under the profiler: what the scripts that count kernels and bytes of one pass share."""
from __future__ import annotations

import json
import pathlib
import sys
import time
import typing

import torch
from torch.profiler import ProfilerActivity, profile

Case = dict[str, typing.Any]
Run = typing.Callable[[], None]


def busy_ms(run: Run, most: int) -> tuple[float, int, list[typing.Any]]:
    """What the device did during one call, in how many kernels, and the longest `most` of them by name."""
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        run()
        torch.cuda.synchronize()
    found = [each for each in profiled.key_averages() if each.device_time_total > 0]
    found.sort(key=lambda each: -each.device_time_total)
    longest = [[each.key[:120], each.count, round(each.device_time_total, 1)] for each in found[:most]]
    return sum(each.device_time_total for each in found) / 1e3, sum(each.count for each in found), longest


def measured(model: torch.nn.Module, task: str, run: Run, most: int = 40) -> Case:
    """Two passes to warm up, one for the allocator's peak, three under the profiler: the median's figures.

    Workspaces of the BLAS are dropped first: autograd's thread keeps its own (32 MiB from Hopper on) from one case to the next.
    """
    torch._C._cuda_clearCublasWorkspaces()
    model.train(task == "train")
    for _ in range(2):
        run()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    run()
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated()
    busy, kernels, longest = sorted(busy_ms(run, most) for _ in range(3))[1]
    return {"busy_ms": round(busy, 4), "kernels": kernels, "peak_bytes": peak, "by_kernel": longest}


def every(measure: typing.Callable[[Case], typing.Iterable[Case]], name: typing.Callable[[Case], str]) -> None:
    """CASES OUT [SECONDS] of the command line: a row at a time, what fails is said, and what there was no time for."""
    cases = [json.loads(line) for line in pathlib.Path(sys.argv[1]).read_text().splitlines() if line]
    until = time.monotonic() + float(sys.argv[3]) if len(sys.argv) > 3 else float("inf")
    with pathlib.Path(sys.argv[2]).open("a") as out:
        for case in cases:
            if time.monotonic() > until:
                print("out of time before", name(case), file=sys.stderr)
                break
            try:
                for row in measure(case):
                    out.write(json.dumps(row) + "\n")
                    out.flush()
            except Exception as why:  # noqa: BLE001
                print(f"{name(case)}: {type(why).__name__}: {why}"[:500], file=sys.stderr)
