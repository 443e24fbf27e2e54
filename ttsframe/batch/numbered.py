"""Write rows to numbered files, and find these files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import polars as pl
from polars.io.partition import FileProviderArgs

__all__ = ["numbered_files", "row_hash", "sink_numbered"]

_NUMBER: Final = "__number"


def sink_numbered(
    frame: pl.LazyFrame, number: pl.Expr, folder: Path, row_group_size: int
) -> pl.LazyFrame:
    """Plan to write rows to one file per number, in their order."""
    folder.mkdir(parents=True)
    return frame.with_columns(number.alias(_NUMBER)).sink_parquet(
        pl.PartitionBy(
            folder,
            key=_NUMBER,
            include_key=False,
            approximate_bytes_per_file=None,
            file_path_provider=_numbered_name,
        ),
        compression="lz4",
        row_group_size=row_group_size,
        lazy=True,
    )


def _numbered_name(file: FileProviderArgs) -> str:
    return f"{file.partition_keys.item():05}.{file.index_in_partition}.parquet"


def numbered_files(folder: Path, pattern: str, number: int) -> list[Path]:
    """Find the files of a number, in the order of their rows."""
    return sorted(folder.glob(f"{pattern}{number:05}.*.parquet"))


def row_hash(schema: Mapping[str, pl.DataType], keys: Sequence[str]) -> pl.Expr:
    """Return a UInt64 hash of some columns that depends only on their values."""
    coded = pl.Categorical | pl.Enum
    values = [
        pl.col(key).cast(pl.String) if isinstance(schema[key], coded) else pl.col(key)
        for key in keys
    ]
    return pl.struct(values).hash(0)
