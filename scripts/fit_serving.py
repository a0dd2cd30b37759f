#!/usr/bin/env python3
"""Fit the constants of a serving engine to measured runs: fit_serving.py PROGRAM ENGINE ROWS.jsonl [--leave-out KEY].

A row is {"request": {"task": "serve", ...}, "ttft_ms": 210.5, "tpot_ms": 9.8} (serving_rows.py makes them); rows of
other engines are passed over. Searched are the constants of data/engines/ENGINE.json whose source says "fitted" (but
for the front end's), one after the other, each on a grid of factors that narrows: the loss is the mean of
|ln forecast / measured| of TPOT and of TTFT, each error counted as at most LIMIT, so that runs whose settings nobody
wrote down do not pull. --leave-out gpu or model fits as often as there are values, without the rows of each, and prints
the errors on those. --show prints the errors as they are and fits nothing; --ablate prints the loss as it is and
without each constant (a scale of 1, a time of nothing). The constants are printed, and with --write put into the
engine's file.
"""
from __future__ import annotations

import argparse
import json
import math
import pathlib
import re
import statistics
import sys

import batch

APART = {"stream_us"}  # found on rows of its own
LIMIT = 0.5
FOLDER = pathlib.Path(__file__).resolve().parent.parent / "data/engines"


def fitted(name: str) -> dict[str, float]:
    engine = json.loads((FOLDER / f"{name}.json").read_text())
    searched = [key for key, source in engine["sources"].items() if source.startswith("fitted") and key not in APART]
    return {key: engine["traits"][key] for key in searched}


def answers(program: str, engine: dict, rows: list[dict]) -> list[dict]:
    return batch.ask([{**row["request"], "engine": engine} for row in rows], program)


def errors(program: str, name: str, traits: dict, rows: list[dict], key: str) -> list[float]:
    found = answers(program, {"base": name, "traits": traits}, rows)
    return [math.log(a[key] / r[key]) for a, r in zip(found, rows) if r.get(key) and a.get(key)]


def loss(program: str, name: str, traits: dict, rows: list[dict]) -> float:
    found = answers(program, {"base": name, "traits": traits}, rows)
    total = count = 0.0
    for key in ("ttft_ms", "tpot_ms"):
        for answer, row in zip(found, rows):
            if row.get(key) and answer.get(key):
                total += min(abs(math.log(answer[key] / row[key])), LIMIT)
                count += 1
    return total / max(count, 1)


def fit(program: str, name: str, rows: list[dict], rounds: int) -> dict:
    traits = fitted(name)
    best = loss(program, name, traits, rows)
    width = 0.5
    for _ in range(rounds):
        for key in list(traits):
            narrow = width / 4 if key.endswith("scale") else width
            for factor in (1 - narrow, 1 + narrow):
                tried = {**traits, key: float(f"{traits[key] * factor:.4g}")}
                found = loss(program, name, tried, rows)
                if found < best - 1e-5:
                    best, traits = found, tried
        print(f"# {name}: loss {best:.4f} {traits}", file=sys.stderr, flush=True)
        width /= 2
    return traits


def report(label: str, program: str, name: str, traits: dict, rows: list[dict]) -> None:
    for key in ("tpot_ms", "ttft_ms"):
        logs = sorted(abs(e) for e in errors(program, name, traits, rows, key))
        shares = sorted(abs(math.expm1(e)) for e in errors(program, name, traits, rows, key))
        if shares:
            mean, median, spread = sum(shares) / len(shares), statistics.median(shares), logs[9 * len(logs) // 10]
            line = f"{label:40s} {key[:4]} n {len(shares):4d} mean {100 * mean:5.1f} % median {100 * median:5.1f} %"
            print(f"{line} nine in ten within {spread:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("engine")
    parser.add_argument("rows")
    parser.add_argument("--leave-out", choices=("gpu", "model"))
    parser.add_argument("--every", type=int, default=1, help="only every so many rows")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--ablate", action="store_true")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    rows = [row for row in batch.rows(args.rows) if row["request"]["engine"] == args.engine]
    if args.show:
        report(args.engine, args.program, args.engine, {}, rows)
        return
    if args.ablate:
        kept = rows[:: args.every]
        print(f"{args.engine:16s} loss {loss(args.program, args.engine, fitted(args.engine), kept):.4f}")
        for key in fitted(args.engine):
            without = {**fitted(args.engine), key: 1.0 if key.endswith("scale") else 0.0}
            print(f"without {key:16s} loss {loss(args.program, args.engine, without, kept):.4f}", flush=True)
        return
    if args.leave_out:
        for value in sorted({row["request"][args.leave_out] for row in rows}):
            kept = [row for row in rows if row["request"][args.leave_out] != value][:: args.every]
            if kept:
                traits = fit(args.program, args.engine, kept, args.rounds)
                out = [row for row in rows if row["request"][args.leave_out] == value]
                report(f"{args.engine} without {value}", args.program, args.engine, traits, out)
        return
    traits = fit(args.program, args.engine, rows[:: args.every], args.rounds)
    report(args.engine, args.program, args.engine, traits, rows)
    print(json.dumps(traits))
    if args.write:
        path = FOLDER / f"{args.engine}.json"
        text = path.read_text()
        for key, value in traits.items():
            text = re.sub(rf'("{key}": )[-0-9.e]+', rf"\g<1>{value:g}", text, count=1)
        path.write_text(text)


if __name__ == "__main__":
    main()
