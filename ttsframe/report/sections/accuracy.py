"""Accuracy, or agreement, by number of attempts."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import polars as pl

from ttsframe._wording import counted, interval, left_out, percent, quantity_of
from ttsframe.report.parts import (
    Context,
    Figure,
    Part,
    Table,
    fold_if_long,
    make_budget_table,
    note_more_runs,
)
from ttsframe.report.runs import RunData
from ttsframe.report.wording import (
    N_RUNS_MAX,
    count_runs,
    format_interval,
    format_percent,
    keep_first_runs,
    name_line,
    split_runs,
    start_sentence,
)

_N_RUNS_LARGE: Final = 4
_HEIGHT: Final = 320
_HEIGHT_OF_MANY: Final = 220


def make(data: RunData, _: pl.DataFrame) -> dict[str, Any]:
    """Average the problems by number of attempts."""
    curve, agreement = data.picks.curves(data.problems)
    return {"curve": curve, "agreement": agreement}


def summarize(
    context: Context, curve: pl.DataFrame | None, agreement: pl.DataFrame | None
) -> list[str]:
    """Give the right end of each run's lines, for the top of the page."""
    texts = []
    for table in (curve, agreement):
        if table is None:
            continue
        quantity = quantity_of(table.columns)
        for prefix, rows in split_runs(table, context.by):
            ends = rows.filter(
                pl.col("budget") == pl.col("budget").max(), pl.col(quantity).is_not_null()
            )
            if ends.is_empty():
                continue
            values = ", ".join(
                f"{name_line(row['selector'], row['reduction'])} {format_percent(row[quantity])}"
                for row in ends.iter_rows(named=True)
            )
            budget = counted([ends["budget"][0]], "attempt")
            problems = counted(ends["n_problems"].to_list(), "problem")
            what = "" if quantity == "accuracy" else ", agreement (no gold answers)"
            texts.append(f"{prefix}{budget} at each of {problems}{what}: {values}.")
    return texts


def answer(
    context: Context, curve: pl.DataFrame | None, agreement: pl.DataFrame | None
) -> list[str]:
    """Give both ends of each run's lines."""
    texts = []
    for table in (curve, agreement):
        if table is not None:
            quantity = quantity_of(table.columns)
            texts += [
                start_sentence(prefix, _describe_ends(rows, quantity))
                for prefix, rows in split_runs(table.drop_nulls(quantity), context.by)
            ]
    return texts


def _describe_ends(rows: pl.DataFrame, quantity: str) -> str:
    """Describe both ends of one run's lines."""
    ends = rows.filter(budget=rows["budget"].max())
    budget = counted([ends["budget"][0]], "attempt")
    if quantity == "agreement":
        votes = ends.filter(selector="majority_vote").row(0, named=True)
        share = format_interval(votes[quantity], votes["ci_low"], votes["ci_high"])
        return (
            f"with {budget}, {share} of the attempts gave the most frequent answer; without gold "
            "answers, nothing shows whether it is right."
        )
    lines: list[str] = []
    n_problems_max = max(ends["n_problems"].to_list())
    for row in ends.iter_rows(named=True):
        line = name_line(row["selector"], row["reduction"])
        value = format_interval(row[quantity], row["ci_low"], row["ci_high"])
        n_problems = row["n_problems"]
        only = f" on only {counted([n_problems], 'problem')}" if n_problems < n_problems_max else ""
        reaches = "" if lines else " reaches"
        lines.append(f"{line}{reaches} {value}{only}")
    first = rows.filter(budget=rows["budget"].min(), selector="majority_vote")
    start = ""
    if first.height and first["budget"][0] < ends["budget"][0]:
        value = format_percent(first[quantity][0])
        start = f"majority vote reaches {value} with {counted([first['budget'][0]], 'attempt')}; "
    return f"{start}with {budget}, {', '.join(lines)}."


def draw(
    context: Context, curve: pl.DataFrame | None, agreement: pl.DataFrame | None
) -> list[Part]:
    """Draw each curve, and list its numbers."""
    from ttsframe import charts

    captions = {
        "accuracy": "Each line is one way to choose an answer among the first attempts. Majority vote "
        "needs no scores. The oracle chooses a right answer wherever one exists, so no selector can be "
        f"above it on the same problems. Bands are {context.level} intervals over problems: the unit "
        "is the problem, not the attempt.",
        "agreement": "Without gold answers, nothing can be graded. The lines show the share of attempts "
        "that gave the chosen answer, not how often that answer is right. Bands are "
        f"{context.level} intervals over problems.",
    }
    parts: list[Part] = []
    for table in (curve, agreement):
        if table is None:
            continue
        quantity = quantity_of(table.columns)
        if table[quantity].count():
            chart = partial(
                charts.scaling_curve,
                keep_first_runs(table, context.by),
                references=context.references if quantity == "accuracy" else None,
                confidence_level=context.confidence_level,
                height=_HEIGHT
                if count_runs(table, context.by) <= _N_RUNS_LARGE
                else _HEIGHT_OF_MANY,
            )
            parts.append(Figure(f"{quantity}-by-attempts", captions[quantity], chart))
        parts += [
            *note_more_runs(table, context.by, N_RUNS_MAX),
            fold_if_long(
                f"{quantity.capitalize()} by number of attempts, in numbers",
                list_curve(context, table),
            ),
        ]
    return parts


def list_curve(context: Context, table: pl.DataFrame, *more: str) -> Table:
    """List a curve: a row per line, a column per budget, intervals below values."""
    quantity = quantity_of(table.columns)
    ends = interval().str.replace_all("%", "", literal=True)
    points = table.select(
        "budget",
        pl.concat_str(percent(pl.col(quantity)), pl.lit("\n"), ends.fill_null("")).alias("cell"),
        pl.col("n_problems").alias("problems"),
        left_out().alias("left out"),
    )
    return make_budget_table(
        f"{quantity.capitalize()} by number of attempts, with {context.level} intervals below",
        table.select(*context.by, *more, "selector", "reduction"),
        points,
    )
