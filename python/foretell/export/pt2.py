"""Programs that torch.export saved."""

from __future__ import annotations

import os
import zipfile
from typing import Any

import torch

from .api import graph_of
from .compat import check_torch, quiet
from .document import with_sizes
from .errors import ExportError
from .graph import Graph
from .program import read_program
from .values import Program, Value

__all__ = ["export_program", "load_pt2"]


def load_pt2(path: str | os.PathLike[str], *, task: str = "train", name: str | None = None) -> Graph:
    """A ``.pt2`` file as a graph."""
    check_torch()
    text = os.fspath(path)
    if not os.path.isfile(text):
        raise ExportError("there is no such file", code="not_found", where=text)
    if not zipfile.is_zipfile(text):
        raise ExportError(
            "this is not a .pt2 archive, or it is cut off: torch.export.save writes a ZIP file", code="broken", where=text
        )
    try:
        with quiet():
            program = torch.export.load(text)
    except Exception as error:  # noqa: BLE001 - whatever reading foreign bytes raises
        raise ExportError(_why(text, error), code="broken", where=text) from error
    return export_program(program, task=task, name=name or os.path.basename(text).removesuffix(".pt2"))


def _why(path: str, error: Exception) -> str:
    """Another version's archive, or a broken one."""
    message = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
    wrote = ""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            stamp = next((n for n in names if n.endswith(("archive_version", "version", "torch_version"))), None)
            wrote = archive.read(stamp).decode("ascii", "replace").strip()[:40] if stamp else ""
            if not any(n.endswith((".json", "serialized_exported_program.json")) for n in names):
                return f"the archive holds no exported program (it has {', '.join(names[:3]) or 'nothing'})"
    except (zipfile.BadZipFile, OSError, EOFError) as broken:
        return f"the archive is broken: {broken}"
    version = f" (the archive says version {wrote})" if wrote else ""
    return (
        f"PyTorch {torch.__version__} cannot read this program{version}: {message}; load and export it with the version of "
        "PyTorch that saved it"
    )


def export_program(program: Any, *, task: str = "train", name: str | None = None) -> Graph:
    """A ``torch.export.ExportedProgram`` as a graph: what it returns first is where the gradient starts."""
    check_torch()
    if task not in ("train", "forward", "memory"):
        raise ExportError(f'task must be train, forward or memory, got "{task}"', code="usage", where="task")
    mode = "forward" if task == "forward" else "train"
    read = read_program(program)
    main = _main(read)
    notes = list(read.warnings)
    if mode == "train" and read.outputs and read.outputs[0].shape != ():
        notes.append("the program returns no loss: the gradient starts at its first result")
    made, flops, warnings = graph_of(read, main=main, task=mode, name=name or "program", source=f"torch {torch.__version__}")
    batch = read.inputs[0].shape[0] if read.inputs and read.inputs[0].shape else None
    tokens = next((x for x in read.inputs if not x.dtype.is_floating_point and len(x.shape) == 2), None)
    seq = tokens.shape[1] if tokens is not None else None
    return Graph(
        document=with_sizes(made, batch, seq, "full" if read.checkpointed and mode == "train" else "none"),
        task=mode,
        parameters=sum(p.numel for p in read.parameters),
        trained_parameters=sum(p.numel for p in read.parameters if p.trained),
        flops=flops,
        batch=batch,
        seq=seq,
        warnings=tuple([*notes, *warnings]),
        recompute="full" if read.checkpointed else "none",
    )


def _main(program: Program) -> torch.dtype:
    count: dict[torch.dtype, int] = {}
    values: list[Value] = program.parameters or program.inputs
    for x in values:
        if x.dtype.is_floating_point:
            count[x.dtype] = count.get(x.dtype, 0) + x.numel
    return max(count, key=lambda d: count[d]) if count else torch.float32
