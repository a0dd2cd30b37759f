"""One training step between CUDA events: what the scripts that time whole steps share."""
from __future__ import annotations

import typing

import torch


def timed_step(forward: typing.Callable[[], torch.Tensor], optimizer: torch.optim.Optimizer) -> list[float]:
    """Milliseconds of the step, of its forward pass, of its backward pass and of its update."""
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(4)]
    marks[0].record()
    loss = forward()
    marks[1].record()
    loss.backward()
    marks[2].record()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    marks[3].record()
    torch.cuda.synchronize()
    return [marks[0].elapsed_time(marks[3])] + [marks[i].elapsed_time(marks[i + 1]) for i in range(3)]
