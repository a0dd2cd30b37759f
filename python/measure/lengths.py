#!/usr/bin/env python3
"""Steps with adapters whose lengths vary: what they hold, what the allocator reserves, how long each takes: python/measure/lengths.py OUT [SECONDS]

Models of transformers with adapters beside queries and values, batches padded to their longest sequence with a mask, the loss read after every step. Lengths
are lognormal, cut to their bounds, from a seed; every case runs in a process of its own, with plain or with expandable segments. A row a case: of every step
the padded length, the tokens that are no padding, allocated and reserved high-water marks in bytes, milliseconds.
"""
from __future__ import annotations

import json
import math
import os
import pathlib
import random
import subprocess
import sys
import time

QWEN = {"model_type": "qwen2", "hidden_size": 2048, "intermediate_size": 5504, "num_hidden_layers": 24, "num_attention_heads": 16, "num_key_value_heads": 16,
        "vocab_size": 151936, "tie_word_embeddings": False}
LLAMA_3B = {"model_type": "llama", "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 28, "num_attention_heads": 24, "num_key_value_heads": 8,
            "vocab_size": 128256, "tie_word_embeddings": True}
LLAMA_8B = {"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
            "vocab_size": 128256, "tie_word_embeddings": False}
SHORT = {"mean": 176.2, "spread": 125.8, "min": 26, "max": 740}
CHATS = {"mean": 933.3, "spread": 864.8, "min": 21, "max": 2048}
NEWS = {"mean": 1600, "spread": 1200, "min": 91, "max": 4096}

CASES = [
    {"name": "qwen_2b", "config": QWEN, "batch": 1, "lengths": CHATS, "checkpoint": True, "expandable": False},
    {"name": "llama_3b", "config": LLAMA_3B, "batch": 4, "lengths": SHORT, "checkpoint": False, "expandable": False},
    {"name": "llama_8b", "config": LLAMA_8B, "batch": 2, "lengths": CHATS, "checkpoint": True, "expandable": False},
    {"name": "qwen_2b", "config": QWEN, "batch": 4, "lengths": CHATS, "checkpoint": True, "expandable": False},
    {"name": "llama_3b", "config": LLAMA_3B, "batch": 2, "lengths": NEWS, "checkpoint": False, "expandable": False},
    {"name": "qwen_2b", "config": QWEN, "batch": 4, "lengths": CHATS, "checkpoint": True, "expandable": True},
    {"name": "llama_3b", "config": LLAMA_3B, "batch": 2, "lengths": NEWS, "checkpoint": False, "expandable": True},
    {"name": "llama_8b", "config": LLAMA_8B, "batch": 2, "lengths": CHATS, "checkpoint": True, "expandable": True},
]
STEPS = 160
SECONDS_EACH = 26


def drawn(lengths: dict, draw: random.Random) -> int:
    variance = math.log(1 + (lengths["spread"] / lengths["mean"]) ** 2)
    n = round(draw.lognormvariate(math.log(lengths["mean"]) - variance / 2, math.sqrt(variance)))
    return max(lengths["min"], min(lengths["max"], n))


def by_hand(model):
    import torch

    class Adapted(torch.nn.Module):
        def __init__(self, base: torch.nn.Linear) -> None:
            super().__init__()
            self.base = base
            self.down = torch.nn.Parameter(torch.randn(8, base.in_features, device=base.weight.device) * 0.01)
            self.up = torch.nn.Parameter(torch.zeros(base.out_features, 8, device=base.weight.device))

        def forward(self, x):
            result = self.base(x)
            return (result + 2 * torch.nn.functional.linear(torch.nn.functional.linear(x.float(), self.down), self.up)).to(result.dtype)

    model.requires_grad_(False)
    for layer in model.model.layers:
        layer.self_attn.q_proj = Adapted(layer.self_attn.q_proj)
        layer.self_attn.v_proj = Adapted(layer.self_attn.v_proj)
    return model


def with_adapters(model):
    """peft's way: adapters in fp32 beside queries and values, of rank 8; without the package the same by hand."""
    try:
        from peft import LoraConfig, get_peft_model
    except ImportError:
        return by_hand(model)
    return get_peft_model(model, LoraConfig(r=8, lora_alpha=16, lora_dropout=0, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"))


def build(case: dict, device: str):
    import torch
    import transformers
    config = transformers.AutoConfig.for_model(**{**case["config"], "max_position_embeddings": 8192})
    torch.set_default_dtype(torch.bfloat16)
    with torch.device(device):
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")
    torch.set_default_dtype(torch.float32)
    model.config.use_cache = False
    model.train()
    if case["checkpoint"]:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        model.enable_input_require_grads()
    return with_adapters(model)


def batch_of(sizes: list[int], device: str) -> dict:
    import torch
    longest = max(sizes)
    ids = torch.randint(0, 1000, (len(sizes), longest))
    mask = torch.zeros(len(sizes), longest, dtype=torch.int64)
    for row, n in enumerate(sizes):
        mask[row, :n] = 1
    labels = ids.masked_fill(mask == 0, -100)
    return {"input_ids": ids.to(device), "attention_mask": mask.to(device), "labels": labels.to(device)}


def run(case: dict, device: str = "cuda") -> dict:
    import torch
    model = build(case, device)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, 1e-4)
    cuda, draw, steps, begin = device == "cuda", random.Random(11), [], time.time()
    if cuda:
        torch.cuda.reset_peak_memory_stats()
    for _ in range(case.get("steps", STEPS)):
        if time.time() - begin > SECONDS_EACH - 8:
            break
        sizes = [drawn(case["lengths"], draw) for _ in range(case["batch"])]
        given = batch_of(sizes, device)
        if cuda:
            torch.cuda.synchronize()
        at = time.perf_counter()
        loss = model(**given).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        loss.item()
        if cuda:
            torch.cuda.synchronize()
        ms = round((time.perf_counter() - at) * 1e3, 2)
        del loss, given
        held = [torch.cuda.max_memory_allocated(), torch.cuda.memory_reserved()] if cuda else [0, 0]
        steps.append([max(sizes), sum(sizes), *held, ms])
    row = {**case, "trained": sum(p.numel() for p in trained), "steps": steps, "torch": torch.__version__}
    if cuda:
        stats = torch.cuda.memory_stats()
        row |= {"peak_bytes": torch.cuda.max_memory_allocated(), "reserved_bytes": torch.cuda.max_memory_reserved(), "segments": stats["segment.all.current"],
                "retries": stats["num_alloc_retries"]}
    return row


def main() -> None:
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    if len(sys.argv) > 3 and sys.argv[2] == "--case":
        case = CASES[int(sys.argv[3])]
        try:
            row = run(case)
        except Exception as problem:  # a case that fails says so, the others are taken
            row = {**case, "error": f"{type(problem).__name__}: {problem}"[:300]}
        with (out / "lengths.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        return
    until = time.time() + (float(sys.argv[2]) if len(sys.argv) > 2 else 235)
    for number, case in enumerate(CASES):
        if time.time() > until - 12:
            print(f"no time for case {number}", flush=True)
            continue
        env = {**os.environ, "PYTORCH_CUDA_ALLOC_CONF": f"expandable_segments:{case['expandable']}"}
        try:
            subprocess.run([sys.executable, __file__, str(out), "--case", str(number)], env=env, check=False, timeout=min(60, until - time.time()))
        except subprocess.TimeoutExpired:
            print(f"case {number} took too long", flush=True)
        print(f"case {number} {case['name']} done at {time.strftime('%X')}", flush=True)


if __name__ == "__main__":
    main()
