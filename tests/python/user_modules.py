"""Forty small modules as users write them, kind and unkind: hooks, loops, complex numbers, tied weights, double precision.

Each is a function without arguments that gives a module and its example inputs. MODULES are exported; REFUSED are not, and
the code of the error stands beside them.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from user_module import MODULES, REFUSED, Made, ids, module, refused, works, x  # noqa: F401

import user_modules_choices  # noqa: F401  adds its own
import user_modules_hostile  # noqa: F401  adds its own
import user_modules_papers  # noqa: F401  adds its own
import user_modules_state  # noqa: F401  adds its own

# -- layers of torch.nn ------------------------------------------------------------------------------


@works
def lstm_with_projection() -> Made:
    return nn.LSTM(32, 64, 2, proj_size=16, batch_first=True), x(4, 12, 32)


@works
def cells_in_a_loop() -> Made:
    def run(self: Any, words: Tensor) -> Tensor:
        h = torch.zeros(words.shape[0], 64, dtype=words.dtype, device=words.device)
        for step in words.unbind(1):
            h = self.cell(step, h)
        return h

    return module(run, cell=nn.GRUCell(32, 64)), x(4, 6, 32)


@works
def embedding_bag_with_offsets() -> Made:
    model = module(lambda self, words, starts: self.bag(words, starts), bag=nn.EmbeddingBag(100, 16, mode="mean"))
    return model, (ids(40), torch.arange(0, 40, 5))


@works
def sparse_embedding_bag() -> Made:
    model = module(
        lambda self, words, weights: self.bag(words, per_sample_weights=weights),
        bag=nn.EmbeddingBag(100, 16, mode="sum", sparse=True),
    )
    return model, (ids(8, 5), x(8, 5))


@works
def transposed_one_dimension() -> Made:
    return nn.Sequential(nn.ConvTranspose1d(16, 8, 8, 4, 2, groups=2), nn.Tanh()), x(2, 16, 32)


@works
def transposed_three_dimensions() -> Made:
    return nn.ConvTranspose3d(8, 4, 3, 2, 1, output_padding=1, dilation=1), x(2, 8, 4, 6, 6)


@works
def padding_by_name() -> Made:
    pads = nn.Conv2d(3, 8, (3, 5), padding="same", padding_mode="reflect", dilation=2)
    return nn.Sequential(pads, nn.Conv2d(8, 8, 1, padding="valid")), x(2, 3, 16, 16)


class _Beside(nn.Module):
    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        return given + self.layer(given)


@works
def even_filters_padded_by_name() -> Made:
    return _Beside(nn.Conv1d(16, 16, 32, padding="same", groups=16)), x(2, 16, 61)


@works
def one_picture_without_a_batch() -> Made:
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.MaxPool2d(2), nn.Flatten(0), nn.Linear(8 * 7 * 7, 4)), x(3, 16, 16)


@works
def weight_and_spectral_norm() -> Made:
    wrap = nn.utils.parametrizations
    return nn.Sequential(wrap.weight_norm(nn.Conv1d(8, 8, 3)), nn.ELU(), wrap.spectral_norm(nn.Conv1d(8, 8, 1))), x(2, 8, 16)


@works
def lazy_layers() -> Made:
    model = nn.Sequential(nn.LazyConv2d(8, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(4))
    model(torch.zeros(2, 3, 8, 8))
    return model, x(2, 3, 8, 8)


@works
def whole_transformer_with_masks() -> Made:
    def run(self: Any, a: Tensor, b: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(b.shape[1], device=b.device, dtype=b.dtype)
        return self.t(a, b, tgt_mask=mask, src_key_padding_mask=torch.zeros(a.shape[:2], dtype=torch.bool, device=a.device))

    return module(run, t=nn.Transformer(32, 4, 2, 2, 64, batch_first=True)), (x(2, 8, 32), x(2, 6, 32))


@works
def encoder_with_a_mask_of_truths() -> Made:
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, norm_first=True)

    def run(self: Any, a: Tensor) -> Tensor:
        return self.e(a, mask=torch.ones(a.shape[1], a.shape[1], dtype=torch.bool, device=a.device).triu(1))

    return module(run, e=nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)), x(2, 8, 32)


@works
def attention_with_weights() -> Made:
    return module(lambda self, a: self.a(a, a, a)[1], a=nn.MultiheadAttention(32, 4, batch_first=True)), x(2, 8, 32)


@works
def grouped_queries() -> Made:
    def run(self: Any, q: Tensor, k: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, k, is_causal=True, enable_gqa=True)

    return module(run, p=nn.Linear(1, 1)), (x(2, 8, 16, 32), x(2, 2, 16, 32))


@works
def flexible_attention() -> Made:
    from torch.nn.attention.flex_attention import flex_attention

    def run(self: Any, a: Tensor) -> Tensor:
        q, k, v = self.p(a).view(2, 64, 3, 4, 16).permute(2, 0, 3, 1, 4)
        return flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: torch.where(i >= j, s, -float("inf")))

    return module(run, p=nn.Linear(64, 192)), x(2, 64, 64)


@works
def flexible_attention_in_blocks() -> Made:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    def run(self: Any, a: Tensor) -> Tensor:
        q, k, v = self.p(a).view(2, 256, 3, 4, 16).permute(2, 0, 3, 1, 4)
        mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, 256, 256, device=a.device)
        return flex_attention(q, k, v, block_mask=mask)

    return module(run, p=nn.Linear(64, 192)), x(2, 256, 64)


# -- what goes in and out ----------------------------------------------------------------------------


class Pair(NamedTuple):
    left: Tensor
    right: Tensor


@works
def dictionaries_and_tuples() -> Made:
    def run(self: Any, batch: dict[str, Any], scale: float = 2.0) -> Any:
        y = self.l(batch["x"]) * scale
        return {"logits": y, "parts": [y[:, :2], Pair(y, y + batch["more"][0])], "count": 3}

    return module(run, l=nn.Linear(16, 16)), {"batch": {"x": x(4, 16), "more": (x(4, 16), None)}}


@works
def nothing_but_keywords() -> Made:
    return module(lambda self, *, a, b=None: self.l(a) + (0 if b is None else b), l=nn.Linear(16, 16)), {"a": x(4, 16)}


@works
def double_precision() -> Made:
    return nn.Sequential(nn.Linear(16, 16), nn.Softplus(), nn.LayerNorm(16)).double(), x(4, 16).double()


@works
def half_and_single_together() -> Made:
    return module(lambda self, a: self.b(self.a(a).float()), a=nn.Linear(16, 16).half(), b=nn.Linear(16, 16)), x(4, 16).half()


@works
def complex_spectra() -> Made:
    def run(self: Any, a: Tensor) -> Tensor:
        f = torch.fft.rfft2(a.float(), norm="ortho")
        low = torch.einsum("bixy,ioxy->boxy", f[:, :, :8, :8], self.w)
        out = torch.zeros(a.shape[0], 8, a.shape[2], a.shape[3] // 2 + 1, dtype=torch.cfloat, device=a.device)
        out[:, :, :8, :8] = low
        return torch.fft.irfft2(out, s=a.shape[-2:], norm="ortho")

    return module(run, w=nn.Parameter(torch.zeros(4, 8, 8, 8, dtype=torch.cfloat))), x(2, 4, 32, 32)


@works
def short_time_spectra() -> Made:
    def run(self: Any, a: Tensor) -> Tensor:
        s = torch.stft(a, 64, 16, window=torch.hann_window(64, device=a.device), return_complex=True).abs()
        return self.l(torch.log1p(s).transpose(1, 2))

    return module(run, l=nn.Linear(33, 8)), x(2, 512)


@works
def linear_algebra() -> Made:
    def run(self: Any, a: Tensor) -> Tensor:
        y = self.l(a)
        k = (y @ y.mT + torch.eye(8, device=a.device, dtype=a.dtype)).float()
        return torch.linalg.solve(k, y.float()) + torch.linalg.cholesky(k) @ y.float()

    return module(run, l=nn.Linear(16, 16)), x(2, 8, 16)


@works
def graphs_and_scatters() -> Made:
    def run(self: Any, nodes: Tensor, edges: Tensor) -> Tensor:
        said = self.l(nodes)[edges[0]]
        degree = torch.zeros(nodes.shape[0], device=nodes.device, dtype=said.dtype).scatter_add_(0, edges[1], said[:, 0])
        out = torch.zeros_like(nodes).index_add(0, edges[1], said) / (degree[:, None] + 1)
        return torch.scatter_reduce(out, 0, edges[1][:, None].expand_as(said), said, "amax")

    return module(run, l=nn.Linear(16, 16)), (x(10, 16), ids(2, 40))


@works
def sorted_and_padded() -> Made:
    def run(self: Any, a: Tensor) -> Tensor:
        best, at = torch.topk(self.l(a), 4, dim=-1)
        order = best.sum(-1).argsort(dim=0, descending=True)
        wide = F.pad(best[order], (2, 2, 1, 0), value=-1.0)
        return F.one_hot(at, 16).to(wide.dtype).cumsum(1).mean() + torch.roll(wide, (1, 2), (0, 1)).flip(0).logsumexp(-1)

    return module(run, l=nn.Linear(16, 16)), x(4, 16)


@works
def mixtures_written_as_a_loop() -> Made:
    def run(self: Any, a: Tensor) -> Tensor:
        share = self.gate(a).softmax(-1)
        out = torch.zeros_like(a)
        for i, expert in enumerate(self.experts):
            out = out + share[..., i : i + 1] * expert(a)
        return out

    return module(run, gate=nn.Linear(16, 4), experts=nn.ModuleList(nn.Linear(16, 16) for _ in range(4))), x(4, 16)


@works
def positions_made_by_hand() -> Made:
    def run(self: Any, words: Tensor) -> Tensor:
        t = torch.arange(words.shape[1], device=words.device)[:, None] * torch.exp(torch.arange(0, 16, 2, device=words.device) * (-math.log(1e4) / 16))
        return self.e(words) + torch.stack([t.sin(), t.cos()], -1).flatten(1)

    return module(run, e=nn.Embedding(50, 16)), ids(2, 12)


# -- what cannot be captured -------------------------------------------------------------------------


@refused("data_dependent")
def branch_on_values() -> Made:
    return module(lambda self, a: self.l(a) if a.sum() > 0 else a, l=nn.Linear(16, 16)), x(4, 16)


@refused("data_dependent")
def chosen_rows() -> Made:
    def run(self: Any, a: Tensor) -> Tensor:
        out = torch.zeros_like(a)
        for i, expert in enumerate(self.experts):
            rows = (a[:, 0] > i).nonzero().squeeze(-1)
            if rows.numel():
                out[rows] = expert(a[rows])
        return out

    return module(run, experts=nn.ModuleList(nn.Linear(16, 16) for _ in range(2))), x(4, 16)


@refused("data_dependent")
def goes_by_way_of_numpy() -> Made:
    return module(lambda self, a: self.l(torch.from_numpy(a.detach().cpu().numpy() * 2)), l=nn.Linear(16, 16)), x(4, 16)


@refused("model_raised")
def raises_itself() -> Made:
    def run(self: Any, a: Tensor) -> Tensor:
        raise ValueError("not today")

    return module(run, l=nn.Linear(16, 16)), x(4, 16)


@refused("example_shapes")
def inputs_of_the_wrong_width() -> Made:
    return nn.Linear(16, 16), x(4, 15)


@refused("operator")
def vmapped_function() -> Made:
    def run(self: Any, a: Tensor) -> Tensor:
        return torch.vmap(lambda row: torch.dot(row, row) * self.l(row))(a)

    return module(run, l=nn.Linear(16, 16)), x(4, 16)


@works
def packed_gru() -> Made:
    def run(self: Any, words: Tensor) -> Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(words, torch.tensor([10, 8, 5, 2]), batch_first=True)
        return self.rnn(packed)[1][-1]

    return module(run, rnn=nn.GRU(32, 64, batch_first=True)), x(4, 10, 32)
