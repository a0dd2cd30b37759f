"""Keys of requests, as keywords. Made by scripts/keys from the table in src/request: edit that, and run it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

__all__ = [
    "CLUSTER",
    "DTYPES",
    "PARALLEL",
    "ChooseRequest",
    "ChooseServeRequest",
    "InferRequest",
    "LargestRequest",
    "ModelRequest",
    "PlanRequest",
    "PlanServeRequest",
    "ScaleRequest",
    "ServeRequest",
]

PARALLEL = frozenset(
    (
        "tp",
        "pp",
        "vpp",
        "dp",
        "gpus",
        "cp",
        "ep",
        "etp",
        "zero",
        "sp",
        "schedule",
        "overlap",
        "tp_overlap",
        "deal",
        "cp_kind",
        "ulysses",
        "gather",
        "shard",
        "reshard",
        "gather_overlap",
        "overlap_p2p",
        "expert_dispatch",
        "expert_overlap",
        "expert_skew",
        "expert_capacity",
        "bucket_mib",
        "reduce_dtype",
        "gather_dtype",
    )
)
CLUSTER = frozenset(
    (
        "nodes",
        "gpus_per_node",
        "interconnect",
        "topology",
        "oversubscription",
        "leaf_nodes",
        "nccl",
        "tiers",
    )
)
DTYPES = frozenset(
    (
        "kv_dtype",
        "weights_dtype",
        "dtype",
        "moments_dtype",
        "reduce_dtype",
        "gather_dtype",
    )
)



class EveryKey(TypedDict, total=False):
    """What every request may say."""

    id: Any
    quantile: float
    weights_dtype: Any
    weight_kernel: Literal["any", "marlin", "cutlass", "awq", "gptq", "bitsandbytes", "torchao", "gguf"]
    gpu_layers: int
    cpu_experts: int
    host_memory_gbps: float
    kv_dtype: Any
    cache: Literal["paged", "static", "dynamic"]
    attention: Literal["flash", "eager", "sdpa", "flash1", "flash2", "flash3", "cudnn", "xformers", "triton"]
    execution: Literal["eager", "fused", "compile", "cuda_graph", "ideal", "torchscript"]
    pytorch: str
    stack: str | Mapping[str, Any]
    compile_scope: Literal["auto", "model", "layers", "loss"]
    fusions: Literal["recipe", "plain"]
    optimizer: Literal[
        "adamw",
        "adamw_foreach",
        "adamw_8bit",
        "adafactor",
        "sgd",
        "sgd_momentum",
        "muon",
        "lamb",
        "adamw_loop",
        "bert_adam",
        "none",
    ]
    master_weights: bool
    recompute_modules: Sequence[str]
    lora_rank: int
    lora: Mapping[str, Any]
    clip_grad: bool
    host: str | Mapping[str, Any]
    host_us_per_op: float
    layout: Literal["nhwc", "nchw"]
    images: int
    image_size: int | str | Sequence[int]
    frames: int
    source_tokens: int
    mtp: int
    read_as: str
    loss: Literal["model", "upcast", "narrow", "chunked", "fused", "fused_linear"]
    loss_positions: int
    packing: Any
    batching: Literal["pad", "bucket", "pack"]
    longer: Literal["cut", "drop"]
    pad_multiple: int
    power_cap_w: float
    ema: bool
    moments_dtype: Any
    optimizer_in_backward: bool
    expandable_segments: bool
    recompute_layers: int
    cuda_graph_modules: Sequence[str]
    remat_policy: Sequence[str]
    offload: Sequence[str]
    offload_layers: int
    host_gbps: float
    nvme_gbps: float
    trainer: Literal["sft", "dpo", "orpo", "grpo", "ppo"]
    reference: bool
    rollout_tokens: int
    rollout_longest: int
    rollout_samples: int
    rollout_sequences: int
    rollout_memory: float
    rollout_engine: Literal["server", "inline"]
    rollout_graphs: bool
    rollout_tp: int
    old_logprobs: bool
    cluster: Mapping[str, Any]
    detail: Literal["summary", "layers", "kernels"]
    advice: bool
    techniques: bool
    course: bool
    pictures: Sequence[str]
    loader: Mapping[str, Any]
    nodes: int
    gpus_per_node: int
    interconnect: str
    topology: str
    oversubscription: float
    leaf_nodes: int
    nccl: str
    tiers: Sequence[Any]


class LayoutKey(TypedDict, total=False):
    """What requests that have a layout may say."""

    parallel: Mapping[str, Any]
    tp: int
    pp: int
    vpp: int
    dp: int
    cp: int
    ep: int
    etp: int
    zero: int
    sp: bool
    schedule: Literal["gpipe", "1f1b", "interleaved", "zero_bubble", "dualpipe", "v_zero_bubble", "v_half", "v_min"]
    overlap: bool
    tp_overlap: bool
    deal: Literal["even", "rest"]
    cp_kind: Literal["ring", "ulysses", "gather", "pytorch"]
    ulysses: bool
    gather: Literal["layer", "parameter"]
    shard: int
    reshard: bool
    gather_overlap: bool
    overlap_p2p: bool
    expert_dispatch: Literal["copies", "once"]
    expert_overlap: bool
    expert_skew: float
    expert_capacity: float
    bucket_mib: float
    reduce_dtype: Any
    gather_dtype: Any


class TrafficKey(TypedDict, total=False):
    """What requests for a server under load may say."""

    seq: int
    lengths: str
    rollout_gpus: int
    rollout_async: bool
    rollout_age: int
    rollout_updates: int
    rollout_pack: int
    rollout_pack_logprobs: int
    rollout_offload: Sequence[str]
    rollout_refit: Literal["tensors", "buckets"]
    settings: Literal["recipe", "defaults"]
    length_range: Sequence[float]
    length_sigma: float
    burstiness: float
    requests: int
    warmup: int
    start: Literal["together", "steady"]
    think_ms: float
    max_num_seqs: int
    max_num_batched_tokens: int
    chunked_prefill: bool
    gpu_memory_utilization: float
    prefix_hit: float
    prompts: int
    speculative: Mapping[str, Any]
    draft: str | Mapping[str, Any]
    draft_tokens: int
    acceptance: float
    adapters: int
    adapter_rank: int
    scheduling: Literal["fcfs", "priority", "shortest", "fair", "max_min"]
    routing: Literal["round_robin", "least_loaded", "prefix_aware"]
    slo: Mapping[str, Any]
    seed: int


class PriceKey(TypedDict, total=False):
    """What choices among GPUs may say."""

    objective: Literal["cost", "time", "energy", "carbon", "knee"]
    deadline: Any
    budget: float
    provider: str | Sequence[str]
    price: Any
    pricing: Literal["on_demand", "spot", "reserved"]
    pue: float
    kwh_price: float
    carbon: float
    today: str
    deadline_days: float
    budget_usd: float
    prices: Any
    kwh_usd: float
    carbon_kg_per_kwh: float


class ModelRequest(EveryKey, LayoutKey, total=False):
    """What may be said of a forecast beside the model, the GPU, the task and the dtype."""

    batch: int
    global_batch: int
    seq: int
    recompute: Literal["none", "selective", "full"]
    lengths: Any
    rollout_gpus: int
    rollout_async: bool
    rollout_age: int
    rollout_updates: int
    rollout_pack: int
    rollout_pack_logprobs: int
    rollout_offload: Sequence[str]
    rollout_refit: Literal["tensors", "buckets"]
    tokens: float
    gpus: int | Literal["all"]


class ChooseRequest(EveryKey, LayoutKey, PriceKey, total=False):
    """What may be said of ``choose`` beside the arguments of its function."""

    batch: Any
    global_batch: int
    seq: int
    recompute: Any
    lengths: Any
    framework: str
    search: Mapping[str, Any]
    allow: Any
    constraints: Mapping[str, Any]
    failures: Mapping[str, Any]


class ChooseServeRequest(EveryKey, LayoutKey, TrafficKey, PriceKey, total=False):
    """What may be said of ``choose_serve`` beside the arguments of its function."""

    batch: int
    recompute: Literal["none", "selective", "full"]
    engine: str | Mapping[str, Any]
    isl: float
    osl: float
    rate: float


class InferRequest(EveryKey, LayoutKey, total=False):
    """What may be said of ``infer`` beside the arguments of its function."""

    global_batch: int
    recompute: Literal["none", "selective", "full"]
    lengths: Any
    rollout_gpus: int
    rollout_async: bool
    rollout_age: int
    rollout_updates: int
    rollout_pack: int
    rollout_pack_logprobs: int
    rollout_offload: Sequence[str]
    rollout_refit: Literal["tensors", "buckets"]
    tokens: float
    gpus: int | Literal["all"]
    engine: str | Mapping[str, Any]
    denoising_steps: int
    guidance: Literal["none", "batch", "twice"]
    tiling: bool


class LargestRequest(EveryKey, total=False):
    """What may be said of ``largest`` beside the arguments of its function."""

    batch: int
    global_batch: int
    seq: int
    recompute: Literal["none", "selective", "full"]
    lengths: Any
    rollout_gpus: int
    rollout_async: bool
    rollout_age: int
    rollout_updates: int
    rollout_pack: int
    rollout_pack_logprobs: int
    rollout_offload: Sequence[str]
    rollout_refit: Literal["tensors", "buckets"]


class PlanRequest(EveryKey, LayoutKey, total=False):
    """What may be said of ``plan`` beside the arguments of its function."""

    batch: Any
    seq: int
    recompute: Any
    lengths: Any
    tokens: float
    search: Mapping[str, Any]
    allow: Any
    objective: Literal["step_ms", "memory", "energy", "cost", "time"]
    constraints: Mapping[str, Any]
    top: int
    emit: str | Sequence[str]
    exhaustive: bool
    by_gpus: bool


class PlanServeRequest(EveryKey, LayoutKey, TrafficKey, total=False):
    """What may be said of ``plan_serve`` beside the arguments of its function."""

    tokens: float
    engine: str | Mapping[str, Any]
    isl: float
    osl: float
    rate: float
    search: Mapping[str, Any]
    top: int
    emit: str | Sequence[str]
    exhaustive: bool


class ScaleRequest(EveryKey, LayoutKey, total=False):
    """What may be said of ``scale`` beside the arguments of its function."""

    batch: int
    global_batch: int
    seq: int
    recompute: Literal["none", "selective", "full"]
    lengths: Any
    rollout_gpus: int
    rollout_async: bool
    rollout_age: int
    rollout_updates: int
    rollout_pack: int
    rollout_pack_logprobs: int
    rollout_offload: Sequence[str]
    rollout_refit: Literal["tensors", "buckets"]
    tokens: float


class ServeRequest(EveryKey, LayoutKey, TrafficKey, total=False):
    """What may be said of ``serve`` beside the arguments of its function."""

    batch: int
    global_batch: int
    recompute: Literal["none", "selective", "full"]
    tokens: float
    gpus: int | Literal["all"]
    turns: int
    replicas: int
    disaggregated: Mapping[str, Any]
    find: Literal["rate", "concurrency"]
