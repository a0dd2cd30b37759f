"""Which cells there are, and how much of the time each gets.

The shares follow what models spend their time in and what a forecast gets wrong when it has not seen the GPU: products
in the format that training and serving use take two fifths. Attention takes a fifth because its points are dear (a
tenth of a second and more on an H200, where a row operator takes a hundredth).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .cell import Cell
from .cells_dense import bmm, conv, gemm_cells, moe
from .cells_memory import attention, elementwise, optimizer, quantize, rowwise
from .errors import EXIT_USAGE, CalibrateError

FAMILIES = ("gemm", "bmm", "attention", "elementwise", "rowwise", "optimizer", "conv", "moe", "quantize", "collectives")
DTYPES = ("bf16", "fp16", "fp32", "tf32", "fp8")


def all_cells(main: str = "bf16") -> list[Cell]:
    """`main` is the number format of training and serving on this GPU: fp16 where there is no bf16."""
    second = "fp16" if main == "bf16" else "bf16"
    cells = gemm_cells(main, 40, full=True)
    for dtype, weight in ((second, 3.0), ("fp32", 3.0), ("tf32", 1.5), ("fp8", 2.0)):
        cells += gemm_cells(dtype, weight, full=False)
    for dtype, weight in ((main, 2.5), (second, 0.3), ("fp32", 1.0), ("tf32", 0.5)):
        cells.append(Cell(f"bmm.{dtype}", "bmm", dtype, weight, 4, bmm(dtype)))
    for dtype, direction, weight in (
        (main, "fwd", 7.0),
        (main, "fwd_bwd", 9.0),
        (main, "decode", 6.0),
        (second, "fwd", 0.4),
        (second, "fwd_bwd", 0.4),
    ):
        cells.append(Cell(f"attention.{dtype}.{direction}", "attention", dtype, weight, 4, attention(dtype, direction)))
    for dtype, weight in ((main, 4.5), ("fp32", 2.2), (second, 0.5)):
        cells.append(Cell(f"elementwise.{dtype}", "elementwise", dtype, weight, 2, elementwise(dtype)))
    for dtype, weight in ((main, 6.5), ("fp32", 3.5)):
        cells.append(Cell(f"rowwise.{dtype}", "rowwise", dtype, weight, 2, rowwise(dtype)))
    for dtype, weight in (("fp32", 1.5), (main, 1.5)):
        cells.append(Cell(f"optimizer.{dtype}", "optimizer", dtype, weight, 2, optimizer(dtype)))
    for dtype, weight in ((main, 2.5), ("fp32", 1.0), ("tf32", 0.8)):
        cells.append(Cell(f"conv.{dtype}", "conv", dtype, weight, 4, conv(dtype)))
    cells.append(Cell(f"moe.{main}", "moe", main, 1.2, 4, moe(main)))
    cells.append(Cell("quantize.fp8", "quantize", "fp8", 0.6, 2, quantize("fp8")))
    return cells


def chosen_cells(able: Sequence[str], families: Sequence[str], dtypes: Sequence[str]) -> list[Cell]:
    """The cells that the device is able to run and the user asked for (empty: all of them). Where one format alone is
    asked for, it is the main one."""
    _check(families, FAMILIES, "--families")
    _check(dtypes, DTYPES, "--dtypes")
    wanted = [dtype for dtype in (dtypes or DTYPES) if dtype in able]
    if not wanted:
        raise CalibrateError(f"this GPU computes in none of {', '.join(dtypes)}; it has {', '.join(able)}", EXIT_USAGE)
    main = next((dtype for dtype in ("bf16", "fp16") if dtype in wanted), "bf16")
    cells = [
        cell for cell in all_cells(main) if cell.dtype in wanted and (not families or cell.family in families)
    ]
    if not cells and "collectives" not in families:
        raise CalibrateError("no kernel is left to measure with these --families and --dtypes", EXIT_USAGE)
    if cells and not any(cell.weight > 8 for cell in cells):  # only small ones are asked for: no share is too small
        return [replace(cell, weight=max(cell.weight, 1.0)) for cell in cells]
    return cells


def _check(given: Sequence[str], known: Sequence[str], option: str) -> None:
    for name in given:
        if name not in known:
            raise CalibrateError(f"{option}: unknown \"{name}\"; known are {', '.join(known)}", EXIT_USAGE)
