"""What a search lost by dropping steps, where the value of steps is known."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from ttsframe._checks import check_frame, check_names
from ttsframe._exprs import run_plan
from ttsframe._typing import ColumnNames, FrameT
from ttsframe.errors import DataError
from ttsframe.schema import require_columns, require_kind
from ttsframe.search.nodes import require_nodes
from ttsframe.search.tree import make_tree

__all__ = ["node_values", "pruning_regret"]

_VALUES: Final = ("problem_id", "node_id", "parent_id", "depth", "is_terminal")
_REGRET: Final = ("problem_id", "node_id", "round", "step_score", "is_kept")
_HINT: Final = "tts.search.node_values(bank, solutions=...) returns values of the nodes of a bank."


def node_values(
    bank: FrameT, /, *, solutions: pl.DataFrame | pl.LazyFrame, by: ColumnNames = ()
) -> FrameT:
    """Compute the share of right solutions below each node of a tree that dropped nothing.

    Parameters
    ----------
    bank
        A `nodes` table in which the verifier chose nothing, such as `tts.search.simulate_bank` returns.
    solutions
        Its solutions, graded: `problem_id`, `node_id` and `is_correct`, as `to_trajectories` and
        `tts.score_trajectories` return them.
    by
        Columns of both tables that identify a bank.

    Returns
    -------
    FrameT
        One row per node, in their order: the columns of `by`, `problem_id`, `node_id` and `value`
        (Float64), the mean of the values of its children; of the end of a solution 1 if it is
        right, else 0. A path that was cut counts as wrong. A LazyFrame for a LazyFrame.

    Raises
    ------
    ParameterTypeError
        When an argument is not a Polars frame.
    ColumnsError
        When a column is missing.
    DataError
        At collection, when the rows are not a tree, or a solution is not graded.

    Examples
    --------
    >>> import ttsframe as tts
    >>> problems, bank = tts.search.simulate_bank(2, n_children=(4, 2, 2), seed=0, accuracy=0.5)
    >>> solutions = tts.search.to_trajectories(bank, problems=problems)
    >>> graded = tts.score_trajectories(solutions)
    >>> values = tts.search.node_values(bank, solutions=graded)
    >>> values["value"].is_between(0, 1).all()
    True
    """
    check_frame(bank, "bank")
    check_frame(solutions, "solutions")
    names: tuple[str, ...] = check_names(by, "by", taken=["problem_id", "node_id", "value"])
    schema = require_nodes(bank, [*names, *_VALUES])
    keys: list[str] = [*names, "problem_id", "node_id"]
    graded = require_columns(solutions, [*keys, "is_correct"], where="solutions")
    require_kind(graded, "Boolean", "is_correct", where="solutions")
    result = {name: schema[name] for name in keys} | {"value": pl.Float64()}
    right = solutions.lazy().select(*keys, "is_correct").unique(keys, keep="any")

    def plan(frame: pl.LazyFrame) -> pl.LazyFrame:
        return (
            frame
            .select(*names, *_VALUES)
            .join(right, on=keys, how="left", maintain_order="left", nulls_equal=True)
            .map_batches(
                lambda tree: _values(tree, names).select(*result), schema=pl.Schema(result)
            )
        )

    return run_plan(bank, plan)


def _values(nodes: pl.DataFrame, by: tuple[str, ...]) -> pl.DataFrame:
    ungraded = nodes.filter(pl.col("is_terminal") & pl.col("is_correct").is_null()).height
    if ungraded:
        raise DataError(
            f"solutions: {ungraded:,} ends of solutions have no is_correct. Hint: "
            "tts.search.to_trajectories(bank, problems=...) with gold, then tts.score_trajectories."
        )
    tree = make_tree(nodes, by)
    total = nodes["is_correct"].fill_null(value=False).cast(pl.Float64).to_numpy().copy()
    count = np.zeros(len(total))
    for rows in reversed(tree.levels()):
        inner = rows[count[rows] > 0]
        total[inner] /= count[inner]
        below = rows[tree.parent[rows] >= 0]
        np.add.at(total, tree.parent[below], total[below])
        np.add.at(count, tree.parent[below], 1.0)
    return nodes.with_columns(value=pl.Series(total))


def pruning_regret(
    nodes: FrameT, /, *, values: pl.DataFrame | pl.LazyFrame, by: ColumnNames = ()
) -> FrameT:
    """Compare what a search dropped in each round with what it kept, by the true value of steps.

    Parameters
    ----------
    nodes
        A `nodes` table whose nodes have known values, such as a replay of a bank.
    values
        `problem_id`, `node_id` and `value`, the probability that a solution which continues the step is
        right (`tts.search.node_values`). A node without a value is left out.
    by
        Columns of `nodes` that identify a search; where `values` has them too, they must be equal.

    Returns
    -------
    FrameT
        One row per problem and round: the columns of `by`, `problem_id`, `round`, `n_kept`,
        `n_dropped`, `best_kept` and `best_dropped` (highest values, null where there is no such
        step), `rank_dropped` (rank of the best dropped step by the verifier's score among the steps of
        the round, 1 for the highest; steps without a score share the last), `regret` (how far the
        best dropped step is above the best kept one, at least 0) and `is_lost` (a dropped step could
        still be right, no kept one can). A LazyFrame for a LazyFrame.

    Raises
    ------
    ParameterTypeError
        When an argument is not a Polars frame.
    ColumnsError
        When a column is missing.

    Examples
    --------
    >>> import ttsframe as tts
    >>> problems, bank = tts.search.simulate_bank(2, n_children=(4, 4, 4), seed=0, accuracy=0.5)
    >>> graded = tts.score_trajectories(tts.search.to_trajectories(bank, problems=problems))
    >>> values = tts.search.node_values(bank, solutions=graded)
    >>> nodes = tts.search.replay(bank, tts.search.Beam(4), seed=0).nodes
    >>> regret = tts.search.pruning_regret(nodes, values=values)
    >>> regret.filter(round=0).select("problem_id", "n_kept", "n_dropped").rows()
    [('problem-0', 1, 3), ('problem-1', 1, 3)]
    """
    check_frame(nodes, "nodes")
    check_frame(values, "values")
    names: tuple[str, ...] = check_names(by, "by", taken=["problem_id", "round", "value"])
    require_nodes(nodes, [*names, *_REGRET])
    found = require_columns(values, ["problem_id", "node_id", "value"], where="values", hint=_HINT)
    require_kind(found, "a number", "value", where="values", hint=_HINT)
    keys = [name for name in [*names, "problem_id", "node_id"] if name in found]
    known = values.lazy().select(*keys, pl.col("value").cast(pl.Float64))
    return run_plan(nodes, lambda frame: _regret(frame, known, keys, names))


def _regret(
    nodes: pl.LazyFrame, values: pl.LazyFrame, keys: list[str], by: tuple[str, ...]
) -> pl.LazyFrame:
    group = [*by, "problem_id", "round"]
    score = pl.col("step_score").fill_nan(None)
    rank = score.rank("min", descending=True).over(group).cast(pl.Int64)
    unscored = (score.is_not_null().sum() + 1).over(group).cast(pl.Int64)
    kept, value = pl.col("is_kept"), pl.col("value")
    best_kept, best_dropped = value.filter(kept).max(), value.filter(~kept).max()
    # Of equally good dropped steps, the one that the verifier ranked highest.
    rank_dropped = pl.col("__rank").filter(~kept & (value == best_dropped)).min()
    return (
        nodes
        .select(*dict.fromkeys([*by, *_REGRET]))
        .with_columns(__rank=pl.coalesce(rank, unscored))
        .join(values, on=keys, how="left", maintain_order="left", nulls_equal=True)
        .group_by(group, maintain_order=True)
        .agg(
            (kept & value.is_not_null()).sum().cast(pl.Int64).alias("n_kept"),
            (~kept & value.is_not_null()).sum().cast(pl.Int64).alias("n_dropped"),
            best_kept.alias("best_kept"),
            best_dropped.alias("best_dropped"),
            rank_dropped.alias("rank_dropped"),
        )
        .with_columns(
            regret=(
                pl.col("best_dropped").fill_null(0.0) - pl.col("best_kept").fill_null(0.0)
            ).clip(0.0),
            is_lost=(pl.col("best_dropped").fill_null(0.0) > 0)
            & (pl.col("best_kept").fill_null(0.0) == 0),
        )
    )
