"""Modules as users write them, for library_seventh.py: operators of neural fields over frequencies, separation of speech,
masked convolutions, an autograd function of one's own, bags with weights, attention of one's own shape, a decoder that
steps, and images of three dimensions.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from library_frame import Case, Made
from torch import Tensor, nn


def waves(made: Made, tokens: Made) -> Any:
    """A Fourier neural operator: the lowest frequencies are mixed over channels, in fp32 as the transform wants."""

    class Layer(nn.Module):
        def __init__(self, width: int = 64, modes: int = 16) -> None:
            super().__init__()
            self.modes, self.beside = modes, nn.Conv2d(width, width, 1)
            self.real = nn.Parameter(torch.randn(width, width, modes, modes) / width)
            self.imaginary = nn.Parameter(torch.randn(width, width, modes, modes) / width)

        def forward(self, x: Tensor) -> Tensor:
            m, far = self.modes, torch.fft.rfft2(x.float())
            weight = torch.complex(self.real.float(), self.imaginary.float())
            out = torch.zeros_like(far)
            out[:, :, :m, :m] = torch.einsum("bixy,ioxy->boxy", far[:, :, :m, :m], weight)
            return F.gelu(torch.fft.irfft2(out, s=x.shape[-2:]).to(x.dtype) + self.beside(x))

    ends = [nn.Conv2d(64, 128, 1), nn.GELU(), nn.Conv2d(128, 1, 1)]
    return nn.Sequential(nn.Conv2d(3, 64, 1), *(Layer() for _ in range(4)), *ends), (made(16, 3, 128, 128),)


def separates(made: Made, tokens: Made) -> Any:
    """Speech of two speakers: a learned basis, dilated separable convolutions, a norm over everything, masks."""

    class Block(nn.Module):
        def __init__(self, width: int, wide: int, step: int) -> None:
            super().__init__()
            self.up, self.out = nn.Conv1d(width, wide, 1), nn.Conv1d(wide, width, 1)
            self.deep = nn.Conv1d(wide, wide, 3, padding=step, dilation=step, groups=wide)
            self.a, self.b = nn.GroupNorm(1, wide), nn.GroupNorm(1, wide)
            self.first, self.second = nn.PReLU(), nn.PReLU()

        def forward(self, x: Tensor) -> Tensor:
            y = self.a(self.first(self.up(x)))
            return x + self.out(self.b(self.second(self.deep(y))))  # type: ignore[no-any-return]

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.into, self.back = nn.Conv1d(1, 256, 16, 8), nn.ConvTranspose1d(256, 1, 16, 8)
            self.norm, self.narrow = nn.GroupNorm(1, 256), nn.Conv1d(256, 128, 1)
            self.blocks = nn.Sequential(*(Block(128, 256, 2 ** (k % 4)) for k in range(8)))
            self.masks = nn.Conv1d(128, 512, 1)

        def forward(self, x: Tensor) -> Tensor:
            seen = F.relu(self.into(x))
            masks = torch.sigmoid(self.masks(self.blocks(self.narrow(self.norm(seen)))))
            each = masks.unflatten(1, (2, 256)) * seen[:, None]
            return self.back(each.flatten(0, 1)).unflatten(0, (-1, 2))  # type: ignore[no-any-return]

    return Net(), (made(8, 1, 32000),)


def masked(made: Made, tokens: Made) -> Any:
    """Pixels from those before them: filters times a mask, gates, 256 values for each."""

    class Masked(nn.Conv2d):
        def __init__(self, i: int, o: int, side: int) -> None:
            super().__init__(i, o, side, padding=side // 2)
            mask = torch.ones(side, side)
            mask[side // 2, side // 2 + 1 :] = 0
            mask[side // 2 + 1 :] = 0
            self.register_buffer("mask", mask)

        def forward(self, x: Tensor) -> Tensor:
            return F.conv2d(x, self.weight * self.mask, self.bias, padding=self.padding)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.into, self.out = Masked(3, 128, 7), nn.Conv2d(128, 3 * 256, 1)
            self.layers = nn.ModuleList(Masked(128, 256, 3) for _ in range(6))

        def forward(self, x: Tensor) -> Tensor:
            y = self.into(x)
            for layer in self.layers:
                a, b = layer(y).chunk(2, 1)
                y = y + torch.tanh(a) * torch.sigmoid(b)
            said = self.out(y).unflatten(1, (256, 3))
            return F.cross_entropy(said.float(), ((x.clamp(-1, 1) + 1) * 127.5).long())

    return Net(), (made(8, 3, 64, 64),)


class _Swish(torch.autograd.Function):
    """A gate that keeps its two inputs and computes the rest again."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(a, b)
        return F.silu(a) * b

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        a, b = ctx.saved_tensors
        s = torch.sigmoid(a)
        return grad * b * s * (1 + a * (1 - s)), grad * F.silu(a)


def gated(made: Made, tokens: Made) -> Any:
    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.a, self.b = nn.LayerNorm(1024), nn.Linear(1024, 2816), nn.Linear(1024, 2816)
            self.out = nn.Linear(2816, 1024)

        def forward(self, x: Tensor) -> Tensor:
            y = self.norm(x)
            return x + self.out(_Swish.apply(self.a(y), self.b(y)))  # type: ignore[no-any-return, no-untyped-call]

    return nn.Sequential(*(Layer() for _ in range(6))), (made(8, 1024, 1024),)


def bags(made: Made, tokens: Made) -> Any:
    """Bags of words with weights and offsets, a factorisation machine, a deep side."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bag = nn.EmbeddingBag(200000, 128, mode="sum")
            self.one = nn.Embedding(400000, 32)
            self.deep = nn.Sequential(nn.Linear(128 + 24 * 32, 1024), nn.ReLU(), nn.Linear(1024, 256), nn.ReLU(), nn.Linear(256, 1))

        def forward(self, words: Tensor, weights: Tensor, single: Tensor) -> Tensor:
            bag = self.bag(words, per_sample_weights=weights)
            one = self.one(single)
            pairs = one.sum(1).square() - one.square().sum(1)
            return self.deep(torch.cat([bag, one.flatten(1)], 1)).squeeze(1) + 0.5 * pairs.sum(1)  # type: ignore[no-any-return]

    return Net(), (tokens(8192, 32, below=200000), made(8192, 32), tokens(8192, 24, below=400000))


def steps(made: Made, tokens: Made) -> Any:
    """A recurrent decoder, one cell a step, that looks back over what was read."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(20000, 512)
            self.reads = nn.LSTM(512, 256, 2, batch_first=True, bidirectional=True)
            self.cell, self.ask, self.says = nn.LSTMCell(1024, 512), nn.Linear(512, 512, bias=False), nn.Linear(1024, 20000)

        def forward(self, source: Tensor, target: Tensor) -> Tensor:
            read = self.reads(self.words(source))[0]
            h, c = read[:, -1], torch.zeros_like(read[:, -1])
            seen, said = torch.zeros_like(h), []
            for word in self.words(target).unbind(1):
                h, c = self.cell(torch.cat([word, seen], -1), (h, c))
                weight = torch.softmax(torch.bmm(read, self.ask(h).unsqueeze(-1)).squeeze(-1), -1)
                seen = torch.bmm(weight.unsqueeze(1), read).squeeze(1)
                said.append(torch.cat([h, seen], -1))
            return F.cross_entropy(self.says(torch.stack(said, 1)).flatten(0, 1).float(), target.flatten())

    return Net(), (tokens(64, 64, below=20000), tokens(64, 16, below=20000))


def volumes(made: Made, tokens: Made) -> Any:
    """An autoencoder of volumes: strided filters down, transposed ones up, instance norms."""

    def down(i: int, o: int) -> list[nn.Module]:
        return [nn.Conv3d(i, o, 4, 2, 1), nn.InstanceNorm3d(o, affine=True), nn.LeakyReLU(0.2)]

    def up(i: int, o: int) -> list[nn.Module]:
        return [nn.ConvTranspose3d(i, o, 4, 2, 1), nn.InstanceNorm3d(o, affine=True), nn.ReLU()]

    layers = [*down(1, 32), *down(32, 64), *down(64, 128), *up(128, 64), *up(64, 32)]
    return nn.Sequential(*layers, nn.ConvTranspose3d(32, 1, 4, 2, 1), nn.Sigmoid()), (made(4, 1, 64, 64, 64),)


def conformer(made: Made, tokens: Made) -> Any:
    """Halves of a feed-forward layer around attention and a convolution, as papers on speech have it."""

    class Layer(nn.Module):
        def __init__(self, width: int = 384) -> None:
            super().__init__()
            self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(5))
            self.feeds = nn.ModuleList(
                nn.Sequential(nn.Linear(width, 4 * width), nn.SiLU(), nn.Dropout(0.1), nn.Linear(4 * width, width)) for _ in range(2)
            )
            self.attend = nn.MultiheadAttention(width, 6, batch_first=True, dropout=0.1)
            self.gate, self.deep = nn.Conv1d(width, 2 * width, 1), nn.Conv1d(width, width, 31, padding=15, groups=width)
            self.norm, self.out = nn.BatchNorm1d(width), nn.Conv1d(width, width, 1)

        def forward(self, x: Tensor) -> Tensor:
            x = x + 0.5 * self.feeds[0](self.norms[0](x))
            y = self.norms[1](x)
            x = x + self.attend(y, y, y, need_weights=False)[0]
            y = F.glu(self.gate(self.norms[2](x).transpose(1, 2)), 1)
            x = x + self.out(F.silu(self.norm(self.deep(y)))).transpose(1, 2)
            x = x + 0.5 * self.feeds[1](self.norms[3](x))
            return self.norms[4](x)  # type: ignore[no-any-return]

    return nn.Sequential(*(Layer() for _ in range(6))), (made(16, 400, 384),)


def shaped(made: Made, tokens: Made) -> Any:
    """flex_attention under torch.compile, causal within a window; the rest is eager."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    fused = torch.compile(flex_attention)

    def near(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return (q >= k) & (q - k <= 256)

    class Layer(nn.Module):
        def __init__(self, width: int = 1024, heads: int = 16) -> None:
            super().__init__()
            self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width)
            self.norm = nn.RMSNorm(width)

        def forward(self, x: Tensor) -> Tensor:
            q, k, v = (t.transpose(1, 2) for t in self.qkv(self.norm(x)).unflatten(-1, (3, self.heads, -1)).unbind(2))
            mask = create_block_mask(near, None, None, x.shape[1], x.shape[1], device=x.device)
            return x + self.out(fused(q, k, v, block_mask=mask).transpose(1, 2).flatten(2))  # type: ignore[no-any-return]

    return nn.Sequential(*(Layer() for _ in range(4))), (made(2, 2048, 1024),)


WRITTEN: tuple[Case, ...] = (
    ("torch.nn fourier operator b16 128", waves),
    ("torch.nn separation of speech b8 32000", separates),
    ("torch.nn masked pixels b8 64", masked),
    ("torch.nn own gate b8 1024", gated),
    ("torch.nn weighted bags b8192", bags),
    ("torch.nn recurrent decoder b64 16", steps),
    ("torch.nn volumes b4 64", volumes),
    ("torch.nn conformer 6 layers b16 400", conformer),
    ("torch.nn own attention b2 2048", shaped),
)
