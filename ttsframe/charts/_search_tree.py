"""The chart of the tree of a problem: scores, what was kept and dropped, and where the right answer was lost."""

from __future__ import annotations

from typing import Final

import altair as alt
import numpy as np
import polars as pl

from ttsframe._typing import Flags, Floats, Integers
from ttsframe._wording import counted
from ttsframe.charts import style, tables
from ttsframe.errors import DataError
from ttsframe.schema import require_columns

__all__ = ["search_tree"]

_TABLE: Final = tables.Argument(
    "nodes", "tts.search.search(problems, generator, prm, policy, seed=0)", ("nodes",)
)
_NUMBERS: Final = ("round", "depth", "step_score")
_KNOWN: Final = frozenset({
    *("problem_id", "node_id", "parent_id", "round", "depth", "subtree", "text", "lookahead_text"),
    *("step_score", "score_vector", "n_tokens", "n_lookahead_tokens", "n_prompt_tokens_new"),
    *("n_allocated", "n_children", "finish_reason", "is_terminal", "is_kept", "dropped_because"),
})
_N_NODES_MAX: Final = 1_000
_ROW_HEIGHT: Final = (14, 5)
"""Pixels of a path that ends: of few, and of many."""
_HEIGHT: Final = (160, 640)
_TEXT_MAX: Final = 200
_SCORES: Final = ("#dbe6f3", "#08306b")
"""From the lowest to the highest score."""
_UNSCORED: Final = "#ffffff"
_KEPT: Final = "#4d4d4d"
_DROPPED: Final = "#cfcfcf"
_LOST: Final = "#b84a00"


def search_tree(
    nodes: pl.DataFrame | pl.LazyFrame,
    /,
    *,
    values: pl.DataFrame | pl.LazyFrame | None = None,
    title: str | None = None,
    width: int | None = None,
    height: int | None = None,
) -> alt.LayerChart | alt.ConcatChart:
    """Draw the tree of a problem: the score of each step, and what the search kept and dropped.

    The tree grows to the right, one column per step. The darker a step, the higher the verifier's score. Kept
    steps are large, dropped ones small. With `values`, green lines lead to steps that could still become
    right; where they end in dropped steps only, the right answer was lost, and the step that should
    have been kept is marked with its rank.

    Parameters
    ----------
    nodes
        A `nodes` table, filtered to a problem; collected if lazy. Several problems, and columns that tell
        searches apart, become panels.
    values
        `problem_id` and `node_id` with `value`, the probability that a solution which continues the step
        is right, as `node_values` returns them for a bank; or with `is_correct`, graded solutions of
        the search, for which only the returned solutions are known to be right.
    title, width, height
        As in `scaling_curve`; None chooses a height by the number of paths.

    Returns
    -------
    alt.LayerChart | alt.ConcatChart
        The chart with its data inside; a concatenation if there are several panels.

    Raises
    ------
    ColumnsError
        When a table is not the one described.
    DataError
        When there are no rows, a step appears twice or lacks its parent, or there are more than 1,000
        steps or 12 panels.

    Examples
    --------
    >>> import ttsframe as tts
    >>> from ttsframe import charts
    >>> problems, bank = tts.search.simulate_bank(20, n_children=(4, 4, 4), seed=0, accuracy=0.5)
    >>> graded = tts.score_trajectories(tts.search.to_trajectories(bank, problems=problems))
    >>> values = tts.search.node_values(bank, solutions=graded)
    >>> nodes = tts.search.replay(bank, tts.search.Beam(4), seed=0).nodes
    >>> chart = charts.search_tree(nodes.filter(problem_id="problem-0"), values=values)
    >>> chart.title.text
    'What the search of problem-0 kept and dropped'
    """
    rows = _TABLE.collect(
        nodes,
        texts=["problem_id", "node_id", "parent_id"],
        numbers=_NUMBERS,
        booleans=["is_kept"],
    )
    hint = "filter the table to one problem: nodes.filter(problem_id=...)."
    _TABLE.check_at_most(rows.height, _N_NODES_MAX, "steps", hint=hint)
    absent = {
        "text": pl.lit(None, pl.String),
        "finish_reason": pl.lit(None, pl.String),
        "dropped_because": pl.lit(None, pl.String),
        "n_tokens": pl.lit(None, pl.Int64),
    }
    rows = rows.with_columns(**{
        name: value for name, value in absent.items() if name not in rows.columns
    })
    apart = tables.find_run_columns(rows, _KNOWN)
    if values is not None:
        rows = _add_values(rows, values, apart)
    rows = _TABLE.add_panels(rows, [*apart, "problem_id"])
    drawn = pl.concat(_lay_out(tree) for tree in rows.partition_by("panel", maintain_order=True))
    low, high = (
        rows.select(low=pl.min("step_score"), high=pl.max("step_score")).fill_null(0.0).row(0)
    )
    scale = alt.Scale(
        domain=[0, 1] if low >= 0 and high <= 1 else [low, high], range=[*_SCORES], clamp=True
    )
    x = _make_axis(drawn)
    problems = rows["problem_id"].cast(pl.String).unique().to_list()
    of = problems[0] if len(problems) == 1 else f"{len(problems):,} problems"
    n_kept = int(rows["is_kept"].sum())
    is_known = "value" in rows.columns
    return style.draw_panels(
        drawn,
        lambda panel: _draw_panel(panel, x, scale, is_known=is_known),
        width=width,
        height=height or _choose_height,
        title=style.heading(
            title or f"What the search of {of} kept and dropped",
            [
                counted([rows.height], "step"),
                f"{n_kept:,} kept",
                "large: kept, small: dropped",
                "square: the end of a solution",
            ],
            [
                "the darker, the higher the score",
                "white: no score" if rows["step_score"].null_count() else "",
                *_describe_values(drawn, values),
            ],
        ),
    )


def _add_values(
    rows: pl.DataFrame, values: pl.DataFrame | pl.LazyFrame, apart: list[str]
) -> pl.DataFrame:
    """Add the value of each step: known, or 1 where a right solution lies below it."""
    names = values.collect_schema().names()
    kind = "value" if "value" in names else "is_correct"
    hint = "tts.search.node_values(bank, solutions=...) returns values; graded solutions have is_correct."
    require_columns(values, ["problem_id", "node_id", kind], where="values", hint=hint)
    keys = [*[name for name in apart if name in names], "problem_id", "node_id"]
    known = values.lazy().select(*keys, pl.col(kind).cast(pl.Float64).alias("value"))
    known = known.unique(keys, keep="any", maintain_order=True)
    return rows.join(
        known.collect(), on=keys, how="left", maintain_order="left", nulls_equal=True
    ).with_columns(is_value=pl.lit(kind == "value"))


def _lay_out(tree: pl.DataFrame) -> pl.DataFrame:
    """Place the steps of a tree: children beside each other in the order of their scores."""
    parent = _find_parents(tree)
    depth = tree["depth"].cast(pl.Int64).to_numpy()
    score = tree["step_score"].cast(pl.Float64).fill_null(float("-inf")).to_numpy()
    kept = tree["is_kept"].fill_null(value=False).to_numpy()
    n = tree.height
    levels = [np.flatnonzero(depth == level) for level in np.unique(depth)]
    has_child = np.zeros(n, dtype=bool)
    has_child[parent[parent >= 0]] = True
    leaves = np.where(has_child, 0, 1)
    for level in reversed(levels[1:]):
        np.add.at(leaves, parent[level], leaves[level])
    # Each step gets the rows from `top` on, as many as paths end below it.
    top = np.zeros(n, dtype=np.int64)
    for level in levels:
        above = parent[level]
        order = level[np.lexsort((level, -score[level], ~kept[level], above))]
        starts = np.append(True, np.diff(parent[order]) > 0)
        before = np.cumsum(leaves[order]) - leaves[order]
        first = np.maximum.accumulate(np.where(starts, before, 0))
        base = np.where(parent[order] >= 0, top[parent[order]], 0)
        top[order] = base + before - first
    y: Floats = np.zeros(n)
    y[~has_child] = top[~has_child]
    for level in reversed(levels):
        inner = level[has_child[level]]
        y[inner] = top[inner] + (leaves[inner] - 1) / 2
    root = (leaves[parent < 0].sum() - 1) / 2
    tree = tree.with_columns(
        y=pl.Series(y),
        x0=pl.Series(depth - 1),
        y0=pl.Series(np.where(parent >= 0, y[parent], root)),
        n_paths=pl.lit(int(leaves[parent < 0].sum())),
        **_find_lost(tree, parent, levels, kept),
    )
    return tree.drop("score_vector", strict=False)


def _find_parents(tree: pl.DataFrame) -> Integers:
    """Return the row of each step's parent, -1 for a first step."""
    ids = tree.select(parent_id="node_id", row=pl.int_range(pl.len()))
    if ids["parent_id"].is_duplicated().any():
        raise DataError(
            "nodes: a node_id appears twice in a problem. Hint: keep the column that tells searches apart."
        )
    row = tree.select("parent_id").join(ids, on="parent_id", how="left", maintain_order="left")[
        "row"
    ]
    if (row.is_null() & tree["parent_id"].is_not_null()).any():
        raise DataError(
            "nodes: a parent_id is no node of its problem. Hint: keep all steps of a problem, dropped ones too."
        )
    return row.fill_null(-1).cast(pl.Int64).to_numpy()


def _find_lost(
    tree: pl.DataFrame, parent: Integers, levels: list[Integers], kept: Flags
) -> dict[str, pl.Series]:
    """Find the steps that could become right, and those with which the last such path was dropped."""
    n = tree.height
    if "value" not in tree.columns:
        return {"is_open": pl.Series([None] * n, dtype=pl.Boolean)}
    is_open = (tree["value"].fill_null(0.0) > 0).to_numpy().copy()
    for level in reversed(levels[1:]):
        np.logical_or.at(is_open, parent[level], is_open[level])
    if not tree["is_value"][0]:
        return {"is_open": pl.Series(is_open)}
    rounds = tree["round"].cast(pl.Int64).to_numpy()
    is_lost = np.zeros(n, dtype=bool)
    rank = tree.select(
        pl
        .when(pl.col("step_score").is_not_null())
        .then(pl.col("step_score").rank("min", descending=True).over("round"))
        .otherwise(pl.len().over("round"))
        .cast(pl.Int64)
    ).to_series()
    for number in np.unique(rounds):
        here = rounds == number
        dropped = here & is_open & ~kept
        # Paths that ended earlier keep the right answer in reach.
        is_kept_open = is_open & kept & ((rounds == number) | ((rounds < number) & _is_end(tree)))
        if dropped.any() and not is_kept_open.any():
            is_lost |= dropped
    size = pl.Series(np.bincount(rounds)[rounds])
    return {
        "is_open": pl.Series(is_open),
        "is_lost": pl.Series(is_lost),
        "rank": rank,
        "n_ranked": size,
    }


def _is_end(tree: pl.DataFrame) -> Flags:
    """Tell which steps end a solution."""
    return (tree["finish_reason"].fill_null("step") == "stop").to_numpy()


def _describe_values(drawn: pl.DataFrame, values: pl.DataFrame | pl.LazyFrame | None) -> list[str]:
    """Say what is known about right answers."""
    if values is None:
        return []
    if "is_lost" not in drawn.columns:
        found = drawn["is_open"].any()
        return [
            "green: leads to a returned right solution"
            if found
            else "no returned solution is right"
        ]
    return [
        "green: could still become right"
        if drawn["is_open"].any()
        else "no step could become right",
        "orange: where the right answer was lost" if drawn["is_lost"].any() else "",
    ]


def _choose_height(panel: pl.DataFrame) -> int:
    """Choose the height of a tree by the number of its paths."""
    n, (least, most) = int(panel["n_paths"][0]), _HEIGHT
    few, many = _ROW_HEIGHT
    return max(least, min(few * n, most), min(many * n, 2 * most))


def _make_axis(drawn: pl.DataFrame) -> alt.X:
    """Return the axis of steps, from the problem itself."""
    last = int(drawn["depth"].cast(pl.Int64).to_numpy().max())
    ticks = style.axis(
        "Step (0: the problem)",
        format="d",
        tickMinStep=1,
        tickCount=min(last, 12) + 1,
        grid=False,
    )
    return alt.X("depth:Q", axis=ticks, scale=alt.Scale(domain=[-0.1, last + 0.3], nice=False))


def _draw_panel(
    panel: pl.DataFrame, x: alt.X, scale: alt.Scale, *, is_known: bool
) -> list[alt.Chart]:
    """Draw the lines of a tree, then its steps, and the labels of those that should have been kept."""
    green = style.OUTCOME_COLORS["right"]
    is_lost = pl.col("is_lost") if "is_lost" in panel.columns else pl.lit(value=False)
    is_open = pl.col("is_open").fill_null(value=False)
    kept = pl.col("is_kept").fill_null(value=False)
    plain = pl.when(kept).then(pl.lit(_KEPT)).otherwise(pl.lit(_DROPPED))
    line = pl.when(is_lost).then(pl.lit(_LOST)).when(is_open).then(pl.lit(green)).otherwise(plain)
    is_end = pl.col("finish_reason") == "stop"
    size = min(80.0, (_choose_height(panel) / int(panel["n_paths"][0])) ** 2)
    rows = panel.select(
        *["depth", "y", "x0", "y0", "step_score", "round", "n_tokens"],
        line=line,
        stroke=pl.when(kept | is_open).then(1.8).otherwise(0.8),
        size=pl.when(kept).then(size).when(is_lost).then(0.7 * size).otherwise(0.3 * size),
        shape=pl.when(is_end).then(pl.lit("square")).otherwise(pl.lit("circle")),
        is_lost=is_lost,
        label=pl.format("rank {} of {}", "rank", "n_ranked")
        if "rank" in panel.columns
        else pl.lit(""),
        fate=pl
        .when(kept)
        .then(pl.lit("kept"))
        .otherwise(
            pl.concat_str(pl.lit("dropped: "), pl.col("dropped_because").fill_null("not known"))
        ),
        text=pl.col("text").cast(pl.String).str.slice(0, _TEXT_MAX).fill_null("not known"),
        **({"value": pl.col("value")} if is_known else {}),
    ).sort("stroke", maintain_order=True)
    n_paths = int(panel["n_paths"][0])
    y_scale = alt.Scale(domain=[-0.7, n_paths - 0.3], reverse=True, nice=False)
    y = alt.Y("y:Q", axis=None, scale=y_scale)
    base = alt.Chart(tables.inline(rows)).encode(x=x, y=y)
    tooltip = [
        alt.Tooltip("text:N", title="Step"),
        alt.Tooltip("step_score:Q", title="Score", format=".3f"),
        alt.Tooltip("fate:N", title="Search"),
        alt.Tooltip("round:Q", title="Round"),
        alt.Tooltip("n_tokens:Q", title="Tokens"),
    ]
    if is_known:
        tooltip.append(alt.Tooltip("value:Q", title="Value", format=".3f"))
    edges = base.mark_rule().encode(
        x2=alt.X2("x0:Q"),
        y2=alt.Y2("y0:Q"),
        color=alt.Color("line:N", scale=None),
        strokeWidth=alt.StrokeWidth("stroke:Q", scale=None),
    )
    root = alt.Chart(
        tables.inline(pl.DataFrame({"depth": [0], "y": [panel.filter(depth=1)["y0"][0]]}))
    )
    fill = alt.Fill(
        "step_score:Q",
        scale=scale,
        legend=style.legend(title="Score", orient="right", gradientLength=90),
    )
    points = base.mark_point(opacity=1, strokeWidth=1.4).encode(
        fill=fill,
        stroke=alt.Stroke("line:N", scale=None),
        size=alt.Size("size:Q", scale=None),
        shape=alt.Shape("shape:N", scale=None),
        tooltip=tooltip,
    )
    unscored = (
        base
        .transform_filter("datum.step_score === null")
        .mark_point(opacity=1, strokeWidth=1.4, filled=True, color=_UNSCORED)
        .encode(
            stroke=alt.Stroke("line:N", scale=None),
            size=alt.Size("size:Q", scale=None),
            shape=alt.Shape("shape:N", scale=None),
            tooltip=tooltip,
        )
    )
    labels = (
        base
        .transform_filter(alt.datum.is_lost)
        .mark_text(align="left", dx=9, baseline="middle", font=style.FONT, fontSize=11, color=_LOST)
        .encode(text=alt.Text("label:N"))
    )
    return [
        edges,
        root.mark_point(shape="diamond", size=90, filled=True, color=style.INK, opacity=1).encode(
            x=x, y=y
        ),
        points,
        unscored,
        labels,
    ]
