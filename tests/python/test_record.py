"""Recording: every operator of a step, told as CUDA would run it, and the step computes what it always did."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
import torch.nn.functional as F
from recording import BATCH, HEADS, HIDDEN, LENGTH, Layer, _phases, _recorded, _step

import foretell


pytestmark = pytest.mark.old_torch


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_what_cuda_would_run(device: str) -> None:
    phases = _phases(_recorded(_step(device, torch.bfloat16)))
    assert phases["forward"]["_scaled_dot_product_flash_attention"] == 3
    assert phases["backward"]["_scaled_dot_product_flash_attention_backward"] == 3
    assert phases["forward"]["native_dropout"] == phases["backward"]["native_dropout_backward"] == 3
    assert phases["forward"]["addmm"] == 6 and phases["backward"]["mm"] == 12
    assert phases["forward"]["native_layer_norm"] == phases["backward"]["native_layer_norm_backward"] == 3
    # None of the parts that only other devices have.
    everything = phases["forward"] + phases["backward"]
    assert not [
        each for each in everything if "for_cpu" in each or each in ("bmm", "_softmax", "bernoulli_", "baddbmm")
    ]
    # Multi-tensor updates and clipping, a handful for all parameters.
    assert phases["optimizer"]["_foreach_lerp_"] == 1 and phases["forward"]["_foreach_norm"] == 1
    assert not [each for each in phases["optimizer"] if each in ("lerp_", "addcdiv_", "addcmul_")]


def test_meta_and_cpu_agree() -> None:
    cpu, meta = (_recorded(_step(device, torch.bfloat16)) for device in ("cpu", "meta"))
    differ = (cpu.operators - meta.operators) + (meta.operators - cpu.operators)
    assert sum(differ.values()) <= 2, differ
    assert meta.peak_bytes == pytest.approx(cpu.peak_bytes, rel=0.1)


@pytest.mark.parametrize(
    ("dtype", "masked", "name"),
    [
        (torch.bfloat16, False, "flash"),
        (torch.float16, False, "flash"),
        (torch.float32, False, "efficient"),
        (torch.bfloat16, True, "efficient"),
    ],
)
def test_which_attention(dtype: torch.dtype, masked: bool, name: str) -> None:
    operators = _recorded(_step("meta", dtype, masked=masked)).operators
    assert operators[f"aten::_scaled_dot_product_{name}_attention"] == 3
    assert operators[f"aten::_scaled_dot_product_{name}_attention_backward"] == 3


def test_without_gradients_there_is_no_backward() -> None:
    model = Layer(0.0).eval()
    with torch.no_grad():
        phases = _phases(_recorded(lambda: model(torch.zeros(BATCH, LENGTH, HIDDEN))))
    assert phases["forward"]["_scaled_dot_product_efficient_attention"] == 1 and not phases["backward"]


def test_the_step_computes_what_it_computes() -> None:
    """Parameters after a recorded step are bit for bit those after a step alone, without dropout's chance."""
    alone = _step("cpu", torch.float32, dropout=0.0)()
    kept: list[torch.Tensor] = []
    _recorded(lambda: kept.append(_step("cpu", torch.float32, dropout=0.0)()))
    assert torch.allclose(alone, kept[0], rtol=1e-5, atol=1e-6)


def test_nothing_is_left_behind() -> None:
    import torch.optim.optimizer as optimizers

    before = optimizers._get_foreach_kernels_supported_devices()
    recording = _recorded(_step("cpu", torch.float32))
    count = len(recording.events)
    _step("cpu", torch.float32)()
    assert len(recording.events) == count
    assert optimizers._get_foreach_kernels_supported_devices() == before
    with pytest.raises(ZeroDivisionError), foretell.record(gpu="h100_sxm") as broken:
        1 / 0
    assert optimizers._get_foreach_kernels_supported_devices() == before
    with pytest.raises(foretell.Error, match="raised an exception"):
        broken.answer


def test_events_are_those_of_a_profile() -> None:
    """Names, dimensions, types and strides as torch.profiler writes them for the same call."""
    a, b = torch.randn(8, 16), torch.randn(4, 16)
    bias = torch.randn(4)

    def work() -> None:
        torch.addmm(bias, a, b.t(), beta=1, alpha=1)
        torch.cat([a, a], dim=1)

    recording = _recorded(work)
    with torch.profiler.profile(record_shapes=True, activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        work()
    ours = {each["name"]: each["args"] for each in recording.events if each["cat"] == "cpu_op"}
    theirs = {each.name: each for each in profile.events()}
    assert ours["aten::addmm"]["Input Dims"][:3] == [list(each) for each in theirs["aten::addmm"].input_shapes[:3]]
    assert ours["aten::addmm"]["Input type"] == ["float", "float", "float", "Scalar", "Scalar"]
    assert ours["aten::addmm"]["Input Strides"] == [[1], [16, 1], [1, 16], [], []]
    assert ours["aten::addmm"]["Concrete Inputs"] == ["", "", "", "1", "1"]
    assert ours["aten::cat"]["Input Dims"][0] == [[8, 16], [8, 16]]
    assert ours["aten::cat"]["Input type"][0] == "TensorList<float>"  # a profile's kernels say the format
    assert ours["aten::cat"]["Output Dims"] == [[8, 32]]
    assert ours["aten::t"]["Kernels"] == 0 and ours["aten::addmm"]["Kernels"] == 1


def test_a_cast_says_to_what() -> None:
    """As a profile does, by the number of the format: a copy to fp32 writes twice what it reads."""

    def copied(dtype: torch.dtype) -> foretell.Recording:
        x = torch.empty(1 << 28, dtype=torch.bfloat16, device="meta")
        return _recorded(lambda: x.to(dtype, copy=True))

    same, wide = copied(torch.bfloat16), copied(torch.float32)
    (event,) = (each for each in wide.events if each["name"] == "aten::_to_copy")
    assert event["args"]["Concrete Inputs"][1] == "6"
    assert wide.answer.forecasts[0].busy_ms > 1.3 * same.answer.forecasts[0].busy_ms


def test_views_inside_a_call_are_part_of_it() -> None:
    """A linear turns its weight and flattens its input, forward and backward; views that were asked for stay."""
    linear = torch.nn.Linear(HIDDEN, HIDDEN, device="meta")
    x = torch.empty(BATCH, LENGTH, HIDDEN, device="meta")
    recording = _recorded(lambda: linear(x).view(-1, HIDDEN).transpose(0, 1).sum().backward())
    forward = [each["name"] for each in recording.events if each["args"].get("Phase") == "forward"]
    assert forward[:3] == ["aten::addmm", "aten::view", "aten::transpose"]
    backward = Counter(each["name"] for each in recording.events if each["args"].get("Phase") == "backward")
    assert backward["aten::mm"] == 1 and backward["aten::t"] <= 1 and not backward["aten::detach"]
    times = [each["ts"] for each in recording.events if each["cat"] == "cpu_op"]
    assert times == sorted(set(times))


def test_fused_optimizers_of_meta_tensors() -> None:
    """PyTorch refuses them there; a recording runs them as CUDA would."""
    model = torch.nn.Linear(1024, 1024, device="meta", dtype=torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)

    def step() -> None:
        model(torch.empty(8, 1024, device="meta", dtype=torch.bfloat16)).sum().backward()
        optimizer.step()

    recording = _recorded(step)
    assert recording.operators["aten::_fused_adamw_"] == 1
    with pytest.raises(RuntimeError, match="fused=True"):
        torch.optim.AdamW(model.parameters(), fused=True).step()
    assert recording.answer.step_ms > 0


def test_checkpointing_is_recorded_twice() -> None:
    """Recomputation runs in the backward pass, attention and all."""
    from torch.utils.checkpoint import checkpoint

    layer = Layer(0.0)
    x = torch.randn(BATCH, LENGTH, HIDDEN, requires_grad=True)
    phases = _phases(_recorded(lambda: checkpoint(layer, x, use_reentrant=False).sum().backward()))
    assert phases["forward"]["_scaled_dot_product_efficient_attention"] == 1
    assert phases["backward"]["_scaled_dot_product_efficient_attention"] == 1
    assert phases["backward"]["_scaled_dot_product_efficient_attention_backward"] == 1
    assert phases["backward"]["addmm"] == 1  # the last one's result is not needed again


def test_recomputation_asked_for_by_a_fused_kernel() -> None:
    """The block ends with dropout, whose gradient is the first to miss what was not kept."""
    from torch.utils.checkpoint import checkpoint

    layer = torch.nn.Sequential(torch.nn.Linear(HIDDEN, HIDDEN), torch.nn.ReLU(), torch.nn.Dropout(0.5))
    x = torch.randn(BATCH, HIDDEN, requires_grad=True)
    phases = _phases(_recorded(lambda: checkpoint(layer, x, use_reentrant=False).sum().backward()))
    assert phases["forward"]["addmm"] == phases["backward"]["addmm"] == 1
    assert phases["backward"]["relu"] == 1 and phases["backward"]["native_dropout_backward"] == 1
    assert phases["backward"]["native_dropout"] == 1


def test_attention_inside_pytorch_s_own_modules() -> None:
    module = torch.nn.MultiheadAttention(HIDDEN, HEADS, dropout=0.1, batch_first=True).bfloat16()
    x = torch.zeros(BATCH, LENGTH, HIDDEN, dtype=torch.bfloat16)
    operators = _recorded(lambda: module(x, x, x, need_weights=False)[0].sum().backward()).operators
    assert operators["aten::_scaled_dot_product_flash_attention"] == 1
    assert operators["aten::_scaled_dot_product_flash_attention_backward"] == 1


def test_attention_leaves_its_layout() -> None:
    """CUDA's kernels write heads side by side: joining them afterwards, and their gradients, copies nothing."""
    phases = _phases(_recorded(_step("meta", torch.bfloat16)))
    assert phases["forward"]["clone"] == 0 and phases["backward"]["clone"] == 0


def test_rms_norm_is_one_kernel_where_cuda_has_it() -> None:
    norm = torch.nn.RMSNorm(HIDDEN)
    x = torch.zeros(BATCH, HIDDEN, requires_grad=True)
    operators = _recorded(lambda: norm(x).sum().backward()).operators
    if hasattr(torch.ops.aten, "_fused_rms_norm_backward"):
        assert operators["aten::_fused_rms_norm"] == operators["aten::_fused_rms_norm_backward"] == 1
        assert not operators["aten::rsqrt"]
    else:
        assert operators["aten::rsqrt"] == 1


def test_names_imported_before() -> None:
    attend = F.scaled_dot_product_attention
    q = torch.zeros(1, 2, 8, 16, dtype=torch.bfloat16, requires_grad=True)
    operators = _recorded(lambda: attend(q, q, q).sum().backward()).operators
    assert operators["aten::_scaled_dot_product_flash_attention_backward"] == 1
    assert F.scaled_dot_product_attention is attend


def test_other_threads_are_left_alone() -> None:
    import threading

    def elsewhere() -> None:
        F.dropout(torch.ones(4), 0.5)

    with foretell.record(gpu="h100_sxm") as recording:
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert not recording.events


def test_peak_memory() -> None:
    """Weights, their gradients, Adam's two states, activations: counted by storage, views once."""
    width = 1024
    model = torch.nn.Linear(width, width, bias=False, device="meta")
    optimizer = torch.optim.AdamW(model.parameters())

    def step() -> None:
        x = torch.empty(width, width, device="meta")
        model(x.view(width, width)).sum().backward()
        optimizer.step()

    matrix = 4 * width * width
    assert (
        5 * matrix <= _recorded(step).peak_bytes <= 7 * matrix
    )  # x, weights, gradient, two states, one temporary or two


def test_a_hugging_face_model() -> None:
    import transformers

    config = transformers.GPT2Config(n_layer=2, n_embd=128, n_head=2, vocab_size=1024)
    with torch.device("meta"):
        model = transformers.GPT2LMHeadModel(config).to(torch.bfloat16)
        tokens = torch.zeros(2, 64, dtype=torch.long)
    optimizer = torch.optim.AdamW(model.parameters())

    def step() -> None:
        model(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()

    operators = _recorded(step).operators
    assert operators["aten::addmm"] == 4 * 2 and operators["aten::_scaled_dot_product_flash_attention"] == 2
    assert operators["aten::native_dropout_backward"] == 5
