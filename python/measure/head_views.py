"""Products of attention that is written out: heads as views of a row's columns, or copied apart: head_views.py OUT

`qk` and `pv`: ms of torch.matmul on the views that transformers hands it; `qk_apart` and `pv_apart`: on copies that stand head by
head. From CUDA graphs of twenty calls, the median of five.
"""
from __future__ import annotations

import itertools
import json
import pathlib
import statistics
import sys
import typing

import torch

CALLS, TIMES = 20, 5


def ms(run: typing.Callable[[], torch.Tensor]) -> float:
    for _ in range(3):
        run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CALLS):
            run()
    took = []
    for _ in range(TIMES):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        took.append(start.elapsed_time(end) / CALLS)
    return statistics.median(took)


def heads(batch: int, count: int, width: int, tokens: int, dtype: torch.dtype) -> torch.Tensor:
    rows = torch.randn(batch, tokens, count * width, device="cuda", dtype=dtype)
    return rows.view(batch, tokens, count, width).transpose(1, 2)


def main() -> None:
    with pathlib.Path(sys.argv[1]).open("w") as out:
        for dtype, b, h, d, s in itertools.product(
            (torch.bfloat16, torch.float32), (1, 2), (8, 16, 32), (64, 128), (128, 256, 512, 1024, 2048)
        ):
            if b == 2 and s != 512:
                continue
            q, k, v = (heads(b, h, d, s, dtype) for _ in range(3))
            apart = [each.contiguous() for each in (q, k, v)]
            p = torch.randn(b, h, s, s, device="cuda", dtype=dtype)
            row = {"dtype": str(dtype)[6:], "b": b, "h": h, "d": d, "s": s}
            row |= {"qk": ms(lambda: torch.matmul(q, k.transpose(2, 3))), "pv": ms(lambda: torch.matmul(p, v))}
            row |= {"qk_apart": ms(lambda: torch.matmul(apart[0], apart[1].transpose(2, 3))), "pv_apart": ms(lambda: torch.matmul(p, apart[2]))}
            out.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
