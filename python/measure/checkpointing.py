"""Time and memory of Llama-3-8B's blocks without checkpointing, with PyTorch's selective one, with full: checkpointing.py OUT

Selective is torchtitan's policy "op": results of attention and of every other product are kept, everything else of a block is
computed again. `fsdp` rows run under FSDP2 in a world of one (fp32 parameters, bf16 arithmetic, fp32 reduction), `compiled` ones
have every block compiled and the loss not. Times are medians of five steps between CUDA events, bytes the allocator's peaks.
"""
from __future__ import annotations

import collections
import gc
import json
import os
import pathlib
import sys
import typing

import torch
import torch.distributed as dist
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts
from transformers import LlamaConfig, LlamaForCausalLM

from steps import timed_step

VOCAB = 128256
ATEN = torch.ops.aten
KEPT = {
    ATEN.mm.default,
    ATEN._scaled_dot_product_cudnn_attention.default,
    ATEN._scaled_dot_product_efficient_attention.default,
    ATEN._scaled_dot_product_flash_attention.default,
}


class Case(typing.NamedTuple):
    layers: int
    batch: int
    seq: int
    recompute: str
    fsdp: bool
    compiled: bool


def contexts() -> object:
    """The policy of one block: counts its products in either pass."""
    products: collections.Counter = collections.Counter()

    def policy(context: object, function: object, *_args: object, **_kwargs: object) -> CheckpointPolicy:
        if function == ATEN.mm.default:
            products[context.is_recompute] += 1
            kept = products[context.is_recompute] % 2 == 1
        else:
            kept = function in KEPT
        return CheckpointPolicy.MUST_SAVE if kept else CheckpointPolicy.PREFER_RECOMPUTE

    return create_selective_checkpoint_contexts(policy)


def build(case: Case) -> torch.nn.Module:
    config = LlamaConfig(hidden_size=4096, intermediate_size=14336, num_hidden_layers=case.layers, num_attention_heads=32,
                         num_key_value_heads=8, vocab_size=VOCAB, max_position_embeddings=32768, tie_word_embeddings=False,
                         attn_implementation="sdpa", use_cache=False)
    with torch.device("cuda"):
        model = LlamaForCausalLM(config).train()
    if not case.fsdp:
        model = model.to(torch.bfloat16)
    layers = model.model.layers
    for i, layer in enumerate(layers):
        if case.recompute == "full":
            layer = checkpoint_wrapper(layer, preserve_rng_state=False)
        if case.recompute == "selective":
            layer = checkpoint_wrapper(layer, context_fn=contexts, preserve_rng_state=False)
        layers[i] = torch.compile(layer) if case.compiled else layer
    if case.fsdp:
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        for layer in layers:
            fully_shard(layer, mp_policy=policy)
        fully_shard(model, mp_policy=policy)
    return model


def measure(case: Case) -> dict:
    gc.collect()
    torch.cuda.empty_cache()
    torch._dynamo.reset()
    model = build(case)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    tokens = torch.randint(0, VOCAB, (case.batch, case.seq), device="cuda")

    def step() -> list[float]:
        return timed_step(lambda: model(input_ids=tokens, labels=tokens).loss, optimizer)

    step()
    step()
    torch.cuda.reset_peak_memory_stats()
    ms, forward, backward, update = sorted(step() for _ in range(5))[2]
    return {**case._asdict(), "ms": ms, "fw_ms": forward, "bw_ms": backward, "opt_ms": update,
            "peak_bytes": torch.cuda.max_memory_allocated(), "reserved_bytes": torch.cuda.max_memory_reserved()}


def cases() -> list[Case]:
    kinds = ("none", "selective", "full")
    return ([Case(4, 2, 8192, kind, fsdp, False) for fsdp in (False, True) for kind in kinds]
            + [Case(8, 2, 8192, kind, True, False) for kind in kinds[1:]]
            + [Case(4, 1, 32768, "full", True, False)]
            + [Case(4, 2, 8192, kind, True, True) for kind in kinds])


def main() -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511", RANK="0", WORLD_SIZE="1")
    dist.init_process_group("nccl", rank=0, world_size=1)
    with pathlib.Path(sys.argv[1]).open("a") as out:
        for case in cases():
            out.write(json.dumps(measure(case)) + "\n")
            out.flush()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
