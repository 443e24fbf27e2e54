"""What is in memory, read as a file would be: frames, Arrow tables, data sets, lists of dicts.

Other libraries are known by what their objects can do, never by an import: `datasets` and pandas need
not be installed. A list of dicts is read as the JSON lines that it would be written as, so that mixed
types and columns that start late mean the same in both.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import date, time
from decimal import Decimal
from os import PathLike
from typing import Any, Final, Protocol, TypeAlias, TypeGuard

import polars as pl

from ttsframe._checks import kind_of
from ttsframe.errors import ParameterTypeError, SourceError
from ttsframe.readers.engine.faults import first_line, unreadable_column, unreadable_columns

_PANIC: Final = pl.exceptions.PanicException
_AS_TEXT: Final = (date, time, Decimal, PathLike)


class ArrowStream(Protocol):
    """A table with the Arrow C stream interface: of pandas, pyarrow, DuckDB and others."""

    def __arrow_c_stream__(self, requested_schema: object | None = None, /) -> object:
        """Export the table."""
        ...


class DataSet(Protocol):
    """A data set of Hugging Face."""

    def with_format(self, type: str, /) -> Any:  # noqa: A002, ANN401 - as the library spells it
        """Return the data set with rows of another type."""
        ...


InMemory: TypeAlias = (
    pl.DataFrame | pl.LazyFrame | ArrowStream | DataSet | Sequence[Mapping[str, Any]]
)
Held: TypeAlias = bytes | pl.LazyFrame


def is_rows(source: object) -> TypeGuard[Sequence[Mapping[str, Any]]]:
    """Return whether a source is a list whose first element is a dict."""
    return (
        isinstance(source, Sequence)
        and not isinstance(source, str | bytes)
        and len(source) > 0
        and isinstance(source[0], Mapping)
    )


def is_table(source: object) -> bool:
    """Return whether a source is a frame, a table or a data set in memory."""
    if isinstance(source, pl.DataFrame | pl.LazyFrame):
        return True
    return not isinstance(source, type | Mapping) and (
        hasattr(source, "__arrow_c_stream__") or hasattr(source, "with_format")
    )


def name_of(source: object) -> str:
    """Name a source in memory, for messages."""
    return "the list of dicts" if is_rows(source) else f"the {kind_of(source).removeprefix('a ')}"


def hold(source: object, name: str) -> Held:
    """Return a frame lazily, or a list of dicts as JSON lines."""
    if isinstance(source, pl.DataFrame | pl.LazyFrame):
        return source.lazy()
    if is_rows(source):
        return _json_lines(source, name)
    if hasattr(source, "with_format"):
        return _from_data_set(source, name)
    if kind_of(source) == "a pandas DataFrame":
        return _from_pandas(source, name)
    return _from_arrow(source, name)


def check_splits(source: object) -> None:
    """Refuse a mapping, which is no run: the splits of a data set, or columns."""
    if not isinstance(source, Mapping):
        return
    kind = kind_of(source)
    if source and all(is_table(value) for value in source.values()):
        splits = ", ".join(repr(str(name)) for name in source)
        raise ParameterTypeError(
            f"source must be one data set, got {kind} with the splits {splits}. Hint: name a split, as "
            f"in source[{next(iter(source))!r}]."
        )
    raise ParameterTypeError(
        f"source must be a frame or a list of dicts, got {kind}. Hint: pl.DataFrame(source) makes a "
        "frame of a dict of columns, and [source] a list of one row."
    )


def _from_data_set(source: Any, name: str) -> Held:  # noqa: ANN401 - known by what it can do
    if not hasattr(source, "__len__"):
        raise ParameterTypeError(
            f"source must be a data set in memory or on disk, got {kind_of(source)}, which can only be "
            "streamed. Hint: list(source) reads all of its rows, and list(source.take(100)) the first."
        )
    # Slicing applies the selection and the order of the rows, which the data set keeps as indices.
    return _from_arrow(source.with_format("arrow")[:], name)


def _from_pandas(source: Any, name: str) -> Held:  # noqa: ANN401 - known by what it can do
    import pyarrow as pa  # slow to import, and pandas needs it too

    # An index with a name is a column that grouping or `set_index` has moved.
    has_names = any(index is not None for index in source.index.names)
    frame = source.reset_index() if has_names else source
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except pa.ArrowException:
        rows = frame.to_dict("records")
        return _json_lines([_without_nan(row) for row in rows], name)
    except ValueError as error:
        raise SourceError(f"{name}: cannot be read ({error}).") from error
    return _from_arrow(table, name)


def _without_nan(row: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a row in which NaN, which pandas writes where a value is missing, is None."""
    return {
        str(key): None if isinstance(value, float) and math.isnan(value) else value
        for key, value in row.items()
    }


def _from_arrow(source: Any, name: str) -> pl.LazyFrame:  # noqa: ANN401 - known by what it can do
    try:
        return pl.DataFrame(source).lazy()
    except (TypeError, ValueError, OSError, pl.exceptions.PolarsError, _PANIC) as error:
        column = next(unreadable_columns(source), None)
        if column is not None:
            raise unreadable_column(name, column) from error
        raise SourceError(
            f"{name}: cannot be read as an Arrow table ({first_line(error)}). Hint: it may be damaged; "
            "write it again, or pass a list of dicts."
        ) from error


def _json_lines(rows: Sequence[Any], name: str) -> bytes:
    lines = []
    for number, row in enumerate(rows, 1):
        if not isinstance(row, Mapping):
            raise ParameterTypeError(f"{name}, row {number}: is {kind_of(row)}, must be a dict.")
        try:
            lines.append(json.dumps(row, default=_plain))
        except (TypeError, ValueError, RecursionError) as error:
            raise SourceError(f"{name}, row {number}: cannot be read ({error}).") from error
    return "\n".join(lines).encode()


def _plain(value: Any) -> Any:  # noqa: ANN401 - any value of a row
    """Return a value that JSON has no word for as one that it has."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, _AS_TEXT) or type(value).__name__ == "UUID":
        return str(value)
    for method in ("tolist", "to_list"):  # of numpy and torch; of Polars
        if hasattr(value, method):
            return getattr(value, method)()
    raise TypeError(f"a value is {kind_of(value)}, must be text, a number, a list or a dict")
