"""Functions of PyTorch that a capture falls over: answered as a GPU runs them, or refused in a sentence.

Packed sequences want their sizes on a real device, the CTC loss sizes of data, Fourier transforms a format that the shadow does
not have. Branches on values, gradients inside a forward pass and nested tensors cannot be followed: what PyTorch raises deep
inside says nothing to the author of a model.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.utils.rnn import PackedSequence
from torch.overrides import TorchFunctionMode

from . import operators
from .errors import ExportError
from .nodes import Lowering
from .registry import rule
from .values import Call

__all__ = ["STAND_INS", "InItsOwnWay", "packed", "refuse", "unpacked"]

_WHY = {
    "cond": "torch.cond chooses by a tensor's values: which branch runs is known only when the model runs; export each branch by itself",
    "while_loop": "while_loop goes on as long as a tensor's values say: how often is known only when the model runs",
    "grad": "gradients that a model takes of itself in its forward pass (torch.autograd.grad, torch.func) cannot be captured",
    "nested": "nested tensors have no shape of their own and cannot be captured; padded, the model can be read",
}


def refuse(what: str) -> None:
    code = "control_flow" if what in ("cond", "while_loop") else "operator"
    raise ExportError(_WHY[what], code=code, where="")


def _no_cond(pred, true_fn, false_fn, operands=()):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    from foretell.export.elsewhere import refuse

    if isinstance(pred, bool):
        return (true_fn if pred else false_fn)(*operands)
    return refuse("cond")


def _no_loop(cond_fn, body_fn, carried_inputs):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    from foretell.export.elsewhere import refuse

    return refuse("while_loop")


def _no_gradient(*args, **more):  # type: ignore[no-untyped-def]  # noqa: ANN002, ANN003, ANN202
    from foretell.export.elsewhere import refuse

    return refuse("grad")


def _not_nested(*args, **more):  # type: ignore[no-untyped-def]  # noqa: ANN002, ANN003, ANN202
    from foretell.export.elsewhere import refuse

    return refuse("nested")


# -- packed sequences --------------------------------------------------------------------------------


def packed(x: torch.Tensor, lengths: Any, batch_first: bool) -> PackedSequence:
    """Rows of all steps below each other. Lengths that the code says, or that the capture follows, leave out what is padded."""
    steps = x.transpose(0, 1) if batch_first else x
    rows = steps.shape[0] * steps.shape[1]
    said = lengths.tolist() if isinstance(lengths, torch.Tensor) else list(lengths)
    try:
        rows = min(rows, sum(int(length) for length in said))
    except Exception as error:
        raise ExportError("lengths of packed sequences decide what is computed: give them with their values", code="data_dependent") from error
    sizes = [sum(int(length) > step for length in said) for step in range(max((int(n) for n in said), default=0))]
    data = steps.reshape(-1, *steps.shape[2:])[:rows].contiguous()
    return PackedSequence(data, torch.tensor(sizes, dtype=torch.long, device="cpu"))


def unpacked(sequence: PackedSequence, batch_first: bool, value: float, total: int | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Back into a padded tensor: one kernel that fills and one that copies."""
    sizes = [int(n) for n in sequence.batch_sizes.tolist()]
    steps, batch = max(len(sizes), total or 0), sizes[0]
    data = sequence.data
    made = data.new_full((steps * batch, *data.shape[1:]), value)
    made[: data.shape[0]] = data
    made = made.reshape(steps, batch, *data.shape[1:])
    lengths = torch.tensor([sum(n > i for n in sizes) for i in range(batch)], dtype=torch.long, device="cpu")
    return (made.transpose(0, 1) if batch_first else made), lengths


def _pack(input, lengths, batch_first=False, enforce_sorted=True):  # type: ignore[no-untyped-def]  # noqa: A002, ANN001, ANN202
    from foretell.export.elsewhere import packed

    return packed(input, lengths, batch_first)


def _unpack(sequence, batch_first=False, padding_value=0.0, total_length=None):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    from foretell.export.elsewhere import unpacked

    return unpacked(sequence, batch_first, padding_value, total_length)


# -- losses and spectra ------------------------------------------------------------------------------


def _ctc(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    from foretell.export import operators

    losses = operators.ctc_loss(log_probs, targets)
    return losses if reduction == "none" else losses.sum() if reduction == "sum" else losses.mean()


@rule("ctc_loss")
def _ctc_rule(low: Lowering, call: Call) -> None:
    """One kernel walks the table of targets by steps; it reads the scores and writes the table (fp32)."""
    scores, targets = low.now(call.args[0]), low.now(call.args[1])
    if call.namespace == "aten":
        raise ValueError("called with sizes that are data")
    steps, batch = scores.shape[0], scores.shape[1] if len(scores.shape) == 3 else 1
    table = 4 * steps * batch * (2 * max(1, targets.numel // batch) + 1)
    low.emit("ctc_loss", [scores, targets], call.out, {"bytes": int(scores.bytes + table), "shape": list(call.out.shape) or [1]})


_COMPLEX = ("complex", "view_as_complex", "polar")


class InItsOwnWay(TorchFunctionMode):
    """Fourier transforms and complex numbers know no bf16, which the shadow computes in: models that use them do so in fp32.
    ``.data`` reads a tensor without its history, which a capture would lose sight of; what is put there is a pointer."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name.startswith("fft_") or name in _COMPLEX:
            half = (torch.bfloat16, torch.float16)
            args = tuple(x.float() if isinstance(x, torch.Tensor) and x.dtype in half else x for x in args)
        elif getattr(func, "__self__", None) is torch.Tensor.data:
            return args[0].detach() if name == "__get__" else None
        return func(*args, **(kwargs or {}))


_TRANSFORMS = ("vjp", "jvp", "jacrev", "jacfwd", "hessian")
STAND_INS = (
    ("torch._higher_order_ops.cond", "cond", _no_cond),
    ("torch._higher_order_ops.while_loop", "while_loop", _no_loop),
    ("torch.autograd", "grad", _no_gradient),
    ("torch._functorch.apis", "grad", _no_gradient),
    ("torch._functorch.apis", "grad_and_value", _no_gradient),
    *(("torch._functorch.eager_transforms", name, _no_gradient) for name in _TRANSFORMS),
    *(("torch.nested", name, _not_nested) for name in ("nested_tensor", "as_nested_tensor", "nested_tensor_from_jagged")),
    ("torch.nn.utils.rnn", "pack_padded_sequence", _pack),
    ("torch.nn.utils.rnn", "pad_packed_sequence", _unpack),
    ("torch.nn.functional", "ctc_loss", _ctc),
)
