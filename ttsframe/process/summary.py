"""What a table of labelled steps holds, in numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from ttsframe.readers.step_formats.nodes import step_paths
from ttsframe.readers.step_formats.step_format import Labels
from ttsframe.readers.step_formats.writing import right_or_wrong

_SOLUTION = ("source_file", "problem_id", "solution_id")


class StepSummary(NamedTuple):
    """How many steps there are, how they are labelled, and where solutions first go wrong."""

    counts: dict[str, int]
    """Of problems, solutions and steps; of the steps those that are labelled right, wrong and neutral,
    and the others; of the solutions those with a label."""
    first_errors: pl.DataFrame
    """``step`` (Int64, null for solutions with labels and none of them wrong) and ``n_solutions``."""
    mean_soft: float | None
    """Of the steps that have a soft value."""


def main_paths(steps: pl.DataFrame) -> pl.DataFrame:
    """Keep one row per step of a solution: each path of a tree, the alternative that was continued."""
    if {"node", "parent", "problem", "text"} <= set(steps.columns):
        return step_paths(steps)
    return steps.filter("is_on_path") if "is_on_path" in steps.columns else steps


def summarize_steps(
    steps: pl.DataFrame, *, threshold: float | None = None, by: Sequence[str] = ()
) -> StepSummary:
    """Count steps, labels and first errors; with a threshold soft values above it are labels."""
    labelled = _labelled(steps, threshold)
    right, is_neutral = pl.col("__label"), pl.col("__is_neutral")
    keys = [*by, *(name for name in _SOLUTION if name in steps.columns and name not in by)]
    soft = pl.col("soft") if "soft" in steps.columns else pl.lit(None, dtype=pl.Float64)
    solutions = pl.struct(keys).n_unique()
    n = labelled.select(
        n_problems=pl.col("problem_id").n_unique(),
        n_solutions=solutions,
        n_steps=pl.len(),
        n_right=right.sum(),
        n_wrong=(~right).sum(),
        n_neutral=is_neutral.sum(),
        n_unlabelled=(right.is_null() & ~is_neutral).sum(),
        n_valued=soft.count(),
    ).row(0, named=True)
    paths = _labelled(main_paths(steps), threshold)
    verdicts = paths.group_by(keys).agg(
        step=pl.col("step").filter(~right).min(), has_label=right.is_not_null().any()
    )
    judged = verdicts.filter("has_label")
    first_errors = judged.group_by("step").agg(n_solutions=pl.len()).sort("step", nulls_last=True)
    counts = {**n, "n_paths": verdicts.height, "n_judged": judged.height}
    return StepSummary(counts, first_errors, labelled.select(soft.mean()).item())


def with_labels(steps: pl.DataFrame, *, threshold: float | None = None) -> pl.DataFrame:
    """Keep one row per step of a solution, with whatever labels it as ``is_correct``."""
    labelled = _labelled(main_paths(steps), threshold)
    return labelled.with_columns(is_correct=pl.col("__label")).drop("__label", "__is_neutral")


def _labelled(steps: pl.DataFrame, threshold: float | None) -> pl.DataFrame:
    """Return the steps themselves, without the problem before them, and what their labels say."""
    own = steps.filter(pl.col("step") >= 0)
    if "text" in own.columns and own["text"].null_count() < own.height:
        own = own.filter(pl.col("text").is_not_null())
    says = right_or_wrong(own, Labels(neutral=None, threshold=threshold))
    rating = pl.col("rating") == 0 if "rating" in own.columns else pl.lit(value=False)
    label = pl.coalesce(*says.values(), pl.lit(None, dtype=pl.Boolean))
    return own.with_columns(
        label.alias("__label"), rating.fill_null(value=False).alias("__is_neutral")
    )
