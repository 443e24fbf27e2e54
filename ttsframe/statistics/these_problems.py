"""Uncertainty for the problems of a run: what other attempts at the same problems would change."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import Final

import numpy as np
import polars as pl

from ttsframe._exprs import in_order
from ttsframe.statistics.extrapolation.model import Counts
from ttsframe.statistics.extrapolation.power_law import unbiased_passes

ADDED: Final = ("share_from_samples", "interval_for", "reason")
"""Columns that a curve for these problems has besides its own."""


def sampling_columns(schema: pl.Schema) -> dict[str, pl.Expr]:
    """Build the variance of each pass@k over other attempts, and what rules it out."""
    n = pl.col("n_attempts") if "n_attempts" in schema else pl.lit(None)
    k = pl.col("budget") if "budget" in schema else pl.lit(None)
    is_oracle = pl.col("selector") == "oracle" if "selector" in schema else pl.lit(value=False)
    is_all = pl.col("subsets") == "all" if "subsets" in schema else pl.lit(value=False)
    n, k = n.cast(pl.Float64), k.cast(pl.Float64)
    is_known = is_all & (is_oracle | (k == 1.0))
    fields = pl.struct(
        pl.when(is_known).then(pl.col("value").cast(pl.Float64)).alias("value"),
        n.alias("n"),
        k.alias("k"),
    )
    variance = fields.map_batches(_variances, return_dtype=pl.Float64, is_elementwise=True)
    is_single, is_beyond_half = n < 2.0, 2.0 * k > n
    # Averaged over problems, each is above 0 where it holds for one of them.
    return {
        "sampling_variance": variance,
        "n_subsets": n / k,
        "is_prefix": (~is_all).cast(pl.Float64),
        "is_single": is_single.cast(pl.Float64),
        "is_beyond_half": is_beyond_half.cast(pl.Float64),
        "is_unlike": (variance.is_null() & ~is_single & ~is_beyond_half).cast(pl.Float64),
    }


def _variances(rows: pl.Series) -> pl.Series:
    """Return the jackknife's variance of each pass@k, null where k attempts are more than half."""
    table = rows.struct.unnest()
    distinct = table.unique().filter(
        pl.col("value").is_not_null() & (pl.col("n") >= 2.0) & (2.0 * pl.col("k") <= pl.col("n"))
    )
    found = []
    for (n, k), group in distinct.group_by("n", "k"):
        # The number of correct attempts follows from pass@k, or does not matter where that is 1.
        c = np.arange(float(n) + 1.0)
        ones = np.ones_like(c)
        passes = unbiased_passes(Counts(ones * n, c, ones), np.array([float(k)]))[:, 0]
        without = unbiased_passes(Counts(ones * (n - 1.0), c, ones), np.array([float(k)]))[:, 0]
        fall = np.diff(without, prepend=without[0])
        variance = (n - 1.0) / n * c * (n - c) / n * fall**2
        value = group["value"].to_numpy()
        place = np.abs(passes[None, :] - value[:, None]).argmin(axis=1)
        is_pass = np.abs(passes[place] - value) < 1e-9
        found.append(
            group.with_columns(variance=pl.Series(np.where(is_pass, variance[place], np.nan)))
        )
    if not found:
        return pl.Series(rows.name, [None] * len(rows), dtype=pl.Float64)
    joined = table.join(pl.concat(found), on=["value", "n", "k"], how="left", maintain_order="left")
    return joined["variance"].fill_nan(None).alias(rows.name)


def for_these_problems(confidence_level: float) -> list[pl.Expr]:
    """Build the columns of a curve that differ if its interval is for the same problems."""
    z = NormalDist().inv_cdf((1.0 + confidence_level) / 2.0)
    n_problems = pl.col("n_problems").cast(pl.Float64)
    reason = _reason("n_problems")
    is_known = reason.is_null()
    variance = pl.col("sampling_variance") / n_problems
    # The added term is the width of Wilson's interval if all attempts, or none, are right.
    n = n_problems * pl.col("n_subsets")
    half = z * (variance + z * z / (4.0 * n * n)).sqrt()
    low, high = pl.col("accuracy") - half, pl.col("accuracy") + half
    share = variance / pl.col("standard_error") ** 2
    return [
        pl.when(is_known).then(variance.sqrt()).alias("standard_error"),
        pl.when(is_known).then(low.clip(0.0, 1.0)).alias("ci_low"),
        pl.when(is_known).then(high.clip(0.0, 1.0)).alias("ci_high"),
        pl
        .when(is_known & (pl.col("standard_error") > 0.0))
        .then(share)
        .alias("share_from_samples"),
        pl.lit("these_problems").alias("interval_for"),
        reason.alias("reason"),
    ]


def _reason(n_problems: str) -> pl.Expr:
    """Say why the interval of a row is not known, null where it is."""
    return (
        pl
        .when(pl.col(n_problems) == 0)
        .then(pl.lit("no problem counts"))
        .when(pl.col("is_prefix") > 0.0)
        .then(pl.lit("the first attempts are one subset; expected_accuracy averages all"))
        .when(pl.col("is_single") > 0.0)
        .then(pl.lit("one attempt at a problem"))
        .when(pl.col("is_beyond_half") > 0.0)
        .then(pl.lit("budget above half of the attempts at a problem"))
        .when((pl.col("is_unlike") > 0.0) | pl.col("n_subsets").is_null())
        .then(pl.lit("known for pass@k over all subsets and for budgets of 1 only"))
    )


def pairs_of_these_problems(
    table: pl.LazyFrame,
    sides: pl.LazyFrame,
    pairs: pl.LazyFrame,
    line: Sequence[str],
    *,
    confidence_level: float,
    is_shared: bool,
) -> pl.LazyFrame:
    """Replace the inference of compared pairs by that for other attempts at the same problems."""
    # `sides` has a row per side of a pair, with the columns of `sampling_columns`; `is_shared` says
    # that both sides read the same attempts, whose luck would have to be counted once.
    z = NormalDist().inv_cdf((1.0 + confidence_level) / 2.0)
    unit = [*line, "problem_id"]
    n_of_side = [
        pl.when(is_side).then("n_subsets").sum().alias(name)
        for name, is_side in (("n_first", ~pl.col("is_baseline")), ("n_second", "is_baseline"))
    ]
    flags = pl.col("is_prefix", "is_single", "is_beyond_half", "is_unlike").max()
    summed = (
        sides
        .join(pairs.filter("is_counted").select(unit), on=unit, how="semi", nulls_equal=True)
        .group_by(line)
        .agg(
            in_order(pl.col("sampling_variance")).list.sum(),
            pl.col("n_subsets").min(),
            *n_of_side,
            flags,
        )
    )
    same = pl.lit("both sides read the same attempts") if is_shared else pl.lit(None, pl.String)
    reason = pl.coalesce(same, _reason("n_pairs"))
    is_known = reason.is_null()
    error = pl.col("sampling_variance").sqrt() / pl.col("n_pairs").cast(pl.Float64)
    ends = z * z / 4.0 * (pl.col("n_first") ** -2 + pl.col("n_second") ** -2)
    wide = (error**2 + ends).sqrt()
    difference = pl.col("difference")
    p_value = (difference / wide).abs().map_batches(_two_sided, return_dtype=pl.Float64)
    built = {
        "standard_error": error,
        "ci_low": (difference - z * wide).clip(-1.0, 1.0),
        "ci_high": (difference + z * wide).clip(-1.0, 1.0),
        "test": pl.lit("sampling_z"),
        "interval": pl.lit("sampling_z"),
        "p_value": p_value,
    }
    return table.join(summed, on=[*line], how="left", nulls_equal=True).with_columns(
        *[pl.when(is_known).then(value).alias(name) for name, value in built.items()],
        interval_for=pl.lit("these_problems"),
        reason=reason,
    )


def _two_sided(z: pl.Series) -> pl.Series:
    """Return two-sided p-values of the normal distribution."""
    from scipy.special import ndtr

    return pl.Series(z.name, 2.0 * ndtr(-z.to_numpy()), dtype=pl.Float64)
