"""Accuracy by tokens, and which points are efficient."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import polars as pl

from ttsframe._wording import interval, percent
from ttsframe.curves.cost import add_costs, cost_curve, pareto_frontier
from ttsframe.curves.efficiency import efficiency_gain
from ttsframe.report.parts import (
    N_ROWS_MAX,
    Context,
    Figure,
    Folded,
    Part,
    Table,
    make_table,
    note_missing_lines,
    note_more_runs,
)
from ttsframe.report.runs import GRADED, NoTableError, Rule, RunData
from ttsframe.report.wording import (
    N_PANELS_MAX,
    find_best_rows,
    format_decimals,
    format_interval,
    format_percent,
    keep_first_runs,
    keep_run_of,
    list_names,
    split_runs,
    start_sentence,
)

_N_DRAWS: Final = 2_000
_N_DRAWS_MIN: Final = 200
_N_CELLS: Final = 4_000_000


def needs(_: RunData) -> list[Rule]:
    """List what a run must have for an axis of tokens."""
    return [
        Rule(pl.col("tokens_min").is_not_null(), "no token counts (n_tokens)"),
        GRADED,
        Rule(
            pl.col("is_exchangeable"),
            "a tree search pays for branches that the n_tokens of its paths does not count",
        ),
    ]


def make(data: RunData, runs: pl.DataFrame) -> dict[str, Any]:
    """Average by tokens, and measure which lines are cheaper at equal accuracy."""
    level = data.options.confidence_level
    curves, gains = [], []
    for _, kept, problems in data.split_by_budgets(runs):
        priced = add_costs(
            problems.filter(pl.col("selector") != "oracle"),
            trajectories=data.attempts_of(kept),
            by=data.keys,
        )
        curve = cost_curve(
            priced,
            by=data.by,
            replicates=data.replicates,
            cluster=data.options.cluster,
            confidence_level=level,
        ).filter(pl.col("budget") > 0, pl.col("accuracy").is_not_null())
        curves.append(pareto_frontier(curve, by=data.by))
        compared = _with_baseline(priced, data.by)
        has_pairs = "majority_vote" in data.strategies and compared["selector"].n_unique() > 1
        if (
            has_pairs
            and not data.replicates
            and not data.clusters
            and min(kept["tokens_min"].to_list()) > 0
        ):
            n_draws = _N_CELLS // max(kept["n_problems"].to_list())
            gains.append(
                efficiency_gain(
                    compared,
                    by=data.by,
                    n_resamples=max(_N_DRAWS_MIN, min(_N_DRAWS, n_draws)),
                    confidence_level=level,
                )
            )
    cost = pl.concat(curves)
    if cost.is_empty():
        raise NoTableError("too many attempts have no token count")
    if data.by:
        cost = cost.sort(*data.by, maintain_order=True)
    return {"cost": cost, "efficiency": data.join_runs(gains) if gains else None}


def _with_baseline(problems: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Keep the runs that have a majority vote, which code and proofs have not."""
    votes = problems.filter(selector="majority_vote")
    if not by:
        return problems if votes.height else votes
    runs = votes.select(by).unique()
    return problems.join(runs, on=by, how="semi", nulls_equal=True, maintain_order="left")


def answer(
    context: Context,
    cost: pl.DataFrame,
    efficiency: pl.DataFrame | None,
    _curve: pl.DataFrame | None,
    _incomplete: pl.DataFrame | None,
) -> list[str]:
    """Give the cost of the best accuracy, and the line that is cheaper than majority vote."""
    texts = []
    for prefix, rows in split_runs(cost, context.by):
        efficient = rows.filter("is_efficient")
        if efficient.is_empty():
            continue
        best = find_best_rows(efficient)
        row = best[0]
        tied = [line for line in best if line["budget"] <= row["budget"]]
        names = list_names([context.name_line(line) for line in tied])
        value = format_interval(row["accuracy"], row["ci_low"], row["ci_high"])
        gains = keep_run_of(efficiency, rows, context.by)
        text = (
            f"the highest accuracy is {value}, from {names}, which "
            f"{'costs' if len(tied) == 1 else 'tie and cost'} {format_decimals(row['budget'], 0)} "
            f"generated tokens per problem{'' if gains is None else _describe_gain(context, gains)}."
        )
        texts.append(start_sentence(prefix, text))
    return texts


def _describe_gain(context: Context, gains: pl.DataFrame) -> str:
    """Describe the savings of the line whose gain is surest."""
    known = gains.filter(pl.col("status") != "unknown")
    if known.is_empty():
        return ""
    goal = f"majority vote's best accuracy, {format_percent(known['accuracy'][0])},"
    order = ["ci_low", "gain"]
    exact = known.filter(status="ok")
    exact = exact.sort(order, descending=True, nulls_last=True, maintain_order=True)
    if (exact["gain"] > 1.0).any():
        row = exact.filter(pl.col("gain") > 1.0).row(0, named=True)
        line = context.name_line(row)
        is_sure = row["ci_low"] is None or row["ci_low"] > 1.0
        chance = "" if is_sure else ", which may be chance"
        return f"; {line} reaches {goal} with {_format_gain(row)} times fewer tokens{chance}"
    bounded = known.filter(status="at_least").sort("bound", descending=True, maintain_order=True)
    if bounded.height:
        row = bounded.row(0, named=True)
        more = ""
        if row["bound"] > 1.0:
            more = f", at least {format_decimals(row['bound'], 1)} times fewer tokens"
        line = context.name_line(row)
        return f"; {line} is at or above {goal} with its fewest tokens already{more}"
    fewer = " with fewer tokens" if exact.height else ""
    return f"; no other line reaches {goal[:-1]}{',' if fewer else ''}{fewer}"


def _format_gain(row: dict[str, Any]) -> str:
    """Write a ratio of budgets with its interval."""
    gain, low, high = row["gain"], row["ci_low"], row["ci_high"]
    value = format_decimals(gain, 1)
    if low is not None and high is not None:
        return f"{value} ({format_decimals(low, 1)} to {format_decimals(high, 1)})"
    if low is not None:
        return f"{value} (at least {format_decimals(low, 1)})"
    if high is not None:
        return f"{value} (at most {format_decimals(high, 1)})"
    return value


def draw(
    context: Context,
    cost: pl.DataFrame,
    efficiency: pl.DataFrame | None,
    curve: pl.DataFrame | None,
    incomplete: pl.DataFrame | None,
) -> list[Part]:
    """Draw accuracy against tokens, and list points and gains."""
    from ttsframe import charts

    caption = (
        "Each point is a selector at one number of attempts, at the mean number of tokens that its "
        "attempts generated; the verifier's own work is not counted. Filled points are efficient: no "
        "other point is as accurate for less, or more accurate at the same cost. Which points are "
        "efficient was decided on the problems shown."
    )
    chart = partial(
        charts.pareto_frontier,
        keep_first_runs(cost, context.by, N_PANELS_MAX),
        confidence_level=context.confidence_level,
    )
    gains = [] if efficiency is None else [_list_gains(context, efficiency)]
    return [
        Figure("accuracy-by-tokens", caption, chart),
        *note_more_runs(cost, context.by, N_PANELS_MAX),
        *note_missing_lines(context, cost, curve, incomplete),
        *gains,
        Folded("Accuracy by tokens, in numbers", [_list_points(context, cost)]),
    ]


def _list_points(context: Context, cost: pl.DataFrame) -> Table:
    """List every point, and whether it is efficient."""
    ends = interval().str.replace_all("%", "", literal=True).fill_null("")
    return make_table(
        "Accuracy by generated tokens per problem; a point is efficient if no other is as accurate for "
        "less, or more accurate at the same cost",
        cost.select(*context.by, "selector", "reduction"),
        cost.select(
            pl.col("nominal_budget").alias("attempts"),
            pl.col("budget").round(0).cast(pl.Int64).alias("tokens"),
            pl.concat_str(percent(pl.col("accuracy")), ends, separator="\n").alias("accuracy"),
            pl.when("is_efficient").then(pl.lit("yes")).otherwise(pl.lit("no")).alias("efficient"),
            pl.col("n_problems").alias("problems"),
        ),
    )


def _list_gains(context: Context, efficiency: pl.DataFrame) -> Table:
    """List how much cheaper each line is than majority vote at majority vote's best accuracy."""
    return make_table(
        "Tokens per problem to reach majority vote's highest accuracy, with "
        f"{context.level} intervals of the ratio",
        efficiency.select(*context.by, "selector", "reduction"),
        [
            {
                "accuracy": format_percent(row["accuracy"]),
                "tokens, majority vote": format_decimals(row["baseline_budget"], 0),
                "tokens": format_decimals(row["budget"], 0),
                "times fewer tokens": _describe_ratio(row),
                "problems": f"{row['n_problems']:,}",
            }
            for row in efficiency.head(N_ROWS_MAX).iter_rows(named=True)
        ],
    )


def _describe_ratio(row: dict[str, Any]) -> str:
    """Write the ratio of a line, or the bound that is known of it."""
    if row["status"] == "ok":
        return _format_gain(row)
    if row["status"] == "unknown":
        return "unknown"
    return f"{row['status'].replace('_', ' ')} {format_decimals(row['bound'], 1)}"
