"""Train without a pause and watch the step's time, the clock and the power settle: what a board's limit does to a real mixture.

    python sustained.py FOLDER        about a minute on one GPU; writes FOLDER/training_sustained.jsonl
"""
from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import torch
from transformers import GPT2Config, GPT2LMHeadModel

# (width, layers, heads, sequences, seconds): products take from half to four fifths of the step.
CASES = ((4096, 8, 32, 6, 20), (2048, 24, 16, 8, 12), (8192, 3, 64, 8, 15))
SEQ = 2048


class Watch(threading.Thread):
    """Clock, power and temperature, five times a second."""

    QUERY = "--query-gpu=clocks.sm,power.draw,temperature.gpu"

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.samples: list[tuple[float, list[float]]] = []
        self.start()

    def run(self) -> None:
        command = ["nvidia-smi", self.QUERY, "--format=csv,noheader,nounits", "-lms", "200"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as smi:
            for line in smi.stdout or ():
                self.samples.append((time.time(), [float(x) for x in line.split(",")]))


def measure(watch: Watch, width: int, layers: int, heads: int, batch: int, seconds: float) -> dict:
    settings = dict(n_embd=width, n_layer=layers, n_head=heads, n_positions=SEQ, vocab_size=50368,
                    resid_pdrop=0, attn_pdrop=0, embd_pdrop=0)
    model = GPT2LMHeadModel(GPT2Config(**settings)).to(torch.bfloat16).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    tokens = torch.randint(0, 50257, (batch, SEQ))
    steps, began = [], time.time()
    while time.time() - began < seconds:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        model(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        end.record()
        torch.cuda.synchronize()
        steps.append([round(time.time() - began, 2), round(start.elapsed_time(end), 2)])
    seen = [[round(at - began, 2), *sample] for at, sample in watch.samples if began <= at]
    return dict(model=dict(model_type="gpt2", **settings), batch=batch, seq=SEQ, dtype="bf16", step_ms=steps,
                clock_power=seen)


def main() -> None:
    folder = Path(sys.argv[1])
    torch.set_default_device("cuda")
    watch = Watch()
    with open(folder / "training_sustained.jsonl", "w") as out:
        for case in CASES:
            print(json.dumps(measure(watch, *case)), file=out, flush=True)
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
