"""foretell.map: answers in order, on threads and on processes, and refusals where they belong."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import foretell
import pytest
from foretell.mapping.chunks import CHUNK_SECONDS, Cutter, Range

ASK = {"task": "kernel", "op": "gemm", "n": 64, "gpu": "h200_sxm"}


def asked(count: int) -> Iterator[dict[str, Any]]:
    """Every seventh is refused: its k is 0."""
    return ({**ASK, "m": 1 + i, "k": 64 * (i % 7)} for i in range(count))


def told(answers: Any) -> list[Any]:
    return [str(each) if isinstance(each, foretell.Error) else each.raw for each in answers]


def test_answers_are_those_of_batch_in_order() -> None:
    assert told(foretell.map(asked(300))) == told(foretell.batch(asked(300)))


def test_processes_answer_as_threads_do() -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        assert told(foretell.map(asked(200), executor=pool, chunk=17)) == told(foretell.map(asked(200)))


def test_a_long_stream_is_taken_as_it_is_needed() -> None:
    taken = 0

    def endless() -> Iterator[dict[str, Any]]:
        nonlocal taken
        while True:
            taken += 1
            yield {**ASK, "m": 8, "k": 64}

    answers = foretell.map(endless(), chunk=10, ahead=4)
    for _ in range(5):
        next(answers)
    assert taken <= 50


def test_a_bad_request_names_its_place() -> None:
    with pytest.raises(foretell.Error, match="request 1: a request is a dictionary"):
        list(foretell.map([{**ASK, "m": 8, "k": 8}, "not one"]))  # type: ignore[list-item]
    with pytest.raises(foretell.Error, match='request 1: m: "m" is nan'):
        list(foretell.map([{**ASK, "m": 8, "k": 8}, {**ASK, "m": float("nan")}]))


@pytest.mark.parametrize("wrong", [{"ahead": 0}, {"chunk": 0}, {"columns": ["ms"]}])
def test_bad_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(foretell.Error):
        foretell.map(asked(1), **wrong)


class Broken(Executor):
    def submit(self, *_: Any, **__: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_exception(BrokenExecutor("a process in the pool ended abruptly"))
        return future


def test_an_executor_that_gives_up_is_said() -> None:
    with pytest.raises(foretell.Error, match="a worker died") as caught:
        list(foretell.map(asked(3), executor=Broken()))
    assert caught.value.code == "worker"


def sizes(cutter: Cutter) -> list[int]:
    out = []
    while chunk := cutter.next():
        out.append(chunk.where.count)
    return out


def test_chunks_follow_cost() -> None:
    cutter = Cutter(asked(1000), {}, None)
    first = cutter.next()
    assert first and first.where.count < 50  # nothing is known yet
    cutter.learn({"kernel": (100, 100 * CHUNK_SECONDS / 40)})
    second = cutter.next()
    assert second and second.where.count == 40


def test_what_is_finished_is_cut_as_it_was() -> None:
    whole = Cutter(asked(100), {}, 10)
    ranges: dict[int, Range] = {}
    while chunk := whole.next():
        ranges[chunk.where.first] = chunk.where
    kept = {20: ranges[20], 70: ranges[70]}
    again = Cutter(asked(100), kept, 25)
    assert sizes(again) == [20, 10, 25, 15, 10, 20]
    changed = Cutter(({**each, "m": 5} for each in asked(100)), kept, 25)
    assert not any(chunk.finished for chunk in iter(changed.next, None))
