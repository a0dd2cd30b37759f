"""Train without a pause and watch the step's time, the clock and the power settle: what a board's limit does to a real mixture.

    python sustained.py FOLDER        about a minute on one GPU; writes FOLDER/training_sustained.jsonl
"""
from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import torch
from transformers import GPT2Config, GPT2LMHeadModel

from steps import timed_step
from watch import Watch

# (width, layers, heads, sequences, seconds): products take from half to four fifths of the step.
CASES = ((4096, 8, 32, 6, 20), (2048, 24, 16, 8, 12), (8192, 3, 64, 8, 15))
SEQ = 2048


def measure(watch: Watch, width: int, layers: int, heads: int, batch: int, seconds: float) -> dict:
    settings = dict(n_embd=width, n_layer=layers, n_head=heads, n_positions=SEQ, vocab_size=50368,
                    resid_pdrop=0, attn_pdrop=0, embd_pdrop=0)
    model = GPT2LMHeadModel(GPT2Config(**settings)).to(torch.bfloat16).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    tokens = torch.randint(0, 50257, (batch, SEQ))
    steps, began = [], time.time()
    while time.time() - began < seconds:
        ms = timed_step(lambda: model(input_ids=tokens, labels=tokens).loss, optimizer)[0]
        steps.append([round(time.time() - began, 2), round(ms, 2)])
    seen = watch.since(began)
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
