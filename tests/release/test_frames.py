"""Answers as tables of pandas, polars and Arrow. They run in `make release-check`, whose environment has all three."""

from __future__ import annotations

import foretell
import pandas
import polars
import pyarrow
import pytest


def test_the_same_figures_everywhere() -> None:
    step = foretell.train("gpt2", gpu="h100_sxm", batch=4, seq=512, detail="kernels")
    frames = step.to_pandas(), step.to_polars().to_pandas(), step.to_arrow().to_pandas()
    for frame in frames:
        assert list(frame["total_ms"]) == [each.total_ms for each in step.kernels]
        assert list(frame["op"]) == [each.op for each in step.kernels]
    assert step.to_polars("summary")["memory.peak_bytes"].item() == step.memory.peak_bytes
    assert step.to_arrow("summary")["memory.fits"].type == pyarrow.bool_()
    with pytest.raises(foretell.Error, match="detail"):
        step.to_polars("layers")


def test_arrow_s_own_interface() -> None:
    """Objects themselves go where Arrow's PyCapsules are taken."""
    grid = foretell.infer("llama-3-8b", gpu="h100_sxm", batch=[1, 4], seq=[512, 2048])
    assert polars.DataFrame(grid).equals(grid.to_polars())
    assert pyarrow.table(grid).equals(grid.to_arrow())
    assert pandas.DataFrame.from_arrow(grid).shape == grid.to_pandas().shape


def test_refused_requests_and_kinds_side_by_side() -> None:
    asks = [
        {"task": "train", "model": "gpt2", "gpu": "h100_sxm", "id": 1},
        {"task": "kernel", "op": "gemm", "m": 64, "n": 64, "k": 64, "gpu": "h100_sxm", "id": "two"},
        {"task": "train", "model": "gpt2", "gpu": "h1000"},
    ]
    table = foretell.batch(asks).to_polars()
    assert table["id"].to_list() == ["1", "two", None]
    assert table["error"].null_count() == 2 and "h1000" in table["error"][2]
    assert table["step_ms"].dtype == polars.Float64 and table["ms"].null_count() == 2


def test_an_empty_collection() -> None:
    assert foretell.batch([]).to_polars().shape == (0, 0) and foretell.batch([]).to_arrow().num_rows == 0
