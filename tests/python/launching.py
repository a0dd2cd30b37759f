"""Plans with their launch files, and Megatron-LM's flags as its parser would read them."""

from __future__ import annotations

import argparse
from typing import Any

import foretell

GPU = "h100_sxm"


def planned(framework: str, emit: list[str], model: str = "llama-3-8b", **keys: Any) -> list[dict[str, Any]]:
    answer = foretell.plan(
        model, gpu=GPU, gpus=16, global_batch=64, seq=4096, framework=framework, emit=emit, search={"cp": [1, 2]}, **keys
    )
    assert answer.plans
    return [dict(each) for each in answer.plans]


def megatron_parser() -> argparse.ArgumentParser:
    """The flags that are written, with the types that megatron/training/arguments.py gives them."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in (
        "tensor-model-parallel-size pipeline-model-parallel-size num-virtual-stages-per-pipeline-rank "
        "context-parallel-size expert-model-parallel-size expert-tensor-parallel-size micro-batch-size "
        "global-batch-size seq-length max-position-embeddings num-layers hidden-size ffn-hidden-size "
        "num-attention-heads num-query-groups kv-channels recompute-num-layers num-experts moe-router-topk "
        "moe-ffn-hidden-size moe-shared-expert-intermediate-size cpu-offloading-num-layers q-lora-rank kv-lora-rank "
        "qk-head-dim qk-pos-emb-head-dim v-head-dim moe-router-num-groups moe-router-group-topk mtp-num-layers rotary-base "
        "ddp-bucket-size"
    ).split():
        parser.add_argument(f"--{name}", type=int)
    for name in (
        "sequence-parallel use-distributed-optimizer overlap-grad-reduce overlap-param-gather bf16 fp16 "
        "group-query-attention swiglu disable-bias-linear untie-embeddings-and-output-weights moe-grouped-gemm "
        "account-for-embedding-in-pipeline-split account-for-loss-in-pipeline-split optimizer-cpu-offload "
        "use-precision-aware-optimizer overlap-cpu-optimizer-d2h-h2d multi-latent-attention qk-layernorm "
        "qk-l2-norm apply-layernorm-1p quick-geglu squared-relu add-qkv-bias rotary-interleaved "
        "moe-router-enable-expert-bias tp-comm-overlap no-overlap-p2p-communication grad-reduce-in-bf16 "
        "overlap-moe-expert-parallel-comm cross-entropy-loss-fusion"
    ).split():
        parser.add_argument(f"--{name}", action="store_true")
    for name in ("sgd-momentum", "clip-grad", "moe-expert-capacity-factor", "optimizer-offload-fraction", "attention-dropout", "hidden-dropout", "rotary-percent"):
        parser.add_argument(f"--{name}", type=float)
    for name in ("moe-layer-freq", "window-attn-skip-freq", "no-rope-freq", "window-size"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--optimizer", choices=["adam", "sgd", "muon", "dist_muon", "lion", "soap", "adaptive_muon"])
    for name in ("exp-avg-dtype", "exp-avg-sq-dtype"):
        parser.add_argument(f"--{name}", choices=["fp32", "fp16", "bf16", "fp8"])
    parser.add_argument("--moe-flex-dispatcher-backend", choices=["deepep", "hybridep", "ncclep"])
    parser.add_argument("--softmax-type", choices=["learnable", "vanilla", "off-by-one"])
    parser.add_argument("--moe-router-score-function", choices=["softmax", "sigmoid"])
    parser.add_argument("--pipeline-model-parallel-layout")
    parser.add_argument("--recompute-granularity", choices=["full", "selective"])
    parser.add_argument("--recompute-modules", nargs="*")
    parser.add_argument("--cuda-graph-impl", choices=["none", "local", "transformer_engine", "full_iteration"])
    parser.add_argument("--cuda-graph-modules", nargs="+", choices=["attn", "mlp", "moe", "moe_router", "moe_preprocess", "mamba"])
    for name in ("te-rng-tracker", "no-check-for-nan-in-loss-and-grad"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--recompute-method", choices=["uniform", "block"])
    parser.add_argument("--cp-comm-type", choices=["p2p", "a2a", "all_gather", "a2a+p2p"])
    parser.add_argument("--position-embedding-type", choices=["learned_absolute", "rope", "none"])
    parser.add_argument("--normalization", choices=["LayerNorm", "RMSNorm"])
    parser.add_argument("--fp8-format", choices=["e4m3", "hybrid"])
    parser.add_argument("--fp4-format", choices=["e2m1"])
    parser.add_argument("--moe-token-dispatcher-type", choices=["allgather", "alltoall", "flex"])
    parser.add_argument("--transformer-impl", choices=["local", "transformer_engine"])
    parser.add_argument("--attention-backend", choices=["flash", "fused", "unfused", "local", "auto"])
    return parser
