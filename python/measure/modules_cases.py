"""Twenty-two modules of plain torch.nn as people write them, for modules.py: nothing was fitted to any of them.

Each is a function that gives a module and its inputs; inputs are made by `made(shape)` and `tokens(shape, below)`, so that
the same code runs on a GPU and, without memory, under the exporter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import modules_sequences  # noqa: F401  adds its own
from modules_case import CASES, Made, Residual, case  # noqa: F401


def double(i: int, o: int, norm: Callable[[int], nn.Module], act: Callable[[], nn.Module]) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(i, o, 3, padding=1, bias=False), norm(o), act(), nn.Conv2d(o, o, 3, padding=1, bias=False), norm(o), act()
    )


class UNet(nn.Module):
    """Ronneberger's, four levels, upsampling by transposed convolutions."""

    def __init__(self, norm: Callable[[int], nn.Module], act: Callable[[], nn.Module], width: int = 64) -> None:
        super().__init__()
        sizes = [width * 2**i for i in range(5)]
        self.down = nn.ModuleList(double(i, o, norm, act) for i, o in zip([3, *sizes[:-1]], sizes, strict=True))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, 2) for w in sizes[-2::-1])
        self.join = nn.ModuleList(double(2 * w, w, norm, act) for w in sizes[-2::-1])
        self.head = nn.Conv2d(width, 5, 1)

    def forward(self, x: Tensor) -> Tensor:
        kept = []
        for i, stage in enumerate(self.down):
            x = stage(F.max_pool2d(x, 2) if i else x)
            kept.append(x)
        for up, join, beside in zip(self.up, self.join, kept[-2::-1], strict=True):
            x = join(torch.cat([up(x), beside], 1))
        return self.head(x)


@case("unet batchnorm nchw b8 256")
def unet_first(made: Made, tokens: Made) -> Any:
    return UNet(nn.BatchNorm2d, lambda: nn.ReLU(inplace=True)), (made(8, 3, 256, 256),)


@case("unet groupnorm nhwc b8 256")
def unet_last(made: Made, tokens: Made) -> Any:
    model = UNet(lambda w: nn.GroupNorm(32, w), nn.SiLU).to(memory_format=torch.channels_last)
    return model, (made(8, 3, 256, 256).to(memory_format=torch.channels_last),)


@case("resnet groupnorm nchw b32 224")
def resnet_group(made: Made, tokens: Made) -> Any:
    def block(i: int, o: int, stride: int) -> nn.Module:
        class Block(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.short = nn.Conv2d(i, o, 1, stride, bias=False) if stride > 1 or i != o else nn.Identity()
                self.a, self.b, self.c = (
                    nn.Conv2d(i, o // 4, 1, bias=False),
                    nn.Conv2d(o // 4, o // 4, 3, stride, 1, bias=False),
                    nn.Conv2d(o // 4, o, 1, bias=False),
                )
                self.na, self.nb, self.nc = nn.GroupNorm(32, i), nn.GroupNorm(32, o // 4), nn.GroupNorm(32, o // 4)

            def forward(self, x: Tensor) -> Tensor:
                y = self.a(F.relu(self.na(x)))
                y = self.c(F.relu(self.nc(self.b(F.relu(self.nb(y))))))
                return self.short(x) + y

        return Block()

    layers: list[nn.Module] = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.MaxPool2d(3, 2, 1)]
    wide = 64
    for n, out in ((3, 256), (4, 512), (6, 1024), (3, 2048)):
        for i in range(n):
            layers.append(block(wide, out, 2 if i == 0 and out > 256 else 1))
            wide = out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000)), (made(32, 3, 224, 224),)


@case("inverted residuals nchw b64 192")
def inverted(made: Made, tokens: Made) -> Any:
    def block(i: int, o: int, stride: int, filter_: int) -> nn.Module:
        m = 4 * i
        parts = nn.Sequential(
            *(nn.Conv2d(i, m, 1, bias=False), nn.BatchNorm2d(m), nn.Hardswish()),
            *(nn.Conv2d(m, m, filter_, stride, filter_ // 2, groups=m, bias=False), nn.BatchNorm2d(m), nn.Hardswish()),
            *(nn.Conv2d(m, o, 1, bias=False), nn.BatchNorm2d(o)),
        )
        return Residual(*parts) if stride == 1 and i == o else parts

    layers: list[nn.Module] = [nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.Hardswish()]
    wide = 32
    for n, out, stride, filter_ in ((2, 32, 1, 3), (3, 48, 2, 5), (4, 96, 2, 3), (4, 160, 2, 5)):
        for i in range(n):
            layers.append(block(wide, out, stride if i == 0 else 1, filter_))
            wide = out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(wide, 1000)), (made(64, 3, 192, 192),)


@case("branches nhwc b32 224")
def branches(made: Made, tokens: Made) -> Any:
    def conv(i: int, o: int, f: int, stride: int = 1) -> nn.Sequential:
        return nn.Sequential(nn.Conv2d(i, o, f, stride, f // 2, bias=False), nn.BatchNorm2d(o), nn.ReLU())

    class Branches(nn.Module):
        def __init__(self, i: int, o: int) -> None:
            super().__init__()
            q = o // 4
            self.a, self.b = conv(i, q, 1), nn.Sequential(conv(i, q, 1), conv(q, q, 3))
            self.c = nn.Sequential(conv(i, q, 1), conv(q, q, 5))
            self.d = nn.Sequential(nn.MaxPool2d(3, 1, 1), conv(i, q, 1))

        def forward(self, x: Tensor) -> Tensor:
            return torch.cat([self.a(x), self.b(x), self.c(x), self.d(x)], 1)

    model = nn.Sequential(
        *(conv(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1), Branches(64, 256), Branches(256, 256), conv(256, 512, 3, 2)),
        *(Branches(512, 512), Branches(512, 512), Branches(512, 512), conv(512, 768, 3, 2), Branches(768, 1024)),
        *(Branches(1024, 1024), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(1024, 1000)),
    ).to(memory_format=torch.channels_last)
    return model, (made(32, 3, 224, 224).to(memory_format=torch.channels_last),)


@case("vision transformer nn.MultiheadAttention b64")
def vision(made: Made, tokens: Made) -> Any:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.n, self.m = nn.LayerNorm(512), nn.LayerNorm(512)
            self.a = nn.MultiheadAttention(512, 8, batch_first=True)
            self.f = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512))

        def forward(self, x: Tensor) -> Tensor:
            y = self.n(x)
            x = x + self.a(y, y, y, need_weights=False)[0]
            return x + self.f(self.m(x))

    class Vision(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.p = nn.Conv2d(3, 512, 16, 16)
            self.c, self.e = nn.Parameter(torch.zeros(1, 1, 512)), nn.Parameter(torch.zeros(1, 197, 512))
            self.b = nn.Sequential(*(Block() for _ in range(10)))
            self.h = nn.Linear(512, 1000)

        def forward(self, x: Tensor) -> Tensor:
            x = self.p(x).flatten(2).transpose(1, 2)
            x = torch.cat([self.c.expand(x.shape[0], -1, -1), x], 1) + self.e
            return self.h(self.b(x)[:, 0])

    return Vision(), (made(64, 3, 224, 224),)


@case("spatial gates b32 256")
def gates(made: Made, tokens: Made) -> Any:
    class Gate(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.n, self.i, self.g = nn.LayerNorm(384), nn.Linear(384, 1536), nn.LayerNorm(768)
            self.s, self.o = nn.Conv1d(256, 256, 1), nn.Linear(768, 384)

        def forward(self, x: Tensor) -> Tensor:
            u, v = F.gelu(self.i(self.n(x))).chunk(2, -1)
            return x + self.o(u * self.s(self.g(v)))

    return nn.Sequential(*(Gate() for _ in range(16))), (made(32, 256, 384),)


@case("vnet instance norm b1 96")
def vnet(made: Made, tokens: Made) -> Any:
    def block(i: int, o: int, stride: int = 1) -> nn.Sequential:
        return nn.Sequential(
            *(nn.Conv3d(i, o, 3, stride, 1), nn.InstanceNorm3d(o, affine=True), nn.LeakyReLU(0.01, inplace=True)),
            *(nn.Conv3d(o, o, 3, 1, 1), nn.InstanceNorm3d(o, affine=True), nn.LeakyReLU(0.01, inplace=True)),
        )

    class VNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b, self.c = block(4, 32), block(32, 64, 2), block(64, 128, 2)
            self.u, self.v = nn.ConvTranspose3d(128, 64, 2, 2, bias=False), nn.ConvTranspose3d(64, 32, 2, 2, bias=False)
            self.d, self.e, self.o = block(128, 64), block(64, 32), nn.Conv3d(32, 4, 1)

        def forward(self, x: Tensor) -> Tensor:
            a = self.a(x)
            b = self.b(a)
            y = self.d(torch.cat([self.u(self.c(b)), b], 1))
            return self.o(self.e(torch.cat([self.v(y), a], 1)))

    return VNet(), (made(1, 4, 96, 96, 96),)


@case("generator b64 64")
def generator(made: Made, tokens: Made) -> Any:
    layers: list[nn.Module] = [nn.ConvTranspose2d(128, 1024, 4, 1, 0, bias=False), nn.BatchNorm2d(1024), nn.ReLU(True)]
    for i, o in ((1024, 512), (512, 256), (256, 128)):
        layers += [nn.ConvTranspose2d(i, o, 4, 2, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(True)]
    return nn.Sequential(*layers, nn.ConvTranspose2d(128, 3, 4, 2, 1, bias=False), nn.Tanh()), (made(64, 128, 1, 1),)


@case("codebook autoencoder b16 128")
def codebook(made: Made, tokens: Made) -> Any:
    class Codebook(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.i = nn.Sequential(nn.Conv2d(3, 128, 4, 2, 1), nn.ReLU(), nn.Conv2d(128, 256, 4, 2, 1))
            self.i2 = nn.Sequential(*(Residual(nn.ReLU(), nn.Conv2d(256, 64, 3, 1, 1), nn.ReLU(), nn.Conv2d(64, 256, 1)) for _ in range(4)))
            self.e = nn.Embedding(1024, 256)
            self.o = nn.Sequential(nn.ConvTranspose2d(256, 128, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(128, 3, 4, 2, 1))

        def forward(self, x: Tensor) -> Tensor:
            z = self.i2(self.i(x)).permute(0, 2, 3, 1)
            flat = z.reshape(-1, 256)
            apart = flat.pow(2).sum(1, keepdim=True) - 2 * flat @ self.e.weight.t() + self.e.weight.pow(2).sum(1)
            q = self.e(apart.argmin(1)).view(z.shape)
            q = z + (q - z).detach()
            return self.o(q.permute(0, 3, 1, 2))

    return Codebook(), (made(16, 3, 128, 128),)


@case("super resolution b8 96")
def larger(made: Made, tokens: Made) -> Any:
    body = [Residual(nn.Conv2d(128, 128, 3, 1, 1), nn.ReLU(), nn.Conv2d(128, 128, 3, 1, 1)) for _ in range(12)]
    tail = [nn.Conv2d(128, 512, 3, 1, 1), nn.PixelShuffle(2), nn.Conv2d(128, 3, 3, 1, 1)]
    return nn.Sequential(nn.Conv2d(3, 128, 3, 1, 1), *body, *tail), (made(8, 3, 96, 96),)


@case("squeezed resnet nhwc b64 224")
def squeezed(made: Made, tokens: Made) -> Any:
    class Squeeze(nn.Module):
        def __init__(self, w: int) -> None:
            super().__init__()
            self.a, self.b = nn.Conv2d(w, w // 16, 1), nn.Conv2d(w // 16, w, 1)

        def forward(self, x: Tensor) -> Tensor:
            return x * torch.sigmoid(self.b(F.relu(self.a(x.mean((2, 3), keepdim=True)))))

    class Block(nn.Module):
        def __init__(self, i: int, o: int, stride: int) -> None:
            super().__init__()
            self.s: nn.Module = nn.Identity()
            if stride > 1 or i != o:
                self.s = nn.Sequential(nn.AvgPool2d(stride, stride, ceil_mode=True), nn.Conv2d(i, o, 1, bias=False), nn.BatchNorm2d(o))
            self.f = nn.Sequential(
                *(nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(True)),
                *(nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o), Squeeze(o)),
            )

        def forward(self, x: Tensor) -> Tensor:
            return F.relu(self.f(x) + self.s(x))

    layers: list[nn.Module] = []
    wide = 64
    for n, o in ((3, 64), (4, 128), (6, 256), (3, 512)):
        layers += [Block(wide if i == 0 else o, o, 2 if i == 0 and o > 64 else 1) for i in range(n)]
        wide = o
    stem = [nn.Conv2d(3, 64, 3, 2, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(True), nn.MaxPool2d(3, 2, 1)]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000)]
    model = nn.Sequential(*stem, *layers, *head).to(memory_format=torch.channels_last)
    return model, (made(64, 3, 224, 224).to(memory_format=torch.channels_last),)
