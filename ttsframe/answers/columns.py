"""Columns of answer strings: their dtype, and functions applied once per distinct string."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import polars as pl

from ttsframe._typing import Flags, Integers
from ttsframe.errors import ColumnsError

__all__ = [
    "as_answers",
    "as_strings",
    "change_where",
    "computed",
    "keep_where",
    "map_distinct",
    "nothing_for",
    "only_where",
    "per_distinct",
    "prefer",
    "scattered",
    "true_where",
]


_FEW: Final = 200
"""Number of rows up to which a dictionary is faster than Arrow."""


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


def map_distinct(
    values: pl.Series, function: Callable[[list[str]], Iterable[str | None]]
) -> pl.Series:
    """Apply a function to the distinct strings of a column, and put its results where they stand."""
    if len(values) <= _FEW:
        strings = values.to_list()
        few = list(dict.fromkeys(string for string in strings if string is not None))
        known: dict[str | None, str | None] = dict(zip(few, function(few), strict=True))
        return pl.Series(values.name, [known.get(string) for string in strings], dtype=pl.String)
    # Twice as fast as `unique` and `replace_strict`, which hash each string twice more.
    encoded = values.rechunk().to_arrow().dictionary_encode()
    distinct = encoded.dictionary.to_pylist()
    results = pl.Series(values.name, [*function(distinct)], dtype=pl.String)
    return results.gather(pl.Series(encoded.indices, dtype=pl.UInt32))


def per_distinct(values: pl.Series, function: Callable[[str], str | None]) -> pl.Series:
    """Apply a pure function once per distinct string; null where it returns None."""
    return map_distinct(values, lambda distinct: map(function, distinct))


def computed(texts: pl.Series, *expressions: pl.Expr) -> pl.DataFrame:
    """Evaluate expressions of the column `text`: each method of a series would plan a query of its own."""
    return texts.to_frame("text").select_seq(*expressions)


def _flags(mask: pl.Series) -> Flags:
    """Return a mask as an array; null is false."""
    return (mask.fill_null(value=False) if mask.null_count() else mask).to_numpy()


def keep_where(values: pl.Series, mask: pl.Series) -> pl.Series:
    """Set the values outside the mask to null."""
    return values.zip_with(pl.Series(_flags(mask)), pl.Series([None], dtype=values.dtype))


def nothing_for(values: pl.Series) -> pl.Series:
    """Return a column of null strings of the same height."""
    return pl.Series([None], dtype=pl.String).new_from_index(0, len(values))


def prefer(values: pl.Series, otherwise: pl.Series) -> pl.Series:
    """Fill the nulls of one series from another."""
    return values.zip_with(values.is_not_null(), otherwise) if values.null_count() else values


def change_where(
    values: pl.Series, mask: pl.Series, function: Callable[[pl.Series], pl.Series]
) -> pl.Series:
    """Apply a function to some of the values; Polars would also search the strings behind nulls."""
    is_changed = _flags(mask)
    if not is_changed.any():
        return values
    if is_changed.all():
        return function(values)
    # in place, which copies no text, on a clone
    return values.clone().scatter(is_changed.nonzero()[0], function(values.filter(mask)))


def only_where(
    values: pl.Series, mask: pl.Series, function: Callable[[pl.Series], pl.Series]
) -> pl.Series:
    """Apply a function to some of the strings, and set the others to null."""
    return change_where(nothing_for(values), mask, lambda _: function(values.filter(mask)))


def true_where(
    values: pl.Series, mask: pl.Series, test: Callable[[pl.Series], pl.Series]
) -> pl.Series:
    """Test some of the strings; the others are false."""
    is_true = _flags(mask).copy()
    if is_true.any():
        is_true[is_true] = _flags(test(values.filter(mask)))
    return pl.Series(is_true)


def scattered(parts: list[pl.Series], places: list[Integers], height: int) -> pl.Series:
    """Put the values of some parts where they belong in a column; the rest is null."""
    nothing = pl.Series([None], dtype=parts[0].dtype if parts else pl.String)
    column = nothing.new_from_index(0, height)
    for part, rows in zip(parts, places, strict=True):
        column.scatter(rows, part)
    return column
