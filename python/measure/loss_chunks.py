"""Head and loss 256 tokens at a time, each piece made again going back, and whole: loss_chunks.py OUT

What TRL's trainer does since June 2026, written after its public code: under autocast, with a head that is trained and one that is not. Kernels of one
forward and backward pass by name, the clock of five, and the peak beyond what was there.
"""
from __future__ import annotations

import collections
import json
import pathlib
import sys
import time
import typing

import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils.checkpoint import checkpoint

PIECE = 256
SHAPES = [(2048, 4096, 151936, False), (8192, 4096, 151936, False), (2048, 2048, 128256, False), (2048, 2048, 151936, True), (4096, 4096, 128256, True)]


def piece(hidden: torch.Tensor, head: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    logits = hidden.float() @ head.float().t()
    likelihood = torch.nn.functional.log_softmax(logits, dim=-1)
    loss = torch.nn.functional.nll_loss(likelihood, labels, ignore_index=-100, reduction="sum")
    counts = labels != -100
    right = ((logits.argmax(dim=-1) == labels) & counts).sum().float()
    entropy = (-(likelihood.exp() * likelihood).sum(dim=-1) * counts).sum()
    return loss, right, entropy


def chunks(hidden: torch.Tensor, head: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    hidden = hidden[..., :-1, :].reshape(-1, hidden.size(-1))
    labels = labels[..., 1:].reshape(-1)
    order = (labels != -100).to(torch.int8).argsort(descending=True, stable=True)
    hidden, labels = hidden[order], labels[order]
    loss = hidden.new_zeros((), dtype=torch.float32)
    for at in range(0, hidden.shape[0], PIECE):
        part, _, _ = checkpoint(piece, hidden[at:at + PIECE], head, labels[at:at + PIECE], use_reentrant=False)
        loss = loss + part
    return loss / labels.numel()


def whole(hidden: torch.Tensor, head: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    logits = torch.nn.functional.linear(hidden, head).float()
    target = torch.nn.functional.pad(labels, (0, 1), value=-100)[..., 1:].reshape(-1)
    return torch.nn.functional.cross_entropy(logits.view(-1, logits.shape[-1]), target, ignore_index=-100)


def measure(rows: int, width: int, vocab: int, trained: bool, way: typing.Callable) -> dict:
    torch.cuda.empty_cache()
    hidden = torch.randn(1, rows, width, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    head = (torch.randn(vocab, width, device="cuda", dtype=torch.bfloat16) * 0.02).requires_grad_(trained)
    labels = torch.randint(0, vocab, (1, rows), device="cuda")

    def step() -> None:
        with torch.autocast("cuda", torch.bfloat16):
            loss = way(hidden, head, labels)
        loss.backward()
        hidden.grad = head.grad = None

    for _ in range(3):
        step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    there, begin = torch.cuda.memory_allocated(), time.perf_counter()
    for _ in range(5):
        step()
    torch.cuda.synchronize()
    ms, peak = 200 * (time.perf_counter() - begin), torch.cuda.max_memory_allocated() - there
    with profile(activities=[ProfilerActivity.CUDA]) as trace:
        step()
        torch.cuda.synchronize()
    us: collections.Counter = collections.Counter()
    counts: collections.Counter = collections.Counter()
    for event in trace.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            us[event.name[:90]] += event.device_time
            counts[event.name[:90]] += 1
    return {"rows": rows, "width": width, "vocab": vocab, "trained": trained, "way": way.__name__, "ms": round(ms, 3), "peak_bytes": peak,
            "busy_ms": round(sum(us.values()) / 1e3, 3), "kernels": sum(counts.values()),
            "by_kernel": [[name, round(spent / 1e3, 4), counts[name]] for name, spent in us.most_common(14)]}


def main() -> None:
    with pathlib.Path(sys.argv[1]).open("w") as out:
        for shape in SHAPES:
            for way in (chunks, whole):
                print(json.dumps(measure(*shape, way)), file=out, flush=True)


if __name__ == "__main__":
    main()
