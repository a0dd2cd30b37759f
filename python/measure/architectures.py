"""Forward passes, and forward with backward, of architectures cut in depth and width: architectures.py CASES OUT [SECONDS]

CASES: a JSON line each with `model` (a config with its `model_type`), `batch`, `seq` (tokens of text) and, of a model that sees,
`images` and `image_size`. The rows of data/measurements/h200/architectures.jsonl: bf16, sdpa, eager, random weights, no cache,
no optimizer. `busy_ms` is the sum of the kernels' and copies' times of one pass under the profiler (the median of three), bytes are the allocator's
peak. `forward`: no_grad, all logits; `train`: with labels, backward, gradients dropped before the next pass. A case with `by_kernel` keeps
the forty longest kernels by name.
"""

from __future__ import annotations

import copy
import gc
import typing

import torch
import transformers

from passes import Case, every, measured

Inputs = dict[str, torch.Tensor]
# What fills gaps in a text it sees whole, unless its config says that it decodes.
ENCODERS = ("bert", "roberta", "xlm-roberta", "deberta", "deberta-v2", "distilbert", "electra", "albert", "modernbert", "mpnet")


def read(config: Case) -> transformers.PretrainedConfig:
    said = copy.deepcopy(config)
    built = transformers.AutoConfig.for_model(said.pop("model_type"), **said)
    for part in (built, built.get_text_config()):
        part.use_cache = False
    return built


def build(config: Case, device: str) -> transformers.PreTrainedModel:
    """The model that a config means, with a head for language, weights random and in bf16."""
    built = read(config)
    kind = transformers.AutoModelForCausalLM
    if built.is_encoder_decoder:
        kind = transformers.AutoModelForSeq2SeqLM
    if built.model_type == "whisper":
        kind = transformers.AutoModelForSpeechSeq2Seq
    if built.model_type in ENCODERS and not getattr(built, "is_decoder", False):
        kind = transformers.AutoModelForMaskedLM
    if getattr(built, "vision_config", None) is not None or getattr(built, "vq_config", None) is not None:
        kind = transformers.AutoModelForImageTextToText
    if type(built) not in kind._model_mapping:  # it sees, and is mapped as one that writes
        kind = transformers.AutoModelForCausalLM
    with torch.device(device):
        try:
            return kind.from_config(built, attn_implementation="sdpa", dtype=torch.bfloat16)
        except ValueError:  # part of it has its own way, or no attention at all: each as the library has it by default
            return kind.from_config(read(config), dtype=torch.bfloat16)


def pixels(config: transformers.PretrainedConfig, count: int, height: int, width: int) -> tuple[Inputs, int]:
    """What a model's eyes are given for `count` images, and how many tokens one becomes."""
    eye, kind, low = config.vision_config, config.model_type, torch.bfloat16
    if kind == "perception_lm":  # a tower of timm's, whose patches are 14 wide; the image is one of several tiles
        side = height // 14 // config.projector_pooling_ratio
        return {"pixel_values": torch.randn(count, 1, 3, height, width, dtype=low)}, side * side
    if kind == "hunyuan_vl":  # every row of tokens ends in a mark, and so do its beginning and its end
        rows, columns = height // eye.patch_size, width // eye.patch_size
        grid = torch.tensor([[1, rows, columns]] * count)
        flat = torch.randn(count * rows * columns, 3 * eye.patch_size**2, dtype=low)
        return {"pixel_values": flat, "image_grid_thw": grid}, rows // 2 * (columns // 2 + 1) + 2
    patch = eye.patch_size[0] if isinstance(eye.patch_size, (list, tuple)) else eye.patch_size
    rows, columns = height // patch, width // patch
    if hasattr(eye, "temporal_patch_size"):  # patches one after the other, with their grid
        grid = torch.tensor([[1, rows, columns]] * count)
        wide = 3 * eye.temporal_patch_size * patch * patch
        return {"pixel_values": torch.randn(count * rows * columns, wide, dtype=low), "image_grid_thw": grid}, (
            rows * columns // eye.spatial_merge_size**2
        )
    if kind == "lfm2_vl":
        shapes = torch.tensor([[rows, columns]] * count)
        seen = torch.ones(count, rows * columns, dtype=torch.long)
        flat = torch.randn(count, rows * columns, 3 * patch * patch, dtype=low)
        factor = config.downsample_factor
        return {"pixel_values": flat, "spatial_shapes": shapes, "pixel_attention_mask": seen}, rows * columns // factor**2
    if kind in ("paddleocr_vl", "kimi_k25", "video_llama_3", "ernie4_5_vl_moe"):  # the same, without frames
        grid = torch.tensor([[1, rows, columns]] * count)
        flat = torch.randn(count * rows * columns, 3, patch, patch, dtype=low)
        if kind == "video_llama_3":  # images are not merged
            return {"pixel_values": flat.flatten(1), "image_grid_thw": grid, "image_merge_sizes": torch.ones(count, dtype=torch.long)}, rows * columns
        return {"pixel_values": flat.flatten(1) if kind == "ernie4_5_vl_moe" else flat, "image_grid_thw": grid}, rows * columns // 4
    if kind in ("cosmos3_edge", "muse_glimmer"):
        grid = torch.tensor([[1, rows, columns]] * count)
        frames, merge = getattr(eye, "patch_temporal", 1), getattr(eye, "merge_size", None) or eye.spatial_merge_size
        flat = torch.randn(count * rows * columns, 3 * frames * patch * patch, dtype=low)
        return {"pixel_values": flat, "image_grid_thw": grid}, rows * columns // merge**2
    if kind == "gemma4":
        places = torch.stack(torch.meshgrid(torch.arange(columns), torch.arange(rows), indexing="xy"), -1).view(1, -1, 2)
        flat = torch.rand(count, rows * columns, 3 * patch * patch, dtype=low)
        return {"pixel_values": flat, "image_position_ids": places.repeat(count, 1, 1)}, rows * columns // eye.pooling_kernel_size**2
    picture = torch.randn(count, 3, height, width, dtype=low)
    if kind in ("blip-2", "instructblip"):
        return {"pixel_values": picture}, config.num_query_tokens
    if kind == "kosmos-2":
        return {"pixel_values": picture}, config.latent_query_num
    if kind == "aria":
        return {"pixel_values": picture}, config.projector_patch_to_query_dict[rows * columns]
    if kind in ("mistral3", "lighton_ocr"):
        sizes = torch.tensor([[height, width]] * count)
        return {"pixel_values": picture, "image_sizes": sizes}, rows * columns // config.spatial_merge_size**2
    if kind == "idefics2":
        return {"pixel_values": picture.unsqueeze(1)}, config.perceiver_config.resampler_n_latents
    if kind in ("idefics3", "smolvlm"):
        return {"pixel_values": picture.unsqueeze(1)}, rows * columns // config.scale_factor**2
    if kind == "minicpmv4_6":  # patches of all images side by side
        sizes = torch.tensor([[rows, columns]] * count, dtype=torch.int32)
        flat = torch.randn(1, 3, patch, count * rows * columns * patch, dtype=low)
        return {"pixel_values": flat, "target_sizes": sizes}, rows * columns // 16
    if kind in ("internvl", "qianfan_ocr"):
        return {"pixel_values": picture}, int(rows * columns * config.downsample_ratio**2)
    if kind in ("aya_vision", "cohere2_vision"):
        return {"pixel_values": picture}, rows * columns // config.downsample_factor**2
    if kind == "llama4":
        return {"pixel_values": picture}, int(rows * columns * eye.pixel_shuffle_ratio**2)
    if kind in ("got_ocr2", "pp_chart2table", "step3p7"):  # two filters, each every second place
        return {"pixel_values": picture}, rows * columns // 16
    if kind == "video_llava":
        return {"pixel_values_images": picture}, rows * columns
    if kind == "gemma3":
        return {"pixel_values": picture}, config.mm_tokens_per_image
    return {"pixel_values": picture}, rows * columns


def inputs(config: transformers.PretrainedConfig, case: Case) -> Inputs:
    """Tokens, and images where the case has them: their places come first in every sequence."""
    batch, images = case["batch"], case.get("images", 0)
    tokens = torch.randint(10, 1000, (batch, case["seq"]))
    for name in ("image", "video", "audio"):  # the words are none that stand for something else
        for key in (f"{name}_token_id", f"{name}_token_index"):
            tokens[tokens == getattr(config, key, None)] = 1000
    if config.model_type == "whisper":  # half a minute of sound, whatever is said
        sound = torch.randn(batch, config.num_mel_bins, 2 * config.max_source_positions, dtype=torch.bfloat16)
        return {"input_features": sound, "decoder_input_ids": tokens}
    if config.is_encoder_decoder:
        return {"input_ids": tokens, "decoder_input_ids": tokens}
    if not images:
        return {"input_ids": tokens}
    height, width = (int(edge) for edge in case["image_size"].split("x"))
    seen, each = pixels(config, batch * images, height, width)
    place = getattr(config, "image_token_id", None) or getattr(config, "image_token_index", 4)
    tokens = torch.cat([torch.full((batch, images * each), place), tokens], dim=1)
    out = {"input_ids": tokens, **seen}
    if config.model_type == "kosmos-2":
        out["image_embeds_position_mask"] = (tokens == place).long()
    if config.model_type == "instructblip":
        out["qformer_input_ids"] = tokens[:, -32:]
    if config.model_type == "qwen2_5_omni_thinker":
        out["attention_mask"] = torch.ones_like(tokens)
        return out
    if "image_grid_thw" in seen or config.model_type == "gemma4":  # which tokens are pictures': positions are counted by it
        out["mm_token_type_ids"] = (tokens == place).int()
    if config.model_type in ("paligemma", "gemma3"):
        out["token_type_ids"] = torch.zeros_like(tokens)
    return out


def measure(case: Case) -> typing.Iterator[Case]:
    """The case's two rows."""
    gc.collect()
    torch.cuda.empty_cache()
    model = build(case["model"], "cuda")
    given = {key: value.cuda() for key, value in inputs(model.config, case).items()}
    count = sum(each.numel() for each in model.parameters())

    more = {} if model.config.model_type in ENCODERS else {"use_cache": False}
    labels = given["decoder_input_ids" if "decoder_input_ids" in given else "input_ids"]

    def forward() -> None:
        with torch.no_grad():
            model(**given, **more)

    def train() -> None:
        model(**given, labels=labels, **more).loss.backward()
        model.zero_grad(set_to_none=True)

    for task, run in (("forward", forward), ("train", train)):
        row = measured(model, task, run)
        longest = row.pop("by_kernel")
        yield {
            **{key: case[key] for key in ("model",)}, "task": task,
            **{key: case[key] for key in ("batch", "seq", "images", "image_size") if key in case},
            "parameters": count, **row, "transformers": transformers.__version__,
            **({"by_kernel": longest} if case.get("by_kernel") else {}),
        }  # fmt: skip


if __name__ == "__main__":
    every(measure, lambda case: case["model"]["model_type"])
