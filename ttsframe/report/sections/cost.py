"""Accuracy by tokens, and what is worth its cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from ttsframe import charts
from ttsframe._wording import interval, percent
from ttsframe.report.names import (
    N_PANELS_MAX,
    best_row,
    decimals,
    first_runs,
    line_name,
    percent_text,
    runs_of,
    said,
    with_interval,
)
from ttsframe.report.sections.section import (
    N_ROWS_MAX,
    Part,
    Section,
    asks,
    drawn,
    folded,
    head_values,
    heads,
    left_lines,
    more_runs,
    table,
)

if TYPE_CHECKING:
    from ttsframe.report.report import Report


def answers(report: Report) -> list[str]:
    """Say what the best accuracy costs, and which line is cheaper than majority vote."""
    texts: list[str] = []
    if report.cost is None:
        return texts
    for name, rows in runs_of(report.cost, report.by):
        best = rows.filter("is_efficient")
        if best.is_empty():
            continue
        row = best_row(best)
        value = with_interval(row["accuracy"], row["ci_low"], row["ci_high"])
        text = (
            f"the highest accuracy, {value}, is that of "
            f"{line_name(row['selector'], row['reduction'])} and costs "
            f"{decimals(row['budget'], 0)} generated tokens per problem{_gain(report, rows)}."
        )
        texts.append(said(name, text))
    return texts


def _gain(report: Report, rows: pl.DataFrame) -> str:
    """Say of the line whose gain is surest what it saves."""
    if report.efficiency is None:
        return ""
    gains = report.efficiency.filter(status="ok")
    if report.by:
        own = rows.select(report.by).unique()
        gains = gains.join(own, on=report.by, how="semi", nulls_equal=True)
    if gains.is_empty():
        return ""
    order = ["ci_low", "gain"]
    row = gains.sort(order, descending=True, nulls_last=True, maintain_order=True).row(
        0, named=True
    )
    goal = f"majority vote's best, {percent_text(row['accuracy'])},"
    if row["gain"] <= 1.0:
        return f"; nothing reaches {goal} for fewer tokens"
    line = line_name(row["selector"], row["reduction"])
    return f"; {line} reaches {goal} with {_times(row)} times fewer"


def _times(row: dict[str, Any]) -> str:
    """Write a ratio of budgets with its interval."""
    low, high = row["ci_low"], row["ci_high"]
    if low is None and high is None:
        return decimals(row["gain"], 1)
    ends = (
        f"{decimals(low, 1)} to {decimals(high, 1)}"
        if low is not None and high is not None
        else f"at least {decimals(low, 1)}"
        if low is not None
        else f"at most {decimals(high, 1)}"
    )
    return f"{decimals(row['gain'], 1)} ({ends})"


def body(report: Report) -> list[Part]:
    """Draw accuracy against tokens, and list points and gains."""
    cost = report.cost
    if cost is None:
        return []
    caption = (
        "Every point is a way of choosing at one number of attempts, at the tokens that its attempts "
        "took on average; the verifier's own work is not counted. Filled points are beaten by no other "
        "at the same cost or less. Which ones these are was chosen on the problems shown."
    )
    gains = [] if report.efficiency is None else [_gains(report.efficiency, report)]
    return [
        drawn(
            "accuracy-by-tokens",
            caption,
            charts.pareto_frontier,
            first_runs(cost, report.by, N_PANELS_MAX),
            confidence_level=report.confidence_level,
        ),
        *more_runs(cost, report.by, N_PANELS_MAX),
        *left_lines(cost, report),
        *gains,
        folded("Accuracy by tokens, in numbers", [_points(cost, report)]),
    ]


def _points(cost: pl.DataFrame, report: Report) -> str:
    """List every point, and whether it is worth its cost."""
    names = [*report.by, "selector", "reduction"]
    return table(
        "Accuracy by generated tokens per problem; efficient: no other point has as much for less",
        names,
        cost.select(
            *heads(names),
            pl.col("nominal_budget").alias("attempts"),
            pl.col("budget").round(0).cast(pl.Int64).alias("tokens"),
            pl.concat_str(
                percent(pl.col("accuracy")),
                pl.lit("\n"),
                interval().str.replace_all("%", "", literal=True).fill_null(""),
            ).alias("accuracy"),
            pl.when("is_efficient").then(pl.lit("yes")).otherwise(pl.lit("no")).alias("efficient"),
            pl.col("n_problems").alias("problems"),
        ),
    )


def _gains(efficiency: pl.DataFrame, report: Report) -> str:
    """List how much cheaper each line is than majority vote at majority vote's best accuracy."""
    names = [*report.by, "selector", "reduction"]
    level = f"{100 * report.confidence_level:g}%"
    return table(
        "Tokens per problem to reach the highest accuracy of majority vote, with "
        f"{level} intervals of the ratio",
        names,
        [
            {
                **head_values(row, names),
                "accuracy": percent_text(row["accuracy"]),
                "tokens, majority vote": decimals(row["baseline_budget"], 0),
                "tokens": decimals(row["budget"], 0),
                "times cheaper": _verdict(row),
                "problems": f"{row['n_problems']:,}",
            }
            for row in efficiency.head(N_ROWS_MAX + 1).iter_rows(named=True)
        ],
    )


def _verdict(row: dict[str, Any]) -> str:
    """Say how much cheaper a line is, or what is known of it."""
    if row["status"] == "ok":
        return _times(row)
    if row["status"] == "unknown":
        return "unknown"
    return f"{row['status'].replace('_', ' ')} {decimals(row['bound'], 1)}"


SECTION = Section(
    is_there=lambda report: report.cost is not None,
    question=asks("What does accuracy cost in tokens?"),
    answers=answers,
    body=body,
)
