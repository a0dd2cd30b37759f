"""The questions that ask several times: infer, plan, largest, scale, sweep, compare, what is known. Serving: serving.py."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from ._model import model_document
from ._request import request_of, request_with
from .answers import (
    Answer,
    Choice,
    Collection,
    Comparison,
    Gpu,
    Infer,
    Largest,
    Model,
    Plan,
    Scale,
    Step,
)
from .api import _KINDS, _answered, _settings
from .errors import Error

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._keys import ChooseRequest, InferRequest, LargestRequest, PlanRequest, ScaleRequest

__all__ = ["choose", "compare", "gpus", "infer", "largest", "models", "plan", "scale", "sweep"]

_T = TypeVar("_T", bound=Answer)


def _ask(
    kind: type[_T], predictor: str | os.PathLike[str] | None, calibration: str | os.PathLike[str] | None, **said: Any
) -> _T:
    """The answer to a request of these keywords."""
    answer = _answered(request_of(**said), _settings(predictor, calibration))
    assert isinstance(answer, kind)
    return answer


def infer(
    model: Any,
    *,
    gpu: Any,
    dtype: Any = "bf16",
    batch: int | Sequence[int] | None = None,
    seq: int | Sequence[int] | None = None,
    isl: int | None = None,
    osl: int | None = None,
    predictor: str | os.PathLike[str] | None = None,
    calibration: str | os.PathLike[str] | None = None,
    **request: Unpack[InferRequest],
) -> Infer:
    """Prefill and decoding over batches and context lengths, what the cache holds, and offline throughput.

    With ``isl`` and ``osl`` (tokens of a prompt and of its answer) throughput is forecast too. A model that generates
    nothing is forecast as forward passes. Models are given as for :func:`forecast`, but a module must have a config:
    decoding is not in a captured graph.

    >>> import foretell
    >>> answer = foretell.infer("resnet50", gpu="h100_sxm", batch=[1, 64])
    >>> [cell.batch for cell in answer.forward]
    [1, 64]
    """
    document = model_document(model, task="forward")
    sides = {key: _listed(value) for key, value in (("batch", batch), ("seq", seq))}
    asked = request_of(task="infer", model=document, gpu=gpu, dtype=dtype, **sides, isl=isl, osl=osl, **request)
    answer = _answered(asked, _settings(predictor, calibration))
    assert isinstance(answer, Infer)
    if not isinstance(document, Mapping):
        return answer
    name = document.get("name") or document.get("_name_or_path") or document.get("model_type") or "model"
    return Infer.from_dict({**answer.raw, "model": str(name)}, request=asked)


def largest(
    *,
    gpu: Any,
    gpus: int = 1,
    family: str = "llama",
    use: str = "train",
    tokens: float | None = None,
    predictor: str | os.PathLike[str] | None = None,
    calibration: str | os.PathLike[str] | None = None,
    **request: Unpack[LargestRequest],
) -> Largest:
    """The largest model of a family, ``llama`` or ``gpt``, that trains or (``use="infer"``) serves there.

    Several GPUs train as with FSDP and serve with tensor parallelism. Other keys are those of a training step: ``dtype``,
    ``batch``, ``seq``, ``recompute``, ``optimizer`` …

    >>> import foretell
    >>> one, four = (foretell.largest(gpu="h100_sxm", gpus=gpus) for gpus in (1, 4))
    >>> 3e9 < one.parameters < four.parameters
    True
    """
    return _ask(
        Largest, predictor, calibration, task="largest", gpu=gpu, gpus=gpus, family=family, use=use, tokens=tokens, **request
    )


def choose(
    model: Any,
    *,
    tokens: float,
    gpus: Any = None,
    gpu: Any = None,
    dtype: Any = "bf16",
    predictor: str | os.PathLike[str] | None = None,
    calibration: str | os.PathLike[str] | None = None,
    **request: Unpack[ChooseRequest],
) -> Choice:
    """Which GPUs a training run of this many tokens should rent, and how many: days, dollars, energy, and why others lose.

    ``gpus`` is a number, a list or a range, ``"8:512"``; ``deadline``, ``budget``, ``price``, ``provider``, ``failures``,
    ``objective`` and every key of a plan are keywords too.

    >>> import foretell
    >>> answer = foretell.choose("llama-3-8b", tokens=1e11, gpus=[8, 16], gpu="h100_sxm", price={"h100_sxm": 2.0}, failures="none")
    >>> answer.chosen["gpus"] in (8, 16), answer.chosen["verdict"]
    (True, 'chosen')
    """
    document = model_document(model, task="train")
    return _ask(
        Choice, predictor, calibration, task="choose", model=document, gpu=gpu, dtype=dtype, gpus=gpus, tokens=tokens, **request
    )


def plan(
    model: Any,
    *,
    gpu: Any,
    gpus: int,
    global_batch: int,
    framework: str | None = None,
    dtype: Any = "bf16",
    predictor: str | os.PathLike[str] | None = None,
    calibration: str | os.PathLike[str] | None = None,
    **request: Unpack[PlanRequest],
) -> Plan:
    """The best layouts of a training job on so many GPUs, proven among all that ``framework`` takes.

    Left out, it is the stack's framework, else Megatron, for image models and the like DDP. Degrees given as keywords are
    kept; ``search={"tp": [4, 8]}`` tries several. Other keys are those of a training step.

    >>> import foretell
    >>> answer = foretell.plan("llama-3-8b", gpu="h100_sxm", gpus=8, global_batch=32, seq=4096, tp=2)
    >>> answer.proof, answer.plans[0]["parallel"]["tp"]
    ('optimal', 2)
    """
    document = model_document(model, task="train")
    return _ask(
        Plan,
        predictor,
        calibration,
        task="plan",
        model=document,
        gpu=gpu,
        dtype=dtype,
        gpus=gpus,
        global_batch=global_batch,
        framework=framework,
        **request,
    )


def scale(
    model: Any,
    *,
    gpu: Any,
    gpus: int | None = None,
    dtype: Any = "bf16",
    predictor: str | os.PathLike[str] | None = None,
    calibration: str | os.PathLike[str] | None = None,
    **request: Unpack[ScaleRequest],
) -> Scale:
    """How a training step scales: closed forms beside the timeline, and two curves up to ``gpus``.

    >>> import foretell
    >>> answer = foretell.scale("llama-3-8b", gpu="h100_sxm", gpus=64, tp=8)
    >>> answer.strong[-1].gpus, answer.weak[0].efficiency
    (64, 1)
    """
    document = model_document(model, task="train")
    return _ask(Scale, predictor, calibration, task="scale", model=document, gpu=gpu, dtype=dtype, gpus=gpus, **request)


def sweep(
    over: Mapping[str, str | Sequence[float]] | str,
    model: Any = None,
    *,
    gpu: Any,
    of: str = "train",
    predictor: str | os.PathLike[str] | None = None,
    calibration: str | os.PathLike[str] | None = None,
    **request: Any,
) -> Collection[Any]:
    """One request over a range of one of its numbers, on one GPU or on a list of them: an answer per point.

    ``over`` is ``"batch=1:64:x2"``, ``{"batch": "1:64:x2"}`` or ``{"batch": [1, 3, 9]}``; ``of`` is the task of each
    point.

    >>> import foretell
    >>> steps = foretell.sweep({"batch": [1, 2, 4]}, "gpt2", gpu="h100_sxm", seq=512)
    >>> [each.id for each in steps]
    ['h100_sxm batch=1', 'h100_sxm batch=2', 'h100_sxm batch=4']
    >>> [each.request["batch"] for each in steps]
    [1, 2, 4]
    >>> steps[0].step_ms < steps[2].step_ms
    True
    """
    document = None if model is None else model_document(model, task="train" if of == "train" else "forward")
    asked = request_of(task="sweep", of=of, model=document, gpu=gpu, **request)
    if not isinstance(over, (str, Mapping)):
        raise Error(f"over must be a dictionary or a string, not {type(over).__name__}", code="wrong_type", where="over")
    asked |= {"sweep": over} if isinstance(over, str) else {"over": {key: _listed(each) for key, each in over.items()}}
    settings = _settings(predictor, calibration)
    answered = _answered(asked, settings)
    told = answered.raw["answers"]
    kind, gpus = _KINDS.get(of, Step), gpu if isinstance(gpu, (list, tuple)) else [gpu]

    def point(at: int) -> dict[str, Any]:
        """What was asked there: answers come GPU by GPU, and the last word of an id is ``key=value``."""
        key, _, value = str(told[at]["id"]).split(" ")[-1].partition("=")
        name = key.rpartition(".")[2]
        rest = {each: _without(name, said) if each in ("parallel", "cluster") else said for each, said in request.items()}
        asked_here = {**rest, name: json.loads(value)}
        return request_of(task=of, model=document, gpu=gpus[at * len(gpus) // len(told)], **asked_here)

    steps = Collection(kind.from_dict(each, request=point(at), settings=settings) for at, each in enumerate(told))
    steps.warnings = tuple(answered.warnings)
    return steps


def compare(
    *answers: Step | Mapping[str, Any],
    names: Sequence[str] | None = None,
    predictor: str | os.PathLike[str] | None = None,
    calibration: str | os.PathLike[str] | None = None,
) -> Comparison:
    """What differs between answers, and why, against the first of them.

    Answers are what :func:`forecast` and :func:`train` gave back; requests, which are answered first, are dictionaries.

    >>> import foretell
    >>> a = foretell.train("gpt2", gpu="a100_sxm_80gb", batch=8, seq=1024)
    >>> b = foretell.train("gpt2", gpu="h100_sxm", batch=8, seq=1024)
    >>> both = foretell.compare(a, b, names=["A100", "H100"])
    >>> [each.name for each in both.answers], both.answers[1].speedup > 1
    (['A100', 'H100'], True)
    """
    if len(answers) < 2:
        raise Error("one answer is compared with another: give at least two", code="usage")
    if names is not None and len(names) != len(answers):
        raise Error(f"{len(answers)} answers and {len(names)} names", code="usage", where="names")
    asked = {
        "task": "compare",
        "answers": [_comparable(each) for each in answers],
        "names": [str(each) for each in names] if names else [_name_of(each, at) for at, each in enumerate(answers)],
    }
    answer = _answered(asked, _settings(predictor, calibration))
    assert isinstance(answer, Comparison)
    return Comparison.from_dict(answer.raw)


def gpus() -> Collection[Gpu]:
    """The GPUs that are known by name.

    >>> import foretell
    >>> foretell.gpus()["a100_sxm_80gb"].peak_tflops["bf16"]
    312
    """
    return _gpus()


def models(pattern: str = "") -> Collection[Model]:
    """The models that are known by name, or those whose name, hub name or type contains ``pattern``; a star matches anything.

    >>> import foretell
    >>> foretell.models()["llama-3-8b"].layers
    32
    >>> [model.name for model in foretell.models("gpt2-")]
    ['gpt2-large', 'gpt2-medium', 'gpt2-xl']
    """
    if not pattern:
        return _models()
    wanted = f"*{pattern.lower()}*"
    return Collection(
        each
        for each in _models()
        if any(fnmatchcase((text or "").lower(), wanted) for text in (each.name, each.hub, each.model_type))
    )


@cache
def _gpus() -> Collection[Gpu]:
    return Collection(Gpu.from_dict(each) for each in _answered({"task": "gpus"}, _settings(None, None)).raw["gpus"])


@cache
def _models() -> Collection[Model]:
    answer = _answered({"task": "models"}, _settings(None, None))
    return Collection(Model.from_dict(each) for each in answer.raw["models"])


def _listed(value: Any) -> Any:
    """Sequences as JSON has them."""
    return list(value) if isinstance(value, (tuple, range)) else value


def _without(name: str, said: Any) -> Any:
    return {key: each for key, each in said.items() if key != name} if isinstance(said, Mapping) else said


def _comparable(answer: Any) -> dict[str, Any]:
    """The library answers a request once more, with all kernels; an answer that knows none is taken as it is."""
    if isinstance(answer, Answer):
        return dict(answer.request) or answer.to_dict()
    if isinstance(answer, Mapping):
        return request_with(answer) if "ok" not in answer else dict(answer)
    raise Error(f"an answer or a request, not {type(answer).__name__}", code="wrong_type")


def _name_of(answer: Any, at: int) -> str:
    request = answer.request if isinstance(answer, Answer) else answer
    return str(request.get("id") or f"answer {at + 1}")
