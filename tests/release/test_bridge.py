"""Recipes of plans, read by Megatron-Bridge itself: its Hydra overrides, its configuration and what that refuses.

The overrides are applied to a configuration that is made here, as its recipes make theirs, and held to its own validation for the
plan's GPUs. Its package imports what only GPUs run (Transformer Engine, Mamba's kernels, data loaders of other models);
stand-ins without contents take their place, so that nothing of them is tried.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import shlex
import sys
import types
import warnings
from typing import Any

import pytest

import foretell

DENSE, EXPERTS = "llama-3-8b", "mixtral-8x7b"
ABSENT = {"transformer_engine", "mamba_ssm", "causal_conv1d", "fla", "nvidia_resiliency_ext", "wandb", "qwen_vl_utils", "timm",
          "open_clip", "mlflow", "modelopt", "datasets", "tensorboard", "megatron.energon"}  # fmt: skip


class Nothing(type):
    """A class that has whatever is asked of it."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing(name, (object,), {})

    def __getitem__(cls, _: Any) -> Any:
        return cls


class Absent(types.ModuleType):
    __path__: list[str] = []  # noqa: RUF012
    __version__ = "2.10.0"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing(name, (object,), {})


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        parts = name.split(".")
        if parts[0] in ABSENT or ".".join(parts[:2]) in ABSENT:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return Absent(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


@pytest.fixture(scope="module")
def bridge() -> Any:
    """Its module of configurations. What stands in for others is gone after the tests, and so is what imported it."""
    before, finder = set(sys.modules), Finder()
    sys.meta_path.append(finder)  # last: what is installed comes first
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import megatron.bridge.training.config as config
    yield config
    sys.meta_path.remove(finder)
    for name in set(sys.modules) - before:
        if name.split(".")[0] == "megatron" or isinstance(sys.modules[name], Absent):
            del sys.modules[name]


def recipe(config: Any, model: str) -> Any:
    """A configuration with the model's shape, one sequence and one GPU: the overrides say everything else."""
    from megatron.bridge.models import GPTModelProvider
    from megatron.bridge.training.tokenizers.config import TokenizerConfig

    experts = {"num_moe_experts": 8, "moe_router_topk": 2, "moe_ffn_hidden_size": 14336} if model == EXPERTS else {}
    return config.ConfigContainer(
        train=config.TrainingConfig(train_iters=10, global_batch_size=1, micro_batch_size=1),
        model=GPTModelProvider(
            num_layers=32, hidden_size=4096, ffn_hidden_size=14336, num_attention_heads=32, num_query_groups=8,
            seq_length=1024, vocab_size=32000, add_bias_linear=False, bf16=True, **experts,
        ),
        optimizer=config.OptimizerConfig(lr=1e-4, bf16=True),
        scheduler=config.SchedulerConfig(lr_decay_style="cosine", lr_warmup_iters=1),
        dataset=config.MockGPTDatasetConfig(
            random_seed=1, seq_length=1024, reset_position_ids=False, reset_attention_mask=False, eod_mask_loss=False,
            num_dataset_builder_threads=1,
        ),
        logger=config.LoggerConfig(),
        tokenizer=TokenizerConfig(tokenizer_type="NullTokenizer", vocab_size=1000),
        checkpoint=config.CheckpointConfig(),
    )  # fmt: skip


@pytest.mark.parametrize("model", [DENSE, EXPERTS])
@pytest.mark.parametrize(
    "keys",
    [{}, {"search": {"tp": 2, "pp": 2}}, {"search": {"cp": 2, "recompute": "full"}}, {"search": {"pp": 4, "vpp": 2}},
     {"offload": ["optimizer"]}, {"offload": ["activations"]}, {"gpus": 24, "global_batch": 96, "search": {"pp": 3}},
     {"gpus": 40, "global_batch": 120, "search": {"pp": 5}}, {"dtype": "fp8"},
     {"recompute_modules": ["layernorm", "mlp"], "search": {"recompute": "selective"}}],
)  # fmt: skip
def test_bridge(bridge: Any, model: str, keys: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    from megatron.bridge.training.utils.omegaconf_utils import process_config_with_overrides

    asked = {"gpus": 32, "global_batch": 128, **keys}
    gpus = asked["gpus"]
    monkeypatch.setattr(bridge, "get_world_size_safe", lambda: gpus)
    answer = foretell.plan(model, gpu="h100_sxm", seq=4096, emit=["bridge"], **asked)
    assert answer.plans
    for plan in answer.plans:
        words = shlex.split(plan["launch"]["bridge"].replace("\\\n", " "))
        read = process_config_with_overrides(recipe(bridge, model), cli_overrides=words[1:])
        read.validate()  # its own rules: what divides what, what goes with what
        degrees, m = plan["parallel"], read.model
        assert (m.tensor_model_parallel_size, m.pipeline_model_parallel_size) == (degrees["tp"], degrees["pp"])
        assert (m.context_parallel_size, m.expert_model_parallel_size) == (degrees["cp"], degrees["ep"])
        assert m.virtual_pipeline_model_parallel_size == (degrees["vpp"] if degrees["vpp"] > 1 else None)
        places = degrees["pp"] * max(degrees["vpp"], 1)
        ends, loss = 32 % places and 34 % places == 0, 32 % places and 33 % places == 0
        assert bool(ends) == m.account_for_embedding_in_pipeline_split and bool(ends or loss) == m.account_for_loss_in_pipeline_split
        assert bool(m.pipeline_model_parallel_layout) == bool(32 % places and not ends and not loss)
        assert m.sequence_parallel == degrees["sp"] and read.data_parallel_size == degrees["dp"]
        assert read.train.micro_batch_size == plan["batch"] and read.train.global_batch_size == asked["global_batch"]
        assert m.seq_length == read.dataset.sequence_length == 4096
        assert m.recompute_granularity == (None if plan["recompute"] == "none" else plan["recompute"])
        assert m.recompute_num_layers == (1 if plan["recompute"] == "full" else None)
        assert plan["recompute"] != "selective" or m.recompute_modules == asked.get("recompute_modules")
        precision = bridge.get_mixed_precision_config(read.mixed_precision)
        assert precision.bf16 and precision.fp8 == ("hybrid" if keys.get("dtype") == "fp8" else None)
        assert read.ddp.use_distributed_optimizer == read.optimizer.use_distributed_optimizer == (degrees["zero"] >= 1)
        assert read.optimizer.optimizer_cpu_offload == ("optimizer" in plan.get("offload", []))
        assert m.cpu_offloading == ("activations" in plan.get("offload", []))


def test_a_key_that_bridge_lacks_is_refused(bridge: Any) -> None:
    """The test above can fail: a name that no group has is an error of its parser."""
    from megatron.bridge.training.utils.omegaconf_utils import OverridesError, process_config_with_overrides

    with pytest.raises(OverridesError):
        process_config_with_overrides(recipe(bridge, DENSE), cli_overrides=["model.tensor_parallel=2"])
