"""Small modules in the manner of published research code: state that forward passes change, values in whole-number buffers, complex
weights, loops over time, regions of another precision, layers that run again, parts that are compiled."""

from __future__ import annotations

import copy
import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential
from user_module import Made, module, works, x

# -- state -------------------------------------------------------------------------------------------


@works
def a_teacher_and_a_queue() -> Made:
    """MoCo: a copy that follows slowly, keys in a ring whose place is a number in a buffer."""

    class Momentum(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.student = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))
            self.teacher = copy.deepcopy(self.student)
            for p in self.teacher.parameters():
                p.requires_grad = False
            self.register_buffer("queue", F.normalize(torch.randn(8, 64), dim=0))
            self.register_buffer("place", torch.zeros(1, dtype=torch.long))

        @torch.no_grad()
        def follow(self) -> None:
            for p, q in zip(self.student.parameters(), self.teacher.parameters(), strict=True):
                q.data = q.data * 0.99 + p.data * 0.01

        @torch.no_grad()
        def push(self, keys: Tensor) -> None:
            at = int(self.place)
            self.queue[:, at : at + keys.shape[0]] = keys.T
            self.place[0] = (at + keys.shape[0]) % 64

        def forward(self, a: Tensor, b: Tensor) -> Tensor:
            q = F.normalize(self.student(a), dim=1)
            with torch.no_grad():
                self.follow()
                k = F.normalize(self.teacher(b), dim=1)
            near, far = torch.einsum("nc,nc->n", q, k).unsqueeze(-1), q @ self.queue.clone().detach()
            logits = torch.cat([near, far], dim=1) / 0.07
            self.push(k)
            return F.cross_entropy(logits, torch.zeros(logits.shape[0], dtype=torch.long, device=logits.device))

    return Momentum(), (x(4, 16), x(4, 16))


@works
def codes_with_averages() -> Made:
    """VQ-VAE: the nearest code, a gradient that goes straight through, codes that follow their members."""

    def run(self: Any, a: Tensor) -> tuple[Tensor, Tensor]:
        flat = self.l(a).reshape(-1, 8)
        far = flat.pow(2).sum(1, keepdim=True) - 2 * flat @ self.codes.T + self.codes.pow(2).sum(1)
        code = far.argmin(1)
        one = F.one_hot(code, 32).to(flat.dtype)
        if self.training:
            self.members.data.mul_(0.99).add_(one.sum(0), alpha=0.01)
            self.sums.data.mul_(0.99).add_(one.T @ flat.detach(), alpha=0.01)
            self.codes.data.copy_(self.sums / self.members.clamp(min=1e-5).unsqueeze(1))
        chosen = F.embedding(code, self.codes).view_as(self.l(a))
        loss = F.mse_loss(chosen.detach(), self.l(a))
        return a + self.o(flat + (chosen.reshape(-1, 8) - flat).detach()).view_as(a), loss

    model = module(run, l=nn.Linear(16, 8), o=nn.Linear(8, 16))
    for name, value in (("codes", torch.randn(32, 8)), ("members", torch.ones(32)), ("sums", torch.randn(32, 8))):
        model.register_buffer(name, value)
    return model, x(2, 6, 16)


@works
def positions_that_grow() -> Made:
    """A cache of angles that a forward pass registers anew when a sequence is longer than all before."""

    class Rotary(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.l, self.longest = nn.Linear(16, 16), 0
            self.grow(4)

        def grow(self, length: int) -> None:
            angle = torch.outer(torch.arange(length), 1e4 ** (-torch.arange(0, 16, 2) / 16))
            self.longest = length
            self.register_buffer("cos", angle.cos().repeat(1, 2), persistent=False)
            self.register_buffer("sin", angle.sin().repeat(1, 2), persistent=False)

        def forward(self, a: Tensor) -> Tensor:
            if a.shape[1] > self.longest:
                self.grow(a.shape[1])
            y = self.l(a)
            turned = torch.cat((-y[..., 8:], y[..., :8]), -1)
            return y * self.cos[: a.shape[1]].to(y) + turned * self.sin[: a.shape[1]].to(y)

    return Rotary(), x(2, 12, 16)


@works
def features_by_hooks() -> Made:
    """A backbone whose layers are read by hooks, and a pyramid on top of what they left."""

    class Pyramid(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(*(nn.Conv2d(4 * 2**i, 8 * 2**i, 3, 2, 1) for i in range(3)))
            self.side = nn.ModuleDict({str(i): nn.Conv2d(8 * 2**i, 8, 1) for i in range(3)})
            self.seen: dict[str, Tensor] = {}
            for name, layer in self.body.named_children():
                layer.register_forward_hook(lambda m, i, o, name=name: self.seen.__setitem__(name, o))

        def forward(self, a: Tensor) -> dict[str, Tensor]:
            self.body(a)
            top, out = None, {}
            for name in reversed(list(self.seen)):
                here = self.side[name](self.seen[name])
                top = here if top is None else here + F.interpolate(top, size=here.shape[-2:], mode="nearest")
                out[name] = top
            return out

    return Pyramid().to(memory_format=torch.channels_last), x(2, 4, 32, 32).to(memory_format=torch.channels_last)


# -- time --------------------------------------------------------------------------------------------


@works
def a_selective_scan_by_hand() -> Made:
    def run(self: Any, a: Tensor) -> Tensor:
        rate, b, c = F.softplus(self.d(a)), self.b(a), self.c(a)
        decay = torch.exp(rate.unsqueeze(-1) * -torch.exp(self.log_a))
        gained = rate.unsqueeze(-1) * b.unsqueeze(2) * a.unsqueeze(-1)
        state, out = a.new_zeros(a.shape[0], 16, 4), []
        for t in range(a.shape[1]):
            state = decay[:, t] * state + gained[:, t]
            out.append((state * c[:, t].unsqueeze(1)).sum(-1))
        return torch.stack(out, 1) + a * self.skip

    parts = dict(d=nn.Linear(16, 16), b=nn.Linear(16, 4), c=nn.Linear(16, 4), skip=nn.Parameter(torch.ones(16)))
    return module(run, log_a=nn.Parameter(torch.zeros(16, 4)), **parts), x(2, 8, 16)


@works
def spikes_with_a_slope_of_their_own() -> Made:
    class Spike(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, v: Tensor) -> Tensor:
            ctx.save_for_backward(v)
            return (v > 0).to(v.dtype)

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            (v,) = ctx.saved_tensors
            return g / (1 + (math.pi * v) ** 2)

    def run(self: Any, a: Tensor) -> Tensor:
        v, out = torch.zeros_like(self.l(a[0])), 0
        for frame in a:
            v = 0.9 * v + self.l(frame)
            fired = Spike.apply(v - 1)
            v = v - fired.detach()
            out = out + fired
        return out / a.shape[0]

    return module(run, l=nn.Linear(16, 32)), x(5, 4, 16)


@works
def long_filters_of_a_state_space() -> Made:
    """S4D: complex poles, a kernel from their powers, a convolution through spectra."""

    def run(self: Any, a: Tensor) -> Tensor:
        length = a.shape[-1]
        step, pole = torch.exp(self.step), torch.complex(-torch.exp(self.real), self.imaginary)
        power = torch.exp((pole * step.unsqueeze(-1)).unsqueeze(-1) * torch.arange(length, device=a.device))
        gain = torch.view_as_complex(self.gain) * (torch.exp(pole * step.unsqueeze(-1)) - 1) / pole
        kernel = 2 * torch.einsum("hn,hnl->hl", gain, power).real
        y = torch.fft.irfft(torch.fft.rfft(a.float(), n=2 * length) * torch.fft.rfft(kernel, n=2 * length), n=2 * length)
        return F.glu(self.o((y[..., :length] + a * self.d.unsqueeze(-1)).to(a.dtype)), dim=-2)

    poles = dict(step=nn.Parameter(torch.zeros(8)), real=nn.Parameter(torch.zeros(8, 4)), d=nn.Parameter(torch.ones(8)))
    poles |= dict(imaginary=nn.Parameter(torch.zeros(8, 4)), gain=nn.Parameter(torch.zeros(8, 4, 2)))
    return module(run, o=nn.Conv1d(8, 16, 1), **poles), x(2, 8, 32)


@works
def an_operator_in_the_frequencies() -> Made:
    """A Fourier neural operator: complex weights for the low frequencies, written into zeros."""

    def run(self: Any, a: Tensor) -> Tensor:
        y = self.up(a)
        seen = torch.fft.rfft2(y.float())
        out = torch.zeros_like(seen)
        out[:, :, :4, :4] = torch.einsum("bixy,ioxy->boxy", seen[:, :, :4, :4], self.low)
        out[:, :, -4:, :4] = torch.einsum("bixy,ioxy->boxy", seen[:, :, -4:, :4], self.high)
        return F.gelu(torch.fft.irfft2(out, s=y.shape[-2:]).to(y.dtype) + self.beside(y))

    weights = {name: nn.Parameter(torch.zeros(8, 8, 4, 4, dtype=torch.cfloat)) for name in ("low", "high")}
    return module(run, up=nn.Conv2d(3, 8, 1), beside=nn.Conv2d(8, 8, 1), **weights), x(2, 3, 16, 16)


# -- precision, recomputation, compilers -------------------------------------------------------------


@works
def regions_of_another_precision() -> Made:
    def run(self: Any, a: Tensor) -> Tensor:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            q, k = self.q(a), self.k(a)
        with torch.autocast("cuda", enabled=False):
            score = (q.float() @ k.float().transpose(-1, -2) / 4).softmax(-1)
        with torch.autocast("cuda", dtype=torch.float16):
            return self.o(score.to(a.dtype) @ a)

    return module(run, q=nn.Linear(16, 16), k=nn.Linear(16, 16), o=nn.Linear(16, 16)), x(2, 8, 16)


@works
def layers_that_run_again() -> Made:
    class Deep(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stages = nn.ModuleDict({"early": nn.ModuleList(nn.Linear(16, 16) for _ in range(2))})
            self.stages["late"] = nn.Sequential(*(nn.Sequential(nn.Linear(16, 16), nn.GELU()) for _ in range(4)))
            self.o = nn.Linear(16, 4)

        def forward(self, a: Tensor) -> Tensor:
            for layer in self.stages["early"]:
                a = a + checkpoint(layer, a, use_reentrant=False)
            a = checkpoint_sequential(self.stages["late"], 2, a, use_reentrant=True)
            return self.o(a)

    return Deep(), x(4, 16)


@works
def the_same_layers_twice() -> Made:
    """Recurrent depth: a stack runs, something else runs, the stack runs again with its own weights."""

    def run(self: Any, a: Tensor) -> Tensor:
        for _ in range(2):
            for layer in self.layers:
                a = a + layer(a)
            a = self.between(a).tanh()
        return a

    layers = nn.ModuleList(nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16)) for _ in range(4))
    return module(run, layers=layers, between=nn.Linear(16, 16)), x(4, 16)


@works
def undone_instead_of_kept() -> Made:
    """A reversible layer: backward computes the inputs again from the results."""

    class Undo(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Tensor, b: Tensor, f: nn.Module, g: nn.Module, *_: Tensor) -> tuple[Tensor, Tensor]:
            with torch.no_grad():
                y = a + f(b)
                z = b + g(y)
            ctx.f, ctx.g = f, g
            ctx.save_for_backward(y, z)
            return y, z

        @staticmethod
        def backward(ctx: Any, dy: Tensor, dz: Tensor) -> Any:
            y, z = ctx.saved_tensors
            with torch.enable_grad():
                y = y.detach().requires_grad_()
                h = ctx.g(y)
            h.backward(dz)
            return dy + y.grad, dz, None, None, *(None for _ in (*ctx.f.parameters(), *ctx.g.parameters()))

    def run(self: Any, a: Tensor) -> Tensor:
        y, z = Undo.apply(*a.chunk(2, -1), self.f, self.g, *self.f.parameters(), *self.g.parameters())
        return torch.cat((y, z), -1)

    return module(run, f=nn.Linear(8, 8), g=nn.Linear(8, 8)), x(4, 16)


@works
def compiled_in_places() -> Made:
    @torch.compile(fullgraph=True)
    def gated(a: Tensor, b: Tensor) -> Tensor:
        return F.silu(a) * b

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up, self.down = nn.Linear(16, 64), nn.Linear(32, 16)

        @torch.compile(dynamic=True)
        def body(self, a: Tensor) -> Tensor:
            return self.down(gated(*self.up(a).chunk(2, -1)))

        def forward(self, a: Tensor) -> Tensor:
            return a + self.body(a)

    return nn.Sequential(Block(), torch.compile(Block(), mode="max-autotune"), nn.LayerNorm(16)), x(4, 16)
