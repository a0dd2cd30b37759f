"""A sixth collection of library modules that nothing was fitted to, most of families that no collection before had:
cases for modules.py (`modules.py forecast OUT GPU "" library_sixth`). timm 1.0.29, torchvision 0.26, diffusers 0.42.1,
peft 0.21, transformers 5.17. Ordered so that a measurement that runs out of time has some of every library.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from library_frame import Decodes, Made, Picked, Row, adapted, hugging_face_case, in_turn, timm_case, torchvision_case
from torch import Tensor, nn

# name, images, their side, channels last
_TIMM = (
    ("nest_tiny_jx", 64, 224, False),
    ("halonet26t", 64, 256, True),
    ("dpn68b", 64, 224, True),
    ("crossvit_small_240", 64, 240, False),
    ("convmixer_768_32", 32, 224, True),
    ("tnt_s_patch16_224", 64, 224, False),
    ("skresnet50", 64, 224, True),
    ("gmlp_s16_224", 64, 224, False),
    ("lambda_resnet26t", 64, 256, False),
    ("coat_lite_small", 64, 224, False),
    ("mixnet_l", 64, 224, True),
    ("hgnetv2_b2", 128, 224, True),
    ("efficientvit_b1", 128, 224, True),
    ("rdnet_tiny", 64, 224, True),
)
# name, images, their side
_TORCHVISION = (("vit_b_16", 64, 224), ("squeezenet1_1", 128, 224), ("alexnet", 256, 224))
_QWEN = {"hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 4, "num_attention_heads": 32}
_QWEN |= {"num_key_value_heads": 8, "vocab_size": 50304}
_WORDS = {"hidden_size": 768, "num_attention_heads": 12, "num_hidden_layers": 6, "intermediate_size": 3072}
_NEO = {"hidden_size": 1024, "num_layers": 6, "num_heads": 16, "vocab_size": 50304}
_NEO |= {"attention_types": [[["global", "local"], 3]]}
_SEES = {"depths": [2, 2, 2], "num_heads": [3, 6, 6], "embed_dim": 96, "image_size": 64, "upscale": 2}
_SERIES = {"num_input_channels": 21, "context_length": 512, "patch_length": 16, "prediction_length": 96}
_PATCHES = {"d_model": 256, "num_hidden_layers": 6, "num_attention_heads": 16, "ffn_dim": 512, "patch_stride": 8}
_MIXES = {"d_model": 64, "num_layers": 8, "patch_stride": 16, "expansion_factor": 2}
_MARIAN = {"d_model": 512, "encoder_ffn_dim": 2048, "decoder_ffn_dim": 2048, "encoder_attention_heads": 8}
_MARIAN |= {"decoder_attention_heads": 8, "encoder_layers": 6, "decoder_layers": 6, "pad_token_id": 0}
_MARIAN |= {"vocab_size": 58100}
_MARIAN |= {"decoder_start_token_id": 0}  # the default lies outside the table
_SOUND = {"mask_time_prob": 0.0, "layerdrop": 0.0}
_TALK = {"input_ids": (8, 256), "labels": (8, 256)}
_SHORT, _FOUR, _WIDE = {"max_position_embeddings": 512}, {"num_hidden_layers": 4}, {"embedding_size": 768}
_PROPHET = {"num_encoder_layers": 4, "num_decoder_layers": 4}
_HUGGING_FACE: tuple[Row, ...] = (
    ("nystromformer 6 layers b8 512", "Nystromformer", "Model", _WORDS | _SHORT, {"input_ids": (8, 512)}),
    ("ast base b16", "AST", "Model", {"num_hidden_layers": 6}, {"input_values": (16, 1024, 128)}),
    ("sew tiny b8 10s", "SEW", "Model", {"num_hidden_layers": 6, **_SOUND}, {"input_values": (8, 160000)}),
    ("convbert 6 layers b16 256", "ConvBert", "Model", {**_WORDS, "embedding_size": 768}, {"input_ids": (16, 256)}),
    ("wav2vec2 conformer 4 layers b4 10s", "Wav2Vec2Conformer", "Model", _SOUND | _FOUR, {"input_values": (4, 160000)}),
    ("gpt neo 6 layers b4 1024", "GPTNeo", "ForCausalLM", _NEO, {"input_ids": (4, 1024), "labels": (4, 1024)}),
    ("swin2sr b4 64", "Swin2SR", "ForImageSuperResolution", _SEES, {"pixel_values": (4, 3, 64, 64)}),
    ("hifi gan b8 100", "SpeechT5HifiGan", "", {}, {"spectrogram": (8, 100, 80)}),
    ("squeezebert 6 layers b32 128", "SqueezeBert", "Model", _WORDS | _WIDE, {"input_ids": (32, 128)}),
    ("marian b16 128", "Marian", "MTModel", _MARIAN, {"input_ids": (16, 128), "labels": (16, 128)}),
    ("patchtst b64 512", "PatchTST", "ForPrediction", {**_SERIES, **_PATCHES}, {"past_values": (64, 512, 21)}),
    ("cvt 13 b64", "Cvt", "Model", {}, {"pixel_values": (64, 3, 224, 224)}),
    ("fnet 6 layers b16 512", "FNet", "Model", _WORDS, {"input_ids": (16, 512)}),
    ("patchtsmixer b64 512", "PatchTSMixer", "ForPrediction", {**_SERIES, **_MIXES}, {"past_values": (64, 512, 21)}),
    ("prophetnet 4 layers b8 256", "ProphetNet", "ForConditionalGeneration", _PROPHET, _TALK),
)


def video(made: Made, tokens: Made) -> Any:
    import torchvision

    return torchvision.models.video.s3d(weights=None), (made(8, 3, 16, 224, 224),)


def pyramid(made: Made, tokens: Made) -> Any:
    """What a detector sees: a backbone whose norms are frozen, its levels added from the top down."""
    from torchvision.models.detection.backbone_utils import resnet_fpn_backbone

    model = resnet_fpn_backbone(backbone_name="resnet50", weights=None, trainable_layers=5)
    return Picked(model, key="0"), (made(4, 3, 512, 512),)


def dit(made: Made, tokens: Made) -> Any:
    from diffusers import DiTTransformer2DModel

    model = DiTTransformer2DModel(num_layers=8, sample_size=32, num_attention_heads=16, attention_head_dim=72)
    given = (made(16, 4, 32, 32), tokens(16, below=1000), tokens(16, below=1000))
    return Picked(model, ("hidden_states", "timestep", "class_labels")), given


def plain(made: Made, tokens: Made) -> Any:
    from diffusers import UNet2DModel

    down = ("DownBlock2D", "DownBlock2D", "AttnDownBlock2D", "DownBlock2D")
    up, widths = ("UpBlock2D", "AttnUpBlock2D", "UpBlock2D", "UpBlock2D"), (128, 256, 256, 512)
    model = UNet2DModel(sample_size=64, block_out_channels=widths, down_block_types=down, up_block_types=up)
    return Picked(model, ("sample", "timestep")), (made(8, 3, 64, 64), tokens(8, below=1000))


def adapter(made: Made, tokens: Made) -> Any:
    from diffusers import T2IAdapter

    return Picked(T2IAdapter(adapter_type="full_adapter"), key=-1), (made(8, 3, 512, 512),)


def prior(made: Made, tokens: Made) -> Any:
    from diffusers import PriorTransformer

    model = PriorTransformer(num_layers=6, num_attention_heads=16, attention_head_dim=64)
    named = ("hidden_states", "timestep", "proj_embedding", "encoder_hidden_states")
    return Picked(model, named), (made(16, 768), tokens(16, below=1000), made(16, 768), made(16, 77, 768))


def latte(made: Made, tokens: Made) -> Any:
    from diffusers import LatteTransformer3DModel

    sizes = {"num_attention_heads": 16, "attention_head_dim": 72, "in_channels": 4, "out_channels": 8, "num_layers": 4}
    sizes |= {"cross_attention_dim": 1152, "attention_bias": True, "sample_size": 32, "patch_size": 2}
    sizes |= {"norm_type": "ada_norm_single"}
    sizes |= {"caption_channels": 4096, "video_length": 8, "norm_elementwise_affine": False, "norm_eps": 1e-6}
    named = ("hidden_states", "timestep", "encoder_hidden_states")
    inputs = (made(1, 4, 8, 32, 32), tokens(1, below=1000), made(1, 120, 4096))
    return Picked(LatteTransformer3DModel(**sizes), named), inputs


def sound(made: Made, tokens: Made) -> Any:
    from diffusers import AutoencoderOobleck

    sizes = {"channel_multiples": [1, 2, 4, 8], "downsampling_ratios": [2, 4, 4, 8]}
    model = AutoencoderOobleck(encoder_hidden_size=64, decoder_channels=64, **sizes)
    return Decodes(model), (made(4, 64, 128),)


def _shared() -> Any:
    from peft import VeraConfig

    return VeraConfig(r=64, target_modules=["q_proj", "o_proj"])


def _kronecker() -> Any:
    from peft import LoKrConfig

    return LoKrConfig(r=8, alpha=8, target_modules=["q_proj", "v_proj", "up_proj"])


def _adaptive() -> Any:
    from peft import AdaLoraConfig

    return AdaLoraConfig(init_r=12, target_r=8, total_step=1000, target_modules=["q_proj", "v_proj"])


def _everywhere() -> Any:
    from peft import LoraConfig

    return LoraConfig(r=8, lora_alpha=16, use_rslora=True, target_modules="all-linear", bias="all")


def graph(made: Made, tokens: Made) -> Any:
    """Messages along edges, summed where they arrive."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.say = nn.ModuleList(nn.Linear(512, 256) for _ in range(3))
            self.hear = nn.ModuleList(nn.Linear(256, 256) for _ in range(3))
            self.norms = nn.ModuleList(nn.LayerNorm(256) for _ in range(3))

        def forward(self, x: Tensor, source: Tensor, target: Tensor) -> Tensor:
            for say, hear, norm in zip(self.say, self.hear, self.norms, strict=True):
                told = F.silu(say(torch.cat([x.index_select(0, source), x.index_select(0, target)], -1)))
                x = x + hear(norm(torch.zeros_like(x).index_add(0, target, told)))
            return x

    return Net(), (made(20000, 256), tokens(100000, below=20000), tokens(100000, below=20000))


def draws(made: Made, tokens: Made) -> Any:
    """A generator of images by transposed convolutions, and who judges them."""

    def up(i: int, o: int) -> list[nn.Module]:
        return [nn.ConvTranspose2d(i, o, 4, 2, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(True)]

    def down(i: int, o: int) -> list[nn.Module]:
        return [nn.Conv2d(i, o, 4, 2, 1, bias=False), nn.BatchNorm2d(o), nn.LeakyReLU(0.2, True)]

    first = [nn.ConvTranspose2d(128, 512, 4, 1, 0, bias=False), nn.BatchNorm2d(512), nn.ReLU(True)]
    make = [*first, *up(512, 256), *up(256, 128), *up(128, 64), nn.ConvTranspose2d(64, 3, 4, 2, 1), nn.Tanh()]
    judge = [nn.Conv2d(3, 64, 4, 2, 1), nn.LeakyReLU(0.2, True), *down(64, 128), *down(128, 256), *down(256, 512)]
    judge += [nn.Conv2d(512, 1, 4)]
    return nn.Sequential(*make, *judge), (made(128, 128, 1, 1),)


def rays(made: Made, tokens: Made) -> Any:
    """Points along rays, their sines and cosines, a narrow network, weights by products along the ray."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            wide = [nn.Linear(63, 256), *(nn.Linear(256, 256) for _ in range(6))]
            self.layers, self.out = nn.ModuleList(wide), nn.Linear(256, 4)
            self.register_buffer("scales", 2.0 ** torch.arange(10))

        def forward(self, x: Tensor) -> Tensor:
            far = (x[..., None, :] * self.scales.to(x.dtype)[:, None]).flatten(-2)
            y = torch.cat([x, far.sin(), far.cos()], -1)
            for layer in self.layers:
                y = F.relu(layer(y))
            seen, density = self.out(y).split([3, 1], -1)
            stays = 1 - torch.exp(-F.softplus(density.float()))
            passed = torch.cumprod(1 - stays + 1e-10, -2)
            return (stays * passed * torch.sigmoid(seen.float())).sum(-2)

    return Net(), (made(4096, 64, 3),)


def tags(made: Made, tokens: Made) -> Any:
    """Characters by convolutions, words by a recurrence both ways, labels."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.letters = nn.Embedding(30000, 256, padding_idx=0), nn.Embedding(128, 32)
            self.wide = nn.Conv1d(32, 64, 3, padding=1)
            self.runs = nn.GRU(320, 256, 2, batch_first=True, bidirectional=True)
            self.says = nn.Linear(512, 20)

        def forward(self, words: Tensor, letters: Tensor) -> Tensor:
            spelt = self.letters(letters.flatten(0, 1)).transpose(1, 2)
            spelt = F.max_pool1d(F.relu(self.wide(spelt)), spelt.shape[-1]).squeeze(-1).unflatten(0, words.shape)
            told, _ = self.runs(torch.cat([self.words(words), spelt], -1))
            return F.log_softmax(self.says(told).float(), -1)

    return Net(), (tokens(64, 64, below=30000), tokens(64, 64, 12, below=128))


def attends(made: Made, tokens: Made) -> Any:
    """Layers of nn.MultiheadAttention whose weights are asked for, in fp32 norms, with a mask of padding."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.each = nn.ModuleList(nn.MultiheadAttention(512, 8, batch_first=True) for _ in range(4))
            self.norms = nn.ModuleList(nn.LayerNorm(512) for _ in range(4))

        def forward(self, x: Tensor) -> Tensor:
            for layer, norm in zip(self.each, self.norms, strict=True):
                y, _ = layer(norm(x), norm(x), norm(x), need_weights=True, average_attn_weights=False)
                x = x + y
            return x

    return Net(), (made(16, 384, 512),)


CASES = in_turn(
    (timm_case(*each) for each in _TIMM),
    (hugging_face_case(*each) for each in _HUGGING_FACE),
    (
        *(torchvision_case(*each) for each in _TORCHVISION),
        torchvision_case("inception_v3", 32, 299, aux_logits=False, init_weights=False),
        ("torchvision s3d b8 16x224", video),
        ("torchvision resnet50 pyramid b4 512", pyramid),
    ),
    (
        ("diffusers dit 8 layers b16 32", dit),
        ("diffusers unet 2d b8 64", plain),
        ("diffusers t2i adapter b8 512", adapter),
        ("diffusers prior 6 layers b16", prior),
        ("diffusers latte 4 layers b1 8x32", latte),
        ("diffusers oobleck decode b4 128", sound),
    ),
    (
        ("peft vera qwen2 4 layers b2 1024", adapted("Qwen2", _QWEN, _shared)),
        ("peft lokr qwen2 4 layers b2 1024", adapted("Qwen2", _QWEN, _kronecker)),
        ("peft adalora qwen2 4 layers b2 1024", adapted("Qwen2", _QWEN, _adaptive)),
        ("peft rslora biases qwen2 4 layers b2 1024", adapted("Qwen2", _QWEN, _everywhere)),
    ),
    (
        ("torch.nn graph of messages 20000 100000", graph),
        ("torch.nn generator and judge b128", draws),
        ("torch.nn rays b4096 64", rays),
        ("torch.nn tagger b64 64", tags),
        ("torch.nn attention weights b16 384", attends),
    ),
)
