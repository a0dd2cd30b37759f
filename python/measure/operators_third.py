"""Operators whose forecasts were far off in whole modules: python operators_third.py OUT [SECONDS], by the loop of
operators.py.

Long filters in groups, filters as large as their image, windows folded back, recurrent layers, overlapping views,
weight norms, rows picked and added, signals made longer.
"""

from __future__ import annotations

import sys

import operators
import torch
import torch.nn.functional as F
from operators import CASES, Fn, add
from torch import Tensor, nn

CASES.clear()


class First(nn.Module):
    """A recurrent layer gives its states too."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)[0]  # type: ignore[no-any-return]


# images, length, groups, channels of a group, taps
for n, length, groups, wide, taps in (
    (8, 249, 16, 48, 128),
    (8, 249, 16, 64, 128),
    (2, 499, 16, 48, 128),
    (16, 499, 16, 64, 128),
    (8, 249, 16, 32, 128),
    (8, 249, 16, 80, 128),
    (8, 249, 8, 48, 128),
    (8, 249, 4, 48, 128),
    (8, 249, 1, 48, 128),
    (8, 249, 1, 64, 128),
    (8, 249, 16, 48, 64),
    (8, 249, 16, 48, 32),
    (8, 249, 16, 48, 31),
    (8, 249, 16, 48, 19),
    (8, 249, 16, 64, 19),
    (8, 249, 16, 48, 9),
    (8, 249, 16, 24, 128),
    (8, 249, 16, 16, 128),
    (1, 249, 16, 48, 128),
    (8, 1000, 16, 48, 128),
    (4, 1500, 16, 64, 19),
    (8, 499, 4, 64, 31),
    (8, 249, 32, 32, 63),
    (8, 499, 2, 128, 15),
):
    made = lambda g=groups, w=wide, t=taps: nn.Conv1d(g * w, g * w, t, padding=t // 2, groups=g)
    add(f"grouped {n}x{length} {groups} of {wide} taps {taps}", made, (n, groups * wide, length))
# images, channels, filters, side of both
for n, c, k, side in (
    (64, 512, 4096, 7),
    (8, 512, 4096, 7),
    (128, 512, 4096, 7),
    (32, 256, 1024, 7),
    (64, 1024, 1024, 4),
    (64, 256, 512, 14),
    (64, 2048, 512, 7),
    (256, 512, 512, 3),
):
    for last in (False, True):
        how = "nhwc" if last else "nchw"
        add(
            f"whole {how} {n}x{c} to {k} side {side}",
            lambda c=c, k=k, s=side: nn.Conv2d(c, k, s),
            (n, c, side, side),
            cl=last,
        )
# images, channels, side, window, step
for n, c, side, window, step in (
    (64, 192, 28, 3, 2),
    (64, 192, 28, 3, 1),
    (8, 64, 56, 3, 1),
    (32, 64, 56, 7, 4),
    (1, 256, 64, 3, 1),
    (16, 16, 224, 16, 16),
):
    n_out, pad = (side + 2 * (window // 2) - window) // step + 1, window // 2
    sizes = f"{n}x{c}x{side} {window} {step}"
    add("unfold " + sizes, lambda w=window, s=step, p=pad: nn.Unfold(w, padding=p, stride=s), (n, c, side, side))
    add(
        "fold " + sizes,
        lambda w=window, s=step, p=pad, h=side: nn.Fold((h, h), w, padding=p, stride=s),
        (n, c * window**2, n_out**2),
    )
# kind, batch, steps, inputs, states, layers, both ways
for kind, n, steps, inputs, states, layers, both in (
    (nn.LSTM, 2048, 32, 192, 48, 1, True),
    (nn.LSTM, 1024, 16, 384, 96, 1, True),
    (nn.LSTM, 896, 14, 384, 96, 1, True),
    (nn.LSTM, 64, 128, 1024, 1024, 1, False),
    (nn.LSTM, 32, 100, 512, 512, 1, False),
    (nn.LSTM, 16, 500, 256, 256, 1, True),
    (nn.LSTM, 256, 50, 128, 128, 2, False),
    (nn.LSTM, 8, 1000, 320, 320, 1, True),
    (nn.GRU, 64, 128, 512, 512, 1, False),
    (nn.GRU, 32, 200, 256, 256, 1, True),
    (nn.GRU, 1024, 16, 384, 96, 1, True),
    (nn.RNN, 64, 128, 512, 512, 1, False),
    (nn.RNN, 1024, 16, 384, 96, 1, True),
):
    ways = "both" if both else "one"
    made = lambda k=kind, i=inputs, h=states, d=layers, b=both: First(k(i, h, d, batch_first=True, bidirectional=b))
    add(f"{kind.__name__} {n}x{steps} {inputs} to {states} layers {layers} {ways}", made, (n, steps, inputs))


def windows(x: Tensor, half: int) -> Tensor:
    """Windows that overlap by a half, as Longformer's."""
    chunks = x.view(x.shape[0], x.shape[1] // (2 * half), 2 * half, x.shape[2])
    size, stride = list(chunks.shape), list(chunks.stride())
    size[1], stride[1] = size[1] * 2 - 1, stride[1] // 2
    return chunks.as_strided(size, stride).contiguous()


for s, half in (((48, 1024, 64), 256), ((96, 2048, 64), 128), ((16, 4096, 64), 256)):
    add(f"windows {'x'.join(map(str, s))} {half}", lambda half=half: Fn(lambda x: windows(x, half)), s)
    add(
        f"unfolds {'x'.join(map(str, s))} {half}",
        lambda half=half: Fn(lambda x: x.unfold(1, 2 * half, half).contiguous()),
        s,
    )
for s, dim in (((768, 48, 128), 2), ((1024, 64, 128), 2), ((512, 256, 7), 0), ((256, 512, 16), 0), ((4096, 1024), 0)):
    norm = lambda dim=dim: Fn(lambda v, g: torch._weight_norm(v, g, dim))
    add(
        f"weight norm {'x'.join(map(str, s))} {dim}",
        norm,
        s,
        tuple(each if at == dim else 1 for at, each in enumerate(s)),
    )


def places(rows: int, count: int) -> Tensor:
    return (torch.arange(count) * 7919) % rows


for rows, count, wide in ((50000, 400000, 128), (10000, 160000, 64), (4096, 65536, 512)):
    sizes = f"{rows} {count} {wide}"
    pick = lambda r=rows, c=count: Fn(lambda x: x.index_select(0, places(r, c).to(x.device)))
    add("index_select " + sizes, pick, (rows, wide))
    add("rows " + sizes, lambda r=rows, c=count: Fn(lambda x: x[places(r, c).to(x.device)]), (rows, wide))
    sums = lambda r=rows, c=count: Fn(lambda x: x.new_zeros(r, x.shape[1]).index_add(0, places(r, c).to(x.device), x))
    add("index_add " + sizes, sums, (count, wide))
    each = lambda r=rows, c=count: Fn(
        lambda x: x.new_zeros(r, x.shape[1]).scatter_add(
            0, places(r, c).to(x.device)[:, None].expand(-1, x.shape[1]), x
        )
    )
    add("scatter_add " + sizes, each, (count, wide))
# signals, channels, filters, length, taps, step
for n, c, k, length, taps, step in (
    (8, 512, 256, 128, 16, 8),
    (8, 256, 128, 1024, 16, 8),
    (8, 128, 64, 8192, 4, 2),
    (8, 64, 32, 16384, 4, 2),
):
    made = lambda c=c, k=k, t=taps, s=step: nn.ConvTranspose1d(c, k, t, s, (t - s) // 2)
    add(f"longer {n}x{c} to {k} {length} taps {taps} step {step}", made, (n, c, length))
for n, c, length, taps, reach in (
    (8, 256, 1024, 3, 1),
    (8, 256, 1024, 11, 5),
    (8, 128, 8192, 7, 3),
    (8, 64, 16384, 11, 1),
    (8, 32, 32768, 3, 5),
    (8, 1, 32768, 7, 1),
):
    made = lambda c=c, t=taps, r=reach: nn.Conv1d(c, c, t, padding=r * (t // 2), dilation=r)
    add(f"signal {n}x{c}x{length} taps {taps} reach {reach}", made, (n, c, length))
for s in ((8, 64, 16384), (8, 256, 1024)):
    add(f"snake {'x'.join(map(str, s))}", lambda: Fn(lambda x: x + torch.sin(x) ** 2), s)
    add(f"leaky {'x'.join(map(str, s))}", lambda: Fn(lambda x: F.leaky_relu(x, 0.1)), s)

if __name__ == "__main__":
    sys.exit(operators.main())
