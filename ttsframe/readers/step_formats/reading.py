"""Tools for reading formats of steps: ids, one row per step, fields as columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import polars as pl

from ttsframe._settings import setting
from ttsframe.errors import ColumnsError
from ttsframe.readers.engine.dtypes import struct_fields
from ttsframe.readers.engine.table import Table, add_problem_id, cast_columns, problem_hash
from ttsframe.readers.step_formats.step_format import STEP_COLUMNS

_TEXT_SEPARATOR = "\x1e"
"""Separates the texts of a solution where they are hashed; saved labels are paired by the hash."""

_ALLOWED = {"problem_id", "solution_id", "gold", "solution"}
"""Columns of steps that rows of any format may have."""


def cast_source(
    table: Table,
    dtypes: Mapping[str, pl.DataType],
    *,
    made: Collection[str] = (),
    own: Collection[str] = (),
) -> Table:
    """Cast the columns of a format, and refuse others, not its own, that are named like a column to be added."""
    reserved = {*STEP_COLUMNS, *made} - (_ALLOWED - set(made)) - set(own)
    for name in table.schema:
        if name in reserved or name.startswith("__"):
            raise ColumnsError(
                f"{', '.join(table.row_words)}: column {name!r} has the name of a column that reading adds. "
                f"Hint: {setting('rename', {name: 'source_' + name.strip('_')})} keeps it beside that."
            )
    return cast_columns(table, dtypes)


def add_ids(table: Table, texts: pl.Expr) -> Table:
    """Add `problem_id` and `solution_id`: those of the source, else hashes of the texts."""
    given = [name for name in ("problem_id", "solution_id") if name in table.schema]
    nulls = {f"{name!r} is null": pl.col(name).is_null() for name in given}
    if nulls:
        table = table._replace(frame=check_rows(table, table.frame, first_fault(nulls)))
    identified = add_problem_id(table, ("problem_id",), "problem")
    if "solution_id" in identified.schema:
        frame = identified.frame.with_columns(pl.col("solution_id").cast(pl.String))
        return identified._replace(frame=frame)
    joined = texts.list.eval(pl.element().fill_null("")).list.join(_TEXT_SEPARATOR).fill_null("")
    run = [name for name in ("source_file",) if name in identified.schema]
    frame = identified.frame.with_columns(problem_hash(joined).alias("solution_id")).with_columns(
        number_duplicates(pl.col("solution_id"), [*run, "problem_id", "solution_id"])
    )
    return identified._replace(
        frame=frame, schema={**identified.schema, "solution_id": pl.String()}
    )


def number_duplicates(names: pl.Expr, within: Sequence[str]) -> pl.Expr:
    """Make equal names distinct: the second gets the suffix `-2`, and so on."""
    occurrence = pl.int_range(1, pl.len() + 1).over(within)
    return pl.when(occurrence == 1).then(names).otherwise(pl.format("{}-{}", names, occurrence))


def check_rows(table: Table, frame: pl.LazyFrame, fault: pl.Expr) -> pl.LazyFrame:
    """Raise at collection where a fault is not null, naming file and row, or leave the row out."""
    return table.check(
        frame.with_columns(fault.alias("__fault")),
        pl.col("__fault").is_not_null(),
        ["__fault"],
        lambda row: str(row["__fault"]),
    ).drop("__fault")


def is_no_share(value: pl.Expr) -> pl.Expr:
    """Return whether a value is there and not within 0 and 1."""
    return ~value.is_between(0, 1) | value.is_nan()


def first_fault(faults: Mapping[str, pl.Expr]) -> pl.Expr:
    """Return the first fault whose condition is true, or null."""
    return pl.coalesce(pl.when(broken).then(pl.lit(fault)) for fault, broken in faults.items())


def explode_steps(frame: pl.LazyFrame, lists: Sequence[str]) -> pl.LazyFrame:
    """Turn a row per solution into a row per step; a solution without steps keeps a row, step -1."""
    n = pl.col(lists[0]).list.len()
    return (
        frame
        .with_columns(pl.int_ranges(n, dtype=pl.Int64).alias("step"))
        .explode("step", *lists, empty_as_null=True, keep_nulls=True)
        .with_columns(pl.col("step").fill_null(-1))
    )


def unpack_fields(
    column: str, dtype: pl.DataType, names: Mapping[str, str], prefix: str
) -> list[pl.Expr]:
    """Turn the fields of a struct into columns; a field without a name becomes `prefix.field`."""
    return [
        pl.col(column).struct.field(field).alias(names.get(field, f"{prefix}.{field}"))
        for field in struct_fields(dtype)
    ]
