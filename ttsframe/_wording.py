"""Words for the rows of a curve, the same in charts, tables and pages."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import takewhile
from typing import Final

import polars as pl

from ttsframe.schema import CLUSTER_COLUMNS, CURVE_SCHEMA

LEFT_OUT: Final = ("short", "unscored", "undefined", "ungraded")
"""Why a problem is left out of a curve, as its columns `n_<status>` count it."""

CURVE_COLUMNS: Final = frozenset(
    {
        *CURVE_SCHEMA,
        *CLUSTER_COLUMNS,
        "nominal_budget",
        "agreement",
        "interval_for",
        "is_moved",
    }
    - {"subsets"}
)
"""Columns of a curve that do not identify a run; `subsets` does where it varies."""


def quantity_of(columns: Collection[str]) -> str:
    """Return the column that a curve averages: "agreement" for a run that is not graded."""
    return "agreement" if "agreement" in columns else "accuracy"


def percent(value: pl.Expr) -> pl.Expr:
    """Write a fraction as a percentage with one decimal."""
    return pl.concat_str((value * 100).round(1).cast(pl.String), pl.lit("%"))


def interval() -> pl.Expr:
    """Write the interval of a curve's row, null where a bound is unknown."""
    return pl.concat_str(percent(pl.col("ci_low")), pl.lit(" to "), percent(pl.col("ci_high")))


def left_out() -> pl.Expr:
    """Write how many problems a curve's row leaves out, by status, or "none"."""
    parts = [
        pl.when(pl.col(f"n_{status}") > 0).then(
            pl.concat_str(pl.col(f"n_{status}"), pl.lit(f" {status}"))
        )
        for status in LEFT_OUT
    ]
    text = pl.concat_str(parts, separator=", ", ignore_nulls=True)
    return pl.when(text.str.len_bytes() > 0).then(text).otherwise(pl.lit("none"))


def is_unreached() -> pl.Expr:
    """Return whether a curve's row is of a budget that no problem of the run reaches."""
    others = [pl.col(f"n_{status}") for status in LEFT_OUT if status != "short"]
    return (pl.col("n_problems") == 0) & (pl.col("n_short") > 0) & (pl.sum_horizontal(others) == 0)


def is_minority() -> pl.Expr:
    """Return whether a curve's row averages fewer than half of the problems that it could."""
    return (pl.col("n_problems").cast(pl.Int64) < count_left_out()) & ~is_unreached()


def count_left_out() -> pl.Expr:
    """Count the problems that a curve's row leaves out."""
    counts = [pl.col(f"n_{status}").cast(pl.Int64) for status in LEFT_OUT]
    return pl.sum_horizontal(counts).alias("n_left_out")


def counted(counts: Sequence[int], noun: str) -> str:
    """Write a count, or the range of several, with its noun: "1 problem", "3 to 5 problems"."""
    low, high = min(counts), max(counts)
    number = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    return f"{number} {noun}{'' if low == high == 1 else 's'}"


def shorten(text: str, width: int) -> str:
    """Put a text on one line of at most `width` characters; its beginning and end are kept."""
    line = " ".join(text.split())
    if len(line) <= width:
        return line
    tail = width // 3
    return f"{line[: width - tail - 1]}…{line[-tail:]}"


def shorten_paths(paths: Sequence[str]) -> dict[str, str]:
    """Map each path to the part that tells it from the others; other texts stay as they are."""
    parts = [path.split("/") for path in paths]
    n_spare = min((len(path) for path in parts), default=0) - 1
    if n_spare < 1 or len(paths) < 2:
        return {path: path for path in paths}
    n_before = _count_shared(parts, n_spare)
    n_after = _count_shared([path[::-1] for path in parts], n_spare - n_before)
    return {
        path: "/".join(names[n_before : len(names) - n_after])
        for path, names in zip(paths, parts, strict=True)
    }


def _count_shared(paths: Sequence[Sequence[str]], n_max: int) -> int:
    """Count the parts that all paths begin with."""
    is_shared = (len({path[i] for path in paths}) == 1 for i in range(n_max))
    return sum(1 for _ in takewhile(bool, is_shared))


def units_of(columns: Collection[str]) -> str:
    """Name the units of the intervals of a table by its columns."""
    return "clusters of problems" if "n_clusters" in columns else "problems"
