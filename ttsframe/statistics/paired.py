"""Inference from paired differences: interval, test and correction, as expressions."""

from __future__ import annotations

from statistics import NormalDist
from typing import Final

import numpy as np
import polars as pl

from ttsframe._typing import ClusterTest, Correction, Flags, Floats, McNemar
from ttsframe.statistics.clusters import WildTest, wild_test
from ttsframe.statistics.intervals import FLAT, student_t_interval

TIE: Final = 1e-9
"""Values closer than this are equal: means of the same numbers differ by rounding."""

_WILD: Final = pl.Struct(dict.fromkeys(WildTest._fields, pl.Float64()))

_FEW: Final = 6
"""Fewer differences than this, all of one sign, are not significant at 5 % in a sign test."""


def paired_inference(
    *,
    confidence_level: float,
    is_clustered: bool,
    mcnemar: McNemar = "mid_p",
    cluster_test: ClusterTest = "t",
) -> dict[str, pl.Expr]:
    """Build `ci_low`, `ci_high`, `interval`, `test` and `p_value`, null below two units."""
    # From sums over pairs: `n_pairs`, `n_units` (pairs or clusters), `df` (only of clusters),
    # `n_unequal` (units that differ), `difference`, `standard_error`, `n_wins`, `n_losses`, `gained`
    # and `lost` (sums of positive and of negative differences, both without sign), `is_fractional`; for the
    # wild bootstrap also `wild_tests`, as `wild`.
    degrees = pl.col("df") if is_clustered else pl.col("n_units").cast(pl.Float64) - 1.0
    n_units = degrees + 1.0
    difference = pl.col("difference")
    is_known = pl.col("n_units") > 1
    is_rough = pl.col("standard_error") <= FLAT
    student = student_t_interval(
        "difference",
        "standard_error",
        n_units,
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
        of_counts = pl.lit(f"mcnemar_{mcnemar}")
        test = pl.when("is_fractional").then(pl.lit("paired_t")).otherwise(of_counts)
    z = NormalDist().inv_cdf((1.0 + confidence_level) / 2.0)
    win, loss = ((gain + 1.0) / (n_units + 2.0) for gain in gains)
    half = z * ((win + loss - (win - loss) ** 2) / (n_units + 2.0)).sqrt()
    # At low levels of confidence the middle, which is drawn towards 0, may be too far from the estimate.
    rough_low = pl.min_horizontal(win - loss - half, difference).clip(-1.0, 1.0)
    rough_high = pl.max_horizontal(win - loss + half, difference).clip(-1.0, 1.0)
    p_value = pl.struct(
        "difference",
        "standard_error",
        "n_unequal",
        degrees=degrees,
        fewer=pl.min_horizontal("n_wins", "n_losses"),
        n_differ=pl.col("n_wins") + pl.col("n_losses"),
        test=test,
    ).map_batches(_p_values, return_dtype=pl.Float64, is_elementwise=True)
    if cluster_test == "wild_bootstrap":
        wild = pl.col("wild")
        by_signs = 2.0 ** (1.0 - pl.col("n_unequal").cast(pl.Float64))
        of_wild = pl.max_horizontal(wild.struct.field("p_value"), by_signs)
        p_value = pl.when(is_rough).then(p_value).otherwise(of_wild)
        low, high = (wild.struct.field(name) for name in ("ci_low", "ci_high"))
        test = pl.lit("clustered_wild")
    # The bound on the p-value of a t-test holds for its interval, too.
    is_bounded = p_value > 1.0 - confidence_level
    low = pl.when(is_bounded).then(low.clip(upper_bound=0.0)).otherwise(low)
    high = pl.when(is_bounded).then(high.clip(lower_bound=0.0)).otherwise(high)
    named = test if is_clustered else pl.lit("student_t")
    built = {
        "ci_low": pl.when(is_rough).then(rough_low).otherwise(low),
        "ci_high": pl.when(is_rough).then(rough_high).otherwise(high),
        "interval": pl.when(is_rough).then(pl.lit("bonett_price")).otherwise(named),
        "test": test,
        "p_value": p_value,
    }
    return {name: pl.when(is_known).then(expression) for name, expression in built.items()}


def wild_tests(confidence_level: float) -> pl.Expr:
    """Build the wild test of each line: a column of its own, because it takes long."""
    # `totals` and `sizes` are lists of the clusters' sums of differences and numbers of pairs.
    return pl.struct("totals", "sizes", "standard_error").map_batches(
        lambda rows: _wild_tests(rows, confidence_level), return_dtype=_WILD
    )


def _wild_tests(rows: pl.Series, confidence_level: float) -> pl.Series:
    """Return the wild test of each row, null where its clusters have no spread."""
    found = [
        wild_test(np.array(row["totals"]), np.array(row["sizes"]), confidence_level)._asdict()
        if (row["standard_error"] or 0.0) > FLAT
        else None
        for row in rows
    ]
    return pl.Series(rows.name, found, dtype=_WILD)


def mcnemar_p(fewer: Floats, n_differ: Floats, *, is_mid_p: bool | Flags) -> Floats:
    """Return McNemar's two-sided p-values from the fewer of wins and losses, and their sum."""
    from scipy.special import bdtr

    n = n_differ.astype(np.int64)
    tail = bdtr(fewer, n, 0.5)
    before = np.where(fewer > 0, bdtr(np.maximum(fewer - 1.0, 0.0), n, 0.5), 0.0)
    p_values: Floats = np.minimum(tail + np.where(is_mid_p, before, tail), 1.0)
    return p_values


def _p_values(rows: pl.Series) -> pl.Series:
    """Return two-sided p-values: McNemar's, else those of Student's t."""
    from scipy.special import stdtr

    table = rows.struct.unnest()
    difference, error, n_unequal, degrees, fewer, n_differ = (
        table[name].cast(pl.Float64).fill_null(0.0).to_numpy() for name in table.columns[:-1]
    )
    test = table["test"].fill_null("").to_numpy()
    of_counts = mcnemar_p(fewer, n_differ, is_mid_p=test == "mcnemar_mid_p")
    # Equal differences have no spread, so t is infinite; the sign test then bounds the p-value.
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.abs(difference) / error
    student = 2.0 * stdtr(np.maximum(degrees, 1.0), -statistic)
    by_signs = np.exp2(1.0 - n_unequal)
    bounded = np.where(n_unequal > 0, np.fmax(student, by_signs), 1.0)
    is_of_counts = (test == "mcnemar_mid_p") | (test == "mcnemar_exact")
    return pl.Series(rows.name, np.minimum(np.where(is_of_counts, of_counts, bounded), 1.0))


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
