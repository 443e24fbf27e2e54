"""Accuracy by level of difficulty."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import polars as pl

from ttsframe._wording import counted, units_of
from ttsframe.curves.levels import level_curve as make_level_curve
from ttsframe.report.parts import (
    Context,
    Figure,
    Folded,
    Part,
    note_missing_lines,
    note_more_runs,
)
from ttsframe.report.runs import GRADED, Rule, RunData
from ttsframe.report.sections.accuracy import list_curve
from ttsframe.report.wording import (
    format_interval,
    format_percent,
    keep_first_runs,
    keep_run_of,
    list_names,
    split_runs,
    start_sentence,
)

_N_ATTEMPTS_MIN: Final = 16
_N_PROBLEMS_MIN: Final = 15
_N_RUNS_MAX: Final = 4
_N_REDUCTIONS_MAX: Final = 3
_N_BARS_MAX: Final = 120
_TIE: Final = 1e-9


def needs(data: RunData) -> list[Rule]:
    """List what a run must have for levels from halves of its attempts."""
    return [
        GRADED,
        Rule(
            pl.col("is_exchangeable"),
            "attempts of a tree search depend on each other, so half of them are not a run of half the "
            "budget",
        ),
        Rule(
            pl.col("n_each") >= _N_ATTEMPTS_MIN,
            f"fewer than {_N_ATTEMPTS_MIN} attempts per problem",
        ),
        Rule(pl.col("n_problems") >= _N_PROBLEMS_MIN, f"fewer than {_N_PROBLEMS_MIN} problems"),
        Rule(
            pl.col("n_each") // 2 >= data.smallest_budget,
            "no budget within half of the attempts",
        ),
        Rule(
            pl.lit("fold" not in data.keys),
            "a column of by or replicates is named 'fold', as the halves of the attempts are",
        ),
    ]


def make(data: RunData, runs: pl.DataFrame) -> dict[str, Any]:
    """Average by level, on halves of the attempts."""
    halves = data.halve(runs)
    curves = [
        make_level_curve(
            half.problems,
            levels=half.levels,
            by=data.by,
            replicates=data.replicates,
            cluster=data.options.cluster,
            confidence_level=data.options.confidence_level,
        )
        for half in halves
    ]
    levels = pl.concat([half.levels for half in halves])
    if data.by:
        levels = levels.sort(*data.by, maintain_order=True)
    return {
        "levels": levels,
        "level_curve": data.join_runs(curves, "level"),
        "level_ranking": _rank_halves(levels, data),
    }


def _rank_halves(levels: pl.DataFrame, data: RunData) -> pl.DataFrame:
    """Correlate the ranks of the problems in the two halves: the level of one is from the other."""
    halves = [
        pl.col("difficulty").filter(pl.col("fold") == fold).mean().alias(name)
        for fold, name in enumerate(("even", "odd"))
    ]
    problem = [*data.keys, "problem_id"]
    pairs = levels.group_by(problem).agg(halves).drop_nulls(["even", "odd"]).sort(problem)
    ranks = [pl.col(name).round(12).rank("average") for name in ("even", "odd")]
    table = (
        pairs
        .group_by(data.by or pl.lit(0).alias("_all"), maintain_order=True)
        .agg(
            pl.corr(*ranks).fill_nan(None).alias("correlation"),
            pl.len().cast(pl.UInt32).alias("n_problems"),
        )
        .drop("_all", strict=False)
    )
    inputs = pl.struct("correlation", "n_problems")
    return table.with_columns(
        inputs.map_batches(_test_correlation, return_dtype=pl.Float64).alias("p_value")
    )


def _test_correlation(rows: pl.Series) -> pl.Series:
    """Return one-sided p-values of rank correlations, by Student's t."""
    from scipy.special import stdtr

    table = rows.struct.unnest()
    values: list[float | None] = []
    for correlation, n_problems in table.iter_rows():
        if correlation is None or n_problems < 3:
            values.append(None)
            continue
        spread = max(1.0 - correlation**2, 1e-15)
        degrees = n_problems - 2
        values.append(float(stdtr(degrees, -correlation * (degrees / spread) ** 0.5)))
    return pl.Series(rows.name, values, dtype=pl.Float64)


def answer(
    context: Context,
    _levels: pl.DataFrame,
    level_curve: pl.DataFrame,
    level_ranking: pl.DataFrame,
    _curve: pl.DataFrame | None,
    _incomplete: pl.DataFrame | None,
) -> list[str]:
    """Name the level that gains most, unless the levels do not rank the other half of the attempts."""
    texts = []
    votes = level_curve.filter(selector="majority_vote").drop_nulls(["level", "accuracy"])
    for prefix, rows in split_runs(votes, context.by):
        ranking = keep_run_of(level_ranking, rows, context.by)
        text = _describe_levels(rows)
        if rows["level"].n_unique() > 1 and ranking is not None:
            row = ranking.row(0, named=True)
            if row["p_value"] is None or row["p_value"] > 1.0 - context.confidence_level:
                text = (
                    f"the levels say nothing about these problems: {_describe_ranking(row)}, so "
                    "differences between levels are chance"
                )
            else:
                text = f"{text} Levels rank problems beyond chance: {_describe_ranking(row)}"
            text += "."
        texts.append(start_sentence(prefix, text))
    return texts


def _describe_ranking(row: dict[str, Any]) -> str:
    """Describe how alike both halves of the attempts rank the problems."""
    if row["p_value"] is None:
        return "in one half of the attempts or in both, all problems are equally hard"
    p_value = "p < 0.001" if row["p_value"] < 0.001 else f"p = {row['p_value']:.3f}"
    return (
        f"the two halves of the attempts rank the {counted([row['n_problems']], 'problem')} with a "
        f"correlation of {row['correlation']:.2f} (one-sided {p_value})"
    )


def _describe_levels(rows: pl.DataFrame) -> str:
    """Describe the gains of one run, and its easiest and hardest level."""
    budgets = rows["budget"].to_list()
    first, last = min(budgets), max(budgets)
    points = rows.select("level", "budget", "accuracy", "ci_low", "ci_high")
    ends = points.filter(budget=last).join(
        points.filter(budget=first).select("level", start="accuracy"), on="level"
    )
    gain = pl.col("accuracy") - pl.col("start")
    most = ends.filter(gain > gain.max() - _TIE).sort("level").to_dicts()
    if first == last:
        gains = f"there is one budget, {counted([last], 'attempt')}, so nothing shows a gain"
    elif most[0]["accuracy"] <= most[0]["start"] + _TIE:
        gains = f"majority vote gains at no level from {first:,} to {counted([last], 'attempt')}"
    else:
        (start, end), *others = [
            (format_percent(row["start"]), format_percent(row["accuracy"])) for row in most
        ]
        values = [f"from {start} with {counted([first], 'attempt')} to {end} with {last:,}"]
        values += [f"from {start} to {end}" for start, end in others]
        gains = (
            f"majority vote gains most at level{'s' if others else ''} "
            f"{list_names([str(row['level']) for row in most])}: {list_names(values)}"
        )
    easiest, hardest = (ends.sort("level").row(i, named=True) for i in (0, -1))
    at_ends = " and ".join(
        f"{format_interval(row['accuracy'], row['ci_low'], row['ci_high'])} at level "
        f"{row['level']} ({which})"
        for which, row in (("easiest", easiest), ("hardest", hardest))
    )
    levels = f"With {counted([last], 'attempt')}, it reaches {at_ends}."
    if easiest == hardest:
        levels = f"All problems are in level {easiest['level']}."
    return f"{gains}. {levels}"


def draw(
    context: Context,
    levels: pl.DataFrame,
    level_curve: pl.DataFrame,
    _level_ranking: pl.DataFrame,
    curve: pl.DataFrame | None,
    incomplete: pl.DataFrame | None,
) -> list[Part]:
    """Draw the levels and their curves, and list the numbers."""
    from ttsframe import charts

    reductions = level_curve["reduction"].drop_nulls().unique(maintain_order=True)
    kept = reductions.head(_N_REDUCTIONS_MAX).implode()
    lines = keep_first_runs(
        level_curve.filter(pl.col("reduction").is_null() | pl.col("reduction").is_in(kept)),
        context.by,
        _N_RUNS_MAX,
    )
    caveat = (
        " With fewer than 16 attempts to estimate a problem's level from, neighboring levels mix."
        if "few_attempts" in levels["caveat"]
        else ""
    )
    n_more = reductions.len() - _N_REDUCTIONS_MAX
    more = ""
    if n_more > 0:
        more = f" The table has {counted([n_more], 'more reduction')}."
    return [
        Figure(
            "problems-by-difficulty",
            "Number of problems by difficulty (share of wrong attempts). Each half of the attempts "
            "gets its levels from the other half, so no attempt decides the level that it counts "
            f"toward.{caveat}",
            partial(charts.difficulty_histogram, keep_first_runs(levels, context.by, _N_RUNS_MAX)),
        ),
        Figure(
            "accuracy-by-level",
            "The curves above, by level. They use halves of the attempts, so they end at half the "
            f"number of attempts. Bands are {context.level} intervals over {units_of(lines.columns)}.{more}",
            partial(charts.level_curves, lines, confidence_level=context.confidence_level),
        ),
        *_draw_bars(context, lines),
        *note_more_runs(level_curve, context.by, _N_RUNS_MAX),
        *note_missing_lines(context, level_curve, curve, incomplete),
        Folded("Accuracy by level, in numbers", [list_curve(context, level_curve, "level")]),
    ]


def _draw_bars(context: Context, level_curve: pl.DataFrame) -> list[Part]:
    """Draw the bars of each run in a chart of its own: panels are too narrow to name a run."""
    from ttsframe import charts

    known = level_curve.filter(pl.col("selector") != "oracle", pl.col("level") > 0)
    parts: list[Part] = []
    for i, (prefix, rows) in enumerate(split_runs(known, context.by)):
        number, run = (f"-{i + 1}", f", {prefix.removesuffix(': ')}") if prefix else ("", "")
        chart = partial(
            charts.level_bars,
            _keep_few_budgets(rows).drop(context.by),
            title=f"Accuracy by level of difficulty{run}",
            confidence_level=context.confidence_level,
        )
        caption = "The same accuracies with the methods side by side, at a few numbers of attempts."
        parts.append(Figure(f"methods-by-level{number}", caption, chart))
    return parts


def _keep_few_budgets(level_curve: pl.DataFrame) -> pl.DataFrame:
    """Keep the first, middle and last budget, or as many as a row of bars has room for."""
    budgets = level_curve["budget"].unique().sort().to_list()
    n_bars = level_curve.select("level", "selector", "reduction").n_unique()
    n_max = max(1, _N_BARS_MAX // n_bars)
    kept = [budgets[-1], budgets[0], budgets[len(budgets) // 2]][:n_max]
    return level_curve.filter(pl.col("budget").is_in(kept))
