"""Problems as units: which ones count, and that each counts once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl

from ttsframe._exprs import raise_where
from ttsframe._settings import BY
from ttsframe._typing import Status
from ttsframe.errors import DataError
from ttsframe.statistics.intervals import student_t_interval, wilson_interval

SEVERITY: Final[dict[Status, int]] = {
    "ok": 0,
    "ungraded": 1,
    "undefined": 2,
    "unscored": 3,
    "short": 4,
}
"""A problem that is left out is counted once, under its worst status."""


def judged() -> dict[str, pl.Expr]:
    """Build `value`, null unless the row counts, and `severity`, the rank of its status.

    Returns
    -------
    dict[str, pl.Expr]
        Expressions over `value` and `status` of `problems`, by name.
    """
    status, value = pl.col("status"), pl.col("value").cast(pl.Float64).fill_nan(None)
    severity = (
        pl.when((status == "ok") & value.is_null()).then(pl.lit("ungraded")).otherwise(status)
    )
    return {
        "value": pl.when(status == "ok").then(value),
        "severity": severity.replace_strict(SEVERITY, return_dtype=pl.Int8),
    }


_FEW: Final = 5.0
"""Below this sum of values, or of what they lack to 1, their spread says too little."""


def mean_interval(n_values: str, confidence_level: float) -> pl.Expr:
    """Build the interval of a mean over problems.

    Values of 0 and 1 get Wilson's. Fractional ones get Student's, unless so few problems' worth are
    right, or wrong, that it would not cover.

    Parameters
    ----------
    n_values
        Column with the number of values behind `total`.
    confidence_level
        Coverage, in (0, 1).

    Returns
    -------
    pl.Expr
        Struct of `ci_low` and `ci_high`, over `accuracy`, `total`, `standard_error`, `n_problems`
        and `is_fractional`.
    """
    wilson = wilson_interval("total", n_values, confidence_level=confidence_level)
    student = student_t_interval(
        "accuracy", "standard_error", "n_problems", confidence_level=confidence_level
    )
    # A total of thirds that is exactly as many must not fall on either side by its rounding.
    few = pl.min_horizontal("total", pl.col(n_values) - pl.col("total")) < _FEW - 1e-9
    return pl.when(pl.col("is_fractional") & ~few).then(student).otherwise(wilson)


_TOLD_APART: Final = (
    f"name the column that tells runs or models apart in {BY}, and the one that numbers seeds in "
    "replicates=(...)."
)


def once(unit: Mapping[str, str], where: str = "on one curve", hint: str = _TOLD_APART) -> pl.Expr:
    """Build the filter that raises where a problem has several rows in one place.

    Parameters
    ----------
    unit
        Columns that identify the place, with the names that the caller gave them; the frame has
        `n_rows` and `n_expected` besides.
    where
        What the place is, for the message.
    hint
        Way out, for the message.

    Returns
    -------
    pl.Expr
        Boolean expression, true in every row.
    """
    is_repeated = pl.col("n_rows") > pl.col("n_expected")
    described = pl.struct(is_repeated.alias("broken"), *unit, "n_rows", "n_expected")
    return raise_where(described, lambda rows: _repeated(rows, unit, where, hint))


def place(row: Mapping[str, object], unit: Mapping[str, str]) -> str:
    """Name a row by its columns, under the names that the caller gave them.

    Parameters
    ----------
    row
        Values by column.
    unit
        Columns to name, with the caller's names.

    Returns
    -------
    str
        Such as "model 'a', problem_id 'p1'".
    """
    return ", ".join(f"{name} {row[key]!r}" for key, name in unit.items() if row[key] is not None)


def _repeated(rows: pl.DataFrame, unit: Mapping[str, str], where: str, hint: str) -> DataError:
    """Describe the first problem that has too many rows in one place."""
    row = rows.sort([*unit]).row(0, named=True)
    return DataError(
        f"{place(row, unit)}: {row['n_rows']} rows {where}, expected {row['n_expected']}. Hint: {hint}"
    )
