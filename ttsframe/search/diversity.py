"""How wide a search is at each depth, and how many of its paths differ."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from ttsframe._checks import check_frame, check_names
from ttsframe._exprs import run_plan
from ttsframe._typing import ColumnNames, FrameT
from ttsframe.search.nodes import require_nodes
from ttsframe.search.tree import make_tree

__all__ = ["diversity_by_depth"]

_READ: Final = (
    "problem_id",
    "node_id",
    "parent_id",
    "depth",
    "subtree",
    "text",
    "n_children",
    "is_kept",
    "is_terminal",
)
_RESULT: Final = {
    "depth": pl.UInt16(),
    "n_nodes": pl.Int64(),
    "n_kept": pl.Int64(),
    "n_subtrees": pl.Int64(),
    "n_parents": pl.Int64(),
    "n_distinct": pl.Int64(),
    "n_origins": pl.Int64(),
}


def diversity_by_depth(nodes: FrameT, /, *, by: ColumnNames = ()) -> FrameT:
    """Count how wide a search is at each depth, and how many of its paths differ.

    A search can look wide and yet continue one step only. `n_origins` tells: it counts the first steps that
    the kept paths of a depth descend from.

    Parameters
    ----------
    nodes
        A `nodes` table.
    by
        Columns that identify a search.

    Returns
    -------
    FrameT
        One row per problem and depth: the columns of `by`, `problem_id`, `depth`, `n_nodes` (steps),
        `n_kept` (steps that were continued or end a returned path), and, of the kept steps,
        `n_subtrees`, `n_parents` and `n_origins` (subtrees, parents and first steps that they belong
        to) and `n_distinct` (different texts of the step). A LazyFrame for a LazyFrame.

    Raises
    ------
    ParameterTypeError
        When `nodes` is not a Polars frame.
    ColumnsError
        When a column is missing.
    DataError
        At collection, when the rows are not a tree.

    Examples
    --------
    >>> import ttsframe as tts
    >>> problems, generator, prm = tts.search.simulate(1, seed=0)
    >>> nodes = tts.search.search(problems, generator, prm, tts.search.DVTS(8), seed=0)
    >>> tts.search.diversity_by_depth(nodes).select("depth", "n_nodes", "n_kept", "n_origins").row(1)
    (2, 8, 2, 2)
    """
    check_frame(nodes, "nodes")
    names: tuple[str, ...] = check_names(by, "by", taken=[*_RESULT, "problem_id"])
    schema = require_nodes(nodes, [*names, *_READ])
    result = {name: schema[name] for name in [*names, "problem_id"]} | _RESULT

    def plan(frame: pl.LazyFrame) -> pl.LazyFrame:
        return frame.select(*names, *_READ).map_batches(
            lambda tree: _by_depth(tree, names).select(*result), schema=pl.Schema(result)
        )

    return run_plan(nodes, plan)


def _by_depth(nodes: pl.DataFrame, by: tuple[str, ...]) -> pl.DataFrame:
    tree = make_tree(nodes, by)
    origin = np.arange(nodes.height)
    for rows in tree.levels()[1:]:
        origin[rows] = origin[tree.parent[rows]]
    kept = pl.col("is_kept")

    def distinct(name: str) -> pl.Expr:
        return pl.col(name).filter(kept).n_unique().cast(pl.Int64)

    found = (
        nodes
        .with_columns(
            group=pl.Series(tree.group), origin=pl.Series(origin), parent=pl.Series(tree.parent)
        )
        .group_by("group", "depth")
        .agg(
            pl.len().cast(pl.Int64).alias("n_nodes"),
            kept.sum().cast(pl.Int64).alias("n_kept"),
            distinct("subtree").alias("n_subtrees"),
            distinct("parent").alias("n_parents"),
            distinct("text").alias("n_distinct"),
            distinct("origin").alias("n_origins"),
        )
        .sort("group", "depth")
    )
    return tree.keys[found["group"]].hstack(
        found.drop("group").with_columns(pl.col("depth").cast(pl.UInt16))
    )
