"""The questions that are asked once: forecast, train, kernel, collective; and batch, which asks many of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from . import _library
from ._library import Settings
from ._model import model_document
from ._request import request_of, request_with
from .answers import (
    Answer,
    Choice,
    Collection,
    Collective,
    Comparison,
    Infer,
    Kernel,
    Largest,
    Plan,
    Scale,
    Serve,
    ServeChoice,
    ServePlan,
    Step,
    Trace,
)
from .errors import Error, error_from

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._request import ModelRequest

__all__ = ["batch", "collective", "forecast", "kernel", "train"]


def forecast(
    model: Any,
    example_inputs: Any = None,
    *,
    gpu: Any,
    task: str = "train",
    dtype: Any = "bf16",
    export: Mapping[str, Any] | None = None,
    predictor: str | os.PathLike[str] | None = None,
    calibration: str | os.PathLike[str] | None = None,
    **request: Unpack[ModelRequest],
) -> Step:
    """Forecasts one step of a model.

    ``model`` is a catalogue name (``"llama-3-8b"``), a path (``config.json`` or its folder, ``.onnx``, ``.ft.json``,
    ``.pt2``), a Hugging Face config or its dictionary, an exported graph, or any ``torch.nn.Module``. A module is
    captured with ``example_inputs`` (a tensor, a tuple, or a dictionary of keyword arguments) by
    :func:`foretell.export.export`, which takes ``export`` as its options (``loss`` and others) and needs no memory
    for weights: build large models on the meta device. A Hugging Face model without example inputs is read by its
    config.

    ``task`` is ``train``, ``forward``, ``prefill``, ``decode`` or ``memory``. Everything else is a key of a request:
    ``batch``, ``seq``, ``execution``, ``optimizer``, ``recompute``, ``parallel`` or ``tp``, ``pp`` …, ``detail``,
    ``advice``.

    >>> import foretell
    >>> step = foretell.forecast("llama-3-8b", gpu="h100_sxm", batch=1, seq=2048)
    >>> 200 < step.step_ms < 350
    True
    >>> foretell.forecast("llama-3-8b", gpu="h100_sxm", task="decode", batch=8, seq=4096).tpot_ms > 5
    True
    """
    if task in _KINDS:
        raise Error(f'task "{task}" is not one step of a model; foretell.{task}() asks it', code="usage", where="task")
    document = model_document(model, example_inputs, task=task, options=export)
    step = _answered(
        request_of(task=task, model=document, gpu=gpu, dtype=dtype, **request), _settings(predictor, calibration)
    )
    assert isinstance(step, Step)
    return step


def train(
    model: Any,
    example_inputs: Any = None,
    *,
    gpu: Any,
    dtype: Any = "bf16",
    export: Mapping[str, Any] | None = None,
    predictor: str | os.PathLike[str] | None = None,
    calibration: str | os.PathLike[str] | None = None,
    **request: Unpack[ModelRequest],
) -> Step:
    """One training step: :func:`forecast` with ``task="train"``.

    >>> import foretell
    >>> step = foretell.train("llama-3-8b", gpu="h100_sxm", batch=1, seq=4096, tp=2, pp=2, dp=2, global_batch=64)
    >>> step.ranks, step.micro_batches
    (8, 32)
    """
    return forecast(
        model,
        example_inputs,
        gpu=gpu,
        task="train",
        dtype=dtype,
        export=export,
        predictor=predictor,
        calibration=calibration,
        **request,
    )


def kernel(
    op: str,
    *,
    gpu: Any,
    dtype: Any = "bf16",
    predictor: str | os.PathLike[str] | None = None,
    calibration: str | os.PathLike[str] | None = None,
    **sizes: Any,
) -> Kernel:
    """One kernel: its time, tile, waves, roofline and regime.

    Sizes are named as in a request: ``m n k`` of ``gemm``, ``batch heads kv_heads q_len kv_len head_dim`` of
    ``attention``, ``rows cols`` of ``softmax``, and so on; ``pass_`` stands for ``pass``, which Python keeps for
    itself.

    >>> import foretell
    >>> foretell.kernel("gemm", m=8192, n=8192, k=8192, gpu="h100_sxm").bound
    'compute'
    >>> foretell.kernel("layernorm", rows=8192, cols=4096, pass_="bwd", gpu="h100_sxm").bound
    'memory'
    """
    if "task" in sizes:
        raise Error('kernel() is always the task "kernel"; use forecast() for others', code="usage", where="task")
    if "pass_" in sizes and "pass" in sizes:
        raise Error('"pass" is given twice, as pass_ too', code="usage", where="pass")
    if "pass_" in sizes:
        sizes["pass"] = sizes.pop("pass_")
    answer = _answered(
        {**request_of(task="kernel", op=op, gpu=gpu, dtype=dtype), **request_of(**sizes)},
        _settings(predictor, calibration),
    )
    assert isinstance(answer, Kernel)
    return answer


def collective(
    op: str,
    *,
    bytes: int,
    ranks: int,
    gpu: Any,
    cluster: Mapping[str, Any] | None = None,
    predictor: str | os.PathLike[str] | None = None,
    calibration: str | os.PathLike[str] | None = None,
    **more: Any,
) -> Collective:
    """One exchange: ``all_reduce``, ``all_gather``, ``reduce_scatter``, ``all_to_all``, ``broadcast``, ``send_recv``.

    >>> import foretell
    >>> near = foretell.collective("all_gather", bytes=2**26, ranks=8, gpu="h100_sxm")
    >>> far = foretell.collective("all_gather", bytes=2**26, ranks=16, gpu="h100_sxm")
    >>> near.ms < far.ms
    True
    """
    answer = _answered(
        request_of(task="collective", op=op, bytes=bytes, ranks=ranks, gpu=gpu, cluster=cluster, **more),
        _settings(predictor, calibration),
    )
    assert isinstance(answer, Collective)
    return answer


def batch(
    requests: Iterable[Mapping[str, Any]],
    *,
    errors: str = "keep",
    threads: int | None = None,
    predictor: str | os.PathLike[str] | None = None,
    calibration: str | os.PathLike[str] | None = None,
) -> Collection[Any]:
    """Answers many requests at once, over all cores, in order.

    ``errors="keep"`` leaves an :class:`Error` in the place of an answer that could not be given; ``"raise"`` raises the
    first.

    >>> import foretell
    >>> ask = {"task": "kernel", "op": "softmax", "rows": 4096, "gpu": "h100_sxm"}
    >>> answers = foretell.batch({**ask, "cols": cols} for cols in (128, 8192, 0))
    >>> answers[0].ms < answers[1].ms, type(answers[2]).__name__
    (True, 'Error')
    """
    if errors not in ("keep", "raise"):
        raise Error(f'errors is "keep" or "raise", not {errors!r}', code="out_of_range", where="errors")
    if isinstance(requests, (str, bytes, Mapping)) or not isinstance(requests, Iterable):
        kind = type(requests).__name__
        raise Error(f"requests are a list of dictionaries, not {kind}", code="wrong_type", where="requests")
    if threads is not None and not (isinstance(threads, int) and 0 <= threads <= 4096):
        said = f"threads is a whole number from 0 (one for each core) to 4096, not {threads!r}"
        raise Error(said, code="out_of_range", where="threads")
    settings = _settings(predictor, calibration)
    asked = [_documented(each) for each in requests]  # one after the other: capturing is not for threads

    def one(request: dict[str, Any] | Error) -> Answer | Error:
        try:
            return request if isinstance(request, Error) else _answered(request, settings)
        except Error as error:
            return error

    if not asked:
        return Collection()
    _library.context(settings)  # a missing library is said once, before any thread starts
    with ThreadPoolExecutor(max_workers=threads or min(len(asked), os.cpu_count() or 1)) as pool:
        answers = list(pool.map(one, asked))
    if errors == "raise":
        for each in answers:
            if isinstance(each, Error):
                raise each
    return Collection(answers)


# -- asking ----------------------------------------------------------------------------------------------------------


def _settings(predictor: Any, calibration: Any) -> Settings:
    return Settings(_named("predictor", predictor), _named("calibration", calibration))


def _named(key: str, value: Any) -> str | None:
    """A file or another name, as text that the library's C can hold."""
    if value is None:
        return None
    if not isinstance(value, (str, os.PathLike)):
        raise Error(f"a {key} is a name or a path, not {type(value).__name__}", code="wrong_type", where=key)
    text = os.fsdecode(value)
    try:
        fine = b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        fine = False
    if not fine:
        raise Error(f"{text!r} cannot be the name of a {key}", code="file", where=key)
    return text


_KINDS: dict[str, type[Answer]] = {
    "kernel": Kernel,
    "collective": Collective,
    "trace": Trace,
    "infer": Infer,
    "largest": Largest,
    "plan": Plan,
    "choose": Choice,
    "plan_serve": ServePlan,
    "choose_serve": ServeChoice,
    "scale": Scale,
    "serve": Serve,
    "sweep": Answer,
    "compare": Comparison,
    "models": Answer,
    "gpus": Answer,
    "draw": Answer,
}


def _answered(request: dict[str, Any], settings: Settings) -> Answer:
    """Asks the library; the answer as what its task says it is, or the error that it is."""
    answer = answer_of(request, _library.answer(request, settings), settings)
    if isinstance(answer, Error):
        raise answer
    return answer


def answer_of(request: dict[str, Any], raw: dict[str, Any], settings: Settings) -> Answer | Error:
    """What the library said to a request, as what its task says it is."""
    if raw.get("ok") is not True:
        return error_from(raw)
    return _KINDS.get(str(request.get("task", "train")), Step).from_dict(raw, request=request, settings=settings)


def _documented(request: Mapping[str, Any]) -> dict[str, Any] | Error:
    """A request of a batch, whose model may be any that :func:`forecast` takes."""
    if not isinstance(request, Mapping):
        return Error(f"a request is a dictionary, not {type(request).__name__}", code="wrong_type")
    try:
        asked = request_with(request)
        if "model" in asked:
            inputs = asked.pop("example_inputs", None)
            asked["model"] = model_document(asked["model"], inputs, task=str(asked.get("task", "train")))
        return asked
    except Error as error:
        return error
