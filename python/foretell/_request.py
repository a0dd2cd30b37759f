"""Keywords of a call as a request of the library.

The names are those of a JSON request (docs/interface.md). Keys of a layout and of a cluster may be given side by side
with the others, ``tp=8`` for ``parallel={"tp": 8}``, as on the command line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._encode import number_of
from ._keys import CLUSTER, DTYPES, PARALLEL, ModelRequest
from ._model import dtype_name
from .errors import Error

__all__ = ["ModelRequest", "request_of", "request_with"]


# Studies that lay their models out themselves: how many GPUs there are is a key of their own.
_LAY_OUT = ("choose", "choose_serve", "largest", "plan", "plan_serve", "scale")


def request_of(**given: Any) -> dict[str, Any]:
    """A request from keywords; None means left out.

    >>> request_of(task="train", model="gpt2", gpu="h100_sxm", tp=2, batch=None)
    {'task': 'train', 'model': 'gpt2', 'gpu': 'h100_sxm', 'parallel': {'tp': 2}}
    """
    request: dict[str, Any] = {}
    for key, value in given.items():
        if value is None:
            continue
        if key in PARALLEL and not (key == "gpus" and given.get("task") in _LAY_OUT):
            _set_inside(request, "parallel", given, key, value)
        elif key in CLUSTER:
            _set_inside(request, "cluster", given, key, value)
        elif key in ("parallel", "cluster"):
            _inside(request, key, given)
        elif key == "gpu":
            request[key] = [_gpu(each) for each in value] if isinstance(value, (list, tuple)) else _gpu(value)
        else:
            request[key] = _scalar(key, value)
    return request


def request_with(given: Mapping[Any, Any]) -> dict[str, Any]:
    """A request from a dictionary, as somebody wrote it."""
    odd = next((key for key in given if not isinstance(key, str)), None)
    if odd is not None:
        raise Error(f"keys of a request must be strings, not {type(odd).__name__}", code="wrong_type")
    return request_of(**given)


def _inside(request: dict[str, Any], key: str, given: Mapping[str, Any]) -> dict[str, Any]:
    if key not in request:
        said = given.get(key)
        said = {} if said is None else said
        if not isinstance(said, Mapping):
            raise Error(f"{key} must be a dictionary, not {type(said).__name__}", code="wrong_type", where=key)
        request[key] = dict(said)
    inner: dict[str, Any] = request[key]
    return inner


def _set_inside(request: dict[str, Any], inside: str, given: Mapping[str, Any], key: str, value: Any) -> None:
    """A keyword of a layout or a cluster; which of two values was meant is not ours to say."""
    inner = _inside(request, inside, given)
    if key in inner:
        raise Error(
            f'"{key}" is given twice: {key}={value!r} and {inside}={{"{key}": {inner[key]!r}}}', code="usage", where=key
        )
    inner[key] = _scalar(key, value)


def _gpu(gpu: Any) -> Any:
    if isinstance(gpu, (str, Mapping)):
        return gpu
    if hasattr(gpu, "__fspath__"):
        return str(gpu.__fspath__())
    if isinstance(getattr(gpu, "name", None), str):  # a row of gpus()
        return str(gpu.name)
    raise Error(f"a GPU is a name, a path or a spec, not {type(gpu).__name__}", code="wrong_type", where="gpu")


def _scalar(key: str, value: Any) -> Any:
    """PyTorch's dtypes by their names, NumPy's and PyTorch's numbers as Python's own."""
    return dtype_name(value) if key in DTYPES else number_of(value)
