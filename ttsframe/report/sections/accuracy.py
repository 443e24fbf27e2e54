"""Accuracy, or agreement, by number of attempts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import polars as pl

from ttsframe._wording import (
    count_left_out,
    counted,
    interval,
    is_minority,
    left_out,
    percent,
    quantity_of,
    units_of,
)
from ttsframe.curves.at_k import majority_limit
from ttsframe.curves.scaling import scaling_curve
from ttsframe.report.parts import (
    Context,
    Figure,
    Part,
    Table,
    fold_if_long,
    make_budget_table,
    note_more_runs,
    select_incomplete,
)
from ttsframe.report.runs import RunData
from ttsframe.report.wording import (
    N_RUNS_MAX,
    count_runs,
    format_interval,
    format_percent,
    keep_first_runs,
    keep_run_of,
    list_names,
    name_shared,
    split_runs,
    start_sentence,
)

_N_RUNS_LARGE: Final = 4
_HEIGHT: Final = 320
_HEIGHT_OF_MANY: Final = 220
_N_SINGLE_MAX: Final = 3
_ON: Final = "on the problems of"
_LEAST_FOR_LIMIT: Final = 8
"""Attempts at a problem from which the limit of majority votes is worth a sentence."""


def make(data: RunData, _: pl.DataFrame) -> dict[str, Any]:
    """Average the problems by number of attempts: the same ones for all lines of a run."""
    curve, agreement = data.picks.curves(data.comparable)
    incomplete = []
    for group, line, problems in data.list_incomplete():
        average = scaling_curve(
            problems.lazy(),
            by=data.by,
            replicates=data.replicates,
            cluster=data.options.cluster,
            confidence_level=data.options.confidence_level,
        ).collect()
        names = [pl.lit(line[name], pl.String).alias(f"of_{name}") for name in line]
        if not group.is_graded:
            average = average.rename({"accuracy": "agreement"})
        incomplete.append(average.select(*data.by, *names, pl.exclude(data.by)))
    alone = pl.concat(incomplete, how="diagonal") if incomplete else None
    return {
        "curve": curve,
        "agreement": agreement,
        "incomplete": alone,
        "majority_limit": _limit(data),
    }


def _limit(data: RunData) -> pl.DataFrame | None:
    """Estimate the limit of majority votes for graded runs of enough attempts that are drawn alike."""
    runs = data.runs.filter(
        pl.col("is_exchangeable"),
        pl.col("n_each") >= _LEAST_FOR_LIMIT,
        pl.col("n_right") + pl.col("n_wrong") > 0,
    )
    is_voted = "majority_vote" in data.options.selectors
    if runs.is_empty() or data.replicates or not is_voted or not data.has_answers:
        return None
    return majority_limit(
        data.attempts_of(runs),
        by=data.by,
        cluster=data.options.cluster,
        confidence_level=data.options.confidence_level,
    ).drop_nulls("accuracy")


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
                f"{context.name_line(row)} {format_percent(row[quantity])}"
                for row in ends.iter_rows(named=True)
            )
            budget = counted([ends["budget"][0]], "attempt")
            what = "" if quantity == "accuracy" else ", agreement (no gold answers)"
            texts.append(f"{prefix}{budget} at each of {_count_problems(ends)}{what}: {values}.")
    return texts


def _is_complete(rows: pl.DataFrame) -> bool:
    """Return whether no problem is left out of a curve's rows."""
    return bool((rows.select(count_left_out()).to_series() == 0).all())


def _count_problems(rows: pl.DataFrame) -> str:
    """Count the problems that rows share: "57 of 60 problems (left out: 3 unscored)"."""
    n_problems, n_left_out, reasons = rows.select(
        "n_problems", count_left_out(), left_out().alias("reasons")
    ).row(0)
    if not n_left_out:
        return counted([n_problems], "problem")
    total = counted([n_problems + n_left_out], "problem")
    return f"{n_problems:,} of {total} (left out: {reasons})"


def note_problems(
    context: Context, curve: pl.DataFrame | None, incomplete: pl.DataFrame | None
) -> list[str]:
    """Note the problems that lines leave out for a reason that the attempts alone do not explain."""
    notes = []
    if curve is not None:
        for prefix, rows in split_runs(curve, context.by):
            few = rows.filter(is_minority())
            ends = rows.filter(budget=few["budget"].max() if few.height else rows["budget"].max())
            if (ends["n_problems"] == 0).all() or (
                few.is_empty() and _is_complete(ends.with_columns(n_short=0))
            ):
                continue
            text = f"every line is averaged over the same {_count_problems(ends)}"
            text += ", fewer than half, and may not hold for the others." if few.height else "."
            notes.append(start_sentence(prefix, text))
    if incomplete is not None:
        for prefix, rows in split_runs(select_incomplete(incomplete), context.by):
            for line in rows.partition_by("selector", "reduction", maintain_order=True):
                row = line.row(0, named=True)
                text = (
                    f"{context.name_line(row)} has results for only {_count_problems(line)}, so it is "
                    "not compared with the other lines"
                )
                if row["n_problems"]:
                    text += "; the section on accuracy shows it beside majority vote on the same problems"
                notes.append(start_sentence(prefix, f"{text}.{_explain_undefined(context, row)}"))
    return notes


def _explain_undefined(context: Context, row: Mapping[str, Any]) -> str:
    """Say why a line is undefined on some problems; empty where it is on none."""
    if not row["n_undefined"]:
        return ""
    if context.weights == "score" and row["reduction"] is not None and row["n_problems"]:
        return (
            " A negative score is no weight: weights='sigmoid' or weights='softmax' makes weights of such "
            "scores."
        )
    if row["reduction"] is None:
        return " A vote needs answers, and no attempt at these problems has one."
    return " A vote needs answers, and weights that are not negative."


def answer(
    context: Context,
    curve: pl.DataFrame | None,
    agreement: pl.DataFrame | None,
    incomplete: pl.DataFrame | None,
    majority_limit: pl.DataFrame | None,
) -> list[str]:
    """Give both ends of each run's lines, and where majority vote goes."""
    texts = []
    for table in (curve, agreement):
        if table is None:
            continue
        quantity = quantity_of(table.columns)
        for prefix, rows in split_runs(table.drop_nulls(quantity), context.by):
            sentences = [_describe_ends(context, rows, quantity)]
            alone = keep_run_of(incomplete, rows, context.by)
            if alone is not None:
                sentences += _describe_incomplete(context, alone, quantity)
            limit = keep_run_of(majority_limit, rows, context.by)
            if limit is not None and limit.height and quantity == "accuracy":
                sentences.append(_describe_limit(limit.row(0, named=True)))
            texts.append(start_sentence(prefix, " ".join(sentences)))
    return texts


def _describe_limit(limit: Mapping[str, Any]) -> str:
    """Say how far ever more attempts could take majority vote."""
    start = (
        "With ever more attempts, majority vote tends to the share of problems whose most likely answer is "
        "right, here"
    )
    if not limit["n_undecided"]:
        return f"{start} {format_percent(limit['accuracy'])}."
    low, high = (
        format_percent(limit[f"accuracy_if_undecided_{end}"]) for end in ("wrong", "right")
    )
    problems = counted([limit["n_problems"]], "problem")
    return f"{start} {low} to {high}: on {limit['n_undecided']:,} of {problems}, no answer is clearly ahead."


def _describe_ends(context: Context, rows: pl.DataFrame, quantity: str) -> str:
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
    first = rows.filter(budget=rows["budget"].min(), selector="majority_vote")
    start = ""
    if first.height and first["budget"][0] < ends["budget"][0]:
        value = format_percent(first[quantity][0])
        start = f"majority vote is at {value} with {counted([first['budget'][0]], 'attempt')}; "
    left = "" if _is_complete(ends) else f" at {_count_problems(ends)}"
    return f"{start}with {budget}{left}, {_list_lines(context, ends, quantity)}."


def _list_lines(context: Context, rows: pl.DataFrame, quantity: str) -> str:
    """List lines with their values; equal ones together."""
    equal: dict[str, list[str]] = {}
    for row in rows.iter_rows(named=True):
        value = format_interval(row[quantity], row["ci_low"], row["ci_high"])
        equal.setdefault(value, []).append(context.name_line(row))
    (value, names), *others = equal.items()
    verb = "is" if len(names) == 1 else "are all" if not others and len(names) > 2 else "are both"
    if others and len(names) > 2:
        verb = "are"
    texts = [f"{list_names(names)} {verb} at {value}"]
    return ", ".join([*texts, *(f"{list_names(names)} {value}" for value, names in others)])


def _describe_incomplete(context: Context, alone: pl.DataFrame, quantity: str) -> list[str]:
    """Describe each line of a run that is shown alone, beside the others on the same problems."""
    texts = []
    for rows in alone.partition_by("of_selector", "of_reduction", maintain_order=True):
        own = select_incomplete(rows)
        name = context.name_line(own.row(0, named=True))
        ends = rows.filter(budget=own["budget"].max())
        text = f"{name[:1].upper()}{name[1:]} has results for only {_count_problems(own)}"
        if ends["n_problems"][0] == 0:
            texts.append(f"{text}.")
            continue
        budget = counted([ends["budget"][0]], "attempt")
        values = _list_lines(context, ends.drop_nulls(quantity), quantity)
        texts.append(
            f"{text}, so it is not compared with the lines above; on its problems, with {budget}, "
            f"{values}."
        )
    return texts


def draw(
    context: Context,
    curve: pl.DataFrame | None,
    agreement: pl.DataFrame | None,
    incomplete: pl.DataFrame | None,
    majority_limit: pl.DataFrame | None,  # noqa: ARG001 - a sentence says it
) -> list[Part]:
    """Draw each curve, and list its numbers."""
    from ttsframe import charts

    parts: list[Part] = []
    for table in (curve, agreement):
        if table is None:
            continue
        quantity = quantity_of(table.columns)
        if table[quantity].count():
            drawn = keep_first_runs(table, context.by)
            for name, title, rows in _split_by_budgets(drawn, quantity, context.by):
                chart = partial(
                    charts.scaling_curve,
                    rows,
                    title=title,
                    references=context.references if quantity == "accuracy" else None,
                    confidence_level=context.confidence_level,
                    height=_HEIGHT
                    if count_runs(rows, context.by) <= _N_RUNS_LARGE
                    else _HEIGHT_OF_MANY,
                )
                parts.append(Figure(name, _write_caption(context, rows, quantity), chart))
        parts += [
            *note_more_runs(table, context.by, N_RUNS_MAX),
            fold_if_long(
                f"{quantity.capitalize()} by number of attempts, in numbers",
                list_curve(context, table),
            ),
        ]
        alone = incomplete
        if alone is not None and context.by:
            alone = alone.join(
                table, on=context.by, how="semi", nulls_equal=True, maintain_order="left"
            )
        if alone is not None and alone.height:
            parts.append(_list_incomplete(context, alone, quantity))
    return parts


def _split_by_budgets(
    table: pl.DataFrame, quantity: str, by: Sequence[str]
) -> list[tuple[str, str | None, pl.DataFrame]]:
    """Split runs into charts, with names and titles: a run with one number of attempts has no line."""
    whole: list[tuple[str, str | None, pl.DataFrame]] = [(f"{quantity}-by-attempts", None, table)]
    if not by:
        return whole
    is_known = pl.col(quantity).is_not_null()
    is_single = pl.col("budget").filter(is_known).n_unique().over(by) == 1
    points = table.filter(is_single, is_known)
    if points["budget"].n_unique() > _N_SINGLE_MAX or table["budget"].n_unique() == 1:
        return whole
    lines = table.filter(~is_single)
    title = f"{quantity.capitalize()} by attempts per problem{name_shared(lines, table, by)}"
    named = [(f"{quantity}-by-attempts", title, lines)] if lines.height else []
    return [
        *named,
        *(
            (
                f"{quantity}-with-{budget}",
                f"{quantity.capitalize()} with {counted([budget], 'attempt')}{name_shared(rows, table, by)}",
                rows,
            )
            for (budget,), rows in points
            .sort("budget", maintain_order=True)
            .partition_by("budget", as_dict=True, maintain_order=True)
            .items()
        ),
    ]


def _write_caption(context: Context, rows: pl.DataFrame, quantity: str) -> str:
    """Explain the chart of a curve; a single number of attempts is drawn as points with bars."""
    is_curve = rows["budget"].n_unique() > 1
    mark, marks = ("line", "Bands") if is_curve else ("point", "Bars")
    meaning = (
        f"Each {mark} is one way to choose an answer among the first attempts. Majority vote needs no "
        "scores. The oracle chooses a right answer wherever one exists, so no selector can be above it."
        if quantity == "accuracy"
        else f"Without gold answers, nothing can be graded. Each {mark} shows the share of attempts that "
        "gave the chosen answer, not how often that answer is right."
    )
    return (
        f"{meaning} All {mark}s of a run are averaged over the same problems.{context.weighing} {marks} "
        f"are {context.level} intervals over {units_of(rows.columns)}, not over attempts."
    )


def _list_incomplete(context: Context, alone: pl.DataFrame, quantity: str) -> Table:
    """List the lines that lack many problems, each with the baseline and the bound on its problems."""
    name = pl.concat_str(
        pl.col("of_selector"), pl.format(" ({})", "of_reduction").fill_null("")
    ).alias(_ON)
    other = "agreement" if quantity == "accuracy" else "accuracy"
    listed = list_curve(context, alone.drop(other, strict=False).with_columns(name), _ON)
    return replace(
        listed,
        caption=f"Lines without a result for more than one in ten problems: {quantity} on the problems "
        f"that they have, with {context.level} intervals below",
    )


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
