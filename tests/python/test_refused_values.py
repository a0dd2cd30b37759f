"""Values that no request can hold are refused by their key and their kind, and a key that is given twice is."""

from __future__ import annotations

import datetime
import decimal
import math
import types
from pathlib import Path
from typing import Any

import numpy
import pytest

import foretell

GPU = "h100_sxm"
circle: dict[str, Any] = {}
circle["itself"] = circle
deep: Any = 1
for _ in range(5000):
    deep = {"a": deep}


def refused(**request: Any) -> foretell.Error:
    with pytest.raises(foretell.Error) as caught:
        foretell.train("gpt2", gpu=GPU, **request)
    return caught.value


@pytest.mark.parametrize(
    ("request_", "code", "where", "said"),
    [
        ({"seq": {1, 2}}, "wrong_type", "seq", '"seq" is a set, which JSON does not have; use a list'),
        ({"batch": range(3)}, "wrong_type", "batch", '"batch" is a range, which JSON does not have; use a list'),
        ({"lora": {"targets": {"q_proj"}}}, "wrong_type", "lora.targets", '"targets" is a set'),
        ({"search": {"tp": [1, {2}]}}, "wrong_type", "search.tp[1]", "is a set"),
        ({"batch": numpy.array([1, 2])}, "wrong_type", "batch", "which JSON does not have; use its tolist()"),
        ({"batch": decimal.Decimal(4)}, "wrong_type", "batch", "is a decimal.Decimal, which JSON does not have"),
        ({"deadline": datetime.timedelta(1)}, "wrong_type", "deadline", "is a datetime.timedelta"),
        ({"loader": {"workers": object()}}, "wrong_type", "loader.workers", '"workers" is an object'),
        ({"id": b"x"}, "wrong_type", "id", "is a bytes, which JSON does not have; use text"),
        ({"lora": {(1, 2): 3}}, "wrong_type", "lora", "keys must be strings, not a tuple"),
        ({"quantile": math.nan}, "out_of_range", "quantile", '"quantile" is nan, which JSON cannot represent'),
        ({"quantile": numpy.float32("inf")}, "out_of_range", "quantile", '"quantile" is inf'),
        ({"batch": 2**70}, "out_of_range", "batch", '"batch" is a whole number beyond 2^63'),
        ({"id": "a\0b"}, "syntax", "id", "null character"),
        ({"id": "a\ud800b"}, "syntax", "id", "U+D800 at character 2"),
        ({"lora": circle}, "syntax", "lora.itself", "contains itself"),
        ({"lora": deep}, "syntax", "lora.a", "nested too deeply"),
        ({"parallel": 0}, "wrong_type", "parallel", "parallel must be a dictionary, not int"),
        ({"tp": 2, "parallel": {"tp": 4}}, "usage", "tp", '"tp" is given twice: tp=2 and parallel={"tp": 4}'),
        ({"nodes": 2, "cluster": {"nodes": 2}}, "usage", "nodes", '"nodes" is given twice'),
    ],
)
def test_a_value_is_refused_by_its_key(request_: dict[str, Any], code: str, where: str, said: str) -> None:
    error = refused(**request_)
    assert (error.code, error.where) == (code, where)
    assert said in error.message


def test_what_counts_as_a_number_or_a_text_does_so_at_any_depth(tmp_path: Path) -> None:
    plain = foretell.train("gpt2", gpu=GPU, parallel={"dp": 2}, batch=4)
    assert foretell.train("gpt2", gpu=GPU, parallel={"dp": numpy.int64(2)}, batch=numpy.array(4)) == plain
    assert foretell.train("gpt2", gpu=GPU, parallel=types.MappingProxyType({"dp": 2}), batch=4) == plain
    assert foretell.train("gpt2", gpu=GPU, dp=2, parallel=None, batch=4) == plain
    assert refused(stack=tmp_path / "none.json").code == "file"


def test_every_way_of_asking_says_it() -> None:
    odd = {"task": "train", "model": "gpt2", "gpu": GPU, "seq": {1}}
    kept = foretell.batch([odd, {**odd, "seq": 8, "tp": 2, "parallel": {"tp": 2}}])
    assert [(each.code, each.where) for each in kept] == [("wrong_type", "seq"), ("usage", "tp")]
    for ask in (
        lambda: list(foretell.map([odd])),
        lambda: foretell.infer("gpt2", gpu=GPU, seq={1}),  # type: ignore[arg-type]
        lambda: foretell.kernel("gemm", gpu=GPU, m=1, n=1, k={1}),
        lambda: foretell.sweep({"seq": {1}}, "gpt2", gpu=GPU),  # type: ignore[dict-item]
        lambda: foretell.sweep([1], "gpt2", gpu=GPU),  # type: ignore[arg-type]
        lambda: foretell.compare({1: 2}, {3: 4}),  # type: ignore[dict-item]
        lambda: foretell.train("gpt2", gpu=GPU, predictor=5),  # type: ignore[arg-type]
        lambda: foretell.batch(odd),  # type: ignore[arg-type]
        lambda: foretell.batch(5),  # type: ignore[arg-type]
    ):
        with pytest.raises(foretell.Error) as caught:
            ask()
        assert caught.value.code == "wrong_type"


def test_what_a_function_asks_by_itself_is_not_given_twice() -> None:
    for more in ({"task": "train"}, {"pass": "fwd", "pass_": "bwd"}):
        with pytest.raises(foretell.Error) as caught:
            foretell.kernel("softmax", gpu=GPU, rows=8, cols=8, **more)
        assert caught.value.code == "usage"
    odd: list[Any] = [-1, 10**6, "4", 1.5]
    for threads in odd:
        with pytest.raises(foretell.Error) as caught:
            foretell.batch([{"model": "gpt2", "gpu": GPU}], threads=threads)
        assert caught.value.where == "threads"
    for name in ("a\0b", "\ud800"):
        with pytest.raises(foretell.Error) as caught:
            foretell.train("gpt2", gpu=GPU, predictor=name)
        assert (caught.value.code, caught.value.where) == ("file", "predictor")


def test_a_swept_key_of_a_layout_stands_in_the_requests_of_its_points() -> None:
    steps = foretell.sweep({"tp": [1, 2]}, "gpt2", gpu=GPU, parallel={"tp": 1, "dp": 2})
    assert [each.request["parallel"] for each in steps] == [{"dp": 2, "tp": 1}, {"dp": 2, "tp": 2}]
