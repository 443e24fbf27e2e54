"""Beam search in which finished paths compete with unfinished ones for the places that are kept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from ttsframe._checks import check_positive
from ttsframe._typing import Integers
from ttsframe.search.policies.arrays import by_problem, column, reasons, scores_of
from ttsframe.search.policies.kernels import ranks
from ttsframe.search.policies.policy import Policy


@dataclass(frozen=True)
class PooledBeam(Policy):
    """Keeps the best paths of a round, finished or not, and gives each as many continuations."""

    n_first: int = 1
    """First steps of a problem."""
    n_kept: int = 1
    n_each: int = 1
    """Continuations of each kept path."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("n_first", "n_kept", "n_each"):
            check_positive(getattr(self, name), name)

    @property
    def name(self) -> str:
        """Name of the policy, as trajectories carry it."""
        return "beam"

    @property
    def keeps_finished(self) -> bool:
        """Whether finished solutions stay in the frontier: they hold places."""
        return True

    def ask(self, frontier: pl.DataFrame, /) -> pl.DataFrame:
        """Keep the best, each copy of a finished path counted, and multiply all that is kept."""
        groups = by_problem(frontier)
        order = ranks(groups, scores_of(frontier))
        copies = column(frontier, "n_copies")
        sorting = np.lexsort((order, groups.of_row))
        before = np.empty(len(order), dtype=np.int64)
        before[sorting] = np.cumsum(copies[sorting]) - copies[sorting]
        # What lies before the group's best path belongs to other problems.
        before -= np.minimum.reduceat(before, groups.starts)[groups.of_row]
        given = np.clip(self.n_kept - before, 0, copies) * self.n_each
        return self._answer(frontier, given)

    def _answer(self, frontier: pl.DataFrame, given: Integers) -> pl.DataFrame:
        given = np.where(column(frontier, "depth") == 0, self.n_first, given)
        return reasons(given, np.zeros(len(given), dtype=np.bool_), "pruned")


@dataclass(frozen=True)
class HeldBeam(PooledBeam):
    """A finished path that was kept once holds its place for good, so fewer are left to the others."""

    def ask(self, frontier: pl.DataFrame, /) -> pl.DataFrame:
        """Keep all that hold a place, and the best of the others."""
        groups = by_problem(frontier)
        is_finished = frontier["is_terminal"].to_numpy()
        is_held = is_finished & (column(frontier, "depth") < column(frontier, "round"))
        # A list of scores that has not one for each step counts as 0.
        is_odd = frontier.select(
            (pl.col("n_scores") != pl.col("depth")).fill_null(value=False)
        ).to_series()
        scores = np.where(is_odd.to_numpy(), 0.0, scores_of(frontier))
        order = ranks(groups, np.where(is_held, np.inf, scores))
        is_last = column(frontier, "round") == self.max_rounds
        n_each = np.where(is_finished | is_last, 1, self.n_each)
        return self._answer(frontier, np.where(order < self.n_kept, n_each, 0))

    def tell(self, children: pl.DataFrame, /) -> pl.Series:
        """Drop steps without an end, empty ones, and all but the first of equal siblings."""
        is_lost = pl.col("finish_reason").is_in(["length", "error"]) | (pl.col("text") == "")
        is_first = pl.struct(
            "problem", "parent_id", "text", is_lost.alias("lost")
        ).is_first_distinct()
        return children.select(
            pl
            .when(is_lost)
            .then(pl.lit("truncated"))
            .when(~is_first)
            .then(pl.lit("duplicate"))
            .alias("dropped_because")
        ).to_series()
