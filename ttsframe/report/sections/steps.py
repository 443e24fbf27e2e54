"""Step scores along the attempt, right against wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ttsframe import charts
from ttsframe.report.names import N_RUNS_MAX, decimals, first_runs, runs_of, said
from ttsframe.report.sections.section import Part, Section, asks, drawn, more_runs

if TYPE_CHECKING:
    from ttsframe.report.report import Report


def answers(report: Report) -> list[str]:
    """Say how far right and wrong attempts are apart at both ends."""
    texts: list[str] = []
    if report.profile is None:
        return texts
    graded = report.profile.filter(pl.col("is_correct").is_not_null()).drop_nulls("mean_score")
    for name, rows in runs_of(graded, report.by):
        ends = rows.filter(position=rows["position"].max())
        score = {row["is_correct"]: row["mean_score"] for row in ends.iter_rows(named=True)}
        if len(score) < 2:
            continue
        first = rows.filter(position=rows["position"].min())
        begun = {row["is_correct"]: row["mean_score"] for row in first.iter_rows(named=True)}
        start = (
            f", at the first {decimals(begun[True], 2)} and {decimals(begun[False], 2)}"
            if len(begun) > 1
            else ""
        )
        text = (
            f"at the last step right attempts have a mean score of {decimals(score[True], 2)}, "
            f"wrong ones of {decimals(score[False], 2)}{start}."
        )
        texts.append(said(name, text))
    return texts


def body(report: Report) -> list[Part]:
    """Draw the step profile."""
    if report.profile is None:
        return []
    caption = (
        "Scores that the verifier gave to the steps, by the share of the attempt written when it "
        "gave them. The further the lines are apart, the better the scores tell right from wrong. "
        "An attempt with fewer steps than points has none at some of them; its last step is always "
        "at the last. Means are taken per attempt, then per problem, then over problems."
    )
    return [
        drawn(
            "step-scores",
            caption,
            charts.step_profile,
            first_runs(report.profile, report.by),
            confidence_level=report.confidence_level,
        ),
        *more_runs(report.profile, report.by, N_RUNS_MAX),
    ]


SECTION = Section(
    is_there=lambda report: report.profile is not None,
    question=asks("How early do step scores tell right from wrong?"),
    answers=answers,
    body=body,
)
