"""Step scores over the course of right and wrong attempts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import polars as pl

from ttsframe._exprs import in_order
from ttsframe._wording import counted
from ttsframe.defaults import RUN
from ttsframe.report.parts import Context, Figure, Part, note_more_runs
from ttsframe.report.runs import NoTableError, RunData
from ttsframe.report.wording import (
    N_RUNS_MAX,
    format_decimals,
    keep_first_runs,
    split_runs,
    start_sentence,
)
from ttsframe.verifier import step_profile


def make(data: RunData, _: pl.DataFrame) -> dict[str, Any]:
    """Average the step scores along the attempt, if there are any."""
    attempts = data.attempts
    if "step_scores" not in attempts.columns:
        return {"profile": None, "step_ends": None}
    if "is_correct" not in attempts.columns:
        attempts = attempts.with_columns(is_correct=pl.lit(None, pl.Boolean))
    profile = data.profile
    if profile is None:
        profile = step_profile(
            attempts,
            same_problems=True,
            by=data.by,
            cluster=data.options.cluster,
            confidence_level=data.options.confidence_level,
        )
    if profile["mean_score"].count() == 0:
        return {"profile": None, "step_ends": None}
    if attempts["step_scores"].list.len().max() == 1:
        raise NoTableError("each attempt has a single step")
    return {"profile": profile, "step_ends": _average_ends(attempts, data.by)}


def _average_ends(attempts: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Average the first and the last step score of right and of wrong attempts, at the same problems."""
    run = [RUN, *by]
    steps = pl.col("step_scores").cast(pl.List(pl.Float64))
    has_both = pl.col("first_step", "last_step").count().over(*run, "problem_id") == 2
    cells = (
        attempts
        .lazy()
        .filter(pl.col("is_correct").is_not_null())
        # Before the groups, which would gather the lists.
        .select(
            *run,
            "problem_id",
            "is_correct",
            first_step=steps.list.first().fill_nan(None),
            last_step=steps.list.last().fill_nan(None),
            n_steps=steps.list.len(),
        )
        .group_by(*run, "problem_id", "is_correct")
        .agg(
            in_order(pl.col("first_step", "last_step")).list.mean(),
            pl.col("n_steps").max(),
        )
        .collect()
        .with_columns(has_both.name.prefix("has_"))
        .with_columns(is_paired=(pl.col("has_first_step") & pl.col("has_last_step")))
    )
    is_counted = pl.col("is_paired") | ~pl.col("is_paired").any().over(run)
    return (
        cells
        .filter(is_counted)
        .drop_nulls(["first_step", "last_step"])
        .sort(*run, "is_correct", "problem_id")
        .group_by(*run, "is_correct", maintain_order=True)
        .agg(
            in_order(pl.col("first_step", "last_step")).list.mean(),
            pl.len().alias("n_problems"),
            pl.col("n_steps").max(),
            pl.col("is_paired").all(),
        )
        .drop(RUN)
    )


def answer(context: Context, _profile: pl.DataFrame, step_ends: pl.DataFrame) -> list[str]:
    """Compare the scores of right and wrong attempts at the last and the first step."""
    texts = []
    for prefix, rows in split_runs(step_ends, context.by):
        if rows.height < 2:
            continue
        wrong, right = rows.sort("is_correct").to_dicts()
        where = f"at the {counted([right['n_problems']], 'problem')} with right and wrong attempts"
        if not right["is_paired"]:
            where = (
                f"no problem has right and wrong attempts; over {right['n_problems']:,} and "
                f"{wrong['n_problems']:,} different ones"
            )
        first = (
            "; each attempt has a single step"
            if max(right["n_steps"], wrong["n_steps"]) == 1
            else f"; of the first step, {format_decimals(right['first_step'], 2)} and "
            f"{format_decimals(wrong['first_step'], 2)}"
        )
        text = (
            f"{where}, the mean score of the last step is {format_decimals(right['last_step'], 2)} in "
            f"right ones and {format_decimals(wrong['last_step'], 2)} in wrong ones{first}."
        )
        texts.append(start_sentence(prefix, text))
    return texts


def draw(context: Context, profile: pl.DataFrame, _step_ends: pl.DataFrame) -> list[Part]:
    """Draw the step profile."""
    from ttsframe import charts

    caption = (
        "Verifier scores of the steps, by position in the attempt. The further "
        "apart the lines are, the better the scores separate right attempts from wrong ones. An attempt "
        "with fewer steps than points has no score at some points; its last step is always at the last "
        "point. Means are taken per attempt, then per problem, then over problems with right and wrong "
        "attempts, or over all problems where none has both."
    )
    chart = partial(
        charts.step_profile,
        keep_first_runs(profile, context.by),
        confidence_level=context.confidence_level,
    )
    return [
        Figure("step-scores", caption, chart),
        *note_more_runs(profile, context.by, N_RUNS_MAX),
    ]
