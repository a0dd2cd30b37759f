"""A fifth collection of library modules that nothing was fitted to, none of them measured before: cases for modules.py
(`modules.py forecast OUT GPU "" library_fifth`). timm 1.0.30, torchvision 0.26, diffusers 0.42.1, peft 0.21, transformers 5.17.
Ordered so that a measurement that runs out of time has some of every library.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from library_frame import Decodes, Made, Picked, Row, adapted, hugging_face_case, in_turn, timm_case, torchvision_case
from torch import Tensor, nn

# name, images, their side, channels last
_TIMM = (
    ("nextvit_small", 64, 224, True),
    ("gcvit_tiny", 32, 224, False),
    ("repvit_m1_0", 128, 224, True),
    ("cait_s24_224", 32, 224, False),
    ("mobilenetv4_conv_medium", 128, 224, True),
    ("volo_d1_224", 64, 224, False),
    ("ese_vovnet39b", 64, 224, True),
    ("sequencer2d_s", 64, 224, False),
)
_LLAMA = {"hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 4, "num_attention_heads": 32}
_LLAMA |= {"num_key_value_heads": 8, "vocab_size": 50304}
_FALCON = {"hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 4, "num_attention_heads": 16, "num_key_value_heads": 4}
_FALCON |= {"vocab_size": 50304, "mamba_d_ssm": 4096, "mamba_n_heads": 64, "mamba_d_head": 64}
_BASE = {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072}
_LONG = {"attention_window": [256] * 12, "max_position_embeddings": 1026}
_HUGGING_FACE: tuple[Row, ...] = (
    ("timesformer base b4", "Timesformer", "Model", {}, {"pixel_values": (4, 8, 3, 224, 224)}),
    ("wavlm base b8 5s", "WavLM", "Model", {"mask_time_prob": 0.0, "layerdrop": 0.0}, {"input_values": (8, 80000)}),
    ("albert base b32 256", "Albert", "Model", _BASE, {"input_ids": (32, 256)}),
    ("m2m100 b8 256", "M2M100", "ForConditionalGeneration", {}, {"input_ids": (8, 256), "labels": (8, 256)}),
    ("gptj 4 layers b2 1024", "GPTJ", "ForCausalLM", {"n_layer": 4}, {"input_ids": (2, 1024), "labels": (2, 1024)}),
    ("dinov3 base b64", "DINOv3ViT", "Model", _BASE, {"pixel_values": (64, 3, 224, 224)}),
    ("falcon h1 4 layers b2 1024", "FalconH1", "ForCausalLM", _FALCON, {"input_ids": (2, 1024), "labels": (2, 1024)}),
    ("longformer base b4 1024", "Longformer", "Model", _LONG, {"input_ids": (4, 1024)}),
    ("encodec 24k b8 1s", "Encodec", "Model", {}, {"input_values": (8, 1, 24000)}),
)


def clips(made: Made, tokens: Made) -> Any:
    import torchvision

    return torchvision.models.video.r2plus1d_18(weights=None), (made(8, 3, 16, 112, 112),)


def video(made: Made, tokens: Made) -> Any:
    from diffusers import CogVideoXTransformer3DModel

    named = ("hidden_states", "encoder_hidden_states", "timestep")
    return Picked(CogVideoXTransformer3DModel(num_layers=4), named), (made(1, 13, 16, 60, 90), made(1, 226, 4096), tokens(1, below=1000))


def motion(made: Made, tokens: Made) -> Any:
    from diffusers import UNetMotionModel

    named = ("sample", "timestep", "encoder_hidden_states")
    model = UNetMotionModel(sample_size=32, cross_attention_dim=768)
    return Picked(model, named), (made(1, 4, 16, 32, 32), tokens(1, below=1000), made(16, 77, 768))


def deep(made: Made, tokens: Made) -> Any:
    from diffusers import AutoencoderDC

    return Decodes(AutoencoderDC(decoder_block_out_channels=(64, 128, 256, 256, 512, 512))), (made(4, 32, 8, 8),)


def quantised(made: Made, tokens: Made) -> Any:
    from diffusers import VQModel

    blocks = {"down_block_types": ("DownEncoderBlock2D",) * 3, "up_block_types": ("UpDecoderBlock2D",) * 3}
    model = VQModel(**blocks, block_out_channels=(128, 256, 512), layers_per_block=2, num_vq_embeddings=8192, sample_size=256)
    return Picked(model), (made(4, 3, 256, 256),)


def sees(made: Made, tokens: Made) -> Any:
    """A image's patches in a conversation: CLIP's tower, a projector, Llama."""
    import transformers

    sizes = {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 8, "num_attention_heads": 16}
    tower = transformers.CLIPVisionConfig(**sizes, image_size=336, patch_size=14)
    words = transformers.LlamaConfig(**_LLAMA)
    config = transformers.LlavaConfig(vision_config=tower, text_config=words, image_token_index=50000)
    model = transformers.LlavaForConditionalGeneration(config)

    class Sees(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, pixels: Tensor, text: Tensor) -> Tensor:
            patches = self.model.get_image_features(pixels)
            patches = torch.stack(tuple(patches)) if isinstance(patches, (tuple, list)) else getattr(patches, "pooler_output", patches)
            patches = torch.stack(tuple(patches)) if isinstance(patches, (tuple, list)) else patches
            told = torch.cat([patches.reshape(text.shape[0], -1, patches.shape[-1]), self.model.get_input_embeddings()(text)], 1)
            return self.model.lm_head(self.model.model.language_model(inputs_embeds=told)[0])  # type: ignore[no-any-return]

    return Sees(), (made(2, 3, 336, 336), tokens(2, 448, below=50000))


def _dora() -> Any:
    from peft import LoraConfig

    return LoraConfig(r=16, lora_alpha=32, use_dora=True, target_modules=["q_proj", "v_proj", "up_proj", "down_proj"])


def _dropped() -> Any:
    from peft import LoraConfig

    every = ["q_proj", "k_proj", "v_proj", "o_proj"]
    return LoraConfig(r=64, lora_alpha=16, lora_dropout=0.05, target_modules=every, modules_to_save=["lm_head"])


def _scaled() -> Any:
    from peft import IA3Config

    return IA3Config(target_modules=["k_proj", "v_proj", "down_proj"], feedforward_modules=["down_proj"])


def _hadamard() -> Any:
    from peft import LoHaConfig

    return LoHaConfig(r=8, alpha=8, target_modules=["q_proj", "v_proj"])


def decodes(made: Made, tokens: Made) -> Any:
    """A decoder that attends to a memory, of torch.nn's own layers."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layer = nn.TransformerDecoderLayer(512, 8, 2048, batch_first=True, norm_first=True, dropout=0.0)
            self.words, self.layers, self.says = nn.Embedding(32000, 512), nn.TransformerDecoder(layer, 6), nn.Linear(512, 32000)
            self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(256))

        def forward(self, words: Tensor, memory: Tensor) -> Tensor:
            told = self.layers(self.words(words), memory, tgt_mask=self.mask.to(memory.dtype), tgt_is_causal=True)
            return F.cross_entropy(self.says(told).flatten(0, 1).float(), words.flatten(), label_smoothing=0.1)

    return Net(), (tokens(32, 256, below=32000), made(32, 400, 512))


def separable(made: Made, tokens: Made) -> Any:
    """Speech by separable convolutions in one dimension, whose filters are long."""

    def block(i: int, o: int, width: int, stride: int = 1) -> nn.Sequential:
        deep = nn.Conv1d(i, i, width, stride, width // 2, groups=i, bias=False)
        return nn.Sequential(deep, nn.Conv1d(i, o, 1, bias=False), nn.BatchNorm1d(o), nn.ReLU())

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.into = block(64, 256, 33, 2)
            self.deep = nn.ModuleList(block(256, 256, width) for width in (33, 33, 39, 39, 51, 51))
            self.out = nn.Sequential(block(256, 512, 63), nn.Conv1d(512, 1024, 1), nn.GLU(1), nn.Conv1d(512, 64, 1))

        def forward(self, x: Tensor) -> Tensor:
            x = self.into(x)
            for layer in self.deep:
                x = x + layer(x)
            return F.log_softmax(self.out(x).float(), 1)

    return Net(), (made(16, 64, 1600),)


def residual(made: Made, tokens: Made) -> Any:
    """Attention over the channels of an image, instance norms, leaky activations, pixels shuffled up: restoration."""

    class Block(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.a, self.b = nn.Conv2d(width, width, 3, padding=1), nn.Conv2d(width, width, 3, padding=1)
            self.norm, self.pool = nn.InstanceNorm2d(width, affine=True), nn.AdaptiveAvgPool2d(1)
            self.gate = nn.Sequential(nn.Conv2d(width, width // 8, 1), nn.LeakyReLU(0.1), nn.Conv2d(width // 8, width, 1), nn.Sigmoid())

        def forward(self, x: Tensor) -> Tensor:
            y = self.b(F.leaky_relu(self.norm(self.a(x)), 0.2))
            return x + y * self.gate(self.pool(y))

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.into, self.blocks = nn.Conv2d(3, 96, 3, padding=1), nn.Sequential(*(Block(96) for _ in range(12)))
            self.up = nn.Sequential(nn.Conv2d(96, 384, 3, padding=1), nn.PixelShuffle(2), nn.Conv2d(96, 3, 3, padding=1))

        def forward(self, x: Tensor) -> Tensor:
            y = self.into(x)
            larger = F.interpolate(x, scale_factor=2, mode="bicubic", align_corners=False)
            return self.up(y + self.blocks(y)) + larger  # type: ignore[no-any-return]

    return Net(), (made(8, 3, 128, 128),)


def routed(made: Made, tokens: Made) -> Any:
    """A mixture of experts as people write it without a library: all experts on all tokens, weighed, in fp32 where it sums."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up = nn.Parameter(torch.randn(8, 512, 2048) * 0.02)
            self.down = nn.Parameter(torch.randn(8, 2048, 512) * 0.02)
            self.gate, self.norm, self.out = nn.Linear(512, 8), nn.RMSNorm(512), nn.Linear(512, 512)

        def forward(self, x: Tensor) -> Tensor:
            for _ in range(3):
                with torch.autocast(x.device.type, enabled=False):
                    weights = self.gate(self.norm(x)).float().softmax(-1)
                seen = torch.einsum("bsd,edf->besf", x, self.up)
                each = torch.einsum("besf,efd->besd", F.gelu(seen, approximate="tanh"), self.down)
                x = x + torch.einsum("besd,bse->bsd", each.float(), weights).to(x.dtype)
            return self.out(x)  # type: ignore[no-any-return]

    return Net(), (made(8, 512, 512),)


CASES = in_turn(
    (timm_case(*each) for each in _TIMM),
    (hugging_face_case(*each) for each in _HUGGING_FACE),
    (("torchvision r2plus1d_18 b8 16x112", clips), torchvision_case("maxvit_t", 32, 224), torchvision_case("mobilenet_v2", 128, 224)),
    (
        ("diffusers cogvideox 4 layers b1", video),
        ("diffusers vq model b4 256", quantised),
        ("diffusers unet motion b1 16x32", motion),
        ("diffusers autoencoder dc decode b4 8", deep),
    ),
    (
        ("peft dora llama 4 layers b2 1024", adapted("Llama", _LLAMA, _dora)),
        ("peft lora dropout and head llama 4 layers b2 1024", adapted("Llama", _LLAMA, _dropped)),
        ("peft ia3 llama 4 layers b2 1024", adapted("Llama", _LLAMA, _scaled)),
        ("peft loha llama 4 layers b2 1024", adapted("Llama", _LLAMA, _hadamard)),
    ),
    (
        ("torch.nn decoder with memory b32 256", decodes),
        ("torch.nn separable speech b16 1600", separable),
        ("torch.nn restoration b8 128", residual),
        ("torch.nn experts by einsum b8 512", routed),
    ),
    (("transformers llava 8+4 layers b2", sees),),
)
