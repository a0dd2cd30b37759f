"""Small kernels by the profiler and by a CUDA graph: python small.py [SECONDS] [OUT]

Pointwise operators in order, spread, strided and of mixed formats, row operators, reductions by axis, softmax along any dimension,
group norms, copies of transposed tensors, gathers, routing, attention with odd heads, block masks. Each case by three clocks, us of one call:

  prof_us   sum of its kernels by the profiler, operands rotating through up to ten copies, most of them touched for the first time: cold;
            the queue is full (the device never waits for the host)
  warm_us   the same, always on the first copy
  graph_us  a chain of calls captured into a CUDA graph, as foretell/calibrate/timing.py does, a replay over its calls

gap_us is the median pause between two kernels of the first. A line of OUT/small.jsonl a case, drawn by a fixed seed, families in turn, so that
running out of time cuts all of them alike.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from small_cases import DEV, FAMILIES, Run, rng, take
from torch.profiler import ProfilerActivity, profile

L2 = 60 << 20
COPIES, CALLS, TOGETHER = 10, 12, 24


class Case:
    def __init__(self, family: str, fields: dict[str, Any], make: Callable[[], Run]) -> None:
        self.row: dict[str, Any] = {"family": family, **fields}
        take.bytes = 0
        first = make()
        each = max(take.bytes, 1)
        copies = 1 if family == "block_mask" else min(COPIES, math.ceil(3 * L2 / each) + 1)
        self.runs = [first] + [make() for _ in range(copies - 1)]
        self.row["bytes"] = each
        for run in self.runs[:2]:
            run()
        torch.cuda.synchronize()
        t = time.perf_counter()
        first()
        self.host_s = time.perf_counter() - t
        torch.cuda.synchronize()
        self.whole_s = time.perf_counter() - t
        self.calls = 4 if family == "block_mask" else CALLS if self.whole_s < 2e-3 else 5


def sleep(seconds: float) -> None:
    torch.cuda._sleep(int(seconds * 1.9e9))


def profiled(cases: list[Case]) -> None:
    with profile(activities=[ProfilerActivity.CUDA]) as session:
        for case in cases:
            for warm in (False, True):
                sleep(2e-4 + 1.6 * case.host_s * case.calls)
                for i in range(case.calls):
                    case.runs[0 if warm else i % len(case.runs)]()
        sleep(1e-5)
        torch.cuda.synchronize()
    spans: list[list[tuple[int, int, str]]] = []
    events = [e for e in session.profiler.kineto_results.events() if e.device_type() == torch.autograd.DeviceType.CUDA]
    for e in sorted(events, key=lambda e: e.start_ns()):
        if "spin" in e.name():
            spans.append([])
        elif spans:
            spans[-1].append((e.start_ns(), e.duration_ns(), e.name()))
    for i, case in enumerate(cases):
        for at, key in ((2 * i, "prof_us"), (2 * i + 1, "warm_us")):
            kernels = spans[at] if at < len(spans) else []
            each, rest = divmod(len(kernels), case.calls)
            if rest or not each:
                case.row[key + "_odd"] = len(kernels)
                continue
            calls = [kernels[j * each : (j + 1) * each] for j in range(1, case.calls)]
            middle = [statistics.median(k[j][1] for k in calls) / 1e3 for j in range(each)]
            case.row[key] = round(sum(middle), 3)
            if key == "prof_us":
                gaps = [b[0] - a[0] - a[1] for a, b in zip(kernels[1:], kernels[2:])]
                case.row["gap_us"] = round(statistics.median(gaps) / 1e3, 3) if gaps else None
                case.row["kernels"] = each
                named: dict[str, list[float]] = {}
                for (_, _, name), us in zip(calls[-1], middle):
                    named.setdefault(name[:100], []).append(us)
                case.row["names"] = [[name, len(us), round(sum(us), 3)] for name, us in named.items()]


pool = None


def graphed(case: Case) -> None:
    if case.row["family"] == "block_mask":
        return
    launches = min(100, max(3, math.ceil(1.5e-3 / max(case.whole_s, 1e-6))))
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    graph.capture_begin(pool=pool)  # on the stream that everything runs on: autograd goes back on the one it came by
    try:
        for i in range(launches):
            case.runs[i % len(case.runs)]()
    except BaseException:
        with contextlib.suppress(RuntimeError):
            graph.capture_end()
        raise
    graph.capture_end()
    times = []
    graph.replay()
    for _ in range(7):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        times.append((begin, end))
    torch.cuda.synchronize()
    ms = statistics.median(a.elapsed_time(b) for a, b in times)
    case.row["graph_us"], case.row["launches"] = round(ms * 1e3 / launches, 3), launches
    del graph


def main() -> None:
    seconds, out = float(sys.argv[1]) if len(sys.argv) > 1 else 400.0, sys.argv[2] if len(sys.argv) > 2 else os.environ.get("OUT", ".")
    end = time.monotonic() + seconds
    os.makedirs(out, exist_ok=True)
    torch.set_grad_enabled(False)
    torch.manual_seed(0)
    stream = torch.cuda.Stream()
    torch.cuda.set_stream(stream)
    keeper = torch.cuda.CUDAGraph()
    global pool
    pool = torch.cuda.graph_pool_handle()
    torch.zeros(1, device=DEV)
    torch.cuda.synchronize()
    keeper.capture_begin(pool=pool)  # stays, and keeps the pool's memory from going back to the driver
    torch.zeros(1, device=DEV)
    keeper.capture_end()
    failed: dict[str, int] = {}
    count = 0
    with open(os.path.join(out, "small.jsonl"), "w") as file:
        file.write(json.dumps({"family": "device", "name": torch.cuda.get_device_name(), "torch": torch.__version__}) + "\n")
        wanted: list[str] = []
        while time.monotonic() < end:
            cases: list[Case] = []
            while len(cases) < TOGETHER:
                if not wanted:
                    wanted = [f for f, (_, n) in FAMILIES.items() for _ in range(n)]
                    rng.shuffle(wanted)
                family = wanted.pop()
                drawn = FAMILIES[family][0]()
                if drawn is None:
                    continue
                try:
                    cases.append(Case(family, *drawn))
                except Exception as error:  # noqa: BLE001
                    key = f"{family} {drawn[0]['op']} {str(error).splitlines()[0][:90]}"
                    failed[key] = failed.get(key, 0) + 1
            try:
                profiled(cases)
            except Exception as error:  # noqa: BLE001
                failed["profile " + str(error)[:90]] = failed.get("profile " + str(error)[:90], 0) + 1
            for case in cases:
                try:
                    graphed(case)
                except Exception as error:  # noqa: BLE001
                    key = f"graph {case.row['family']} {case.row['op']} {str(error).splitlines()[0][:90]}"
                    failed[key] = failed.get(key, 0) + 1
                    torch.cuda.synchronize()
                file.write(json.dumps(case.row) + "\n")
            file.flush()
            count += len(cases)
            cases.clear()
            if torch.cuda.memory_reserved() > 60 << 30:
                torch.cuda.empty_cache()
    with open(os.path.join(out, "small_failed.json"), "w") as file:
        json.dump({"cases": count, "failed": failed}, file, indent=1)
    print(count, "cases", len(failed), "kinds of failures", list(failed.items())[:12])


if __name__ == "__main__":
    main()
