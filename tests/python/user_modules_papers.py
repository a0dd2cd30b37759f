"""Small modules in the manner of published research code: state that forward passes change, values in whole-number buffers, complex
weights, loops over time, regions of another precision, layers that run again, parts that are compiled."""

from __future__ import annotations

import copy
import math
import random
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential
from user_module import Made, ids, module, refused, works, x

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


# -- choices -----------------------------------------------------------------------------------------


@works
def half_of_the_tokens() -> Made:
    """A mixture of depths: a router keeps the best half, the others pass by."""

    def run(self: Any, a: Tensor) -> Tensor:
        weight = self.r(a).squeeze(-1)
        best = weight.topk(a.shape[1] // 2, dim=1, sorted=False).indices.sort(1).values
        at = best.unsqueeze(-1).expand(-1, -1, a.shape[-1])
        picked = self.l(a.gather(1, at)) * weight.gather(1, best).sigmoid().unsqueeze(-1)
        return a.scatter_add(1, at, picked)

    return module(run, r=nn.Linear(16, 1), l=nn.Linear(16, 16)), x(2, 8, 16)


@works
def samples_with_a_gradient() -> Made:
    def run(self: Any, a: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_scale = self.e(a).chunk(2, -1)
        seen = torch.distributions.Normal(mean, log_scale.clamp(-5, 2).exp(), validate_args=False)
        usual = torch.distributions.Normal(torch.zeros_like(mean), torch.ones_like(mean), validate_args=False)
        kind = F.gumbel_softmax(self.k(a), tau=0.5, hard=True)
        return self.d(seen.rsample() * kind), torch.distributions.kl_divergence(seen, usual).sum(-1).mean()

    return module(run, e=nn.Linear(16, 16), k=nn.Linear(16, 8), d=nn.Linear(8, 16)), x(4, 16)


@works
def points_that_attend_where_they_look() -> Made:
    """Deformable attention: samples of several maps at learned places, weighed."""

    def run(self: Any, queries: Tensor, maps: list[Tensor], centres: Tensor) -> Tensor:
        b, n, _ = queries.shape
        off = self.places(queries).view(b, n, 2, len(maps), 4, 2)
        weight = self.weights(queries).view(b, n, 2, -1).softmax(-1)
        found = []
        for i, level in enumerate(maps):
            grid = 2 * (centres[:, :, None, None] + off[:, :, :, i] / level.shape[-1]) - 1
            value = self.v(level.flatten(2).transpose(1, 2)).view(b, -1, 2, 8).permute(0, 2, 3, 1).reshape(2 * b, 8, *level.shape[-2:])
            found.append(F.grid_sample(value, grid.permute(0, 2, 1, 3, 4).reshape(2 * b, n, 4, 2), align_corners=False))
        every = torch.cat(found, -1).view(b, 2, 8, n, -1)
        return self.o((every * weight.permute(0, 2, 1, 3).unsqueeze(2)).sum(-1).flatten(1, 2).transpose(1, 2))

    parts = dict(places=nn.Linear(16, 32), weights=nn.Linear(16, 16), v=nn.Linear(16, 16), o=nn.Linear(16, 16))
    return module(run, **parts), (x(2, 5, 16), [x(2, 16, 8, 8), x(2, 16, 4, 4)], x(2, 5, 2))


@works
def filters_of_each_sample() -> Made:
    """Modulated convolution: the batch stands among the channels, a group for each picture."""

    def run(self: Any, a: Tensor, style: Tensor) -> Tensor:
        b, c, h, w = a.shape
        weight = self.w.unsqueeze(0) * self.s(style).view(b, 1, c, 1, 1)
        weight = weight * torch.rsqrt(weight.pow(2).sum([2, 3, 4], keepdim=True) + 1e-8)
        y = F.conv2d(a.reshape(1, b * c, h, w), weight.view(b * 12, c, 3, 3), padding=1, groups=b).view(b, 12, h, w)
        return F.leaky_relu(y + self.noise * torch.randn(b, 1, h, w, device=a.device, dtype=a.dtype), 0.2)

    model = module(run, s=nn.Linear(16, 8), w=nn.Parameter(torch.zeros(12, 8, 3, 3)), noise=nn.Parameter(torch.zeros(1)))
    return model, (x(2, 8, 16, 16), x(2, 16))


@works
def plans_between_two_sets() -> Made:
    def run(self: Any, a: Tensor, b: Tensor) -> Tensor:
        cost = torch.cdist(self.l(a), self.l(b))
        u, v = torch.zeros_like(cost[..., 0]), torch.zeros_like(cost[..., 0, :])
        for _ in range(5):
            u = -torch.logsumexp(v.unsqueeze(-2) - cost / 0.1, -1)
            v = -torch.logsumexp(u.unsqueeze(-1) - cost / 0.1, -2)
        return (torch.exp(u.unsqueeze(-1) + v.unsqueeze(-2) - cost / 0.1) * cost).sum((-1, -2)).mean()

    return module(run, l=nn.Linear(16, 8)), (x(2, 6, 16), x(2, 7, 16))


@works
def layers_left_out_at_random() -> Made:
    def run(self: Any, a: Tensor) -> Tensor:
        for layer in self.layers:
            if self.training and random.random() < 0.1:
                continue
            keep = torch.rand(a.shape[0], 1, device=a.device) < 0.9
            a = a + torch.where(keep, layer(a), torch.zeros_like(a))
        return a

    return module(run, layers=nn.ModuleList(nn.Linear(16, 16) for _ in range(4))), x(4, 16)


@works
def checks_of_its_own_numbers() -> Made:
    def run(self: Any, a: Tensor, words: Tensor) -> Tensor:
        assert words.max() < 32, "a word that is not in the vocabulary"
        y = self.l(a + self.e(words))
        if torch.isnan(y).any() or not torch.isfinite(y).all():
            raise ValueError("not a number")
        y[words == 0] = 0
        return y

    return module(run, l=nn.Linear(16, 16), e=nn.Embedding(32, 16)), (x(2, 6, 16), ids(2, 6))


class Batch(NamedTuple):
    words: Tensor
    places: dict[str, list[Tensor]]


@works
def inputs_inside_inputs() -> Made:
    def run(self: Any, batch: Batch, *more: Tensor, scale: float = 1.0) -> dict[str, Any]:
        y = self.e(batch.words) + sum(batch.places["each"])
        return {"y": [self.l(y * scale), *more], "shape": tuple(y.shape)}

    model = module(run, l=nn.Linear(16, 16), e=nn.Embedding(32, 16))
    return model, (Batch(ids(2, 6), {"each": [x(2, 6, 16), x(16)]}), x(3))


@refused("operator")
def a_graph_in_compressed_rows() -> Made:
    """A graph convolution whose neighbours stand in a sparse buffer."""
    model = module(lambda self, a: torch.sparse.mm(self.near, self.l(a)), l=nn.Linear(16, 16))
    model.register_buffer("near", torch.eye(6).to_sparse_csr())
    return model, x(6, 16)


@refused("operator")
def an_ensemble_side_by_side() -> Made:
    models = [nn.Linear(16, 4) for _ in range(3)]
    weights, buffers = torch.func.stack_module_state(models)

    def run(self: Any, a: Tensor) -> Tensor:
        def one(p: Any, b: Any) -> Any:
            return torch.func.functional_call(self.base, (p, b), (a,))

        return torch.vmap(one)(dict(self.weights.items()), buffers)

    kept = nn.ParameterDict({name: nn.Parameter(value.detach()) for name, value in weights.items()})
    return module(run, base=nn.Linear(16, 4), weights=kept), x(4, 16)


@refused("data_dependent")
def as_far_as_it_must() -> Made:
    """Adaptive computation time: it thinks until all samples have had enough."""

    def run(self: Any, a: Tensor) -> Tensor:
        spent = torch.zeros(a.shape[0], device=a.device)
        while (spent < 1).any():
            a = torch.tanh(self.l(a))
            spent = spent + self.h(a).sigmoid().squeeze(-1)
        return a

    return module(run, l=nn.Linear(16, 16), h=nn.Linear(16, 1)), x(4, 16)
