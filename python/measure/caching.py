#!/usr/bin/env python3
"""What PyTorch's caching allocator reserves beyond its peak: python/measure/caching.py OUT [SECONDS]

Trains (or runs) models of transformers and torchvision for some steps, each twice: with the allocator as it comes and with expandable segments,
each in a process of its own (PYTORCH_CUDA_ALLOC_CONF is read once). `steady` cases repeat one shape; `varied` ones draw the length of every step
from a list that stands in the row. A row a case: allocated and reserved high-water marks after every step, segments at the end. `trace` cases also
write the allocator's own history (actions, bytes, addresses, in order), to try a simulation on the stream that was really asked for.

    python/measure/caching.py OUT --fresh FORECASTS

takes the cases of FORECASTS (a row a case, with the forecast that was written down before), each in a process of its own.
"""
from __future__ import annotations

import gzip
import json
import os
import pathlib
import random
import subprocess
import sys
import time

LLAMA_1B = {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
            "tie_word_embeddings": True}
LLAMA_8B_HALF = {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
                 "tie_word_embeddings": False}
QWEN_HALF = {"hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads": 2, "vocab_size": 151936,
             "tie_word_embeddings": True}
GPT2 = {"n_embd": 768, "n_layer": 12, "n_head": 12}
GPT2_MEDIUM = {"n_embd": 1024, "n_layer": 24, "n_head": 16}
BERT_LARGE = {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16}
OPT_350M = {"hidden_size": 1024, "ffn_dim": 4096, "num_hidden_layers": 24, "num_attention_heads": 16, "vocab_size": 50272, "word_embed_proj_dim": 1024}


def case(name: str, kind: str, config: dict, batch: int, seq: int, **more) -> dict:
    return {"name": name, "kind": kind, "config": config, "batch": batch, "seq": seq, "dtype": "bf16", "mode": "train", **more}


CASES = [
    case("gpt2", "gpt2", GPT2, 8, 1024, trace=True),
    case("llama_1b", "llama", LLAMA_1B, 2, 2048, trace=True),
    case("llama_1b", "llama", LLAMA_1B, 8, 2048, checkpoint=True),
    case("llama_1b", "llama", LLAMA_1B, 4, 1024, optimizer="foreach"),
    case("qwen_05b", "qwen2", QWEN_HALF, 4, 1024),
    case("bert_large", "bert", BERT_LARGE, 16, 512),
    case("gpt2_medium", "gpt2", GPT2_MEDIUM, 8, 1024),
    case("llama_8b of 16 layers", "llama", LLAMA_8B_HALF, 1, 2048),
    case("llama_8b of 16 layers", "llama", LLAMA_8B_HALF, 2, 4096, checkpoint=True),
    case("opt_350m", "opt", OPT_350M, 8, 1024, dtype="fp32"),
    case("resnet50", "picture", {"model": "resnet50"}, 128, 224),
    case("convnext_tiny", "picture", {"model": "convnext_tiny"}, 64, 224),
    case("vit_b_16", "picture", {"model": "vit_b_16"}, 64, 224),
    case("gpt2", "gpt2", GPT2, 8, 1024, varied=24),
    case("llama_1b", "llama", LLAMA_1B, 4, 2048, varied=24, trace=True),
    case("llama_1b", "llama", LLAMA_1B, 4, 2048, varied=24, checkpoint=True),
    case("qwen_05b", "qwen2", QWEN_HALF, 4, 2048, varied=24),
    case("bert_large", "bert", BERT_LARGE, 16, 512, varied=24),
    case("llama_1b", "llama", LLAMA_1B, 8, 2048, mode="forward"),
    case("gpt2_medium", "gpt2", GPT2_MEDIUM, 8, 1024, mode="forward"),
    case("resnet50", "picture", {"model": "resnet50"}, 256, 224, mode="forward"),
    case("bert_large", "bert", BERT_LARGE, 32, 512, mode="forward"),
    case("llama_1b", "llama", LLAMA_1B, 8, 2048, varied=24, mode="forward"),
    case("llama_1b, accumulated", "llama", LLAMA_1B, 2, 2048, accumulate=4),
    case("gpt2, fp32 and autocast", "gpt2", GPT2, 8, 1024, dtype="fp32", autocast=True),
]


def build(c: dict):
    import torch
    dtype = {"bf16": torch.bfloat16, "fp32": torch.float32}[c["dtype"]]
    torch.set_default_dtype(dtype)
    try:
        with torch.device("cuda"):
            if c["kind"] == "picture":
                import torchvision
                model = getattr(torchvision.models, c["config"]["model"])()
            else:
                import transformers
                config = transformers.AutoConfig.for_model(c["kind"], **c["config"])
                auto = transformers.AutoModelForMaskedLM if c["kind"] == "bert" else transformers.AutoModelForCausalLM
                model = auto.from_config(config, attn_implementation="sdpa")
                model.config.use_cache = False
    finally:
        torch.set_default_dtype(torch.float32)
    return model, dtype


def one(c: dict, out: pathlib.Path, number: int, expandable: bool) -> dict:
    import torch
    torch.cuda.empty_cache()
    torch.manual_seed(0)
    before = torch.cuda.memory_reserved()
    if c.get("trace"):
        torch.cuda.memory._record_memory_history(max_entries=1000000, context=None)
    model, dtype = build(c)
    train = c["mode"] == "train"
    model.train(train)
    if c.get("checkpoint"):
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    parameters = list(model.parameters())
    kept = {"weights_bytes": torch.cuda.memory_allocated(), "weights_reserved_bytes": torch.cuda.memory_reserved(), "before_bytes": before}
    optimizer = torch.optim.AdamW(parameters, fused=c.get("optimizer") != "foreach", foreach=c.get("optimizer") == "foreach") if train else None
    draw = random.Random(7)
    lengths = [64 * draw.randint(c["seq"] // 512, c["seq"] // 64) for _ in range(c["varied"])] if c.get("varied") else [c["seq"]] * 4
    torch.cuda.reset_peak_memory_stats()
    steps = []
    for seq in lengths:
        for _ in range(c.get("accumulate", 1)):
            if c["kind"] == "picture":
                x = torch.randn(c["batch"], 3, c["seq"], c["seq"], device="cuda", dtype=dtype)
            else:
                x = torch.randint(0, 1000, (c["batch"], seq), device="cuda")
            with torch.set_grad_enabled(train), torch.autocast("cuda", torch.bfloat16, enabled=bool(c.get("autocast"))):
                if c["kind"] == "picture":
                    y = model(x)
                    loss = y.float().mean() if train else None
                else:
                    loss = model(input_ids=x, labels=x).loss if train else None
                    y = None if train else model(input_ids=x).logits
            del y
            if train:
                loss.backward()
                del loss
        if train:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        steps.append([seq, torch.cuda.max_memory_allocated(), torch.cuda.memory_reserved()])
    if c.get("trace"):
        events = [[e["action"], e["size"], e["addr"]] for e in torch.cuda.memory._snapshot()["device_traces"][0]]
        torch.cuda.memory._record_memory_history(enabled=None)
        with gzip.open(out / f"trace-{number}-{'expandable' if expandable else 'segments'}.json.gz", "wt") as f:
            json.dump(events, f)
    stats = torch.cuda.memory_stats()
    row = {**{k: v for k, v in c.items() if k != "trace"}, "expandable": expandable, **kept, "steps": steps, "peak_bytes": torch.cuda.max_memory_allocated(),
           "reserved_bytes": torch.cuda.max_memory_reserved(), "segments": stats["segment.all.current"], "inactive_split_bytes": stats["inactive_split_bytes.all.peak"],
           "retries": stats["num_alloc_retries"]}
    return row


def child(out: pathlib.Path, expandable: bool, until: float) -> None:
    import torch
    with open(out / "caching.jsonl", "a", encoding="utf-8") as f:
        for number, c in enumerate(CASES):
            if time.time() > until:
                break
            try:
                row = one(c, out, number, expandable)
            except Exception as problem:  # a case that fails says so, the others are taken
                row = {**c, "expandable": expandable, "error": f"{type(problem).__name__}: {problem}"[:300]}
            row |= {"torch": torch.__version__}
            f.write(json.dumps(row) + "\n")
            f.flush()


def fresh(out: pathlib.Path, path: pathlib.Path) -> None:
    """Every row of a file of forecasts in a process that nothing ran in before."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for number, row in enumerate(rows):
        env = {**os.environ, "PYTORCH_CUDA_ALLOC_CONF": f"expandable_segments:{row['expandable']}"}
        try:
            subprocess.run([sys.executable, __file__, str(out), "--row", str(path), str(number)], env=env, check=False, timeout=60)
        except subprocess.TimeoutExpired:
            print(f"row {number} took too long", file=sys.stderr)


def one_row(out: pathlib.Path, path: pathlib.Path, number: int) -> None:
    row = json.loads(path.read_text(encoding="utf-8").splitlines()[number])
    try:
        row = one(row, out, number, row["expandable"])
    except Exception as problem:  # a case that fails says so, the others are taken
        row |= {"error": f"{type(problem).__name__}: {problem}"[:300]}
    with open(out / "fresh.jsonl", "a", encoding="utf-8") as f:
        f.write(json.dumps(row) + "\n")


def main() -> None:
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    if len(sys.argv) > 3 and sys.argv[2] == "--fresh":
        fresh(out, pathlib.Path(sys.argv[3]))
        return
    if len(sys.argv) > 4 and sys.argv[2] == "--row":
        one_row(out, pathlib.Path(sys.argv[3]), int(sys.argv[4]))
        return
    if len(sys.argv) > 3:
        child(out, sys.argv[2] == "expandable", float(sys.argv[3]))
        return
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 220
    begin = time.time()
    for i, name in enumerate(("segments", "expandable")):
        env = {**os.environ, "PYTORCH_CUDA_ALLOC_CONF": f"expandable_segments:{name == 'expandable'}"}
        subprocess.run([sys.executable, __file__, str(out), name, str(begin + seconds * (i + 1) / 2)], env=env, check=False)


if __name__ == "__main__":
    main()
