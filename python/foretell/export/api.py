"""``export``: any module as a graph that Foretell forecasts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch

from . import hugging_face
from .capture import Inputs, capture, take_inputs
from .document import document, with_sizes
from .errors import ExportError
from .flops import flops_of
from .fold import fold
from .graph import Graph
from .lower import lower
from .progress import progress
from .shadow import MODEL_DTYPE, main_dtype
from .sizes import axes_of, example_sizes, merge, other_sizes, resized
from .values import Program

__all__ = ["export", "graph_of"]

TASKS = ("train", "forward", "memory")


def _arguments(model: Any, example_inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Example inputs as people write them: one tensor, a tuple of arguments, or a mapping of named ones."""
    if isinstance(example_inputs, Mapping):
        return (), {str(k): v for k, v in example_inputs.items()}
    if isinstance(example_inputs, torch.Tensor):
        return (example_inputs,), {}
    if isinstance(example_inputs, (tuple, list)):
        items = tuple(example_inputs)
        if len(items) == 2 and isinstance(items[0], tuple) and isinstance(items[1], dict):
            return items[0], items[1]
        return items, {}
    raise ExportError(
        "example inputs are a tensor, a tuple of arguments or a dictionary of named ones, got "
        f"{type(example_inputs).__name__}",
        code="example_inputs",
        where="example_inputs",
    )


def _named(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional arguments by their names, where the module's forward has names for them."""
    try:
        names = [
            p.name
            for p in inspect.signature(model.forward).parameters.values()
            if p.kind in (p.POSITIONAL_OR_KEYWORD, p.POSITIONAL_ONLY)
        ]
        only = {p.name for p in inspect.signature(model.forward).parameters.values() if p.kind == p.POSITIONAL_ONLY}
    except (TypeError, ValueError):
        return args, kwargs
    if len(args) > len(names) or only or any(name in kwargs for name in names[: len(args)]):
        return args, kwargs
    return (), {**dict(zip(names, args, strict=False)), **kwargs}


def _model_inputs(model: Any, example_inputs: Any, task: str, loss: Any, notes: list[str]) -> Inputs:
    args, kwargs = _named(model, *_arguments(model, example_inputs))
    if hugging_face.is_hugging_face(model):
        if task == "train" and loss is None:
            kwargs = hugging_face.with_labels(model, kwargs, notes)
        if "use_cache" in inspect.signature(model.forward).parameters:
            kwargs.setdefault("use_cache", False)
    inputs = take_inputs(args, kwargs)
    if not inputs.tensors:
        raise ExportError("there is no tensor among the example inputs", code="example_inputs", where="example_inputs")
    return inputs


def graph_of(
    program: Program, *, main: torch.dtype, task: str, name: str, source: str
) -> tuple[dict[str, Any], float, list[str]]:
    """The file's object, its forward FLOPs and warnings."""
    low = lower(program, main=main, training=task == "train")
    if not low.nodes or not low.program.outputs:
        raise ExportError("nothing is computed between the inputs and the result", code="empty", where="model")
    blocks = fold(low.nodes, low.program.outputs, low.learned if low.training else ())
    total = sum(flops_of(node) * block.repeat for block in blocks for node in block.nodes)
    return document(low, blocks, name, source), total, low.warnings


def export(
    model: torch.nn.Module,
    example_inputs: Any,
    *,
    task: str = "train",
    loss: Callable[..., Any] | None = None,
    dynamic: bool | Mapping[str, Mapping[int, str]] = False,
    batch_axis: int | None = 0,
    name: str | None = None,
) -> Graph:
    """Captures what a module runs and gives it as a graph.

    Nothing is computed and no weight is read: the model may be on the meta device, and one with real weights is left
    as it is.

    model
        Any ``torch.nn.Module``. transformers models bring their own loss.
    example_inputs
        A tensor, a tuple of arguments, or a dictionary of named ones; meta tensors will do.
    task
        ``"train"``: forward and loss, from which backward and optimizer are derived, in training mode. ``"forward"``:
        inference.
    loss
        Called with the model's result when training; left out, it is the result's own ``.loss``, the result itself when
        it is a number, or its sum.
    dynamic
        True: the file takes batch and sequence length from the request. Which axes these are is guessed (the first is
        the batch, the second of tokens the sequence; ``batch_axis`` moves it) or given:
        ``{"x": {0: "batch", 1: "seq"}}``.

    >>> import torch
    >>> from foretell.export import export
    >>> model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 64))
    >>> graph = export(model, torch.zeros(8, 64), task="forward")
    >>> graph.parameters, int(graph.flops)
    (33088, 524288)
    >>> [node["op"] for node in graph.to_dict()["blocks"][0]["nodes"]]
    ['linear', 'gelu', 'linear']
    """
    if not isinstance(model, torch.nn.Module):
        raise ExportError(f"a torch.nn.Module is needed, got {type(model).__name__}", code="wrong_type", where="model")
    if task not in TASKS:
        raise ExportError(f'task must be one of {", ".join(TASKS)}, got "{task}"', code="usage", where="task")
    mode = "forward" if task == "forward" else "train"
    notes: list[str] = []
    inputs = _model_inputs(model, example_inputs, mode, loss, notes)
    axes = axes_of(inputs, dynamic, batch_axis)
    sizes = example_sizes(inputs, axes) if dynamic else _sizes_or_none(inputs, axes)
    label = name or type(model).__name__
    source = f"torch {torch.__version__}, {type(model).__module__}.{type(model).__qualname__}"
    main = MODEL_DTYPE
    with progress(f"capturing {label}"):
        program = capture(model, inputs, task=mode, loss=loss)
    if any("cannot be copied" in note for note in program.warnings):
        main = main_dtype(model)
    parameters = sum(p.numel() for p in model.parameters())
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    made, flops, warnings = graph_of(program, main=main, task=mode, name=label, source=source)
    notes += [w for w in [*program.warnings, *warnings] if w not in notes]
    if dynamic:
        if not sizes:
            raise ExportError("none of the inputs has a batch or a sequence axis", code="usage", where="dynamic")
        second = other_sizes(sizes)
        again = capture(model, resized(inputs, axes, second), task=mode, loss=loss)
        other, _, _ = graph_of(again, main=main, task=mode, name=label, source=source)
        made = merge(made, other, sizes, second)
    recompute = "full" if program.checkpointed else "none"
    return Graph(
        document=with_sizes(made, sizes.get("batch"), sizes.get("seq"), recompute, program.traces_masks),
        task=mode,
        parameters=parameters,
        trained_parameters=trained,
        flops=flops,
        batch=sizes.get("batch"),
        seq=sizes.get("seq"),
        dynamic=bool(dynamic),
        recompute=recompute,
        warnings=tuple(notes),
    )


def _sizes_or_none(inputs: Inputs, axes: Any) -> dict[str, int]:
    try:
        return example_sizes(inputs, axes)
    except ExportError:
        return {}
