"""Ray as an executor: Ray has tasks and no :class:`concurrent.futures.Executor`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, TypeVar

from ..errors import Error

__all__ = ["ray_executor"]

T = TypeVar("T")


class _RayExecutor(Executor):
    """One task for every call; Ray runs a task again when its worker dies."""

    def __init__(self, ray: Any, retries: int) -> None:
        self._run = ray.remote(max_retries=retries)(_call)

    def submit(self, function: Callable[..., T], /, *given: Any, **named: Any) -> Future[T]:
        future: Future[T] = self._run.remote(function, given, named).future()
        return future


def _call(function: Callable[..., T], given: tuple[Any, ...], named: dict[str, Any]) -> T:
    return function(*given, **named)


def ray_executor(*, retries: int = 3) -> Executor:
    """An executor on the Ray cluster that ``ray.init()`` joined, for :func:`foretell.map`.

    >>> import foretell
    >>> try:
    ...     steps = foretell.map([], executor=foretell.ray_executor())
    ... except foretell.Error as error:  # Ray is not installed, or no cluster was joined
    ...     print(error.where)
    executor
    """
    try:
        ray: Any = importlib.import_module("ray")
    except ImportError:
        raise Error("Ray is not installed (pip install ray)", code="ray_missing", where="executor") from None
    if not ray.is_initialized():
        raise Error("join a cluster first: ray.init()", code="usage", where="executor")
    return _RayExecutor(ray, retries)
