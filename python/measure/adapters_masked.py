"""Steps with adapters whose batches are padded or not, and how pages of unified memory travel: adapters_masked.py OUT

Llama of 3 billion parameters in transformers, four sequences, adapters by peft in fp32 beside queries and values: without a mask, with one that hides
nothing, with one that hides the beginnings of three sequences; the loop reads loss and norm on the host, or neither. Wall of three times four steps; one
more is profiled. Then 4 GiB of unified memory, fetched to the host and back in pieces as bitsandbytes' paged optimizers fetch their states, and touched
by a kernel that finds them on the host. Never more of it than the card has free.
"""
from __future__ import annotations

import contextlib
import ctypes
import json
import pathlib
import sys
import time
import typing

import torch
from torch.profiler import ProfilerActivity, profile

SIZE = 4 << 30
CPU = -1
KINDS = [("none", False, False), ("none", False, True), ("ones", False, True), ("padded", False, True), ("padded", True, False), ("none", True, False)]


class Case(typing.NamedTuple):
    seq: int
    mask: str
    autocast: bool
    reads_loss: bool


def build() -> torch.nn.Module:
    from peft import LoraConfig, get_peft_model
    from transformers import LlamaConfig, LlamaForCausalLM
    config = LlamaConfig(hidden_size=3072, intermediate_size=8192, num_hidden_layers=28, num_attention_heads=24, num_key_value_heads=8, vocab_size=128256,
                         max_position_embeddings=8192, tie_word_embeddings=True, attn_implementation="sdpa", use_cache=False)
    with torch.device("cuda"):
        model = LlamaForCausalLM(config).to(torch.bfloat16).train()
    return get_peft_model(model, LoraConfig(r=32, lora_alpha=64, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"))


def masked(ids: torch.Tensor, mask: str) -> dict[str, torch.Tensor]:
    if mask == "none":
        return {}
    seen = torch.ones_like(ids)
    if mask == "padded":
        for row in range(ids.shape[0]):
            seen[row, :int(ids.shape[1] * 0.15 * row)] = 0
    return {"attention_mask": seen}


def take(model: torch.nn.Module, case: Case, batch: int = 4) -> dict:
    ids = torch.randint(0, 128256, (batch, case.seq), device="cuda")
    given = masked(ids, case.mask)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], 1e-4)

    def step() -> None:
        with torch.autocast("cuda", torch.bfloat16) if case.autocast else contextlib.nullcontext():
            loss = model(input_ids=ids, labels=ids, **given).loss
        if case.reads_loss:
            loss.item()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if case.reads_loss:
            norm.item()
        optimizer.step()
        optimizer.zero_grad()

    for _ in range(4):
        step()
    torch.cuda.reset_peak_memory_stats()
    walls = []
    for _ in range(3):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(4):
            step()
        torch.cuda.synchronize()
        walls.append(round((time.perf_counter() - begin) / 4 * 1e3, 2))
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        step()
        torch.cuda.synchronize()
    kernels = [e for e in profiler.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    attention = sum(e.device_time for e in kernels if "cudnn" in e.name or "flash" in e.name or "fmha" in e.name)
    return {"batch": batch, **case._asdict(), "wall_ms": walls, "busy_ms": round(sum(e.device_time for e in kernels) / 1e3, 2),
            "attention_ms": round(attention / 1e3, 3), "kernels": len(kernels), "peak_gb": round(torch.cuda.max_memory_allocated() / 1e9, 2)}


class Pages:
    """Unified memory by the driver's own calls."""

    def __init__(self) -> None:
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.at = ctypes.c_uint64()
        torch.zeros(1, device="cuda")
        self.check(self.cuda.cuMemAllocManaged(ctypes.byref(self.at), ctypes.c_size_t(SIZE), ctypes.c_uint(1)))

    def check(self, status: int) -> None:
        if status:
            raise RuntimeError(f"CUDA error {status}")

    def fetch(self, piece: int, place: int) -> float:
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for at in range(0, SIZE, piece):
            self.check(self.cuda.cuMemPrefetchAsync(ctypes.c_uint64(self.at.value + at), ctypes.c_size_t(min(piece, SIZE - at)), ctypes.c_int(place), None))
        torch.cuda.synchronize()
        return round(SIZE / (time.perf_counter() - begin) / 1e9, 2)

    def touch(self) -> float:
        torch.cuda.synchronize()
        begin = time.perf_counter()
        self.check(self.cuda.cuMemsetD8_v2(self.at, ctypes.c_ubyte(1), ctypes.c_size_t(SIZE)))
        torch.cuda.synchronize()
        return round(SIZE / (time.perf_counter() - begin) / 1e9, 2)


def main() -> None:
    out = pathlib.Path(sys.argv[1])
    with (out / "pages.jsonl").open("w") as file:
        pages = Pages()
        pages.touch()
        for piece in (SIZE, 256 << 20, 56 << 20, 16 << 20):
            for turn in range(3):
                row = {"what": "prefetch", "piece_mib": piece >> 20, "turn": turn, "down_gbps": pages.fetch(piece, CPU), "up_gbps": pages.fetch(piece, 0)}
                file.write(json.dumps(row) + "\n")
        for turn in range(3):
            pages.fetch(SIZE, CPU)
            file.write(json.dumps({"what": "touched", "turn": turn, "up_gbps": pages.touch()}) + "\n")
    model = build()
    with (out / "adapters_masked.jsonl").open("w") as file:
        for seq in (210, 512, 1024):
            for kind in KINDS:
                file.write(json.dumps(take(model, Case(seq, *kind))) + "\n")


if __name__ == "__main__":
    main()
