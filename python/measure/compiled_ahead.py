"""The compiler's files for every pass of compiled.py's cases, made by many processes at once: compiled_ahead.py CASES [WORKERS]

Nothing is timed here. Each pass runs once, so that its backward graph is compiled too; compiled.py finds the files and measures alone.
"""
from __future__ import annotations

import json
import multiprocessing
import pathlib
import sys
import time
import typing


def make(said: tuple[dict[str, typing.Any], str]) -> str:
    import compiled
    import torch

    case, task = said
    name, begun = f"{str(case['request']['model'])[:60]}, {task}", time.perf_counter()
    compiled.keep_apart(case, task)
    torch._dynamo.reset()
    try:
        compiled.Pass(case, task).compiled()()
        torch.cuda.synchronize()
    except Exception as why:  # noqa: BLE001
        return f"{name}: {type(why).__name__}: {why}"[:500]
    finally:
        torch.cuda.empty_cache()
    return f"{name}: {time.perf_counter() - begun:.0f} s"


if __name__ == "__main__":
    cases = [json.loads(line) for line in pathlib.Path(sys.argv[1]).read_text().splitlines() if line]
    passes = [(case, task) for task in ("train", "forward") for case in cases if task in case["tasks"]]
    context = multiprocessing.get_context("spawn")
    with context.Pool(int(sys.argv[2]) if len(sys.argv) > 2 else 10) as pool:
        for line in pool.imap_unordered(make, passes, chunksize=1):
            print(line, file=sys.stderr, flush=True)
