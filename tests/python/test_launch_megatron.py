"""What starts plans of Megatron-Core: flags of Megatron-LM and programs of NeMo, with the plan's layout and the model that was planned."""

from __future__ import annotations

import argparse
import shlex
import sys
import types
from typing import Any

import pytest
from launching import GPU, megatron_parser, planned

import foretell


@pytest.mark.parametrize("model", ["llama-3-8b", "mixtral-8x7b"])
def test_megatron(model: str) -> None:
    for plan in planned("megatron", ["megatron"], model):
        script, *flags = shlex.split(plan["launch"]["megatron"].replace("\\\n", " "))
        read, degrees = megatron_parser().parse_args(flags), plan["parallel"]
        assert script == "pretrain_gpt.py"
        assert read.tensor_model_parallel_size == degrees["tp"] and read.pipeline_model_parallel_size == degrees["pp"]
        assert (read.context_parallel_size or 1) == degrees["cp"] and (read.expert_model_parallel_size or 1) == degrees["ep"]
        assert (read.num_virtual_stages_per_pipeline_rank or 1) == degrees["vpp"]
        assert read.sequence_parallel == degrees["sp"] and read.use_distributed_optimizer == (degrees["zero"] == 1)
        assert (read.micro_batch_size, read.global_batch_size, read.seq_length) == (plan["batch"], 64, 4096)
        assert (read.recompute_granularity or "none") == plan["recompute"]
        assert read.bf16 and read.num_layers == 32 and read.num_query_groups == 8 and read.swiglu
        assert read.num_experts == (8 if model == "mixtral-8x7b" else None)


def test_megatron_says_what_a_model_is_made_of() -> None:
    """Latent attention, layers without experts, norms of queries and keys, and stages that do not divide the layers."""
    answer = foretell.plan(
        "deepseek-v3", gpu=GPU, gpus=512, global_batch=512, seq=4096, emit=["megatron", "srun"], top=1,
        search={"tp": 2, "pp": 32, "cp": 1, "batch": 1, "recompute": "full"},
    )  # fmt: skip
    launch = answer.plans[0]["launch"]
    read = megatron_parser().parse_args(shlex.split(launch["megatron"].replace("\\\n", " "))[1:])
    assert read.multi_latent_attention and (read.q_lora_rank, read.kv_lora_rank) == (1536, 512) and read.kv_channels is None
    assert (read.qk_head_dim, read.qk_pos_emb_head_dim, read.v_head_dim) == (128, 64, 128) and read.qk_layernorm
    freq = read.moe_layer_freq  # Megatron evaluates it
    assert freq == "([0]*3+[1]*58)" and f"--moe-layer-freq {freq}\n" in launch["srun"]
    stages = read.pipeline_model_parallel_layout.split("|")
    layers = [int(stage.split("*")[1].rstrip("L")) if "*" in stage else stage.count("t") for stage in stages]
    assert len(stages) == 32 and sum(layers) == 61 and stages[0].startswith("E") and stages[-1].endswith("L")
    plain = planned("megatron", ["megatron"])[0]["launch"]["megatron"]
    assert "layout" not in plain and "latent" not in plain and "qk-layernorm" not in plain
    for model in ("bert-base", "resnet-50"):
        with pytest.raises(foretell.Error, match="which trains decoders"):
            foretell.plan(model, gpu=GPU, gpus=8, global_batch=64, framework="megatron", emit=["megatron"])


def flags_of(model: str, gpus: int = 64, **keys: Any) -> tuple[argparse.Namespace, str]:
    """Megatron-LM's flags of the best plan, and what is remarked of them."""
    answer = foretell.plan(model, gpu="h200_sxm", gpus=gpus, global_batch=128, seq=4096, emit=["megatron"], top=1, search={"cp": 1}, **keys)
    text = answer.plans[0]["launch"]["megatron"]
    script, *flags = shlex.split(text.replace("\\\n", " "), comments=True)
    assert script == "pretrain_gpt.py"
    return megatron_parser().parse_args(flags), text.split("pretrain_gpt.py \\\n")[0]


def test_megatron_starts_the_model_that_was_planned() -> None:
    """What its parser would otherwise make of it: dropouts of a tenth, no bias, every layer alike."""
    read, remark = flags_of("llama-3-8b")
    assert (read.attention_dropout, read.hidden_dropout, remark) == (0, 0, "") and not read.add_qkv_bias and read.window_size is None
    read, remark = flags_of("qwen2.5-7b")
    assert read.disable_bias_linear and read.add_qkv_bias and not remark
    read, remark = flags_of("pythia-6.9b")
    assert read.rotary_percent == 0.25 and "side by side" in remark
    read, remark = flags_of("gpt-oss-20b")
    assert not remark and not read.disable_bias_linear and read.softmax_type == "learnable" and read.window_size == "128,0" and eval(read.window_attn_skip_freq) == [1, 0] * 12
    read, remark = flags_of("smollm3-3b")
    assert eval(read.no_rope_freq) == [0, 0, 0, 1] * 9 and not remark
    read, remark = flags_of("gemma-2-9b")
    assert read.apply_layernorm_1p and "capped scores and logits" in remark and "its activation" in remark
    read, remark = flags_of("nemotron-4-15b")
    assert read.squared_relu and read.apply_layernorm_1p and not read.swiglu
    read, remark = flags_of("llama-4-maverick", gpus=1024)
    assert eval(read.moe_layer_freq) == [0, 1] * 24 and "attention in chunks" in remark and "sees" in remark
    read, remark = flags_of("qwen3-30b-a3b")
    assert read.qk_layernorm and read.moe_router_score_function is None and not remark
    read, remark = flags_of("deepseek-v3", gpus=512)
    assert read.moe_router_score_function == "sigmoid" and read.moe_router_enable_expert_bias and not remark
    assert (read.moe_router_num_groups, read.moe_router_group_topk) == (8, 4)


@pytest.mark.parametrize("model", ["mamba2-2.7b", "nemotron-h-8b", "jamba-v0.1", "kimi-linear-48b-a3b", "lfm2-1.2b", "recurrentgemma-9b"])
def test_megatron_starts_no_other_model(model: str) -> None:
    """Layers that GPTModel does not have: flags would start another model, silently."""
    keys: dict[str, Any] = {"gpu": "h200_sxm", "gpus": 64, "global_batch": 128, "seq": 4096, "framework": "megatron"}
    with pytest.raises(foretell.Error, match="which this model") as caught:
        foretell.plan(model, emit=["megatron"], **keys)
    assert caught.value.where == "emit"
    if model not in ("mamba2-2.7b", "nemotron-h-8b"):
        return
    one = {"tp": 1, "pp": 1, "cp": 1, "batch": 1, "recompute": "full"}
    launch = foretell.plan(model, emit=["bridge", "nemo", "srun", "torchrun", "mpirun"], search=one, **keys).plans[0]["launch"]
    for file in ("srun", "torchrun", "mpirun"):
        assert "$PROGRAM\n" in launch[file] and "pretrain_gpt.py" not in launch[file]


def test_modules_that_run_again() -> None:
    """Named modules are a way of recomputation of their own: searched beside none and all, and started as they were planned."""
    keys: dict[str, Any] = {"gpu": GPU, "gpus": 16, "global_batch": 64, "seq": 4096, "top": 1, "recompute_modules": ["mlp", "layernorm"]}
    (plan,) = foretell.plan("llama-3-8b", emit=["megatron", "bridge", "nemo"], search={"recompute": "selective", "cp": 1}, **keys).plans
    (none,) = foretell.plan("llama-3-8b", search={"recompute": ["none", "selective"], "cp": 1}, **keys).plans
    assert plan["recompute"] == "selective" and none["recompute"] == "none" and plan["step_ms"] > none["step_ms"]
    read = megatron_parser().parse_args(shlex.split(plan["launch"]["megatron"].replace("\\\n", " "))[1:])
    assert read.recompute_granularity == "selective" and set(read.recompute_modules) == {"mlp", "layernorm"}
    assert "  'model.recompute_modules=[layernorm,mlp]' \\\n" in plan["launch"]["bridge"]
    assert 'model.recompute_modules = ["layernorm", "mlp"]\n' in plan["launch"]["nemo"]
    with pytest.raises(foretell.Error, match="are Megatron-Core's"):
        foretell.plan("llama-3-8b", framework="torchtitan", **keys)


def test_modules_in_graphs() -> None:
    """What a plan replays from CUDA graphs is said where it starts; where it has none, nothing is."""
    keys: dict[str, Any] = {"gpu": GPU, "gpus": 16, "global_batch": 64, "seq": 4096, "top": 1, "emit": ["megatron", "bridge", "nemo"]}

    def launch(modules: list[str], recompute: str = "none") -> tuple[argparse.Namespace, dict[str, str]]:
        (plan,) = foretell.plan("mixtral-8x7b", search={"recompute": recompute, "cp": 1}, cuda_graph_modules=modules, **keys).plans
        files = plan["launch"]
        return megatron_parser().parse_args(shlex.split(files["megatron"].replace("\\\n", " "))[1:]), files

    read, files = launch(["attn", "moe_router", "moe_preprocess"])
    assert read.cuda_graph_impl == "transformer_engine" and read.te_rng_tracker and not read.no_check_for_nan_in_loss_and_grad
    assert read.cuda_graph_modules == ["attn", "moe_router", "moe_preprocess"]
    assert "  'model.cuda_graph_scope=[attn,moe_router,moe_preprocess]' \\\n" in files["bridge"]
    assert 'model.cuda_graph_scope = ["attn", "moe_router", "moe_preprocess"]\n' in files["nemo"]
    read, files = launch(["full_iteration"], "full")
    assert read.cuda_graph_impl == "full_iteration" and read.cuda_graph_modules is None and read.no_check_for_nan_in_loss_and_grad
    assert "  model.cuda_graph_impl=local \\\n  'model.cuda_graph_scope=[full_iteration]' \\\n" in files["bridge"]
    read, files = launch(["attn"], "full")  # layers that run again are not captured
    assert read.cuda_graph_impl is None and "cuda_graph" not in files["bridge"] + files["nemo"]


def test_adapters() -> None:
    """Of adapters recipes that fine-tune, with their rank; Megatron-LM's own program has none, and is said to."""
    keys: dict[str, Any] = {"gpu": GPU, "gpus": 8, "global_batch": 8, "seq": 2048, "lora_rank": 16, "top": 1, "search": {"cp": 1}}
    launch = foretell.plan("llama-3-8b", emit=["megatron", "bridge", "nemo"], **keys).plans[0]["launch"]
    assert launch["megatron"].startswith("# pretrain_gpt.py has no flags for: adapters\n") and "  peft.dim=16 \\\n" in launch["bridge"]
    assert ".finetune_recipe(" in launch["nemo"] and "recipe.peft.dim = 16\n" in launch["nemo"] and "use_distributed" not in launch["nemo"]


class Recipe(dict):  # type: ignore[type-arg]
    """Takes whatever a program of NeMo's gives it, by its path."""

    def __init__(self, told: dict[str, Any], path: str = "") -> None:
        super().__init__()
        self.__dict__.update(told=told, path=path)

    def __getattr__(self, name: str) -> Any:
        return Recipe(self.told, f"{self.path}{name}.")

    def __setattr__(self, name: str, value: Any) -> None:
        self.told[self.path + name] = value

    def __call__(self, *_: Any, **keys: Any) -> Any:
        self.told.update({f"{self.path}{key}": value for key, value in keys.items()})
        return self


# Parameters of MegatronStrategy.__init__ (NeMo 2.5, nemo/lightning/pytorch/strategies/megatron_strategy.py), of which there are more.
STRATEGY = set(
    "tensor_model_parallel_size pipeline_model_parallel_size num_layers_in_first_pipeline_stage num_layers_in_last_pipeline_stage "
    "virtual_pipeline_model_parallel_size context_parallel_size sequence_parallel expert_model_parallel_size expert_tensor_parallel_size "
    "account_for_embedding_in_pipeline_split account_for_loss_in_pipeline_split pipeline_dtype pipeline_model_parallel_layout".split()
)


@pytest.mark.parametrize("model", ["llama-3-8b", "mixtral-8x7b"])
def test_nemo(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program is run, with modules in NeMo's place that write down what they are told."""
    plans = planned("nemo", ["nemo"], model)
    told: dict[str, Any] = {}
    recipes = "nemo.collections.llm.recipes"
    for name in ("nemo", "nemo.collections", "nemo.collections.llm", recipes, f"{recipes}.precision", "nemo_run", "torch"):
        module = types.ModuleType(name)
        module.__getattr__ = lambda key, name=name: Recipe(told, f"{name}.{key}.")  # type: ignore[method-assign]
        monkeypatch.setitem(sys.modules, name, module)
    named = types.ModuleType(f"{recipes}.llama3_8b")
    named.pretrain_recipe = Recipe(told)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, f"{recipes}.llama3_8b", named)
    monkeypatch.setattr(sys, "argv", ["plan.py", "llama3_8b"])
    monkeypatch.setenv("SBATCH_ACCOUNT", "a")
    monkeypatch.setenv("SBATCH_PARTITION", "p")
    for plan in plans:
        told.clear()
        exec(compile(plan["launch"]["nemo"], "plan.py", "exec"), {"__name__": "__main__"})
        degrees, at = plan["parallel"], "trainer.strategy."
        assert {key.removeprefix(at) for key in told if key.startswith(at) and ".ddp." not in key} == STRATEGY
        assert (told["num_nodes"], told["num_gpus_per_node"]) == (2, 8)
        assert told[at + "tensor_model_parallel_size"] == degrees["tp"] and told[at + "pipeline_model_parallel_size"] == degrees["pp"]
        assert told[at + "virtual_pipeline_model_parallel_size"] == (degrees["vpp"] if degrees["vpp"] > 1 else None)
        assert told[at + "context_parallel_size"] == degrees["cp"] and told[at + "expert_model_parallel_size"] == degrees["ep"]
        assert told[at + "sequence_parallel"] == degrees["sp"] and told["optim.config.use_distributed_optimizer"] == (degrees["zero"] > 0)
        assert (told["data.micro_batch_size"], told["data.global_batch_size"]) == (plan["batch"], 64)
        assert told["data.seq_length"] == told["model.config.seq_length"] == 4096
        assert told["model.config.recompute_granularity"] == {"none": None}.get(plan["recompute"], plan["recompute"])
        assert told["nemo_run.SlurmExecutor.nodes"] == 2 and told["nemo_run.SlurmExecutor.gpus_per_node"] == 8
        assert "nemo_run.run.executor" in told
