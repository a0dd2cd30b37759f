"""Many requests on whatever engine there is: threads, processes, Dask, Ray, MPI.

:func:`map` cuts requests into chunks (chunks.py), gives them to an executor (work.py is what its workers run) and hands
answers back in order, or writes them to disk as they come (parts.py). It keeps no more than a few chunks under way, so
that a hundred million requests need no more memory than a thousand. A worker that dies is the engine's business: Dask,
Ray and MPI give its chunk to another; an executor that gives up leaves finished chunks on disk, and the next run goes on
behind them.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple, overload

from .. import _library
from ..api import _documented, _settings, answer_of
from ..errors import Error
from .chunks import Chunk, Cutter
from .parts import Parts
from .progress import Progress
from .ray import ray_executor
from .work import Done, answer_chunk

__all__ = ["Mapped", "map", "ray_executor"]


class Mapped(NamedTuple):
    """What a run that wrote to disk did.

    ``to_dataframe()`` reads it back; so do ``pandas.read_parquet``, polars and DuckDB, given the folder.
    """

    folder: Path
    answered: int  # by this run
    resumed: int  # by earlier ones
    failed: int  # of those answered by this run: refused, with the reason in `error`

    def to_dataframe(self) -> Any:
        """All answers in the order of the requests, as pandas."""
        import pandas

        parts: Any = sorted(self.folder.glob("part-*.parquet"))
        return pandas.read_parquet(parts)


@overload
def map(
    requests: Iterable[Mapping[str, Any]],
    *,
    executor: Executor | None = None,
    output: None = None,
    columns: None = None,
    chunk: int | None = None,
    ahead: int = 64,
    progress: bool | None = None,
    predictor: str | os.PathLike[str] | None = None,
    calibration: str | os.PathLike[str] | None = None,
) -> Iterator[Any]: ...


@overload
def map(
    requests: Iterable[Mapping[str, Any]],
    *,
    executor: Executor | None = None,
    output: str | os.PathLike[str],
    columns: Iterable[str] | None = None,
    chunk: int | None = None,
    ahead: int = 64,
    progress: bool | None = None,
    predictor: str | os.PathLike[str] | None = None,
    calibration: str | os.PathLike[str] | None = None,
) -> Mapped: ...


def map(
    requests: Iterable[Mapping[str, Any]],
    *,
    executor: Executor | None = None,
    output: str | os.PathLike[str] | None = None,
    columns: Iterable[str] | None = None,
    chunk: int | None = None,
    ahead: int = 64,
    progress: bool | None = None,
    predictor: str | os.PathLike[str] | None = None,
    calibration: str | os.PathLike[str] | None = None,
) -> Iterator[Any] | Mapped:
    """Answers requests on an executor, in order.

    ``executor`` is any :class:`concurrent.futures.Executor`: a process pool, Dask's ``client.get_executor()``,
    ``mpi4py.futures.MPIPoolExecutor``, :func:`foretell.ray_executor`; threads of this process by default. Its workers
    need the package installed. ``requests`` may be a generator of any length; at most ``ahead`` chunks are under way.
    ``chunk`` fixes how many requests make one; otherwise they are sized to take half a second.

    Without ``output``, answers come as they are asked for, an :class:`Error` in the place of one that was refused. With
    ``output``, they go to Parquet files in that folder, and a run with the same requests goes on behind what is
    finished there; ``columns`` names the values that get a column (``"step_ms"``, ``"memory.peak_bytes"``).

    >>> import foretell
    >>> ask = {"task": "kernel", "op": "softmax", "rows": 4096, "gpu": "h100_sxm"}
    >>> [answer.bound for answer in foretell.map({**ask, "cols": cols} for cols in (1024, 8192))]
    ['memory', 'memory']
    """
    if ahead < 1 or (chunk is not None and chunk < 1):
        raise Error("must be 1 or more", code="out_of_range", where="ahead" if ahead < 1 else "chunk")
    if columns is not None and output is None:
        raise Error("columns are those of the files: name an output folder", code="usage", where="columns")
    settings = _settings(predictor, calibration)
    _library.context(settings)  # a missing library or predictor is said here, not by a worker
    parts = Parts(output, None if columns is None else list(columns), settings) if output is not None else None
    cutter = Cutter(_asked(requests), parts.finished if parts else {}, chunk)
    answered = _answered(cutter, executor, settings, ahead, parts)
    return _written(answered, parts, Progress(progress)) if parts else _answers(answered, settings, Progress(progress))


def _asked(requests: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for number, each in enumerate(requests):
        request = _documented(each)
        if isinstance(request, Error):
            raise Error(f"request {number}: {request}", code=request.code, where=request.where)
        yield request


def _answered(
    cutter: Cutter, executor: Executor | None, settings: _library.Settings, ahead: int, parts: Parts | None
) -> Iterator[tuple[Chunk, Done | None]]:
    """Chunks in order, each with what a worker made of it, or None where it was finished before."""
    with ExitStack() as own:
        engine = executor or own.enter_context(ThreadPoolExecutor(os.cpu_count() or 1))
        waiting: deque[tuple[Chunk, Future[Done] | None]] = deque()
        ended = False
        try:
            while waiting or not ended:
                while not ended and len(waiting) < ahead:
                    chunk = cutter.next()
                    ended = chunk is None
                    if chunk:
                        waiting.append(
                            (chunk, None if chunk.finished else engine.submit(answer_chunk, chunk.lines, settings))
                        )
                    if len(waiting) > 1 and waiting[0][1] is not None and waiting[0][1].done():
                        break  # what came back says how large the next should be
                if waiting:
                    chunk, future = waiting.popleft()
                    done = future.result() if future else None
                    if done:
                        cutter.learn(done.seconds)
                    yield chunk, done
        except BrokenExecutor as error:
            kept = f"; what is finished lies in {parts.folder}: run again to go on" if parts else ""
            raise Error(f"a worker died and its executor gave up ({error}){kept}", code="worker") from error
        finally:
            for _, future in waiting:
                if future:
                    future.cancel()


def _answers(
    answered: Iterator[tuple[Chunk, Done | None]], settings: _library.Settings, progress: Progress
) -> Iterator[Any]:
    with progress:
        for chunk, done in answered:
            assert done  # nothing is finished before where nothing was written
            for request, told in zip(chunk.lines.splitlines(), done.answers.splitlines()):
                yield answer_of(json.loads(request), json.loads(told), settings)
            progress.advance(chunk.where.count)


def _written(answered: Iterator[tuple[Chunk, Done | None]], parts: Parts, progress: Progress) -> Mapped:
    fresh = resumed = failed = 0
    with progress:
        for chunk, done in answered:
            if done:
                parts.write(chunk, done.answers)
                fresh += chunk.where.count
                failed += sum(line.find(b'"ok":false') >= 0 for line in done.answers.splitlines())
            else:
                resumed += chunk.where.count
            progress.advance(chunk.where.count)
    return Mapped(parts.folder, fresh, resumed, failed)
