"""A seventh collection of library modules that nothing was fitted to, most of families that no collection before had:
cases for modules.py (`modules.py forecast OUT GPU "" library_seventh`). timm 1.0.29, torchvision 0.26, diffusers 0.42.1,
peft 0.21, transformers 5.17; what users write by themselves is in library_written.py.
"""

from __future__ import annotations

from typing import Any

from library_frame import Decodes, Made, Picked, Row, adapted, hugging_face_case, in_turn, timm_case, torchvision_case
from library_written import WRITTEN

# name, images, their side, channels last
_TIMM = (
    ("botnet26t_256", 64, 256, True),
    ("convit_small", 64, 224, False),
    ("efficientformer_l1", 128, 224, True),
    ("vit_relpos_small_patch16_224", 64, 224, False),
    ("fasternet_s", 64, 224, True),
    ("pit_s_224", 128, 224, False),
    ("inception_resnet_v2", 32, 299, True),
    ("starnet_s3", 128, 224, True),
    ("vitamin_small_224", 64, 224, False),
    ("tresnet_m", 64, 224, True),
    ("swinv2_cr_tiny_224", 32, 224, False),
    ("visformer_small", 64, 224, True),
    ("gernet_m", 128, 224, True),
    ("swiftformer_s", 128, 224, True),
)
_TORCHVISION = (("efficientnet_v2_s", 32, 300), ("resnext50_32x4d", 64, 224), ("densenet169", 32, 224))
_WORDS = {"hidden_size": 768, "num_attention_heads": 12, "num_hidden_layers": 6, "intermediate_size": 3072}
_SOUND = {"mask_time_prob": 0.0, "layerdrop": 0.0, "num_hidden_layers": 6}
_FUNNEL = {"d_model": 768, "n_head": 12, "d_inner": 3072, "block_sizes": [2, 2, 2], "num_decoder_layers": 1}
_UMT5 = {"d_model": 768, "d_ff": 2048, "d_kv": 64, "num_heads": 12, "num_layers": 4, "vocab_size": 64000}
_GRIFFIN = {"hidden_size": 1024, "num_hidden_layers": 3, "num_attention_heads": 8, "intermediate_size": 6144}
_GRIFFIN |= {"lru_width": 1024, "attention_window_size": 1024, "vocab_size": 32000}
_SPEECH = {"encoder_layers": 6, "decoder_layers": 3, "d_model": 512, "encoder_attention_heads": 8}
_SPEECH |= {"decoder_attention_heads": 8, "encoder_ffn_dim": 2048, "decoder_ffn_dim": 2048, "vocab_size": 32000}
_SPEECH |= {"max_source_positions": 3000, "encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0}
_MISTRAL = {"hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 4, "num_attention_heads": 32}
_MISTRAL |= {"num_key_value_heads": 8, "vocab_size": 50304, "sliding_window": 512}
_TALK = {"input_ids": (8, 256), "labels": (8, 256)}
_HUGGING_FACE: tuple[Row, ...] = (
    ("funnel 6 layers b16 512", "Funnel", "Model", _FUNNEL, {"input_ids": (16, 512)}),
    ("swin tiny b64", "Swin", "Model", {}, {"pixel_values": (64, 3, 224, 224)}),
    ("unispeech sat 6 layers b8 5s", "UniSpeechSat", "Model", _SOUND, {"input_values": (8, 80000)}),
    ("esm 6 layers b16 512", "Esm", "Model", _WORDS | {"vocab_size": 32000, "position_embedding_type": "rotary", "pad_token_id": 1}, {"input_ids": (16, 512)}),
    ("mistral window 4 layers b2 2048", "Mistral", "ForCausalLM", _MISTRAL, {"input_ids": (2, 2048), "labels": (2, 2048)}),
    ("umt5 4 layers b8 256", "UMT5", "ForConditionalGeneration", _UMT5, _TALK),
    ("canine 6 layers b8 1024", "Canine", "Model", _WORDS, {"input_ids": (8, 1024)}),
    ("poolformer s24 b64", "PoolFormer", "Model", {"depths": [4, 4, 12, 4]}, {"pixel_values": (64, 3, 224, 224)}),
    ("recurrent gemma 3 layers b16 64", "RecurrentGemma", "ForCausalLM", _GRIFFIN, {"input_ids": (16, 64), "labels": (16, 64)}),
    ("speech to text b8 1000", "Speech2Text", "ForConditionalGeneration", _SPEECH, {"input_features": (8, 1000, 80), "labels": (8, 100)}),
    ("megatron bert 6 layers b16 384", "MegatronBert", "Model", _WORDS | {"vocab_size": 32000}, {"input_ids": (16, 384)}),
    ("dac decoder b8 1s", "Dac", "Model", {"encoder_hidden_size": 64}, {"input_values": (8, 1, 16000)}),
)


def video(made: Made, tokens: Made) -> Any:
    import torchvision

    return torchvision.models.video.mvit_v2_s(weights=None), (made(4, 3, 16, 224, 224),)


def frames(made: Made, tokens: Made) -> Any:
    from diffusers import UNet3DConditionModel

    model = UNet3DConditionModel(sample_size=32, cross_attention_dim=1024, attention_head_dim=64)
    return Picked(model, ("sample", "timestep", "encoder_hidden_states")), (made(1, 4, 8, 32, 32), tokens(1, below=1000), made(1, 77, 1024))


def audio(made: Made, tokens: Made) -> Any:
    from diffusers import StableAudioDiTModel

    named = ("hidden_states", "timestep", "encoder_hidden_states", "global_hidden_states")
    model = StableAudioDiTModel(sample_size=1024, num_layers=6)
    return Picked(model, named), (made(4, 64, 1024), tokens(4, below=1000), made(4, 130, 768), made(4, 1, 1536))


def chroma(made: Made, tokens: Made) -> Any:
    from diffusers import FluxTransformer2DModel

    model = FluxTransformer2DModel(num_layers=2, num_single_layers=4, num_attention_heads=16, guidance_embeds=False)
    named = ("hidden_states", "encoder_hidden_states", "pooled_projections", "timestep", "img_ids", "txt_ids")
    given = (made(2, 1024, 64), made(2, 256, 4096), made(2, 768), made(2), made(1024, 3), made(256, 3))
    return Picked(model, named), given


def clips(made: Made, tokens: Made) -> Any:
    from diffusers import AutoencoderKLCogVideoX

    model = AutoencoderKLCogVideoX(block_out_channels=(64, 128, 128, 256), layers_per_block=2)
    return Picked(model.encoder), (made(1, 3, 9, 128, 128),)


def asymmetric(made: Made, tokens: Made) -> Any:
    from diffusers import AsymmetricAutoencoderKL

    down = {"down_block_types": ("DownEncoderBlock2D",) * 4, "down_block_out_channels": (128, 256, 512, 512)}
    up = {"up_block_types": ("UpDecoderBlock2D",) * 4, "up_block_out_channels": (192, 384, 768, 768)}
    return Decodes(AsymmetricAutoencoderKL(**down, **up, layers_per_down_block=2, layers_per_up_block=3)), (made(1, 4, 64, 64),)


def hunyuan(made: Made, tokens: Made) -> Any:
    from diffusers import CogView3PlusTransformer2DModel

    named = ("hidden_states", "encoder_hidden_states", "timestep", "original_size", "target_size", "crop_coords")
    model = CogView3PlusTransformer2DModel(num_layers=4, num_attention_heads=32)
    given = (made(2, 16, 64, 64), made(2, 224, 4096), tokens(2, below=1000), *(made(2, 2) for _ in range(3)))
    return Picked(model, named), given


def _orthogonal() -> Any:
    from peft import OFTConfig

    return OFTConfig(oft_block_size=32, target_modules=["q_proj", "v_proj"], use_cayley_neumann=True)


def _norms() -> Any:
    from peft import LNTuningConfig

    return LNTuningConfig(target_modules=["input_layernorm", "post_attention_layernorm", "norm"], task_type="CAUSAL_LM")


def seen(made: Made, tokens: Made) -> Any:
    """An adapter on an encoder of images, its head trained as it is."""
    import transformers
    from peft import LoraConfig, get_peft_model

    model = transformers.ViTForImageClassification(transformers.ViTConfig(num_labels=100))
    wants = LoraConfig(r=16, lora_alpha=16, lora_dropout=0.1, target_modules="all-linear", modules_to_save=["classifier"])
    return Picked(get_peft_model(model, wants), ("pixel_values",)), (made(64, 3, 224, 224),)


CASES = in_turn(
    (timm_case(*each) for each in _TIMM),
    (hugging_face_case(*each) for each in _HUGGING_FACE),
    (*(torchvision_case(*each) for each in _TORCHVISION), ("torchvision mvit_v2_s b4 16x224", video)),
    (
        ("diffusers unet 3d b1 8x32", frames),
        ("diffusers stable audio 6 layers b4 1024", audio),
        ("diffusers flux 2+4 layers b2 1024", chroma),
        ("diffusers cogvideox encode b1 9x128", clips),
        ("diffusers asymmetric vae decode b1 64", asymmetric),
        ("diffusers cogview3 4 layers b2 64", hunyuan),
    ),
    (
        ("peft oft mistral 4 layers b2 1024", adapted("Mistral", _MISTRAL, _orthogonal)),
        ("peft norms mistral 4 layers b2 1024", adapted("Mistral", _MISTRAL, _norms)),
        ("peft lora vit base b64", seen),
    ),
    WRITTEN,
)
