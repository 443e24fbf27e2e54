"""The table `nodes` as arrays: where the parent of each row is, and what lies on its path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from ttsframe._typing import Integers
from ttsframe.errors import DataError

_HINT = "several searches in one frame are told apart by columns named in by."


class Tree(NamedTuple):
    """Rows of `nodes` with the row of each parent."""

    group: Integers
    """Number of the problem, within the columns of `by`, in order of appearance."""
    keys: pl.DataFrame
    """The columns of `by` and `problem_id`, one row per group."""
    parent: Integers
    """Row of the parent, -1 for a first step."""
    depth: Integers

    def levels(self) -> list[Integers]:
        """Return the rows of each depth, first steps first."""
        order = np.argsort(self.depth, kind="stable")
        starts = np.searchsorted(self.depth[order], np.unique(self.depth))
        return np.split(order, starts[1:])

    def paths(self, leaves: Integers) -> tuple[Integers, Integers]:
        """Return the rows on the way to each leaf, first step first, and the index of their leaf."""
        longest = int(self.depth[leaves].max(initial=0))
        matrix = np.full((len(leaves), longest), -1, dtype=np.int64)
        rows = leaves.copy()
        for column in range(longest - 1, -1, -1):
            here = (rows >= 0) & (self.depth[rows] == column + 1)
            matrix[here, column] = rows[here]
            rows = np.where(here, self.parent[rows], rows)
        leaf, place = np.nonzero(matrix >= 0)
        return matrix[leaf, place], leaf


def make_tree(nodes: pl.DataFrame, by: Sequence[str]) -> Tree:
    """Find the parent of every row, and check that there is one."""
    names = [*by, "problem_id"]
    keys = nodes.select(names).unique(maintain_order=True)
    numbered = keys.with_row_index("__group")
    group = nodes.select(names).join(
        numbered, on=names, how="left", maintain_order="left", nulls_equal=True
    )["__group"]
    ids = pl.DataFrame({
        "group": group,
        "node": nodes["node_id"].cast(pl.UInt64),
        "parent": nodes["parent_id"].cast(pl.UInt64),
    })
    if ids.select(pl.struct("group", "node").is_duplicated().any()).item():
        raise DataError(f"nodes: a node_id appears twice in a problem. Hint: {_HINT}")
    found = ids.join(
        ids.select("group", parent="node", row=pl.int_range(pl.len())),
        on=["group", "parent"],
        how="left",
        maintain_order="left",
    )["row"]
    lost = found.is_null() & ids["parent"].is_not_null()
    depth = nodes["depth"].cast(pl.Int64).to_numpy()
    if lost.any():
        raise DataError(
            f"nodes: {int(lost.sum()):,} rows have a parent_id that is no node of their problem. Hint: keep all "
            "rows of a search; filter what functions return instead."
        )
    parent = found.fill_null(-1).to_numpy()
    expected = np.where(parent >= 0, depth[parent] + 1, 1)
    if (depth != expected).any():
        row = int(np.argmax(depth != expected))
        raise DataError(
            f"nodes: row {row} has depth {depth[row]}, must be {expected[row]}, one more than its parent's."
        )
    return Tree(group.cast(pl.Int64).to_numpy(), keys, parent, depth)
