"""One rank of the collectives' measurement: `python -m foretell.calibrate.collective_worker RANK WORLD FOLDER SECONDS
BACKEND START`. Rank 0 prints a JSON line per point: {"request": ..., "ms": ..., "spread": ..., "repeats": ...}.

A buffer of S bytes is what each rank puts in (all-reduce, all-to-all), the whole that comes out (all-gather) or goes in
(reduce-scatter): as nccl-tests count. A point is timed over several calls in a row on every rank at once; the slowest
rank's time counts.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

import torch
import torch.distributed as dist

from .sequence import Spread
from .shapes import between
from .timing import Sample

OPS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
SMALLEST, LARGEST = 1024, 1 << 30
WINDOWS, WINDOW_MS, MOST_CALLS = 5, 4.0, 50


class Rank:
    def __init__(self, rank: int, world: int, folder: str, backend: str) -> None:
        self.rank, self.world = rank, world
        self.on_gpu = backend == "nccl"
        if self.on_gpu:
            torch.cuda.set_device(rank)
        self.device = torch.device("cuda", rank) if self.on_gpu else torch.device("cpu")
        dist.init_process_group(backend, init_method=f"file://{folder}/meet", rank=rank, world_size=world)
        sizes = sorted({1 << i for i in range(1, world.bit_length()) if 1 << i <= world} | {world})
        self.groups = {ranks: dist.new_group(list(range(ranks))) for ranks in sizes if ranks > 1}
        limit = LARGEST
        if self.on_gpu:
            limit = min(limit, torch.cuda.mem_get_info()[0] // 8)
        self.most = limit if self.on_gpu else 1 << 20
        self.source = torch.randn(self.most // 2, device=self.device, dtype=torch.float32).to(torch.bfloat16)
        self.target = torch.empty_like(self.source)

    def agreed(self, value: float, ranks: int) -> float:
        """The largest of all ranks."""
        told = torch.tensor([value], dtype=torch.float64, device=self.device)
        dist.all_reduce(told, dist.ReduceOp.MAX, group=self.groups[ranks])
        return float(told.item())

    def call(self, op: str, elements: int, ranks: int) -> Callable[[], object]:
        share, group = elements // ranks, self.groups[ranks]
        whole, part = self.source[: share * ranks], self.source[:share]
        out, out_part = self.target[: share * ranks], self.target[:share]
        if op == "all_reduce":
            return lambda: dist.all_reduce(out, group=group)
        if op == "all_gather":
            return lambda: dist.all_gather_into_tensor(out, part, group=group)
        if op == "reduce_scatter":
            return lambda: dist.reduce_scatter_tensor(out_part, whole, group=group)
        return lambda: dist.all_to_all_single(out, whole, group=group)

    def window_ms(self, call: Callable[[], object], calls: int) -> float:
        if not self.on_gpu:
            began = time.perf_counter()
            for _ in range(calls):
                call()
            return (time.perf_counter() - began) * 1e3 / calls
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(calls):
            call()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) / calls

    def sample(self, op: str, count: int, ranks: int) -> Sample:
        self.target.zero_()  # an all-reduce in place doubles and doubles; zeros stay
        call = self.call(op, count, ranks)
        self.window_ms(call, 3)
        first = self.agreed(self.window_ms(call, 2), ranks)
        calls = max(2, min(MOST_CALLS, int(WINDOW_MS / max(first, 1e-3))))
        return Sample.of([self.agreed(self.window_ms(call, calls), ranks) for _ in range(WINDOWS)], 1)


def main(arguments: list[str]) -> int:
    rank, world, folder, seconds, backend, start = arguments
    me = Rank(int(rank), int(world), folder, backend)
    spread = Spread("collectives", 0, 1)
    sizes = list(me.groups)
    begin, index = time.monotonic(), int(start)
    while True:
        over = me.agreed(float(time.monotonic() - begin >= float(seconds)), me.world)
        if over:
            break
        op, ranks = OPS[index % len(OPS)], sizes[-1 - index // len(OPS) % len(sizes)]
        elements = max(between(spread(index)[0], SMALLEST, me.most) // 2 // (8 * ranks), 1) * 8 * ranks
        if elements * 2 <= me.most and me.rank < ranks:
            sample = me.sample(op, elements, ranks)
            if me.rank == 0:
                request = {"task": "collective", "op": op, "bytes": elements * 2, "ranks": ranks}
                entry = {"id": f"collectives#{index}", "request": request, "ms": sample.ms}
                print(json.dumps({**entry, "spread": sample.spread, "repeats": sample.repeats}), flush=True)
        index += 1
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
