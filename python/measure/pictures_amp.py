"""Nets of images under fp16 autocast, with cuDNN's benchmark mode on: pictures_amp.py OUT [BATCH]

transformers' ViT, ConvNeXt and ResNet beside plain modules with the structure that timm has (one product for queries, keys and
values), those also with norms in half precision, eager and compiled. A line a case: `wall_ms` of a pass, `busy_ms` of its
kernels, and the eight dearest of them.
"""
from __future__ import annotations

import gc
import json
import sys
from typing import Callable

import torch
import torch.nn.functional as F
from torch import nn
from torch.profiler import ProfilerActivity, profile
from transformers import ConvNextConfig, ConvNextForImageClassification, ResNetConfig, ResNetForImageClassification, ViTConfig, ViTForImageClassification

WARM, PASSES, CLASSES, SIDE, PATCH = 4, 8, 1000, 224, 16


class Norm(nn.LayerNorm):
    """A layer norm; `half`: in half precision, which autocast would raise to fp32."""

    half = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not Norm.half:
            return super().forward(x)
        with torch.autocast("cuda", enabled=False):
            return F.layer_norm(x.half(), self.normalized_shape, self.weight.half(), self.bias.half(), self.eps)


class ChannelNorm(Norm):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class VitLayer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.after = Norm(width, eps=1e-6), Norm(width, eps=1e-6)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, n, c = x.shape
        q, k, v = self.qkv(self.before(x)).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, c))
        return x + self.down(F.gelu(self.up(self.after(x))))


class Vit(nn.Module):
    def __init__(self, width: int, heads: int, layers: int = 12) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, PATCH, PATCH)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.position = nn.Parameter(torch.zeros(1, (SIDE // PATCH) ** 2 + 1, width))
        self.layers = nn.Sequential(*(VitLayer(width, heads) for _ in range(layers)))
        self.norm, self.head = Norm(width, eps=1e-6), nn.Linear(width, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.position
        return self.head(self.norm(self.layers(x))[:, 0])


class ConvNextLayer(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.filters = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm, self.up, self.down = Norm(width, eps=1e-6), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.scale = nn.Parameter(torch.full((width,), 1e-6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.down(F.gelu(self.up(self.norm(self.filters(x).permute(0, 2, 3, 1))))).permute(0, 3, 1, 2)
        return y.mul(self.scale.reshape(1, -1, 1, 1)) + x


def convnext(depths: tuple[int, ...] = (3, 3, 9, 3), widths: tuple[int, ...] = (96, 192, 384, 768)) -> nn.Module:
    parts: list[nn.Module] = [nn.Conv2d(3, widths[0], 4, 4), ChannelNorm(widths[0], eps=1e-6)]
    for i, (depth, width) in enumerate(zip(depths, widths)):
        if i:
            parts += [ChannelNorm(widths[i - 1], eps=1e-6), nn.Conv2d(widths[i - 1], width, 2, 2)]
        parts += [ConvNextLayer(width) for _ in range(depth)]
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), ChannelNorm(widths[-1], eps=1e-6), nn.Flatten(), nn.Linear(widths[-1], CLASSES))


def library_vit(width: int, heads: int) -> nn.Module:
    return ViTForImageClassification(ViTConfig(hidden_size=width, num_attention_heads=heads, intermediate_size=4 * width, num_labels=CLASSES,
                                               attn_implementation="sdpa"))


def library_convnext(**sizes: list[int]) -> nn.Module:
    return ConvNextForImageClassification(ConvNextConfig(num_labels=CLASSES, **sizes))


CASES: dict[str, Callable[[], nn.Module]] = {
    "hf vit tiny": lambda: library_vit(192, 3), "own vit tiny": lambda: Vit(192, 3),
    "hf vit small": lambda: library_vit(384, 6), "own vit small": lambda: Vit(384, 6),
    "hf vit base": lambda: library_vit(768, 12), "own vit base": lambda: Vit(768, 12),
    "hf convnext tiny": library_convnext, "own convnext tiny": convnext,
    "hf convnext base": lambda: library_convnext(depths=[3, 3, 27, 3], hidden_sizes=[128, 256, 512, 1024]),
    "hf resnet50": lambda: ResNetForImageClassification(ResNetConfig(num_labels=CLASSES)),
}


def measured(name: str, compiled: bool, fast_norm: bool, channels_last: bool, batch: int) -> dict[str, object]:
    torch._dynamo.reset()
    Norm.half = fast_norm
    model, x = CASES[name]().cuda().eval(), torch.randn(batch, 3, SIDE, SIDE, device="cuda")
    if channels_last:
        model, x = model.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
    called = torch.compile(model) if compiled else model
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    with torch.inference_mode(), torch.autocast("cuda", dtype=torch.float16):
        for _ in range(WARM):
            called(x)
        torch.cuda.synchronize()
        begin.record()
        for _ in range(PASSES):
            called(x)
        end.record()
        torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CUDA]) as seen:
            for _ in range(2):
                called(x)
            torch.cuda.synchronize()
    kernels = [[row.key[:80], round(row.self_device_time_total / 2e3, 3), row.count // 2] for row in seen.key_averages() if row.self_device_time_total]
    kernels.sort(key=lambda row: -row[1])
    return {"case": name, "compiled": compiled, "fast_norm": fast_norm, "channels_last": channels_last, "batch": batch,
            "wall_ms": round(begin.elapsed_time(end) / PASSES, 3), "busy_ms": round(sum(row[1] for row in kernels), 3), "kernels": kernels[:8]}


def main(out: str, batch: int = 512) -> None:
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    cases = [(name, compiled, fast, False) for compiled in (False, True) for name in CASES for fast in (False, True)
             if not (compiled and "base" in name) and not (fast and (compiled or not name.startswith("own")))]
    with open(out, "w", encoding="utf-8") as lines:
        for case in [*cases, ("hf resnet50", False, False, True)]:
            print(json.dumps(measured(*case, batch)), file=lines, flush=True)
            gc.collect()
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
