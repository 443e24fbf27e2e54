"""Labels of steps against the scores that a verifier gives the same steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import polars as pl

from ttsframe.process.tables import kappa, over_problems, typed
from ttsframe.verifier import first_error, processbench_f1
from ttsframe.verifier.sorted_scores import areas_by_problem

THRESHOLDS: Final[Mapping[str, type[pl.DataType]]] = {
    "threshold": pl.Float64,
    "n_right_accepted": pl.UInt32,
    "n_right_rejected": pl.UInt32,
    "n_wrong_accepted": pl.UInt32,
    "n_wrong_rejected": pl.UInt32,
    "agreement": pl.Float64,
    "standard_error": pl.Float64,
    "ci_low": pl.Float64,
    "ci_high": pl.Float64,
    "kappa": pl.Float64,
    "n_problems": pl.UInt32,
}

SEPARATION: Final[Mapping[str, type[pl.DataType]]] = {
    "auroc": pl.Float64,
    "auroc_within": pl.Float64,
    "standard_error": pl.Float64,
    "ci_low": pl.Float64,
    "ci_high": pl.Float64,
    "n_steps": pl.UInt32,
    "n_right": pl.UInt32,
    "n_unscored": pl.UInt32,
    "n_unlabelled": pl.UInt32,
    "n_solutions": pl.UInt32,
    "n_judged": pl.UInt32,
    "n_problems": pl.UInt32,
}

FIRST_ERRORS: Final[Mapping[str, type[pl.DataType]]] = {
    "threshold": pl.Float64,
    "agreement": pl.Float64,
    "standard_error": pl.Float64,
    "ci_low": pl.Float64,
    "ci_high": pl.Float64,
    "first_error_accuracy": pl.Float64,
    "no_error_accuracy": pl.Float64,
    "f1": pl.Float64,
    "n_wrong": pl.UInt32,
    "n_right": pl.UInt32,
    "n_unscored": pl.UInt32,
    "n_unlabelled": pl.UInt32,
    "n_problems": pl.UInt32,
}

_LABEL: Final = pl.col("label")
_SCORE: Final = pl.col("score")
_IS_USED: Final = _LABEL.is_not_null() & _SCORE.is_not_null()


def thresholds_table(
    steps: pl.DataFrame, keys: Sequence[str], limits: Sequence[float], confidence_level: float
) -> pl.DataFrame:
    """Make the table of agreement of labels with scores cut at a threshold.

    Parameters
    ----------
    steps
        One row per step, with `keys`, `problem_id`, `label` and `score`.
    keys
        Columns that get rows of their own, at least one.
    limits
        Thresholds.
    confidence_level
        Coverage of the intervals.

    Returns
    -------
    pl.DataFrame
        `THRESHOLDS` behind the keys, sorted.
    """
    if not limits:
        return typed(steps.clear(), keys, THRESHOLDS)
    cut = pl.concat([
        steps.filter(_IS_USED).with_columns(threshold=limit, is_accepted=limit <= _SCORE)
        for limit in limits
    ]).with_columns(agreement=(pl.col("is_accepted") == _LABEL).cast(pl.Float64))
    groups, accepted = [*keys, "threshold"], pl.col("is_accepted")
    counts = cut.group_by(groups).agg(
        (_LABEL & accepted).sum().alias("n_right_accepted"),
        (_LABEL & ~accepted).sum().alias("n_right_rejected"),
        (~_LABEL & accepted).sum().alias("n_wrong_accepted"),
        (~_LABEL & ~accepted).sum().alias("n_wrong_rejected"),
        kappa((_LABEL & accepted).mean(), _LABEL.mean(), accepted.mean()).alias("kappa"),
    )
    means = over_problems(cut, groups, {"agreement": ""}, confidence_level)
    return typed(means.join(counts, on=groups, nulls_equal=True), keys, THRESHOLDS)


def separation_table(
    steps: pl.DataFrame, keys: Sequence[str], confidence_level: float
) -> pl.DataFrame:
    """Make the table of how well scores tell right steps from wrong ones.

    Parameters
    ----------
    steps
        One row per step, with `keys`, `problem_id`, `solution_id`, `label` and `score`.
    keys
        Columns that get rows of their own, at least one.
    confidence_level
        Coverage of the intervals.

    Returns
    -------
    pl.DataFrame
        `SEPARATION` behind the keys, sorted.
    """
    solution = [*keys, "problem_id", "solution_id"]
    used = steps.filter(_IS_USED)
    pooled = _areas(used, keys).rename({"area": "auroc"}).drop("is_judged")
    within = _areas(used, solution)
    means = over_problems(
        within.rename({"area": "auroc_within"}), keys, {"auroc_within": ""}, confidence_level
    ).drop("n_problems")
    counts = steps.group_by(keys).agg(
        _IS_USED.sum().alias("n_steps"),
        (_IS_USED & _LABEL).sum().alias("n_right"),
        (_LABEL.is_not_null() & _SCORE.is_null()).sum().alias("n_unscored"),
        _LABEL.null_count().alias("n_unlabelled"),
        pl.col("problem_id").filter(_IS_USED).n_unique().alias("n_problems"),
    )
    judged = within.group_by(keys).agg(
        pl.len().alias("n_solutions"), pl.col("is_judged").sum().alias("n_judged")
    )
    for table in (pooled, means, judged):
        counts = counts.join(table, on=keys, how="left", nulls_equal=True)
    filled = counts.with_columns(pl.col("n_solutions", "n_judged").fill_null(0))
    return typed(filled, keys, SEPARATION)


def first_errors_table(
    steps: pl.DataFrame,
    keys: Sequence[str],
    threshold: float | Sequence[float],
    confidence_level: float,
) -> pl.DataFrame:
    """Make the table of how often scores find a solution's first error.

    Parameters
    ----------
    steps
        One row per step, sorted by solution and step, with `keys`, `problem_id`, `solution_id`,
        `label` and `score`.
    keys
        Columns that get rows of their own, at least one.
    threshold
        Steps with a score below are taken for errors.
    confidence_level
        Coverage of the intervals.

    Returns
    -------
    pl.DataFrame
        `FIRST_ERRORS` behind the keys, sorted.
    """
    solutions = steps.group_by(*keys, "problem_id", "solution_id", maintain_order=True).agg(
        _SCORE.alias("step_scores"), _LABEL.alias("step_labels")
    )
    judged = processbench_f1(solutions, error_threshold=threshold, by=keys)
    limits = judged["threshold"].unique().sort().to_list()
    if not limits:
        return typed(judged, keys, FIRST_ERRORS)
    labelled = first_error("step_labels")
    found = pl.concat([
        solutions.select(
            *keys,
            "problem_id",
            pl.lit(limit).alias("threshold"),
            (first_error("step_scores", limit) == labelled).cast(pl.Float64).alias("agreement"),
        )
        for limit in limits
    ])
    groups = [*keys, "threshold"]
    means = over_problems(found, groups, {"agreement": ""}, confidence_level)
    return typed(judged.join(means, on=groups, nulls_equal=True), keys, FIRST_ERRORS)


def _areas(used: pl.DataFrame, group: Sequence[str]) -> pl.DataFrame:
    """Return the area under the curve of each group, null where it has right or wrong steps alone."""
    ordered = used.sort(group)
    number = ordered.select(pl.struct(group).rle_id().cast(pl.Int64)).to_series()
    groups = ordered.select(group).filter(number != number.shift(1, fill_value=-1))
    is_right = ordered["label"].to_numpy()
    areas = areas_by_problem(
        number.to_numpy(), is_right, ordered["score"].cast(pl.Float64).to_numpy()
    )
    return groups.with_columns(
        pl.Series("area", areas, nan_to_null=True),
        pl.Series("is_judged", ~np.isnan(areas)),
    )
