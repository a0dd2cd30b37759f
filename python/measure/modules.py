"""Modules on a GPU, and what the exporter forecasts of them: modules.py measure OUT SECONDS [TEXT [CASES]]
                                                           modules.py forecast OUT GPU [TEXT [CASES]]

TEXT: those whose name has it. CASES: the file they stand in, modules_cases (plain torch.nn) or library_cases.

A blind check of the exporter: `forecast` is written down before `measure` runs, and nothing is fitted to the rows. bf16
weights, eager, fused AdamW, random inputs, the mean of the result as loss. A row: time of a step between CUDA events
(median), of its kernels under the profiler, how many there were and which took longest, the allocator's peaks.
"""

from __future__ import annotations

import gc
import importlib
import json
import statistics
import sys
import time
from typing import Any

import torch

CASES: dict[str, Any] = importlib.import_module(sys.argv[5] if len(sys.argv) > 5 else "modules_cases").CASES


def built(name: str, device: str) -> tuple[Any, tuple[Any, ...]]:
    def made(*shape: int) -> torch.Tensor:
        x = torch.empty(*shape, device=device, dtype=torch.bfloat16)
        return x if device == "meta" else x.normal_()

    def tokens(*shape: int, below: int) -> torch.Tensor:
        if device == "meta":
            return torch.zeros(*shape, dtype=torch.long, device=device)
        return torch.randint(0, below, shape, device=device)

    torch.manual_seed(0)
    with torch.device(device):
        model, inputs = CASES[name](made, tokens)
    return model.to(torch.bfloat16), inputs


def loss_of(out: torch.Tensor) -> torch.Tensor:
    return out.float().mean()


def measured(name: str, train: bool) -> dict[str, Any]:
    from torch.profiler import ProfilerActivity, profile

    torch._C._cuda_clearCublasWorkspaces()  # autograd's thread keeps its own, 32 MiB from Hopper on, from the case before
    model, inputs = built(name, "cuda")
    model.train(train)
    update = torch.optim.AdamW(model.parameters(), lr=1e-6, fused=True) if train else None

    def step() -> None:
        if update is None:
            with torch.no_grad():
                model(*inputs)
            return
        loss_of(model(*inputs)).backward()
        update.step()
        update.zero_grad(set_to_none=True)

    for _ in range(4):
        step()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    took = []
    began = time.monotonic()
    while len(took) < 7 or (len(took) < 40 and time.monotonic() - began < 0.8):
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        a.record()
        step()
        b.record()
        torch.cuda.synchronize()
        took.append(a.elapsed_time(b))
    peak, reserved = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        step()
        torch.cuda.synchronize()
    events = [e for e in seen.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    by: dict[str, list[float]] = {}
    for e in events:
        each = by.setdefault(e.name[:160], [0, 0.0])
        each[0] += 1
        each[1] += e.device_time_total / 1e3
    top = [[n, c, round(ms, 4)] for n, (c, ms) in sorted(by.items(), key=lambda t: -t[1][1])[:30]]
    return {
        "wall_ms": statistics.median(took),
        "busy_ms": sum(e.device_time_total for e in events) / 1e3,
        "kernels": len(events),
        "peak_bytes": peak,
        "reserved_bytes": reserved,
        "top": top,
    }


def forecast(name: str, train: bool, gpu: str) -> dict[str, Any]:
    import foretell
    from foretell.export import export

    model, inputs = built(name, "meta")
    task = "train" if train else "forward"
    graph = export(model, inputs, task=task, loss=loss_of)
    step = foretell.forecast(graph, gpu=gpu, task=task, dtype="bf16", attention="sdpa", execution="eager")
    said = {
        key: step[key] for key in ("step_ms", "low_ms", "high_ms", "busy_ms", "host_ms")
    }
    memory = step["memory"]
    return {**said, "peak_bytes": memory["peak_bytes"], "reserved_bytes": memory["reserved_bytes"], "warnings": list(graph.warnings)}


def main() -> None:
    what, path, argument = sys.argv[1:4]
    text = sys.argv[4] if len(sys.argv) > 4 else ""
    began = time.monotonic()
    with open(path, "a", encoding="utf-8") as out:
        for name in (each for each in CASES if text in each):
            for train in (True, False):
                if what == "measure" and time.monotonic() - began > float(argument):
                    print("out of time before", name)
                    return
                row: dict[str, Any] = {"module": name, "task": "train" if train else "forward"}
                try:
                    row |= measured(name, train) if what == "measure" else forecast(name, train, argument)
                except Exception as error:  # noqa: BLE001 - one module's fault is not the others'
                    row["error"] = f"{type(error).__name__}: {error}"[:300]
                print(json.dumps({k: v for k, v in row.items() if k != "top"}), flush=True)
                out.write(json.dumps(row) + "\n")
                out.flush()
                gc.collect()
                if what == "measure":
                    torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
