"""``python -m foretell export``: a ``.pt2`` file, or a function that builds a model, as a graph file.

``python -m foretell export model.pt2 -o model.ft.json``
``python -m foretell export package.module:function -o model.ft.json``

The function takes no arguments and gives back a model and its example inputs (``return model, (x,)``), or a Hugging
Face model alone when its own dummy inputs will do.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ._model import exporter
from .errors import Error, ExportError

__all__ = ["captured", "run"]


def run(arguments: Sequence[str]) -> int:
    """The command; gives back its exit status."""
    parser = argparse.ArgumentParser(
        prog="foretell export",
        description="Captures a PyTorch model as a graph file (.ft.json) that every command of foretell takes.",
    )
    parser.add_argument(
        "model",
        help="a .pt2 file (torch.export.save), or module:function, or file.py:function; the function gives back "
        "(model, example_inputs)",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="where to write [the model's name with .ft.json]")
    parser.add_argument("--task", choices=("train", "forward"), default="train", help="what is captured [train]")
    given = parser.parse_args(list(arguments))
    graph, name = captured(given.model, given.task)
    output = Path(given.output or f"{name}.ft.json")
    try:
        graph.save(output)
    except OSError as error:
        raise Error(f"cannot write: {error.strerror}", code="file", where=str(output)) from None
    for warning in getattr(graph, "warnings", ()):
        print(f"foretell: warning: {warning}", file=sys.stderr)
    print(output)
    return 0


def captured(what: str, task: str) -> tuple[Any, str]:
    """The graph of a ``.pt2`` file or of what a function builds, and a name for it."""
    if what.endswith(".pt2"):
        if not os.path.isfile(what):
            raise Error("no such file", code="file", where=what)
        return exporter().load_pt2(what, task=task), Path(what).stem
    place, colon, function = what.rpartition(":")
    if not colon or not place or not function.isidentifier():
        raise Error("a .pt2 file, module:function or file.py:function is expected", code="usage", where=what)
    exports = exporter()
    build = _function(place, function, what)
    try:
        built = build()
    except Exception as error:
        raise ExportError(f"{function}() raised {type(error).__name__}: {error}", where=what) from error
    model, inputs = built if isinstance(built, tuple) and len(built) == 2 else (built, None)
    if inputs is None:
        inputs = getattr(model, "dummy_inputs", None)
        if inputs is None:
            raise ExportError(f"{function}() gives back (model, example_inputs)", code="wrong_type", where=what)
    return exports.export(model, inputs, task=task), function


def _function(place: str, function: str, where: str) -> Any:
    try:
        if place.endswith(".py"):
            spec = importlib.util.spec_from_file_location(Path(place).stem, place)
            if spec is None or spec.loader is None:
                raise ImportError(f"{place} is not a Python file")
            module = importlib.util.module_from_spec(spec)
            sys.modules.setdefault(spec.name, module)
            spec.loader.exec_module(module)
        else:
            sys.path.insert(0, os.getcwd())
            module = importlib.import_module(place)
    except FileNotFoundError:
        raise Error("no such file", code="file", where=place) from None
    except Exception as error:
        raise Error(f"cannot import {place}: {type(error).__name__}: {error}", code="file", where=where) from error
    if not callable(getattr(module, function, None)):
        raise Error(f"{place} has no function {function}", code="unknown_name", where=where)
    return getattr(module, function)
