"""Many requests on real engines: Parquet with resume, a Dask cluster that loses a worker, MPI, Ray.

They run in `make release-check`, whose environment has the engines (python/requirements-release.txt).
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import foretell
import pandas
import pytest

ASK = {"task": "kernel", "op": "gemm", "n": 64, "gpu": "h200_sxm"}


def asked(count: int) -> Iterator[dict[str, Any]]:
    return ({**ASK, "m": 1 + i, "k": 64 * (i % 7)} for i in range(count))


def expected(count: int) -> list[float | None]:
    return [None if isinstance(each, foretell.Error) else each.ms for each in foretell.batch(asked(count))]


def same(frame: pandas.DataFrame, count: int) -> None:
    """Every request once, in order, with its answer."""
    assert list(frame["index"]) == list(range(count))
    got = [None if pandas.isna(each) else each for each in frame["ms"]]
    assert got == expected(count)
    assert list(frame["ok"]) == [each is not None for each in got]


class Stops(Executor):
    """Threads, until so many chunks were taken; then as if the machine went down."""

    def __init__(self, chunks: int) -> None:
        self.left, self.pool = chunks, ThreadPoolExecutor(1)

    def submit(self, *call: Any, **named: Any) -> Future[Any]:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return self.pool.submit(*call, **named)


def test_parquet_goes_on_where_it_stopped(tmp_path: Path) -> None:
    out = tmp_path / "answers"
    with pytest.raises(KeyboardInterrupt):
        foretell.map(asked(500), executor=Stops(9), output=out, chunk=20, ahead=2)
    before = sorted(out.glob("part-*.parquet"))
    assert 4 <= len(before) <= 9
    stamps = [each.stat().st_mtime_ns for each in before]
    (out / "part-000000000460.half-1").write_bytes(b"torn")
    with open(out / "manifest.jsonl", "ab") as manifest:
        manifest.write(b'{"first": 400, "cou')
    done = foretell.map(asked(500), output=out, chunk=33)
    assert done.resumed == 20 * len(before) and done.answered + done.resumed == 500
    assert [each.stat().st_mtime_ns for each in before] == stamps
    same(done.to_dataframe(), 500)
    again = foretell.map(asked(500), output=out)
    assert (again.answered, again.resumed) == (0, 500)


def test_columns_are_the_same_in_every_part(tmp_path: Path) -> None:
    mixed = [*asked(40), *({"task": "memory", "model": "gpt2", "gpu": "h100_sxm", "batch": b} for b in range(1, 9))]
    done = foretell.map(mixed, output=tmp_path / "a", chunk=8, columns=["ms", "memory.peak_bytes"])
    frame = done.to_dataframe()
    assert list(frame.columns) == ["index", "ok", "error", "ms", "memory.peak_bytes", "request", "answer"]
    assert frame["error"].notna().sum() == done.failed == 6
    assert frame["answer"].str.startswith("{").all()


def test_another_job_is_not_mixed_in(tmp_path: Path) -> None:
    foretell.map(asked(10), output=tmp_path)
    with pytest.raises(foretell.Error, match="begun with another"):
        foretell.map(asked(10), output=tmp_path, columns=["ms"])
    with pytest.raises(foretell.Error, match="another version, predictor"):
        foretell.map(asked(10), output=tmp_path, predictor="roofline")


def test_changed_requests_are_answered_anew(tmp_path: Path) -> None:
    foretell.map(asked(60), output=tmp_path, chunk=20)
    changed = [{**each, "m": 4096} if i == 25 else each for i, each in enumerate(asked(60))]
    done = foretell.map(changed, output=tmp_path, chunk=20)
    assert (done.answered, done.resumed) == (20, 40)
    frame = done.to_dataframe()
    assert len(frame) == 60 and frame["ms"][25] == foretell.kernel("gemm", gpu="h200_sxm", m=4096, n=64, k=256).ms


def test_dask_loses_a_worker_and_nothing_else(tmp_path: Path) -> None:
    """Two workers in processes of their own; one is killed while it works."""
    from distributed import Client, LocalCluster

    steps = [
        {"task": "train", "model": "llama-3-8b", "gpu": "h100_sxm", "batch": 1 + i % 4, "seq": 256 * (1 + i), "advice": True}
        for i in range(240)
    ]
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        started = set(client.run(os.getpid).values())
        victim = min(started)

        class Kills(Executor):
            """Dask's executor; when it has half the chunks, a worker dies."""

            def __init__(self) -> None:
                self.inner, self.count = client.get_executor(), 0

            def submit(self, *call: Any, **named: Any) -> Future[Any]:
                self.count += 1
                future: Future[Any] = self.inner.submit(*call, **named)
                if self.count == 20:
                    os.kill(victim, signal.SIGKILL)
                return future

        done = foretell.map(steps, executor=Kills(), output=tmp_path, chunk=6, ahead=40)
        assert done.answered == len(steps) and done.failed == 0
        for _ in range(100):  # the nanny starts another
            if victim not in client.run(os.getpid).values():
                break
            time.sleep(0.1)
        assert victim not in client.run(os.getpid).values()
    frame = done.to_dataframe()
    assert list(frame["index"]) == list(range(len(steps)))
    assert list(frame["step_ms"]) == [each.step_ms for each in foretell.batch(steps)]


def test_mpi(tmp_path: Path) -> None:
    """Three ranks: one hands out, two answer."""
    script = tmp_path / "run.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import foretell
            from mpi4py.futures import MPIPoolExecutor
            if __name__ == "__main__":
                asked = [{{**{ASK!r}, "m": 1 + i, "k": 64 * (i % 7)}} for i in range(400)]
                with MPIPoolExecutor() as pool:
                    print(pool.num_workers, foretell.map(asked, executor=pool, output={str(tmp_path / "out")!r}, chunk=25))
            """
        )
    )
    mpirun = shutil.which("mpirun")
    assert mpirun, "mpirun is not there: scripts/setup release installs it"
    line = [mpirun, "--allow-run-as-root", "--oversubscribe", "-n", "3", sys.executable, "-m", "mpi4py.futures", str(script)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("2 "), done.stdout
    same(pandas.read_parquet(sorted((tmp_path / "out").glob("part-*.parquet"))), 400)


def test_ray(tmp_path: Path) -> None:
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        with foretell.ray_executor() as pool:
            same(foretell.map(asked(200), executor=pool, output=tmp_path, chunk=25).to_dataframe(), 200)
    finally:
        ray.shutdown()


def test_shards_of_the_program_are_one_run(tmp_path: Path) -> None:
    """As an array of jobs would: four processes at once, outputs one after another."""
    import json

    from foretell import _find

    program = str(_find.program())
    lines = tmp_path / "requests.jsonl"
    lines.write_text("".join(json.dumps(each) + "\n" for each in asked(1000)))
    with open(lines, "rb") as whole:
        one = subprocess.run([program, "batch"], stdin=whole, capture_output=True, check=True).stdout
    running = []
    for shard in range(1, 5):
        with open(lines, "rb") as stdin:
            line = [program, "batch", "--shard", f"{shard}/4"]
            running.append(subprocess.Popen(line, stdin=stdin, stdout=subprocess.PIPE))
    assert b"".join(each.communicate()[0] for each in running) == one
