"""The cases that models.py measures: architectures of transformers at real widths with few layers.

    python models_cases.py > cases.json

Most important first: training and inference of every architecture, then serving, then the variants.
"""

from __future__ import annotations

import json
import sys
from typing import Any

Case = dict[str, Any]

# name: class, config, (batch, seq) in training and inference
TEXT: dict[str, tuple[str, dict[str, Any], tuple[int, int]]] = {
    "llama": (
        "LlamaForCausalLM",
        dict(
            hidden_size=3072,
            intermediate_size=8192,
            num_hidden_layers=3,
            num_attention_heads=24,
            num_key_value_heads=8,
            vocab_size=128256,
            tie_word_embeddings=True,
        ),
        (4, 1024),
    ),
    "gpt2": ("GPT2LMHeadModel", dict(n_embd=1024, n_head=16, n_layer=4, n_positions=2048), (8, 1024)),
    "mistral": ("MistralForCausalLM", dict(num_hidden_layers=3), (2, 2048)),
    "qwen2": (
        "Qwen2ForCausalLM",
        dict(
            hidden_size=1536,
            intermediate_size=8960,
            num_hidden_layers=4,
            num_attention_heads=12,
            num_key_value_heads=2,
            vocab_size=151936,
            tie_word_embeddings=True,
        ),
        (4, 1024),
    ),
    "qwen3": (
        "Qwen3ForCausalLM",
        dict(
            hidden_size=2560,
            intermediate_size=9728,
            num_hidden_layers=4,
            num_attention_heads=32,
            num_key_value_heads=8,
            head_dim=128,
            vocab_size=151936,
            tie_word_embeddings=True,
        ),
        (4, 1024),
    ),
    "gemma2": ("Gemma2ForCausalLM", dict(num_hidden_layers=4), (4, 1024)),
    "mixtral": ("MixtralForCausalLM", dict(num_hidden_layers=2), (4, 1024)),
    "bert": ("BertForMaskedLM", dict(num_hidden_layers=6), (16, 512)),
    "phi3": ("Phi3ForCausalLM", dict(num_hidden_layers=4, sliding_window=2047), (4, 1024)),
    "opt": (
        "OPTForCausalLM",
        dict(hidden_size=2048, ffn_dim=8192, num_hidden_layers=4, num_attention_heads=32, word_embed_proj_dim=2048),
        (4, 1024),
    ),
    "gpt_neox": (
        "GPTNeoXForCausalLM",
        dict(hidden_size=2560, intermediate_size=10240, num_hidden_layers=4, num_attention_heads=32, vocab_size=50304),
        (4, 1024),
    ),
    "gpt_neo": (
        "GPTNeoForCausalLM",
        dict(hidden_size=2048, num_layers=4, num_heads=16, attention_types=[[["global", "local"], 2]]),
        (4, 1024),
    ),
    "gptj": ("GPTJForCausalLM", dict(n_layer=3), (4, 1024)),
    "bloom": ("BloomForCausalLM", dict(hidden_size=2048, n_layer=4, n_head=16), (4, 1024)),
    "falcon": ("FalconForCausalLM", dict(num_hidden_layers=3), (4, 1024)),
    "mpt": ("MptForCausalLM", dict(d_model=4096, n_heads=32, n_layers=3, vocab_size=50432), (4, 1024)),
    "gemma": (
        "GemmaForCausalLM",
        dict(
            hidden_size=2048,
            intermediate_size=16384,
            num_hidden_layers=4,
            num_attention_heads=8,
            num_key_value_heads=1,
            head_dim=256,
        ),
        (4, 1024),
    ),
    "gemma3": (
        "Gemma3ForCausalLM",
        dict(
            hidden_size=2560,
            intermediate_size=10240,
            num_hidden_layers=6,
            num_attention_heads=8,
            num_key_value_heads=4,
            head_dim=256,
            sliding_window=1024,
        ),
        (2, 2048),
    ),
    "phi": (
        "PhiForCausalLM",
        dict(hidden_size=2560, intermediate_size=10240, num_hidden_layers=4, num_attention_heads=32),
        (4, 1024),
    ),
    "starcoder2": ("Starcoder2ForCausalLM", dict(num_hidden_layers=4, sliding_window=4096), (4, 1024)),
    "olmo2": ("Olmo2ForCausalLM", dict(num_hidden_layers=3, vocab_size=100352), (4, 1024)),
    "qwen2_moe": ("Qwen2MoeForCausalLM", dict(num_hidden_layers=3), (4, 1024)),
    "qwen3_moe": ("Qwen3MoeForCausalLM", dict(num_hidden_layers=3, head_dim=128, norm_topk_prob=True), (4, 1024)),
    "deepseek_v2": (
        "DeepseekV2ForCausalLM",
        dict(
            hidden_size=2048,
            intermediate_size=10944,
            moe_intermediate_size=1408,
            num_hidden_layers=4,
            num_attention_heads=16,
            num_key_value_heads=16,
            first_k_dense_replace=1,
            q_lora_rank=None,
            num_experts_per_tok=6,
            vocab_size=102400,
        ),
        (4, 1024),
    ),
    "deepseek_v3": (
        "DeepseekV3ForCausalLM",
        dict(num_hidden_layers=4, first_k_dense_replace=2, n_routed_experts=32),
        (4, 1024),
    ),
    "gpt_oss": ("GptOssForCausalLM", dict(num_hidden_layers=4, num_local_experts=32), (4, 1024)),
    "mamba2": (
        "Mamba2ForCausalLM",
        dict(
            hidden_size=1536, num_heads=48, num_hidden_layers=3, n_groups=1, vocab_size=50288, tie_word_embeddings=True
        ),
        (1, 1024),
    ),
}
ENCODERS: dict[str, tuple[str, dict[str, Any], tuple[int, int]]] = {
    "roberta": (
        "RobertaForMaskedLM",
        dict(
            hidden_size=1024,
            intermediate_size=4096,
            num_hidden_layers=4,
            num_attention_heads=16,
            max_position_embeddings=514,
            type_vocab_size=1,
            layer_norm_eps=1e-5,
        ),
        (16, 512),
    ),
    "t5": (
        "T5ForConditionalGeneration",
        dict(
            d_model=1024, d_ff=4096, d_kv=64, num_layers=4, num_decoder_layers=4, num_heads=16, decoder_start_token_id=0
        ),
        (8, 512),
    ),
    "switch_transformers": (
        "SwitchTransformersForConditionalGeneration",
        dict(
            num_layers=4,
            num_decoder_layers=4,
            num_sparse_encoder_layers=2,
            num_sparse_decoder_layers=2,
            d_ff=3072,
            decoder_start_token_id=0,
        ),
        (8, 512),
    ),
    "whisper": (
        "WhisperForConditionalGeneration",
        dict(
            d_model=768,
            encoder_layers=4,
            decoder_layers=4,
            encoder_attention_heads=12,
            decoder_attention_heads=12,
            encoder_ffn_dim=3072,
            decoder_ffn_dim=3072,
        ),
        (8, 448),
    ),
    "vit": ("ViTForImageClassification", dict(num_hidden_layers=6, num_labels=1000), (64, 0)),
    "clip": (
        "CLIPModel",
        dict(text_config=dict(num_hidden_layers=4), vision_config=dict(num_hidden_layers=4)),
        (64, 77),
    ),
    "resnet50": ("ResNetForImageClassification", dict(num_labels=1000), (64, 0)),
    "resnet18": (
        "ResNetForImageClassification",
        dict(num_labels=1000, layer_type="basic", hidden_sizes=[64, 128, 256, 512], depths=[2, 2, 2, 2]),
        (128, 0),
    ),
    "convnext": ("ConvNextForImageClassification", dict(num_labels=1000), (64, 0)),
}
# beyond the usual ones: training and inference alone
MORE: dict[str, tuple[str, dict[str, Any], tuple[int, int]]] = {
    "distilbert": ("DistilBertForMaskedLM", dict(n_layers=4), (16, 512)),
    "electra": (
        "ElectraForMaskedLM",
        dict(hidden_size=768, embedding_size=768, num_hidden_layers=4, num_attention_heads=12, intermediate_size=3072),
        (16, 512),
    ),
    "albert": (
        "AlbertForMaskedLM",
        dict(hidden_size=768, num_attention_heads=12, intermediate_size=3072, num_hidden_layers=4),
        (16, 512),
    ),
    "modernbert": ("ModernBertForMaskedLM", dict(num_hidden_layers=6), (8, 1024)),
    "deberta_v2": (
        "DebertaV2ForMaskedLM",
        dict(
            hidden_size=768,
            num_attention_heads=12,
            intermediate_size=3072,
            num_hidden_layers=4,
            relative_attention=True,
            position_buckets=256,
            pos_att_type=["p2c", "c2p"],
            norm_rel_ebd="layer_norm",
            share_att_key=True,
        ),
        (8, 512),
    ),
    "bart": ("BartForConditionalGeneration", dict(encoder_layers=4, decoder_layers=4), (8, 512)),
    "mt5": (
        "MT5ForConditionalGeneration",
        dict(d_model=768, d_ff=2048, num_layers=4, num_decoder_layers=4, num_heads=12, decoder_start_token_id=0),
        (8, 512),
    ),
    "gpt_bigcode": (
        "GPTBigCodeForCausalLM",
        dict(n_embd=2048, n_head=16, n_layer=4, n_positions=2048, vocab_size=49152),
        (4, 1024),
    ),
    "codegen": ("CodeGenForCausalLM", dict(n_embd=2560, n_head=32, n_layer=4, rotary_dim=64), (4, 1024)),
    "olmo": ("OlmoForCausalLM", dict(num_hidden_layers=3), (4, 1024)),
    "olmoe": ("OlmoeForCausalLM", dict(num_hidden_layers=3), (4, 1024)),
    "granite": (
        "GraniteForCausalLM",
        dict(
            hidden_size=2048,
            intermediate_size=8192,
            num_hidden_layers=4,
            num_attention_heads=32,
            num_key_value_heads=8,
            vocab_size=49152,
        ),
        (4, 1024),
    ),
    "cohere": (
        "CohereForCausalLM",
        dict(
            hidden_size=4096,
            intermediate_size=11264,
            num_hidden_layers=3,
            num_attention_heads=32,
            num_key_value_heads=8,
        ),
        (2, 1024),
    ),
    "stablelm": ("StableLmForCausalLM", dict(num_hidden_layers=4), (4, 1024)),
    "glm4": ("Glm4ForCausalLM", dict(num_hidden_layers=3, num_key_value_heads=2), (4, 1024)),
    "smollm3": ("SmolLM3ForCausalLM", dict(num_hidden_layers=4), (4, 1024)),
    "phimoe": ("PhimoeForCausalLM", dict(num_hidden_layers=2), (4, 1024)),
    "mamba": ("MambaForCausalLM", dict(hidden_size=1536, num_hidden_layers=2), (1, 512)),
    "qwen3_next": ("Qwen3NextForCausalLM", dict(num_hidden_layers=4, num_experts=64), (2, 1024)),
    "dinov2": ("Dinov2ForImageClassification", dict(num_hidden_layers=6, num_labels=1000, image_size=224), (64, 0)),
    "deit": ("DeiTForImageClassification", dict(num_hidden_layers=6, num_labels=1000), (64, 0)),
    "swin": ("SwinForImageClassification", dict(num_labels=1000), (64, 0)),
    "beit": ("BeitForImageClassification", dict(num_hidden_layers=6, num_labels=1000), (64, 0)),
    "siglip_vision": ("SiglipVisionModel", dict(num_hidden_layers=6), (64, 0)),
    "efficientnet": ("EfficientNetForImageClassification", dict(num_labels=1000, image_size=224), (64, 0)),
    "mobilenet_v2": ("MobileNetV2ForImageClassification", dict(num_labels=1000), (128, 0)),
    "regnet": ("RegNetForImageClassification", dict(num_labels=1000), (64, 0)),
    "segformer": ("SegformerForImageClassification", dict(num_labels=1000), (64, 0)),
    "wav2vec2": ("Wav2Vec2ForCTC", dict(num_hidden_layers=4, mask_time_prob=0.0), (8, 160000)),
}
ALL = TEXT | ENCODERS | MORE
NOT_DECODERS = ("bert",)
RECHECK = {
    "gpt2": ("GPT2LMHeadModel", dict(n_embd=768, n_head=12, n_layer=12)),
    "llama_1b": (
        "LlamaForCausalLM",
        dict(
            hidden_size=2048,
            intermediate_size=8192,
            num_hidden_layers=16,
            num_attention_heads=32,
            num_key_value_heads=8,
            vocab_size=128256,
            tie_word_embeddings=True,
        ),
    ),
}


def case(name: str, mode: str, batch: int = 0, seq: int = 0, dtype: str = "bf16", **more: Any) -> Case:
    cls, config, (usual_batch, usual_seq) = ALL[name]
    if usual_seq == 0:
        seq = 0
    return {
        "model": name,
        "mode": mode,
        "batch": batch or usual_batch,
        "seq": seq or usual_seq,
        "dtype": dtype,
        "set": "architectures",
        "cls": cls,
        "config": config,
        **more,
    }


def recheck(name: str, mode: str, batch: int, seq: int, dtype: str = "bf16") -> Case:
    cls, config = RECHECK[name]
    return {
        "model": name,
        "mode": mode,
        "batch": batch,
        "seq": seq,
        "dtype": dtype,
        "set": "recheck",
        "cls": cls,
        "config": config,
        "tag": "",
    }


def cases() -> list[Case]:
    found = [
        recheck("gpt2", "train", 8, 1024),
        recheck("llama_1b", "prefill", 1, 2048),
        recheck("llama_1b", "decode", 32, 1024),
    ]
    usual = [n for n in ALL if n not in MORE]
    found += [case(n, m) for n in usual for m in ("train", "inf")]
    decoders = [n for n in TEXT if n not in NOT_DECODERS]
    for n in decoders:
        found += [case(n, "prefill", 2, 1024), case(n, "decode", 8, 1024)]
        found += [case(n, "decode", 8, 1024, static=1)] if n not in NO_STATIC else []
    found += [case("qwen2", "train", optimizer=o) for o in OPTIMIZERS]
    for n in usual:
        found += [case(n, "train", ckpt=1)] if n not in NO_CKPT else []
        found += [case(n, "train", dtype="amp")]
        found += [case(n, "train", dtype="fp32", attn="eager")] if n not in NOT_FP32 else []
    found += [case("llama", "train", lora=LORA_QV), case("qwen2", "train", lora=LORA_ALL)]
    found += [case(n, m, 1, 128) for n in SMALL for m in ("inf", "train")]
    found += [case(n, m, compile=True, limit=80) for n in COMPILED[:2] for m in ("train", "inf")]
    found += [case(n, m) for n in MORE for m in ("train", "inf") if (n, m) != ("siglip_vision", "train")]
    found += [case(n, m, compile=True, limit=80) for n in COMPILED[2:] for m in ("train", "inf")]
    return found


LORA_QV = dict(r=16, lora_alpha=32, target_modules=["q_proj", "v_proj"])
LORA_ALL = dict(r=16, lora_alpha=32, lora_dropout=0.05, target_modules="all-linear")
OPTIMIZERS = ("adamw_foreach", "adamw_loop", "sgd", "sgd_momentum", "adafactor", "adafactor_torch")
NO_STATIC = ("mamba2", "gpt_neo", "bloom", "mpt")
NO_CKPT = ("resnet50", "resnet18", "convnext", "clip", "mamba2")
NOT_FP32 = ("deepseek_v3", "mixtral", "mamba2", "gpt_oss")  # fp32 experts are a loop; large
SMALL = ("llama", "bert", "gemma2", "vit", "t5", "mixtral", "opt", "resnet50")
COMPILED = ("qwen2", "gemma2", "bert", "phi3", "vit", "opt")

if __name__ == "__main__":
    json.dump(cases(), sys.stdout, indent=1)
