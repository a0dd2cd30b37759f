"""Records profiler traces of whole steps on the GPU of this machine, and times the same steps without the profiler.

    python record_trace.py --out traces                    # all cases
    python record_trace.py --out traces --only gpt2_train  # cases whose name contains this
    python record_trace.py --out /tmp/t --cpu              # small sizes on the CPU: checks the script, not a GPU

Each case leaves OUT/NAME.json.gz, as torch.profiler's export_chrome_trace writes it (shapes recorded, no stacks, two
active steps of a schedule), and a line in OUT/cases.json: `step_ms` (median over 20 steps between CUDA events),
`wall_ms` (the same by the host's clock, a synchronisation on both sides of the twenty), the spread, and what ran.

The unprofiled steps are timed first: a process that has profiled before may launch more slowly. Under the profiler the
host takes longer for every operator, so gaps in a trace are wider than those of the run it stands for; `step_ms`
against the trace's own step says by how much.
No file is downloaded: the weights are random, the configurations are written out in record_cases.py.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import torch
import transformers

from record_cases import CASES, Case, Step

WARMUP, TIMED, ACTIVE = 4, 20, 2


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def time_steps(step: Step, device: torch.device) -> dict[str, float]:
    """Steps one behind another, as a training loop runs them, with an event between each two."""
    for _ in range(WARMUP):
        step()
    synchronize(device)
    marks: list[Any] = []

    def mark() -> None:
        if device.type == "cuda":
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            marks.append(event)
        else:
            marks.append(time.perf_counter())

    timed = TIMED if device.type == "cuda" else 3
    began = time.perf_counter()
    mark()
    for _ in range(timed):
        step()
        mark()
    synchronize(device)
    wall = (time.perf_counter() - began) / timed * 1e3
    if device.type == "cuda":
        times = [a.elapsed_time(b) for a, b in zip(marks, marks[1:])]
    else:
        times = [(b - a) * 1e3 for a, b in zip(marks, marks[1:])]
    return {
        "step_ms": round(statistics.median(times), 4),
        "step_min_ms": round(min(times), 4),
        "step_max_ms": round(max(times), 4),
        "wall_ms": round(wall, 4),
    }


def profile(step: Step, device: torch.device, path: Path) -> None:
    activities = [torch.profiler.ProfilerActivity.CPU]
    if device.type == "cuda":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    schedule = torch.profiler.schedule(wait=0, warmup=2, active=ACTIVE, repeat=1)
    with torch.profiler.profile(
        activities=activities,
        record_shapes=True,
        schedule=schedule,
        on_trace_ready=lambda p: p.export_chrome_trace(str(path)),
    ) as profiler:
        for i in range(2 + ACTIVE):
            step()
            if i == 1 + ACTIVE:
                synchronize(device)
            profiler.step()


def record(case: Case, device: torch.device, out: Path) -> dict[str, Any]:
    began = time.monotonic()
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = case.tf32
    if case.compile:
        torch._dynamo.reset()
    step = case.make(case, device)
    row = {
        "name": case.name,
        "task": case.make.__name__,
        "config": case.config,
        "batch": case.batch,
        "seq": case.seq,
        "dtype": case.dtype,
        "compile": case.compile,
        "tf32": case.tf32,
        "note": case.note,
    }
    row |= time_steps(step, device)
    path = out / f"{case.name}.json.gz"
    profile(step, device, path)
    row |= {"bytes": path.stat().st_size, "seconds": round(time.monotonic() - began, 2)}
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", action="append", help="cases whose name contains this; may be repeated")
    parser.add_argument("--cpu", action="store_true", help="small sizes on the CPU, no kernels in the traces")
    parser.add_argument("--seconds", type=float, default=420.0, help="no further case is begun after so long")
    options = parser.parse_args()
    if not options.cpu and not torch.cuda.is_available():
        print("no GPU that PyTorch can use here; --cpu checks the script without one", file=sys.stderr)
        return 3
    device = torch.device("cpu" if options.cpu else "cuda")
    options.out.mkdir(parents=True, exist_ok=True)
    chosen = [c for c in CASES if not options.only or any(o in c.name for o in options.only)]
    rows: list[dict[str, Any]] = []
    header = {
        "gpu": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }
    began = time.monotonic()
    for case in chosen:
        if time.monotonic() - began > options.seconds:
            print(f"{case.name}: left out, {options.seconds:.0f} s are over", file=sys.stderr)
            continue
        try:
            rows.append(record(case, device, options.out))
            print(json.dumps(rows[-1]), flush=True)
        except Exception as problem:  # one case that fails must not cost the others
            traceback.print_exc()
            rows.append({"name": case.name, "error": f"{type(problem).__name__}: {problem}"[:400]})
        (options.out / "cases.json").write_text(json.dumps(header | {"cases": rows}, indent=1) + "\n")
        gc.collect()
        if device.type == "cuda":
            torch.cuda.empty_cache()
    return 0 if any("error" not in r for r in rows) else 3


if __name__ == "__main__":
    sys.exit(main())
