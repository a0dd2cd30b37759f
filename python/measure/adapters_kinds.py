#!/usr/bin/env python3
"""Peaks of training steps with adapters, by architecture: adapters_kinds.py OUT CASES

CASES is a file with a case a line and the forecast that was written down before: models of transformers in bf16 under autocast, sequences of 512 tokens,
adapters in fp32 beside every product of a layer as PEFT runs them (`rank` 0: all weights trained, no autocast). `packed` weights have 4 bits and a scale for
64 of them; a table unpacks them forward and back, the packed ones alone are kept, and a layer gives back the format that it was given, as bitsandbytes'
does. Each case has a process that nothing ran in before. A row a case: the allocator's high-water mark and what it reserved, after every step.
"""
from __future__ import annotations

import concurrent.futures
import json
import pathlib
import subprocess
import sys

STEPS, AT_ONCE, SEQ = 3, 4, 512


def layers(torch):
    nn = torch.nn

    def unpacked(packed, scales, table, shape):
        both = torch.stack((packed >> 4, packed & 15), dim=-1).view(-1, 64)
        return (table[both.int()] * scales[:, None]).view(shape)

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, packed, scales, table, shape):
            ctx.save_for_backward(packed, scales, table)
            ctx.shape = shape
            return nn.functional.linear(x, unpacked(packed, scales, table, shape))

        @staticmethod
        def backward(ctx, gradient):
            return gradient @ unpacked(*ctx.saved_tensors, ctx.shape), None, None, None, None

    class Packed(nn.Module):
        def __init__(self, linear):
            super().__init__()
            self.shape, self.bias, count = tuple(linear.weight.shape), linear.bias, linear.weight.numel()
            self.out_features, self.in_features = self.shape
            self.packed = torch.zeros(count // 2, dtype=torch.uint8)
            self.scales = torch.ones(count // 64, dtype=torch.bfloat16)
            self.table = torch.ones(16, dtype=torch.bfloat16)

        def forward(self, x):
            with torch.autocast("cuda", enabled=False):
                y = Product.apply(x.to(torch.bfloat16), self.packed, self.scales, self.table, self.shape)
                return (y if self.bias is None else y + self.bias).to(x.dtype)

    class Adapted(nn.Module):
        def __init__(self, base, rank, packed):
            super().__init__()
            self.base, self.packed = base, packed
            self.a = nn.Linear(base.in_features, rank, bias=False)
            self.b = nn.Linear(rank, base.out_features, bias=False)

        def forward(self, x):
            y = self.base(x)
            x = nn.functional.dropout(x, 0.05) if self.packed else x.float()
            return (y + self.b(self.a(x)) * 0.25).to(y.dtype)

    return Packed, Adapted


def build(torch, c: dict):
    import transformers
    torch.set_default_device("cuda")
    torch.set_default_dtype(torch.bfloat16)
    model = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.for_model(c["kind"], **c["config"]), attn_implementation="sdpa")
    torch.set_default_dtype(torch.float32)
    model.config.use_cache = False
    model.train()
    if c["rank"]:
        packed_layer, adapted_layer = layers(torch)
        model.requires_grad_(False)
        head = model.get_output_embeddings()
        for name, module in list(model.named_modules()):
            if isinstance(module, torch.nn.Linear) and module is not head:
                parent, leaf = name.rsplit(".", 1)
                setattr(model.get_submodule(parent), leaf, adapted_layer(packed_layer(module) if c["packed"] else module, c["rank"], c["packed"]))
        torch.cuda.empty_cache()
    return model


def one(c: dict) -> dict:
    import torch
    model = build(torch, c)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], foreach=True)
    torch.cuda.reset_peak_memory_stats()
    marks = []
    for _ in range(STEPS):
        ids = torch.randint(0, 1000, (c["batch"], SEQ))
        with torch.autocast("cuda", torch.bfloat16, enabled=c["rank"] > 0):
            loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        del loss
        optimizer.step()
        optimizer.zero_grad()
        marks.append([torch.cuda.max_memory_allocated(), torch.cuda.memory_reserved()])
    return {"marks": marks, "peak_bytes": marks[-1][0], "reserved_bytes": marks[-1][1], "torch": torch.__version__}


def child(line: str) -> str:
    p = subprocess.run([sys.executable, __file__, "--one", line], capture_output=True, text=True, timeout=120, check=False)
    lines = [each for each in p.stdout.splitlines() if each.startswith("{")]
    return json.dumps({**json.loads(line), **(json.loads(lines[-1]) if lines else {"error": p.stderr[-500:]})})


def main() -> None:
    if sys.argv[1] == "--one":
        print(json.dumps(one(json.loads(sys.argv[2]))))
        return
    out, cases = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).read_text(encoding="utf-8").splitlines()
    out.mkdir(parents=True, exist_ok=True)
    with open(out / "adapters_kinds.jsonl", "w", encoding="utf-8") as f, concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for line in pool.map(child, cases):
            f.write(line + "\n")
            f.flush()


if __name__ == "__main__":
    main()
