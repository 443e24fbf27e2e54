"""How large a key-value cache a search needs, round by round, and how much of it paths share."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from ttsframe._checks import check_frame, check_names, check_not_negative
from ttsframe._exprs import run_plan
from ttsframe._typing import ColumnNames, FrameT, Integers
from ttsframe.search.nodes import require_nodes
from ttsframe.search.tree import Tree, make_tree

__all__ = ["cache_by_round"]

_READ: Final = ("problem_id", "node_id", "parent_id", "round", "depth", "n_tokens")
_RESULT: Final = {
    "round": pl.UInt16(),
    "n_candidates": pl.Int64(),
    "cache_tokens": pl.Int64(),
    "unshared_tokens": pl.Int64(),
    "sharing": pl.Float64(),
}


def cache_by_round(nodes: FrameT, /, *, n_prompt_tokens: int = 0, by: ColumnNames = ()) -> FrameT:
    """Count the tokens that a key-value cache holds in each round of a search.

    In a round, the cache holds the steps of the round, kept or not, and their ancestors. Paths share
    ancestors, which a cache with a prefix tree holds once.

    Parameters
    ----------
    nodes
        A `nodes` table. Unknown `n_tokens` count as 0.
    n_prompt_tokens
        Tokens of the prompt, which all paths of a problem share.
    by
        Columns that identify a search.

    Returns
    -------
    FrameT
        One row per problem and round: the columns of `by`, `problem_id`, `round`, `n_candidates` (steps
        of the round), `cache_tokens`, `unshared_tokens` (the same if no path shared anything) and
        `sharing`, the second divided by the first. A LazyFrame for a LazyFrame.

    Raises
    ------
    ParameterTypeError
        When `nodes` is not a Polars frame.
    ColumnsError
        When a column is missing.
    DataError
        At collection, when the rows are not a tree.

    References
    ----------
    Hooper et al. (2025), ETS: efficient tree search, arXiv:2502.13575.

    Examples
    --------
    >>> import ttsframe as tts
    >>> problems, generator, prm = tts.search.simulate(1, seed=0)
    >>> nodes = tts.search.search(problems, generator, prm, tts.search.Beam(4), seed=0)
    >>> tts.search.cache_by_round(nodes).select("round", "n_candidates", "sharing").head(2).rows()
    [(0, 4, 1.0), (1, 4, 1.7...)]
    """
    check_frame(nodes, "nodes")
    names: tuple[str, ...] = check_names(by, "by", taken=[*_RESULT, "problem_id"])
    check_not_negative(n_prompt_tokens, "n_prompt_tokens")
    schema = require_nodes(nodes, [*names, *_READ])
    result = {name: schema[name] for name in [*names, "problem_id"]} | _RESULT

    def plan(frame: pl.LazyFrame) -> pl.LazyFrame:
        return frame.select(*names, *_READ).map_batches(
            lambda tree: _by_round(tree, names, n_prompt_tokens).select(*result),
            schema=pl.Schema(result),
        )

    return run_plan(nodes, plan)


def _by_round(nodes: pl.DataFrame, by: tuple[str, ...], n_prompt_tokens: int) -> pl.DataFrame:
    tree = make_tree(nodes, by)
    tokens = nodes["n_tokens"].fill_null(0).cast(pl.Int64).to_numpy()
    rounds = nodes["round"].cast(pl.Int64).to_numpy()
    last = last_rounds(tree, rounds)
    n_rounds = int(rounds.max(initial=-1)) + 1
    n_groups = tree.keys.height
    # A node is in the cache from its own round to the last one of its descendants.
    held = np.zeros((n_groups, n_rounds + 1), dtype=np.int64)
    np.add.at(held, (tree.group, rounds), tokens)
    np.add.at(held, (tree.group, last + 1), -tokens)
    path = path_sums(tree, tokens)
    unshared = np.zeros((n_groups, n_rounds), dtype=np.int64)
    np.add.at(unshared, (tree.group, rounds), path + n_prompt_tokens)
    count = np.zeros((n_groups, n_rounds), dtype=np.int64)
    np.add.at(count, (tree.group, rounds), 1)
    group, number = np.nonzero(count)
    cache = np.cumsum(held, axis=1)[group, number] + n_prompt_tokens
    return (
        tree
        .keys[group]
        .with_columns(
            round=pl.Series(number, dtype=pl.UInt16),
            n_candidates=pl.Series(count[group, number]),
            cache_tokens=pl.Series(cache),
            unshared_tokens=pl.Series(unshared[group, number]),
        )
        .with_columns(
            sharing=pl.when(pl.col("cache_tokens") > 0).then(
                pl.col("unshared_tokens") / pl.col("cache_tokens")
            )
        )
    )


def last_rounds(tree: Tree, rounds: Integers) -> Integers:
    """Return the last round of each node's descendants, itself included."""
    last = rounds.copy()
    for rows in reversed(tree.levels()[1:]):
        np.maximum.at(last, tree.parent[rows], last[rows])
    return last


def path_sums(tree: Tree, values: Integers) -> Integers:
    """Return the sum of a value over the path to each node."""
    total = values.copy()
    for rows in tree.levels()[1:]:
        total[rows] += total[tree.parent[rows]]
    return total
