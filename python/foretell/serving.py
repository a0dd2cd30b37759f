"""Questions about serving under load: one engine, how to serve with several, on which GPUs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ._model import model_document
from .answers import Serve, ServeChoice, ServePlan
from .studies import _ask

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._keys import ChooseServeRequest, PlanServeRequest, ServeRequest

__all__ = ["choose_serve", "plan_serve", "serve"]


def serve(
    model: Any,
    *,
    gpu: Any,
    engine: str | Mapping[str, Any] | None = None,
    dtype: Any = "bf16",
    concurrency: int | None = None,
    rate: float | None = None,
    trace: str | os.PathLike[str] | None = None,
    isl: float | None = None,
    osl: float | None = None,
    per_request: bool = False,
    predictor: str | os.PathLike[str] | None = None,
    calibration: str | os.PathLike[str] | None = None,
    **request: Unpack[ServeRequest],
) -> Serve:
    """Many requests at once on a serving engine: TTFT, TPOT, percentiles, what bounds it.

    Exactly one of ``concurrency`` (clients that wait for their answers), ``rate`` (requests per second) and ``trace``
    (a log) sets how requests arrive; ``find="rate"`` with ``slo={"ttft_ms": 500}`` needs none. With ``per_request`` the
    data frame has a row for each.

    >>> import foretell
    >>> answer = foretell.serve("llama-3.1-8b", gpu="h100_sxm", concurrency=4, isl=256, osl=32, requests=40)
    >>> answer.requests, answer.bound in ("decode", "prefill", "kv", "frontend", "queue")
    (40, True)
    """
    document = model_document(model, task="decode")
    log = None if trace is None else os.fspath(trace)
    load = {"concurrency": concurrency, "rate": rate, "trace": log, "isl": isl, "osl": osl}
    return _ask(
        Serve,
        predictor,
        calibration,
        task="serve",
        model=document,
        gpu=gpu,
        engine=engine,
        dtype=dtype,
        **load,
        per_request=per_request or None,
        **request,
    )


def plan_serve(
    model: Any,
    *,
    gpu: Any,
    gpus: int | None = None,
    dtype: Any = "bf16",
    predictor: str | os.PathLike[str] | None = None,
    calibration: str | os.PathLike[str] | None = None,
    **request: Unpack[PlanServeRequest],
) -> ServePlan:
    """How requests should be served: which engines, how many, with which settings.

    With ``rate`` and ``slo`` the fewest GPUs, with ``slo`` alone the highest rate of ``gpus``, with neither the most tokens
    per second. ``isl``, ``osl``, ``engine``, ``search``, ``emit`` and every key of ``serve`` are keywords too.

    >>> import foretell
    >>> answer = foretell.plan_serve("llama-3.1-8b", gpu="h100_sxm", rate=4, isl=256, osl=32, slo={"ttft_ms": 300}, search={"tp": 1})
    >>> answer.plans[0]["replicas"], answer.objective
    (1, 'gpus')
    """
    document = model_document(model, task="decode")
    return _ask(
        ServePlan, predictor, calibration, task="plan_serve", model=document, gpu=gpu, dtype=dtype, gpus=gpus, **request
    )


def choose_serve(
    model: Any,
    *,
    gpu: Any = None,
    gpus: Any = None,
    dtype: Any = "bf16",
    predictor: str | os.PathLike[str] | None = None,
    calibration: str | os.PathLike[str] | None = None,
    **request: Unpack[ChooseServeRequest],
) -> ServeChoice:
    """Which GPUs requests should be served on: dollars by the hour and by the token, energy, and why others lose.

    ``rate`` and ``slo``, or ``requests`` of a job that nobody waits for; ``price``, ``provider``, ``budget``, ``deadline``,
    ``objective``, ``pue``, ``kwh_price``, ``carbon`` and every key of ``serve`` are keywords too.

    >>> import foretell
    >>> answer = foretell.choose_serve("llama-3.1-8b", gpu=["h100_sxm"], gpus=[1], requests=1000, isl=256, osl=32, price={"h100_sxm": 2})
    >>> answer.chosen["gpus"], answer.chosen["kwh"] > 0
    (1, True)
    """
    document = model_document(model, task="decode")
    return _ask(
        ServeChoice, predictor, calibration, task="choose_serve", model=document, gpu=gpu, dtype=dtype, gpus=gpus, **request
    )
