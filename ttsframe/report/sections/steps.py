"""Step scores over the course of right and wrong attempts."""

from __future__ import annotations

from functools import partial
from typing import Any

import polars as pl

from ttsframe.report.parts import Context, Figure, Part, note_more_runs
from ttsframe.report.runs import RunData
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
    if data.profile is not None:
        return {"profile": data.profile}
    attempts = data.attempts
    if "step_scores" not in attempts.columns:
        return {"profile": None}
    if "is_correct" not in attempts.columns:
        attempts = attempts.with_columns(is_correct=pl.lit(None, pl.Boolean))
    profile = step_profile(attempts, by=data.by, confidence_level=data.options.confidence_level)
    return {"profile": profile if profile["mean_score"].count() else None}


def answer(context: Context, profile: pl.DataFrame) -> list[str]:
    """Compare the scores of right and wrong attempts at the last and the first step."""
    texts = []
    graded = profile.filter(pl.col("is_correct").is_not_null()).drop_nulls("mean_score")
    for prefix, rows in split_runs(graded, context.by):
        last = _mean_scores(rows.filter(position=rows["position"].max()))
        if len(last) < 2:
            continue
        first = _mean_scores(rows.filter(position=rows["position"].min()))
        start = (
            f"; at the first step, {format_decimals(first[True], 2)} and "
            f"{format_decimals(first[False], 2)}"
            if len(first) > 1
            else ""
        )
        text = (
            f"at the last step the mean score is {format_decimals(last[True], 2)} for right attempts "
            f"and {format_decimals(last[False], 2)} for wrong ones{start}."
        )
        texts.append(start_sentence(prefix, text))
    return texts


def _mean_scores(rows: pl.DataFrame) -> dict[bool, float]:
    """Map whether attempts are right to their mean score."""
    return {row["is_correct"]: row["mean_score"] for row in rows.iter_rows(named=True)}


def draw(context: Context, profile: pl.DataFrame) -> list[Part]:
    """Draw the step profile."""
    from ttsframe import charts

    caption = (
        "Verifier scores of the steps, by position in the attempt. The further "
        "apart the lines are, the better the scores separate right attempts from wrong ones. An attempt "
        "with fewer steps than points has no score at some points; its last step is always at the last "
        "point. Means are taken per attempt, then per problem, then over problems."
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
