"""Collectives between the GPUs of this machine, each GPU a process of its own (collective_worker.py)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

START_S = 90.0  # importing PyTorch and building communicators on a slow file system


def measure(world: int, seconds: float, start: int, backend: str = "nccl") -> Iterator[dict[str, Any]]:
    """Points as they come: id, request, ms, spread, repeats. `start` is the first index: a run that goes on names the
    one after the last. A rank that fails ends all of them; what was measured before is kept."""
    root = str(Path(__file__).resolve().parents[2])
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    with tempfile.TemporaryDirectory(prefix="foretell-") as folder:
        workers = [
            subprocess.Popen(
                [
                    sys.executable, "-m", "foretell.calibrate.collective_worker", str(rank), str(world), folder,
                    str(seconds), backend, str(start),
                ],
                stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True,
                env=environment, start_new_session=True,
            )
            for rank in range(world)
        ]  # fmt: skip
        # One that hangs in a communicator would hold the run for ever.
        alarm = threading.Timer(START_S + 2 * seconds, _end, [workers, 0.0])
        alarm.daemon = True
        alarm.start()
        patience_s = 0.0  # for a reader who leaves early
        try:
            stdout = workers[0].stdout
            for line in stdout or ():
                try:
                    yield json.loads(line)
                except ValueError:
                    continue  # a library that prints
            patience_s = 3.0
        finally:
            alarm.cancel()
            _end(workers, patience_s)


def _end(workers: list[subprocess.Popen[str]], patience_s: float) -> None:
    for worker in workers:
        try:
            worker.wait(timeout=patience_s)
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.wait()
