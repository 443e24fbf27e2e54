"""Steps that branch: a table of nodes, each the continuation of its parent."""

from __future__ import annotations

from typing import Final

import polars as pl

from ttsframe._checks import check_frame
from ttsframe._exprs import run_plan
from ttsframe._typing import FrameT
from ttsframe.errors import ColumnsError
from ttsframe.readers.step_formats.writing import IDS, ordered, refuse
from ttsframe.schema import require_columns

_TREE: Final = (*IDS, "step", "node", "parent")


def nodes_of(steps: pl.DataFrame) -> pl.DataFrame:
    """Sort steps as nodes of trees; steps without nodes continue one another."""
    is_tree = "node" in steps.columns
    frame = ordered(steps, ["problem", "text", *(["parent"] if is_tree else [])])
    refuse(frame, pl.col("problem").is_null(), "problem is null")
    refuse(frame, (pl.col("step") >= 0) & pl.col("text").is_null(), "text is null")
    if not is_tree:
        refuse(
            frame,
            pl.struct("__row", "step").is_duplicated(),
            "is there more than once. Hint: 'node' and 'parent' say which step continues which.",
        )
        frame = frame.with_columns(
            pl.int_range(pl.len()).over("__row").alias("node"),
            (pl.int_range(pl.len()).over("__row") - 1).alias("parent"),
        ).with_columns(pl.when(pl.col("parent") >= 0).then("parent"))
    refuse(frame, pl.col("node").is_null(), "node is null")
    refuse(
        frame,
        pl.struct("__row", "node").is_duplicated(),
        lambda row: f"node {row['node']} is there more than once",
    )
    parents = frame.select("__row", parent="node", parent_step="step")
    joined = frame.join(parents, on=["__row", "parent"], how="left", maintain_order="left")
    refuse(
        joined,
        pl.col("parent").is_not_null() & pl.col("parent_step").is_null(),
        lambda row: f"node {row['node']} continues node {row['parent']}, which is not there",
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
            f"node {row['node']} does not follow the step that it continues; 0 is the first "
            f"step, -1 the problem before any step"
        ),
    )
    return joined.drop("parent_step").sort("__row", "node", maintain_order=True)


def step_paths(steps: FrameT, /) -> FrameT:
    """Make a solution of each path through a tree of steps, from the problem to a step that ends it.

    Formats that hold one solution after the other, and whatever compares labels with the scores of
    whole solutions, need paths; steps that paths share are repeated in each.

    Parameters
    ----------
    steps
        Table of steps with ``node`` and ``parent``, as `read_steps` makes it of MATH-APS.

    Returns
    -------
    FrameT
        The same columns without ``node`` and ``parent``. ``solution_id`` is the tree's with the number
        of the path's last node behind a slash; paths are in the order of that node. A LazyFrame for
        a LazyFrame.

    Raises
    ------
    ParameterTypeError
        When ``steps`` is not a Polars frame.
    ColumnsError
        When a column is missing, or ``node`` or ``parent`` is no integer.
    DataError
        When a node is there twice, or continues one that is not there or not the step before.

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
        hint="only formats of trees, such as MATH-APS, need paths; others are solutions already.",
    )
    for name in ("node", "parent"):
        if not (schema[name].is_integer() or isinstance(schema[name], pl.Null)):
            raise ColumnsError(f"column {name!r} of steps is {schema[name]}, must be an integer.")
    result = {name: dtype for name, dtype in schema.items() if name not in {"node", "parent"}}
    result |= {"solution_id": pl.String(), "step": pl.Int64()}
    return run_plan(steps, lambda frame: frame.map_batches(_paths, schema=result))


def _paths(steps: pl.DataFrame) -> pl.DataFrame:
    nodes = nodes_of(steps)
    inner = nodes.select("__row", node="parent").drop_nulls().unique()
    at = nodes.join(inner, on=["__row", "node"], how="anti").select("__row", "node", leaf="node")
    levels = [at]
    # As many rounds as a path has steps: each takes all paths one step back.
    while at.height:
        at = at.join(nodes.select("__row", "node", "parent"), on=["__row", "node"]).drop_nulls(
            "parent"
        )
        at = at.select("__row", "leaf", node="parent")
        levels.append(at.select("__row", "node", "leaf"))
    whole = pl.concat(levels, how="diagonal_relaxed")
    paths = whole.join(nodes, on=["__row", "node"]).sort("__row", "leaf", "step")
    named = pl.format("{}/{}", "solution_id", "leaf").alias("solution_id")
    return paths.with_columns(named).select(
        name for name in steps.columns if name not in {"node", "parent"}
    )
