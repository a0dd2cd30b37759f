"""Small modules in the manner of published research code, continued: choices among tokens and layers, samples, checks of values."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from user_module import Made, ids, module, refused, works, x

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
