"""Agreement of step labels with the scores of a verifier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import polars as pl

from ttsframe.process.problem_means import cohen_kappa, mean_over_problems, with_schema
from ttsframe.verifier import first_error, processbench_f1

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
    steps: pl.DataFrame, keys: Sequence[str], thresholds: Sequence[float], confidence_level: float
) -> pl.DataFrame:
    """Return the rows of `THRESHOLDS`: labels against scores cut at each threshold."""
    cut = pl.concat([
        steps.filter(_IS_USED).with_columns(threshold=threshold, is_accepted=threshold <= _SCORE)
        for threshold in thresholds
    ]).with_columns(agreement=(pl.col("is_accepted") == _LABEL).cast(pl.Float64))
    groups, accepted = [*keys, "threshold"], pl.col("is_accepted")
    counts = cut.group_by(groups).agg(
        (_LABEL & accepted).sum().alias("n_right_accepted"),
        (_LABEL & ~accepted).sum().alias("n_right_rejected"),
        (~_LABEL & accepted).sum().alias("n_wrong_accepted"),
        (~_LABEL & ~accepted).sum().alias("n_wrong_rejected"),
        cohen_kappa((_LABEL & accepted).mean(), _LABEL.mean(), accepted.mean()).alias("kappa"),
    )
    means = mean_over_problems(cut, groups, {"agreement": ""}, confidence_level)
    return with_schema(means.join(counts, on=groups, nulls_equal=True), keys, THRESHOLDS)


def separation_table(
    steps: pl.DataFrame, keys: Sequence[str], confidence_level: float
) -> pl.DataFrame:
    """Return the row of `SEPARATION`: how well scores separate right steps from wrong ones."""
    solution = [*keys, "problem_id", "solution_id"]
    used = steps.filter(_IS_USED)
    pooled = _areas(used, keys).rename({"area": "auroc"}).drop("is_judged")
    within = _areas(used, solution)
    means = mean_over_problems(
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
    return with_schema(filled, keys, SEPARATION)


def first_errors_table(
    steps: pl.DataFrame,
    keys: Sequence[str],
    thresholds: Sequence[float],
    confidence_level: float,
) -> pl.DataFrame:
    """Return the rows of `FIRST_ERRORS`; the steps of a solution must follow each other in order."""
    solutions = steps.group_by(*keys, "problem_id", "solution_id", maintain_order=True).agg(
        _SCORE.alias("step_scores"), _LABEL.alias("step_labels")
    )
    judged = processbench_f1(solutions, error_threshold=thresholds, by=keys)
    true_error = first_error("step_labels")
    agreements = pl.concat([
        solutions.select(
            *keys,
            "problem_id",
            pl.lit(threshold).alias("threshold"),
            (first_error("step_scores", threshold) == true_error)
            .cast(pl.Float64)
            .alias("agreement"),
        )
        for threshold in thresholds
    ])
    groups = [*keys, "threshold"]
    means = mean_over_problems(agreements, groups, {"agreement": ""}, confidence_level)
    return with_schema(judged.join(means, on=groups, nulls_equal=True), keys, FIRST_ERRORS)


def _areas(used: pl.DataFrame, group: Sequence[str]) -> pl.DataFrame:
    """Return the AUROC of each group from the ranks of its right steps; null if all are right or wrong."""
    n_right, n_wrong = _LABEL.sum().cast(pl.Float64), (~_LABEL).sum().cast(pl.Float64)
    n_wins = (_SCORE.rank("average") * _LABEL).sum() - n_right * (n_right + 1.0) / 2.0
    is_judged = (n_right > 0.0) & (n_wrong > 0.0)
    return used.group_by(group, maintain_order=True).agg(
        area=pl.when(is_judged).then(n_wins / (n_right * n_wrong)), is_judged=is_judged
    )
