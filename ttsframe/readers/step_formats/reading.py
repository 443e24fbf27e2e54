"""What reading a format of steps is made of: ids, one row per step, fields as columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import polars as pl

from ttsframe._settings import setting
from ttsframe.errors import ColumnsError
from ttsframe.readers.engine.rows import instance
from ttsframe.readers.engine.table import Table, as_dtypes, identified, problem_hash
from ttsframe.readers.step_formats.step_format import STEP_COLUMNS

_BETWEEN_TEXTS = "\x1e"
"""Stands between the texts of a solution where they are hashed; saved labels pair by the result."""


_FROM_ANYWHERE = {"problem_id", "solution_id", "gold", "solution"}
"""Columns of steps that a row of any format may have besides its own."""


def typed(table: Table, dtypes: Mapping[str, pl.DataType], *, made: Collection[str] = ()) -> Table:
    """Cast the columns of a format; refuse others that have the name of one that reading makes."""
    reserved = {*STEP_COLUMNS, *made} - (_FROM_ANYWHERE - set(made))
    for name in table.schema:
        if name in reserved or name.startswith("__"):
            raise ColumnsError(
                f"{', '.join(table.row_words)}: column {name!r} has the name of one that reading makes. "
                f"Hint: {setting('rename', {name: 'source_' + name.strip('_')})} keeps it beside that."
            )
    return as_dtypes(table, dtypes)


def identify(table: Table, texts: pl.Expr, *, ids: Sequence[str] = ("problem_id",)) -> Table:
    """Add ``problem_id``, and ``solution_id``: the source's own, else the hash of the texts."""
    given = [name for name in (*ids, "solution_id") if name in table.schema]
    nulls = {f"{name!r} is null": pl.col(name).is_null() for name in given}
    if nulls:
        table = table._replace(frame=without_faults(table, table.frame, first_fault(nulls)))
    found = identified(table, ids, "problem")
    if "solution_id" in found.schema:
        frame = found.frame.with_columns(pl.col("solution_id").cast(pl.String))
        return found._replace(frame=frame)
    joined = texts.list.eval(pl.element().fill_null("")).list.join(_BETWEEN_TEXTS).fill_null("")
    run = [name for name in ("source_file",) if name in found.schema]
    frame = found.frame.with_columns(problem_hash(joined).alias("solution_id")).with_columns(
        numbered(pl.col("solution_id"), [*run, "problem_id", "solution_id"])
    )
    return found._replace(frame=frame, schema={**found.schema, "solution_id": pl.String()})


def numbered(names: pl.Expr, within: Sequence[str]) -> pl.Expr:
    """Tell equal names apart: the second gets ``-2`` behind it, and so on."""
    nth = pl.int_range(1, pl.len() + 1).over(within)
    return pl.when(nth == 1).then(names).otherwise(pl.format("{}-{}", names, nth))


def without_faults(table: Table, frame: pl.LazyFrame, fault: pl.Expr) -> pl.LazyFrame:
    """Raise at collection, naming file and row, where there is a fault; or leave the row out."""
    return table.check(
        frame.with_columns(fault.alias("__fault")),
        pl.col("__fault").is_not_null(),
        ["__fault"],
        lambda row: str(row["__fault"]),
    ).drop("__fault")


def first_fault(faults: Mapping[str, pl.Expr]) -> pl.Expr:
    """Return what is wrong with a row, by what must not be true of it; null where nothing is."""
    return pl.coalesce(pl.when(broken).then(pl.lit(why)) for why, broken in faults.items())


def explode_steps(frame: pl.LazyFrame, lists: Sequence[str]) -> pl.LazyFrame:
    """Turn a row per solution into a row per step; a solution without steps keeps a row, step -1."""
    n = pl.col(lists[0]).list.len()
    return (
        frame
        .with_columns(pl.int_ranges(n, dtype=pl.Int64).alias("step"))
        .explode("step", *lists, empty_as_null=True, keep_nulls=True)
        .with_columns(pl.col("step").fill_null(-1))
    )


def fields_of(dtype: pl.DataType) -> dict[str, pl.DataType]:
    """Return the fields of a struct, or of a list of structs; none of anything else."""
    inner = instance(dtype.inner) if isinstance(dtype, pl.List) else dtype
    if not isinstance(inner, pl.Struct):
        return {}
    return {field.name: instance(field.dtype) for field in inner.fields}


def unpacked(
    column: str, dtype: pl.DataType, names: Mapping[str, str], prefix: str
) -> list[pl.Expr]:
    """Turn the fields of a struct into columns, one that the format does not know into prefix.field."""
    return [
        pl.col(column).struct.field(field).alias(names.get(field, f"{prefix}.{field}"))
        for field in fields_of(dtype)
    ]


def canonical(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Put the columns that have a meaning first, in their order, and the others after them."""
    names = frame.collect_schema().names()
    known = [name for name in STEP_COLUMNS if name in names]
    return frame.select(*known, *(name for name in names if name not in STEP_COLUMNS))
