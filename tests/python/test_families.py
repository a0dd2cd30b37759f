"""Every architecture of decoders: the parameters that transformers allocates, and both front ends on a small model."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
import torch
import transformers
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from export_models import CLASSES, ask, compare, program

TRAIN: dict[str, Any] = {"task": "train", "dtype": "bf16"}
REQUESTS = [TRAIN, {**TRAIN, "execution": "compile"}, {**TRAIN, "dtype": "amp_bf16"}]

# -- parameters --------------------------------------------------------------------------------------------------------

# Not decoders by default, or with eyes and ears that a forecast of the language model leaves out.
OTHERS = {"bert", "roberta", "xlm-roberta", "camembert", "whisper", "gemma3", "llama4"}
OTHERS |= {"bert-generation", "data2vec-text", "electra", "ernie", "megatron-bert", "rembert", "roberta-prelayernorm"}
OTHERS |= {"bart", "bigbird_pegasus", "blenderbot", "blenderbot-small", "marian", "mbart", "mvp", "pegasus", "plbart"}
OTHERS |= {"prophetnet"}
# Where the library's own defaults make no model.
NEEDED: dict[str, dict[str, Any]] = {
    "gpt_neo": {"attention_types": [[["global", "local"], 2]]},
    "nemotron": {"num_key_value_heads": 8},
    "reformer": {"is_decoder": True, "attn_layers": ["local", "lsh", "local", "lsh"]},
    "hunyuan_v1_dense": {"head_dim": 128},
    "hunyuan_v1_moe": {"head_dim": 128},
    "glm4_moe": {"head_dim": 128},
    "deepseek_v2": {"num_experts_per_tok": 2},
    "gemma3n_text": {"num_kv_shared_layers": 0},  # of four layers
    "qwen4_exp_text": {  # the class has no defaults of its indexer
        "indexer_n_heads": 16,
        "indexer_kv_heads": 1,
        "indexer_head_dim": 128,
        "indexer_budget": 2048,
        "indexer_compress_ratio": 4,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e7, "partial_rotary_factor": 0.25},
    },
    "zamba2": {"layers_block_type": ["mamba", "hybrid", "mamba", "hybrid"]},
}


def decoders() -> list[str]:
    """The types that Foretell reads and transformers knows as decoders."""
    said = subprocess.run([program(), "models", "--types"], capture_output=True, text=True, check=True).stdout.split()
    return [name for name in said if name in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and name not in OTHERS]


# transformers' own defaults build no model of these.
UNBUILDABLE = {"cohere_compass_text", "dbrx", "dots1", "lfm2_moe", "ministral"}
UNBUILDABLE |= {"longcat_flash"}  # it allocates weights of experts that do nothing, which no checkpoint has
# Norms, gates and corrections that their architectures leave out: within 1.5 % instead of exact.
NEAR = {"axk2", "beam", "doge", "hy_v4", "modernbert-decoder", "recurrent_gemma", "zaya"}
NEAR |= {"afmoe", "axk1", "bailing_hybrid", "bitnet", "diffllama", "gemma4_text", "gpt_neox_japanese", "laguna"}
# Their layers are counted by configs that are inside: tests/data/transformers_types.csv.
UNBUILDABLE |= {"blt", "gemma4_assistant", "gemma4_unified_assistant", "musicgen", "musicgen_melody"}
NEAR |= {"hrm_text", "inkling_text", "moshi"}  # within 0.001 %


def test_parameters_are_those_that_transformers_allocates() -> None:
    """With all keys said, and with as few as possible: then our defaults have to be the library's.

    Types that hold another config are held to whole ones (tests/data/transformers_types.csv).
    """
    names = [name for name in decoders() if name not in UNBUILDABLE]
    assert len(names) >= 60
    requests, expected = [], []
    for name in names:
        layers = transformers.AutoConfig.for_model(name).attribute_map.get("num_hidden_layers", "num_hidden_layers")
        few = {layers: 4, **NEEDED.get(name, {})}
        config = transformers.AutoConfig.for_model(name, **few)
        if getattr(config, "text_config", None) is not None:
            continue
        with torch.device("meta"):
            model = transformers.AutoModelForCausalLM.from_config(config)
        count = sum(each.numel() for each in model.parameters())
        for said in (json.loads(config.to_json_string(use_diff=False)), {"model_type": name, **few}):
            requests.append({"task": "forward", "gpu": "h200_sxm", "batch": 1, "seq": 32, "model": said})
            expected.append((name, count))
    for (name, count), answer in zip(expected, ask(requests), strict=True):
        got = answer.get("parameters", answer)
        assert got == (pytest.approx(count, rel=0.015) if name in NEAR else count), name


# -- kernels -----------------------------------------------------------------------------------------------------------

# Small enough to be exported in seconds, large enough that kernels and not the host take the time. The head's width is
# said where the class's default would be another.
SIZES = {
    "hidden_size": 3072,
    "intermediate_size": 8192,
    "num_attention_heads": 24,
    "num_key_value_heads": 8,
    "num_hidden_layers": 2,
    "vocab_size": 64000,
    "pad_token_id": 0,
}
SMALL: dict[str, tuple[str, dict[str, Any]]] = {
    "nemotron": ("NemotronForCausalLM", {}),
    "cohere": ("CohereForCausalLM", {"use_qk_norm": True}),
    "cohere2": ("Cohere2ForCausalLM", {"sliding_window_pattern": 2}),
    "granite": ("GraniteForCausalLM", {}),
    "helium": ("HeliumForCausalLM", {}),
    "smollm3": ("SmolLM3ForCausalLM", {"no_rope_layer_interval": 2}),
    "exaone4": ("Exaone4ForCausalLM", {"sliding_window_pattern": 2}),
    "ernie4_5": ("Ernie4_5ForCausalLM", {}),
    "hunyuan_v1_dense": ("HunYuanDenseV1ForCausalLM", {"head_dim": 128}),
    "apertus": ("ApertusForCausalLM", {}),
    "olmo": ("OlmoForCausalLM", {"clip_qkv": 8.0}),
    "glm4": ("Glm4ForCausalLM", {}),
    "glm4_moe": ("Glm4MoeForCausalLM", {"n_routed_experts": 64, "moe_intermediate_size": 1024, "use_qk_norm": True}),
    "granitemoe": ("GraniteMoeForCausalLM", {"intermediate_size": 2048, "num_local_experts": 16}),
    "ernie4_5_moe": ("Ernie4_5_MoeForCausalLM", {"moe_num_experts": 32, "moe_intermediate_size": 1536}),
    "llama4_text": (
        "Llama4ForCausalLM",
        {"intermediate_size": 4096, "intermediate_size_mlp": 8192, "interleave_moe_layer_step": 2, "no_rope_layer_interval": 2},
    ),
    "phimoe": ("PhimoeForCausalLM", {"intermediate_size": 4096, "input_jitter_noise": 0.01, "lm_head_bias": True}),
    "hunyuan_v1_moe": ("HunYuanMoEV1ForCausalLM", {"num_experts": 8, "moe_topk": 2, "head_dim": 128}),
}


@pytest.mark.parametrize("name", SMALL)
def test_both_front_ends_agree(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cls, more = SMALL[name]
    monkeypatch.setitem(CLASSES, name, cls)
    batch = 16 if name == "phimoe" else 4  # its router is a hundred small kernels, and the host decides at less
    found = compare(name, batch, 1024, REQUESTS, config={"model_type": name, **SIZES, **more})
    for request, each in zip(REQUESTS, found, strict=True):
        assert each.config["ok"], each.config
        assert each.exported["ok"], each.exported
        assert each.graph.warnings == ()
        said = (name, request, {key: f"{100 * error:+.2f} %" for key, error in each.errors.items()})
        assert each.errors["parameters"] == 0, said
        assert abs(each.errors["flops"]) < 0.01, said
        assert abs(each.errors["time"]) < 0.03, said
        assert abs(each.errors["memory"]) < 0.05, said
