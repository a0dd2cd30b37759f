"""Tables out: pandas, polars and Arrow, each imported only where it is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .errors import Error

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

__all__ = ["Tabular", "arrow_table", "columns", "flat", "frame", "polars_frame"]


class Tabular:
    """What has rows, as a table of whichever library is there.

    ``to_dataframe`` and ``to_pandas`` are one. Who takes Arrow's PyCapsule interface (polars, DuckDB, pandas 3, pyarrow)
    takes the object itself: ``polars.DataFrame(answer)``.
    """

    __slots__ = ()

    def rows(self) -> list[dict[str, Any]]:
        """The rows of its table."""
        raise NotImplementedError

    def to_dataframe(self) -> pandas.DataFrame:
        """A pandas data frame."""
        return frame(self.rows())

    def to_pandas(self) -> pandas.DataFrame:
        """A pandas data frame.

        >>> import foretell
        >>> foretell.gpus().to_pandas().set_index("name").loc["h100_sxm", "memory_gib"].item()
        80
        """
        return self.to_dataframe()

    def to_polars(self) -> polars.DataFrame:
        """A polars data frame.

        >>> import foretell
        >>> table = foretell.gpus().to_polars()
        >>> table.filter(table["name"] == "h100_sxm")["memory_gib"].item()
        80
        """
        return polars_frame(self.rows())

    def to_arrow(self) -> pyarrow.Table:
        """An Arrow table.

        >>> import foretell
        >>> table = foretell.infer("llama-3-8b", gpu="h100_sxm", batch=[1, 8], seq=2048).to_arrow()
        >>> table.num_rows, table.schema.field("tpot_ms").type
        (4, DataType(double))
        """
        return arrow_table(self.rows())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Arrow's PyCapsule interface, by pyarrow."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)


def frame(rows: Iterable[Mapping[str, Any]]) -> pandas.DataFrame:
    """A data frame with a column per key."""
    try:
        import pandas
    except ImportError:
        raise Error("a data frame needs pandas (pip install pandas)", code="pandas_missing") from None
    return pandas.DataFrame(list(rows))


def polars_frame(rows: Iterable[Mapping[str, Any]]) -> polars.DataFrame:
    """The same as polars has it."""
    try:
        import polars
    except ImportError:
        raise Error("a polars frame needs polars (pip install polars)", code="polars_missing") from None
    return polars.DataFrame(columns(rows))


def arrow_table(rows: Iterable[Mapping[str, Any]]) -> pyarrow.Table:
    """The same as Arrow has it."""
    try:
        import pyarrow
    except ImportError:
        raise Error("an Arrow table needs pyarrow (pip install pyarrow)", code="pyarrow_missing") from None
    return pyarrow.table(columns(rows))


def columns(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Rows as columns of one type each, in the order in which their keys came; None where a row has no value.

    Numbers of both kinds are real, and what is not of one kind is text.

    >>> columns([{"ms": 1, "op": "gemm"}, {"ms": 2.5, "id": 7}, {"id": "x"}])
    {'ms': [1.0, 2.5, None], 'op': ['gemm', None, None], 'id': [None, '7', 'x']}
    """
    listed = list(rows)
    names = dict.fromkeys(name for row in listed for name in row)
    return {name: _alike([row.get(name) for row in listed]) for name in names}


def _alike(values: list[Any]) -> list[Any]:
    kinds = {type(each) for each in values if each is not None}
    if len(kinds) == 1 and kinds <= {bool, str, float}:
        return values
    if kinds == {int} and all(each is None or -(2**63) <= each < 2**63 for each in values):
        return values
    if kinds and kinds <= {int, float}:
        return [None if each is None else float(each) for each in values]
    return [None if each is None else str(each) for each in values]


def flat(row: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """An object without objects inside; lists are left out.

    >>> flat({"step_ms": 1.5, "memory": {"peak_bytes": 3}, "kernels": []})
    {'step_ms': 1.5, 'memory.peak_bytes': 3}
    """
    out: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, Mapping):
            out.update(flat(value, f"{before}{key}."))
        elif not isinstance(value, (list, tuple)):
            out[before + key] = value
    return out
