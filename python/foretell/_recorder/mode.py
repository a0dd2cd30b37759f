"""What listens while a block runs.

A dispatch mode below autograd sees every operator that a device would be asked for, forward, backward and optimizer.
Calls that CUDA fuses (fused.py) must be seen before they decompose: their names in ``torch.nn.functional`` are
replaced for the time of the recording, and a function mode catches those who imported them by name. The mode alone
would not do: PyTorch turns it off inside every function that it is told of, so in ``multi_head_attention_forward``
and in recomputation during ``Tensor.backward``.
"""

from __future__ import annotations

import functools
import threading
import types
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack

from .events import event_of, is_free
from .fused import FUSIBLE, Fused, fused_call
from .live_bytes import LiveBytes

__all__ = ["Log", "recording"]


class Log:
    """Events in order of execution."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.memory = LiveBytes()
        self._lock = threading.Lock()
        self._local = threading.local()
        self._optimizers: list[tuple[str, int]] = []
        self._starts: list[int] = []  # of ranges of sequence numbers
        self._ranges: list[tuple[int, Fused]] = []
        self._told: set[int] = set()
        self._step_start = 0
        self._steps = 0
        self._clock = 0  # places in the order of execution; views that are dropped leave theirs empty

    # -- operators

    def operator(self, func: torch._ops.OpOverload, args: Any, kwargs: Any, results: Any) -> None:
        """An operator that ran."""
        if self.paused or self._inside_fused():
            return  # with what it works in
        backward = torch._C._current_graph_task_id() != -1  # gradients that a fused call left
        for each in (*args, *kwargs.values()):
            self._see(each, fresh=backward)
        self._see(results, fresh=True)
        name = func._schema.name
        if name.startswith("profiler::"):  # marks of record_function
            return
        free = is_free(func, name, results) or self._counts_steps(args)
        if backward and self._part_of_a_gradient(free):
            return
        self._add(name, event_of(name, func._schema, args, kwargs, results), free)

    def fused(self, fused: Fused, results: Any, first: int, last: int) -> None:
        """A call that CUDA runs in one kernel; its backward pass is whatever nodes ``first`` to ``last`` do."""
        self._see(results, fresh=True)
        self._add_fused(fused.forward, fused.forward_args, fused.results)
        if last > first:
            with self._lock:
                at = bisect_right(self._starts, first)
                self._starts.insert(at, first)
                self._ranges.insert(at, (last, fused))

    def _inside_fused(self) -> bool:
        """Whether a backward operator belongs to a call that was told as one; tells of it the first time."""
        if not self._starts or torch._C._current_graph_task_id() == -1:
            return False
        if torch.is_grad_enabled():  # a forward pass that a checkpoint runs once more, whichever node asked for it
            return False
        node = torch._C._current_autograd_node()
        if node is None:
            return False
        number = node._sequence_nr()
        at = bisect_right(self._starts, number) - 1
        if at < 0 or number >= self._ranges[at][0]:
            return False
        start, fused = self._starts[at], self._ranges[at][1]
        if start not in self._told:
            self._told.add(start)
            self._add_fused(fused.backward, fused.backward_args, fused.backward_results)
        return True

    # -- views that are part of something else: what an operator costs the host has those inside that it makes itself

    @contextmanager
    def one_call(self) -> Iterator[None]:
        """One call of PyTorch's that launches something: a linear turns its weight and flattens its input."""
        first = len(self.events)
        try:
            yield
        finally:
            with self._lock:
                if any(each["args"].get("Kernels") for each in self.events[first:]):
                    self._drop_views(first)

    def _drop_views(self, first: int) -> None:
        self.events[first:] = [each for each in self.events[first:] if each["args"].get("Kernels") != 0]

    def _part_of_a_gradient(self, free: bool) -> bool:
        """Whether this is a view of a node of autograd that also launches something; drops those before it."""
        node = torch._C._current_autograd_node()
        if node is None or torch.is_grad_enabled():  # recomputation is a forward pass
            self._local.node = None
            return False
        key = (torch._C._current_graph_task_id(), node.name(), node._sequence_nr())
        known, first, runs = getattr(self._local, "node", None) or (None, 0, False)
        if known != key:
            first, runs = len(self.events), "AccumulateGrad" in node.name()  # that detaches
        if not free and not runs:
            with self._lock:
                self._drop_views(first)
            runs = True
        self._local.node = (key, first, runs)
        return free and runs

    # -- events

    def _add_fused(self, name: str, arguments: dict[str, Any], results: tuple[Any, ...]) -> None:
        schema = getattr(torch.ops.aten, name).default._schema
        known = {each.name for each in schema.arguments}
        said = {key: value for key, value in arguments.items() if key in known}
        self._add(f"aten::{name}", event_of(name, schema, (), said, results), free=False)

    def _add(self, name: str, arguments: dict[str, Any], free: bool) -> None:
        with self._lock:
            place = self._now()
            backward = torch._C._current_graph_task_id() != -1
            phase = "optimizer" if self._optimizers else "backward" if backward else "forward"
            arguments.update({"External id": place + 1, "Phase": phase, "Kernels": 0 if free else 1})
            self.events.append(_event("cpu_op", name, place, 1, 2 if backward else 1, arguments))

    def _now(self) -> int:
        place = self._clock
        self._clock += 1
        return place

    def _counts_steps(self, args: Any) -> bool:
        """Optimizers count steps in tensors of one element that stay on the host."""
        if not self._optimizers or not args:
            return False
        first = args[0] if isinstance(args[0], (list, tuple)) else [args[0]]
        tensors = [each for each in first if isinstance(each, torch.Tensor)]
        return bool(tensors) and all(each.dim() == 0 and each.device.type == "cpu" for each in tensors)

    def _see(self, value: Any, fresh: bool) -> None:
        if isinstance(value, torch.Tensor):
            self.memory.see(value, fresh)
        elif isinstance(value, (list, tuple)):
            for each in value:
                self._see(each, fresh)

    # -- what surrounds them

    @property
    def paused(self) -> bool:
        """Whether this thread is inside a call that is told as one."""
        return getattr(self._local, "paused", 0) > 0

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Operators are not told of."""
        self._local.paused = getattr(self._local, "paused", 0) + 1
        try:
            yield
        finally:
            self._local.paused -= 1

    def module(self, module: torch.nn.Module, *_: Any) -> None:
        """A hook of PyTorch's: calling a module costs the host time of its own."""
        if not self.paused:
            with self._lock:
                name = f"nn.Module: {type(module).__name__}"
                self.events.append(_event("python_function", name, self._now(), 1, 1, {}))

    def step(self) -> None:
        """The end of a training step."""
        place = self._now()
        start, self._step_start = self._step_start, place
        self.events.append(
            _event("user_annotation", f"ProfilerStep#{self._steps}", start, max(1, 2 * (place - start)), 1, {})
        )
        self._steps += 1

    def optimizer_starts(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        """A hook of PyTorch's."""
        self._optimizers.append((type(optimizer).__name__, self._now()))

    def optimizer_ends(self, *_: Any) -> None:
        """A hook of PyTorch's."""
        if self._optimizers:
            name, start = self._optimizers.pop()
            self.events.append(
                _event("user_annotation", f"Optimizer.step#{name}.step", start, 2 * (self._now() - start), 1, {})
            )


def _event(
    category: str, name: str, place: int, duration: int, thread: int, arguments: dict[str, Any]
) -> dict[str, Any]:
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": 1,
        "tid": thread,
        "ts": 2 * place,
        "dur": duration,
        "args": arguments,
    }


class _Below(TorchDispatchMode):
    def __init__(self, log: Log) -> None:
        super().__init__()
        self.log = log

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        results = func(*args, **(kwargs or {}))
        self.log.operator(func, args, kwargs or {}, results)
        return results


_BUILTIN = (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)


def _sequence_nr() -> int:
    """How many nodes autograd has made so far; PyTorch has no public name for it."""
    count: int = getattr(torch.autograd, "_get_sequence_nr")()  # noqa: B009 - hidden from type checkers
    return count


def _called(log: Log, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Calls a function, and tells of it as one kernel if it is one."""
    plan = None if log.paused else fused_call(func, args, kwargs)
    if plan is None:
        if log.paused or not isinstance(func, _BUILTIN):  # a Python function is many calls
            return func(*args, **kwargs)
        with log.one_call():
            return func(*args, **kwargs)
    first = _sequence_nr()
    results = None
    try:
        with log.pause():
            args, kwargs = plan.arguments(args, kwargs)
            results = plan.result(func(*args, **kwargs))
    finally:  # a checkpoint stops its second forward pass by an exception, once the last kernel it needs has run
        log.fused(plan.fused, results, first, _sequence_nr())
    return results


class _Above(TorchFunctionMode):
    def __init__(self, log: Log) -> None:
        super().__init__()
        self.log = log

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _called(self.log, func, args, kwargs or {})


@contextmanager
def _renamed(log: Log, mode: _Below) -> Iterator[None]:
    """``torch.nn.functional`` with its fusible calls listening; other threads than the recorded ones are left alone."""

    def listening(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if mode not in _get_current_dispatch_mode_stack():
                return function(*args, **kwargs)
            return _called(log, function, args, kwargs)

        return call

    with ExitStack() as inside:
        for name in FUSIBLE:
            if hasattr(F, name):
                inside.enter_context(mock.patch.object(F, name, listening(getattr(F, name))))
        yield


@contextmanager
def _optimizers_as_on_cuda() -> Iterator[None]:
    """Optimizers and gradient clipping choose their multi-tensor form by device, and refuse ``fused=True`` where the
    device has no such kernel: let them choose as on CUDA."""
    import torch.optim.optimizer as optimizers
    import torch.utils._foreach_utils as utilities

    def also(name: str, *devices: str) -> Callable[[], list[str]]:
        known = getattr(utilities, name)
        return lambda: [*known(), *(each for each in devices if each not in known())]

    foreach, fused = "_get_foreach_kernels_supported_devices", "_get_fused_kernels_supported_devices"
    with ExitStack() as inside:
        for name, devices in ((foreach, ("cpu", "meta")), (fused, ("meta",))):
            every = also(name, *devices)
            for module in (optimizers, utilities):
                if hasattr(module, name):
                    inside.enter_context(mock.patch.object(module, name, every))
        yield


@contextmanager
def recording(log: Log) -> Iterator[None]:
    """Everything that runs inside goes into the log."""
    from torch.nn.modules.module import register_module_forward_pre_hook
    from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

    with ExitStack() as inside:
        inside.enter_context(_optimizers_as_on_cuda())
        inside.callback(register_module_forward_pre_hook(log.module).remove)
        inside.callback(register_optimizer_step_pre_hook(log.optimizer_starts).remove)
        inside.callback(register_optimizer_step_post_hook(log.optimizer_ends).remove)
        below = _Below(log)
        inside.enter_context(_renamed(log, below))
        inside.enter_context(_Above(log))
        inside.enter_context(below)
        yield
