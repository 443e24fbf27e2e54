"""Rules about columns: that they are there, with a dtype that can be used."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import polars as pl

from ttsframe.schema import TRAJECTORY_COLUMNS
from ttsframe.validation.finding import Finding, Found


def missing_columns(schema: pl.Schema) -> Iterator[Found]:
    """Find the columns without which nothing can be counted.

    Parameters
    ----------
    schema
        Schema of the frame.

    Yields
    ------
    Found
        One per missing column.
    """
    hints = {
        "problem_id": "name the column that tells problems apart: rename={'yours': 'problem_id'}.",
        "attempt": "tts.renumber_attempts(frame) numbers the attempts of a problem in row order.",
    }
    for name, hint in hints.items():
        if name not in schema:
            message = f"no column {name!r}; found: {schema.names()}"
            yield Found(Finding("missing_column", "error", name, 1, message, (), hint))


def wrong_dtypes(schema: pl.Schema) -> Iterator[Found]:
    """Find the columns that have the name of one with a meaning, and a dtype that it cannot have.

    Parameters
    ----------
    schema
        Schema of the frame.

    Yields
    ------
    Found
        One per such column; no other rule looks at it.
    """
    for name, dtype in schema.items():
        if name in TRAJECTORY_COLUMNS and not fits(name, dtype):
            wanted = TRAJECTORY_COLUMNS[name].dtype
            message = f"column {name!r} is {dtype}, must be {wanted}"
            cast = f"pl.col({name!r}).cast(pl.{str(wanted).replace('(', '(pl.')})"
            hint = f"frame.with_columns({cast}), or see what wrote it."
            yield Found(Finding("wrong_dtype", "error", name, 1, message, (), hint))


def fits(name: str, dtype: pl.DataType) -> bool:
    """Tell whether a column can be used as the column of `trajectories` that has its name.

    Parameters
    ----------
    name
        Name of a column that has a meaning.
    dtype
        The dtype that it has: Null fits all, any integer an integer, any number a float, and
        Categorical and Enum fit String.

    Returns
    -------
    bool
        True where it can.
    """
    wanted = TRAJECTORY_COLUMNS[name].dtype
    is_text = isinstance(dtype, pl.String | pl.Categorical | pl.Enum)
    if dtype in {pl.Null(), wanted}:
        return True
    if isinstance(wanted, pl.List):
        return isinstance(dtype, pl.List) and fits("score", pl.Series(dtype=dtype.inner).dtype)
    if name == "problem_id":
        return is_text or dtype.is_integer()
    if wanted.is_integer():
        return dtype.is_integer()
    return dtype.is_numeric() if wanted.is_float() else wanted == pl.String and is_text


def working_columns(schema: pl.Schema, known: Collection[str]) -> list[pl.Expr]:
    """Select the columns that rules can look at, in dtypes that they can rely on.

    Parameters
    ----------
    schema
        Schema of the frame.
    known
        Names to keep.

    Returns
    -------
    list[pl.Expr]
        One expression per name: numbers as Float64, attempts as Int64, Null as what it should be.
    """
    exprs = []
    for name in schema.names():
        if name in known and name in TRAJECTORY_COLUMNS:
            wanted = TRAJECTORY_COLUMNS[name].dtype
            if wanted.is_integer():
                exprs.append(pl.col(name).cast(pl.Int64))
            elif wanted.is_float() or wanted.is_nested() or schema[name] == pl.Null:
                exprs.append(pl.col(name).cast(wanted))
            else:
                exprs.append(pl.col(name))
        elif name in known:
            exprs.append(pl.col(name))
    return exprs
