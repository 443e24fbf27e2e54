"""Counts of labeled steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from ttsframe._exprs import in_order
from ttsframe.readers.step_formats.nodes import step_paths
from ttsframe.readers.step_formats.step_format import Labels
from ttsframe.readers.step_formats.writing import right_or_wrong

_SOLUTION = ("source_file", "problem_id", "solution_id")


class StepSummary(NamedTuple):
    """Counts of steps and labels, and where solutions first go wrong."""

    counts: dict[str, int]
    """Numbers of problems, solutions and steps; of steps labeled right, wrong and neutral, and of
    unlabeled ones; of solutions with a label."""
    first_errors: pl.DataFrame
    """`step` (Int64, null for labeled solutions without a wrong step) and `n_solutions`."""
    mean_soft: float | None
    """Mean of the soft values; None without any."""


def main_paths(steps: pl.DataFrame) -> pl.DataFrame:
    """Keep one row per step of a solution: each path of a tree, or the alternative that was continued."""
    if {"node", "parent", "problem", "text"} <= set(steps.columns):
        return step_paths(steps)
    return steps.filter("is_on_path") if "is_on_path" in steps.columns else steps


def summarize_steps(
    steps: pl.DataFrame, *, right_above: float | None = None, by: Sequence[str] = ()
) -> StepSummary:
    """Count steps, labels and first errors; soft values above a right_above are labels."""
    labeled = _labeled(steps, right_above)
    right, is_neutral = pl.col("__label"), pl.col("__is_neutral")
    keys = [*by, *(name for name in _SOLUTION if name in steps.columns and name not in by)]
    soft = pl.col("soft") if "soft" in steps.columns else pl.lit(None, dtype=pl.Float64)
    solutions = pl.struct(keys).n_unique()
    n = labeled.select(
        n_problems=pl.col("problem_id").n_unique(),
        n_solutions=solutions,
        n_steps=pl.len(),
        n_right=right.sum(),
        n_wrong=(~right).sum(),
        n_neutral=is_neutral.sum(),
        n_unlabelled=(right.is_null() & ~is_neutral).sum(),
        n_valued=soft.count(),
    ).row(0, named=True)
    paths = _labeled(main_paths(steps), right_above)
    by_solution = paths.group_by(keys).agg(
        step=pl.col("step").filter(~right).min(), has_label=right.is_not_null().any()
    )
    judged = by_solution.filter("has_label")
    first_errors = judged.group_by("step").agg(n_solutions=pl.len()).sort("step", nulls_last=True)
    counts = {**n, "n_paths": by_solution.height, "n_judged": judged.height}
    return StepSummary(counts, first_errors, labeled.select(in_order(soft).list.mean()).item())


def with_labels(steps: pl.DataFrame, *, right_above: float | None = None) -> pl.DataFrame:
    """Keep one row per step of a solution, with its label in `is_correct`."""
    labeled = _labeled(main_paths(steps), right_above)
    return labeled.with_columns(is_correct=pl.col("__label")).drop("__label", "__is_neutral")


def _labeled(steps: pl.DataFrame, right_above: float | None) -> pl.DataFrame:
    """Drop rows of the bare problem, and add the label of each step."""
    kept = steps.filter(pl.col("step") >= 0)
    if "text" in kept.columns and kept["text"].null_count() < kept.height:
        kept = kept.filter(pl.col("text").is_not_null())
    labels = right_or_wrong(kept, Labels(neutral=None, right_above=right_above))
    is_neutral = pl.col("rating") == 0 if "rating" in kept.columns else pl.lit(value=False)
    return kept.with_columns(
        pl.coalesce(*labels.values(), pl.lit(None, dtype=pl.Boolean)).alias("__label"),
        is_neutral.fill_null(value=False).alias("__is_neutral"),
    )
