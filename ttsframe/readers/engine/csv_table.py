"""CSV files as typed tables: the dtype of a column is decided by all of its values.

Polars infers a dtype from the first rows, and takes the id `007` for 7. Here a column is a number only
if all its values are written as Python or JSON would write them; a text column of a format stays text,
and a list column of a format is read from JSON text such as `[0.9, 0.5]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import polars as pl

from ttsframe.errors import SourceError
from ttsframe.readers.engine.damage import find_damage
from ttsframe.readers.engine.sniff import (
    DataFile,
    csv_separator,
    open_binary,
    read_line,
    read_whole,
)

_WHOLE: Final = r"^-?(0|[1-9][0-9]{0,17})$"
_NUMBER: Final = r"^(-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?|nan|NaN|-?inf)$"
_FLAG: Final = r"^(?i:true|false)$"
_SCALARS: Final[Mapping[str, pl.DataType]] = {
    "flag": pl.Boolean(),
    "whole": pl.Int64(),
    "number": pl.Float64(),
}


def csv_names(file: DataFile) -> list[str]:
    """Return the names in the header."""
    return _read_texts(file).collect_schema().names()


def csv_schema(
    file: DataFile, dtypes: Mapping[str, pl.DataType], rename: Mapping[str, str]
) -> dict[str, pl.DataType]:
    """Find the dtype of each column, given those of the format by their names in it."""
    texts = _read_texts(file)
    wanted = {name: dtypes.get(rename.get(name, name)) for name in csv_names(file)}
    patterns = {"flag": _FLAG, "whole": _WHOLE, "number": _NUMBER}
    try:
        # In one query, because each one reads the file again.
        found = texts.select(
            pl.struct(
                pl.col(name).is_not_null().any().alias("any"),
                *(pl.col(name).str.contains(by).all().alias(key) for key, by in patterns.items()),
            ).alias(name)
            for name in wanted
        ).collect()
        lists = {name: dtype for name, dtype in wanted.items() if isinstance(dtype, pl.List)}
        decodable = set(_decodable(texts, lists))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _unreadable(file, error) from error
    schema: dict[str, pl.DataType] = {}
    for name, dtype in wanted.items():
        is_all: dict[str, bool] = found[name][0]
        if isinstance(dtype, pl.List):
            schema[name] = dtype if name in decodable else pl.String()
        elif isinstance(dtype, pl.String) or not is_all["any"]:
            schema[name] = pl.String() if dtype is None else dtype
        else:
            schema[name] = next((_SCALARS[key] for key in _SCALARS if is_all[key]), pl.String())
    return schema


def scan_csv(file: DataFile, schema: Mapping[str, pl.DataType]) -> pl.LazyFrame:
    """Scan a file with the dtypes of its columns."""
    return _read_texts(file).with_columns(_typed(name, dtype) for name, dtype in schema.items())


def _typed(name: str, dtype: pl.DataType) -> pl.Expr:
    text = pl.col(name)
    if isinstance(dtype, pl.List):
        return text.str.json_decode(dtype)
    if isinstance(dtype, pl.Boolean):
        return text.str.to_lowercase() == "true"
    return text.cast(dtype)


def _decodable(texts: pl.LazyFrame, lists: Mapping[str, pl.DataType]) -> Iterable[str]:
    """Yield the list columns whose texts are JSON lists."""
    for name, dtype in lists.items():
        try:
            texts.select(pl.col(name).str.json_decode(dtype)).collect()
        except pl.exceptions.PolarsError:
            continue
        yield name


def _read_texts(file: DataFile) -> pl.LazyFrame:
    """Scan a file with all columns as text."""
    source: Path | bytes = file.path
    with open_binary(file) as stream:
        header = read_line(stream, file, 1)
        if file.held is not None or file.compression is not None:
            source = header + read_whole(stream, file)
    separator = csv_separator(header.rstrip(b"\r\n")) or ","
    try:
        return pl.scan_csv(source, separator=separator, infer_schema=False, glob=False)
    except pl.exceptions.PolarsError as error:
        raise _unreadable(file, error) from error


def _unreadable(file: DataFile, error: Exception) -> SourceError:
    reason = str(error).partition("\n")[0]
    return SourceError(
        f"{find_damage([file.name]) or file.name}: cannot be read as CSV ({reason}). Hint: it must be UTF-8, with a header "
        "and as many fields in every row."
    )
