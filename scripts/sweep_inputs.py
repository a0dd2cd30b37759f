"""Models and inputs of scripts/export_sweep: what a pipeline would hand to its denoiser, and images, sounds and texts to models
of transformers, by the names and sizes that their configs give. A table says what cannot be read off a config.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch

TOKENS, SIDE, FRAMES = 16, 16, 4  # of a text; of a latent image; of a film
DEPTH = ("num_layers", "num_single_layers", "num_mmdit_layers", "num_single_dit_layers", "num_visual_blocks", "num_text_blocks")
DEPTH += ("n_layers", "n_refiner_layers", "num_refiner_layers", "depth", "dit_depth", "mmdit_layers", "nlayers", "num_hidden_layers")

# What a constructor leaves open, as published checkpoints of the class have it.
OPEN: dict[str, dict[str, Any]] = {
    "DreamLiteTransformer2DModel": {"in_channels": 320, "cross_attention_dim": 768},
    "EasyAnimateTransformer3DModel": {"in_channels": 16, "out_channels": 16, "patch_size": 2},
    "HiDreamImageTransformer2DModel": {"patch_size": 2, "in_channels": 16, "caption_channels": [4096, 4096], "llama_layers": [0, 1, 2, 3]},
    "HunyuanDiT2DModel": {"in_channels": 4, "patch_size": 2},
    "LatteTransformer3DModel": {
        **{"in_channels": 4, "patch_size": 2, "caption_channels": 4096, "cross_attention_dim": 1408, "num_embeds_ada_norm": 1000},
        **{"norm_type": "ada_norm_single", "norm_elementwise_affine": False},
    },
    "LuminaNextDiT2DModel": {"num_kv_heads": 8},
    "PixArtTransformer2DModel": {"caption_channels": 4096, "use_additional_conditions": False},
    "Transformer2DModel": {"in_channels": 320, "cross_attention_dim": 768},
    "TransformerTemporalModel": {"in_channels": 320},
}
WIDTHS = ("caption_channels", "joint_attention_dim", "text_dim", "text_embed_dim", "cap_feat_dim", "context_in_dim", "text_in_dim")
WIDTHS += ("in_text_dim", "text_hidden_dim", "dit_text_dim", "llm_features_dim", "cond_token_dim", "cross_attention_input_dim")
WIDTHS += ("encoder_hid_dim", "cross_attention_dim", "condition_dim", "encoder_hidden_size", "embedding_dim", "hidden_size")


def made(*shape: int, whole: bool = False) -> torch.Tensor:
    return torch.zeros(*shape, dtype=torch.long if whole else None, device="meta")


def denoiser(library: Any, name: str) -> tuple[Any, dict[str, Any]]:
    """A model of its class's own configuration, at most two layers deep, and what it is called with."""
    build = getattr(library, name)
    known = inspect.signature(build.__init__).parameters
    few = {key: 2 for key in DEPTH if isinstance(getattr(known.get(key), "default", None), int)}
    options = {**few, **OPEN.get(name, {})}
    try:
        model = build(**options)
    except (ValueError, TypeError, AssertionError, IndexError):  # a depth that its other lists do not allow
        model = build(**OPEN.get(name, {}))
    return model, inputs(model)


def of_transformers(model: Any) -> dict[str, Any]:
    """What a model of transformers takes: tokens, images, films, sounds, by its main input and its configs."""
    from foretell.export import example_inputs

    config, main = model.config, getattr(model, "main_input_name", "input_ids")
    wants = inspect.signature(model.forward).parameters
    seen = getattr(config, "vision_config", config)
    seen = seen if hasattr(seen, "to_dict") else config
    side = _key(seen, "image_size", "img_size", otherwise=224)
    sides = (side, side) if isinstance(side, int) else tuple(side)[-2:] if isinstance(side, (list, tuple)) else (224, 224)
    picture = made(1, _key(seen, "num_channels", "in_channels", "in_chans", otherwise=3), *sides)
    if "grid_thw" in wants:
        return _patches(config, wants)
    given = example_inputs(model, 1, 64, task="forward")
    if main == "pixel_values" or (main != "input_ids" and "pixel_values" in wants and "input_ids" not in wants):
        frames = _key(config, "num_frames", "frames_per_clip")
        given = {"pixel_values": picture[:, None].expand(-1, frames, -1, -1, -1) if isinstance(frames, int) else picture}
    elif main in ("pixel_values_videos", "pixel_values_images"):
        given = {main: picture[:, None].expand(-1, _key(config, "num_frames", "frames_per_clip", otherwise=16), -1, -1, -1)}
    elif main == "input_values":
        mels = _key(config, "num_mel_bins")
        given = {main: made(1, config.max_length, mels) if mels and hasattr(config, "max_length") else made(1, 16000)}
        if "input_values" in wants and getattr(config, "audio_channels", None):  # codecs
            given = {main: made(1, config.audio_channels, 16000)}
    elif main == "input_features" or ("input_features" in wants and "input_ids" not in wants):
        mels = _key(config, "num_mel_bins", "input_feat_per_channel", "feature_projection_input_dim", otherwise=80)
        long = 2 * _key(config, "max_source_positions", otherwise=1500)
        given = {"input_features": made(1, mels, long) if hasattr(config, "max_source_positions") else made(1, 256, mels)}
    elif "past_values" in wants:  # series: the past, its times, what was seen
        length = _key(config, "context_length", otherwise=96)
        given = {"past_values": made(1, length, _key(config, "num_input_channels", "input_size", otherwise=1))}
    elif hasattr(config, "vision_config") and "pixel_values" in wants and not _key(config, "image_token_id", "image_token_index"):
        given["pixel_values"] = picture  # two towers want both; one that puts images among its tokens takes text alone
    if getattr(config, "is_encoder_decoder", False) and "decoder_input_ids" in wants:
        given["decoder_input_ids"] = made(1, 64, whole=True)
    return given


def _patches(config: Any, wants: Any) -> dict[str, Any]:
    """An image of 16 by 16 patches below each other, as towers take them that read images of any size; the grid has values."""
    side, frames = _key(config, "patch_size", otherwise=14), _key(config, "temporal_patch_size", otherwise=1)
    wide = _key(config, "in_channels", "in_chans", "num_channels", otherwise=3) * frames * side * side
    name = "hidden_states" if "hidden_states" in wants else "pixel_values"
    return {name: made(256, wide), "grid_thw": torch.tensor([[1, 16, 16]], device="cpu")}


def _key(config: Any, *names: str, otherwise: Any = None) -> Any:
    return next((value for value in (getattr(config, each, None) for each in names) if value is not None), otherwise)


def _picture(name: str, config: Any, flat: bool) -> torch.Tensor:
    channels = _key(config, "in_channels", "in_visual_dim", "latent_dim", "io_channels", "in_dim", otherwise=4)
    if name in ("AceStepTransformer1DModel",):
        return made(1, 4 * SIDE, config.audio_acoustic_hidden_dim)
    if name in ("StableAudioDiTModel", "UNet1DModel"):
        return made(1, channels, 1024)
    if name in ("LongCatAudioDiTTransformer", "MiniMaxMusic3Transformer1DModel"):
        return made(1, SIDE * SIDE, channels)
    if flat or name in ("LTXVideoTransformer3DModel", "LTX2VideoTransformer3DModel"):
        return made(1, SIDE * SIDE, channels)
    if "Kandinsky" in name and "3D" in name:
        more = getattr(config, "visual_cond", "SR" in name)  # what is asked for, and where, beside what is made of noise
        return made(1, FRAMES, SIDE, SIDE, channels + (channels + 1 if more else 0))
    if hasattr(config, "sample_frames") and hasattr(config, "temporal_compression_ratio"):  # places are learned: no other size
        frames = (config.sample_frames - 1) // config.temporal_compression_ratio + 1
        return made(1, frames, channels, config.sample_height, config.sample_width)
    if name in ("UNetSpatioTemporalConditionModel", "AnyFlowTransformer3DModel", "AnyFlowFARTransformer3DModel"):
        return made(1, FRAMES, channels, 2 * SIDE, 2 * SIDE)
    if name == "PriorTransformer":
        return made(1, config.embedding_dim)
    if "3D" in name or "Motion" in name or "I2VGen" in name:
        return made(1, channels, _key(config, "video_length", otherwise=FRAMES), 2 * SIDE, 2 * SIDE)
    side = _key(config, "sample_size", otherwise=2 * SIDE)
    return made(1, channels, *([min(side if isinstance(side, int) else side[0], 64)] * 2))


def _axes(config: Any) -> int:
    return len(_key(config, "axes_dims_rope", "axes_dims", "rope_axes_dim", "mrope_section", otherwise=(0, 0, 0)))


# Inputs by the names that forward gives them. c: the configuration; p: the image, film or sound.
NAMED: dict[str, Callable[[Any, torch.Tensor], Any]] = {
    "timestep": lambda c, p: made(1),
    "timesteps": lambda c, p: made(1),
    "timestep_r": lambda c, p: made(1),
    "r_timestep": lambda c, p: made(1),
    "timestep_ratio": lambda c, p: made(1),
    "encoder_hidden_states": lambda c, p: made(1, _key(c, "max_text_seq_length", otherwise=TOKENS), _text(c)),
    "text_bth": lambda c, p: made(1, TOKENS, _text(c)),
    "text_lens": lambda c, p: made(1, whole=True) + TOKENS,
    "encoder_attention_mask": lambda c, p: made(1, TOKENS, whole=True).bool(),
    "encoder_mask": lambda c, p: made(1, TOKENS, whole=True),
    "text_embedding_mask": lambda c, p: made(1, TOKENS, whole=True),
    "encoder_hidden_states_mask": lambda c, p: made(1, TOKENS, whole=True).bool(),
    "encoder_hidden_states_t5": lambda c, p: made(1, TOKENS, _key(c, "cross_attention_dim_t5", otherwise=4096)),
    "encoder_hidden_states_llama3": lambda c, p: made(4, 1, TOKENS, 4096),
    "text_embedding_mask_t5": lambda c, p: made(1, TOKENS, whole=True),
    "encoder_hidden_states_2": lambda c, p: made(1, TOKENS, _key(c, "text_embed_2_dim", otherwise=1472)),
    "encoder_attention_mask_2": lambda c, p: made(1, TOKENS, whole=True).bool(),
    "pooled_projections": lambda c, p: made(1, _key(c, "pooled_projection_dim", "in_text_dim2", otherwise=768)),
    "pooled_embeds": lambda c, p: made(1, _key(c, "text_emb_dim", otherwise=2048)),
    "pooled_text_emb": lambda c, p: made(1, c.cond_embed_dim),
    "micro_conds": lambda c, p: made(1, 5),
    "clip_text_pooled": lambda c, p: made(1, 1, c.clip_text_pooled_in_channels),
    "proj_embedding": lambda c, p: made(1, _key(c, "embedding_proj_dim", "embedding_dim")),
    "global_hidden_states": lambda c, p: made(1, 1, _key(c, "global_states_input_dim", "global_cond_dim")),
    "context_latents": lambda c, p: made(1, p.shape[1], c.in_channels - p.shape[-1]),
    "image_embeds": lambda c, p: made(1, TOKENS, _key(c, "image_embed_dim", "image_proj_dim", otherwise=1152)),
    "indices_latents": lambda c, p: made(1, FRAMES, whole=True),
    "image_latents": lambda c, p: made(*p.shape),
    "fps": lambda c, p: made(1, whole=True) + 8,
    "original_size": lambda c, p: made(1, 2),
    "target_size": lambda c, p: made(1, 2),
    "crop_coords": lambda c, p: made(1, 2),
    "prior_token_id": lambda c, p: made(1, p.shape[-1] * p.shape[-2] // 4, whole=True),
    "prior_token_drop": lambda c, p: made(1, p.shape[-1] * p.shape[-2] // 4, whole=True).bool(),
    "added_time_ids": lambda c, p: made(1, 3),
    "image_meta_size": lambda c, p: made(1, 6),
    "style": lambda c, p: made(1, whole=True),
    "padding_mask": lambda c, p: made(1, 1, p.shape[-2], p.shape[-1]),
    "guidance": lambda c, p: made(1),
    "img_ids": lambda c, p: made(p.shape[1], _axes(c)),
    "txt_ids": lambda c, p: made(TOKENS, _axes(c)),
    "img_shapes": lambda c, p: [(1, SIDE, SIDE)],
    "num_frames": lambda c, p: FRAMES,
    "height": lambda c, p: SIDE // 2,
    "width": lambda c, p: p.shape[1] // FRAMES // (SIDE // 2),
    "class_labels": lambda c, p: made(1, whole=True),
    "visual_rope_pos": lambda c, p: tuple(torch.arange(n) for n in (p.shape[1], p.shape[2] // 2, p.shape[3] // 2)),
    "text_rope_pos": lambda c, p: torch.arange(TOKENS),
    "input_ids": lambda c, p: made(1, SIDE, SIDE, whole=True),
    "text_encoder_layers": lambda c, p: [made(1, TOKENS, c.text_encoder_dim)] * (c.num_layers + c.num_single_layers),
    "control_hidden_states": lambda c, p: made(1, c.vace_in_channels, *p.shape[2:]),
    "img_mask": lambda c, p: made(1, p.shape[1], whole=True).bool(),
    "audio_hidden_states": lambda c, p: made(1, 4 * SIDE, _key(c, "audio_in_channels", "in_audio_dim")),
    "audio_encoder_hidden_states": lambda c, p: made(1, TOKENS, _text(c)),
    "audio_num_frames": lambda c, p: 4 * SIDE,
    "x": lambda c, p: [made(c.in_channels, 1, 2 * SIDE, 2 * SIDE)],
    "cap_feats": lambda c, p: [made(TOKENS, _text(c))],
    "t": lambda c, p: made(1),
}
NOT_NEEDED = ("num_frames", "height", "width", "class_labels", "padding_mask", "image_meta_size", "style", "fps")
NOT_NEEDED += ("guidance", "image_embeds", "timestep_r")
NOT_NEEDED += ("encoder_hidden_states_t5", "encoder_hidden_states_2", "encoder_attention_mask_2")
NOT_NEEDED += ("audio_hidden_states", "audio_num_frames")


def _text(config: Any) -> int:
    found = next((value for value in (getattr(config, key, None) for key in WIDTHS) if isinstance(value, int)), 768)
    return int(found)


def inputs(model: Any) -> dict[str, Any]:
    """By the names of forward's arguments: those it demands, and of the others those that stand for a text, a step or a place."""
    name, config = type(model).__name__, model.config
    wants = inspect.signature(model.forward).parameters
    flat = any(key in wants for key in ("img_ids", "img_shapes"))
    sample = _picture(name, config, flat)
    given: dict[str, Any] = {}
    for key, parameter in wants.items():
        demanded = parameter.default is inspect.Parameter.empty
        if key in ("sample", "hidden_states"):
            given[key] = sample
        elif key == "guidance" and not getattr(config, "guidance_embeds", False):
            continue
        elif key in NAMED and (demanded or key not in NOT_NEEDED or _asked(name, config, key)):
            given[key] = NAMED[key](config, sample)
    return given


def _asked(name: str, config: Any, key: str) -> bool:
    """Whether an argument that may be left out is used by this configuration all the same."""
    return {
        "guidance": bool(getattr(config, "guidance_embeds", False)),
        "image_embeds": getattr(config, "image_embed_dim", None) is not None,
        "encoder_hidden_states_t5": _key(config, "text_embed_dim_t5", "cross_attention_dim_t5", "llama_layers") is not None,
        "encoder_hidden_states_2": getattr(config, "text_embed_2_dim", None) is not None,
        "encoder_attention_mask_2": getattr(config, "text_embed_2_dim", None) is not None,
        "audio_num_frames": name.startswith("LTX2"),
        "num_frames": name.startswith("LTX"),
        "height": name.startswith("LTX"),
        "width": name.startswith("LTX"),
        "class_labels": name == "DiTTransformer2DModel",
        "padding_mask": bool(getattr(config, "concat_padding_mask", False)),
        "image_meta_size": name == "HunyuanDiT2DModel",
        "style": name == "HunyuanDiT2DModel",
    }.get(key, False)
