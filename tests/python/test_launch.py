"""Launch files of plans, read back by parsers of their formats: the layout and the batch must be the plan's."""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from launching import GPU, megatron_parser, planned

import foretell


def test_torchtitan() -> None:
    for plan in planned("torchtitan", ["torchtitan"]):
        read, degrees = tomllib.loads(plan["launch"]["torchtitan"]), plan["parallel"]
        parallelism, training = read["parallelism"], read["training"]
        assert parallelism["data_parallel_shard_degree"] == degrees["dp"]
        assert parallelism["tensor_parallel_degree"] == degrees["tp"]
        assert parallelism["pipeline_parallel_degree"] == degrees["pp"]
        assert parallelism["context_parallel_degree"] == degrees["cp"]
        micro = parallelism.get("pipeline_parallel_microbatch_size", training["local_batch_size"])
        assert micro == plan["batch"] and training["global_batch_size"] == 64 and training["seq_len"] == 4096
        assert read["activation_checkpoint"]["mode"] == plan["recompute"]


def test_number_formats() -> None:
    """What is not said is trained in another format: torchtitan's default is bf16, DeepSpeed's fp32."""
    read = tomllib.loads(planned("torchtitan", ["torchtitan"], dtype="fp8")[0]["launch"]["torchtitan"])
    assert read["model"]["converters"] == ["quantize.linear.float8"]
    for dtype, said in (("fp32", "float32"), ("bf16", None)):
        read = tomllib.loads(planned("torchtitan", ["torchtitan"], dtype=dtype)[0]["launch"]["torchtitan"])
        assert read["training"].get("mixed_precision_param") == said and "model" not in read
    assert "# no key of torchtitan's says fp16" in planned("torchtitan", ["torchtitan"], dtype="fp16")[0]["launch"]["torchtitan"]
    for dtype, said in (("fp8", {"bf16"}), ("fp16", {"fp16"}), ("fp32", set())):
        assert json.loads(planned("deepspeed", ["deepspeed"], dtype=dtype)[0]["launch"]["deepspeed"]).keys() & {"bf16", "fp16"} == said


def test_uneven_nodes(tmp_path: Path) -> None:
    """Twelve GPUs on nodes of eight: as many processes as the plan has ranks, however they are started."""
    keys: dict[str, Any] = {"gpu": GPU, "gpus": 12, "global_batch": 48, "seq": 4096, "top": 1, "search": {"cp": 1}}
    launch = foretell.plan("llama-3-8b", framework="megatron", emit=["torchrun", "srun", "mpirun", "nemo"], **keys).plans[0]["launch"]
    assert launch["torchrun"].startswith("# on the last node --nproc-per-node=4\ntorchrun --nnodes=2 --nproc-per-node=8 ")
    assert launch["mpirun"].startswith("mpirun -np 12 --map-by ppr:8:node ")
    assert "nodes=2,\n        ntasks_per_node=6," in launch["nemo"]
    (tmp_path / "job.sh").write_text(launch["srun"])
    for name, says in (("scontrol", "echo node-1"), ("srun", 'for i in 0 1; do SLURM_NODEID=$i "$@"; done'), ("torchrun", 'echo "$@"')):
        (tmp_path / name).write_text(f"#!/bin/bash\n{says}\n")
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(
        ["bash", "-u", "job.sh"], cwd=tmp_path, capture_output=True, text=True, check=True,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_JOB_NODELIST": "node-[1-2]"},
    )  # fmt: skip
    first, last = done.stdout.splitlines()
    assert "--nproc-per-node=8 " in first and "--nproc-per-node=4 " in last and "--rdzv-endpoint=node-1:29500" in last
    for line in (first, last):
        assert megatron_parser().parse_args(line.split("pretrain_gpt.py ")[1].split()).global_batch_size == 48


def test_deepspeed() -> None:
    for plan in planned("deepspeed", ["deepspeed"]):
        read = json.loads(plan["launch"]["deepspeed"])
        sizes = read["train_micro_batch_size_per_gpu"], read["gradient_accumulation_steps"]
        assert sizes == (plan["batch"], plan["micro_batches"])
        assert read["train_batch_size"] == sizes[0] * sizes[1] * plan["parallel"]["dp"] == 64
        assert read["zero_optimization"]["stage"] == plan["parallel"]["zero"] and read["bf16"]["enabled"]


def test_accelerate() -> None:
    for plan in planned("fsdp", ["accelerate"]):
        lines = [each for each in plan["launch"]["accelerate"].splitlines() if not each.startswith("#")]
        read = {key.strip(): value.strip() for key, value in (each.split(":", 1) for each in lines)}
        assert read["num_processes"] == "16" and read["num_machines"] == "2" and read["fsdp_version"] == "2"
        assert read["fsdp_activation_checkpointing"] == ("true" if plan["recompute"] == "full" else "false")


def offloaded(framework: str, file: str, what: list[str]) -> str:
    """The first plan's file, with that on the host."""
    plan = planned(framework, [file], offload=what)[0]
    assert plan["offload"] == what
    return str(plan["launch"][file])


def test_what_lies_on_the_host() -> None:
    read = json.loads(offloaded("deepspeed", "deepspeed", ["optimizer"]))["zero_optimization"]
    assert read["offload_optimizer"]["device"] == "cpu" and "offload_param" not in read
    assert "nvme_path" not in read["offload_optimizer"]
    read = json.loads(offloaded("deepspeed", "deepspeed", ["optimizer_nvme"]))["zero_optimization"]
    assert (read["offload_optimizer"]["device"], read["offload_optimizer"]["nvme_path"]) == ("nvme", "/local_nvme")
    read = json.loads(offloaded("deepspeed", "deepspeed", ["parameters"]))["zero_optimization"]
    assert read["stage"] == 3 and read["offload_optimizer"]["device"] == read["offload_param"]["device"] == "cpu"
    assert "fsdp_offload_params: true\n" in offloaded("fsdp", "accelerate", ["parameters"])
    assert tomllib.loads(offloaded("torchtitan", "torchtitan", ["parameters"]))["training"]["enable_cpu_offload"] is True
    flags = shlex.split(offloaded("megatron", "megatron", ["optimizer", "activations"]).replace("\\\n", " "))[1:]
    megatron = megatron_parser().parse_args(flags)
    assert megatron.optimizer_cpu_offload and megatron.use_precision_aware_optimizer and megatron.optimizer_offload_fraction == 1
    assert megatron.cpu_offloading_num_layers == 28 and megatron.recompute_granularity is None
    words = shlex.split(offloaded("megatron", "bridge", ["optimizer", "activations"]).replace("\\\n", " "))[1:]
    bridge = dict(word.split("=", 1) for word in words)
    assert bridge["optimizer.optimizer_cpu_offload"] == bridge["model.cpu_offloading"] == "true"
    assert bridge["model.cpu_offloading_num_layers"] == "28" and bridge["model.pipeline_model_parallel_size"] == "1"


def test_cores_of_a_host_that_updates() -> None:
    """Eight processes of a node have an eighth of its cores each; torchrun alone would give them one thread."""
    for framework in ("megatron", "deepspeed"):
        assert offloaded(framework, "torchrun", ["optimizer"]).startswith("OMP_NUM_THREADS=$(($(nproc) / 8)) torchrun ")
        assert "export OMP_NUM_THREADS=$((SLURM_CPUS_ON_NODE / 8))\n" in offloaded(framework, "srun", ["optimizer"])
        assert " -x OMP_NUM_THREADS=$(($(nproc) / 8)) bash -c " in offloaded(framework, "mpirun", ["optimizer"])
    for file in ("torchrun", "srun", "mpirun"):
        assert "OMP_NUM_THREADS" not in offloaded("megatron", file, ["activations"])


def test_starting() -> None:
    plan = planned("megatron", ["torchrun", "srun", "mpirun"])[0]["launch"]
    assert "--nnodes=2 --nproc-per-node=8" in plan["torchrun"] and plan["torchrun"].startswith("torchrun ")
    assert "#SBATCH --nodes=2" in plan["srun"] and "--gpus-per-node=8" in plan["srun"]
    assert plan["mpirun"].startswith("mpirun -np 16 --map-by ppr:8:node -x MASTER_ADDR=$HEAD_NODE -x MASTER_PORT=29500 ")
    with pytest.raises(foretell.Error, match="did you mean") as caught:
        planned("megatron", ["megatorn"])
    assert caught.value.where == "emit"
    with pytest.raises(foretell.Error, match="cannot start a plan"):
        planned("megatron", ["accelerate"])


def test_open_mpi_says_who_a_process_is(tmp_path: Path) -> None:
    """Run by bash, with an mpirun that starts one process as rank 9 of 16: torch's env:// finds what it asks for, the program its flags."""
    mpirun = (
        'while [ "$1" != bash ]; do [ "$1" = -x ] && [[ "$2" == *=* ]] && export "$2"; shift; done\n'
        "export OMPI_COMM_WORLD_RANK=9 OMPI_COMM_WORLD_SIZE=16 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=8\n"
        '"$@"'
    )
    python3 = "echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $MASTER_ADDR $MASTER_PORT; printf '%s\\n' \"$@\""
    for name, says in (("mpirun", mpirun), ("python3", python3)):
        (tmp_path / name).write_text(f"#!/bin/bash\n{says}\n")
        (tmp_path / name).chmod(0o755)
    line = planned("megatron", ["mpirun"])[0]["launch"]["mpirun"]
    done = subprocess.run(
        ["bash", "-u", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=True,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "HEAD_NODE": "node-1", "MEGATRON_FLAGS": "--seed 7"},
    )  # fmt: skip
    assert done.stdout.splitlines() == ["9 16 1 8 node-1 29500", "pretrain_gpt.py", "--seed", "7"]


def test_a_slurm_script_starts_as_it_stands(tmp_path: Path) -> None:
    """Run by bash, with commands of Slurm that print what they get: srun gets torchrun's line with every flag of the plan."""
    for name, says in (("scontrol", "echo node-1"), ("srun", "printf '%s\\n' \"$@\"")):
        (tmp_path / name).write_text(f"#!/bin/bash\n{says}\n")
        (tmp_path / name).chmod(0o755)
    for plan in planned("megatron", ["srun", "megatron"]):
        (tmp_path / "job.sh").write_text(plan["launch"]["srun"])
        done = subprocess.run(
            ["bash", "-u", "job.sh"], cwd=tmp_path, capture_output=True, text=True, check=True,
            env={"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_JOB_NODELIST": "node-[1-2]"},
        )
        started, flags = done.stdout.split("pretrain_gpt.py\n")
        assert started.splitlines()[0] == "torchrun" and "--rdzv-endpoint=node-1:29500" in started
        alone = shlex.split(plan["launch"]["megatron"].replace("\\\n", " "))[1:]
        assert megatron_parser().parse_args(flags.splitlines()) == megatron_parser().parse_args(alone)


@pytest.mark.parametrize("model", ["llama-3-8b", "mixtral-8x7b"])
def test_bridge(model: str) -> None:
    """Overrides as Hydra reads them: KEY=VALUE, keys of the groups that ConfigContainer documents."""
    for plan in planned("megatron", ["bridge"], model):
        script, *words = shlex.split(plan["launch"]["bridge"].replace("\\\n", " "))
        read = dict(word.split("=", 1) for word in words)
        degrees = plan["parallel"]
        assert script == "$RECIPE" and {key.split(".")[0] for key in read} == {"model", "ddp", "optimizer", "dataset", "train", "mixed_precision"}
        assert int(read["model.tensor_model_parallel_size"]) == degrees["tp"]
        assert int(read["model.pipeline_model_parallel_size"]) == degrees["pp"]
        assert read["model.virtual_pipeline_model_parallel_size"] == (str(degrees["vpp"]) if degrees["vpp"] > 1 else "null")
        assert int(read["model.context_parallel_size"]) == degrees["cp"]
        assert read.get("model.cp_comm_type") == ("p2p" if degrees["cp"] > 1 else None)
        assert int(read["model.expert_model_parallel_size"]) == degrees["ep"]
        assert int(read["train.micro_batch_size"]) == plan["batch"] and int(read["train.global_batch_size"]) == 64
        assert int(read["model.seq_length"]) == int(read["dataset.sequence_length"]) == 4096
        assert read["model.recompute_granularity"] == {"none": "null"}.get(plan["recompute"], plan["recompute"])
        whole = plan["recompute"] == "full"  # what a recipe said of recomputation does not stay beside it
        assert (read["model.recompute_method"], read["model.recompute_num_layers"]) == (("uniform", "1") if whole else ("null", "null"))
        assert read["model.recompute_modules"] == "null" and read["mixed_precision"] == "bf16_mixed"
        assert read["ddp.overlap_param_gather"] == "false"


def test_bridge_trains_in_the_format_that_was_planned() -> None:
    for dtype, said in (("fp8", "bf16_with_fp8_delayed_scaling_mixed"), ("fp16", "fp16_mixed"), ("fp32", "null")):
        assert f"  mixed_precision={said} \\\n" in planned("megatron", ["bridge"], dtype=dtype)[0]["launch"]["bridge"]
    ahead = planned("megatron", ["bridge", "megatron"], parallel={"gather_overlap": True})[0]["launch"]
    assert "  ddp.overlap_param_gather=true \\\n" in ahead["bridge"] and "--overlap-param-gather" in ahead["megatron"]


def engine_parser(engine: str) -> argparse.ArgumentParser:
    """The flags that are written, with the types that the engines' own pages give them."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    wholes = {
        "vllm": "tensor-parallel-size pipeline-parallel-size data-parallel-size max-num-seqs max-num-batched-tokens",
        "sglang": "tp-size pp-size attn-dp-size ep-size max-running-requests chunked-prefill-size",
        "trtllm": "tp_size pp_size ep_size max_batch_size max_num_tokens",
    }
    for name in wholes[engine].split():
        parser.add_argument(f"--{name}", type=int)
    if engine == "vllm":
        parser.add_argument("--enable-expert-parallel", action="store_true")
        parser.add_argument("--gpu-memory-utilization", type=float)
        parser.add_argument("--quantization", choices=["fp8", "awq", "gptq"])
        parser.add_argument("--kv-cache-dtype", choices=["auto", "fp8", "fp8_e4m3", "fp8_e5m2"])
        parser.add_argument("--kv-transfer-config", type=json.loads)
        parser.add_argument("model")
    elif engine == "sglang":
        parser.add_argument("--model-path", required=True)
        parser.add_argument("--quantization", choices=["fp8", "awq", "gptq"])
        parser.add_argument("--kv-cache-dtype", choices=["auto", "fp8_e5m2", "fp8_e4m3"])
        parser.add_argument("--disaggregation-mode", choices=["null", "prefill", "decode"])
    else:
        parser.add_argument("--backend", choices=["pytorch", "trt"])
        parser.add_argument("--extra_llm_api_options")
        parser.add_argument("--enable_chunked_prefill", action="store_true")
        parser.add_argument("model")
    return parser


STARTS = {
    "vllm": ["vllm", "serve"],
    "sglang": ["python", "-m", "sglang.launch_server"],
    "trtllm": ["trtllm-serve", "serve"],
}
CHECKPOINTS = {"llama-3.1-8b": "meta-llama/Llama-3.1-8B", "mixtral-8x7b": "mistralai/Mixtral-8x7B-v0.1"}


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
@pytest.mark.parametrize("model", ["llama-3.1-8b", "mixtral-8x7b"])
def test_engines(engine: str, model: str) -> None:
    request = {
        "task": "plan_serve", "model": model, "gpu": GPU, "engine": engine, "gpus": 8, "rate": 12, "isl": 512, "osl": 64,
        "slo": {"ttft_ms": 400, "tpot_ms": 30}, "search": {"tp": [2, 4]}, "emit": [engine], "top": 20, "kv_dtype": "fp8",
    }  # fmt: skip
    (answer,) = foretell.batch([request], errors="raise")
    plans = answer.raw["plans"]
    assert plans
    for plan in plans:
        lines = [line for line in plan["launch"][engine].splitlines() if not line.startswith("#")]
        split = plan.get("disaggregated")
        sides = [split["prefill"], split["decode"]] if split else [plan["parallel"]]
        assert len(lines) == len(sides)
        for line, side in zip(lines, sides, strict=True):
            words = shlex.split(line)
            start = STARTS[engine]
            assert words[: len(start)] == start
            read = engine_parser(engine).parse_args(words[len(start) :])
            ranks = side["tp"] if engine == "vllm" else side["tp"] * side["dp"]
            assert (read.tensor_parallel_size if engine == "vllm" else read.tp_size) == ranks
            assert (read.model_path if engine == "sglang" else read.model) == CHECKPOINTS[model]
            experts = read.enable_expert_parallel if engine == "vllm" else (read.ep_size or 1) > 1
            assert experts == (side["ep"] > 1)
        numbers = [side.get("workers", plan.get("replicas")) for side in sides]
        for number in numbers:
            assert number == 1 or f"# {number} of these" in plan["launch"][engine]


def trtllm_lines(**keys: Any) -> list[tuple[argparse.Namespace, str]]:
    """Command lines of TensorRT-LLM, each with the options.yaml that is written below it."""
    request = {
        "task": "plan_serve", "model": "llama-3.1-8b", "gpu": GPU, "engine": "trtllm", "gpus": 4, "rate": 1, "isl": 20000, "osl": 64,
        "slo": {"ttft_ms": 5000, "tpot_ms": 50}, "search": {"tp": [1]}, "emit": ["trtllm"], "top": 20, **keys,
    }  # fmt: skip
    (answer,) = foretell.batch([request], errors="raise")
    out = []
    for plan in answer.raw["plans"]:
        for part in plan["launch"]["trtllm"].split("trtllm-serve serve ")[1:]:
            line, _, below = part.partition("\n")
            options = "\n".join(each[4:] for each in below.splitlines() if each.startswith("#   "))
            out.append((engine_parser("trtllm").parse_args(shlex.split(line)), options))
    assert out
    return out


def test_trtllm_takes_prompts_that_are_longer_than_its_iterations() -> None:
    # llmapi/llm.py, _check_arguments: a prompt beyond max_num_tokens (8192 by itself) is refused unless prompts are cut.
    for read, _ in trtllm_lines():
        assert read.max_num_tokens >= 20000 and not read.enable_chunked_prefill
    for read, _ in trtllm_lines(chunked_prefill=True):
        assert read.enable_chunked_prefill and (read.max_num_tokens or 8192) < 20000
    assert all((read.max_num_tokens or 8192) <= 16384 for read, _ in trtllm_lines(isl=512))


def test_trtllm_engines_that_prefill_do_not_overlap_iterations() -> None:
    # examples/disaggregated/README.md: context servers have disable_overlap_scheduler, both sides a transceiver.
    options = [below for _, below in trtllm_lines(rate=2, gpus=8) if "cache_transceiver_config" in below]
    assert options
    assert {"disable_overlap_scheduler: true" in below for below in options} == {True, False}
