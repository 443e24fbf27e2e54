"""Inference from paired differences: interval, test and correction, as expressions."""

from __future__ import annotations

from statistics import NormalDist
from typing import Final

import numpy as np
import polars as pl

from ttsframe._typing import Correction
from ttsframe.statistics.intervals import FLAT, student_t_interval

TIE: Final = 1e-9
"""Values closer than this are equal: means of the same numbers differ by rounding."""

_FEW: Final = 6
"""Fewer differences than this, all of one sign, are not significant at 5 % in a sign test."""


def paired_inference(*, confidence_level: float, is_clustered: bool) -> dict[str, pl.Expr]:
    """Build `ci_low`, `ci_high`, `test` and `p_value` from sums over pairs, null below two units."""
    # The sums are `n_pairs`, `n_units` (pairs or clusters), `n_unequal` (units that differ),
    # `difference`, `standard_error`, `n_wins`, `n_losses`, `gained` and `lost` (sums of positive and
    # of negative differences, both without sign), and `is_fractional`.
    n_units = pl.col("n_units").cast(pl.Float64)
    difference = pl.col("difference")
    is_known = pl.col("n_units") > 1
    is_rough = pl.col("standard_error") <= FLAT
    student = student_t_interval(
        "difference",
        "standard_error",
        "n_units",
        confidence_level=confidence_level,
        bounds=(-1.0, 1.0),
    )
    low, high = (student.struct.field(name) for name in ("ci_low", "ci_high"))
    if is_clustered:
        test = pl.lit("clustered_t")
        # Clusters without any spread have equal differences.
        gains = [(sign * difference).clip(lower_bound=0.0) * n_units for sign in (1.0, -1.0)]
    else:
        gains = [pl.col("gained"), pl.col("lost")]
        is_rough |= (pl.col("n_unequal") < _FEW) | ~pl.col("is_fractional")
        test = pl.when("is_fractional").then(pl.lit("paired_t")).otherwise(pl.lit("mcnemar"))
    z = NormalDist().inv_cdf((1.0 + confidence_level) / 2.0)
    win, loss = ((gain + 1.0) / (n_units + 2.0) for gain in gains)
    half = z * ((win + loss - (win - loss) ** 2) / (n_units + 2.0)).sqrt()
    # At low levels of confidence the middle, which is drawn towards 0, may be too far from the estimate.
    rough_low = pl.min_horizontal(win - loss - half, difference).clip(-1.0, 1.0)
    rough_high = pl.max_horizontal(win - loss + half, difference).clip(-1.0, 1.0)
    low = pl.when(is_rough).then(rough_low).otherwise(low)
    high = pl.when(is_rough).then(rough_high).otherwise(high)
    inputs = ["difference", "standard_error", "n_units", "n_unequal", "n_wins", "n_losses"]
    p_value = pl.struct(*inputs, is_exact=test == "mcnemar").map_batches(
        _p_values, return_dtype=pl.Float64, is_elementwise=True
    )
    built = {"ci_low": low, "ci_high": high, "test": test, "p_value": p_value}
    return {name: pl.when(is_known).then(expression) for name, expression in built.items()}


def _p_values(rows: pl.Series) -> pl.Series:
    """Return two-sided p-values: McNemar's exact ones, else those of Student's t."""
    from scipy.special import bdtr, stdtr

    table = rows.struct.unnest()
    difference, error, n_units, n_unequal, n_wins, n_losses = (
        table[name].cast(pl.Float64).fill_null(0.0).to_numpy() for name in table.columns[:-1]
    )
    is_exact = table["is_exact"].fill_null(value=False).to_numpy()
    exact = 2.0 * bdtr(np.minimum(n_wins, n_losses), (n_wins + n_losses).astype(np.int64), 0.5)
    # Equal differences have no spread, so t is infinite; the sign test then bounds the p-value.
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.abs(difference) / error
    student = 2.0 * stdtr(np.maximum(n_units - 1.0, 1.0), -statistic)
    by_signs = np.exp2(1.0 - n_unequal)
    bounded = np.where(n_unequal > 0, np.fmax(student, by_signs), 1.0)
    return pl.Series(rows.name, np.minimum(np.where(is_exact, exact, bounded), 1.0))


def with_adjusted(table: pl.LazyFrame, correction: Correction) -> pl.LazyFrame:
    """Add `p_adjusted`, corrected for the number of non-null p-values; changes the order of rows."""
    p_value = pl.col("p_value")
    n_tests = p_value.count().cast(pl.Float64)
    rank = p_value.rank("ordinal").cast(pl.Float64)
    by_size = table.sort("p_value", nulls_last=True)
    corrected = {
        "none": p_value,
        "bonferroni": p_value * n_tests,
        # The rank of sorted values is their position, so cumulating keeps them in order.
        "holm": (p_value * (n_tests + 1.0 - rank)).cum_max(),
        "benjamini_hochberg": (p_value * n_tests / rank).cum_min(reverse=True),
    }
    return by_size.with_columns(p_adjusted=corrected[correction].clip(upper_bound=1.0))
