"""The exporter on parts of tensors that are written, and on what is asked of masks and sizes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from exporting import forecast, nodes

from foretell.export import ExportError, export

B, S, W = 8, 512, 256


def _backward(graph: Any, op: str, least: float = 0) -> int:
    """How often an operator runs going back over at least so many bytes."""
    answer = forecast(graph, detail="kernels", execution="eager")
    back = [k for k in answer["kernels"] if k["phase"] == "backward" and k["op"] == op and k["bytes"] >= 0.999 * least]  # printed to six digits
    return int(sum(k["count"] for k in back))


class Assembled(nn.Module):
    """Two products written into halves of one tensor: directly, or by a view of a view of it."""

    def __init__(self, deep: bool) -> None:
        super().__init__()
        self.deep = deep
        self.a, self.b, self.out = nn.Linear(W, W), nn.Linear(W, W), nn.Linear(W, W)

    def forward(self, x: Tensor) -> Tensor:
        whole = x.new_zeros(B, 2 * S, W)
        for at, layer in ((0, self.a), (S, self.b)):
            part = whole.view(B * 2, S, W)[:, :, :] if self.deep else whole
            if self.deep:
                part[at // S :: 2][:, :, :] = layer(x)
            else:
                part[:, at : at + S] = layer(x)
        return self.out(whole)


@pytest.mark.parametrize("deep", [False, True])
def test_what_is_written_into_a_slice_has_its_gradient(deep: bool) -> None:
    graph = export(Assembled(deep), torch.zeros(B, S, W), loss=lambda out: out.float().mean())
    written = nodes(graph, "scatter")
    assert len(written) == 2 and all(node["in_place"] and node["part"] for node in written)
    assert written[1]["in"][0] == written[0]["out"]  # one after the other into the same tensor
    assert _backward(graph, "linear") == 4  # of three weights, and of what the last product reads; x has none
    whole, half = 2 * 2 * B * 2 * S * W, 2 * 2 * B * S * W  # bytes read and written
    assert _backward(graph, "copy", whole) == 2  # each write copies the gradient of it all,
    assert _backward(graph, "copy", half) >= 4  # and its own part once more
    assert _backward(graph, "fill", half / 2) == 1  # zeros go back only where something was written before


def test_writing_a_slice_reads_no_indices() -> None:
    class Fill(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            whole = torch.zeros_like(x)
            whole[..., : W // 2] = y
            return whole + x

    graph = export(Fill(), (torch.zeros(B, S, W), torch.zeros(B, S, W // 2)), task="forward")
    (kernel,) = (k for k in forecast(graph, detail="kernels")["kernels"] if k["op"] == "copy")
    assert kernel["bytes"] == pytest.approx(2 * 2 * B * S * W // 2, rel=1e-4)


@pytest.mark.parametrize("turned", [False, True])
def test_fused_attention_reads_a_bias_that_lies_in_order(turned: bool) -> None:
    class Biased(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bias = nn.Parameter(torch.zeros(S, S, 4) if turned else torch.zeros(4, S, 2 * S))

        def forward(self, x: Tensor) -> Tensor:
            q = x.view(B, S, 4, W // 4).transpose(1, 2)
            bias = self.bias.permute(2, 0, 1) if turned else self.bias.view(4, 2 * S, S)[:, :S].unflatten(1, (S // 2, 2)).flatten(1, 2) * 2
            return F.scaled_dot_product_attention(q, q, q, attn_mask=bias.expand(B, 4, S, S)).transpose(1, 2).flatten(2)

    graph = export(Biased(), torch.zeros(B, S, W), task="forward")
    (node,) = nodes(graph, "attention")
    assert node.get("mask_in_order", False) is not turned
    ran = {k["op"] for k in forecast(graph, detail="kernels", attention="sdpa")["kernels"]}
    assert ("attention" in ran) is not turned and ("softmax" in ran) is turned


@pytest.mark.parametrize("first", [0, 1])
def test_tokens_behind_another_become_pictures_with_gaps_whose_channels_lie_last(first: int) -> None:
    """Two filters per channel, which cuDNN runs channel by channel where channels lie last."""

    class Pool(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.before, self.conv = nn.Linear(W, W), nn.Conv2d(W, 2 * W, 3, 2, 1, groups=W)

        def forward(self, x: Tensor) -> Tensor:
            x = self.before(x)[:, first:]
            return self.conv(x.transpose(1, 2).reshape(B, W, 16, 16))

    graph = export(Pool(), torch.zeros(B, 256 + first, W), task="forward")
    kernels = {k["op"]: k for k in forecast(graph, detail="kernels", execution="eager")["kernels"]}
    assert ("copy" in kernels) is (first == 1)  # what has gaps is copied together first
    assert kernels["conv2d"]["ms"] > 1e-3 * W  # more than a microsecond for each channel


def test_attention_of_ones_own_shape_passes_over_what_is_hidden() -> None:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    class Near(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            q = x.view(1, 8192, 4, W // 4).transpose(1, 2)
            mask = create_block_mask(lambda b, h, i, j: (i >= j) & (i - j < 256), None, None, 8192, 8192, device=x.device)
            return flex_attention(q, q, q, block_mask=mask)

    graph = export(Near(), torch.zeros(1, 8192, W), task="forward")
    (node,) = nodes(graph, "attention")
    assert node["backend"] == "flash" and node["window"] == 256 and node["causal"]
    took = {}
    for attention in ("sdpa", "flash"):  # of other attention; this one is its own
        (kernel,) = (k for k in forecast(graph, detail="kernels", attention=attention)["kernels"] if k["op"] == "attention")
        took[attention] = kernel["flops"]
    assert took["sdpa"] == took["flash"] < 4 * 4 * 8192 * 8192 / 2 * W / 4 / 8


def test_scores_that_no_fused_kernel_takes_are_held() -> None:
    class Turned(nn.Module):
        def __init__(self, turned: bool) -> None:
            super().__init__()
            self.turned, self.bias = turned, nn.Parameter(torch.zeros((S, S, 4) if turned else (4, S, S)))

        def forward(self, x: Tensor) -> Tensor:
            q = x.view(B, S, 4, W // 4).transpose(1, 2)
            bias = self.bias.permute(2, 0, 1) if self.turned else self.bias
            return F.scaled_dot_product_attention(q, q, q, attn_mask=bias)

    taken, apart = (export(Turned(turned), torch.zeros(B, S, W), task="forward") for turned in (False, True))
    scores = 4 * B * 4 * S * S  # in fp32: as they are, and their softmax
    assert apart.to_dict()["held_bytes"] - taken.to_dict()["held_bytes"] > 2 * scores


def test_a_size_that_was_a_value_is_said_to_be_one() -> None:
    class Cut(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            n = int(x.abs().max().item())
            return x[:, :n].contiguous().view(-1) * 2

    with pytest.raises(ExportError) as caught:
        export(Cut(), torch.zeros(B, S), task="forward")
    assert caught.value.code == "data_dependent" and "unbacked" not in str(caught.value)
