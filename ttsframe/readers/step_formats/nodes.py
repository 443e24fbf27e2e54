"""Trees of steps: a table of nodes, each the continuation of its parent."""

from __future__ import annotations

from typing import Final

import polars as pl

from ttsframe._checks import check_frame
from ttsframe._exprs import run_plan
from ttsframe._typing import FrameT
from ttsframe.readers.step_formats.writing import IDS, refuse, sort_steps
from ttsframe.schema import require_columns, require_kind

_TREE: Final = (*IDS, "step", "node", "parent")


def step_paths(steps: FrameT, /) -> FrameT:
    """Turn a tree of steps into one solution per path, from the problem to each last step.

    Formats with one solution per row, and functions that compare labels with the scores of solutions,
    need paths. Steps shared by several paths are repeated in each.

    Parameters
    ----------
    steps
        Table of steps with `node` and `parent`, as `read_steps` returns it for MATH-APS.

    Returns
    -------
    FrameT
        The same columns without `node` and `parent`. `solution_id` is that of the tree, followed by a
        slash and the last node of the path. Paths are sorted by this node. A LazyFrame for a
        LazyFrame.

    Raises
    ------
    ParameterTypeError
        When `steps` is not a Polars frame.
    ColumnsError
        When a column is missing, or `node` or `parent` is not an integer.
    DataError
        At collection, when a node appears twice, its parent is missing, or its step does not follow
        that of its parent.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> tree = pl.DataFrame({
    ...     "problem_id": "p", "solution_id": "s", "problem": "6 x 7?",
    ...     "node": [0, 1, 2, 3], "parent": [None, 0, 0, 2], "step": [-1, 0, 0, 1],
    ...     "text": [None, "It is 42", "6 x 7 is", " 47"], "soft": [0.5, 1.0, 0.4, 0.0],
    ... })
    >>> tts.process.step_paths(tree).select("solution_id", "step", "text", "soft").rows()[3:]
    [('s/3', 0, '6 x 7 is', 0.4), ('s/3', 1, ' 47', 0.0)]
    """
    check_frame(steps, "steps")
    schema = require_columns(
        steps,
        [*_TREE, "problem", "text"],
        where="a tree of steps",
        hint="only trees, as MATH-APS has them, need paths; other formats already hold solutions.",
    )
    require_kind(schema, "an integer", "node", "parent", where="a tree of steps")
    result = {name: dtype for name, dtype in schema.items() if name not in {"node", "parent"}}
    result |= {"solution_id": pl.String(), "step": pl.Int64()}
    return run_plan(steps, lambda frame: frame.map_batches(_paths, schema=result))


def _paths(steps: pl.DataFrame) -> pl.DataFrame:
    nodes = _check_nodes(steps)
    inner = nodes.select("__row", node="parent").drop_nulls().unique()
    ends = nodes.join(inner, on=["__row", "node"], how="anti").select("__row", "node", leaf="node")
    levels = [ends]
    # Each round moves all paths one step back, so there are as many rounds as steps in a path.
    while ends.height:
        ends = ends.join(nodes.select("__row", "node", "parent"), on=["__row", "node"]).drop_nulls(
            "parent"
        )
        ends = ends.select("__row", "leaf", node="parent")
        levels.append(ends.select("__row", "node", "leaf"))
    members = pl.concat(levels, how="diagonal_relaxed")
    paths = members.join(nodes, on=["__row", "node"]).sort("__row", "leaf", "step")
    named = pl.format("{}/{}", "solution_id", "leaf").alias("solution_id")
    return paths.with_columns(named).select(
        name for name in steps.columns if name not in {"node", "parent"}
    )


def _check_nodes(steps: pl.DataFrame) -> pl.DataFrame:
    """Sort the nodes of each tree, and check that each follows its parent."""
    frame = sort_steps(steps, ["problem", "text", "parent"])
    refuse(frame, pl.col("problem").is_null(), "problem is null")
    refuse(frame, (pl.col("step") >= 0) & pl.col("text").is_null(), "text is null")
    refuse(frame, pl.col("node").is_null(), "node is null")
    refuse(
        frame,
        pl.struct("__row", "node").is_duplicated(),
        lambda row: f"node {row['node']} appears more than once",
    )
    parents = frame.select("__row", parent="node", parent_step="step")
    joined = frame.join(parents, on=["__row", "parent"], how="left", maintain_order="left")
    refuse(
        joined,
        pl.col("parent").is_not_null() & pl.col("parent_step").is_null(),
        lambda row: f"node {row['node']} continues node {row['parent']}, which is missing",
    )
    expected = (
        pl
        .when(pl.col("parent").is_not_null())
        .then(pl.col("parent_step") + 1)
        .otherwise(pl.col("step").clip(-1, 0))
    )
    refuse(
        joined,
        pl.col("step") != expected,
        lambda row: (
            f"node {row['node']} does not follow the step of its parent; 0 is the first step, -1 the "
            f"problem before any step"
        ),
    )
    return joined.drop("parent_step").sort("__row", "node", maintain_order=True)
