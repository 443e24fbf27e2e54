"""What a format to write is, and the checks and tables that the formats share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl

from ttsframe.errors import DataError
from ttsframe.readers.engine.dtypes import as_instance, struct_fields
from ttsframe.schema import require_columns, require_kind


class Writer(NamedTuple):
    """One format that trajectories are written in."""

    summary: str
    """One line that describes the format."""
    write: Callable[[pl.LazyFrame, Path], list[str]]
    """Writes a file, and returns the columns that it does not hold."""
    suffix: str
    """The suffix of its files."""


class Problems(NamedTuple):
    """A run with one row per problem."""

    frame: pl.DataFrame
    """In the order of the first attempts: lists of the attempts' values, in their order, and carried columns."""
    carried: list[str]
    """Columns with one value per problem."""
    lost: list[str]
    """Columns whose values differ within a problem, or that JSON has no type for."""


def one_run(attempts: pl.LazyFrame) -> pl.DataFrame:
    """Collect a run, sorted by problem in the order of the rows, and check that it is one run."""
    schema = require_columns(attempts, ["problem_id", "attempt"])
    require_kind(schema, "an integer", "attempt")
    rows = attempts.collect()
    unit = ["problem_id", "attempt"]
    for name in unit:
        if rows[name].null_count():
            raise DataError(f"{name} is null in {rows[name].null_count():,} rows, must name one.")
    repeated = rows.select(unit).is_duplicated()
    if repeated.any():
        row = rows.filter(repeated).sort(unit).row(0, named=True)
        raise DataError(
            f"problem_id {row['problem_id']!r}: attempt {row['attempt']} appears twice, and the format holds "
            "one run. Hint: filter the rows of one model, seed or file, and write each to a file of its own."
        )
    numbered = rows.with_row_index("__place")
    return numbered.sort(pl.col("__place").min().over("problem_id"), "attempt").drop("__place")


def group_problems(rows: pl.DataFrame, lists: Sequence[str], taken: Sequence[str]) -> Problems:
    """Put the attempts at a problem into one row: `lists` as lists, other columns if they agree."""
    others = [name for name in rows.columns if name not in {*lists, *taken, "problem_id"}]
    plain = [name for name in others if is_json(rows.schema[name])]
    problem = rows.group_by("problem_id", maintain_order=True)
    # Nested values are compared as text: they cannot be counted.
    compared = [
        pl.struct(name).struct.json_encode().alias(name)
        if rows.schema[name].is_nested()
        else pl.col(name)
        for name in plain
    ]
    keyed = rows.select("problem_id", *compared)
    n_values = keyed.group_by("problem_id").agg(pl.col(plain).n_unique())
    carried = [name for name in plain if (n_values[name] <= 1).all()]
    frame = problem.agg(
        pl.col([name for name in lists if name in rows.columns]), pl.col(carried).first()
    )
    return Problems(frame, carried, [name for name in others if name not in carried])


def holds_numbers(rows: pl.DataFrame) -> bool:
    """Return whether attempts are numbered from 0 without gaps, as their place in a list says."""
    place = pl.int_range(pl.len()).over("problem_id")
    return bool(rows.select((pl.col("attempt").cast(pl.Int64) == place).all()).item())


def is_json(dtype: pl.DataType) -> bool:
    """Return whether JSON has a type for the values."""
    if isinstance(dtype, pl.List | pl.Array):
        return is_json(as_instance(dtype.inner))
    if isinstance(dtype, pl.Struct):
        fields = struct_fields(dtype)
        return bool(fields) and all(is_json(inner) for inner in fields.values())
    is_number = dtype.is_float() or (dtype.is_integer() and dtype not in {pl.Int128, pl.UInt128})
    return is_number or isinstance(
        dtype, pl.String | pl.Boolean | pl.Null | pl.Categorical | pl.Enum
    )


def check_json(frame: pl.DataFrame) -> None:
    """Refuse NaN and infinities, which JSON cannot represent."""
    for column in frame.get_columns():
        if has_nonfinite(column):
            raise DataError(
                f"{column.name!r} holds NaN or infinite numbers, which JSON cannot represent. Hint: "
                f"pl.col({column.name!r}).fill_nan(None), or format='long_form'."
            )


def has_nonfinite(values: pl.Series) -> bool:
    """Return whether a number, at any depth, is NaN or infinite."""
    dtype = values.dtype
    if isinstance(dtype, pl.List | pl.Array):
        return has_nonfinite(values.explode(empty_as_null=False, keep_nulls=False))
    if isinstance(dtype, pl.Struct):
        return any(has_nonfinite(values.struct.field(name)) for name in struct_fields(dtype))
    return dtype.is_float() and bool((~values.is_finite()).any())


def write_lines(frame: pl.DataFrame, path: Path) -> None:
    """Write JSON lines."""
    check_json(frame)
    frame.write_ndjson(path)
