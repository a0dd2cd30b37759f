"""Modules of plain torch.nn over sequences, tables and graphs, for modules_cases.py."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from modules_case import Made, Residual, case


@case("temporal convolutions b16 4096")
def temporal(made: Made, tokens: Made) -> Any:
    def block(w: int, d: int) -> nn.Module:
        return Residual(
            *(nn.Conv1d(w, w, 3, padding=d, dilation=d), nn.GroupNorm(1, w), nn.PReLU()),
            *(nn.Conv1d(w, w, 3, padding=d, dilation=d), nn.GroupNorm(1, w), nn.PReLU(), nn.Dropout(0.1)),
        )

    layers = [nn.Conv1d(80, 256, 5, padding=2), *(block(256, 2 ** (i % 6)) for i in range(12)), nn.Conv1d(256, 61, 1)]
    return nn.Sequential(*layers), (made(16, 80, 4096),)


@case("waveform upsampler b4 128")
def vocoder(made: Made, tokens: Made) -> Any:
    layers: list[nn.Module] = [nn.Conv1d(80, 512, 7, padding=3)]
    wide = 512
    for rate in (8, 8, 2, 2):
        layers += [nn.LeakyReLU(0.1), nn.ConvTranspose1d(wide, wide // 2, 2 * rate, rate, rate // 2)]
        wide //= 2
        layers += [
            Residual(nn.LeakyReLU(0.1), nn.Conv1d(wide, wide, f, padding=(f - 1) * d // 2, dilation=d))
            for f in (3, 7)
            for d in (1, 3)
        ]
    return nn.Sequential(*layers, nn.LeakyReLU(), nn.Conv1d(wide, 1, 7, padding=3), nn.Tanh()), (made(4, 80, 128),)


@case("tagger gru both ways b64 100")
def tagger(made: Made, tokens: Made) -> Any:
    class Tagger(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(40000, 512)
            self.rnn = nn.GRU(512, 512, 2, batch_first=True, bidirectional=True, dropout=0.1)
            self.out = nn.Linear(1024, 50)

        def forward(self, x: Tensor) -> Tensor:
            return self.out(self.rnn(self.words(x))[0])

    return Tagger(), (tokens(64, 100, below=40000),)


@case("lstm cells b128 48")
def cells(made: Made, tokens: Made) -> Any:
    class Cells(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell, self.out = nn.LSTMCell(256, 512), nn.Linear(512, 256)

        def forward(self, x: Tensor) -> Tensor:
            h = x.new_zeros(x.shape[0], 512)
            c, made = h, []
            for step in x.unbind(1):
                h, c = self.cell(step, (h, c))
                made.append(self.out(h))
            return torch.stack(made, 1)

    return Cells(), (made(128, 48, 256),)


@case("translation nn.Transformer b32 128")
def translation(made: Made, tokens: Made) -> Any:
    class Translation(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Embedding(32000, 512), nn.Embedding(32000, 512)
            self.t = nn.Transformer(512, 8, 6, 6, 2048, 0.1, batch_first=True)
            self.o = nn.Linear(512, 32000)

        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            mask = torch.ones(y.shape[1], y.shape[1], dtype=torch.bool, device=y.device).triu(1)
            return self.o(self.t(self.a(x), self.b(y), tgt_mask=mask))

    return Translation(), (tokens(32, 128, below=32000), tokens(32, 128, below=32000))


@case("latents over a long input b4 8192")
def latents(made: Made, tokens: Made) -> Any:
    class Across(nn.Module):
        def __init__(self, d: int, c: int) -> None:
            super().__init__()
            self.n, self.m, self.q, self.kv = nn.LayerNorm(d), nn.LayerNorm(c), nn.Linear(d, d), nn.Linear(c, 2 * d)
            self.o, self.l = nn.Linear(d, d), nn.LayerNorm(d)
            self.f = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            q = self.q(self.n(x)).unflatten(-1, (8, -1)).transpose(1, 2)
            k, v = (t.unflatten(-1, (8, -1)).transpose(1, 2) for t in self.kv(self.m(y)).chunk(2, -1))
            x = x + self.o(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
            return x + self.f(self.l(x))

    class Latents(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.z = nn.Parameter(torch.zeros(512, 512))
            self.i = nn.Linear(64, 256)
            self.a, self.b = Across(512, 256), nn.ModuleList(Across(512, 512) for _ in range(8))
            self.o = nn.Linear(512, 100)

        def forward(self, x: Tensor) -> Tensor:
            z = self.a(self.z.expand(x.shape[0], -1, -1), self.i(x))
            for block in self.b:
                z = block(z, z)
            return self.o(z.mean(1))

    return Latents(), (made(4, 8192, 64),)


@case("messages on a graph 100k edges")
def messages(made: Made, tokens: Made) -> Any:
    class Messages(nn.Module):
        def __init__(self, d: int = 256) -> None:
            super().__init__()
            self.w = nn.ModuleList(nn.Linear(2 * d, d) for _ in range(4))
            self.u = nn.ModuleList(nn.Linear(2 * d, d) for _ in range(4))
            self.n = nn.ModuleList(nn.LayerNorm(d) for _ in range(4))

        def forward(self, x: Tensor, a: Tensor, b: Tensor) -> Tensor:
            for w, u, n in zip(self.w, self.u, self.n, strict=True):
                said = F.relu(w(torch.cat([x[a], x[b]], -1)))
                heard = torch.zeros_like(x).index_add_(0, b, said)
                x = n(x + u(torch.cat([x, heard], -1)))
            return x

    return Messages(), (made(10000, 256), tokens(100000, below=10000), tokens(100000, below=10000))


@case("factorization machine b16384")
def factors(made: Made, tokens: Made) -> Any:
    class Factors(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.e, self.l = nn.Embedding(1000000, 16), nn.Embedding(1000000, 1)
            wide = [39 * 16, 400, 400, 400]
            self.f = nn.Sequential(
                *(m for i, o in zip(wide, wide[1:], strict=False) for m in (nn.Linear(i, o), nn.BatchNorm1d(o), nn.ReLU(), nn.Dropout(0.2)))
            )
            self.o = nn.Linear(400, 1)

        def forward(self, x: Tensor) -> Tensor:
            e = self.e(x)
            pairs = 0.5 * (e.sum(1).square() - e.square().sum(1)).sum(1, keepdim=True)
            return torch.sigmoid(self.l(x).sum(1) + pairs + self.o(self.f(e.flatten(1))))

    return Factors(), (tokens(16384, 39, below=1000000),)


@case("conformer b8 750")
def conformer(made: Made, tokens: Made) -> Any:
    class Conformer(nn.Module):
        def __init__(self, d: int = 512) -> None:
            super().__init__()
            self.f = nn.ModuleList(
                nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.SiLU(), nn.Dropout(0.1), nn.Linear(4 * d, d), nn.Dropout(0.1))
                for _ in range(2)
            )
            self.n, self.a = nn.LayerNorm(d), nn.MultiheadAttention(d, 8, dropout=0.1, batch_first=True)
            self.m, self.e = nn.LayerNorm(d), nn.LayerNorm(d)
            self.c = nn.Sequential(
                *(nn.Conv1d(d, 2 * d, 1), nn.GLU(1), nn.Conv1d(d, d, 31, padding=15, groups=d), nn.BatchNorm1d(d), nn.SiLU()),
                *(nn.Conv1d(d, d, 1), nn.Dropout(0.1)),
            )

        def forward(self, x: Tensor) -> Tensor:
            x = x + 0.5 * self.f[0](x)
            y = self.n(x)
            x = x + self.a(y, y, y, need_weights=False)[0]
            x = x + self.c(self.m(x).transpose(1, 2)).transpose(1, 2)
            return self.e(x + 0.5 * self.f[1](x))

    return nn.Sequential(*(Conformer() for _ in range(8))), (made(8, 750, 512),)


@case("decoder written out b4 1024")
def decoder(made: Made, tokens: Made) -> Any:
    class Norm(nn.Module):
        def __init__(self, d: int) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.ones(d))

        def forward(self, x: Tensor) -> Tensor:
            return (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)).type_as(x) * self.w

    class Block(nn.Module):
        def __init__(self, d: int = 1024) -> None:
            super().__init__()
            self.n, self.m, self.qkv, self.o = Norm(d), Norm(d), nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False)
            self.g, self.u, self.d = (nn.Linear(d, 2816, bias=False), nn.Linear(d, 2816, bias=False), nn.Linear(2816, d, bias=False))

        def forward(self, x: Tensor, turn: Tensor) -> Tensor:
            b, s, d = x.shape
            q, k, v = self.qkv(self.n(x)).view(b, s, 3, 16, 64).unbind(2)

            def rotate(y: Tensor) -> Tensor:
                pairs = torch.view_as_complex(y.float().reshape(b, s, 16, 32, 2))
                return torch.view_as_real(pairs * turn).flatten(3).type_as(y)

            q, k = rotate(q), rotate(k)
            y = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True)
            x = x + self.o(y.transpose(1, 2).reshape(b, s, d))
            h = self.m(x)
            return x + self.d(F.silu(self.g(h)) * self.u(h))

    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.e = nn.Embedding(32000, 1024)
            self.b, self.n, self.h = nn.ModuleList(Block() for _ in range(8)), Norm(1024), nn.Linear(1024, 32000, bias=False)
            self.h.weight = self.e.weight

        def forward(self, x: Tensor, angles: Tensor) -> Tensor:
            turn = torch.polar(torch.ones_like(angles), angles)[None, :, None]
            y = self.e(x)
            for block in self.b:
                y = block(y, turn)
            return F.cross_entropy(self.h(self.n(y))[:, :-1].flatten(0, 1).float(), x[:, 1:].flatten())

    return Decoder(), (tokens(4, 1024, below=32000), made(1024, 32).float())
