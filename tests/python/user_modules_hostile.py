"""Small modules that are hard to capture: values that decide, operators of others, gradients inside, formats without a shape."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from user_module import Made, ids, module, refused, works, x

# -- whole numbers of the example decide -------------------------------------------------------------


@works
def as_many_turns_as_it_is_told() -> Made:
    def run(self: Any, a: Tensor, turns: Tensor) -> Tensor:
        for _ in range(int(turns)):
            a = self.l(a)
        return a

    return module(run, l=nn.Linear(16, 16)), (x(4, 16), torch.tensor(3))


@works
def pictures_of_several_sizes() -> Made:
    def run(self: Any, patches: Tensor, grid: Tensor) -> Tensor:
        lengths = torch.repeat_interleave(grid[:, 1] * grid[:, 2], grid[:, 0])
        ends = F.pad(lengths.cumsum(0, dtype=torch.int32), (1, 0))
        places = torch.cat([torch.arange(int(h * w), device=patches.device) for _, h, w in grid.tolist()])
        starts = F.pad(lengths[:1].cumsum(0)[:-1], (1, 0))  # of nothing: one zero
        parts = (patches + self.e(places) + starts).split((ends[1:] - ends[:-1]).tolist())
        return torch.cat([self.l(part).softmax(0) for part in parts])

    model = module(run, l=nn.Linear(16, 16), e=nn.Embedding(32, 16))
    return model, (x(24, 16), torch.tensor([[1, 4, 4], [1, 2, 4]]))


@works
def steps_of_a_solver() -> Made:
    def run(self: Any, a: Tensor) -> Tensor:
        for t in torch.linspace(0, 1, 5).tolist():
            a = a + 0.2 * t * self.l(a)
        return a

    return module(run, l=nn.Linear(16, 16)), x(4, 16)


@works
def runs_a_part_by_chance() -> Made:
    def run(self: Any, a: Tensor) -> Tensor:
        if not self.training or torch.rand(1) > 0.1:
            a = a + self.l(a)
        return a

    return module(run, l=nn.Linear(16, 16)), x(4, 16)


@works
def asks_whether_its_own_mask_hides_anything() -> Made:
    def run(self: Any, a: Tensor) -> Tensor:
        mask = torch.ones(a.shape[:2], device=a.device)
        hidden = (1.0 - mask[:, None, None, :]) * torch.finfo(a.dtype).min
        if bool((hidden > 0).flatten().any().item()):
            a = a * 2
        return self.l(a) + torch.div(a.shape[1], 2, rounding_mode="floor")

    return module(run, l=nn.Linear(16, 16)), x(2, 300, 16)


@works
def packed_and_padded_again() -> Made:
    def run(self: Any, a: Tensor, lengths: Tensor) -> Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(a, lengths, batch_first=True)
        return nn.utils.rnn.pad_packed_sequence(self.r(packed)[0], batch_first=True)[0]

    return module(run, r=nn.LSTM(16, 16, batch_first=True)), (x(2, 6, 16), torch.tensor([6, 4]))


@refused("data_dependent")
def stops_when_it_is_near() -> Made:
    def run(self: Any, a: Tensor) -> Tensor:
        for _ in range(4):
            a = self.l(a)
            if a.norm() < 1e-3:
                break
        return a

    return module(run, l=nn.Linear(16, 16)), x(4, 16)


@refused("data_dependent")
def rows_above_zero() -> Made:
    return module(lambda self, a: self.l(a[a[:, 0] > 0]), l=nn.Linear(16, 16)), x(4, 16)


@refused("control_flow")
def one_branch_or_another() -> Made:
    def run(self: Any, a: Tensor) -> Tensor:
        return torch.cond(a.sum() > 0, lambda y: self.l(y), lambda y: self.m(y), (a,))

    return module(run, l=nn.Linear(16, 16), m=nn.Linear(16, 16)), x(4, 16)


@refused("control_flow")
def a_loop_of_a_tensor() -> Made:
    from torch._higher_order_ops.while_loop import while_loop

    def run(self: Any, a: Tensor) -> Tensor:
        start = torch.zeros((), dtype=torch.long, device=a.device)
        return while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, y * 2), (start, self.l(a)))[1]

    return module(run, l=nn.Linear(16, 16)), x(4, 16)


# -- gradients and operators of one's own ------------------------------------------------------------


@works
def autograd_function_of_two() -> Made:
    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Tensor, b: Tensor, scale: float) -> tuple[Tensor, Tensor]:
            y = a @ b
            ctx.save_for_backward(a, b, y)
            return y * scale, y.relu()

        @staticmethod
        def backward(ctx: Any, g: Tensor, h: Tensor) -> Any:
            a, b, y = ctx.saved_tensors
            both = g + h * (y > 0)
            return both @ b.T, a.T @ both, None

    return module(lambda self, a: sum(Product.apply(a, self.w, 2.0)), w=nn.Parameter(torch.zeros(16, 16))), x(4, 16)


@works
def autograd_function_in_place() -> Made:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Tensor) -> Tensor:
            ctx.mark_dirty(a)
            return a.mul_(2)

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return g * 2

    return module(lambda self, a: Twice.apply(self.l(a)), l=nn.Linear(16, 16)), x(4, 16)


@works
def operator_of_another_package_named_like_ours() -> Made:
    @torch.library.custom_op("foretell_tests::mul", mutates_args=())
    def twice(a: Tensor) -> Tensor:
        return a * 2

    twice.register_fake(torch.empty_like)
    return module(lambda self, a: twice(self.l(a)), l=nn.Linear(16, 16)), x(4, 16)


@refused("model_raised")
def operator_without_shapes() -> Made:
    @torch.library.custom_op("foretell_tests::shapeless", mutates_args=())
    def twice(a: Tensor) -> Tensor:
        return a * 2

    return module(lambda self, a: twice(self.l(a)), l=nn.Linear(16, 16)), x(4, 16)


@refused("operator")
def forces_of_an_energy() -> Made:
    def run(self: Any, places: Tensor) -> Tensor:
        with torch.enable_grad():
            places.requires_grad_(True)
            return torch.autograd.grad(self.l(places).tanh().sum(), places, create_graph=True)[0]

    return module(run, l=nn.Linear(3, 16)), x(8, 3)


@refused("operator")
def gradient_as_a_function() -> Made:
    return module(lambda self, a: torch.func.grad(lambda b: self.l(b).sum())(a), l=nn.Linear(16, 16)), x(4, 16)


@works
def weights_of_another_call() -> Made:
    def run(self: Any, a: Tensor) -> Tensor:
        return torch.func.functional_call(self.l, {"weight": self.l.weight * 2}, (a,))

    return module(run, l=nn.Linear(16, 16)), x(4, 16)


@works
def flexible_attention_with_a_learned_slope() -> Made:
    from torch.nn.attention.flex_attention import flex_attention

    fast = torch.compile(flex_attention)

    def run(self: Any, a: Tensor) -> Tensor:
        q, k, v = self.p(a).view(2, 64, 3, 4, 16).permute(2, 0, 3, 1, 4)
        return fast(q, k, v, score_mod=lambda s, b, h, i, j: s + self.slope[h] * (j - i))

    return module(run, p=nn.Linear(64, 192), slope=nn.Parameter(torch.zeros(4))), x(2, 64, 64)


# -- layers and formats ------------------------------------------------------------------------------


@works
def loss_of_an_alignment() -> Made:
    def run(self: Any, a: Tensor, words: Tensor) -> Tensor:
        lengths = torch.full((2,), 12, dtype=torch.long), torch.full((2,), 5, dtype=torch.long)
        return F.ctc_loss(self.l(a).log_softmax(-1), words, *lengths)

    return module(run, l=nn.Linear(16, 10)), (x(12, 2, 16), ids(2, 5))


@works
def long_filters_by_their_spectra() -> Made:
    def run(self: Any, a: Tensor) -> Tensor:
        return torch.fft.irfft(torch.fft.rfft(a, n=64) * torch.fft.rfft(self.k, n=64), n=64)[..., :32]

    return module(run, k=nn.Parameter(torch.zeros(16, 32))), x(2, 16, 32)


@works
def pooled_and_put_back() -> Made:
    def run(self: Any, a: Tensor) -> Tensor:
        y, places = F.max_pool2d(self.c(a), 2, return_indices=True)
        return F.max_unpool2d(y, places, 2)

    return module(run, c=nn.Conv2d(3, 8, 3, padding=1)), x(2, 3, 16, 16)


@works
def deformed_filters() -> Made:
    torchvision = __import__("torchvision")
    model = module(lambda self, a: torchvision.ops.deform_conv2d(a, self.o(a), self.w), o=nn.Conv2d(4, 18, 3))
    model.w = nn.Parameter(torch.zeros(8, 4, 3, 3))
    return model, x(2, 4, 16, 16)


@works
def a_record_comes_out() -> Made:
    @dataclasses.dataclass
    class Out:
        y: Tensor
        count: int

    torch.utils._pytree.register_dataclass(Out, field_names=["y", "count"])
    return module(lambda self, a: Out(self.l(a), 3), l=nn.Linear(16, 16)), x(4, 16)


@works
def copied_over_devices() -> Made:
    return nn.DataParallel(nn.Linear(16, 16)), x(4, 16)


@refused("operator")
def script_of_a_module() -> Made:
    return torch.jit.script(nn.Sequential(nn.Linear(16, 16), nn.ReLU())), x(4, 16)


@refused("operator")
def sequences_without_padding() -> Made:
    def run(self: Any, a: Tensor) -> Tensor:
        return self.l(torch.nested.nested_tensor([a[0], a[1]], layout=torch.jagged)).values()

    return module(run, l=nn.Linear(16, 16)), x(4, 8, 16)


@refused("operator")
def sparse_product() -> Made:
    def run(self: Any, a: Tensor) -> Tensor:
        places = torch.zeros(2, 3, dtype=torch.long, device=a.device)
        matrix = torch.sparse_coo_tensor(places, torch.ones(3, device=a.device, dtype=a.dtype), (4, 4))
        return torch.sparse.mm(matrix, self.l(a))

    return module(run, l=nn.Linear(16, 16)), x(4, 16)


@refused("operator")
def packed_weights() -> Made:
    return torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(16, 16))), x(4, 16)
