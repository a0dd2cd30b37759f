"""Times training steps with and without one change, in turn, in one process: what checkpointing, autocast and a compiler
do to a step, free of what differs from one machine or one hour to the next.

    python pairs.py --run 3 --seconds 420 >> ../../data/measurements/h200/pairs.csv

Nothing is profiled: a process that has profiled launches more slowly (models.py), and these rows are about the host as
much as about the GPU. `ms` and its phases are between CUDA events, `host_*_ms` the host's own clock around the calls.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from typing import Any

import torch

import models
import models_cases

Case = dict[str, Any]
PHASES = ("fw", "bw", "opt")
COLUMNS = ["run", "rows", "model", "mode", "dtype", "batch", "seq", "ckpt", "compile", "ms"]
COLUMNS += [f"{p}_ms" for p in PHASES] + [f"host_{p}_ms" for p in PHASES]
LLAMA_1B = dict(
    hidden_size=2048,
    intermediate_size=8192,
    num_hidden_layers=16,
    num_attention_heads=32,
    num_key_value_heads=8,
    vocab_size=128256,
    tie_word_embeddings=True,
    max_position_embeddings=8192,
)
GPT2_XL = dict(n_embd=1600, n_head=25, n_layer=48)
GPT2, LLAMA = "GPT2LMHeadModel", "LlamaForCausalLM"
# rows, model, class, config, batch, seq, what is done to it beside leaving it as it is
STORED = [
    ("models", "gpt2", GPT2, {}, 8, 1024, ("ckpt", "amp")),
    ("models", "gpt2", GPT2, {}, 32, 1024, ("amp",)),
    ("models", "gpt2_pad", GPT2, dict(vocab_size=50304), 32, 1024, ()),
    ("models", "llama_1b", LLAMA, LLAMA_1B, 2, 2048, ()),
    ("models", "llama_1b", LLAMA, LLAMA_1B, 8, 2048, ("ckpt",)),
    ("models", "llama_1b", LLAMA, LLAMA_1B, 4, 2048, ("amp",)),
    ("architectures", "gpt2_xl", GPT2, GPT2_XL, 4, 1024, ("ckpt",)),
]
COMPILED = [
    ("models", "gpt2", GPT2, {}, 32, 1024, ("compile",)),
    ("models", "llama_1b", LLAMA, LLAMA_1B, 8, 2048, ("compile",)),
]

Spans = list[tuple[list[float], list[float]]]  # of each step: by the host's clock, between CUDA events


def timed(step: models.Step, count: int, warmup: int) -> Spans:
    def once() -> tuple[list[float], list[float]]:
        marks: list[tuple[float, torch.cuda.Event]] = []

        def mark() -> None:
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            marks.append((time.perf_counter(), event))

        torch.cuda.synchronize()
        mark()
        step(mark)
        torch.cuda.synchronize()
        pairs = list(zip(marks, marks[1:]))
        return [(b[0] - a[0]) * 1e3 for a, b in pairs], [a[1].elapsed_time(b[1]) for a, b in pairs]

    for _ in range(warmup):
        once()
    return [once() for _ in range(count)]


def write(run: int, rows: str, case: Case, ckpt: bool, spans: Spans) -> None:
    """Medians: one disturbed step of ten does not show."""
    total = statistics.median(sum(events) for _, events in spans)
    figures = [total] + [statistics.median(s[side][i] for s in spans) for side in (1, 0) for i in range(3)]
    words = [run, rows, case["model"], case["mode"], case["dtype"], case["batch"], case["seq"], int(ckpt)]
    words += [int(bool(case.get("compile")))] + [f"{f:.3f}" for f in figures]
    print(",".join(map(str, words)), flush=True)


def measure(run: int, rows: str, name: str, cls: str, config: Case, batch: int, seq: int, what: tuple[str, ...]) -> None:
    base = dict(model=name, cls=cls, config=config, mode="train", batch=batch, seq=seq)
    torch.manual_seed(0)
    plain = models.make_model(base | {"dtype": "bf16"}, "cuda")
    wide = models.make_model(base | {"dtype": "amp"}, "cuda") if "amp" in what else None
    cases = {w: base | {"dtype": "amp" if w == "amp" else "bf16"} for w in ("none", *what) if w != "compile"}
    steps = {w: models.Step(wide if w == "amp" else plain, case, "cuda") for w, case in cases.items()}
    spans: dict[str, Spans] = {w: [] for w in steps}
    for _ in range(2):  # in turn: a host that grows slower does so under all of them
        for w, step in steps.items():
            if w == "ckpt":
                plain.gradient_checkpointing_enable()
            elif "ckpt" in what:
                plain.gradient_checkpointing_disable()
            spans[w] += timed(step, count=5, warmup=3)
    for w, case in cases.items():
        write(run, rows, case, w == "ckpt", spans[w])
    if "compile" in what:
        case = base | {"dtype": "bf16", "compile": True}
        write(run, rows, case, False, timed(models.Step(plain, case, "cuda"), count=7, warmup=4))


def everything() -> list[tuple[str, str, str, Case, int, int, tuple[str, ...]]]:
    found = list(STORED)
    for name, (cls, config, (batch, seq)) in models_cases.ALL.items():
        if name not in models_cases.MORE:
            again = () if name in models_cases.NO_CKPT else ("ckpt",)
            found.append(("architectures", name, cls, config, batch, seq, (*again, "amp")))
    found += COMPILED
    for name in ("bert", "qwen2", "phi3", "opt", "vit"):
        cls, config, (batch, seq) = models_cases.ALL[name]
        found.append(("architectures", name, cls, config, batch, seq, ("compile",)))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--run", type=int, required=True, help="the number that tells this machine from others")
    parser.add_argument("--seconds", type=float, default=1e9, help="no model is started after this long")
    parser.add_argument("--head", action="store_true", help="begin with the names of the columns")
    args = parser.parse_args()
    began = time.monotonic()
    if args.head:
        print(",".join(COLUMNS))
    for entry in everything():
        if time.monotonic() - began > args.seconds:
            break
        try:
            measure(args.run, *entry)
        except Exception as error:  # out of memory, a class that this transformers lacks: the others still count
            print(f"{entry[1]}: {error!r:.200}", file=sys.stderr)
        gc.collect()
        torch.cuda.empty_cache()
    return 0


if __name__ == "__main__":
    sys.exit(main())
