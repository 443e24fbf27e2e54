"""What every policy has: it is asked what to continue, is told what came, and remembers nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, TypeAlias, get_args

import polars as pl

from ttsframe._checks import check_choice, check_int, check_not_negative, check_positive
from ttsframe._typing import StepReduction
from ttsframe.schema import Column

__all__ = ["FRONTIER_COLUMNS", "Policy"]

Truncated: TypeAlias = Literal["drop", "retry", "end", "continue"]
Duplicates: TypeAlias = Literal["keep", "drop"]
LastRound: TypeAlias = Literal["stop", "finish", "return"]
ChildOrder: TypeAlias = Literal["grouped", "tiled"]
Returned: TypeAlias = Literal["all", "first", "best"]

FRONTIER_COLUMNS: Final[Mapping[str, Column]] = MappingProxyType({
    "problem": Column(pl.Int64(), "number of the problem; rows of a problem are adjacent"),
    "node_id": Column(pl.UInt64(), "identifier of the node"),
    "parent_id": Column(pl.UInt64(), "its parent; null for the problem itself"),
    "round": Column(pl.Int64(), "round that is asked for, from 0"),
    "depth": Column(pl.Int64(), "number of steps so far; 0 for the problem itself"),
    "subtree": Column(pl.Int64(), "part of the tree, from 0"),
    "child": Column(pl.Int64(), "index of the node among the children of its parent"),
    "score": Column(pl.Float64(), "reduced score of the path; null where there is none"),
    "n_scores": Column(pl.Int64(), "scores that the verifier gave for the path, if it gave a list"),
    "is_terminal": Column(pl.Boolean(), "the path is a finished solution"),
    "n_copies": Column(pl.Int64(), "how often a policy that resamples holds the node"),
    "n_tokens": Column(pl.Int64(), "tokens of the step"),
    "n_finished": Column(pl.Int64(), "finished solutions of the problem so far"),
    "n_finished_subtree": Column(pl.Int64(), "finished solutions of the subtree so far"),
    "draw": Column(pl.UInt64(), "random bits of the problem and round"),
    "path": Column(pl.List(pl.UInt64()), "node_id of each step up to this one (needs_paths)"),
    "path_tokens": Column(pl.List(pl.Int64()), "tokens of each of these steps (needs_paths)"),
    "text": Column(pl.String(), "text of the step"),
})
"""The columns of the frontier, which a policy is given: dtype and meaning."""


@dataclass(frozen=True)
class Policy(ABC):
    """A search policy: which steps are continued, and how often. An own policy is a subclass.

    A policy keeps no state. What it needs stands in the columns of the frontier
    (`tts.search.FRONTIER_COLUMNS`), so any subset of problems can be asked, each in its own round.

    Parameters
    ----------
    width
        Number of solutions that the search aims at, its budget.
    reduction
        What the path is ranked by: a reduction of the verifier's scores of its steps.
    max_rounds
        Rounds after which the search ends.
    last_round
        What the generator is asked for in the last round: "stop", a step as in every round, after
        which unfinished paths are dropped; "finish", the whole rest of the solution; or "return", a
        step, after which the policy is asked once more and a path is returned unfinished as often as it
        would be continued.
    lookahead
        Number of greedy steps that the verifier sees behind each step, and that nobody else sees.
    truncated
        What happens to a step that was cut by a limit of length: "drop" ends its path; "retry" asks
        again, up to three times in all, where every continuation of a path was cut, then drops; "end"
        takes it for a finished solution, which it is not; "continue" goes on as if it were whole.
    duplicates
        "drop" keeps the first of several unfinished paths of a problem with the same text.
    empty_ends
        Whether an empty step ends a solution.
    ends_at
        A text that ends a solution wherever a step holds it, whatever the model says; None: none.
    child_order
        Order of steps within a round, which decides ties: "grouped" by parent, or "tiled": the first
        child of every parent, then the second.
    returned
        Which finished solutions `to_trajectories` returns: "all", or as many as `width`, the
        "first" to finish or the "best" by score.
    pads_returned
        Whether copies fill the returned solutions up to `width`.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> class OnlyTheBest(tts.search.Policy):
    ...     def ask(self, frontier):
    ...         best = pl.col("score").fill_null(-1).rank("ordinal", descending=True)
    ...         is_best = best.over("problem") == 1
    ...         return frontier.select(
    ...             n_allocated=pl.when(is_best).then(self.width).otherwise(0),
    ...             dropped_because=pl.when(~is_best).then(pl.lit("pruned")),
    ...         )
    >>> problems, generator, prm = tts.search.simulate(3, seed=0)
    >>> nodes = tts.search.search(problems, generator, prm, OnlyTheBest(4), seed=0)
    >>> nodes.group_by("problem_id", "round").agg(pl.col("is_kept").sum())["is_kept"].max() <= 4
    True
    """

    width: int
    reduction: StepReduction = "last"
    max_rounds: int = 40
    last_round: LastRound = "stop"
    lookahead: int = 0
    truncated: Truncated = "drop"
    duplicates: Duplicates = "keep"
    empty_ends: bool = False
    ends_at: str | None = None
    child_order: ChildOrder = "grouped"
    returned: Returned = "all"
    pads_returned: bool = False

    def __post_init__(self) -> None:
        check_positive(self.width, "width")
        check_positive(self.max_rounds, "max_rounds")
        check_not_negative(self.lookahead, "lookahead")
        check_int(self.max_rounds, "max_rounds")
        check_choice(self.reduction, "reduction", get_args(StepReduction))
        check_choice(self.last_round, "last_round", get_args(LastRound))
        check_choice(self.truncated, "truncated", get_args(Truncated))
        check_choice(self.duplicates, "duplicates", get_args(Duplicates))
        check_choice(self.child_order, "child_order", get_args(ChildOrder))
        check_choice(self.returned, "returned", get_args(Returned))

    @property
    def name(self) -> str:
        """Name of the policy, as trajectories carry it."""
        return type(self).__name__

    @property
    def is_exchangeable(self) -> bool:
        """Whether the solutions are independent samples."""
        return False

    @property
    def subtree_size(self) -> int:
        """Number of first steps that one subtree begins with."""
        return 1

    @property
    def keeps_finished(self) -> bool:
        """Whether finished solutions stay in the frontier, where the policy decides about them."""
        return False

    @property
    def needs_paths(self) -> bool:
        """Whether the frontier has the columns `path` and `path_tokens`."""
        return False

    @abstractmethod
    def ask(self, frontier: pl.DataFrame, /) -> pl.DataFrame:
        """Decide how often each node of the frontier is continued.

        Parameters
        ----------
        frontier
            One row per node that may be continued (`tts.search.FRONTIER_COLUMNS`), in the first round
            one per problem. Rows of a problem are adjacent, in an order that does not depend on how
            problems are batched.

        Returns
        -------
        pl.DataFrame
            One row per row of the frontier, in its order: `n_allocated`, the number of continuations,
            and `dropped_because` (`tts.search.NODE_COLUMNS`), null for nodes that are kept. A node
            with neither continuations nor a reason is the end of a returned path. A finished node
            with `n_allocated` above 0 stays in the frontier as that many copies.
        """

    def tell(self, children: pl.DataFrame, /) -> pl.Series:
        """Decide which new steps cannot be continued; the others are asked about in the next round.

        Parameters
        ----------
        children
            One row per new step, with the columns of the frontier, `finish_reason`, and
            `is_duplicate`: an earlier unfinished path of the round has the same text (false unless
            `duplicates` is "drop").

        Returns
        -------
        pl.Series
            Why each step is dropped (`tts.search.NODE_COLUMNS`); null for one that is not.
        """
        is_open = ~pl.col("is_terminal")
        lost = ["error"] if self.truncated == "continue" else ["length", "error"]
        return children.select(
            pl
            .when(is_open & pl.col("finish_reason").is_in(lost))
            .then(pl.lit("truncated"))
            .when(is_open & pl.col("is_duplicate"))
            .then(pl.lit("duplicate"))
            .alias("dropped_because")
        ).to_series()
