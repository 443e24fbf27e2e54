"""What searches kept and dropped, how wide they were, and what their answers cost."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import polars as pl

from ttsframe._exprs import in_order
from ttsframe._wording import interval, percent
from ttsframe.curves.scaling import scaling_curve
from ttsframe.report.parts import (
    Context,
    Figure,
    Folded,
    Paragraph,
    Part,
    Table,
    make_table,
    note_more_runs,
)
from ttsframe.report.runs import NoTableError, RunData
from ttsframe.report.wording import (
    N_PANELS_MAX,
    format_decimals,
    format_percent,
    keep_first_runs,
    split_runs,
    start_sentence,
)
from ttsframe.votes.selectors import select_answers

_N_STEPS_MAX: Final = 400
"""Steps of a tree that the page draws."""
_N_STEPS_GOOD: Final = 150
"""Steps of a tree whose scores can be read."""
_ORIGINS: Final = "n_origins"


def make(data: RunData, _: pl.DataFrame) -> dict[str, Any]:
    """Count what searches cost and how wide they were, and choose a tree to draw."""
    if data.nodes is None:
        return {"search": None, "search_width": None, "search_tree": None}
    # Few reports have searches, and the package takes a tenth of a second to load.
    from ttsframe.search import average_measures, diversity_by_depth, search_costs

    nodes, by, keys = data.nodes, data.by, data.keys
    if missing := [name for name in keys if name not in nodes.collect_schema()]:
        raise NoTableError(f"the nodes lack the columns {missing} that tell runs apart")
    costs = search_costs(nodes, by=keys).collect()
    tokens = pl.col("n_tokens") + pl.col("n_lookahead_tokens").fill_null(0)
    spent = costs.group_by(by or pl.lit(1).alias("_all"), maintain_order=True).agg(
        pl.col("n_rounds").mean().alias("rounds"),
        pl.col("n_nodes").mean().alias("steps"),
        tokens.mean().alias("tokens"),
        (pl.col("n_dropped_tokens").sum() / pl.col("n_tokens").sum()).alias("share_dropped"),
    )
    table = spent.drop("_all", strict=False)
    if data.runs.select((pl.col("n_right") + pl.col("n_wrong") > 0).any()).item():
        answers = select_answers(
            data.attempts,
            selectors=data.options.selectors,
            reductions=data.options.reductions,
            weights=data.options.weights,
            by=keys,
        )
        curve = scaling_curve(
            answers,
            by=by,
            replicates=data.replicates,
            confidence_level=data.options.confidence_level,
        ).select(*by, "selector", "reduction", "accuracy", "ci_low", "ci_high", "n_problems")
        table = (
            table.join(curve, on=by, how="left", nulls_equal=True, maintain_order="left")
            if by
            else table.join(curve, how="cross", maintain_order="left")
        )
    measured = diversity_by_depth(nodes.select(*keys, *_COLUMNS_OF_WIDTH), by=keys)
    # Seeds of one problem are no problems of their own.
    of_problem = measured.group_by(*by, "problem_id", "depth").agg(
        in_order(pl.exclude(*keys, "problem_id", "depth").cast(pl.Float64)).list.mean()
    )
    widths = average_measures(
        of_problem, by=by, confidence_level=data.options.confidence_level
    ).collect()
    return {"search": table, "search_width": widths, "search_tree": _choose_tree(data)}


_COLUMNS_OF_WIDTH: Final = (
    *("problem_id", "node_id", "parent_id", "depth", "subtree", "text", "n_children", "is_kept"),
    "is_terminal",
)


def _choose_tree(data: RunData) -> pl.DataFrame | None:
    """Return the steps of a problem, that of a search which dropped something if there is one."""
    if data.nodes is None:
        return None
    tree = [*data.keys, "problem_id"]
    sizes = (
        data.nodes
        .group_by(tree)
        .agg(pl.len().alias("n"), (~pl.col("is_kept")).sum().alias("dropped"))
        .filter(pl.col("n") <= _N_STEPS_MAX)
        .sort(
            pl.col("dropped") == 0,
            pl.col("n") > _N_STEPS_GOOD,
            "n",
            *tree,
            descending=[False, False, True, *[False] * len(tree)],
        )
        .collect()
    )
    if sizes.is_empty():
        return None
    chosen = sizes.head(1)
    attempts = data.attempts
    if "is_correct" in attempts.columns:
        # One that shows both: right and wrong solutions of one search.
        mixed = attempts.group_by(tree).agg(pl.col("is_correct").n_unique().alias("kinds"))
        both = sizes.join(
            mixed.filter(pl.col("kinds") > 1),
            on=tree,
            how="semi",
            nulls_equal=True,
            maintain_order="left",
        )
        chosen = both.head(1) if both.height else chosen
    rows = data.nodes.join(
        chosen.lazy(), on=tree, how="semi", nulls_equal=True, maintain_order="left"
    )
    found = rows.drop("score_vector", strict=False).collect()
    if not {"node_id", "is_correct"} <= {*attempts.columns}:
        return found
    ends = attempts.join(chosen, on=tree, how="semi", nulls_equal=True)
    right = ends.group_by("node_id").agg(pl.col("is_correct").any())
    return found.join(right, on="node_id", how="left", maintain_order="left")


def answer(
    context: Context, search: pl.DataFrame, search_width: pl.DataFrame, _tree: pl.DataFrame | None
) -> list[str]:
    """Say for each search what it spent, what it dropped, and how many first steps survived."""
    texts = []
    for prefix, rows in split_runs(search, context.by):
        row = rows.row(0, named=True)
        width = search_width.filter(measure=_ORIGINS)
        if context.by:
            width = width.join(rows, on=context.by, how="semi", nulls_equal=True)
        first = width.sort("depth")["mean"].to_list()
        text = (
            f"{format_decimals(row['tokens'], 0)} generated tokens per problem in "
            f"{format_decimals(row['rounds'], 1)} rounds, {format_percent(row['share_dropped'])} of them in "
            "steps that were dropped"
        )
        if len(first) > 1:
            text += (
                f"; the kept paths descend from {format_decimals(first[0], 1)} first steps at depth 1 and "
                f"from {format_decimals(first[len(first) // 2], 1)} at depth {len(first) // 2 + 1}"
            )
        texts.append(start_sentence(prefix, f"{text}."))
    return texts


def draw(
    context: Context,
    search: pl.DataFrame,
    search_width: pl.DataFrame,
    search_tree: pl.DataFrame | None,
) -> list[Part]:
    """Draw accuracy against tokens, the width by depth and one tree, and list all searches."""
    from ttsframe import charts

    parts: list[Part] = []
    if "accuracy" in search.columns and context.by:
        parts.append(
            Figure(
                "search-accuracy",
                "Each point is the answer from all solutions of a search, at the mean number of tokens that the "
                "whole search generated, dropped steps and lookahead included.",
                partial(
                    charts.scaling_curve,
                    _as_curve(search, context.by),
                    overlay=context.by[0],
                    confidence_level=context.confidence_level,
                ),
            )
        )
    parts += [
        Figure(
            "search-width",
            "Mean number of steps per problem at each depth. Where kept paths descend from few first steps, "
            "the search has narrowed to few ideas. Problems whose search has ended are not counted.",
            partial(charts.search_width, keep_first_runs(search_width, context.by, N_PANELS_MAX)),
        ),
        *note_more_runs(search_width, context.by, N_PANELS_MAX),
    ]
    if search_tree is not None:
        values = None
        if "is_correct" in search_tree.columns:
            values = search_tree.select("problem_id", "node_id", "is_correct").drop_nulls()
        labels = [f"{name} {search_tree[name][0]}" for name in context.by]
        parts += [
            Paragraph(f"One search as an example: {', '.join(labels)}.")
            if labels
            else Paragraph("One search as an example."),
            Figure(
                "search-tree",
                "Each column is a step. The darker a step, the higher the verifier's score; dropped steps are "
                "small.",
                partial(
                    charts.search_tree,
                    search_tree.drop("is_correct", *context.by, strict=False),
                    values=values,
                ),
            ),
        ]
    return [*parts, Folded("Searches, in numbers", [_list_searches(context, search)])]


def _as_curve(search: pl.DataFrame, by: tuple[str, ...]) -> pl.DataFrame:
    """Return accuracy by tokens, with a line for each value of the first column of `by`."""
    return search.select(
        by[0],
        "selector",
        "reduction",
        "accuracy",
        "ci_low",
        "ci_high",
        "n_problems",
        budget="tokens",
        budget_unit=pl.lit("tokens"),
    ).filter(pl.col("budget") > 0)


def _list_searches(context: Context, search: pl.DataFrame) -> Table:
    """List each search with its costs and the accuracy of its answers."""
    heads = [*context.by]
    cells = [
        pl.col("tokens").round(0).cast(pl.Int64),
        pl.col("steps").round(1),
        pl.col("rounds").round(1),
        percent(pl.col("share_dropped")).alias("dropped tokens"),
    ]
    if "accuracy" in search.columns:
        heads += ["selector", "reduction"]
        ends = interval().str.replace_all("%", "", literal=True).fill_null("")
        value = pl.concat_str(percent(pl.col("accuracy")), ends, separator="\n").alias("accuracy")
        cells = [value, *cells, pl.col("n_problems").alias("problems")]
    return make_table(
        "Per problem: generated tokens, steps, rounds, and the share of tokens in steps that were dropped",
        search.select(heads),
        search.select(cells),
    )
