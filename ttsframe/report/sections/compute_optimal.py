"""The best strategy for each level of difficulty, chosen on held-out problems."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import polars as pl

from ttsframe._wording import counted
from ttsframe.curves.optimal import optimal_choices, optimal_curve
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
    format_interval,
    format_percent,
    keep_first_runs,
    name_line,
    split_runs,
    start_sentence,
)
from ttsframe.votes.engine.registry import selector_of

_N_RUNS_MAX: Final = 4
_OPTIMAL: Final = ("compute_optimal", "compute_optimal_in_sample")


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
    """Choose a strategy per level, beside the strategies' own curves on the same halves."""
    level = data.options.confidence_level
    curves, choices = [], []
    for half in data.halve(runs):
        problems, levels = half.problems, half.levels
        curves += [
            scaling_curve(problems, by=data.by, replicates="fold", confidence_level=level),
            optimal_curve(problems, levels=levels, by=data.by, confidence_level=level),
        ]
        choices.append(optimal_choices(problems, levels=levels, by=data.by))
    return {
        "optimal": data.join_runs(curves),
        "choices": pl.concat(choices).sort(*data.by, "level", maintain_order=True),
    }


def answer(
    context: Context, optimal: pl.DataFrame, _choices: pl.DataFrame, _curve: pl.DataFrame | None
) -> list[str]:
    """Compare the choice by level with the best single strategy, and with its in-sample value."""
    texts = []
    for prefix, rows in split_runs(optimal.drop_nulls("accuracy"), context.by):
        ends = rows.filter(budget=rows["budget"].max())
        single = ends.filter(~pl.col("selector").is_in([*_OPTIMAL, "oracle"]))
        chosen = {row["selector"]: row for row in ends.iter_rows(named=True)}
        if single.is_empty() or not chosen.keys() >= set(_OPTIMAL):
            continue
        best = find_best_row(single)
        held_out, in_sample = (chosen[selector] for selector in _OPTIMAL)
        value = format_interval(held_out["accuracy"], held_out["ci_low"], held_out["ci_high"])
        text = (
            f"with {counted([held_out['budget']], 'attempt')}, choosing the best strategy for each "
            f"level on held-out problems reaches {value}, {_compare(held_out, best)} the best single "
            f"strategy, {name_line(best['selector'], best['reduction'])}, with "
            f"{format_percent(best['accuracy'])}. Evaluated on the problems it was chosen on, it would "
            f"seem to reach {format_percent(in_sample['accuracy'])}."
        )
        texts.append(start_sentence(prefix, text))
    return texts


def _compare(held_out: dict[str, Any], best: dict[str, Any]) -> str:
    """Compare as far as the interval of the choice allows."""
    low, high = held_out["ci_low"], held_out["ci_high"]
    if low is None or high is None or low <= best["accuracy"] <= high:
        return "not distinguishable from"
    return "above" if held_out["accuracy"] > best["accuracy"] else "below"


def draw(
    context: Context, optimal: pl.DataFrame, choices: pl.DataFrame, curve: pl.DataFrame | None
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
        *note_missing_lines(optimal, curve, context.by),
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
    folds = pl.when(agrees).then(pl.lit("all folds agree")).otherwise(pl.lit("folds differ"))
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
