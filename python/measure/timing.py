"""How one kernel is timed.

A case is captured into a CUDA graph as a chain of launches, so that the host, whose cost per operator is ten times
that of a small kernel, is out of the picture. Each launch reads another of up to ten copies of the operands, so that
a launch whose operands exceed a tenth of L2 finds them cold, as it would between the other kernels of a model. The
graph is replayed a few times; one replay divided by its launches is one sample, and the median, the fastest and the
slowest sample are kept.

Ten copies, one output block and the length of a graph are as the first set under data/measurements has them, inferred
by timing its rows again; the README there says how well the two agree.

What this leaves in: the step from one graph node to the next (about 1 us on Hopper) is part of every sample, and so
is a graph's start, divided by its launches, which is why the number of launches is kept beside the sample. Operands
well below a tenth of L2 (4 MB on an H200) are still there when their turn comes again: such cases are warm. Every
launch writes the same output block, since the allocator hands it out again.

What it leaves out: the host's share of an eager operator (see overhead.json) and what power does to runs of seconds
(see sustained.json). A few tens of milliseconds of large matrix products are enough for an H200 to lower its clock by
a tenth, so a case is sampled briefly and the device rests afterwards as long as it worked.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from operands import Operands

Launch = Callable[[], object]  # runs the case once
Make = Callable[[], Launch]  # takes operands and binds them

GRAPH_MS = 1.5  # work captured into one graph
MAX_LAUNCHES = 100  # launches in one graph at most
COLD_L2_MULTIPLE = 3  # no more copies of the operands than exceed this many times L2 together,
MAX_COPIES = 10  # and never more than this
SAMPLING_MS = 15.0  # replays of one case together
MIN_REPLAYS, MAX_REPLAYS = 5, 15
MAX_REST_S = 0.03
LONG_MS, LONG_REPLAYS = 30.0, 3  # graphs longer than this are replayed less


@dataclass(frozen=True)
class Sample:
    """Device time of one launch, and how many launches shared a graph."""

    ms: float
    ms_min: float
    ms_max: float
    launches: int

    @staticmethod
    def of(replays_ms: list[float], launches: int) -> Sample:
        ordered = sorted(replays_ms)
        return Sample(
            ordered[(len(ordered) - 1) // 2] / launches, ordered[0] / launches, ordered[-1] / launches, launches
        )


class GraphTimer:
    """Times cases on the current device, one after another, on a stream of its own."""

    def __init__(self, operands: Operands) -> None:
        properties = torch.cuda.get_device_properties(operands.device)
        self.operands = operands
        self.l2_bytes = properties.L2_cache_size
        self.memory_limit = properties.total_memory * 2 // 3
        self.stream = torch.cuda.Stream(operands.device)
        torch.cuda.set_stream(self.stream)
        self._pool = torch.cuda.graph_pool_handle()
        self._keeper: torch.cuda.CUDAGraph | None = None

    def time(self, make: Make, rotate: bool = True) -> Sample:
        """`rotate=False` times the case on one copy: for state that is updated in place, as an optimizer's is."""
        taken = self.operands.bytes_taken
        launch = make()
        copy_bytes = max(self.operands.bytes_taken - taken, 1)
        estimate_ms = self._estimate(launch)
        launches = min(MAX_LAUNCHES, math.ceil(GRAPH_MS / estimate_ms))
        copies = (
            min(launches, MAX_COPIES, math.ceil(COLD_L2_MULTIPLE * self.l2_bytes / copy_bytes) + 1) if rotate else 1
        )
        bound = [launch] + [make() for _ in range(copies - 1)]
        replays_ms = self._replay(self._capture(bound, launches))
        time.sleep(min(sum(replays_ms) / 1e3, MAX_REST_S))
        return Sample.of(replays_ms, launches)

    def reclaim(self) -> None:
        """Gives back cached memory once enough has piled up; cases of a thousand sizes fragment it."""
        if torch.cuda.memory_reserved() > self.memory_limit:
            self.release()

    def release(self) -> None:
        torch.cuda.synchronize()
        self._keeper = None
        gc.collect()
        torch.cuda.empty_cache()
        self._pool = torch.cuda.graph_pool_handle()

    def _estimate(self, launch: Launch) -> float:
        """One eager call after a first that loads code; for small kernels this is the host's time, an over-estimate."""
        launch()
        begin, end = self._events()
        begin.record()
        launch()
        end.record()
        end.synchronize()
        return max(begin.elapsed_time(end), 1e-3)

    def _capture(self, bound: list[Launch], launches: int) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        if self._keeper is None:  # a graph that stays keeps the pool's memory from going back to the driver
            self._keeper = torch.cuda.CUDAGraph()
            self._keeper.capture_begin(pool=self._pool)
            torch.zeros(1, device=self.operands.device)
            self._keeper.capture_end()
        torch.cuda.synchronize()
        graph.capture_begin(pool=self._pool)
        try:
            for i in range(launches):
                bound[i % len(bound)]()
        finally:
            graph.capture_end()
        return graph

    def _replay(self, graph: torch.cuda.CUDAGraph) -> list[float]:
        def once() -> tuple[torch.cuda.Event, torch.cuda.Event]:
            begin, end = self._events()
            begin.record()
            graph.replay()
            end.record()
            return begin, end

        begin, end = once()
        end.synchronize()
        first_ms = begin.elapsed_time(end)
        replays = max(MIN_REPLAYS, min(MAX_REPLAYS, int(SAMPLING_MS / max(first_ms, 1e-3))))
        spans = [once() for _ in range(LONG_REPLAYS if first_ms > LONG_MS else replays)]
        spans[-1][1].synchronize()
        return [begin.elapsed_time(end) for begin, end in spans]

    @staticmethod
    def _events() -> tuple[torch.cuda.Event, torch.cuda.Event]:
        return torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
