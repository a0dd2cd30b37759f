"""Training steps of transformers with Liger's kernels and without: liger.py OUT PART, or liger.py --requests PART for the steps as requests.

PART is `liger`, `plain` (the same models as transformers has them; in a process of its own, since Liger's norms and rotary
embeddings replace those of the whole module) or `loop` (head and loss alone, in chunks: kernels by name, and what the host takes).

Each case is a model of transformers made from its configuration in bf16, fused AdamW, tokens without a mask, the loss told how
many tokens there are as Trainer does; with adapters, peft's under autocast. Medians of seven steps between CUDA events, one more
step profiled: what kernels took by name of Liger's kernel, how many were launched. Bytes are the allocator's peak.
"""
from __future__ import annotations

import contextlib
import gc
import json
import pathlib
import sys
import time
import typing

LLAMA_1B = {"model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32,
            "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 128256, "tie_word_embeddings": True, "max_position_embeddings": 8192}
LLAMA_8B = {"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
            "num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": False, "max_position_embeddings": 8192}
QWEN2_1B = {"model_type": "qwen2", "hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 28, "num_attention_heads": 12,
            "num_key_value_heads": 2, "vocab_size": 151936, "tie_word_embeddings": True, "max_position_embeddings": 8192}
QWEN3_06B = {"model_type": "qwen3", "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28, "num_attention_heads": 16,
             "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936, "tie_word_embeddings": True, "max_position_embeddings": 8192}
QWEN3_4B = {"model_type": "qwen3", "hidden_size": 2560, "intermediate_size": 9728, "num_hidden_layers": 36, "num_attention_heads": 32,
            "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936, "tie_word_embeddings": True, "max_position_embeddings": 16384}
MISTRAL_7B = {"model_type": "mistral", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
              "num_key_value_heads": 8, "vocab_size": 32768, "tie_word_embeddings": False, "sliding_window": None,
              "max_position_embeddings": 8192}
GEMMA_2B = {"model_type": "gemma", "hidden_size": 2048, "intermediate_size": 16384, "num_hidden_layers": 18, "num_attention_heads": 8,
            "num_key_value_heads": 1, "head_dim": 256, "vocab_size": 256000, "tie_word_embeddings": True, "max_position_embeddings": 8192}


class Case(typing.NamedTuple):
    name: str
    config: dict
    batch: int
    seq: int
    liger: bool = True
    recompute: bool = False
    rank: int = 0


CASES = [
    Case("llama 1B", LLAMA_1B, 4, 2048),
    Case("llama 1B", LLAMA_1B, 4, 2048, liger=False),
    Case("llama 1B", LLAMA_1B, 1, 128),
    Case("llama 1B", LLAMA_1B, 1, 128, liger=False),
    Case("qwen2 1.5B", QWEN2_1B, 4, 2048),
    Case("qwen3 0.6B", QWEN3_06B, 8, 1024),
    Case("qwen3 0.6B", QWEN3_06B, 8, 1024, liger=False),
    Case("qwen3 4B", QWEN3_4B, 1, 8192, recompute=True),
    Case("gemma 2B", GEMMA_2B, 2, 2048),
    Case("mistral 7B", MISTRAL_7B, 1, 4096),
    Case("llama 8B", LLAMA_8B, 2, 2048, rank=16),
    Case("llama 8B", LLAMA_8B, 2, 2048, liger=False, rank=16),
    Case("llama 8B", LLAMA_8B, 4, 4096, rank=16, recompute=True),
    Case("qwen2 1.5B", QWEN2_1B, 4, 2048, liger=False),
    Case("gemma 2B", GEMMA_2B, 2, 2048, liger=False),
    Case("mistral 7B", MISTRAL_7B, 1, 4096, liger=False),
]
PARTS = {"cross_entropy": "loss", "rms_norm": "norms", "rope": "rotary", "swiglu": "gates", "geglu": "gates", "element_mul": "scaled"}


def request(case: Case) -> dict:
    asked = {"task": "train", "model": case.config, "gpu": "h200_sxm", "dtype": "bf16", "batch": case.batch, "seq": case.seq,
             "attention": "sdpa", "optimizer": "adamw", "stack": "liger" if case.liger else "hf_trainer"}
    if case.recompute:
        asked["recompute"] = "full"
    if case.rank:
        asked["lora"] = {"rank": case.rank, "targets": "all-linear", "dropout": 0}
    return asked


def build(case: Case) -> object:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM
    config = AutoConfig.for_model(**case.config, use_cache=False)
    config._attn_implementation = "sdpa"
    with torch.device("cuda"):
        torch.set_default_dtype(torch.bfloat16)
        model = AutoModelForCausalLM.from_config(config).train()
        torch.set_default_dtype(torch.float32)
    model = model.to(torch.bfloat16)
    if case.liger:
        from liger_kernel.transformers import _apply_liger_kernel_to_instance
        _apply_liger_kernel_to_instance(model=model)
    if case.recompute:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    if case.rank:
        from peft import LoraConfig, get_peft_model
        model = get_peft_model(model, LoraConfig(r=case.rank, lora_alpha=2 * case.rank, lora_dropout=0.0, target_modules="all-linear",
                                                 task_type="CAUSAL_LM"))
    return model


def measure(case: Case) -> dict:
    import torch
    from torch.profiler import ProfilerActivity, profile

    from steps import timed_step
    gc.collect()
    torch.cuda.empty_cache()
    model = build(case)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-5, fused=True)
    tokens = torch.randint(0, case.config["vocab_size"], (case.batch, case.seq), device="cuda")
    count = torch.tensor(case.batch * (case.seq - 1), device="cuda")

    def forward() -> torch.Tensor:
        with torch.autocast("cuda", torch.bfloat16) if case.rank else contextlib.nullcontext():
            return model(input_ids=tokens, labels=tokens, num_items_in_batch=count).loss

    for _ in range(3):
        timed_step(forward, optimizer)
    torch.cuda.reset_peak_memory_stats()
    ms, forward_ms, backward_ms, update_ms = sorted(timed_step(forward, optimizer) for _ in range(7))[3]
    peak = torch.cuda.max_memory_allocated()
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        timed_step(forward, optimizer)
    kernels = [e for e in profiler.events() if e.device_type == torch.autograd.DeviceType.CUDA and not e.name.startswith("Mem")]
    parts: dict[str, float] = {}
    for event in kernels:
        part = next((part for word, part in PARTS.items() if word in event.name), None)
        if part:
            parts[part] = round(parts.get(part, 0) + event.device_time / 1e3, 4)
    return {"ms": round(ms, 3), "fw_ms": round(forward_ms, 3), "bw_ms": round(backward_ms, 3), "opt_ms": round(update_ms, 3),
            "busy_ms": round(sum(e.device_time for e in kernels) / 1e3, 3), "kernels": len(kernels), "parts_ms": parts, "peak_bytes": peak}


def loop(tokens: int, hidden: int, vocabulary: int) -> dict:
    """Head and loss in chunks, forward and back: kernels by name with times and how often, the host's time of the forward pass."""
    import torch
    from liger_kernel.ops import LigerFusedLinearCrossEntropyFunction
    from torch.profiler import ProfilerActivity, profile
    stream = torch.randn(tokens, hidden, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    head = (torch.randn(vocabulary, hidden, device="cuda", dtype=torch.bfloat16) / 64).requires_grad_()
    labels = torch.randint(0, vocabulary, (tokens,), device="cuda")

    def forward() -> torch.Tensor:
        return LigerFusedLinearCrossEntropyFunction.apply(stream, head, labels)[0] / 7

    def once() -> list[float]:
        torch.cuda.synchronize()
        begun = time.perf_counter()
        loss = forward()
        issued = time.perf_counter()
        torch.cuda.synchronize()
        ended = time.perf_counter()
        loss.backward()
        torch.cuda.synchronize()
        return [issued - begun, ended - begun, time.perf_counter() - ended]

    for _ in range(3):
        once()
    times = sorted(once() for _ in range(9))[4]
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        once()
    kernels: dict[str, list] = {}
    for event in profiler.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            row = kernels.setdefault(event.name[:80], [0, 0.0])
            row[0] += 1
            row[1] = round(row[1] + event.device_time, 2)
    return {"host_ms": round(times[0] * 1e3, 3), "fw_ms": round(times[1] * 1e3, 3), "bw_ms": round(times[2] * 1e3, 3), "kernels": kernels}


LOOPS = [(128, 2048, 128256), (512, 2048, 128256), (2048, 2048, 128256), (8192, 2048, 128256), (8192, 1024, 151936), (2048, 1024, 151936),
         (4096, 2048, 256000), (4096, 4096, 32768), (16384, 4096, 128256), (8192, 5120, 152064), (1024, 3584, 152064), (8192, 768, 50304)]


def main() -> None:
    part = sys.argv[2]
    if sys.argv[1] == "--requests":
        for case in CASES:
            if case.liger == (part == "liger"):
                print(json.dumps(request(case)))
        return
    with pathlib.Path(sys.argv[1]).open("a", encoding="utf-8") as out:
        for sizes in LOOPS if part == "loop" else []:
            out.write(json.dumps({"tokens": sizes[0], "hidden": sizes[1], "vocabulary": sizes[2], **loop(*sizes)}) + "\n")
        for case in CASES:
            if part == "loop" or case.liger != (part == "liger"):
                continue
            row = {**case._asdict(), "config": case.config["model_type"], "request": request(case)}
            try:
                row.update(measure(case))
            except Exception as error:  # one that a version of a library refuses leaves the others
                row["error"] = f"{type(error).__name__}: {error}"[:300]
            out.write(json.dumps(row) + "\n")
            out.flush()


if __name__ == "__main__":
    main()
