"""Every key that changes a step is in a launch file, or the file and the answer say that it is not."""

from __future__ import annotations

import json
import shlex
import tomllib
from typing import Any

import pytest
from launching import GPU, megatron_parser

import foretell

Keys = dict[str, Any]
COMMENTED = ("megatron", "bridge", "nemo", "torchtitan", "accelerate")  # JSON has no remarks

OWN = {"torchtitan": "compile", "deepspeed": "eager", "accelerate": "eager"}  # what their plans are executed by, unasked

# What a request may say, once each. `parallel` and `lora` are objects of their own.
SAID: list[Keys] = [
    {"dtype": "fp16"}, {"dtype": "fp8"}, {"dtype": "fp32"},
    {"attention": "eager"}, {"attention": "cudnn"}, {"attention": "xformers"},
    {"optimizer": "sgd"}, {"optimizer": "lamb"}, {"optimizer": "adamw_8bit"}, {"optimizer": "adamw_foreach"}, {"optimizer": "muon"},
    {"moments_dtype": "bf16"}, {"clip_grad": True}, {"ema": True}, {"packing": 512},
    {"loss": "fused"}, {"loss": "chunked"}, {"loss": "fused_linear"}, {"expandable_segments": True}, {"mtp": 1},
    {"lora_rank": 16}, {"lora": {"rank": 16, "targets": ["q_proj"]}}, {"lora": {"rank": 16, "targets": ["linear_qkv"]}},
    {"lora": {"rank": 16, "dropout": 0.1}}, {"lora": {"rank": 16, "dora": True}}, {"lora": {"rank": 16, "train_embeddings": True}},
    {"lora_rank": 16, "weights_dtype": "nf4"}, {"offload": ["optimizer"]}, {"offload": ["activations"]}, {"offload": ["parameters"]},
    {"offload": ["paged_optimizer"]}, {"recompute": "full", "recompute_layers": 8}, {"recompute": "selective", "recompute_modules": ["core_attn", "layernorm"]},
    {"execution": "compile"}, {"execution": "eager"}, {"compile_scope": "model", "execution": "compile"},
    {"parallel": {"overlap": False}}, {"parallel": {"bucket_mib": 100}}, {"parallel": {"reduce_dtype": "bf16"}},
    {"parallel": {"gather_dtype": "bf16"}}, {"parallel": {"reshard": False}}, {"parallel": {"gather_overlap": True}},
]  # fmt: skip
EXPERTS: list[Keys] = [
    {"parallel": {"expert_capacity": 1.25, "expert_skew": 1.5}},
    {"parallel": {"expert_dispatch": "once"}},
    {"parallel": {"expert_overlap": True}},
]


def asked(framework: str, file: str, keys: Keys, model: str = "llama-3.2-1b") -> tuple[str, list[str]]:
    """The launch file of the best plan, and what the answer warns of."""
    answer = foretell.plan(model, gpu=GPU, gpus=8, global_batch=64, seq=2048, framework=framework, emit=[file], top=1, **keys)
    return answer.plans[0]["launch"][file], list(getattr(answer, "warnings", None) or [])


@pytest.mark.parametrize("file", ["megatron", "bridge", "nemo", "torchtitan", "deepspeed", "accelerate"])
def test_what_is_said_is_written_or_missed(file: str) -> None:
    framework = {"bridge": "nemo", "accelerate": "fsdp"}.get(file, file)
    plain, unasked = asked(framework, file, {})
    assert not any("no setting" in line for line in unasked), unasked
    seen = 0
    for keys in SAID:
        try:
            text, warnings = asked(framework, file, keys)
        except foretell.Error:
            continue  # no such plan of this framework's
        seen += 1
        lacks = [line for line in warnings if line.startswith(f'"{file}" has no setting for: ')]
        idle = any("has no effect" in line for line in warnings) or keys == {"execution": OWN.get(file)}
        same = [line for line in text.splitlines() if not line.startswith("#")] == plain.splitlines()
        if lacks and file in COMMENTED:
            assert "has no setting for: " in text or "has no flags for: " in text, (keys, text)
        assert lacks or idle or not same, f"{keys} is neither in the file nor missed:\n{text}"
    assert seen > 15, seen


@pytest.mark.parametrize("file", ["megatron", "bridge", "nemo"])
def test_experts(file: str) -> None:
    search = {"ep": 8, "tp": 1, "pp": 1}
    plain, _ = asked("nemo" if file != "megatron" else file, file, {"search": search}, "qwen3-30b-a3b")
    for keys in EXPERTS:
        text, warnings = asked("nemo" if file != "megatron" else file, file, {"search": search, **keys}, "qwen3-30b-a3b")
        lacks = any(line.startswith(f'"{file}" has no setting for: ') for line in warnings)
        assert lacks or not set(text.splitlines()) <= set(plain.splitlines()), (keys, text)


def test_settings_are_spelt_as_each_program_reads_them() -> None:
    text, _ = asked("megatron", "megatron", {**EXPERTS[0], "search": {"ep": 8}, "attention": "cudnn", "clip_grad": False}, "qwen3-30b-a3b")
    read = megatron_parser().parse_args(shlex.split(text.replace("\\\n", " "), comments=True)[1:])
    assert read.moe_expert_capacity_factor == 1.25 and read.attention_backend == "fused" and read.clip_grad == 0
    text, _ = asked("torchtitan", "torchtitan", {"optimizer": "adamw_foreach", "clip_grad": True, "parallel": {"reshard": False}})
    config = tomllib.loads(text)
    assert config["optimizer"] == {"name": "AdamW", "implementation": "foreach"} and config["training"]["max_norm"] == 1
    assert config["parallelism"]["fsdp_reshard_after_forward"] == "never"
    text, _ = asked("deepspeed", "deepspeed", {"parallel": {"bucket_mib": 100, "reduce_dtype": "fp32"}})
    read_back = json.loads(text)
    assert read_back["communication_data_type"] == "fp32" and read_back["zero_optimization"]["reduce_bucket_size"] == 100 * 2**20 // 4
    text, _ = asked("nemo", "bridge", {"lora": {"rank": 8, "targets": ["linear_qkv"], "dropout": 0.1}, "clip_grad": True})
    for line in ("'peft.target_modules=[linear_qkv]'", "peft.dropout=0.1", "peft.dim=8", "optimizer.clip_grad=1"):
        assert f"  {line} \\\n" in text, (line, text)
    text, _ = asked("nemo", "nemo", {"moments_dtype": "bf16", "recompute": "full", "recompute_layers": 4})
    compile(text, "plan.py", "exec")
    assert "recipe.optim.config.exp_avg_dtype = torch.bfloat16\n" in text and 'model.recompute_method = "block"\n' in text


def test_engines() -> None:
    def started(engine: str, **keys: Any) -> tuple[str, list[str]]:
        answer = foretell.plan_serve("llama-3.1-8b", gpu=GPU, gpus=1, rate=1, isl=256, osl=32, slo={"ttft_ms": 2000, "tpot_ms": 100},
                                     engine=engine, emit=[engine], top=1, **keys)  # fmt: skip
        return answer.plans[0]["launch"][engine], list(getattr(answer, "warnings", None) or [])

    flags = {"vllm": "--gpu-memory-utilization 0.8", "sglang": "--mem-fraction-static 0.8", "trtllm": "--kv_cache_free_gpu_memory_fraction 0.8"}
    for engine, flag in flags.items():
        assert flag in started(engine, gpu_memory_utilization=0.8)[0]
        text, warnings = started(engine, weights_dtype="int4")
        assert "has no flag for: weights of fewer bits" in text and any("has no flag for" in line for line in warnings)
    assert "--no-enable-chunked-prefill" in started("vllm", chunked_prefill=False)[0]
    assert "--chunked-prefill-size -1" in started("sglang", chunked_prefill=False)[0]
    assert "--enable-lora --max-loras 4 --max-lora-rank 16" in started("vllm", adapters=4)[0]
    assert "--enable-lora --max-loras-per-batch 4 --max-lora-rank 16" in started("sglang", adapters=4)[0]
    assert "has no flag for: adapters" in started("trtllm", adapters=4)[0]
    for engine, says in (("vllm", '"method": "draft_model", "model": "meta-llama/Llama-3.2-1B"'), ("sglang", "STANDALONE --speculative-draft-model-path meta-llama/Llama-3.2-1B")):
        text, warnings = started(engine, draft="llama-3.2-1b", acceptance=0.7)
        assert says in text and not any("no flag" in line for line in warnings)
    assert "--dtype float16" in started("vllm", dtype="fp16")[0]
