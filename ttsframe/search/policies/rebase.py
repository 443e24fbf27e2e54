"""REBASE: the width is shared in proportion to a softmax of the scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import polars as pl

from ttsframe._checks import check_choice, check_number
from ttsframe._settings import found
from ttsframe.errors import ParameterError
from ttsframe.search.policies.arrays import by_problem, left_of, reasons, scores_of
from ttsframe.search.policies.kernels import allocate_ceil, allocate_round, ranks, softmax_weights
from ttsframe.search.policies.policy import Policy

__all__ = ["Rebase"]

Rounding: TypeAlias = Literal["ceil", "round"]


@dataclass(frozen=True)
class Rebase(Policy):
    """REBASE: reward-balanced search.

    Every path of a round gets a share of the width that grows with its score. The shares sum to the
    width exactly, whatever the scores.

    Parameters
    ----------
    width
        Number of solutions. A finished solution takes one from the width of later rounds.
    temperature
        Temperature of the softmax over the scores of a round.
    rounding
        How shares become integers: "ceil", each share of the rest rounded up, best path first, as in
        the paper; or "round", to the nearest integer, and the list of copies cut to the width or
        repeated up to it, as in DORA's version.
    finished_reduce_width
        Whether a finished solution takes one from the width. If not, a search ends when `width`
        solutions are finished.
    prefers_later
        Whether of equal scores the later path ranks first.
    **parameters
        Those of `tts.search.Policy`.

    References
    ----------
    Wu et al. (2024), Inference scaling laws, arXiv:2408.00724.

    Examples
    --------
    >>> import ttsframe as tts
    >>> problems, generator, prm = tts.search.simulate(2, seed=0)
    >>> nodes = tts.search.search(problems, generator, prm, tts.search.Rebase(8), seed=0)
    >>> nodes.filter(round=0).group_by("problem_id", maintain_order=True).agg("n_allocated")[
    ...     "n_allocated"
    ... ].list.sum().to_list()
    [8, 8]
    """

    temperature: float = 0.2
    rounding: Rounding = "ceil"
    finished_reduce_width: bool = True
    prefers_later: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self.rounding, "rounding", get_args(Rounding))
        if check_number(self.temperature, "temperature") <= 0:
            raise ParameterError(f"{found('temperature', self.temperature)}, must be above 0.")

    @property
    def name(self) -> str:
        """Name of the policy, as trajectories carry it."""
        return "rebase"

    def ask(self, frontier: pl.DataFrame, /) -> pl.DataFrame:
        """Share the width that each problem has left."""
        groups, scores = by_problem(frontier), scores_of(frontier)
        left = left_of(frontier, groups, self.width)
        if not self.finished_reduce_width:
            left[left > 0] = self.width
        order = ranks(groups, scores, prefers_later=self.prefers_later)
        weights = softmax_weights(groups, scores, self.temperature)
        allocate = allocate_ceil if self.rounding == "ceil" else allocate_round
        n_allocated = allocate(groups, weights, order, left)
        return reasons(n_allocated, left[groups.of_row] == 0, "zero_allocation")
