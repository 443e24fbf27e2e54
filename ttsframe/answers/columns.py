"""Columns of answer strings: their dtype, and functions applied once per distinct string."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from ttsframe.errors import ColumnsError

__all__ = ["as_answers", "as_strings", "per_distinct"]


def as_strings(values: pl.Series, parameter: str) -> pl.Series:
    """Return a String, Categorical, Enum or all-null column as strings; `parameter` names it in the error."""
    if values.dtype == pl.String:
        return values
    if isinstance(values.dtype, pl.Categorical | pl.Enum | pl.Null):
        return values.cast(pl.String)
    raise ColumnsError(
        f"{parameter} is the column {values.name!r} of dtype {values.dtype}, must be String. "
        f"Hint: pl.col({values.name!r}).cast(pl.String)."
    )


def as_answers(values: pl.Series, parameter: str) -> pl.Series:
    """Return a column of answers as strings; dates are answers too."""
    if isinstance(values.dtype, pl.Date | pl.Datetime):
        return values.cast(pl.String)
    return as_strings(values, parameter)


def per_distinct(values: pl.Series, function: Callable[[str], str | None]) -> pl.Series:
    """Apply a pure function once per distinct string; null where it returns None."""
    distinct = values.drop_nulls().unique()
    results = pl.Series([function(value) for value in distinct], dtype=pl.String)
    return values.replace_strict(distinct, results, default=None, return_dtype=pl.String)
