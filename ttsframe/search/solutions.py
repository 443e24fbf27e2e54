"""From the tree to the solutions that a search returns."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from ttsframe._checks import check_frame, check_names
from ttsframe._exprs import run_plan
from ttsframe._typing import ColumnNames, FrameT, Integers
from ttsframe.errors import ColumnsError
from ttsframe.schema import require_columns
from ttsframe.search.driver import check_policy
from ttsframe.search.nodes import require_nodes
from ttsframe.search.policies import Policy
from ttsframe.search.tree import Tree, make_tree
from ttsframe.steps import STEP_REDUCTIONS

__all__ = ["to_trajectories"]

_READ: Final = (
    "problem_id",
    "node_id",
    "parent_id",
    "round",
    "depth",
    "text",
    "step_score",
    "score_vector",
    "n_tokens",
    "n_lookahead_tokens",
    "n_allocated",
    "n_children",
    "finish_reason",
    "is_terminal",
    "is_kept",
)
_SOLUTION: Final = {
    "attempt": pl.UInt32(),
    "completion": pl.String(),
    "step_scores": pl.List(pl.Float64()),
    "n_tokens": pl.Int64(),
    "tree_tokens": pl.Int64(),
    "finish_reason": pl.String(),
    "is_exchangeable": pl.Boolean(),
    "node_id": pl.UInt64(),
}


def to_trajectories(
    nodes: FrameT,
    /,
    *,
    policy: Policy | None = None,
    problems: pl.DataFrame | pl.LazyFrame | None = None,
    by: ColumnNames = (),
) -> FrameT:
    """Turn the nodes of a search into the solutions that it returns, one row per solution.

    A solution is a path to a kept step that nothing continues. Dropped paths and paths that were cut by a
    limit are no solutions. A problem for which the search returns none gets one attempt without a
    text, so that it counts as wrong instead of vanishing.

    Parameters
    ----------
    nodes
        A `nodes` table.
    policy
        The policy that made it. It says how many solutions are returned, and in which order, and adds the
        columns `policy` and `width`. None: all solutions, in the order in which they were finished.
    problems
        Columns to add by `problem_id`, such as `problem` and `gold`. Its problems without any node count
        as problems without a solution.
    by
        Columns that identify a search.

    Returns
    -------
    FrameT
        A `trajectories` table: the columns of `by`, `problem_id`, `attempt`, `policy` and `width`,
        `completion`, `step_scores`, `n_tokens` (of the path), `tree_tokens` (generated tokens of the
        problem's whole search, lookahead included, for `tts.curves.add_costs`), `finish_reason`,
        `is_exchangeable` (true for best-of-N only), `node_id` of the last step, and the columns of
        `problems`. A solution that a policy holds several times is repeated. A LazyFrame for a
        LazyFrame.

    Raises
    ------
    ParameterTypeError
        When an argument has the wrong type.
    ColumnsError
        When a column of `nodes` is missing, or a column of `problems` is one of the result.
    DataError
        At collection, when the rows are not a tree.

    Examples
    --------
    >>> import ttsframe as tts
    >>> problems, generator, prm = tts.search.simulate(2, seed=0)
    >>> policy = tts.search.DVTS(8)
    >>> nodes = tts.search.search(problems, generator, prm, policy, seed=0)
    >>> solutions = tts.search.to_trajectories(nodes, policy=policy, problems=problems)
    >>> solutions.group_by("policy", "width", "problem_id", maintain_order=True).len().rows()
    [('dvts', 8, 'problem-0', 8), ('dvts', 8, 'problem-1', 8)]
    """
    check_frame(nodes, "nodes")
    names: tuple[str, ...] = check_names(
        by, "by", taken=[*_SOLUTION, "policy", "width", "problem_id"]
    )
    if policy is not None:
        check_policy(policy)
    schema = require_nodes(nodes, [*names, *_READ])
    ids = {name: schema[name] for name in [*names, "problem_id"]}
    about = {} if policy is None else {"policy": pl.String(), "width": pl.Int64()}
    result = {**ids, "attempt": pl.UInt32(), **about, **_SOLUTION}
    read = [*names, *_READ]

    def plan(frame: pl.LazyFrame) -> pl.LazyFrame:
        return frame.select(read).map_batches(
            lambda tree: _solutions(tree, names, policy).select(*result), schema=pl.Schema(result)
        )

    if problems is None:
        return run_plan(nodes, plan)
    check_frame(problems, "problems")
    columns = require_columns(problems, ["problem_id"], where="problems")
    if both := [name for name in columns if name in result and name != "problem_id"]:
        raise ColumnsError(
            f"problems: {both} are columns of the result. Hint: problems.drop({both}) or rename them."
        )
    return run_plan(nodes, lambda frame: _joined(plan(frame), problems.lazy(), names, policy))


def _joined(
    solutions: pl.LazyFrame, problems: pl.LazyFrame, names: tuple[str, ...], policy: Policy | None
) -> pl.LazyFrame:
    """Add the columns of problems; those without a node get an attempt without a text."""
    known = solutions.join(problems, on="problem_id", how="left", maintain_order="left")
    runs = solutions.select(names).unique(maintain_order=True) if names else None
    wanted = problems if runs is None else runs.join(problems, how="cross", maintain_order="left")
    lost = wanted.join(
        solutions, on=[*names, "problem_id"], how="anti", nulls_equal=True, maintain_order="left"
    ).with_columns(_nothing_found(policy))
    return pl.concat([known, lost], how="diagonal")


def _nothing_found(policy: Policy | None) -> list[pl.Expr]:
    """Return the columns of the attempt of a problem for which a search returned nothing."""
    found = [
        pl.lit(0, pl.UInt32).alias("attempt"),
        pl.lit(0, pl.Int64).alias("n_tokens"),
        pl.lit(0, pl.Int64).alias("tree_tokens"),
        pl.lit("length").alias("finish_reason"),
        pl.lit(policy is not None and policy.is_exchangeable).alias("is_exchangeable"),
    ]
    if policy is not None:
        found += [
            pl.lit(policy.name).alias("policy"),
            pl.lit(policy.width, pl.Int64).alias("width"),
        ]
    return found


def _solutions(nodes: pl.DataFrame, by: tuple[str, ...], policy: Policy | None) -> pl.DataFrame:
    tree = make_tree(nodes, by)
    is_end = (nodes["is_kept"] & (nodes["n_children"] == 0)).to_numpy()
    ends = np.flatnonzero(is_end)
    # In the order of finishing; but the first of independent solutions must not be the shortest, so these
    # come in the order of node_id, a hash.
    is_exchangeable = policy is not None and policy.is_exchangeable
    order = nodes["node_id" if is_exchangeable else "round"].to_numpy()[ends]
    finished = ends[np.lexsort((ends, order, tree.group[ends]))]
    scores = _step_scores(nodes, tree, finished)
    copies = np.maximum(nodes["n_allocated"].to_numpy()[finished], 1)
    chosen = _chosen(tree.group[finished], scores, copies, policy)
    paths = _texts(nodes, tree, finished)
    n_groups = tree.keys.height
    spent = nodes.select(
        pl.col("n_tokens").fill_null(0) + pl.col("n_lookahead_tokens").fill_null(0)
    ).to_series()
    tokens = np.bincount(tree.group, weights=spent.to_numpy(), minlength=n_groups)
    ended = pl.DataFrame({
        "group": tree.group[finished],
        "step_scores": scores,
        "finish_reason": nodes["finish_reason"].gather(finished),
        "node_id": nodes["node_id"].gather(finished),
    }).hstack(paths)[chosen]
    without = np.setdiff1d(np.arange(n_groups), tree.group[finished])
    lost = pl.DataFrame({"group": without}).with_columns(_nothing_found(policy))
    lost = lost.select("group", "finish_reason", "n_tokens")
    rows = pl.concat([ended, lost], how="diagonal").sort("group", maintain_order=True)
    group = rows["group"].to_numpy()
    rows = rows.hstack(tree.keys[group]).with_columns(
        attempt=pl.Series(np.arange(len(group)) - np.searchsorted(group, group), dtype=pl.UInt32),
        tree_tokens=pl.Series(tokens[group].astype(np.int64)),
        is_exchangeable=pl.lit(policy is not None and policy.is_exchangeable),
    )
    if policy is not None:
        rows = rows.with_columns(policy=pl.lit(policy.name), width=pl.lit(policy.width, pl.Int64))
    return rows


def _texts(nodes: pl.DataFrame, tree: Tree, leaves: Integers) -> pl.DataFrame:
    """Join the texts and add the tokens of each path."""
    rows, leaf = tree.paths(leaves)
    steps = pl.DataFrame({
        "leaf": leaf,
        "completion": nodes["text"].gather(rows),
        "n_tokens": nodes["n_tokens"].gather(rows),
    })
    known = pl.col("n_tokens").is_not_null().all()
    return (
        steps
        .group_by("leaf", maintain_order=True)
        .agg(pl.col("completion").str.join(""), pl.when(known).then(pl.col("n_tokens").sum()))
        .select(pl.col("completion").cast(pl.String), pl.col("n_tokens").cast(pl.Int64))
    )


def _step_scores(nodes: pl.DataFrame, tree: Tree, leaves: Integers) -> pl.Series:
    """Return the scores of each path: the verifier's own list, else those given step by step."""
    rows, leaf = tree.paths(leaves)
    own = (
        pl
        .DataFrame({"leaf": leaf, "score": nodes["step_score"].gather(rows)})
        .group_by("leaf", maintain_order=True)
        .agg("score")["score"]
        .cast(pl.List(pl.Float64))
    )
    vectors = nodes["score_vector"].cast(pl.List(pl.Float64)).gather(leaves)
    return pl.select(pl.coalesce(vectors, own).alias("step_scores")).to_series()


def _chosen(
    group: Integers, scores: pl.Series, copies: Integers, policy: Policy | None
) -> Integers:
    """Return which solutions are returned, by their index, repeated and in order."""
    index = np.arange(len(group))
    if policy is not None and policy.returned == "best":
        reduced = pl.DataFrame([scores]).select(STEP_REDUCTIONS[policy.reduction]("step_scores"))
        score = reduced.to_series().fill_null(float("nan")).to_numpy()
        index = np.lexsort((index, -score, group))
    index = np.repeat(index, copies[index])
    if policy is None or policy.returned == "all":
        return index
    sorted_group = group[index]
    position = np.arange(len(index)) - np.searchsorted(sorted_group, sorted_group)
    index = index[position < policy.width]
    if not policy.pads_returned or not len(index):
        return index
    starts = np.flatnonzero(np.append(True, np.diff(group[index]) > 0))
    sizes = np.diff(np.append(starts, len(index)))
    slot = np.arange(policy.width)
    return np.asarray(index[(starts[:, None] + slot[None, :] % sizes[:, None]).ravel()])
