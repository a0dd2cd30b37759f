"""How a forward pass slows down while it is repeated, before it is compiled and after: settling.py CASES OUT [SECONDS]

CASES: a JSON line each, as compiled.py takes them. After two seconds of rest the pass runs again and again under the profiler for a second and a
half. A row has a line per pass, in microseconds: when it began, its kernels' sum, what of it are products, attention and all else; and what
nvidia-smi said of clock, power and temperature meanwhile.
"""
from __future__ import annotations

import gc
import time
import typing

import torch
from torch.profiler import ProfilerActivity, profile

from compiled import Pass, keep_apart
from passes import Case, Run, every
from watch import Watch

REST, RUN = 2.0, 1.5
KINDS = (("products", ("nvjet", "gemm", "cutlass", "xmma")), ("attention", ("sdpa", "flash", "fmha")))
WATCH: list[Watch] = []


def kind_of(name: str) -> str:
    low = name.lower()
    if "elementwise" in low:
        return "else"
    return next((kind for kind, words in reversed(KINDS) if any(word in low for word in words)), "else")


def passes(run: Run, count: int) -> list[dict[str, float]]:
    """The kernels of `count` passes in a row, by what they do. Each pass has the same number of kernels."""
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        for _ in range(count):
            run()
        torch.cuda.synchronize()
    events = [(each.start_ns(), each.duration_ns(), each.name()) for each in profiled.profiler.kineto_results.events()
              if each.device_type() == torch.autograd.DeviceType.CUDA and not each.name().startswith("##")]
    events.sort()
    found = []
    for index in range(count):
        mine = events[index * len(events) // count:(index + 1) * len(events) // count]
        row = {"at": (mine[0][0] - events[0][0]) / 1e3, "busy": 0.0, "products": 0.0, "attention": 0.0, "else": 0.0}
        for _, took, name in mine:
            row["busy"] += took / 1e3
            row[kind_of(name)] += took / 1e3
        found.append({key: round(value, 1) for key, value in row.items()})
    return found


def repeated(run: Run) -> Case:
    for _ in range(4):
        run()
    torch.cuda.synchronize()
    begun = time.perf_counter()
    for _ in range(8):
        run()
    torch.cuda.synchronize()
    each = (time.perf_counter() - begun) / 8
    with profile(activities=[ProfilerActivity.CUDA]):  # the profiler's own start
        run()
        torch.cuda.synchronize()
    time.sleep(REST)
    began = time.time()
    found = passes(run, int(RUN / each))
    return {"ms": round(each * 1e3, 3), "columns": list(found[0]), "passes": [list(row.values()) for row in found], "watch": WATCH[0].since(began)}


def measure(case: Case) -> typing.Iterator[Case]:
    for execution in ("eager", "compile"):
        gc.collect()
        torch.cuda.empty_cache()
        torch._dynamo.reset()
        keep_apart(case, "forward")
        step = Pass(case, "forward")
        run = step.eager() if execution == "eager" else step.compiled()
        yield {"request": {"task": "forward", "gpu": "h200_sxm", "attention": "sdpa", "execution": execution, **case["request"]}, **repeated(run)}
        print(execution, str(case["request"]["model"])[:40], flush=True)


if __name__ == "__main__":
    WATCH.append(Watch())
    every(measure, lambda case: str(case["request"]["model"])[:60])
