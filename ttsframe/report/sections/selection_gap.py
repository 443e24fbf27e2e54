"""Accuracy lost by choosing a wrong answer, and for lack of a right one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import polars as pl

from ttsframe._wording import counted, percent
from ttsframe.curves.gaps import selection_gap as make_gap
from ttsframe.report.parts import (
    Context,
    Figure,
    Folded,
    Paragraph,
    Part,
    make_budget_table,
    note_missing_lines,
    note_more,
    note_more_runs,
)
from ttsframe.report.runs import GRADED, NoTableError, Rule, RunData
from ttsframe.report.wording import (
    N_PANELS_MAX,
    count_runs,
    find_best_rows,
    format_interval,
    format_percent,
    keep_first_runs,
    list_names,
    name_shared,
    split_runs,
    start_sentence,
)

_LINE = ("selector", "reduction")
_TIE = 1e-9


def needs(_: RunData) -> list[Rule]:
    """List what a run must have to be graded."""
    return [GRADED]


def make(data: RunData, runs: pl.DataFrame) -> dict[str, Any]:
    """Split what is missing to 100%."""
    gaps = [
        make_gap(
            problems,
            by=data.by,
            replicates=data.replicates,
            cluster=data.options.cluster,
            confidence_level=data.options.confidence_level,
        )
        for _, _, problems in data.split_by_budgets(runs)
    ]
    gap = data.join_runs(gaps)
    if gap.is_empty():
        raise NoTableError("no selector but the oracle has an accuracy")
    return {"selection_gap": gap}


def answer(
    context: Context, gap: pl.DataFrame, _curve: pl.DataFrame | None, _alone: pl.DataFrame | None
) -> list[str]:
    """Split the errors of each run's best lines at the largest budget."""
    texts = []
    for prefix, rows in split_runs(gap.drop_nulls("accuracy"), context.by):
        ends = rows.filter(budget=rows["budget"].max())
        best = find_best_rows(ends)
        row = best[0]
        lost = format_interval(row["selection_gap"], row["ci_low"], row["ci_high"])
        who = list_names([context.name_line(line) for line in best])
        if len(best) > 1:
            who = f"{who} tie: each"
        if row["budget"] == 1 and row["selection_gap"] < _TIE:
            text = (
                f"with 1 attempt there is nothing to choose from: "
                f"{format_percent(row['accuracy'])} of {counted([row['n_problems']], 'problem')} are "
                f"answered correctly, and {format_percent(row['generation_gap'])} are not."
            )
            texts.append(start_sentence(prefix, text))
            continue
        text = (
            f"with {counted([row['budget']], 'attempt')}, {who} answers "
            f"{format_percent(row['accuracy'])} of {counted([row['n_problems']], 'problem')} "
            f"correctly; {lost} have a right attempt that it does not choose, which a better verifier "
            f"could find, and {format_percent(row['generation_gap'])} have none."
        )
        texts.append(start_sentence(prefix, text))
    return texts


def draw(
    context: Context,
    gap: pl.DataFrame,
    curve: pl.DataFrame | None,
    incomplete: pl.DataFrame | None,
) -> list[Part]:
    """Draw the three bands of each line, and list the middle one."""
    from ttsframe import charts

    drawn = _keep_curves(gap, context.by)
    lines = drawn.select(_LINE).unique(maintain_order=True)
    shared = name_shared(drawn, gap, context.by)
    title = f"Where accuracy is lost{shared}" if shared else None
    n_runs_max = max(1, N_PANELS_MAX // lines.height)
    shown = drawn.join(
        lines.head(N_PANELS_MAX), on=_LINE, how="semi", nulls_equal=True, maintain_order="left"
    )
    caption = (
        "At each number of attempts, the three bands add up to all problems. The middle band is what a "
        "perfect choice among the same attempts would gain; the upper band needs a better generator or "
        f"more attempts. In brackets is the {context.level} interval of the middle band, paired by problem."
    )
    chart = partial(
        charts.selection_gap,
        keep_first_runs(shown, context.by, n_runs_max),
        title=title,
        confidence_level=context.confidence_level,
    )
    ends = pl.format("{} to {}", *[(pl.col(c) * 100).round(1) for c in ("ci_low", "ci_high")])
    points = gap.select(
        "budget",
        pl.concat_str(percent(pl.col("selection_gap")), pl.lit("\n"), ends.fill_null("")).alias(
            "cell"
        ),
        pl.col("n_problems").alias("problems"),
    )
    listed = make_budget_table(
        "Problems with a right attempt that was not chosen, by number of attempts, with "
        f"{context.level} intervals below",
        gap.select(*context.by, *_LINE),
        points,
    )
    figure: list[Part] = []
    # With one attempt there is nothing to choose from, as the sentence says.
    if gap["budget"].max() != 1:
        figure = [
            Figure("lost-by-attempts", caption, chart),
            *note_more_runs(drawn, context.by, n_runs_max),
            *_note_single(gap, drawn, context.by),
            *note_more(lines.height, N_PANELS_MAX, "lines"),
        ]
    return [
        *figure,
        *note_missing_lines(context, gap, curve, incomplete),
        Folded("Accuracy lost by selection, in numbers", [listed]),
    ]


def _keep_curves(gap: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Keep the runs with several numbers of attempts, whose bands have a course; all if none has."""
    if not by:
        return gap
    curves = gap.filter(pl.col("budget").n_unique().over(by) > 1)
    return curves if curves.height else gap


def _note_single(gap: pl.DataFrame, drawn: pl.DataFrame, by: Sequence[str]) -> list[Part]:
    n_single = count_runs(gap, by) - count_runs(drawn, by)
    if not n_single:
        return []
    runs = counted([n_single], "run")
    return [Paragraph(f"{runs} with a single number of attempts: in the table only.")]
