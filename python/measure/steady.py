"""What a GPU holds of its products' rate for seconds: steady.py OUT

A product of 8192 x 8192 x 8192 with random operands is repeated for six seconds per number format, after ten of rest. A row per
format: [seconds, TFLOP/s] in steps of a quarter of a second, [seconds, SM MHz, W, degrees] as nvidia-smi says it.
"""
from __future__ import annotations

import json
import pathlib
import sys
import time
import typing

import torch

from watch import Watch

SIZE = 8192
SECONDS, REST, WINDOW = 6.0, 10.0, 0.25


def product(kind: str) -> typing.Callable[[], torch.Tensor]:
    a = torch.randn(SIZE, SIZE, device="cuda")
    b = torch.randn(SIZE, SIZE, device="cuda")
    if kind != "fp8":
        low = {"bf16": torch.bfloat16, "fp16": torch.float16}[kind]
        x, y = a.to(low), b.to(low)
        return lambda: x @ y.t()
    scale = torch.ones((), device="cuda")
    x, y = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
    return lambda: torch._scaled_mm(x, y.t(), scale_a=scale, scale_b=scale, out_dtype=torch.bfloat16, use_fast_accum=True)


def measure(watch: Watch, kind: str) -> dict:
    run = product(kind)
    run()
    torch.cuda.synchronize()
    time.sleep(REST)
    rates, began = [], time.time()
    each = 16
    while time.time() - began < SECONDS:
        start, count = time.time(), 0
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        first.record()
        while time.time() - start < WINDOW:
            for _ in range(each):
                run()
            count += each
            last.record()
            last.synchronize()
        rates.append([round(time.time() - began, 3), round(2 * SIZE**3 * count / first.elapsed_time(last) * 1e-9, 1)])
    return {"format": kind, "size": SIZE, "tflops": rates, "clock_power": watch.since(began)}


def main() -> None:
    watch = Watch()
    with pathlib.Path(sys.argv[1]).open("a") as out:
        for kind in ("bf16", "fp16", "fp8"):
            out.write(json.dumps(measure(watch, kind)) + "\n")
            out.flush()


if __name__ == "__main__":
    main()
