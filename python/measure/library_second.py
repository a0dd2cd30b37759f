"""A second collection of library modules and modules as users write them that nothing was fitted to, none of them measured
before: cases for modules.py (`modules.py forecast OUT GPU "" library_second`). timm 1.0.30, torchvision 0.26, diffusers 0.42.1,
transformers 5.17. Ordered so that a measurement that runs out of time has some of every library.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from library_frame import Made, Makes, Picked, Row, hugging_face_case, timm_case
from torch import Tensor, nn

CASES: dict[str, Makes] = {}
_LATER: list[tuple[int, str, Any]] = []  # rank, name, how it is made: put in order at the end


def case(name: str) -> Callable[[Any], Any]:
    def add(make: Any) -> Any:
        _LATER.append((sum(1 for each in _LATER if each[1].split()[0] == name.split()[0]), name, make))
        return make

    return add


# -- timm: name, images, their side, channels last --------------------------------------------------

_TIMM = (
    ("caformer_s18", 64, 224, False),
    ("fastvit_t8", 128, 256, True),
    ("pvt_v2_b2", 64, 224, False),
    ("res2net50_26w_4s", 64, 224, True),
    ("xcit_small_12_p16_224", 64, 224, False),
    ("ghostnetv2_100", 128, 224, True),
    ("hiera_tiny_224", 64, 224, False),
    ("cspdarknet53", 64, 256, True),
    ("levit_256", 256, 224, False),
    ("focalnet_tiny_srf", 64, 224, False),
)


for _each in _TIMM:
    case(timm_case(*_each)[0])(timm_case(*_each)[1])


# -- torchvision ---------------------------------------------------------------------------------------


@case("torchvision shufflenet_v2_x1_0 b256")
def shuffled(made: Made, tokens: Made) -> Any:
    import torchvision

    return torchvision.models.shufflenet_v2_x1_0(weights=None), (made(256, 3, 224, 224),)


@case("torchvision swin_v2_t b32 256")
def swin(made: Made, tokens: Made) -> Any:
    import torchvision

    return torchvision.models.swin_v2_t(weights=None), (made(32, 3, 256, 256),)


@case("torchvision lraspp_mobilenet_v3_large b16 512")
def lraspp(made: Made, tokens: Made) -> Any:
    import torchvision

    model = torchvision.models.segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None)
    return Picked(model, key="out"), (made(16, 3, 512, 512),)


# -- diffusers -----------------------------------------------------------------------------------------


@case("diffusers pixart 12 layers b4 64")
def pixart(made: Made, tokens: Made) -> Any:
    from diffusers import PixArtTransformer2DModel

    model = PixArtTransformer2DModel(num_layers=12, sample_size=64, use_additional_conditions=False, caption_channels=4096)
    named = ("hidden_states", "encoder_hidden_states", "timestep")
    return Picked(model, named), (made(4, 4, 64, 64), made(4, 120, 4096), tokens(4, below=1000))


@case("diffusers controlnet sd b4 64")
def control(made: Made, tokens: Made) -> Any:
    from diffusers import ControlNetModel

    model = ControlNetModel(cross_attention_dim=768)
    given = (made(4, 4, 64, 64), tokens(4, below=1000), made(4, 77, 768), made(4, 3, 512, 512))
    return Picked(model, ("sample", "timestep", "encoder_hidden_states", "controlnet_cond"), "mid_block_res_sample"), given


@case("diffusers ltx video 8 layers b1")
def ltx(made: Made, tokens: Made) -> Any:
    from diffusers import LTXVideoTransformer3DModel

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = LTXVideoTransformer3DModel(num_layers=8)

        def forward(self, x: Tensor, text: Tensor, step: Tensor, mask: Tensor) -> Tensor:
            out = self.model(x, text, step, mask, num_frames=8, height=16, width=24)
            return out[0] if isinstance(out, tuple) else out.sample  # type: ignore[no-any-return]

    return Net(), (made(1, 3072, 128), made(1, 128, 4096), tokens(1, 1, below=1000), made(1, 128))


@case("diffusers tiny vae decode b4 64")
def tiny(made: Made, tokens: Made) -> Any:
    from diffusers import AutoencoderTiny

    return AutoencoderTiny().decoder, (made(4, 4, 64, 64),)


# -- transformers --------------------------------------------------------------------------------------

_GEMMA = {"hidden_size": 2304, "num_hidden_layers": 6, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256}
_GEMMA |= {"intermediate_size": 9216, "vocab_size": 100000}
_HUGGING_FACE: tuple[Row, ...] = (
    ("roformer base b16 512", "RoFormer", "Model", {}, {"input_ids": (16, 512)}),
    ("ast b8", "AST", "Model", {}, {"input_values": (8, 1024, 128)}),
    ("nystromformer base b16 512", "Nystromformer", "Model", {"max_position_embeddings": 512}, {"input_ids": (16, 512)}),
    ("mobilevitv2 b64", "MobileViTV2", "Model", {}, {"pixel_values": (64, 3, 256, 256)}),
    ("gemma3 6 layers b2 2048", "Gemma3", "ForCausalLM", _GEMMA, {"input_ids": (2, 2048), "labels": (2, 2048)}),
    ("wav2vec2 conformer b8 5s", "Wav2Vec2Conformer", "Model", {"mask_time_prob": 0.0, "layerdrop": 0.0}, {"input_values": (8, 80000)}),
    ("swinv2 tiny b32", "Swinv2", "Model", {}, {"pixel_values": (32, 3, 224, 224)}),
    ("t5 gated b8 512", "T5", "EncoderModel", {"d_model": 768, "d_ff": 2048, "num_layers": 12, "num_heads": 12,
     "feed_forward_proj": "gated-gelu"}, {"input_ids": (8, 512)}),
)


for _all in _HUGGING_FACE:
    case(hugging_face_case(*_all)[0])(hugging_face_case(*_all)[1])


# -- as users write them -------------------------------------------------------------------------------


@case("torch.nn pointnet b32 2048")
def points(made: Made, tokens: Made) -> Any:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            wide = (3, 64, 64, 128, 1024)
            pairs = zip(wide, wide[1:], strict=False)
            self.each = nn.ModuleList(nn.Conv1d(i, o, 1) for i, o in pairs)
            self.norms = nn.ModuleList(nn.BatchNorm1d(o) for o in wide[1:])
            self.head = nn.Sequential(nn.Linear(1024, 512), nn.BatchNorm1d(512), nn.ReLU(), nn.Dropout(0.3), nn.Linear(512, 40))

        def forward(self, x: Tensor) -> Tensor:
            x = x.transpose(2, 1)
            for conv, norm in zip(self.each, self.norms, strict=True):
                x = F.relu(norm(conv(x)))
            return F.log_softmax(self.head(x.max(dim=2).values), dim=1)

    return Net(), (made(32, 2048, 3),)


@case("torch.nn field of rays b65536")
def field(made: Made, tokens: Made) -> Any:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("scales", 2.0 ** torch.arange(10))
            self.first = nn.ModuleList([nn.Linear(63, 256), *(nn.Linear(256, 256) for _ in range(4))])
            self.last = nn.ModuleList([nn.Linear(319, 256), nn.Linear(256, 256), nn.Linear(256, 4)])

        def forward(self, x: Tensor) -> Tensor:
            at = (x[..., None] * self.scales).flatten(-2)
            y = x = torch.cat([x, at.sin(), at.cos()], -1)
            for layer in self.first:
                y = F.relu(layer(y))
            y = torch.cat([x, y], -1)
            for layer in self.last[:-1]:
                y = F.relu(layer(y))
            y = self.last[-1](y)
            return torch.sigmoid(y[..., :3]) * F.softplus(y[..., 3:])

    return Net(), (made(65536, 3),)


@case("torch.nn crosses and bags b16384")
def crosses(made: Made, tokens: Made) -> Any:
    class Net(nn.Module):
        def __init__(self, width: int = 1024) -> None:
            super().__init__()
            self.bag = nn.EmbeddingBag(500000, 64, mode="mean")
            self.one = nn.ModuleList(nn.Embedding(100000, 64) for _ in range(15))
            self.cross = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
            self.deep = nn.Sequential(nn.Linear(width, 1024), nn.GELU(), nn.LayerNorm(1024), nn.Linear(1024, 512), nn.GELU())
            self.out = nn.Linear(width + 512, 1)

        def forward(self, many: Tensor, single: Tensor) -> Tensor:
            parts = [self.bag(many), *(table(single[:, k]) for k, table in enumerate(self.one))]
            x = first = torch.cat(parts, 1)
            for layer in self.cross:
                x = first * layer(x) + x
            return self.out(torch.cat([x, self.deep(first)], 1)).squeeze(1)  # type: ignore[no-any-return]

    return Net(), (tokens(16384, 20, below=500000), tokens(16384, 15, below=100000))


@case("torch.nn two towers own loss b256")
def towers(made: Made, tokens: Made) -> Any:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(30000, 512, padding_idx=0)
            layer = nn.TransformerEncoderLayer(512, 8, 2048, 0.0, "gelu", batch_first=True, norm_first=True)
            self.text = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)
            pairs = zip((3, 64, 128, 256), (64, 128, 256, 512), strict=True)
            layers = [nn.Sequential(nn.Conv2d(i, o, 3, 2, 1), nn.GroupNorm(8, o), nn.SiLU()) for i, o in pairs]
            self.seen = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
            self.scale = nn.Parameter(torch.ones(()))

        def forward(self, picture: Tensor, text: Tensor) -> Tensor:
            a = F.normalize(self.seen(picture), dim=-1)
            b = F.normalize(self.text(self.words(text)).mean(1), dim=-1)
            score = a @ b.t() * self.scale.exp()
            same = torch.arange(len(a), device=a.device)
            return (F.cross_entropy(score, same) + F.cross_entropy(score.t(), same)) / 2

    return Net(), (made(256, 3, 128, 128), tokens(256, 64, below=30000))


@case("torch.nn graph of edges b60000")
def graph(made: Made, tokens: Made) -> Any:
    class Net(nn.Module):
        def __init__(self, width: int = 128) -> None:
            super().__init__()
            self.into = nn.Linear(64, width)
            self.send = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(4))
            self.keep = nn.ModuleList(nn.GRUCell(width, width) for _ in range(4))
            self.out = nn.Linear(width, 10)

        def forward(self, x: Tensor, edges: Tensor) -> Tensor:
            h = self.into(x)
            for send, keep in zip(self.send, self.keep, strict=True):
                said = F.relu(send(torch.cat([h[edges[0]], h[edges[1]]], -1)))
                heard = torch.zeros_like(h).index_add_(0, edges[1], said)
                h = keep(heard, h)
            return self.out(h)  # type: ignore[no-any-return]

    return Net(), (made(20000, 64), tokens(2, 60000, below=20000))


@case("torch.nn speech gru and ctc-like b16")
def speech(made: Made, tokens: Made) -> Any:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.front = nn.Sequential(
                *(nn.Conv2d(1, 32, (11, 5), (2, 2), (5, 2)), nn.BatchNorm2d(32), nn.Hardtanh(0, 20)),
                *(nn.Conv2d(32, 32, (11, 5), (1, 2), (5, 2)), nn.BatchNorm2d(32), nn.Hardtanh(0, 20)),
            )
            self.rnn = nn.GRU(640, 512, 3, batch_first=True, bidirectional=True)
            self.out = nn.Linear(1024, 29)

        def forward(self, x: Tensor) -> Tensor:
            x = self.front(x[:, None])
            x = x.transpose(1, 2).flatten(2)
            return F.log_softmax(self.out(self.rnn(x)[0]).float(), -1)

    return Net(), (made(16, 800, 80),)


CASES.update({name: make for _, name, make in sorted(_LATER, key=lambda each: each[0])})
