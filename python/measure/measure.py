"""Measures kernels on the GPU of this machine and writes one CSV per family.

    python measure.py --families gemm,attention --seconds 60 --out results
    python measure.py --families conv:120,rowwise:90 --known ../../data/measurements/h200 --out results
    python measure.py --recheck ../../data/measurements/h200 --rows 60 --out results

The first form draws random shapes from each family's distribution (documented at its draw_ function) for 60 seconds a
family. The second gives each its own time and skips shapes that a folder already holds. The third times rows of that
folder again and prints the ratio of the new figure to the old: 1.00 where machine, libraries and protocol agree.

Needs PyTorch with CUDA; foretell/calibrate/timing.py says how a kernel is timed. A run is repeatable in its shapes
(--seed), not in its times.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # operands, kernels and timing are calibrate's

import tables
from attention import ATTENTION
from convolutions import CONVOLUTION
from dense import BMM, CONV, GEMM
from family import Case, Family
from memory_bound import ELEMENTWISE, NORM, QUANTIZE, ROWWISE
from moe import MOE
from optimizers import OPTIMIZER

from foretell.calibrate.operands import Operands, TooLarge
from foretell.calibrate.timing import GraphTimer, Sample

FAMILIES = {
    f.name: f
    for f in (GEMM, BMM, CONV, CONVOLUTION, ATTENTION, ELEMENTWISE, ROWWISE, NORM, QUANTIZE, MOE, OPTIMIZER)
}
BUFFER_BYTES = 12 << 30
CLOCK_FIELDS = "timestamp,clocks.sm,clocks.mem,power.draw,temperature.gpu,clocks_event_reasons.active"


class Bench:
    """One device, one timer, and the count of cases that could not run."""

    def __init__(self, seed: int) -> None:
        torch.manual_seed(seed)
        torch.set_grad_enabled(False)
        device = torch.device("cuda")
        memory = torch.cuda.get_device_properties(device).total_memory
        self.operands = Operands(device, min(BUFFER_BYTES, memory // 10))
        self.timer = GraphTimer(self.operands)
        self.failures: dict[str, int] = {}

    def measure(self, family: Family, case: Case) -> tuple[Sample, list[float]] | None:
        """None where the case does not fit or the library refuses it."""
        try:
            whole = self.timer.time(family.build(case, self.operands), family.rotate)
            parts = [self.timer.time(build(case, self.operands), family.rotate).ms for build in family.parts.values()]
            return whole, parts
        except TooLarge:
            reason = "larger than the operand buffer"
        except torch.cuda.OutOfMemoryError:
            reason = "out of memory"
            self.timer.release()
        except (RuntimeError, NotImplementedError, AttributeError) as error:
            reason = str(error).splitlines()[0][:120]
            torch.cuda.synchronize()  # raises where the device itself is lost: no later figure would be true
        finally:
            self.timer.reclaim()
        kind = f"{family.name} {case.get('op', case.get('pass', ''))} {case['dtype']}: {reason}"
        self.failures[kind] = self.failures.get(kind, 0) + 1
        return None


def cases(family: Family, seed: int, known: set[tuple[str, ...]]) -> Iterator[Case]:
    """Shapes never seen before, in random order, without end."""
    rng = random.Random(f"{family.name} {seed}")
    while True:
        case = family.draw(rng)
        if case is not None and family.key(case) not in known:
            known.add(family.key(case))
            yield case


def measure_family(bench: Bench, family: Family, seconds: float, seed: int, known_dir: Path | None, out: Path) -> int:
    known = {family.key(family.parse(row)) for row in tables.read(known_dir, family.name)} if known_dir else set()
    end, count = time.monotonic() + seconds, 0
    table = tables.Appender(out / f"{family.name}.csv", family)
    for case in cases(family, seed, known):
        if time.monotonic() >= end:
            break
        measured = bench.measure(family, case)
        if measured:
            table.add(case, *measured)
            count += 1
    table.close()
    return count


def recheck(bench: Bench, names: list[str], folder: Path, rows: int, seed: int, out: Path) -> None:
    """Times `rows` rows of each family again; writes both figures, prints the quartiles of their ratio."""
    rng, report = random.Random(seed), []
    for family in (FAMILIES[name] for name in names):
        old = tables.read(folder, family.name)
        ratios = []
        for row in rng.sample(old, min(rows, len(old))):
            case = family.parse(row)
            measured = bench.measure(family, case)
            if measured:
                ratios.append(measured[0].ms / float(row["ms"]))
                report.append(
                    {
                        "family": family.name,
                        "case": case,
                        "old_ms": float(row["ms"]),
                        "ms": measured[0].ms,
                        "launches": measured[0].launches,
                    }
                )
        if len(ratios) > 1:
            low, middle, high = statistics.quantiles(ratios, n=4)
            print(f"{family.name:12} {len(ratios):4} rows  new/old  {low:.3f} {middle:.3f} {high:.3f}", flush=True)
    (out / "recheck.json").write_text("\n".join(json.dumps(r) for r in report) + "\n")


def machine() -> dict[str, object]:
    p = torch.cuda.get_device_properties(0)
    return {
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "gpu": p.name,
        "sms": p.multi_processor_count,
        "l2": p.L2_cache_size,
        "mem": p.total_memory,
        "cudnn": torch.backends.cudnn.version(),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", default=",".join(FAMILIES), help="names, or name:seconds, separated by commas")
    parser.add_argument("--seconds", type=float, default=60, help="time for each family without its own")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--known", type=Path, help="folder of tables whose shapes are skipped")
    parser.add_argument("--recheck", type=Path, help="folder of tables to time again")
    parser.add_argument("--rows", type=int, default=60, help="rows of each family to time again")
    parser.add_argument("--clocks", action="store_true", help="also log clocks and power once a second")
    arguments = parser.parse_args()

    wanted = dict(
        item.split(":") if ":" in item else (item, arguments.seconds) for item in arguments.families.split(",")
    )
    if unknown := set(wanted) - set(FAMILIES):
        parser.error(f"unknown families: {', '.join(sorted(unknown))}; known are {', '.join(FAMILIES)}")
    if not torch.cuda.is_available():
        parser.error("no CUDA device")
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "machine.json").write_text(json.dumps(machine()) + "\n")
    clocks = None
    if arguments.clocks:
        query = ["nvidia-smi", f"--query-gpu={CLOCK_FIELDS}", "--format=csv,noheader,nounits", "-lms", "1000"]
        clocks = subprocess.Popen(query, stdout=open(arguments.out / "clocks.csv", "w"))
    try:
        bench = Bench(arguments.seed)
        if arguments.recheck:
            recheck(bench, list(wanted), arguments.recheck, arguments.rows, arguments.seed, arguments.out)
        else:
            for name, seconds in wanted.items():
                count = measure_family(
                    bench, FAMILIES[name], float(seconds), arguments.seed, arguments.known, arguments.out
                )
                print(f"{name:12} {count:6} rows", flush=True)
        for kind, count in sorted(bench.failures.items()):
            print(f"skipped {count:4} x {kind}", file=sys.stderr)
    finally:
        if clocks:
            clocks.terminate()
    return 0


if __name__ == "__main__":
    sys.exit(main())
