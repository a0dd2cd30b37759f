"""Modules of timm, torchvision, diffusers and transformers, and five of plain torch.nn, that nothing was fitted to: cases for
modules.py (`modules.py forecast OUT GPU "" library_cases`). timm 1.0.30, torchvision 0.26, diffusers 0.42.1, transformers 5.17.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from library_frame import Made, Makes, Picked, Row, hugging_face_case, timm_case
from torch import Tensor, nn

CASES: dict[str, Makes] = {}


def case(name: str) -> Callable[[Any], Any]:
    def add(make: Any) -> Any:
        CASES[name] = make
        return make

    return add


# -- timm: name, images, their side, channels last --------------------------------------------------

_TIMM = (
    ("convnext_tiny", 64, 224, False),
    ("efficientnetv2_rw_s", 64, 288, True),
    ("regnetx_032", 128, 224, True),
    ("coatnet_0_rw_224", 64, 224, False),
    ("beit_base_patch16_224", 64, 224, False),
    ("xception41", 32, 299, True),
    ("seresnext50_32x4d", 64, 224, False),
    ("poolformer_s24", 64, 224, False),
    ("mobilevit_s", 64, 256, True),
    ("resnet50", 64, 224, False),
    ("davit_tiny", 64, 224, False),
    ("inception_v4", 32, 299, True),
    ("vit_base_patch16_siglip_224", 64, 224, False),
    ("edgenext_small", 64, 256, False),
    ("hrnet_w18", 32, 224, True),
)


CASES |= dict(timm_case(*each) for each in _TIMM)


# -- torchvision, diffusers ----------------------------------------------------------------------------


@case("torchvision fcn_resnet50 b8 384")
def fcn(made: Made, tokens: Made) -> Any:
    import torchvision

    model = torchvision.models.segmentation.fcn_resnet50(weights=None, weights_backbone=None)
    return Picked(model, key="out"), (made(8, 3, 384, 384),)


@case("torchvision mc3_18 b8 16x112")
def mc3(made: Made, tokens: Made) -> Any:
    import torchvision

    return torchvision.models.video.mc3_18(), (made(8, 3, 16, 112, 112),)


@case("torchvision s3d b8 16x224")
def s3d(made: Made, tokens: Made) -> Any:
    import torchvision

    return torchvision.models.video.s3d(), (made(8, 3, 16, 224, 224),)


@case("diffusers ddpm unet b16 64")
def ddpm(made: Made, tokens: Made) -> Any:
    from diffusers import UNet2DModel

    model = UNet2DModel(
        sample_size=64,
        block_out_channels=(128, 128, 256, 256, 512, 512),
        down_block_types=("DownBlock2D",) * 4 + ("AttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "AttnUpBlock2D") + ("UpBlock2D",) * 4,
    )
    return Picked(model), (made(16, 3, 64, 64), tokens(16, below=1000))


@case("diffusers dit xl b16 32")
def dit(made: Made, tokens: Made) -> Any:
    from diffusers import DiTTransformer2DModel

    return Picked(DiTTransformer2DModel()), (made(16, 4, 32, 32), tokens(16, below=1000), tokens(16, below=1000))


@case("diffusers vae encode b2 512")
def encode(made: Made, tokens: Made) -> Any:
    from diffusers import AutoencoderKL

    kinds = {"down_block_types": ("DownEncoderBlock2D",) * 4, "up_block_types": ("UpDecoderBlock2D",) * 4}
    model = AutoencoderKL(block_out_channels=(128, 256, 512, 512), layers_per_block=2, latent_channels=4, **kinds)
    return model.encoder, (made(2, 3, 512, 512),)


# -- transformers --------------------------------------------------------------------------------------

_WHISPER = {"d_model": 768, "encoder_layers": 12, "encoder_attention_heads": 12, "encoder_ffn_dim": 3072}
_WHISPER |= {"decoder_layers": 12, "decoder_attention_heads": 12, "decoder_ffn_dim": 3072}
_BAMBA = {"hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 6, "num_attention_heads": 16}
_BAMBA |= {"num_key_value_heads": 8, "attn_layer_indices": [3], "mamba_n_heads": 64, "mamba_d_head": 64, "vocab_size": 32000}
_HUGGING_FACE: tuple[Row, ...] = (
    ("hubert base b8 10s", "Hubert", "Model", {"mask_time_prob": 0.0, "layerdrop": 0.0}, {"input_values": (8, 160000)}),
    ("whisper small b8", "Whisper", "ForConditionalGeneration", _WHISPER, {"input_features": (8, 80, 3000), "labels": (8, 128)}),
    ("convbert base b16 256", "ConvBert", "Model", {}, {"input_ids": (16, 256)}),
    ("beit base b32", "Beit", "Model", {}, {"pixel_values": (32, 3, 224, 224)}),
    ("mpnet base b32 256", "MPNet", "Model", {}, {"input_ids": (32, 256)}),
    ("bamba 6 layers b2 1024", "Bamba", "ForCausalLM", _BAMBA, {"input_ids": (2, 1024), "labels": (2, 1024)}),
    ("phi3 4 layers b2 2048", "Phi3", "ForCausalLM", {"num_hidden_layers": 4}, {"input_ids": (2, 2048), "labels": (2, 2048)}),
)


CASES |= dict(hugging_face_case(*each) for each in _HUGGING_FACE)


# -- plain torch.nn ------------------------------------------------------------------------------------


@case("torch.nn tcn conv1d b32 2048")
def tcn(made: Made, tokens: Made) -> Any:
    def pair(width: int, step: int) -> nn.Sequential:
        one = [nn.Conv1d(width, width, 7, padding=3 * step, dilation=step), nn.BatchNorm1d(width), nn.ReLU()]
        two = [nn.Conv1d(width, width, 7, padding=3 * step, dilation=step), nn.BatchNorm1d(width), nn.ReLU()]
        return nn.Sequential(*one, nn.Dropout(0.1), *two)

    layers = [pair(192, 2**k) for k in range(6)]
    return nn.Sequential(nn.Conv1d(64, 192, 1), *layers, nn.Conv1d(192, 10, 1)), (made(32, 64, 2048),)


@case("torch.nn codec conv1d b8 48000")
def codec(made: Made, tokens: Made) -> Any:
    class Residual(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            narrow = [nn.ELU(), nn.Conv1d(width, width // 2, 3, padding=1)]
            self.inner = nn.Sequential(*narrow, nn.ELU(), nn.Conv1d(width // 2, width, 1))

        def forward(self, x: Tensor) -> Tensor:
            return x + self.inner(x)  # type: ignore[no-any-return]

    layers: list[nn.Module] = [nn.Conv1d(1, 32, 7, padding=3)]
    width = 32
    for rate in (2, 4, 5, 8):
        layers += [Residual(width), nn.ELU(), nn.Conv1d(width, 2 * width, 2 * rate, rate, padding=rate // 2)]
        width *= 2
    for rate in (8, 5, 4, 2):
        layers += [nn.ELU(), nn.ConvTranspose1d(width, width // 2, 2 * rate, rate, padding=rate // 2), Residual(width // 2)]
        width //= 2
    return nn.Sequential(*layers, nn.Conv1d(32, 1, 7, padding=3)), (made(8, 1, 48000),)


@case("torch.nn vnet groupnorm b1 64")
def vnet(made: Made, tokens: Made) -> Any:
    def pair(i: int, o: int) -> nn.Sequential:
        one = [nn.Conv3d(i, o, 3, padding=1), nn.GroupNorm(8, o), nn.LeakyReLU(0.01, inplace=True)]
        return nn.Sequential(*one, nn.Conv3d(o, o, 3, padding=1), nn.GroupNorm(8, o), nn.LeakyReLU(0.01, inplace=True))

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.down = nn.ModuleList(pair(i, o) for i, o in ((4, 32), (32, 64), (64, 128), (128, 256)))
            self.up = nn.ModuleList(nn.ConvTranspose3d(2 * w, w, 2, 2) for w in (128, 64, 32))
            self.join = nn.ModuleList(pair(2 * w, w) for w in (128, 64, 32))
            self.head = nn.Conv3d(32, 4, 1)

        def forward(self, x: Tensor) -> Tensor:
            a = self.down[0](x)
            b = self.down[1](F.max_pool3d(a, 2))
            c = self.down[2](F.max_pool3d(b, 2))
            x = self.down[3](F.max_pool3d(c, 2))
            for up, join, beside in zip(self.up, self.join, (c, b, a), strict=True):
                x = join(torch.cat([up(x), beside], 1))
            return self.head(x)  # type: ignore[no-any-return]

    return Net(), (made(1, 4, 64, 64, 64),)


@case("torch.nn gpt by einsum b8 512")
def gpt(made: Made, tokens: Made) -> Any:
    class Layer(nn.Module):
        def __init__(self, width: int = 768, heads: int = 12) -> None:
            super().__init__()
            self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.norm = nn.LayerNorm(width)
            inner = [nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)]
            self.mlp = nn.Sequential(nn.LayerNorm(width), *inner)

        def forward(self, x: Tensor) -> Tensor:
            b, t, d = x.shape
            q, k, v = self.qkv(self.norm(x)).view(b, t, 3, self.heads, d // self.heads).unbind(2)
            a = torch.einsum("bqhd,bkhd->bhqk", q, k) * (d // self.heads) ** -0.5
            hidden = torch.ones(t, t, device=x.device, dtype=torch.bool).triu(1)
            a = a.masked_fill(hidden, float("-inf")).softmax(-1)
            x = x + self.out(torch.einsum("bhqk,bkhd->bqhd", a, v).reshape(b, t, d))
            return x + self.mlp(x)  # type: ignore[no-any-return]

    ends = [nn.LayerNorm(768), nn.Linear(768, 50304, bias=False)]
    return nn.Sequential(nn.Embedding(50304, 768), *(Layer() for _ in range(6)), *ends), (tokens(8, 512, below=50000),)


@case("torch.nn gan generator nchw b64 64")
def gan(made: Made, tokens: Made) -> Any:
    layers: list[nn.Module] = [nn.ConvTranspose2d(128, 512, 4, 1, 0, bias=False), nn.BatchNorm2d(512), nn.ReLU(True)]
    for i, o in ((512, 256), (256, 128), (128, 64)):
        layers += [nn.ConvTranspose2d(i, o, 4, 2, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(True)]
    return nn.Sequential(*layers, nn.ConvTranspose2d(64, 3, 4, 2, 1), nn.Tanh()), (made(64, 128, 1, 1),)
