"""What adapters, 4-bit weights and DeepSpeed's stages cost a training step, by the host's clock and on the GPU: adapters.py OUT [again]

Llama of two widths in transformers, adapters by peft, 4-bit weights by bitsandbytes, ZeRO by DeepSpeed in a world of one. At width 2048 and 256
tokens the host paces the step, so that what it does per layer is what the clock says; at width 4096 and 2048 tokens the GPU does, so that the kernels'
own times are. Medians of nine steps; one more is profiled. A case that fails is a line with its error. `again` are other shapes, for a second look.
"""
from __future__ import annotations

import collections
import contextlib
import gc
import json
import os
import pathlib
import statistics
import sys
import time
import typing

import torch
from torch.profiler import ProfilerActivity, profile
from transformers import LlamaConfig, LlamaForCausalLM

SIZES = {2048: (5504, 16), 3072: (8192, 24), 4096: (14336, 32)}


class Case(typing.NamedTuple):
    """`adapter` is none, fp32 (products too), autocast (fp32 adapters, products lowered), bf16 or dora; `packed` nf4 or nothing."""

    width: int
    layers: int
    seq: int
    adapter: str = "none"
    dropout: float = 0.0
    checkpoint: str = "no"
    packed: str = ""
    zero: int = -1


def build(case: Case) -> torch.nn.Module:
    inner, heads = SIZES[case.width]
    config = LlamaConfig(hidden_size=case.width, intermediate_size=inner, num_hidden_layers=case.layers, num_attention_heads=heads,
                         num_key_value_heads=heads, vocab_size=32000, max_position_embeddings=8192, attn_implementation="sdpa", use_cache=False)
    with torch.device("cuda"):
        model = LlamaForCausalLM(config).to(torch.bfloat16).train()
    if case.packed:
        pack(model)
    if case.adapter != "none":
        model = adapt(model, case)
    if case.checkpoint != "no":
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": case.checkpoint == "reentrant"})
        if case.adapter != "none":
            model.enable_input_require_grads()
    return model


def pack(model: torch.nn.Module) -> None:
    """bitsandbytes' 4-bit layers for every product of a block, scales quantised again, as QLoRA has it."""
    import bitsandbytes

    for block in model.model.layers:
        for name, module in list(block.named_modules()):
            if isinstance(module, torch.nn.Linear):
                packed = bitsandbytes.nn.Linear4bit(module.in_features, module.out_features, bias=False, compute_dtype=torch.bfloat16,
                                                    compress_statistics=True, quant_type="nf4")
                packed.weight = bitsandbytes.nn.Params4bit(module.weight.data.cpu(), requires_grad=False, compress_statistics=True, quant_type="nf4")
                parent, leaf = name.rsplit(".", 1)
                setattr(block.get_submodule(parent), leaf, packed.cuda())
    model.is_loaded_in_4bit = True


def adapt(model: torch.nn.Module, case: Case) -> torch.nn.Module:
    import peft

    config = peft.LoraConfig(r=64, lora_alpha=16, lora_dropout=case.dropout, target_modules="all-linear", use_dora=case.adapter == "dora",
                             task_type="CAUSAL_LM")
    return peft.get_peft_model(model, config, autocast_adapter_dtype=case.adapter != "bf16").cuda()


def engine(model: torch.nn.Module, case: Case) -> tuple[torch.nn.Module, typing.Callable, typing.Callable]:
    """The model to call, its backward and its update."""
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-5, fused=True)
    if case.zero < 0:
        def update() -> None:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

        return model, lambda loss: loss.backward(), update
    import deepspeed

    config = {"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "bf16": {"enabled": True}, "zero_allow_untested_optimizer": True,
              "zero_optimization": {"stage": case.zero, "overlap_comm": True, "contiguous_gradients": True}, "gradient_clipping": 1.0,
              "steps_per_print": 100000}
    wrapped, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=config)
    return wrapped, wrapped.backward, wrapped.step


def measure(case: Case) -> dict:
    model = build(case)
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    called, backward, update = engine(model, case)
    tokens = torch.randint(0, 32000, (1, case.seq), device="cuda")
    lowered = torch.autocast("cuda", torch.bfloat16) if case.adapter in ("autocast", "dora") else contextlib.nullcontext()

    def step() -> list[float]:
        torch.cuda.synchronize()
        clock = [time.perf_counter()]
        with lowered:
            loss = called(input_ids=tokens, labels=tokens).loss
        clock.append(time.perf_counter())
        backward(loss)
        clock.append(time.perf_counter())
        update()
        clock.append(time.perf_counter())
        torch.cuda.synchronize()
        clock.append(time.perf_counter())
        return [1e3 * (clock[-1] - clock[0])] + [1e3 * (clock[i + 1] - clock[i]) for i in range(3)]

    for _ in range(3):
        step()
    torch.cuda.reset_peak_memory_stats()
    taken = [step() for _ in range(9)]
    peak = torch.cuda.max_memory_allocated()
    with profile(activities=[ProfilerActivity.CUDA]) as trace:
        step()
    kernels: collections.Counter = collections.Counter()
    counts: collections.Counter = collections.Counter()
    for event in trace.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            kernels[event.name[:90]] += event.device_time
            counts[event.name[:90]] += 1
    ms, forward, back, last = (statistics.median(column) for column in zip(*taken))
    return {"ms": ms, "host_fw_ms": forward, "host_bw_ms": back, "host_opt_ms": last, "trained": trained, "peak_bytes": peak,
            "busy_ms": sum(kernels.values()) / 1e3, "kernels": sum(counts.values()),
            "by_kernel": [[name, round(us / 1e3, 4), counts[name]] for name, us in kernels.most_common(14)]}


def cases() -> list[Case]:
    small = [Case(2048, 12, 256)] + [Case(2048, 12, 256, checkpoint=kind) for kind in ("reentrant", "hooks")]
    for adapter in ("autocast", "bf16", "fp32"):
        small += [Case(2048, 12, 256, adapter, checkpoint=kind) for kind in ("no", "reentrant", "hooks")]
    small += [Case(2048, 24, 256), Case(2048, 24, 256, "autocast"), Case(2048, 24, 256, "autocast", 0.05, "reentrant"), Case(2048, 12, 256, "dora")]
    small += [Case(2048, 12, 256, "bf16", packed="nf4"), Case(2048, 12, 256, "bf16", checkpoint="reentrant", packed="nf4")]
    large = [Case(4096, 4, 2048, "bf16", packed=packed) for packed in ("", "nf4")]
    large += [Case(4096, 4, 2048, "bf16", checkpoint="reentrant", packed="nf4"), Case(4096, 4, 256, "bf16", packed="nf4"), Case(4096, 4, 2048, "dora")]
    sharded = [Case(2048, layers, 256, zero=stage) for stage in (3, 2) for layers in (12, 24)]
    sharded += [Case(2048, 12, 256, checkpoint="reentrant", zero=3), Case(2048, 12, 256, "bf16", zero=3), Case(2048, 12, 256, "bf16", zero=2),
                Case(2048, 12, 256, "bf16", checkpoint="reentrant", zero=3)]
    return small + large + sharded


def again() -> list[Case]:
    """Other shapes: DoRA, 4-bit weights, DeepSpeed's hooks by the number of parameters."""
    dora = [Case(3072, 6, 512, "dora"), Case(3072, 6, 2048, "dora"), Case(4096, 3, 1024, "dora", checkpoint="reentrant"), Case(3072, 6, 2048, "autocast")]
    packed = [Case(3072, 6, seq, "autocast", packed="nf4") for seq in (256, 2048)]
    hooks = []
    for layers in (16, 8):
        for checkpoint in ("no", "reentrant"):
            for adapter in ("none", "bf16"):
                hooks += [Case(2048, layers, 256, adapter, checkpoint=checkpoint), Case(2048, layers, 256, adapter, checkpoint=checkpoint, zero=3)]
    return dora + packed + hooks


def main() -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29513", RANK="0", WORLD_SIZE="1", LOCAL_RANK="0")
    with pathlib.Path(sys.argv[1]).open("a") as out:
        for case in again() if sys.argv[2:] == ["again"] else cases():
            gc.collect()
            torch.cuda.empty_cache()
            try:
                row = measure(case)
            except Exception as error:  # noqa: BLE001 - one case must not end the others
                row = {"error": f"{type(error).__name__}: {error}"[:400]}
            out.write(json.dumps({**case._asdict(), **row}) + "\n")
            out.flush()


if __name__ == "__main__":
    main()
