"""Small models of the libraries that people export from, with all parameters unlike: exporters merge equal ones."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

BATCH, SEQ = 2, 24


@dataclass(frozen=True)
class Case:
    """A model, what it is called with, and which of its axes are free in the exported file."""

    make: Callable[[], torch.nn.Module]
    inputs: Callable[[], tuple[torch.Tensor, ...]]
    free: dict[int, str]
    script: bool = True  # the exporter of before torch.export can read it
    dynamo: bool = True
    optimize: bool = False
    twice: int = 0  # parameters of a tied weight of which an optimiser made a transposed copy


def _tokens() -> tuple[torch.Tensor, ...]:
    return (torch.randint(1, 90, (BATCH, SEQ)),)


def _picture(side: int) -> tuple[torch.Tensor, ...]:
    return (torch.randn(BATCH, 3, side, side),)


class Logits(torch.nn.Module):
    """A Hugging Face model as a function of its tokens."""

    def __init__(self, inner: torch.nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.inner(tokens, return_dict=False)[0]


def _hugging(config: str, model: str, **keys: Any) -> torch.nn.Module:
    import transformers

    return Logits(getattr(transformers, model)(getattr(transformers, config)(vocab_size=97, **keys)))


def _vision(name: str, **keys: Any) -> torch.nn.Module:
    import torchvision

    return getattr(torchvision.models, name)(**keys)


def _resnet() -> torch.nn.Module:
    from torchvision.models.resnet import Bottleneck, ResNet

    return ResNet(Bottleneck, [1, 1, 1, 1], num_classes=10)


def _mobilenet() -> torch.nn.Module:
    from torchvision.models.mobilenetv3 import InvertedResidualConfig, MobileNetV3

    blocks = [
        InvertedResidualConfig(16, 3, 16, 16, True, "RE", 2, 1, 1.0),
        InvertedResidualConfig(16, 5, 48, 24, True, "HS", 2, 1, 1.0),
        InvertedResidualConfig(24, 5, 96, 24, True, "HS", 1, 2, 1.0),
    ]
    return MobileNetV3(blocks, 64, num_classes=10)


def _densenet() -> torch.nn.Module:
    from torchvision.models import DenseNet

    return DenseNet(8, (2, 20), 16, num_classes=10)  # twenty parts in one concatenation


def _convnext() -> torch.nn.Module:
    from torchvision.models.convnext import CNBlockConfig, ConvNeXt

    return ConvNeXt([CNBlockConfig(32, 64, 2), CNBlockConfig(64, None, 2)], num_classes=10)


def _vit() -> torch.nn.Module:
    from torchvision.models import VisionTransformer

    return VisionTransformer(64, 16, 2, 4, 64, 128, num_classes=10)


def _timm(name: str, **keys: Any) -> torch.nn.Module:
    import timm

    return timm.create_model(name, pretrained=False, **keys)


class Sound(torch.nn.Module):
    """Layers of one-dimensional pictures: a norm over groups, a filter that widens."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Conv1d(3, 8, 5, stride=2, padding=2)
        self.norm = torch.nn.GroupNorm(2, 8)
        self.up = torch.nn.ConvTranspose1d(8, 6, 4, stride=2, padding=1)
        self.last = torch.nn.Linear(6, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.up(torch.relu(self.norm(self.first(x)))).mean(2))


CASES: dict[str, Case] = {
    "resnet": Case(_resnet, partial(_picture, 64), {0: "batch"}),
    "resnet50": Case(partial(_vision, "resnet50"), partial(_picture, 64), {0: "batch"}, dynamo=False),
    "mobilenet_v3": Case(_mobilenet, partial(_picture, 64), {0: "batch"}),
    "efficientnet_b0": Case(partial(_vision, "efficientnet_b0"), partial(_picture, 64), {0: "batch"}, dynamo=False),
    "densenet": Case(_densenet, partial(_picture, 64), {0: "batch"}, dynamo=False),
    "convnext": Case(_convnext, partial(_picture, 64), {0: "batch"}),
    "vit": Case(_vit, partial(_picture, 64), {0: "batch"}),
    "timm swin": Case(
        partial(_timm, "swin_tiny_patch4_window7_224", depths=(1, 1, 1, 1)), partial(_picture, 224), {}, dynamo=False
    ),
    "timm deit": Case(partial(_timm, "deit_tiny_patch16_224", depth=2), partial(_picture, 224), {0: "batch"}),
    "timm regnet": Case(partial(_timm, "regnety_002"), partial(_picture, 64), {0: "batch"}, dynamo=False),
    "bert": Case(
        partial(
            _hugging,
            "BertConfig",
            "BertForMaskedLM",
            hidden_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=128,
        ),
        _tokens,
        {0: "batch", 1: "seq"},
    ),
    "distilbert": Case(
        partial(
            _hugging,
            "DistilBertConfig",
            "DistilBertForSequenceClassification",
            dim=64,
            n_layers=2,
            n_heads=4,
            hidden_dim=128,
        ),
        _tokens,
        {0: "batch", 1: "seq"},
    ),
    "gpt2": Case(
        partial(
            _hugging, "GPT2Config", "GPT2LMHeadModel", n_embd=64, n_layer=2, n_head=4, n_positions=64, use_cache=False
        ),
        _tokens,
        {0: "batch", 1: "seq"},
        script=False,
        optimize=True,  # as it stands, the exporter splits by a sequence
        twice=97 * 64,
    ),
    "t5 encoder": Case(
        partial(_hugging, "T5Config", "T5EncoderModel", d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4),
        _tokens,
        {0: "batch", 1: "seq"},
        dynamo=False,
    ),
    "llama": Case(
        partial(
            _hugging,
            "LlamaConfig",
            "LlamaForCausalLM",
            hidden_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            intermediate_size=128,
            use_cache=False,
        ),
        _tokens,
        {0: "batch", 1: "seq"},
        script=False,
    ),
    "sound": Case(Sound, lambda: (torch.randn(BATCH, 3, 32),), {0: "batch"}),
}


@dataclass(frozen=True)
class Exported:
    path: Path
    parameters: int
    flops: float
    program: Any = None  # of dynamo's exporter: what it wrote, still to be optimised


def make(case: Case) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    model, inputs = case.make().eval(), case.inputs()
    with torch.no_grad():
        for each in model.parameters():
            each.normal_()
    return model, inputs


def export(case: Case, exporter: str, folder: Path, optimize: bool = False) -> Exported:
    """The file, and what PyTorch itself counts: products of the whole forward pass."""
    model, inputs = make(case)
    path = folder / "model.onnx"
    torch.backends.mha.set_fastpath_enabled(False)  # one operator that is not counted, and not exported either
    # PyTorch counts no flops of its CPU's own fused attention; written out, it does.
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        model(*inputs)
    names = [f"input{i}" for i in range(len(inputs))]
    said, program = io.StringIO(), None
    with warnings.catch_warnings(), contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        warnings.simplefilter("ignore")
        if exporter == "dynamo":
            free = {axis: torch.export.Dim(word, min=2, max=64) for axis, word in case.free.items()}
            program = torch.onnx.export(
                model,
                inputs,
                path,
                dynamo=True,
                optimize=optimize,
                input_names=names,
                dynamic_shapes=tuple(free for _ in inputs),
                verbose=False,
            )
        else:
            torch.onnx.export(
                model,
                inputs,
                path,
                dynamo=False,
                opset_version=17,
                do_constant_folding=optimize,
                training=torch.onnx.TrainingMode.PRESERVE,
                input_names=names,
                dynamic_axes={name: case.free for name in names},
            )
    return Exported(path, sum(each.numel() for each in model.parameters()), float(counter.get_total_flops()), program)


def optimized(made: Exported, folder: Path) -> Exported:
    """The file that `export` writes with `optimize`, without exporting the model again."""
    made.program.optimize()
    made.program.save(folder / "model.onnx")
    return replace(made, path=folder / "model.onnx", program=None)
