"""A fourth collection of library modules that nothing was fitted to, none of them measured before: cases for modules.py
(`modules.py forecast OUT GPU "" library_fourth`). timm 1.0.30, torchvision 0.26, diffusers 0.42.1, transformers 5.17. Ordered so
that a measurement that runs out of time has some of every library.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from library_frame import Made, Picked, Row, hugging_face_case, in_turn, timm_case
from torch import Tensor, nn

# name, images, their side, channels last
_TIMM = (
    ("mambaout_tiny", 64, 224, True),
    ("resnest50d", 64, 224, False),
    ("tiny_vit_11m_224", 64, 224, False),
    ("dla60", 64, 224, True),
    ("mvitv2_tiny", 64, 224, False),
    ("rexnet_100", 128, 224, True),
)
_STABLE = {"hidden_size": 2048, "num_hidden_layers": 4, "num_attention_heads": 32, "num_key_value_heads": 8}
_STABLE |= {"intermediate_size": 5632, "vocab_size": 50304}
_HUGGING_FACE: tuple[Row, ...] = (
    ("xlnet base b8 512", "XLNet", "Model", {"d_model": 768, "n_layer": 12, "n_head": 12, "d_inner": 3072}, {"input_ids": (8, 512)}),
    ("data2vec audio b8 10s", "Data2VecAudio", "Model", {"mask_time_prob": 0.0, "layerdrop": 0.0}, {"input_values": (8, 160000)}),
    ("stablelm 4 layers b2 2048", "StableLm", "ForCausalLM", _STABLE, {"input_ids": (2, 2048), "labels": (2, 2048)}),
    ("dpt large b4 384", "DPT", "ForDepthEstimation", {}, {"pixel_values": (4, 3, 384, 384)}),
    ("mobilebert b32 256", "MobileBert", "Model", {}, {"input_ids": (32, 256)}),
)


def googlenet(made: Made, tokens: Made) -> Any:
    import torchvision

    return torchvision.models.googlenet(weights=None, aux_logits=False, init_weights=False), (made(128, 3, 224, 224),)


def clips(made: Made, tokens: Made) -> Any:
    import torchvision

    return torchvision.models.video.swin3d_t(weights=None), (made(4, 3, 16, 224, 224),)


def sana(made: Made, tokens: Made) -> Any:
    from diffusers import SanaTransformer2DModel

    model = SanaTransformer2DModel(num_layers=6)
    named = ("hidden_states", "encoder_hidden_states", "timestep")
    return Picked(model, named), (made(4, 32, 32, 32), made(4, 300, 2304), tokens(4, below=1000))


def captions(made: Made, tokens: Made) -> Any:
    """A image's features, and a recurrent decoder that looks at them in every step's words."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            sizes = (3, 64, 128, 256, 512)
            pairs = zip(sizes, sizes[1:], strict=False)
            self.sees = nn.Sequential(*(layer for i, o in pairs for layer in (nn.Conv2d(i, o, 3, 2, 1), nn.BatchNorm2d(o), nn.ELU())))
            self.words, self.recurs = nn.Embedding(20000, 512), nn.GRU(512, 512, 2, batch_first=True)
            self.looks, self.says = nn.MultiheadAttention(512, 8, batch_first=True), nn.Linear(1024, 20000)

        def forward(self, picture: Tensor, words: Tensor) -> Tensor:
            seen = self.sees(picture).flatten(2).transpose(1, 2)
            told = self.recurs(self.words(words))[0]
            looked = self.looks(told, seen, seen, need_weights=False)[0]
            logits = self.says(torch.cat([told, looked], -1))
            return F.cross_entropy(logits.flatten(0, 1).float(), words.flatten())

    return Net(), (made(64, 3, 192, 192), tokens(64, 40, below=20000))


def signals(made: Made, tokens: Made) -> Any:
    """A UNet over signals: strided convolutions down, transposed ones up, squeeze and excitation between."""

    class Gate(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.down, self.up = nn.Linear(width, width // 4), nn.Linear(width // 4, width)

        def forward(self, x: Tensor) -> Tensor:
            return x * torch.sigmoid(self.up(F.silu(self.down(x.mean(-1))))).unsqueeze(-1)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            widths = (32, 64, 128, 256)
            self.into = nn.Conv1d(2, 32, 7, padding=3)
            pairs = tuple(zip(widths, widths[1:], strict=False))
            self.down = nn.ModuleList(
                nn.Sequential(nn.Conv1d(i, o, 8, 4, 2), nn.InstanceNorm1d(o, affine=True), nn.GELU(), Gate(o)) for i, o in pairs
            )
            self.up = nn.ModuleList(
                nn.Sequential(nn.ConvTranspose1d(o, i, 8, 4, 2), nn.InstanceNorm1d(i, affine=True), nn.GELU()) for i, o in pairs[::-1]
            )
            self.out = nn.Conv1d(32, 2, 7, padding=3)

        def forward(self, x: Tensor) -> Tensor:
            kept, x = [], self.into(x)
            for layer in self.down:
                kept.append(x)
                x = layer(x)
            for layer in self.up:
                x = layer(x) + kept.pop()
            return self.out(x)  # type: ignore[no-any-return]

    return Net(), (made(16, 2, 32768),)


CASES = in_turn(
    (timm_case(*each) for each in _TIMM),
    (hugging_face_case(*each) for each in _HUGGING_FACE),
    (("torchvision googlenet b128", googlenet), ("torchvision swin3d_t b4 16x224", clips)),
    (("diffusers sana 6 layers b4 32", sana),),
    (("torch.nn captions b64", captions), ("torch.nn unet of signals b16 32768", signals)),
)
