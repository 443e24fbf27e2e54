"""Accuracy by level of difficulty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from ttsframe import charts
from ttsframe._wording import counted
from ttsframe.report.names import first_runs, percent_text, runs_of, said, with_interval
from ttsframe.report.sections.accuracy import curve_table
from ttsframe.report.sections.section import (
    Part,
    Section,
    asks,
    drawn,
    folded,
    left_lines,
    more_runs,
)

if TYPE_CHECKING:
    from ttsframe.report.report import Report

_N_RUNS_MAX: Final = 4
_N_REDUCTIONS_MAX: Final = 3
_N_BARS_MAX: Final = 120


def answers(report: Report) -> list[str]:
    """Say at which level attempts help most, and where they end at both ends."""
    texts: list[str] = []
    if report.level_curve is None:
        return texts
    votes = report.level_curve.filter(selector="majority_vote").drop_nulls(["level", "accuracy"])
    for name, rows in runs_of(votes, report.by):
        budgets = rows["budget"].to_list()
        first, last = min(budgets), max(budgets)
        ends = rows.filter(budget=last).join(
            rows.filter(budget=first).select("level", start="accuracy"), on="level"
        )
        gain = pl.col("accuracy") - pl.col("start")
        most = ends.sort(gain, "level", maintain_order=True).row(-1, named=True)
        easiest, hardest = (ends.sort("level").row(i, named=True) for i in (0, -1))
        grown = (
            f"majority vote gains most at level {most['level']}: from {percent_text(most['start'])} with "
            f"{counted([first], 'attempt')} to {percent_text(most['accuracy'])} with {last:,}"
            if most["accuracy"] > most["start"]
            else f"majority vote gains at no level from {first:,} to {counted([last], 'attempt')}"
        )
        at_ends = [
            f"level {row['level']}, the {which}, is at "
            f"{with_interval(row['accuracy'], row['ci_low'], row['ci_high'])}"
            for which, row in (("easiest", easiest), ("hardest", hardest))
        ]
        if easiest == hardest:
            at_ends = [f"all problems are in level {easiest['level']}"]
        texts.append(said(name, f"{grown}; with {last:,}, {' and '.join(at_ends)}."))
    return texts


def body(report: Report) -> list[Part]:
    """Draw levels and their curves, and list the numbers."""
    if report.levels is None or report.level_curve is None:
        return []
    curve = report.level_curve
    reductions = curve["reduction"].drop_nulls().unique(maintain_order=True)
    kept = reductions.head(_N_REDUCTIONS_MAX).implode()
    drawn_lines = first_runs(
        curve.filter(pl.col("reduction").is_null() | pl.col("reduction").is_in(kept)),
        report.by,
        _N_RUNS_MAX,
    )
    few = report.levels["caveat"].drop_nulls().unique().to_list()
    caveat = (
        " With fewer than 16 attempts to estimate a problem's level on, neighbouring levels mix."
        if "few_attempts" in few
        else ""
    )
    dropped = reductions.len() - _N_REDUCTIONS_MAX
    left = f" {dropped} more reductions are in the table." if dropped > 0 else ""
    level = f"{100 * report.confidence_level:g}%"
    return [
        drawn(
            "problems-by-difficulty",
            "How many problems are how hard: difficulty is the share of wrong attempts. Each half of "
            "the attempts gets the levels that the other half says, so that no attempt decides the "
            f"level that it is judged under.{caveat}",
            charts.difficulty_histogram,
            first_runs(report.levels, report.by, _N_RUNS_MAX),
        ),
        drawn(
            "accuracy-by-level",
            "The curves above, level by level, on halves of the attempts, so up to half as many. "
            f"Bands are {level} intervals over problems.{left}",
            charts.level_curves,
            drawn_lines,
            confidence_level=report.confidence_level,
        ),
        *_bars(drawn_lines, report),
        *more_runs(curve, report.by, _N_RUNS_MAX),
        *left_lines(curve, report),
        folded("Accuracy by level, in numbers", [curve_table(curve, report, "level")]),
    ]


def _bars(curve: pl.DataFrame, report: Report) -> list[Part]:
    """Draw the bars of each run by themselves: panels are too narrow to name one."""
    known = curve.filter(pl.col("selector") != "oracle", pl.col("level") > 0)
    parts = []
    for i, (name, rows) in enumerate(runs_of(known, report.by)):
        of_run = f", {name.removesuffix(': ')}" if name else ""
        parts.append(
            drawn(
                f"methods-by-level{f'-{i + 1}' if name else ''}",
                "The same, method beside method, at a few numbers of attempts.",
                charts.level_bars,
                _few_budgets(rows).drop(report.by),
                title=f"Accuracy by level of difficulty{of_run}",
                confidence_level=report.confidence_level,
            )
        )
    return parts


def _few_budgets(curve: pl.DataFrame) -> pl.DataFrame:
    """Keep the first, the last and the middle budget, or as many as a row of bars has room for."""
    budgets = curve["budget"].unique().sort().to_list()
    n_bars = curve.select("level", "selector", "reduction").n_unique()
    most = max(1, _N_BARS_MAX // n_bars)
    kept = [budgets[-1], budgets[0], budgets[len(budgets) // 2]][:most]
    return curve.filter(pl.col("budget").is_in(kept))


SECTION = Section(
    is_there=lambda report: report.level_curve is not None,
    question=asks("Which problems gain from more attempts?"),
    answers=answers,
    body=body,
)
