"""Where a table is damaged, which Polars does not say: looked for only after reading has failed."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import polars as pl

from ttsframe.errors import SourceError
from ttsframe.readers.engine.sniff import Container, DataFile, csv_separator, open_binary, sniff

_FAILURES: Final = (OSError, ValueError, pl.exceptions.PolarsError, pl.exceptions.PanicException)


def find_damage(names: Iterable[str]) -> str | None:
    """Name the first file that cannot be read, with its rows and column; None if all can be, or are no tables."""
    for name in names:
        path = Path(name)
        try:
            if not path.is_file():
                continue
            file = sniff(path)
            find = _FINDERS.get(file.container)
            place = None if find is None else find(file)
        except (SourceError, *_FAILURES):
            continue
        if place is not None:
            return f"{name}, {place}"
    return None


def _in_parquet(file: DataFile) -> str | None:
    from pyarrow import parquet  # slow to import, and only needed where reading has failed

    footer = parquet.read_metadata(file.path)
    scan = pl.scan_parquet(file.path, glob=False, hive_partitioning=False)
    names = scan.collect_schema().names()
    first = 0
    for i in range(footer.num_row_groups):
        n = footer.row_group(i).num_rows
        for name in names:
            try:
                scan.select(name).slice(first, n).collect()
            except _FAILURES:
                return _rows(first, n, name)
        first += n
    return None


def _in_arrow(file: DataFile) -> str | None:
    import pyarrow as pa

    first = 0
    with pa.ipc.open_file(str(file.path)) as reader:
        for i in range(reader.num_record_batches):
            batch = reader.get_batch(i)
            for name in batch.schema.names:
                try:
                    batch.column(name).validate(full=True)
                except pa.ArrowInvalid:
                    return _rows(first, batch.num_rows, name)
            first += batch.num_rows
    return None


def _rows(first: int, n: int, column: str) -> str:
    return f"rows {first + 1:,} to {first + n:,}, column {column!r}"


def _in_csv(file: DataFile) -> str | None:
    with open_binary(file) as stream:
        header = stream.readline()
        separator = csv_separator(header.rstrip(b"\r\n")) or ","
        names = _fields(header, separator)
        for number, line in enumerate(stream, 2):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                column = len(_fields(line[: error.start + 1], separator)) - 1
                is_known = len(_fields(line, separator)) == len(names)
                return f"line {number:,}" + (f", column {names[column]!r}" if is_known else "")
    return None


def _fields(line: bytes, separator: str) -> list[str]:
    return next(csv.reader([line.decode("utf-8-sig", "replace")], delimiter=separator), [])


_FINDERS: Final[Mapping[Container, Callable[[DataFile], str | None]]] = MappingProxyType({
    "parquet": _in_parquet,
    "arrow": _in_arrow,
    "csv": _in_csv,
})
