"""The best strategy for each level of difficulty, chosen on held-out problems."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import polars as pl

from ttsframe._wording import counted
from ttsframe.curves.optimal import choose_and_answer
from ttsframe.curves.scaling import scaling_curve
from ttsframe.report.parts import (
    Context,
    Figure,
    Folded,
    Part,
    Table,
    make_budget_table,
    note_missing_lines,
    note_more_runs,
)
from ttsframe.report.runs import Rule, RunData
from ttsframe.report.sections import difficulty
from ttsframe.report.sections.accuracy import list_curve
from ttsframe.report.wording import (
    find_best_row,
    find_best_rows,
    format_interval,
    format_percent,
    keep_first_runs,
    keep_run_of,
    list_names,
    split_runs,
    start_sentence,
)
from ttsframe.statistics.comparison import compare
from ttsframe.votes.engine.registry import selector_of

_N_RUNS_MAX: Final = 4
_HELD_OUT: Final = "compute_optimal"
_IN_SAMPLE: Final = "compute_optimal_in_sample"


def needs(data: RunData) -> list[Rule]:
    """List what a run must have for a choice between strategies by level."""
    n_scoreless = sum(not selector_of(one).reads_score for one in data.strategies)
    has_scores = (pl.col("n_scored") > 0) & (len(data.strategies) > 1)
    return [
        *difficulty.needs(data),
        Rule(
            pl.lit(n_scoreless > 1) | has_scores,
            "a single strategy, so there is nothing to choose from",
        ),
        Rule(pl.lit(not data.replicates), "each replicate of a run has its own levels"),
    ]


def make(data: RunData, runs: pl.DataFrame) -> dict[str, Any]:
    """Choose a strategy per level, beside the strategies' own curves on the same problems and halves."""
    level = data.options.confidence_level
    curves, choices, gains = [], [], []
    for half in data.halve(runs):
        problems, levels = half.problems, half.levels
        chosen, choices_of_half = choose_and_answer(problems, levels=levels, by=data.by)
        # A problem without a level has no choice, and is left out of the strategies too.
        if data.clusters:
            unit = [*data.by, "problem_id"]
            of_problem = problems.select(*unit, *data.clusters).unique(unit)
            chosen = chosen.join(of_problem, on=unit, how="left", nulls_equal=True)
        both = data.keep_comparable(pl.concat([problems, chosen], how="diagonal"))
        curve = scaling_curve(
            both.lazy(),
            by=data.by,
            replicates="fold",
            cluster=data.options.cluster,
            confidence_level=level,
        ).collect()
        curves.append(curve)
        choices.append(choices_of_half)
        compared = _find_best_single(curve, data.by)
        rows = both.join(compared, on=compared.columns, how="semi", nulls_equal=True)
        gains.append(
            compare(
                rows.with_columns(subsets=pl.lit("prefix")),
                baseline=_HELD_OUT,
                by=data.by,
                replicates="fold",
                cluster=data.options.cluster,
                confidence_level=level,
            )
        )
    return {
        "optimal": data.join_runs(curves),
        "choices": pl.concat(choices).sort(*data.by, "level", maintain_order=True),
        "optimal_gain": data.join_runs(gains),
    }


def _find_best_single(curve: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Find the best single strategy of each run at the largest budget, and add the choice by level."""
    line = [*by, "selector", "reduction", "budget"]
    ends = curve.filter(pl.col("budget") == pl.col("budget").max())
    is_single = ~pl.col("selector").is_in([_HELD_OUT, _IN_SAMPLE, "oracle"])
    best = [
        rows
        .filter(selector=row["selector"])
        .filter(pl.col("reduction").eq_missing(pl.lit(row["reduction"], pl.String)))
        .select(line)
        for _, rows in split_runs(ends.filter(is_single).drop_nulls("accuracy"), by)
        for row in [find_best_row(rows)]
    ]
    return pl.concat([*best, ends.filter(selector=_HELD_OUT).select(line)])


def answer(
    context: Context,
    optimal: pl.DataFrame,
    _choices: pl.DataFrame,
    optimal_gain: pl.DataFrame,
    _curve: pl.DataFrame | None,
    _incomplete: pl.DataFrame | None,
) -> list[str]:
    """Compare the choice by level with the best single strategy, and with its in-sample value."""
    texts = []
    for prefix, rows in split_runs(optimal.drop_nulls("accuracy"), context.by):
        ends = rows.filter(budget=rows["budget"].max())
        single = ends.filter(~pl.col("selector").is_in([_HELD_OUT, _IN_SAMPLE, "oracle"]))
        chosen = {row["selector"]: row for row in ends.iter_rows(named=True)}
        gains = keep_run_of(optimal_gain, rows, context.by)
        if single.is_empty() or gains is None or not chosen.keys() >= {_HELD_OUT, _IN_SAMPLE}:
            continue
        tied = find_best_rows(single)
        best = tied[0]
        names = list_names([context.name_line(row) for row in tied])
        held_out, in_sample = chosen[_HELD_OUT], chosen[_IN_SAMPLE]
        value = format_interval(held_out["accuracy"], held_out["ci_low"], held_out["ci_high"])
        gain = gains.row(0, named=True)
        text = (
            f"with {counted([held_out['budget']], 'attempt')}, choosing the best strategy for each "
            f"level on held-out problems reaches {value}; the best single "
            f"{'strategy' if len(tied) == 1 else 'strategies'}, {names}, "
            f"{'reaches' if len(tied) == 1 else 'reach'} {format_percent(best['accuracy'])}: "
            f"{_describe_gain(gain)}. Evaluated on the problems it was chosen on, the choice would seem "
            f"to reach {format_percent(in_sample['accuracy'])}."
        )
        texts.append(start_sentence(prefix, text))
    return texts


def _describe_gain(row: dict[str, Any]) -> str:
    """Describe the difference of the choice from a strategy, which the row has the other way round."""
    gain = -row["difference"]
    if row["n_wins"] + row["n_losses"] == 0:
        return "they agree on every problem"
    if row["ci_low"] is None:
        return f"a difference of {100 * gain:.1f} points"
    interval = f"{-100 * row['ci_high']:.1f} to {-100 * row['ci_low']:.1f}"
    # The interval of a few problems can disagree with the test; both must leave out chance.
    is_sure = row["p_value"] < 0.05 and (row["ci_low"] > 0.0 or row["ci_high"] < 0.0)
    judged = "more than chance" if is_sure else "within chance"
    return f"a difference of {100 * gain:.1f} points ({interval}), {judged}"


def draw(
    context: Context,
    optimal: pl.DataFrame,
    choices: pl.DataFrame,
    _optimal_gain: pl.DataFrame,
    curve: pl.DataFrame | None,
    incomplete: pl.DataFrame | None,
) -> list[Part]:
    """Draw the choice with its strategies, and list the chosen ones."""
    from ttsframe import charts

    caption = (
        "All lines use halves of the attempts, as the levels do. The black line chooses on one "
        "half of the problems and is evaluated on the other. The gray line chooses and is evaluated on "
        "the same problems, so it is too high. Below is the best strategy at each level: a filled mark "
        "if all folds of problems chose it, a hollow one if they differ, so that these problems cannot "
        "tell the strategies apart."
    )
    chart = partial(
        charts.optimal_curve,
        keep_first_runs(optimal, context.by, _N_RUNS_MAX),
        keep_first_runs(choices, context.by, _N_RUNS_MAX),
        references=context.references,
        confidence_level=context.confidence_level,
    )
    return [
        Figure("compute-optimal-by-attempts", caption, chart),
        *note_more_runs(optimal, context.by, _N_RUNS_MAX),
        *note_missing_lines(context, optimal, curve, incomplete),
        Folded(
            "Chosen strategies, in numbers",
            [_list_choices(context, choices), list_curve(context, optimal)],
        ),
    ]


def _list_choices(context: Context, choices: pl.DataFrame) -> Table:
    """List the strategy of each level and budget, and whether all folds agree."""
    reduction = pl.format(" ({})", "reduction").fill_null("")
    strategy = pl.concat_str(pl.col("selector").str.replace_all("_", " ", literal=True), reduction)
    key = [*context.by, "level", "budget"]
    is_chosen = pl.col("problem_fold").is_null()
    agrees = (strategy == strategy.filter(is_chosen).first()).all().over(key)
    n_others = pl.col("n_tied").cast(pl.Int64) - 1
    folds = (
        pl
        .when(n_others > 0)
        .then(
            pl.format(
                "ties with {} of {} others", n_others, pl.col("n_strategies").cast(pl.Int64) - 1
            )
        )
        .when(agrees)
        .then(pl.lit("all folds agree"))
        .otherwise(pl.lit("folds differ"))
    )
    points = choices.select(
        "budget",
        pl.concat_str(strategy, folds, separator="\n").alias("cell"),
        pl.col("n_problems").alias("problems"),
    )
    is_row = choices["problem_fold"].is_null()
    return make_budget_table(
        "Best strategy by level and number of attempts, chosen on all problems",
        choices.select(*context.by, "level").filter(is_row),
        points.filter(is_row),
    )
