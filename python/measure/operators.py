"""Operators of images and tokens as modules have them, alone: their kernels and times, forward and backward.

    python operators.py OUT [SECONDS]

Each case is a module of one or a few operators over random tensors in bf16; a line of OUT has the kernels of its forward pass
and of its gradients (all operands want one), and the sums in us, medians of three runs. Kernels are the profiler's, a spin
between passes tells them apart. Nothing rotates: operands are as warm as the pass before leaves them.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Case = tuple[str, Callable[[], nn.Module], tuple[tuple[int, ...], ...], bool, bool]
CASES: list[Case] = []


class Fn(nn.Module):
    """A function as a module."""

    def __init__(self, run: Callable[..., Tensor]) -> None:
        super().__init__()
        self.run = run

    def forward(self, *x: Tensor) -> Tensor:
        return self.run(*x)


class Normed(nn.Module):
    """A layer norm over channels that do not lie last, and what comes before and after it."""

    def __init__(self, width: int, there: Callable[[Tensor], Tensor], back: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.norm, self.there, self.back = nn.LayerNorm(width), there, back

    def forward(self, x: Tensor) -> Tensor:
        return self.back(self.norm(self.there(x)))


class Mixed(nn.Module):
    """A product over tokens, not over channels."""

    def __init__(self, tokens: int) -> None:
        super().__init__()
        self.mix = nn.Linear(tokens, 256)

    def forward(self, x: Tensor) -> Tensor:
        return self.mix(x.transpose(1, 2)).transpose(1, 2) + 1  # type: ignore[no-any-return]


def add(name: str, make: Callable[[], nn.Module], *shapes: tuple[int, ...], cl: bool = False, train: bool = True) -> None:
    CASES.append((name, make, shapes, cl, train))


IM = [(64, 64, 112, 112), (64, 256, 56, 56), (32, 512, 28, 28), (8, 32, 256, 256), (128, 1024, 14, 14), (16, 96, 56, 56)]
for cl in (False, True):
    t = 'nhwc' if cl else 'nchw'
    for s in IM:
        n = f"{t} {'x'.join(map(str, s))}"; c = s[1]
        add('bn ' + n, lambda c=c: nn.BatchNorm2d(c), s, cl=cl)
        add('bneval ' + n, lambda c=c: nn.BatchNorm2d(c), s, cl=cl, train=False)
        add('maxpool3s2 ' + n, lambda: nn.MaxPool2d(3, 2, 1), s, cl=cl)
        add('maxpool2 ' + n, lambda: nn.MaxPool2d(2), s, cl=cl)
        add('avgpool2 ' + n, lambda: nn.AvgPool2d(2), s, cl=cl)
    for s in IM[:4] + [(8, 21, 64, 64)]:
        n = f"{t} {'x'.join(map(str, s))}"; c = s[1]
        add('gap ' + n, lambda: nn.AdaptiveAvgPool2d(1), s, cl=cl)
        add('meanhw ' + n, lambda: Fn(lambda x: x.mean((2, 3), keepdim=True)), s, cl=cl)
        if c % 32 == 0: add('gn32 ' + n, lambda c=c: nn.GroupNorm(32, c), s, cl=cl)
        add('se ' + n, lambda: Fn(lambda x, g: x * g), s, (s[0], s[1], 1, 1), cl=cl)
        add('nearest2 ' + n, lambda: nn.Upsample(scale_factor=2), (s[0], s[1], s[2] // 2, s[3] // 2), cl=cl)
        add('bilinear2 ' + n, lambda: nn.Upsample(scale_factor=2, mode='bilinear'), (s[0], s[1], s[2] // 2, s[3] // 2), cl=cl)
        add('pad1 ' + n, lambda: Fn(lambda x: F.pad(x, (1, 1, 1, 1))), s, cl=cl)
        add('cat2 ' + n, lambda: Fn(lambda a, b: torch.cat([a, b], 1)), s, s, cl=cl)
        add('chunk ' + n, lambda: Fn(lambda x: x.chunk(2, 1)[0] * torch.sigmoid(x.chunk(2, 1)[1])), s, cl=cl)
        add('ln2d ' + n, lambda c=c: Normed(c, lambda x: x.permute(0, 2, 3, 1), lambda x: x.permute(0, 3, 1, 2)), s, cl=cl)
    add('bilinear8 ' + t, lambda: nn.Upsample(scale_factor=8, mode='bilinear'), (8, 21, 64, 64), cl=cl)
    add('bilinear4 ' + t, lambda: nn.Upsample(scale_factor=4, mode='bilinear', align_corners=True), (8, 256, 32, 32), cl=cl)
    add('bicubic2 ' + t, lambda: nn.Upsample(scale_factor=2, mode='bicubic'), (8, 64, 64, 64), cl=cl)
    add('adaptive7 ' + t, lambda: nn.AdaptiveAvgPool2d(7), (64, 512, 14, 14), cl=cl)
    add('avgpool3s1 ' + t, lambda: nn.AvgPool2d(3, 1, 1), (64, 384, 35, 35), cl=cl)
    add('shuffle ' + t, lambda: Fn(lambda x: x.view(x.shape[0], 2, x.shape[1] // 2, *x.shape[2:]).transpose(1, 2).reshape(x.shape)), (64, 232, 28, 28), cl=cl)
    add('pixelshuffle ' + t, lambda: nn.PixelShuffle(2), (16, 256, 128, 128), cl=cl)
    add('pixelunshuffle ' + t, lambda: nn.PixelUnshuffle(2), (16, 64, 256, 256), cl=cl)
    add('instancenorm ' + t, lambda: nn.InstanceNorm2d(64), (8, 64, 256, 256), cl=cl)
    add('prelu ' + t, lambda: nn.PReLU(64), (16, 64, 128, 128), cl=cl)
    add('tokens ' + t, lambda: Fn(lambda x: x.flatten(2).transpose(1, 2).contiguous()), (64, 768, 14, 14), cl=cl)
    add('biasadd ' + t, lambda: Fn(lambda x, b: x + b.view(1, -1, 1, 1)), (64, 256, 56, 56), (256,), cl=cl)
    add('bngelu ' + t, lambda: nn.Sequential(nn.BatchNorm2d(256), nn.GELU()), (64, 256, 56, 56), cl=cl)
    add('bnrelu6 ' + t, lambda: nn.Sequential(nn.BatchNorm2d(144), nn.ReLU6(inplace=True)), (64, 144, 56, 56), cl=cl)
    add('bnsilu ' + t, lambda: nn.Sequential(nn.BatchNorm2d(144), nn.SiLU(inplace=True)), (64, 144, 56, 56), cl=cl)
for s in [(8, 512, 16000), (32, 512, 2000), (16, 1024, 499), (64, 128, 1000)]:
    n = 'x'.join(map(str, s)); c = s[1]
    add('t12 ' + n, lambda: Fn(lambda x: x.transpose(1, 2).contiguous()), s)
    add('ln12 ' + n, lambda c=c: Normed(c, lambda x: x.transpose(1, 2), lambda x: F.gelu(x.transpose(1, 2)).contiguous()), s)
    add('bn1d ' + n, lambda c=c: nn.BatchNorm1d(c), s)
    add('gn1 ' + n, lambda c=c: nn.GroupNorm(1, c), s)
    add('gnc ' + n, lambda c=c: nn.GroupNorm(c, c), s)
    add('glu1 ' + n, lambda: nn.GLU(1), s)
    add('bias1 ' + n, lambda: Fn(lambda x, b: x + b.view(1, -1, 1)), s, (c,))
    add('maxpool1 ' + n, lambda: nn.MaxPool1d(2), s)
for s in [(8, 64, 16, 56, 56), (2, 32, 96, 96, 96), (8, 256, 4, 14, 14)]:
    n = 'x'.join(map(str, s)); c = s[1]
    add('bn3d ' + n, lambda c=c: nn.BatchNorm3d(c), s)
    add('maxpool3d ' + n, lambda: nn.MaxPool3d(2), s)
    add('in3d ' + n, lambda c=c: nn.InstanceNorm3d(c), s)
    add('trilinear ' + n, lambda: nn.Upsample(scale_factor=2, mode='trilinear'), (s[0], s[1], s[2] // 2, s[3] // 2, s[4] // 2))
    add('avgpool3d ' + n, lambda: nn.AvgPool3d(2), s)
for s in [(32, 1024, 1024), (64, 197, 768), (8, 4096, 512)]:
    n = 'x'.join(map(str, s)); b, l, c = s
    add('ln ' + n, lambda c=c: nn.LayerNorm(c), s)
    add('layerscale ' + n, lambda: Fn(lambda x, g: x * g), s, (c,))
    add('layerscale_add ' + n, lambda: Fn(lambda x, y, g: x + g * y), s, s, (c,))
    add('addcmul ' + n, lambda: Fn(lambda b_, w, x: torch.addcmul(b_, w, x)), (c,), (c,), s)
    add('adaln ' + n, lambda: Fn(lambda x, a, b_: x * (1 + a[:, None]) + b_[:, None]), s, (b, c), (b, c))
    add('posadd ' + n, lambda: Fn(lambda x, p: x + p), s, (1, l, c))
    add('t12 ' + n, lambda: Fn(lambda x: x.transpose(1, 2).contiguous()), s)
    add('mixer ' + n, lambda l=l: Mixed(l), s)
    add('swiglu_chunk ' + n, lambda: Fn(lambda x: F.silu(x.chunk(2, -1)[0]) * x.chunk(2, -1)[1]), s)
    add('geglu ' + n, lambda: Fn(lambda x: x.chunk(2, -1)[0] * F.gelu(x.chunk(2, -1)[1])), s)
    add('heads ' + n, lambda: Fn(lambda x: x.view(*x.shape[:2], -1, 64).transpose(1, 2).contiguous()), s)
    add('qkv ' + n, lambda: Fn(lambda x: sum(t.contiguous() for t in x.reshape(x.shape[0], x.shape[1], 3, -1).permute(2, 0, 1, 3).unbind(0))), (s[0], s[1], 768))
    add('rot_half ' + n, lambda: Fn(lambda x, c_, s_: x * c_ + torch.cat([-x[..., x.shape[-1] // 2:], x[..., :x.shape[-1] // 2]], -1) * s_), (b, 8, l, 64), (l, 64), (l, 64))
    add('rot_pairs ' + n, lambda: Fn(lambda x, c_, s_: x * c_ + torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2) * s_), (b, 8, l, 64), (l, 64), (l, 64))
    add('rot_unbind ' + n, lambda: Fn(lambda x, c_, s_: torch.stack([x[..., 0::2] * c_ - x[..., 1::2] * s_, x[..., 0::2] * s_ + x[..., 1::2] * c_], -1).flatten(-2)), (b, 8, l, 64), (l, 32), (l, 32))
    add('clscat ' + n, lambda: Fn(lambda t, x: torch.cat([t.expand(x.shape[0], -1, -1), x], 1)), (1, 1, c), s)
    add('meantok ' + n, lambda: Fn(lambda x: x.mean(1)), s)
    add('slice1 ' + n, lambda: Fn(lambda x: x[:, 1:] * 2), s)
    add('l2norm ' + n, lambda: Fn(lambda x: F.normalize(x, dim=-1)), s)
    add('rms ' + n, lambda: Fn(lambda x, w: w * (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)), s, (c,))
    add('roll ' + n, lambda: Fn(lambda x: torch.roll(x, (3,), (1,))), s)
    add('dropout ' + n, lambda: nn.Dropout(0.1), s)
    add('std ' + n, lambda: Fn(lambda x: (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-5)), s)
    add('softmaxmask ' + n, lambda: Fn(lambda x, m: F.softmax(x + m, -1)), (b, 8, 256, 256), (b, 1, 256, 256))
    add('relbias ' + n, lambda: Fn(lambda x, m: F.softmax(x * 0.125 + m, -1)), (b, 8, 256, 256), (1, 8, 256, 256))
    add('cumsum ' + n, lambda: Fn(lambda x: x.cumsum(1)), s)
    add('tok2d ' + n, lambda: Fn(lambda x: x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1, 1).contiguous()), s)
for s, w in [((32, 56, 56, 128), 7), ((32, 28, 28, 256), 7), ((16, 64, 64, 192), 8)]:
    n = 'x'.join(map(str, s))
    add('window ' + n, lambda w=w: Fn(lambda x: x.view(x.shape[0], x.shape[1] // w, w, x.shape[2] // w, w, x.shape[3]).permute(0, 1, 3, 2, 4, 5).reshape(-1, w * w, x.shape[3])), s)
    add('roll2 ' + n, lambda: Fn(lambda x: torch.roll(x, (-3, -3), (1, 2))), s)
    add('merge ' + n, lambda: Fn(lambda x: torch.cat([x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]], -1)), s)
    add('nhwc_to_nchw ' + n, lambda: Fn(lambda x: x.permute(0, 3, 1, 2).contiguous()), s)
    add('dwadd ' + n, lambda: Fn(lambda x, g: x + g[:, None, None, :]), s, (s[0], s[3]))


def spans(events: Any) -> list[list[tuple[str, float]]]:
    """Kernels between one spin and the next."""
    kernels = [e for e in events if e.device_type == torch.autograd.DeviceType.CUDA]
    runs: list[list[tuple[str, float]]] = []
    for kernel in sorted(kernels, key=lambda e: e.time_range.start):
        if "spin" in kernel.name:
            runs.append([])
        elif runs:
            runs[-1].append((kernel.name[:110], round(kernel.device_time_total, 2)))
    return runs


def measure(case: Case) -> dict[str, Any]:
    name, make, shapes, last, train = case
    torch.manual_seed(0)
    model = make().to("cuda", torch.bfloat16).train(train)
    xs = [torch.randn(*shape, device="cuda", dtype=torch.bfloat16) for shape in shapes]
    if last:
        xs = [x.to(memory_format=torch.channels_last) if x.dim() == 4 else x for x in xs]
    for x in xs:
        x.requires_grad_(train)

    def forget() -> None:
        for each in [*xs, *model.parameters()]:
            each.grad = None

    def run(gradient: Tensor | None) -> Tensor:
        with torch.set_grad_enabled(train):
            y: Tensor = model(*xs)
        torch.cuda._sleep(200)
        if train and gradient is not None:
            y.backward(gradient)
            forget()
        torch.cuda._sleep(200)
        return y

    gradient = torch.randn_like(run(None))
    for _ in range(2):
        run(gradient)
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        torch.cuda._sleep(2000)
        for _ in range(3):
            run(gradient)
        torch.cuda.synchronize()
    runs = spans(profile.events())
    sums = [sum(us for _, us in each) for each in runs]
    return {
        "case": name,
        "forward": runs[4],
        "backward": runs[5],
        "f_us": sorted(sums[0:6:2])[1],
        "b_us": sorted(sums[1:6:2])[1],
    }


def main() -> int:
    if len(sys.argv) < 2 or not torch.cuda.is_available():
        print(__doc__, file=sys.stderr)
        return 2
    end = time.monotonic() + (float(sys.argv[2]) if len(sys.argv) > 2 else 600)
    with open(sys.argv[1], "w") as out:
        for at, case in enumerate(CASES):
            if time.monotonic() > end:
                print(f"out of time before {case[0]}", file=sys.stderr)
                break
            try:
                out.write(json.dumps(measure(case)) + "\n")
            except (RuntimeError, NotImplementedError) as error:
                print(f"{case[0]}: {str(error).splitlines()[0][:120]}", file=sys.stderr)
            if at % 20 == 0:
                torch.cuda.empty_cache()
    return 0


if __name__ == "__main__":
    sys.exit(main())
