"""What recurrent layers hold: recurrent.py OUT. One row for each layer: bytes above what was there at the peak of a pass without
gradients and of one with them, and every allocation of more than 4 KiB in order, as PyTorch's allocator recorded them.
"""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

SIZES = [(1024, 1024, 2, 64, 128, False), (512, 512, 1, 32, 100, False), (256, 512, 3, 16, 200, True), (80, 256, 2, 8, 500, True)]
SIZES += [(512, 512, 1, 32, 200, False), (512, 512, 1, 64, 100, False), (512, 1024, 1, 32, 100, False), (1024, 512, 1, 32, 100, False)]
SIZES += [(128, 128, 1, 256, 50, False), (768, 768, 5, 16, 400, True)]  # input, hidden, layers, batch, steps, both ways


def allocations(call: Callable[[], None]) -> list[int]:
    torch.cuda.synchronize()
    gc.collect()
    torch.cuda.memory._record_memory_history(max_entries=20000)
    call()
    torch.cuda.synchronize()
    seen = torch.cuda.memory._snapshot()["device_traces"]
    torch.cuda.memory._record_memory_history(enabled=None)
    return [e["size"] for trace in seen for e in trace if e["action"] == "alloc" and e["size"] > 4096]


def measured(kind: str, size: tuple[Any, ...], dtype: torch.dtype) -> dict[str, Any]:
    inputs, hidden, layers, batch, steps, both = size
    model = getattr(nn, kind)(inputs, hidden, layers, batch_first=True, bidirectional=both).to("cuda", dtype)
    x = torch.randn(batch, steps, inputs, device="cuda", dtype=dtype, requires_grad=True)
    row: dict[str, Any] = {"kind": kind, "input": inputs, "hidden": hidden, "layers": layers, "batch": batch, "steps": steps}
    row |= {"both_ways": both, "dtype": str(dtype)[6:], "parameters": sum(p.numel() for p in model.parameters())}
    for task in ("forward", "train"):

        def step(train: bool = task == "train") -> None:
            with torch.set_grad_enabled(train):
                y = model(x)[0]
            if train:
                y.backward(torch.ones_like(y))
                model.zero_grad(set_to_none=True)
                x.grad = None

        model.train(task == "train")
        for _ in range(3):
            step()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        step()
        torch.cuda.synchronize()
        row[task] = {"peak_bytes": torch.cuda.max_memory_allocated() - before, "allocations": allocations(step)}
    return row


def main() -> None:
    with open(sys.argv[1], "a", encoding="utf-8") as out:
        for kind in ("LSTM", "GRU", "RNN"):
            for size in SIZES:
                for dtype in (torch.bfloat16, torch.float32):
                    out.write(json.dumps(measured(kind, size, dtype)) + "\n")
                    out.flush()


if __name__ == "__main__":
    main()
