"""Values of `problems`: which ones count, the interval of their mean, and that each appears once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl

from ttsframe._exprs import raise_where
from ttsframe._typing import Status
from ttsframe.errors import DataError
from ttsframe.statistics.intervals import FEW, student_t_interval, wilson_interval

SEVERITY: Final[dict[Status, int]] = {
    "ok": 0,
    "ungraded": 1,
    "undefined": 2,
    "unscored": 3,
    "short": 4,
}
"""Rank of each status; a problem that is left out counts once, under its worst status."""

_BY_HINT: Final = (
    "name the column that tells runs or models apart in by=(...), and the one that numbers seeds in "
    "replicates=(...)."
)


def value_and_severity() -> dict[str, pl.Expr]:
    """Build `value`, null unless the status is ok, and `severity`, the rank of the status."""
    status, value = pl.col("status"), pl.col("value").cast(pl.Float64).fill_nan(None)
    severity = (
        pl.when((status == "ok") & value.is_null()).then(pl.lit("ungraded")).otherwise(status)
    )
    return {
        "value": pl.when(status == "ok").then(value),
        "severity": severity.replace_strict(SEVERITY, return_dtype=pl.Int8),
    }


def mean_interval(
    n_values: str,
    confidence_level: float,
    *,
    mean: str = "accuracy",
    n_problems: str = "n_problems",
) -> pl.Expr:
    """Build the interval of a mean over problems: Wilson's for 0 and 1, else Student's."""
    # Over the columns `accuracy`, `total`, `standard_error`, `n_problems`, `is_fractional`, and
    # `n_values` values behind `total`. Wilson's also where too few are correct, or wrong, for
    # Student's to cover.
    wilson = wilson_interval("total", n_values, confidence_level=confidence_level)
    student = student_t_interval(
        mean, "standard_error", n_problems, confidence_level=confidence_level
    )
    # The tolerance keeps a total of thirds on one side of the limit whatever its rounding is.
    few = pl.min_horizontal("total", pl.col(n_values) - pl.col("total")) < FEW - 1e-9
    return pl.when(pl.col("is_fractional") & ~few).then(student).otherwise(wilson)


def raise_if_repeated(
    unit: Mapping[str, str], where: str = "on one curve", hint: str = _BY_HINT
) -> pl.Expr:
    """Build a filter that raises if `n_rows` exceeds `n_expected` in a row of the frame."""
    # `unit` maps the columns that identify a row to the caller's names of them.
    is_repeated = pl.col("n_rows") > pl.col("n_expected")
    described = pl.struct(is_repeated.alias("broken"), *unit, "n_rows", "n_expected")
    return raise_where(described, lambda rows: _repeated(rows, unit, where, hint))


def describe_row(row: Mapping[str, object], unit: Mapping[str, str]) -> str:
    """Name a row by its columns, under the caller's names: "model 'a', problem_id 'p1'"."""
    return ", ".join(f"{name} {row[key]!r}" for key, name in unit.items() if row[key] is not None)


def _repeated(rows: pl.DataFrame, unit: Mapping[str, str], where: str, hint: str) -> DataError:
    """Describe the first problem that has too many rows."""
    row = rows.sort([*unit]).row(0, named=True)
    return DataError(
        f"{describe_row(row, unit)}: {row['n_rows']} rows {where}, expected {row['n_expected']}. "
        f"Hint: {hint}"
    )
