"""A third collection of library modules that nothing was fitted to, drawn after the second had been learned from: cases for
modules.py (`modules.py forecast OUT GPU "" library_third`). timm 1.0.30, diffusers 0.42.1, transformers 5.17.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from library_frame import Made, Makes, Picked, Row, hugging_face_case, timm_case
from torch import Tensor, nn

CASES: dict[str, Makes] = {}

# name, images, their side, channels last
_TIMM = (
    ("twins_svt_small", 64, 224, False),
    ("resnetv2_50", 64, 224, True),
    ("convnext_small", 64, 224, True),
    ("vit_small_patch16_224", 128, 224, False),
    ("mnasnet_100", 128, 224, True),
    ("wide_resnet50_2", 64, 224, False),
    ("inception_next_tiny", 64, 224, False),
)
_QWEN = {"hidden_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 64}
_QWEN |= {"moe_intermediate_size": 512, "num_experts": 32, "num_experts_per_tok": 4, "vocab_size": 50000}
_PAIR = {"input_ids": (4, 1024), "labels": (4, 1024)}
_HUGGING_FACE: tuple[Row, ...] = (
    ("distilbert b32 256", "DistilBert", "Model", {}, {"input_ids": (32, 256)}),
    ("opt 6 layers b4 1024", "OPT", "ForCausalLM", {"num_hidden_layers": 6, "hidden_size": 1024, "ffn_dim": 4096,
     "num_attention_heads": 16, "word_embed_proj_dim": 1024}, _PAIR),
    ("qwen3 moe 4 layers b4 1024", "Qwen3Moe", "ForCausalLM", _QWEN, _PAIR),
    ("clip vision b64", "CLIPVision", "Model", {"patch_size": 16, "hidden_size": 768}, {"pixel_values": (64, 3, 224, 224)}),
    ("blenderbot small b16 256", "BlenderbotSmall", "ForConditionalGeneration", {},
     {"input_ids": (16, 256), "labels": (16, 256)}),
)


def auraflow(made: Made, tokens: Made) -> Any:
    from diffusers import AuraFlowTransformer2DModel

    model = AuraFlowTransformer2DModel(num_mmdit_layers=2, num_single_dit_layers=6)
    return Picked(model, ("hidden_states", "encoder_hidden_states", "timestep")), (made(2, 4, 64, 64), made(2, 128, 2048), made(2))


def pictures_to_pictures(made: Made, tokens: Made) -> Any:
    def step(i: int, o: int) -> nn.Sequential:
        return nn.Sequential(nn.GroupNorm(8, i), nn.SiLU(), nn.Conv2d(i, o, 3, padding=1))

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.into, self.out = nn.Conv2d(3, 64, 3, padding=1), nn.Conv2d(64, 3, 3, padding=1)
            self.down = nn.ModuleList([step(64, 128), step(128, 256)])
            self.up = nn.ModuleList([step(256 + 128, 128), step(128 + 64, 64)])
            self.attend, self.norm = nn.MultiheadAttention(256, 8, batch_first=True), nn.LayerNorm(256)

        def forward(self, x: Tensor) -> Tensor:
            kept = [x := self.into(x)]
            for layer in self.down:
                kept.append(x := layer(F.avg_pool2d(x, 2)))
            b, c, h, w = x.shape
            y = self.norm(x.flatten(2).transpose(1, 2))
            x = x + self.attend(y, y, y, need_weights=False)[0].transpose(1, 2).reshape(b, c, h, w)
            for layer, beside in zip(self.up, kept[-2::-1], strict=True):
                x = layer(torch.cat([F.interpolate(x, scale_factor=2), beside], 1))
            return self.out(x)

    return Net(), (made(16, 3, 128, 128),)


def tabular(made: Made, tokens: Made) -> Any:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(256, 1024)
            layers = [nn.Sequential(nn.BatchNorm1d(1024), nn.Linear(1024, 2048), nn.ReLU(), nn.Dropout(0.1), nn.Linear(2048, 1024))]
            self.layers = nn.ModuleList(layers + [nn.Sequential(nn.BatchNorm1d(1024), nn.Linear(1024, 1024)) for _ in range(3)])
            self.head = nn.Sequential(nn.BatchNorm1d(1024), nn.ReLU(), nn.Linear(1024, 2))

        def forward(self, x: Tensor) -> Tensor:
            x = self.first(torch.log1p(x.abs()) * x.sign())
            for layer in self.layers:
                x = x + layer(x)
            return self.head(x)  # type: ignore[no-any-return]

    return Net(), (made(16384, 256),)


CASES |= dict(timm_case(*each) for each in _TIMM)
CASES |= dict(hugging_face_case(*each) for each in _HUGGING_FACE)
CASES |= {"diffusers auraflow 8 layers b2 64": auraflow, "torch.nn images to images b16 128": pictures_to_pictures}
CASES["torch.nn tabular b16384"] = tabular
