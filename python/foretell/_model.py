"""Whatever a user calls a model, as the ``model`` of a request.

A name, a path and a dictionary go to the library as they are. Hugging Face configs become the dictionary of their
``config.json``. Modules are captured by :mod:`foretell.export`, which is the only place where PyTorch is needed;
whether an object is a module is asked of PyTorch only where somebody has imported it already.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from .errors import Error, ExportError, TorchMissingError

__all__ = ["dtype_name", "exporter", "model_document"]


def exporter() -> Any:
    """The module :mod:`foretell.export`, or why it cannot be had."""
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise TorchMissingError(
            "PyTorch is needed to capture a model, and it cannot be imported "
            f"({error}); pip install torch, or give the model by name or config"
        ) from None
    return importlib.import_module("foretell.export")


def is_module(model: Any) -> bool:
    """Whether it is a ``torch.nn.Module``, without importing PyTorch for the question."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def model_document(
    model: Any, example_inputs: Any = None, *, task: str = "train", options: Mapping[str, Any] | None = None
) -> str | dict[str, Any]:
    """The ``model`` of a request.

    >>> model_document("llama-3-8b")
    'llama-3-8b'
    >>> model_document({"model_type": "gpt2", "n_layer": 2})["n_layer"]
    2
    """
    options = dict(options or {})
    if is_module(model):
        return _of_module(model, example_inputs, task, options)
    if _is_exported_program(model):
        return _graph(exporter().export_program(model, task=task, **options))
    if example_inputs is not None:
        raise Error(
            "example inputs go with a torch.nn.Module; a model given by name, path, config or graph has its sizes "
            "from batch and seq",
            code="usage",
            where="example_inputs",
        )
    if options and not _is_pt2(model):
        raise Error(f"{', '.join(options)}: only for models that are captured", code="usage")
    if isinstance(model, (str, os.PathLike)):
        path = os.fspath(model)
        if _is_pt2(model):
            return _graph(exporter().load_pt2(path, task=task, **options))
        return path
    if isinstance(model, Mapping):
        return dict(model)
    if hasattr(model, "to_dict") and hasattr(model, "model_type"):
        return config_document(model)
    if hasattr(model, "to_dict"):  # a graph that was exported before
        return _graph(model)
    raise Error(
        f"a model is a name, a path, a config, a dictionary or a torch.nn.Module, not {type(model).__name__}",
        code="wrong_type",
        where="model",
    )


def _of_module(model: Any, example_inputs: Any, task: str, options: dict[str, Any]) -> dict[str, Any]:
    if example_inputs is not None:
        return _graph(exporter().export(model, example_inputs, task=task, **options))
    config = getattr(model, "config", None)
    if config is not None and hasattr(config, "to_dict") and hasattr(config, "model_type"):
        document = config_document(config)
        document["architectures"] = [type(model).__name__]
        return document
    raise ExportError(
        f"{type(model).__name__} has no Hugging Face config; give example inputs, so that it can be captured: "
        "forecast(model, (x,), ...)",
        code="missing",
        where="example_inputs",
    )


def config_document(config: Any) -> dict[str, Any]:
    """The dictionary of a ``PretrainedConfig``: what is not JSON as text, infinities (no limit) as null."""
    text = json.dumps(config.to_dict(), default=_as_text)
    document: dict[str, Any] = json.loads(text, parse_constant=lambda _: None)
    return document


def _as_text(value: Any) -> str:
    return str(value).removeprefix("torch.")


def _graph(graph: Any) -> dict[str, Any]:
    document = graph.to_dict()
    if not isinstance(document, Mapping):
        raise Error("a graph's to_dict() gives a dictionary", code="wrong_type", where="model")
    return dict(document)


def _is_pt2(model: Any) -> bool:
    return isinstance(model, (str, os.PathLike)) and os.fspath(model).endswith(".pt2")


def _is_exported_program(model: Any) -> bool:
    return type(model).__name__ == "ExportedProgram" and type(model).__module__.startswith("torch.export")


_DTYPES = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "float32": "fp32",
    "float": "fp32",
    "float64": "fp64",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8",
    "float8_e4m3fnuz": "fp8",
    "int8": "int8",
}


def dtype_name(dtype: Any) -> Any:
    """Foretell's word for a number format; ``torch.bfloat16`` and ``"bfloat16"`` are understood.

    >>> dtype_name("bfloat16"), dtype_name("amp_bf16")
    ('bf16', 'amp_bf16')
    """
    if dtype is None:
        return None
    text = str(dtype).removeprefix("torch.")
    return _DTYPES.get(text, text)
