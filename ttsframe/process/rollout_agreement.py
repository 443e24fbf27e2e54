"""Agreement of hard labels from fewer rollouts with the labels from all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final

import numpy as np
import polars as pl

from ttsframe._exprs import in_order
from ttsframe.estimators.counting import mean_excess
from ttsframe.process.problem_means import cohen_kappa, mean_over_problems, with_schema

ROLLOUTS: Final[Mapping[str, type[pl.DataType]]] = {
    "n_rollouts": pl.UInt32,
    "hard": pl.Float64,
    "agreement": pl.Float64,
    "standard_error": pl.Float64,
    "ci_low": pl.Float64,
    "ci_high": pl.Float64,
    "kappa": pl.Float64,
    "repeat_agreement": pl.Float64,
    "repeat_standard_error": pl.Float64,
    "repeat_ci_low": pl.Float64,
    "repeat_ci_high": pl.Float64,
    "repeat_kappa": pl.Float64,
    "first_error_agreement": pl.Float64,
    "first_error_standard_error": pl.Float64,
    "first_error_ci_low": pl.Float64,
    "first_error_ci_high": pl.Float64,
    "soft_error": pl.Float64,
    "n_steps": pl.UInt32,
    "n_short": pl.UInt32,
    "n_solutions": pl.UInt32,
    "n_problems": pl.UInt32,
}


def rollouts_table(
    steps: pl.DataFrame,
    keys: Sequence[str],
    sizes: Sequence[int] | None,
    confidence_level: float,
) -> pl.DataFrame:
    """Return the rows of `ROLLOUTS`, by default for powers of two up to the median number of rollouts."""
    n = pl.col("n_rollouts").cast(pl.Int64)
    sampled = steps.with_columns(n, pl.col("n_correct").cast(pl.Int64)).filter(n > 0)
    ascending = sorted(set(sizes or _powers_of_two(sampled["n_rollouts"])))
    largest = ascending[-1]
    counted = sampled.filter(n >= largest)
    least = min(counted["n_rollouts"].to_list(), default=0)
    is_wrong = pl.col("n_correct") == 0
    solution = [*keys, "problem_id", "solution_id"]
    first_error = pl.when(is_wrong).then("step").min().over(solution)
    complete = sampled.select(
        *solution, "step", "n_rollouts", "n_correct", first_error.alias("first_error")
    ).filter((n >= largest).all().over(solution))
    short = sampled.group_by(keys).agg((n < largest).sum().cast(pl.UInt32).alias("n_short"))
    tables = [
        _of_size(counted, complete, keys, size, confidence_level, is_repeated=2 * size <= least)
        for size in ascending
    ]
    table = pl.concat(tables).join(short, on=keys, how="left", nulls_equal=True)
    return with_schema(table, keys, ROLLOUTS)


def _of_size(
    counted: pl.DataFrame,
    complete: pl.DataFrame,
    keys: Sequence[str],
    size: int,
    confidence_level: float,
    *,
    is_repeated: bool,
) -> pl.DataFrame:
    """Return the rows of one number of rollouts."""
    n, c = pl.col("n_rollouts"), pl.col("n_correct")
    hard, is_right = pl.col("hard"), c > 0
    # Two annotations of this size find a right rollout where one of twice the size does.
    twice = any_right(counted, 2 * size) if is_repeated else pl.lit(None, pl.Float64)
    rows = counted.select(
        *keys,
        "problem_id",
        any_right(counted, size).alias("hard"),
        is_right.cast(pl.Float64).alias("hard_by_all"),
        twice.alias("twice"),
        (n > size).alias("is_part"),
        # Unbiased variance of one rollout.
        pl.when(n > 1).then(c * (n - c) / (n * (n - 1)).cast(pl.Float64)).alias("variance"),
    ).with_columns(
        agreement=pl.when(pl.col("hard_by_all") > 0.0).then(hard).otherwise(1.0),
        repeat_agreement=1.0 + 2.0 * (hard - pl.col("twice")),
    )
    prefixes = {"agreement": "", "repeat_agreement": "repeat_"}
    means = mean_over_problems(rows, keys, prefixes, confidence_level)
    shares = rows.group_by(keys).agg(
        *[
            in_order(pl.col(name)).list.mean().alias(name)
            for name in ("hard", "hard_by_all", "twice", "variance")
        ],
        pl.col("is_part").any(),
        pl.len().alias("n_steps"),
    )
    # P(both are right) = 2 P(one is right) - P(any is right).
    twice_right = 2.0 * hard - pl.col("twice")
    before = pl.col("step") < pl.col("first_error")
    solutions = (
        complete
        .with_columns(any_right(complete, size))
        .group_by(*keys, "problem_id", "solution_id")
        .agg(
            pl
            .when(before.fill_null(value=True))
            .then("any_right")
            .otherwise(1.0)
            .product()
            .alias("first_error_agreement")
        )
    )
    errors = mean_over_problems(
        solutions, keys, {"first_error_agreement": "first_error_"}, confidence_level
    ).drop("n_problems")
    n_solutions = solutions.group_by(keys).agg(pl.len().alias("n_solutions"))
    for table in (shares, errors, n_solutions):
        means = means.join(table, on=keys, how="left", nulls_equal=True)
    ends = ("standard_error", "ci_low", "ci_high")
    # All rollouts agree with themselves, without uncertainty.
    compared = [*ends, *[f"first_error_{end}" for end in ends]]
    return means.with_columns(
        pl.when("is_part").then(pl.col(compared)),
        pl.lit(size).alias("n_rollouts"),
        pl.col("n_solutions").fill_null(0),
        cohen_kappa(hard, hard, pl.col("hard_by_all")).alias("kappa"),
        cohen_kappa(twice_right, hard, hard).alias("repeat_kappa"),
        (pl.col("variance") / size).sqrt().alias("soft_error"),
    ).drop("hard_by_all", "twice", "variance", "is_part")


def any_right(steps: pl.DataFrame, size: int) -> pl.Series:
    """Return the probability that any of `size` rollouts of a step is right, over all subsets."""
    n, c = (steps[name].to_numpy() for name in ("n_rollouts", "n_correct"))
    chances = mean_excess(n, c, np.full(len(n), size), above=np.zeros_like(n), most=np.ones_like(n))
    return pl.Series("any_right", chances.clip(0.0, 1.0))


def _powers_of_two(n_rollouts: pl.Series) -> list[int]:
    """Return the powers of two up to the median number of rollouts of a step."""
    most = int(median(n_rollouts.to_list() or [1]))
    return [2**i for i in range(most.bit_length())]
