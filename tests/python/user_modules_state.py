"""Small modules as users write them: control, hooks, state (user_modules.py has the others)."""

from __future__ import annotations

import functools
from typing import Any

import torch
import torch.nn.functional as F
import torch.utils.checkpoint
from torch import Tensor, nn
from user_module import Made, ids, module, works, x

# -- control, hooks, state ---------------------------------------------------------------------------


@works
def scan_over_a_sequence() -> Made:
    from torch._higher_order_ops.scan import scan

    def run(self: Any, a: Tensor) -> Tensor:
        def step(carry: Tensor, item: Tensor) -> tuple[Tensor, Tensor]:
            new = torch.tanh(self.l(item) + carry)
            return new, new.clone()

        return scan(step, torch.zeros(4, 16, dtype=a.dtype, device=a.device), a)[1]

    return module(run, l=nn.Linear(16, 16)), x(12, 4, 16)


@works
def associative_scan() -> Made:
    def run(self: Any, a: Tensor) -> Tensor:
        return torch._higher_order_ops.associative_scan(lambda p, q: p * 0.5 + q, self.l(a), 1, combine_mode="generic")

    return module(run, l=nn.Linear(16, 16)), x(2, 32, 16)


@works
def compiled_module() -> Made:
    return torch.compile(nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))), x(4, 16)


@works
def compiled_inside() -> Made:
    inner = torch.compile(nn.Linear(16, 16))
    return module(lambda self, a: F.relu(self.inner(a)), inner=inner), x(4, 16)


@works
def compiled_function() -> Made:
    def gate(a: Tensor) -> Tensor:
        return a * torch.sigmoid(a)

    fast = torch.compile(gate)
    return module(lambda self, a: fast(self.l(a)), l=nn.Linear(16, 16)), x(4, 16)


@works
def own_autograd_function() -> Made:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Tensor) -> Tensor:
            ctx.save_for_backward(a)
            return a * a

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return 2 * g * ctx.saved_tensors[0]

    return module(lambda self, a: Square.apply(self.l(a)), l=nn.Linear(16, 16)), x(4, 16)


@works
def straight_through() -> Made:
    return module(lambda self, a: (y := self.l(a)) + (y.round() - y).detach(), l=nn.Linear(16, 16)), x(4, 16)


@works
def hooks_before_and_after() -> Made:
    model = nn.Sequential(nn.Linear(16, 16), nn.ReLU())
    model[0].register_forward_pre_hook(lambda m, args: (args[0] * 2,))
    model[1].register_forward_hook(lambda m, args, out: out + 1)
    model.register_full_backward_hook(lambda m, a, b: None)
    return model, x(4, 16)


@works
def writes_in_place() -> Made:
    def run(self: Any, a: Tensor) -> Tensor:
        y = self.l(a)
        y[:, :4] = 0
        y[:, 4:8].mul_(2).add_(1)
        y.masked_fill_(y > 0, 1.0)
        return y.index_copy(0, torch.tensor([0, 1], device=a.device), y[:2] * 3)

    return module(run, l=nn.Linear(16, 16)), x(4, 16)


@works
def buffers_that_change() -> Made:
    model = module(lambda self, a: (self.seen.add_(1), self.mean.lerp_(a.mean(0).detach(), 0.1), self.l(a) - self.mean)[2], l=nn.Linear(16, 16))
    model.register_buffer("seen", torch.zeros((), dtype=torch.long))
    model.register_buffer("mean", torch.zeros(16))
    return model, x(4, 16)


@works
def tied_weights() -> Made:
    model = module(lambda self, a: self.o(self.e(a)), e=nn.Embedding(50, 16), o=nn.Linear(16, 50, bias=False))
    model.o.weight = model.e.weight
    return model, ids(4, 8)


@works
def no_parameters() -> Made:
    return module(lambda self, a, b: torch.cdist(a, b).softmax(-1) @ b), (x(4, 8, 16), x(4, 10, 16))


@works
def one_layer_many_times() -> Made:
    return module(lambda self, a: functools.reduce(lambda y, _: y + self.l(y), range(5), a), l=nn.Linear(16, 16)), x(4, 16)


@works
def checkpointed_parts() -> Made:
    def run(self: Any, a: Tensor) -> Tensor:
        for layer in self.layers:
            a = torch.utils.checkpoint.checkpoint(layer, a, use_reentrant=False)
        return torch.utils.checkpoint.checkpoint_sequential(self.more, 2, a, use_reentrant=False)

    layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(3))
    return module(run, layers=layers, more=nn.Sequential(*(nn.Linear(16, 16) for _ in range(4)))), x(4, 16)


@works
def shapes_decide() -> Made:
    def run(self: Any, a: Tensor) -> Tensor:
        return self.l(a) if a.shape[0] % 2 == 0 and a.dim() == 2 else self.l(a[:1])

    return module(run, l=nn.Linear(16, 16)), x(4, 16)


@works
def random_numbers() -> Made:
    def run(self: Any, a: Tensor) -> Tensor:
        y = self.l(a) + torch.randn_like(a) * 0.1
        keep = torch.rand(a.shape[0], 1, device=a.device) > 0.1
        return F.gumbel_softmax(torch.where(keep, y, y.mean()), hard=True) + torch.bernoulli(torch.full_like(a, 0.5))

    return module(run, l=nn.Linear(16, 16)), x(4, 16)
