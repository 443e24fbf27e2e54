"""Rows that a format unpacks from what is no table, as frames: a value keeps its type, and no text is made of it.

The rules are those of JSON rows: a column of mixed types becomes String and holds JSON text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from ttsframe.readers.engine.dtypes import as_instance, dtype_of, merge_dtypes, without_null
from ttsframe.readers.engine.json_rows import ROW, BadRowError, Fault, fit_value
from ttsframe.readers.engine.sniff import DataFile, HeldRows

_CHUNK_CHARACTERS = 2 << 20
_PLENTY = 3 << 26
"""Bytes of room; with less of it, rows are compressed to be held."""
_PYTHON_TYPES: dict[pl.DataType, type] = {
    pl.String(): str,
    pl.Boolean(): bool,
    pl.Int64(): int,
    pl.Float64(): float,
}
_EXACT_CASTS = {
    (pl.Int64(), pl.Float64()),
    (pl.Int64(), pl.String()),
    (pl.Boolean(), pl.String()),
}


class UnpackedChunk(NamedTuple):
    """Some consecutive rows with their numbers, and the rows that could not be unpacked."""

    numbers: list[int]
    rows: list[Mapping[str, Any]]
    faults: list[Fault]


class HeldChunk(NamedTuple):
    """The frame of a chunk, compressed if that is worth it."""

    frame: pl.DataFrame | bytes
    schema: Mapping[str, pl.DataType]
    faults: list[Fault]
    n_bytes: int


class UnpackedInspection(NamedTuple):
    """The result of unpacking a file once."""

    dtypes: dict[str, pl.DataType]
    """Null for a column without any value."""
    n_rows: int
    faults: list[Fault]


def inspect_unpacked(file: DataFile, most_bytes: int) -> tuple[UnpackedInspection, DataFile]:
    """Find the columns of a file that is no table; its rows are held if they take at most some bytes."""
    held: list[HeldChunk] = []
    found: dict[str, list[pl.DataType]] = {}
    faults: list[Fault] = []
    n_rows = n_bytes = 0
    for chunk in _read_chunks(file):
        dtypes = {
            name: _narrowest([row.get(name) for row in chunk.rows])
            for name in dict.fromkeys(name for row in chunk.rows for name in row)
        }
        for name, dtype in dtypes.items():
            found.setdefault(name, []).append(dtype)
        faults += chunk.faults
        n_rows += len(chunk.rows)
        if n_bytes <= most_bytes:
            kept = {
                name: dtype if dtype == pl.Null else without_null(dtype)
                for name, dtype in dtypes.items()
            }
            held.append(_hold(_fit_rows(chunk, kept), is_packed=most_bytes - n_bytes < _PLENTY))
            n_bytes += held[-1].n_bytes
    merged = {name: merge_dtypes(listed) for name, listed in found.items()}
    is_held = n_bytes <= most_bytes
    return (
        UnpackedInspection(merged, n_rows, faults),
        file._replace(rows=HeldRows(held, n_bytes)) if is_held else file,
    )


def read_unpacked(
    file: DataFile, columns: Mapping[str, pl.DataType]
) -> Iterator[tuple[pl.DataFrame, list[Fault]]]:
    """Yield the rows of a file under a schema, and those that do not fit it."""
    held = () if file.rows is None else file.rows.chunks
    if held and all(_suffices(chunk, columns) for chunk in held):
        yield from ((_take(chunk, columns), chunk.faults) for chunk in held)
    else:
        yield from (_fit_rows(chunk, columns) for chunk in _read_chunks(file))


def _read_chunks(file: DataFile) -> Iterator[UnpackedChunk]:
    if file.unpack is None:
        raise AssertionError(f"{file.name} is a table")
    chunk, size = UnpackedChunk([], [], []), 0
    for number, one in enumerate(file.unpack(file), 1):
        if one.fault is not None:
            chunk.faults.append(Fault(number, one.fault))
            continue
        chunk.numbers.append(number)
        chunk.rows.append(one.row)
        size += sum(len(value) for value in one.row.values() if type(value) is str)
        if size >= _CHUNK_CHARACTERS:
            yield chunk
            chunk, size = UnpackedChunk([], [], []), 0
    if chunk.rows or chunk.faults:
        yield chunk


def _narrowest(values: Sequence[object]) -> pl.DataType:
    """Return the narrowest dtype that holds some values."""
    types = _types(values)
    if len(types) == 1 and types <= {str, bool, float}:
        return dtype_of(next(value for value in values if value is not None))
    if types == {list}:
        items = _items(values)
        if not _types(items) & {list, dict}:
            return pl.List(_narrowest(items))
    return merge_dtypes(map(dtype_of, dict.fromkeys(values) if types == {int} else values))


def _types(values: Iterable[object]) -> set[type]:
    return {*map(type, values)} - {type(None)}


def _items(values: Iterable[Any]) -> list[object]:
    return [item for value in values if value is not None for item in value]


def _fit_rows(
    chunk: UnpackedChunk, columns: Mapping[str, pl.DataType]
) -> tuple[pl.DataFrame, list[Fault]]:
    """Build the frame of a chunk under a schema, with the numbers of its rows, and list what does not fit."""
    try:
        fitted = {
            name: _fit_column(name, [row.get(name) for row in chunk.rows], dtype)
            for name, dtype in columns.items()
        }
    except BadRowError:
        return _fit_rows(*_without_misfits(chunk, columns))
    return pl.DataFrame({**fitted, ROW: pl.Series(chunk.numbers, dtype=pl.UInt32)}), chunk.faults


def _fit_column(name: str, values: Sequence[object], dtype: pl.DataType) -> pl.Series:
    if _is_written_as(values, dtype):
        try:
            return pl.Series(name, values, dtype=dtype)
        except (UnicodeEncodeError, OverflowError, TypeError):
            pass  # half of a surrogate pair, or too large a number
    return pl.Series(name, [fit_value(value, dtype, name) for value in values], dtype)


def _is_written_as(values: Sequence[object], dtype: pl.DataType) -> bool:
    """Return whether all values are of the type of Python that a dtype holds."""
    if isinstance(dtype, pl.List):
        is_listed = _types(values) <= {list}
        return is_listed and _is_written_as(_items(values), as_instance(dtype.inner))
    return _types(values) <= {_PYTHON_TYPES.get(dtype)}


def _without_misfits(
    chunk: UnpackedChunk, columns: Mapping[str, pl.DataType]
) -> tuple[UnpackedChunk, Mapping[str, pl.DataType]]:
    kept = UnpackedChunk([], [], [*chunk.faults])
    for number, row in zip(chunk.numbers, chunk.rows, strict=True):
        try:
            for name, dtype in columns.items():
                fit_value(row.get(name), dtype, name)
        except BadRowError as reason:
            kept.faults.append(Fault(number, str(reason)))
        else:
            kept.numbers.append(number)
            kept.rows.append(row)
    return kept._replace(faults=sorted(kept.faults)), columns


def _hold(chunk: tuple[pl.DataFrame, list[Fault]], *, is_packed: bool) -> HeldChunk:
    """Keep a frame; compressed it takes about a third, and a third of the time that unpacking its rows takes."""
    frame, faults = chunk
    if not is_packed:
        return HeldChunk(frame, frame.schema, faults, int(frame.estimated_size()))
    packed = frame.write_ipc(None, compression="lz4").getvalue()
    return HeldChunk(packed, frame.schema, faults, len(packed))


def _suffices(chunk: HeldChunk, columns: Mapping[str, pl.DataType]) -> bool:
    """Return whether no held value had to be converted to another dtype than the wanted one."""
    held = chunk.schema
    return all(_is_exact(held[name], columns[name]) for name in columns if name in held)


def _take(chunk: HeldChunk, columns: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Return the rows of a held chunk under a schema."""
    frame = pl.read_ipc(chunk.frame) if isinstance(chunk.frame, bytes) else chunk.frame
    return frame.select(
        *(
            (pl.col(name) if name in chunk.schema else pl.lit(None)).cast(dtype).alias(name)
            for name, dtype in columns.items()
        ),
        ROW,
    )


def _is_exact(held: pl.DataType, wanted: pl.DataType) -> bool:
    """Return whether a cast gives what the value itself would."""
    return held in {wanted, pl.Null()} or (held, wanted) in _EXACT_CASTS
