"""What a row of a curve says in words, for charts, tables and pages alike."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import polars as pl

from ttsframe.schema import CURVE_SCHEMA

LEFT_OUT: Final = ("short", "unscored", "undefined", "ungraded")
"""Why a problem is left out of a curve, as its columns `n_<status>` count it."""

CURVE_COLUMNS: Final = frozenset({*CURVE_SCHEMA, "nominal_budget", "agreement"} - {"subsets"})
"""Columns of a curve that do not tell runs apart; `subsets` does, where it varies."""


def quantity_of(columns: Collection[str]) -> str:
    """Return what a curve averages: "accuracy", or "agreement" of a run that is not graded.

    Parameters
    ----------
    columns
        Names of its columns.

    Returns
    -------
    str
        The name of the column.
    """
    return "agreement" if "agreement" in columns else "accuracy"


def percent(value: pl.Expr) -> pl.Expr:
    """Write a fraction as a percentage with one decimal.

    Parameters
    ----------
    value
        Float64 expression.

    Returns
    -------
    pl.Expr
        String, null where the value is.
    """
    return pl.concat_str((value * 100).round(1).cast(pl.String), pl.lit("%"))


def interval() -> pl.Expr:
    """Write the interval of a curve's row.

    Returns
    -------
    pl.Expr
        String, null where an end is unknown.
    """
    return pl.concat_str(percent(pl.col("ci_low")), pl.lit(" to "), percent(pl.col("ci_high")))


def left_out() -> pl.Expr:
    """Write how many problems a curve's row leaves out, by status.

    Returns
    -------
    pl.Expr
        String, "none" where all problems are averaged.
    """
    parts = [
        pl.when(pl.col(f"n_{status}") > 0).then(
            pl.concat_str(pl.col(f"n_{status}"), pl.lit(f" {status}"))
        )
        for status in LEFT_OUT
    ]
    text = pl.concat_str(parts, separator=", ", ignore_nulls=True)
    return pl.when(text.str.len_bytes() > 0).then(text).otherwise(pl.lit("none"))


def counted(counts: Sequence[int], noun: str) -> str:
    """Write a count, or the range of several, with its noun.

    Parameters
    ----------
    counts
        One or more counts.
    noun
        Its singular.

    Returns
    -------
    str
        Such as "1 problem" or "3 to 5 problems".
    """
    low, high = min(counts), max(counts)
    number = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    return f"{number} {noun}{'' if low == high == 1 else 's'}"


def shorten(text: str, width: int) -> str:
    """Put a text on one line of at most ``width`` characters, its beginning and end kept.

    Parameters
    ----------
    text
        Any text.
    width
        Number of characters.

    Returns
    -------
    str
        The line.
    """
    line = " ".join(text.split())
    if len(line) <= width:
        return line
    tail = width // 3
    return f"{line[: width - tail - 1]}…{line[-tail:]}"
