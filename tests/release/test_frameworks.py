"""Launch files of plans, read by the frameworks themselves: their own classes and parsers, as they install from PyPI.

tests/python/test_launch.py reads the same files by parsers written from documentation; here DeepSpeed, torchtitan,
Accelerate, transformers, Megatron-Core, vLLM and SGLang say what they make of them. Nothing runs: no GPU is needed, and
nothing is fetched but the packages (scripts/python_env frameworks; python/requirements-frameworks.txt has the versions).
Megatron-LM's arguments.py is not on PyPI: its flags are held to the fields of Megatron-Core's TransformerConfig, which is
where it puts them. Megatron-Bridge is in test_bridge.py. TensorRT-LLM is not tried: what PyPI has of it fetches a wheel
from NVIDIA's own index.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import shlex
import warnings
from pathlib import Path
from typing import Any

import pytest

import foretell

GPU = "h100_sxm"
DENSE, EXPERTS = "llama-3-8b", "mixtral-8x7b"


def planned(framework: str, emit: str, model: str = DENSE, gpus: int = 16, **keys: Any) -> list[dict[str, Any]]:
    answer = foretell.plan(model, gpu=GPU, gpus=gpus, global_batch=64, seq=4096, framework=framework, emit=[emit], **keys)
    assert answer.plans
    return [dict(each) for each in answer.plans]


def served(engine: str, model: str, **keys: Any) -> list[tuple[list[str], dict[str, Any]]]:
    """Command lines, each with the layout that it is to start."""
    request = {
        "task": "plan_serve", "model": model, "gpu": GPU, "engine": engine, "gpus": 8, "rate": 12, "isl": 512, "osl": 64,
        "slo": {"ttft_ms": 400, "tpot_ms": 30}, "search": {"tp": [2, 4]}, "emit": [engine], "top": 20, **keys,
    }  # fmt: skip
    (answer,) = foretell.batch([request], errors="raise")
    out = []
    for plan in answer.raw["plans"]:
        split = plan.get("disaggregated")
        sides = [split["prefill"], split["decode"]] if split else [plan["parallel"]]
        lines = [shlex.split(line) for line in plan["launch"][engine].splitlines() if not line.startswith("#")]
        out += list(zip(lines, sides, strict=True))
    assert out
    return out


# -- training ------------------------------------------------------------------------------------------------------------


def test_deepspeed(monkeypatch: pytest.MonkeyPatch) -> None:
    from deepspeed.runtime.config import DeepSpeedConfig

    for plan in [*planned("deepspeed", "deepspeed"), *planned("deepspeed", "deepspeed", offload=["optimizer_nvme"])]:
        # The batch is checked against the ranks, which a process alone does not have: its class asks the mesh.
        ranks = plan["parallel"]["dp"]

        class Mesh:
            def get_data_parallel_world_size(self, ranks: int = ranks) -> int:
                return ranks

        monkeypatch.setattr("deepspeed.runtime.config.dist.get_rank", lambda: 0)
        read = DeepSpeedConfig(json.loads(plan["launch"]["deepspeed"]), mpu=Mesh())
        assert read.world_size == ranks and read.train_batch_size == 64
        assert read.train_micro_batch_size_per_gpu == plan["batch"]
        assert read.gradient_accumulation_steps == plan["micro_batches"]
        assert read.zero_config.stage == plan["parallel"]["zero"]
        if "offload" in plan:  # stage3.py joins a folder to the path: without one it stops
            assert read.zero_config.offload_optimizer.device == "nvme" and read.zero_config.offload_optimizer.nvme_path


def test_transformers_takes_the_deepspeed_file(tmp_path: Path) -> None:
    """`--deepspeed plan.json` of transformers' own arguments, as data/frameworks says it is run."""
    from transformers import HfArgumentParser, TrainingArguments

    plan = planned("deepspeed", "deepspeed")[0]
    file = tmp_path / "plan.json"
    file.write_text(plan["launch"]["deepspeed"])
    parser = HfArgumentParser(TrainingArguments)
    known = {action.dest for action in parser._actions}
    assert {"deepspeed", "per_device_train_batch_size", "gradient_accumulation_steps"} <= known
    read = parser.parse_args(["--output_dir", str(tmp_path), "--deepspeed", str(file)])
    from transformers.integrations.deepspeed import HfDeepSpeedConfig

    config = HfDeepSpeedConfig(read.deepspeed if isinstance(read.deepspeed, dict) else str(read.deepspeed))
    assert config.is_zero3() == (plan["parallel"]["zero"] == 3)


def test_torchtitan(tmp_path: Path) -> None:
    import tomllib

    from torchtitan.config import ConfigManager, JobConfig

    plans = planned("torchtitan", "torchtitan") + planned("torchtitan", "torchtitan", "llama-3-70b", 64, search={"pp": [2, 4]})
    for plan in plans:
        told = tomllib.loads(plan["launch"]["torchtitan"])
        groups = {field.name: field for field in dataclasses.fields(JobConfig)}
        for group, keys in told.items():  # a key that it does not know would only be a warning
            known = {field.name for field in dataclasses.fields(groups[group].default_factory)}
            assert set(keys) <= known, set(keys) - known
        file = tmp_path / "plan.toml"
        file.write_text(plan["launch"]["torchtitan"])
        read, degrees = ConfigManager().parse_args(["--job.config_file", str(file)]), plan["parallel"]
        p = read.parallelism
        assert p.data_parallel_replicate_degree * p.data_parallel_shard_degree == degrees["dp"]
        assert (p.tensor_parallel_degree, p.context_parallel_degree) == (degrees["tp"], degrees["cp"])
        assert p.pipeline_parallel_degree == degrees["pp"] and read.training.global_batch_size == 64
        assert read.activation_checkpoint.mode == plan["recompute"]
        if degrees["pp"] > 1:  # PyTorch's own list of schedules
            from torch.distributed.pipelining.schedules import get_schedule_class

            assert get_schedule_class(p.pipeline_parallel_schedule)
            assert read.training.local_batch_size % p.pipeline_parallel_microbatch_size == 0


@pytest.mark.parametrize("gpus", [8, 16])
def test_accelerate(tmp_path: Path, gpus: int) -> None:
    from accelerate.commands.config.config_args import load_config_from_file
    from accelerate.commands.launch import _validate_launch_command, launch_command_parser

    for plan in planned("fsdp", "accelerate", gpus=gpus):
        file = tmp_path / "plan.yaml"
        file.write_text(plan["launch"]["accelerate"])
        read = load_config_from_file(str(file))
        assert read.distributed_type.value == "FSDP" and read.num_processes == gpus and read.mixed_precision == "bf16"
        args = launch_command_parser().parse_args(["--config_file", str(file), "train.py"])
        args, _, _ = _validate_launch_command(args)
        assert args.use_fsdp and args.num_processes == gpus and int(args.fsdp_version) == 2
        assert str(args.fsdp_reshard_after_forward).lower() == ("true" if plan["parallel"]["zero"] == 3 else "false")
        assert str(args.fsdp_activation_checkpointing).lower() == ("true" if plan["recompute"] == "full" else "false")


# Flags of Megatron-LM that its core_transformer_config_from_args puts under another name, or that are not the model's.
RENAMED = {"num_experts": "num_moe_experts", "group_query_attention": None, "num_virtual_stages_per_pipeline_rank": None,
           "swiglu": None, "disable_bias_linear": None, "untie_embeddings_and_output_weights": None, "seq_length": None,
           "max_position_embeddings": None, "micro_batch_size": None, "global_batch_size": None, "fp8_format": "fp8",
           "position_embedding_type": None, "transformer_impl": None, "attention_backend": None,
           "use_distributed_optimizer": None, "overlap_grad_reduce": None, "overlap_param_gather": None}  # fmt: skip


@pytest.mark.parametrize("model", [DENSE, EXPERTS])
def test_megatron_core(model: str) -> None:
    from megatron.core.transformer import TransformerConfig

    fields = {field.name for field in dataclasses.fields(TransformerConfig)}
    for plan in planned("megatron", "megatron", model) + planned("megatron", "megatron", model, 64, search={"pp": [4], "tp": [2]}):
        words = shlex.split(plan["launch"]["megatron"].replace("\\\n", " "))[1:]
        given: dict[str, Any] = {}
        for word in words:
            if word.startswith("--"):
                name = word[2:].replace("-", "_")
                given[name] = True
            else:
                given[name] = int(word) if word.isdigit() else word
        keys: dict[str, Any] = {}
        for name, value in given.items():
            to = RENAMED.get(name, name)
            if to is None:
                continue
            assert to in fields, f"--{name.replace('_', '-')} has no field in Megatron-Core"
            keys[to] = value
        if given.get("num_virtual_stages_per_pipeline_rank"):
            keys["virtual_pipeline_model_parallel_size"] = given["num_virtual_stages_per_pipeline_rank"]
            keys["pipeline_dtype"] = __import__("torch").bfloat16
        if keys.get("pipeline_model_parallel_size", 1) > 1:
            keys["pipeline_dtype"] = __import__("torch").bfloat16
        keys["add_bias_linear"] = not given.get("disable_bias_linear", False)
        keys["gated_linear_unit"] = bool(given.get("swiglu"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read = TransformerConfig(**keys)  # checks in __post_init__ what goes with what
        degrees = plan["parallel"]
        assert read.tensor_model_parallel_size == degrees["tp"] and read.pipeline_model_parallel_size == degrees["pp"]
        assert (read.num_moe_experts or 0) == (8 if model == EXPERTS else 0) and read.num_query_groups == 8


# -- serving -------------------------------------------------------------------------------------------------------------

CHECKPOINTS = {"llama-3.1-8b": "meta-llama/Llama-3.1-8B", "mixtral-8x7b": "mistralai/Mixtral-8x7B-v0.1"}
MODELS = pytest.mark.parametrize("model", list(CHECKPOINTS))
KEYS = pytest.mark.parametrize("keys", [{}, {"kv_dtype": "fp8"}, {"dtype": "fp8", "max_num_seqs": 64}])


@MODELS
@KEYS
def test_vllm(model: str, keys: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    import vllm.platforms
    from vllm.platforms.cpu import CpuPlatform

    monkeypatch.setattr(vllm.platforms, "_current_platform", CpuPlatform())  # its wheel looks for a GPU and finds none
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    parser = AsyncEngineArgs.add_cli_args(FlexibleArgumentParser())
    for words, side in served("vllm", model, **keys):
        assert words[:2] == ["vllm", "serve"]
        read = parser.parse_args(["--model", *words[2:]])  # `serve` takes the model by its place
        args = AsyncEngineArgs.from_cli_args(read)
        assert args.model == CHECKPOINTS[model] and args.tensor_parallel_size == side["tp"]
        assert args.data_parallel_size == side.get("dp", 1) and args.enable_expert_parallel == (side.get("ep", 1) > 1)
        assert args.kv_cache_dtype == ("fp8" if keys.get("kv_dtype") else "auto")
        if "max_num_seqs" in keys:
            assert args.max_num_seqs == 64 and args.quantization == "fp8"


@MODELS
@KEYS
def test_sglang(model: str, keys: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    from sglang.srt.server_args import ServerArgs

    parser = argparse.ArgumentParser()
    ServerArgs.add_cli_args(parser)
    for words, side in served("sglang", model, **keys):
        assert words[:3] == ["python", "-m", "sglang.launch_server"]
        read = parser.parse_args(words[3:])
        assert read.model_path == CHECKPOINTS[model] and read.tp_size == side["tp"] * side.get("dp", 1)
        assert read.ep_size == side.get("ep", 1)
    assert "deprecated" not in capsys.readouterr().err
