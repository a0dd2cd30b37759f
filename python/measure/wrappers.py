"""What DDP and FSDP cost the host and the memory of a training step, in a world of one: wrappers.py OUT

GPT-2 and Llama of width 1024, too small to keep the GPU busy: what the host's clock says around forward, backward and update
is what the wrapper's hooks add to it. Medians of fifteen steps.
"""
from __future__ import annotations

import gc
import json
import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision, MixedPrecisionPolicy, fully_shard
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.nn.parallel import DistributedDataParallel
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

WAYS = ("plain", "ddp", "ddp_view", "fsdp1", "fsdp2")


def build(name: str, layers: int) -> torch.nn.Module:
    if name == "gpt2":
        return GPT2LMHeadModel(GPT2Config(n_embd=1024, n_layer=layers, n_head=16, use_cache=False))
    return LlamaForCausalLM(LlamaConfig(hidden_size=1024, intermediate_size=2816, num_hidden_layers=layers, num_attention_heads=16,
                                        num_key_value_heads=4, vocab_size=32000, use_cache=False))


def wrap(model: torch.nn.Module, way: str) -> torch.nn.Module:
    layers = model.transformer.h if hasattr(model, "transformer") else model.model.layers
    if way.startswith("ddp"):
        return DistributedDataParallel(model, device_ids=[0], gradient_as_bucket_view=way == "ddp_view")
    if way == "fsdp1":
        low = MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16)
        return FullyShardedDataParallel(model, auto_wrap_policy=ModuleWrapPolicy({type(layers[0])}), mixed_precision=low, device_id=0,
                                        use_orig_params=True)
    if way == "fsdp2":
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        for layer in layers:
            fully_shard(layer, mp_policy=policy)
        fully_shard(model, mp_policy=policy)
    return model


def measure(name: str, layers: int, batch: int, seq: int, way: str) -> dict:
    gc.collect()
    torch.cuda.empty_cache()
    with torch.device("cuda"):
        model = build(name, layers).train()
    params = sum(p.numel() for p in model.parameters())
    model = wrap(model if way.startswith("fsdp") else model.to(torch.bfloat16), way)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    tokens = torch.randint(0, 32000, (batch, seq), device="cuda")

    def step() -> list[float]:
        clock = [time.perf_counter()]
        loss = model(input_ids=tokens, labels=tokens).loss
        clock.append(time.perf_counter())
        loss.backward()
        clock.append(time.perf_counter())
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        clock.append(time.perf_counter())
        torch.cuda.synchronize()
        clock.append(time.perf_counter())
        return [1e3 * (clock[-1] - clock[0])] + [1e3 * (clock[i + 1] - clock[i]) for i in range(3)]

    for _ in range(4):
        step()
    torch.cuda.reset_peak_memory_stats()
    ms, forward, backward, update = sorted(step() for _ in range(15))[7]
    return {"model": name, "layers": layers, "batch": batch, "seq": seq, "way": way, "params": params, "ms": ms, "host_fw_ms": forward,
            "host_bw_ms": backward, "host_opt_ms": update, "peak_bytes": torch.cuda.max_memory_allocated()}


def main() -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29512", RANK="0", WORLD_SIZE="1")
    dist.init_process_group("nccl", rank=0, world_size=1)
    cases = [(name, layers, 1, 256, way) for name in ("gpt2", "llama") for layers in (8, 24) for way in WAYS]
    cases += [("gpt2", 24, 8, 1024, way) for way in WAYS[:3]]
    plain = 0
    with pathlib.Path(sys.argv[1]).open("a") as out:
        for case in cases:
            row = measure(*case)
            plain = row["peak_bytes"] if case[4] == "plain" else plain
            row["peak_over_plain_bytes"] = row.pop("peak_bytes") - plain
            out.write(json.dumps(row) + "\n")
            out.flush()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
