"""What is lost by choosing wrongly, and what before there is a choice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ttsframe import charts
from ttsframe._wording import counted, percent
from ttsframe.report.names import (
    N_PANELS_MAX,
    best_row,
    first_runs,
    line_name,
    percent_text,
    runs_of,
    said,
    with_interval,
)
from ttsframe.report.sections.section import (
    Part,
    Section,
    asks,
    by_budget,
    drawn,
    folded,
    heads,
    more_lines,
    more_runs,
)

if TYPE_CHECKING:
    from ttsframe.report.report import Report

_LINE = ("selector", "reduction")


def answers(report: Report) -> list[str]:
    """Say what each run's best line misses at the largest budget, and why."""
    texts: list[str] = []
    if report.selection_gap is None:
        return texts
    for name, rows in runs_of(report.selection_gap.drop_nulls("accuracy"), report.by):
        row = best_row(rows.filter(budget=rows["budget"].max()))
        lost = with_interval(row["selection_gap"], row["ci_low"], row["ci_high"])
        text = (
            f"with {counted([row['budget']], 'attempt')}, "
            f"{line_name(row['selector'], row['reduction'])} answers "
            f"{percent_text(row['accuracy'])} of {counted([row['n_problems']], 'problem')}; "
            f"{lost} have a right attempt that it does not choose, which a better verifier could win, "
            f"and {percent_text(row['generation_gap'])} have none."
        )
        texts.append(said(name, text))
    return texts


def body(report: Report) -> list[Part]:
    """Draw what is lost, per line, and list it."""
    gap = report.selection_gap
    if gap is None:
        return []
    lines = gap.select(_LINE).unique(maintain_order=True)
    n_max = max(1, N_PANELS_MAX // lines.height)
    shown = gap.join(
        lines.head(N_PANELS_MAX), on=_LINE, how="semi", nulls_equal=True, maintain_order="left"
    )
    level = f"{100 * report.confidence_level:g}%"
    caption = (
        "At each number of attempts the three bands add up to all problems. The middle one is what a "
        "perfect choice among the same attempts would win; the upper one needs a better generator, or "
        f"more attempts. Bars are {level} intervals of the middle band, paired by problem."
    )
    ends = pl.format("{} to {}", *[(pl.col(c) * 100).round(1) for c in ("ci_low", "ci_high")])
    names = [*report.by, *_LINE]
    points = gap.select(
        *heads(names),
        "budget",
        pl.concat_str(percent(pl.col("selection_gap")), pl.lit("\n"), ends.fill_null("")).alias(
            "cell"
        ),
        pl.col("n_problems").alias("problems"),
    )
    return [
        drawn(
            "lost-by-attempts",
            caption,
            charts.selection_gap,
            first_runs(shown, report.by, n_max),
            confidence_level=report.confidence_level,
        ),
        *more_runs(gap, report.by, n_max),
        *more_lines(lines.height, N_PANELS_MAX),
        folded(
            "What selection loses, in numbers",
            [
                by_budget(
                    "Problems with a right attempt that was not chosen, by number of attempts, with "
                    f"{level} intervals below",
                    names,
                    points,
                )
            ],
        ),
    ]


SECTION = Section(
    is_there=lambda report: report.selection_gap is not None,
    question=asks("Where is accuracy lost?"),
    answers=answers,
    body=body,
)
