"""Accuracy, or agreement, by number of attempts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ttsframe import charts
from ttsframe._wording import counted, interval, left_out, percent, quantity_of
from ttsframe.report.names import (
    N_RUNS_MAX,
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
    by_budget,
    drawn,
    folded_if_long,
    heads,
    more_runs,
)

if TYPE_CHECKING:
    from ttsframe.report.report import Report


def question(report: Report) -> str:
    """Ask for what the runs have."""
    if report.curve is None:
        return "How far do the attempts agree?"
    return "How does accuracy grow with the number of attempts?"


def answers(report: Report) -> list[str]:
    """Say from where to where each run's lines lead."""
    texts = []
    for table in (report.curve, report.agreement):
        if table is None:
            continue
        quantity = quantity_of(table.columns)
        for name, rows in runs_of(table.drop_nulls(quantity), report.by):
            if rows.height:
                texts.append(said(name, _answer(rows, quantity)))
    return texts


def _answer(rows: pl.DataFrame, quantity: str) -> str:
    """Say where one run's lines begin and end."""
    ends = rows.filter(budget=rows["budget"].max())
    budget = counted([ends["budget"][0]], "attempt")
    if quantity == "agreement":
        votes = ends.filter(selector="majority_vote").row(0, named=True)
        return (
            f"with {budget}, {with_interval(votes[quantity], votes['ci_low'], votes['ci_high'])} of the "
            "attempts gave the most frequent answer; without gold answers nothing says whether it is "
            "right."
        )
    found, most = [], max(ends["n_problems"].to_list())
    for row in ends.iter_rows(named=True):
        line = line_name(row["selector"], row["reduction"])
        value = with_interval(row[quantity], row["ci_low"], row["ci_high"])
        n_problems = row["n_problems"]
        alone = f" of {counted([n_problems], 'problem')} alone" if n_problems < most else ""
        found.append(f"{line} {value}{alone}")
    first = rows.filter(budget=rows["budget"].min(), selector="majority_vote")
    start = ""
    if first.height and first["budget"][0] < ends["budget"][0]:
        value = percent_text(first[quantity][0])
        start = f"majority vote {value} with {counted([first['budget'][0]], 'attempt')}; "
    return f"{start}with {budget}, {', '.join(found)}."


def body(report: Report) -> list[Part]:
    """Draw each curve, and list its numbers."""
    level = f"{100 * report.confidence_level:g}%"
    captions = {
        "accuracy": "Each line is one way of choosing an answer among the first attempts. Majority "
        "vote needs no scores; the oracle chooses a right answer wherever there is one, so on the "
        f"same problems no selector can be above it. Bands are {level} intervals over problems: problems, "
        "not attempts, are the unit.",
        "agreement": "Without gold answers nothing can be graded: the lines show which share of the "
        "attempts gave the answer that was chosen, which is not how often it is right. Bands are "
        f"{level} intervals over problems.",
    }
    parts: list[Part] = []
    for table in (report.curve, report.agreement):
        if table is None:
            continue
        quantity = quantity_of(table.columns)
        if table[quantity].count():
            parts.append(
                drawn(
                    f"{quantity}-by-attempts",
                    captions[quantity],
                    charts.scaling_curve,
                    first_runs(table, report.by),
                    references=report.references if quantity == "accuracy" else None,
                    confidence_level=report.confidence_level,
                )
            )
        n_rows = table.select(*report.by, "selector", "reduction").n_unique()
        listed = curve_table(table, report)
        summary = f"{quantity.capitalize()} by number of attempts, in numbers"
        parts += [
            *more_runs(table, report.by, N_RUNS_MAX),
            folded_if_long(summary, n_rows, listed),
        ]
    return parts


def curve_table(table: pl.DataFrame, report: Report, *more: str) -> str:
    """Write a curve as a table: a row per line, a column per budget, intervals below values."""
    quantity = quantity_of(table.columns)
    ends = interval().str.replace_all("%", "", literal=True)
    names = [*report.by, *more, "selector", "reduction"]
    points = table.select(
        *heads(names),
        "budget",
        pl.concat_str(percent(pl.col(quantity)), pl.lit("\n"), ends.fill_null("")).alias("cell"),
        pl.col("n_problems").alias("problems"),
        left_out().alias("left out"),
    )
    level = f"{100 * report.confidence_level:g}%"
    caption = f"{quantity.capitalize()} by number of attempts, with {level} intervals below"
    return by_budget(caption, names, points)


SECTION = Section(
    is_there=lambda report: report.curve is not None or report.agreement is not None,
    question=question,
    answers=answers,
    body=body,
)
