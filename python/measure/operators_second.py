"""More operators as modules have them: python operators_second.py OUT [SECONDS], by the loop of operators.py."""

from __future__ import annotations

import sys

import operators
import torch
import torch.nn.functional as F
from operators import CASES, Fn, Normed, add
from torch import nn

CASES.clear()


def picks(rows: int, wide: int, of: int) -> nn.Module:
    """Elements picked along the last axis, as relative positions are."""
    index = (torch.arange(wide)[None, :] + torch.arange(rows)[:, None]) % of
    return Fn(lambda x: torch.gather(x, -1, index.to(x.device).expand(*x.shape[:-1], wide)))


for s, wide in (((16, 16, 256, 512), 256), ((8, 12, 128, 256), 128), ((4, 16, 512, 512), 512)):
    add(f"gather {'x'.join(map(str, s))} {wide}", lambda s=s, wide=wide: picks(s[2], wide, s[3]), s)
for s, t in (((16, 512, 4096), (1, 2)), ((64, 768, 196), (1, 2)), ((8, 256, 1024), (1, 2))):
    n = "x".join(map(str, s))
    add("add turned " + n, lambda t=t: Fn(lambda x, y: x + y.transpose(*t)), s, (s[0], s[2], s[1]))
    add("mul turned " + n, lambda t=t: Fn(lambda x, y: x * y.transpose(*t)), s, (s[0], s[2], s[1]))
    add("gelu turned " + n, lambda t=t: Fn(lambda x: F.gelu(x.transpose(*t)).contiguous()), s)
    add("scale turned " + n, lambda t=t: Fn(lambda x, g: (x.transpose(*t) * g).transpose(*t).contiguous()), s, (s[1],))
for s in ((32, 64, 56, 56), (16, 192, 28, 28)):
    n = "x".join(map(str, s))
    add("nchw tokens add " + n, lambda: Fn(lambda x, y: x + y.transpose(1, 2).reshape(x.shape)), s, (s[0], s[2] * s[3], s[1]))
    add("nhwc plus nchw " + n, lambda: Fn(lambda x, y: x + y.contiguous()), s, s, cl=True)
    add("se nhwc " + n, lambda: Fn(lambda x: x * torch.sigmoid(x.mean((2, 3), keepdim=True))), s, cl=True)
    for last in (False, True):
        how = "nhwc" if last else "nchw"
        add(f"adaptive3 {how} {n}", lambda: nn.AdaptiveAvgPool2d(3), s, cl=last)
        add(f"prelu {how} {n}", lambda c=s[1]: nn.PReLU(c), s, cl=last)
        add(f"relu6 {how} {n}", lambda c=s[1]: nn.Sequential(nn.BatchNorm2d(c), nn.ReLU6(inplace=True)), s, cl=last)
        add(f"hardsigmoid {how} {n}", lambda c=s[1]: nn.Sequential(nn.BatchNorm2d(c), nn.Hardsigmoid(inplace=True)), s, cl=last)
for s in ((8, 64, 16, 56, 56), (4, 192, 8, 28, 28)):
    n = "x".join(map(str, s))
    for window, step in ((3, 2), (3, 1), ((1, 3, 3), (1, 2, 2))):
        pad = tuple(w // 2 for w in (window if isinstance(window, tuple) else (window,) * 3))
        add(f"maxpool3d {window} {step} {n}", lambda w=window, t=step, p=pad: nn.MaxPool3d(w, t, p), s)
    add(f"avgpool3d 3 2 {n}", lambda: nn.AvgPool3d(3, 2, 1), s)
for cols in (1025, 1500, 2049, 4097):
    add(f"softmax 8192x{cols}", lambda: Fn(lambda x: F.softmax(x, -1)), (8192, cols))
    add(f"softmax 32768x{cols}", lambda: Fn(lambda x: F.softmax(x, -1)), (32768, cols))
for width in (32, 48, 64, 96, 128, 192):
    add(f"ln 200704x{width}", lambda w=width: nn.LayerNorm(w), (200704, width))
    add(f"ln 50176x{width}", lambda w=width: nn.LayerNorm(w), (50176, width))
for s, axis in (((2, 48, 4, 256, 256), -2), ((8, 2048, 512), 1), ((4, 1024, 1024), -1)):
    add(f"cumsum {axis} {'x'.join(map(str, s))}", lambda a=axis: Fn(lambda x: x.float().cumsum(a)), s)
for s in ((8, 256, 4096), (16, 512, 512)):
    n = "x".join(map(str, s))
    add("glu1 " + n, lambda: nn.GLU(1), s)
    add("glu last " + n, lambda: nn.GLU(-1), s)
    add("split " + n, lambda: Fn(lambda x: (lambda a, b: a * F.silu(b))(*x.chunk(2, -1))), s)
    add("in1d " + n, lambda c=s[1]: nn.InstanceNorm1d(c, affine=True), s)
    add("bn1d " + n, lambda c=s[1]: nn.BatchNorm1d(c), s)
    add("ln12 " + n, lambda c=s[1]: Normed(c, lambda x: x.transpose(1, 2), lambda x: F.gelu(x.transpose(1, 2)).contiguous()), s)
for s in ((2, 128, 256, 256), (2, 256, 512, 512), (8, 320, 64, 64)):
    add(f"gn32 silu {'x'.join(map(str, s))}", lambda c=s[1]: nn.Sequential(nn.GroupNorm(32, c), nn.SiLU()), s)
for s in ((8, 64, 96, 96), (4, 128, 64, 64)):
    n = "x".join(map(str, s))
    add("pixelshuffle " + n, lambda: nn.PixelShuffle(2), s)
    add("unfold " + n, lambda: nn.Unfold(3, padding=1), s)
    add("reflect " + n, lambda: nn.ReflectionPad2d(1), s)
    add("bicubic " + n, lambda: nn.Upsample(scale_factor=2, mode="bicubic"), s)

if __name__ == "__main__":
    sys.exit(operators.main())
