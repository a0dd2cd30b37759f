"""Runs a module once over tensors without memory, under torch.export."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils import _pytree as pytree

from . import hugging_face
from .compat import autocast_on_meta, check_torch, quiet, run_export
from .errors import ExportError, explain
from .held import Held, held_bytes
from .higher import in_plain_words
from .known import constant, followed, is_known, on_cpu, values_mode
from .program import read_program
from .shadow import MODEL_DTYPE, main_dtype, shadow, shadow_tensor
from .values import Program
from .whole import whole_layers

__all__ = ["Inputs", "capture", "take_inputs"]


# -- inputs ------------------------------------------------------------------------------------------


@dataclass
class Inputs:
    """Example inputs taken apart: tensors with names, and how to put them back together."""

    tensors: list[torch.Tensor]
    names: list[str]
    spec: Any
    places: list[int]  # of the tensors among the leaves
    leaves: list[Any]
    padded: bool = False
    warnings: list[str] = field(default_factory=list)
    constants: list[int] = field(default_factory=list)  # places of those whose values the capture follows

    def with_known(self) -> Inputs:
        """The same inputs with whole numbers that are there as constants of the program."""
        kept = [i for i, x in enumerate(self.tensors) if not is_known(x)]
        places = [self.places[i] for i in kept]
        known = [place for place in self.places if place not in places]
        tensors, names = [self.tensors[i] for i in kept], [self.names[i] for i in kept]
        said = ", ".join(name for name in self.names if name not in names)
        notes = [f"the model looks at values: those of the example ({said}) decide what is computed"] if said else []
        return Inputs(tensors, names, self.spec, places, self.leaves, self.padded, self.warnings + notes, known)

    def rebuild(self, tensors: tuple[torch.Tensor, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        leaves = list(self.leaves)
        for place, tensor in zip(self.places, tensors, strict=True):
            leaves[place] = tensor
        for place in self.constants:
            leaves[place] = constant(leaves[place])
        args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        return args, kwargs


def _plain(item: Any) -> Any:
    """Mappings of other packages (a tokenizer's result) as dicts."""
    if isinstance(item, Mapping) and not isinstance(item, dict):
        return {key: _plain(value) for key, value in item.items()}
    return item


def _key_name(path: Any, index: int) -> str:
    words = []
    for key in path[1:]:
        word = getattr(key, "key", getattr(key, "idx", getattr(key, "name", "")))
        words.append(str(word))
    name = ".".join(words)
    return name if name and not name[0].isdigit() else f"input{name or index}".replace(".", "_")


def _hides(name: str, x: torch.Tensor) -> bool:
    """Whether a mask among the example inputs hides anything; one without values is taken to hide nothing."""
    if "mask" not in name or x.is_meta or x.ndim != 2 or type(x) is not torch.Tensor:
        return False
    return bool((x == 0).any().item())


def take_inputs(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Inputs:
    """Flattens example inputs; tensors keep the name of their argument."""
    whole = (tuple(_plain(a) for a in args), {k: _plain(v) for k, v in kwargs.items()})
    with_paths, spec = pytree.tree_flatten_with_path(whole)
    leaves = [leaf for _, leaf in with_paths]
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    names: list[str] = []
    for i in places:
        name = _key_name(with_paths[i][0], i)
        names.append(name if name not in names else f"{name}_{i}")
    tensors = [leaves[i] for i in places]
    padded = any(_hides(name, x) for name, x in zip(names, tensors, strict=True))
    return Inputs(tensors, names, spec, places, leaves, padded)


# -- the step ----------------------------------------------------------------------------------------


class _About:
    """What the step needs beside the model, opaque to torch.export, which compares a module's lists before and after."""

    def __init__(self, inputs: Inputs, task: str, loss: Callable[..., Any] | None, notes: list[str]) -> None:
        self.inputs, self.task, self.loss, self.notes = inputs, task, loss, notes
        self.numbers: list[tuple[torch.nn.Module, str, torch.Tensor]] = []  # buffers whose values the capture follows

    def number_buffers(self, original: torch.nn.Module, copied: torch.nn.Module) -> None:
        """Buffers of whole numbers that have values stand as constants from here on."""
        for name, value in original.named_buffers():
            if is_known(value):
                path, _, last = name.rpartition(".")
                module = copied.get_submodule(path)
                del module._buffers[last]
                module.__dict__[last] = None
                self.numbers.append((module, last, value))
        if self.numbers:
            said = ", ".join(name for _, name, _ in self.numbers[:4])
            self.notes.append(f"the model looks at values: those of its buffers ({said}) decide what is computed")


class _Step(torch.nn.Module):
    """What is captured: the model, and the loss when training."""

    def __init__(self, model: torch.nn.Module, about: _About) -> None:
        super().__init__()
        self.model = model
        self._about = about

    def forward(self, *tensors: torch.Tensor) -> torch.Tensor:
        about = self._about
        args, kwargs = about.inputs.rebuild(tensors)
        for module, name, value in about.numbers:
            module.__dict__[name] = constant(value)
        out = self.model(*args, **kwargs)
        for module, name, _ in about.numbers:  # torch.export compares attributes before and after
            module.__dict__[name] = None
        if about.task != "train":
            return _results(out)
        if about.loss is None:
            return _own_loss(out, about.notes)
        result = about.loss(out)
        if not isinstance(result, torch.Tensor):
            raise ExportError(f"the loss must return a tensor, got {type(result).__name__}", where="loss")
        return result


def _floats(out: Any) -> list[torch.Tensor]:
    leaves = pytree.tree_leaves(out, is_leaf=_is_record)
    made = [y for x in leaves for y in (_floats(list(vars(x).values())) if _is_record(x) else [x])]
    return [x for x in made if isinstance(x, torch.Tensor) and x.is_floating_point()]


def _is_record(x: Any) -> bool:
    return dataclasses.is_dataclass(x) and not isinstance(x, (type, dict))


def _results(out: Any) -> Any:
    logits, loss = getattr(out, "logits", None), getattr(out, "loss", None)
    if isinstance(logits, torch.Tensor):
        return (logits, loss) if isinstance(loss, torch.Tensor) else logits
    found = _floats(out)
    if not found:
        raise ExportError("the model returns no floating-point tensor", where="model")
    return tuple(found)


def _own_loss(out: Any, notes: list[str]) -> torch.Tensor:
    loss = getattr(out, "loss", None)
    if loss is None and isinstance(out, dict):
        loss = out.get("loss")
        if isinstance(out.get("losses"), dict) and loss is None:
            loss = sum(out["losses"].values())
    if isinstance(loss, torch.Tensor):
        return loss
    found = _floats(out)
    if not found:
        raise ExportError("the model returns no floating-point tensor to differentiate", where="model")
    if found[0].ndim == 0:
        return found[0]
    note = "no loss was given: the gradient starts at the sum of the model's first result"
    if note not in notes:
        notes.append(note)
    return found[0].sum()


# -- capturing ---------------------------------------------------------------------------------------


@contextlib.contextmanager
def _checkpoints(found: list[bool]) -> Iterator[None]:
    """Checkpointed regions run as they stand; that there were some is noted."""
    import torch.utils.checkpoint as module

    def plain(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        found.append(True)
        for option in ("use_reentrant", "preserve_rng_state", "context_fn", "determinism_check", "debug", "early_stop"):
            kwargs.pop(option, None)
        return function(*args, **kwargs)

    class Reentrant:
        @staticmethod
        def apply(function: Callable[..., Any], _preserve: bool, *args: Any) -> Any:
            found.append(True)
            return function(*args)

    def generator(function: Callable[..., Any], *_: Any, **__: Any) -> Iterator[None]:
        found.append(True)
        yield

    names = {"checkpoint": plain, "CheckpointFunction": Reentrant, "_checkpoint_without_reentrant_generator": generator}
    before = {name: getattr(module, name) for name in names if hasattr(module, name)}
    try:
        for name in before:
            setattr(module, name, names[name])
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)


def _mixed_devices(error: BaseException) -> bool:
    text = str(error)
    return "device" in text and "meta" in text and ("same device" in text or "Unhandled FakeTensor Device" in text)


def _export(step: torch.nn.Module, tensors: list[torch.Tensor]) -> Any:
    try:
        return run_export(step, tuple(tensors), {})
    except Exception as error:  # noqa: BLE001 - anything a model may raise
        if not _mixed_devices(error):
            raise
        # tensors made without saying where, on the CPU: the model would have to run there
        with torch.device("meta"):
            return run_export(step, tuple(tensors), {})


def _held(step: torch.nn.Module, tensors: list[torch.Tensor]) -> Held | None:
    if any(not x.is_meta for x in [*step.parameters(), *step.buffers(), *tensors]):
        return None
    return held_bytes(lambda: step(*tensors), [*step.parameters(), *step.buffers(), *tensors])


def capture(
    model: torch.nn.Module,
    inputs: Inputs,
    *,
    task: str,
    loss: Callable[..., Any] | None = None,
) -> Program:
    """Runs the model once over tensors without memory and reads what it called; once more, following whole numbers of the
    example, where it looks at values."""
    check_torch()
    if not isinstance(model, torch.nn.Module):
        raise ExportError(f"a torch.nn.Module is needed, got {type(model).__name__}", where="model")
    counted: list[Held] = []
    try:
        return _captured(model, inputs, task, loss, None, counted)
    except ExportError as error:
        if error.code != "data_dependent":
            raise
        try:
            result = _captured(model, inputs.with_known(), task, loss, values_mode(), [])
        except ExportError:
            raise error from error.__cause__
        result.held = result.held or (counted[0] if counted else None)  # tensors beside values are counted nowhere
        return result


def _captured(
    model: torch.nn.Module,
    inputs: Inputs,
    task: str,
    loss: Callable[..., Any] | None,
    values: Any,
    counted: list[Held],
) -> Program:
    """`values`: where tensors without memory live that stand beside constants whose values are followed. `counted` gets
    what an inference pass holds, whether or not it can be captured."""
    notes: list[str] = list(inputs.warnings)
    main = main_dtype(model)
    copied = shadow(model, main, values)
    if copied is None:
        notes.append("the model cannot be copied: it is captured in its own dtype, and its weights are looked at")
    subject = copied if copied is not None else model
    was = [(m, m.training) for m in subject.modules()]
    found: list[bool] = []
    if copied is not None:
        tensors = [shadow_tensor(x.detach(), main) for x in inputs.tensors]
        tensors = [x.to(MODEL_DTYPE) if x.dtype == torch.float32 and x.is_floating_point() else x for x in tensors]
        tensors = [on_cpu(x, values) for x in tensors] if values is not None else tensors
    else:
        tensors = list(inputs.tensors)
    try:
        subject.train(task == "train")
        if getattr(subject, "is_gradient_checkpointing", False):
            found.append(True)
        about = _About(inputs, task, loss, notes)
        if values is not None and copied is not None:
            about.number_buffers(model, copied)
        step = _Step(subject, about)
        step.train(task == "train")
        gradients = torch.enable_grad() if task == "train" else torch.no_grad()
        with contextlib.ExitStack() as stack:
            notes += stack.enter_context(hugging_face.prepared(subject, inputs.padded))
            for each in (_checkpoints(found), whole_layers(), in_plain_words(), quiet(), gradients, autocast_on_meta()):
                stack.enter_context(each)
            held = _held(step, tensors) if task != "train" and copied is not None else None
            counted += [held] if held is not None else []
            if values is not None:
                stack.enter_context(followed())
            program = _export(step, tensors)
        result = read_program(program, subject, prefix="model.", names=inputs.names)
    except Exception as error:  # noqa: BLE001 - anything a model may raise
        raise explain(error) from error
    finally:
        for module, training in was:
            module.training = training
    result.held = held
    result.warnings = notes + result.warnings
    result.checkpointed |= bool(found) and task == "train"
    result.traces_masks = hugging_face.traces_masks(model)
    return result
