"""Rules about columns: that they are there, with a dtype that can be used."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import polars as pl

from ttsframe._settings import setting
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
        "problem_id": "name the column that tells problems apart: "
        f"{setting('rename', {'yours': 'problem_id'})}.",
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
        return isinstance(dtype, pl.List) and (dtype.inner == pl.Null or dtype.inner.is_numeric())
    if name == "problem_id":
        return is_text or dtype.is_integer()
    if wanted.is_integer():
        return dtype.is_integer()
    return dtype.is_numeric() if wanted.is_float() else wanted == pl.String and is_text


def as_expected(schema: pl.Schema, known: Collection[str]) -> list[pl.Expr]:
    """Cast the columns that rules look at to dtypes that they can rely on.

    Parameters
    ----------
    schema
        Schema of the frame.
    known
        Columns of `trajectories` that are there and fit.

    Returns
    -------
    list[pl.Expr]
        Casts of any number to Float64, of attempts to Int64, of Null to what it should be.
    """
    dtypes = {name: TRAJECTORY_COLUMNS[name].dtype for name in known if name != "problem_id"}
    if "attempt" in dtypes:
        dtypes["attempt"] = pl.Int64()  # as UInt32, counting down from 0 would wrap around
    return [
        pl.col(name).cast(dtype, strict=False)
        for name, dtype in dtypes.items()
        if schema[name] != dtype
    ]
