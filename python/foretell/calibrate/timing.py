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

Two paces: THOROUGH is that of the tables under data/measurements, BRISK that of `foretell calibrate`, which has
minutes where the tables had hours: fewer replays of the same graphs, kernels of milliseconds timed without a graph
(the host is far ahead of them, a graph changes nothing), and preparing the next case counted as rest.
"""

from __future__ import annotations

import contextlib
import gc
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from .operands import Operands

Launch = Callable[[], object]  # runs the case once
Make = Callable[[], Launch]  # takes operands and binds them

COLD_L2_MULTIPLE = 3  # no more copies of the operands than exceed this many times L2 together,
MAX_COPIES = 10  # and never more than this


@dataclass(frozen=True)
class Pace:
    """How long a case is sampled."""

    graph_ms: float = 1.5  # work captured into one graph
    max_launches: int = 100  # launches in one graph at most
    sampling_ms: float = 15.0  # replays of one case together
    min_replays: int = 5
    max_replays: int = 15
    long_ms: float = 30.0  # graphs longer than this are replayed less
    long_replays: int = 3
    eager_ms: float = math.inf  # cases longer than this are timed call by call, without a graph
    max_rest_s: float = 0.03
    rest_at_once: bool = True  # False: the time until the next case starts counts as rest


THOROUGH = Pace()
BRISK = Pace(
    sampling_ms=6.0, min_replays=4, max_replays=10, long_ms=8.0, long_replays=3, eager_ms=3.0, rest_at_once=False
)


@dataclass(frozen=True)
class Sample:
    """Device time of one launch, and how many launches shared a graph. `spread` is the range of the middle half of
    the samples over their median."""

    ms: float
    ms_min: float
    ms_max: float
    launches: int
    spread: float = 0.0
    repeats: int = 0

    @staticmethod
    def of(replays_ms: list[float], launches: int) -> Sample:
        ordered = sorted(replays_ms)
        last = len(ordered) - 1
        middle = ordered[last // 2]
        spread = (ordered[(3 * last + 2) // 4] - ordered[(last + 2) // 4]) / middle if middle > 0 else 0.0
        return Sample(
            middle / launches, ordered[0] / launches, ordered[-1] / launches, launches, max(spread, 0.0), len(ordered)
        )


class GraphTimer:
    """Times cases on the current device, one after another, on a stream of its own."""

    def __init__(self, operands: Operands, pace: Pace = THOROUGH, cache_bytes: int = 0) -> None:
        """`cache_bytes`: what operands must exceed to be cold; the L2 the driver tells of where it is 0."""
        properties = torch.cuda.get_device_properties(operands.device)
        self.operands = operands
        self.pace = pace
        self.l2_bytes = cache_bytes or properties.L2_cache_size
        self.memory_limit = properties.total_memory * 2 // 3
        self.stream = torch.cuda.Stream(operands.device)
        torch.cuda.set_stream(self.stream)
        self._pool = torch.cuda.graph_pool_handle()
        self._keeper: torch.cuda.CUDAGraph | None = None
        self._rested_at = 0.0

    def time(self, make: Make, rotate: bool = True, rest: float = 1.0) -> Sample:
        """`rotate=False` times the case on one copy: for state that is updated in place, as an optimizer's is.
        `rest`: how long the device rests afterwards, over how long it worked."""
        taken = self.operands.bytes_taken
        launch = make()
        copy_bytes = max(self.operands.bytes_taken - taken, 1)
        time.sleep(max(self._rested_at - time.monotonic(), 0.0))
        estimate_ms = self._estimate(launch)
        eager = estimate_ms > self.pace.eager_ms
        launches = min(self.pace.max_launches, math.ceil(self.pace.graph_ms / estimate_ms))
        if eager:
            launches = self.pace.long_replays
        copies = (
            min(launches, MAX_COPIES, math.ceil(COLD_L2_MULTIPLE * self.l2_bytes / copy_bytes) + 1) if rotate else 1
        )
        bound = [launch] + [make() for _ in range(copies - 1)]
        if eager:
            calls = [self._between_events(bound[i % copies]) for i in range(launches)]
            replays_ms, launches = self._elapsed(calls), 1
        else:
            replays_ms = self._replay(self._capture(bound, launches))
        rest_s = min(rest * sum(replays_ms) / 1e3, self.pace.max_rest_s)
        if self.pace.rest_at_once:
            time.sleep(rest_s)
        else:
            self._rested_at = time.monotonic() + rest_s
        return Sample.of(replays_ms, launches)

    def eager_call(self, launch: Launch, repeats: int = 30) -> Sample:
        """One eager call between two events, nothing else in the queue: device time and the gap of its launch."""
        calls = []
        for _ in range(repeats + 3):
            torch.cuda.synchronize()
            calls.append(self._between_events(launch))
        return Sample.of(self._elapsed(calls[3:]), 1)

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
        return max(self._elapsed([self._between_events(launch)])[0], 1e-3)

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
        except BaseException:  # a capture left open would take every later allocation into its pool
            with contextlib.suppress(RuntimeError):
                graph.capture_end()
            self._keeper, self._pool = None, torch.cuda.graph_pool_handle()
            raise
        graph.capture_end()
        return graph

    def _replay(self, graph: torch.cuda.CUDAGraph) -> list[float]:
        first_ms = self._elapsed([self._between_events(graph.replay)])[0]
        replays = max(
            self.pace.min_replays, min(self.pace.max_replays, int(self.pace.sampling_ms / max(first_ms, 1e-3)))
        )
        if first_ms > self.pace.long_ms:
            replays = self.pace.long_replays
        return self._elapsed([self._between_events(graph.replay) for _ in range(replays)])

    def _between_events(self, work: Launch) -> tuple[torch.cuda.Event, torch.cuda.Event]:
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        work()
        end.record()
        return begin, end

    @staticmethod
    def _elapsed(spans: list[tuple[torch.cuda.Event, torch.cuda.Event]]) -> list[float]:
        spans[-1][1].synchronize()
        return [begin.elapsed_time(end) for begin, end in spans]
