"""The best strategy for each level of difficulty, chosen on other problems than it is judged on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from ttsframe import charts
from ttsframe._wording import counted
from ttsframe.report.names import (
    best_row,
    first_runs,
    line_name,
    percent_text,
    runs_of,
    said,
    with_interval,
)
from ttsframe.report.sections.accuracy import curve_table
from ttsframe.report.sections.section import (
    Part,
    Section,
    asks,
    by_budget,
    drawn,
    folded,
    heads,
    left_lines,
    more_runs,
)

if TYPE_CHECKING:
    from ttsframe.report.report import Report

_N_RUNS_MAX: Final = 4
_OPTIMAL: Final = ("compute_optimal", "compute_optimal_in_sample")


def answers(report: Report) -> list[str]:
    """Compare the choice by level with the best single strategy, and with its own optimism."""
    texts: list[str] = []
    if report.optimal is None:
        return texts
    for name, rows in runs_of(report.optimal.drop_nulls("accuracy"), report.by):
        ends = rows.filter(budget=rows["budget"].max())
        single = ends.filter(~pl.col("selector").is_in([*_OPTIMAL, "oracle"]))
        chosen = {row["selector"]: row for row in ends.iter_rows(named=True)}
        if single.is_empty() or not chosen.keys() >= set(_OPTIMAL):
            continue
        best = best_row(single)
        honest, seen = (chosen[selector] for selector in _OPTIMAL)
        value = with_interval(honest["accuracy"], honest["ci_low"], honest["ci_high"])
        single_line = line_name(best["selector"], best["reduction"])
        text = (
            f"with {counted([honest['budget']], 'attempt')}, the strategy that is best for each "
            f"level, chosen on other problems, answers {value}{_against(honest, best)} the best "
            f"strategy for all levels, {single_line} with {percent_text(best['accuracy'])}. Judged on the "
            f"problems that chose, it would seem to answer {percent_text(seen['accuracy'])}."
        )
        texts.append(said(name, text))
    return texts


def _against(honest: dict[str, Any], best: dict[str, Any]) -> str:
    """Compare as far as the interval of the choice lets one."""
    low, high = honest["ci_low"], honest["ci_high"]
    if low is None or high is None or low <= best["accuracy"] <= high:
        return ", which does not stand out from"
    return ", above" if honest["accuracy"] > best["accuracy"] else ", below"


def body(report: Report) -> list[Part]:
    """Draw the choice over its strategies, and list what was chosen."""
    if report.optimal is None or report.choices is None:
        return []
    caption = (
        "Lines are over halves of the attempts, as the levels are. The black line chooses on one half of "
        "the problems and is judged on the other; the grey one chooses and is judged on the same, and "
        "is too good. Below, what is best at each level: filled where all folds of problems chose it, "
        "hollow where they differ, that is, where these problems cannot tell strategies apart."
    )
    return [
        drawn(
            "compute-optimal-by-attempts",
            caption,
            charts.optimal_curve,
            first_runs(report.optimal, report.by, _N_RUNS_MAX),
            first_runs(report.choices, report.by, _N_RUNS_MAX),
            references=report.references,
            confidence_level=report.confidence_level,
        ),
        *more_runs(report.optimal, report.by, _N_RUNS_MAX),
        *left_lines(report.optimal, report),
        folded(
            "What was chosen, in numbers",
            [_choices(report.choices, report), curve_table(report.optimal, report)],
        ),
    ]


def _choices(choices: pl.DataFrame, report: Report) -> str:
    """List the strategy of each level and budget, and how sure it is."""
    names = [*report.by, "level"]
    named = choices.select(
        *heads(names),
        "budget",
        "problem_fold",
        pl.concat_str(
            pl.col("selector").str.replace_all("_", " ", literal=True),
            pl.format(" ({})", "reduction").fill_null(""),
        ).alias("strategy"),
        pl.col("n_problems").alias("problems"),
    )
    key = [*named.columns[: len(names)], "budget"]
    leader = pl.col("strategy").filter(pl.col("problem_fold").is_null()).first()
    points = named.group_by(key, maintain_order=True).agg(
        pl.concat_str(
            leader,
            pl
            .when((pl.col("strategy") == leader).all())
            .then(pl.lit("\nall folds agree"))
            .otherwise(pl.lit("\nfolds differ")),
        ).alias("cell"),
        pl.col("problems").filter(pl.col("problem_fold").is_null()).first(),
    )
    caption = "Best strategy by level and number of attempts, chosen on all problems"
    return by_budget(caption, names, points)


SECTION = Section(
    is_there=lambda report: report.optimal is not None,
    question=asks("What would the best strategy for each level win?"),
    answers=answers,
    body=body,
)
