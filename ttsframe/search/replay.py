"""Searches of stored trees: another policy on the same steps and scores, without a model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from ttsframe._checks import check_frame, check_seed
from ttsframe._draws import Bits, bits_at
from ttsframe._typing import Integers
from ttsframe.errors import DataError, ParameterError
from ttsframe.schema import require_columns
from ttsframe.search.driver import check_policy, run_search
from ttsframe.search.identity import request_draws, root_ids
from ttsframe.search.nodes import require_nodes
from ttsframe.search.policies import DVTS, Policy

__all__ = ["Replay", "accuracy_bounds", "replay"]

_READ: Final = (
    "problem_id",
    "node_id",
    "parent_id",
    "round",
    "depth",
    "subtree",
    "step_score",
    "score_vector",
    "n_tokens",
    "n_prompt_tokens_new",
    "n_children",
    "finish_reason",
    "is_kept",
    "dropped_because",
)
"""What a replay reads: never the texts."""


class Replay(NamedTuple):
    """A replayed search."""

    nodes: pl.DataFrame
    """The table `nodes`, with the `node_id` of the stored tree and without texts (`text` is empty)."""
    problems: pl.DataFrame
    """One row per problem: `problem_id` and `status`, "ok" or "short": the stored tree had fewer
    continuations than the policy asked for, and the search of the problem ended there."""


def replay(
    nodes: pl.DataFrame | pl.LazyFrame,
    policy: Policy,
    *,
    seed: int,
    made_by: Policy | None = None,
) -> Replay:
    """Search a stored tree with a policy, as if its steps were drawn from the model.

    A *bank* is a tree in which no score chose anything: it answers every policy, as long as the policy asks
    for no more continuations than a node has. Continuations are drawn without replacement, in an order
    that the seed decides; several seeds on one bank are replicates, not new problems.

    A tree that a policy *searched* cannot answer another one: the steps that the other would have continued
    are missing where the first one dropped them. With `made_by`, it answers the policy that made it;
    and, if that is DVTS, the same policy with fewer subtrees, which are drawn without replacement.

    Parameters
    ----------
    nodes
        A `nodes` table of one bank or search. Of a LazyFrame, texts are never loaded.
    policy
        The policy to replay.
    seed
        Seed of the draws; with `made_by` a particle filter, the seed of that search.
    made_by
        The policy that searched the tree; None: `nodes` is a bank.

    Returns
    -------
    Replay
        `nodes`, and `problems` with a status.

    Raises
    ------
    ParameterTypeError
        When an argument has the wrong type.
    ParameterError
        When the policy cannot be answered from this tree; the message says why.
    ColumnsError
        When a column is missing.
    DataError
        When the tree is no bank and `made_by` is not given, or a node appears twice.

    Examples
    --------
    >>> import ttsframe as tts
    >>> problems, bank = tts.search.simulate_bank(50, n_children=(8, 4, 4), seed=0)
    >>> small, large = (
    ...     tts.search.replay(bank, tts.search.Beam(width, beam_width=2), seed=0) for width in (4, 16)
    ... )
    >>> small.problems["status"].value_counts().rows(), large.problems["status"].value_counts().rows()
    ([('ok', 50)], [('short', 50)])
    """
    check_frame(nodes, "nodes")
    check_policy(policy)
    check_seed(seed)
    require_nodes(nodes, _READ)
    _refuse_lookahead(policy)
    if made_by is not None:
        check_policy(made_by)
        _refuse_other(policy, made_by)
    stored = nodes.lazy().select(_READ).collect()
    if made_by is None:
        _refuse_searched(stored)
    elif policy != made_by:
        stored = _some_subtrees(stored, policy, seed)
    bank = _Bank.build(stored, None if made_by is not None else seed)
    problems = stored.select("problem_id").unique(maintain_order=True)
    found, is_short = run_search(
        problems, bank.generate, bank.score, policy, seed=seed, allows_short=True
    )
    status = pl.Series("status", np.where(is_short, "short", "ok"), dtype=pl.String)
    return Replay(found, problems.with_columns(status))


def accuracy_bounds(
    problems: pl.DataFrame, /, *, status: pl.DataFrame
) -> tuple[float | None, float | None]:
    """Bound the accuracy of a replay by taking its short problems as wrong, then as right.

    To drop short problems would be wrong: hard problems take more rounds and are short more often.

    Parameters
    ----------
    problems
        Graded answers of one selector, one row per problem: `problem_id` and `is_correct`, as
        `tts.select_answers` returns them.
    status
        The field `problems` of the replay.

    Returns
    -------
    tuple of float
        The lowest and the highest accuracy; equal if no problem is short, None without a problem.

    Raises
    ------
    ColumnsError
        When a column is missing.
    DataError
        When a problem appears twice, or one that is not short has no grade.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> graded = pl.DataFrame({"problem_id": ["a", "b"], "is_correct": [True, False]})
    >>> status = pl.DataFrame({"problem_id": ["a", "b"], "status": ["ok", "short"]})
    >>> tts.search.accuracy_bounds(graded, status=status)
    (0.5, 1.0)
    """
    check_frame(problems, "problems")
    check_frame(status, "status")
    require_columns(problems, ["problem_id", "is_correct"], where="problems")
    require_columns(status, ["problem_id", "status"], where="status")
    if problems["problem_id"].is_duplicated().any():
        raise DataError(
            "problems: a problem appears twice. Hint: pass the rows of one selector and budget."
        )
    both = status.join(
        problems.select("problem_id", "is_correct"), on="problem_id", how="left", nulls_equal=True
    )
    is_short = both["status"] == "short"
    lost = both.filter(~is_short & pl.col("is_correct").is_null())
    if lost.height:
        raise DataError(
            f"problems: {lost['problem_id'][0]!r} has no grade and is not short. Hint: pass gold answers as "
            "problems= of tts.search.to_trajectories, then tts.score_trajectories."
        )
    if not both.height:
        return None, None
    n_right = int((both["is_correct"] & ~is_short).sum())
    return n_right / both.height, (n_right + int(is_short.sum())) / both.height


def _refuse_lookahead(policy: Policy) -> None:
    if policy.lookahead:
        raise ParameterError(
            f"lookahead == {policy.lookahead}, must be 0 in a replay: a stored tree has no greedy "
            "continuations of the steps that it holds. Hint: tts.search.search runs it."
        )
    if policy.last_round == "finish":
        raise ParameterError(
            "last_round == 'finish', must be 'stop' in a replay: a stored tree has single steps."
        )
    if policy.truncated == "retry":
        raise ParameterError(
            "truncated == 'retry' cannot be replayed: it asks for steps that a stored tree may not have."
        )
    if policy.duplicates == "drop" or policy.empty_ends or policy.ends_at is not None:
        raise ParameterError(
            "duplicates == 'drop', empty_ends and ends_at cannot be replayed: they read texts, which a replay "
            "never loads."
        )


def _refuse_other(policy: Policy, made_by: Policy) -> None:
    if policy == made_by:
        return
    is_narrower = (
        isinstance(policy, DVTS)
        and isinstance(made_by, DVTS)
        and made_by.beam_width != "sqrt"
        and policy.width < made_by.width
        and replace(policy, width=made_by.width) == made_by
    )
    if is_narrower:
        return
    what = f"{policy.name} of width {policy.width}"
    maker = f"{made_by.name} of width {made_by.width}"
    other = what if what != maker else f"{what} with other parameters"
    raise ParameterError(
        f"policy: {other} cannot be answered from the tree of a search by {maker}: where it continues "
        "a step that this search dropped, there are no continuations. Hint: the policy that made the "
        "tree can be replayed, or DVTS with fewer subtrees; a bank answers every policy "
        "(tts.search.simulate_bank)."
    )


def _refuse_searched(nodes: pl.DataFrame) -> None:
    """Refuse a tree in which scores chose what was continued."""
    end = "Hint: say which policy made it, with made_by=...; a bank comes from tts.search.simulate_bank."
    dropped = nodes.filter(
        pl.col("dropped_because").is_not_null() & ~pl.col("dropped_because").is_in(["truncated"])
    )
    if dropped.height:
        raise DataError(
            f"nodes: {dropped.height:,} steps were dropped ({dropped['dropped_because'][0]}), so this is the "
            f"tree of a search and no bank: it has no continuations of them. {end}"
        )
    open_ = nodes.filter(pl.col("finish_reason") == "step")
    sizes = (
        open_
        .group_by("depth")
        .agg(pl.col("n_children").n_unique())
        .filter(pl.col("n_children") > 1)
    )
    if sizes.height:
        depth = int(sizes["depth"].to_numpy().min())
        raise DataError(
            f"nodes: steps at depth {depth} have different numbers of continuations, so a "
            f"policy chose them and this is no bank. {end}"
        )


def _some_subtrees(nodes: pl.DataFrame, policy: Policy, seed: int) -> pl.DataFrame:
    """Keep as many subtrees as a narrower DVTS has, drawn without replacement, and number them anew."""
    n_kept = policy.width // policy.subtree_size
    keys = nodes.select("problem_id", "subtree").unique(maintain_order=True)
    roots = root_ids(keys["problem_id"])
    draws = bits_at(request_draws(seed, roots), keys["subtree"].cast(pl.Int64).to_numpy())
    kept = (
        keys
        .with_columns(draw=pl.Series(draws))
        .with_columns(place=pl.col("draw").rank("ordinal").over("problem_id"))
        .filter(pl.col("place") <= n_kept)
        .select("problem_id", "subtree")
    )
    return nodes.join(kept, on=["problem_id", "subtree"], how="semi", maintain_order="left")


@dataclass(frozen=True)
class _Bank:
    """A stored tree as a generator and a verifier."""

    nodes: pl.DataFrame
    """Sorted by parent."""
    parents: Bits
    starts: Integers
    ends: Integers
    by_id: Integers
    """Rows of `nodes` in the order of `node_id`."""
    ids: Bits
    has_vectors: bool

    @classmethod
    def build(cls, nodes: pl.DataFrame, seed: int | None) -> _Bank:
        """Sort the children of each node: as stored, or as the seed draws them."""
        ids = nodes["node_id"].cast(pl.UInt64).to_numpy()
        if len(np.unique(ids)) != len(ids):
            raise DataError(
                "nodes: a node_id appears twice. Hint: filter one search or bank; several cannot be "
                "replayed at once."
            )
        keys = nodes.select("problem_id").unique(maintain_order=True)
        roots = keys.with_columns(root=pl.Series(root_ids(keys["problem_id"]), dtype=pl.UInt64))
        above = nodes.select("problem_id", "parent_id").join(
            roots, on="problem_id", how="left", maintain_order="left", nulls_equal=True
        )
        parent = above.select(pl.coalesce(pl.col("parent_id").cast(pl.UInt64), "root")).to_series()
        drawn = np.arange(len(ids)) if seed is None else request_draws(seed, ids)
        order = np.lexsort((drawn, parent.to_numpy()))
        sorted_parents = parent.to_numpy()[order]
        parents, starts = np.unique(sorted_parents, return_index=True)
        stored = nodes[order]
        sorted_ids = ids[order]
        by_id = np.argsort(sorted_ids, kind="stable")
        return cls(
            stored,
            parents,
            starts,
            np.append(starts[1:], len(ids)),
            by_id,
            sorted_ids[by_id],
            stored["score_vector"].null_count() < len(ids),
        )

    def generate(self, requests: pl.DataFrame, /) -> pl.DataFrame:
        """Return the first continuations of each node; fewer where it has fewer."""
        wanted = requests["n"].to_numpy()
        nodes = requests["node_id"].to_numpy()
        place = np.minimum(np.searchsorted(self.parents, nodes), max(len(self.parents) - 1, 0))
        has = self.parents[place] == nodes
        n = np.where(has, np.minimum(wanted, self.ends[place] - self.starts[place]), 0)
        request = np.repeat(np.arange(len(n)), n)
        rows = (
            np.repeat(self.starts[place], n)
            + np.arange(len(request))
            - np.repeat(np.cumsum(n) - n, n)
        )
        found: pl.DataFrame = self.nodes[rows]
        return found.select(
            "finish_reason",
            "n_tokens",
            "n_prompt_tokens_new",
            "node_id",
            text=pl.lit(""),
            request=pl.Series(request),
        )

    def score(self, prefixes: pl.DataFrame, /) -> pl.Series:
        """Return the stored scores."""
        place = np.searchsorted(self.ids, prefixes["node_id"].to_numpy())
        rows = self.by_id[place]
        return self.nodes["score_vector" if self.has_vectors else "step_score"].gather(rows)
