"""Every selector: how it picks an attempt of each problem at each budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

import polars as pl

from ttsframe._typing import SelectorName
from ttsframe.votes.engine.ballots import Ballots
from ttsframe.votes.engine.plain import (
    is_finite,
    pick_best,
    pick_confident,
    pick_first_valid,
    pick_majority,
    pick_oracle,
    pick_weighted,
)
from ttsframe.votes.engine.pools import Flags, Reading
from ttsframe.votes.engine.ranked import pick_borda, pick_majority_of_bests, pick_top_fraction
from ttsframe.votes.engine.risk import pick_least_risk
from ttsframe.votes.engine.winners import Winners

PROBLEM_COLUMNS: Final[Mapping[str, type[pl.DataType]]] = MappingProxyType({
    "budget": pl.UInt32,
    "subsets": pl.String,
    "selector": pl.String,
    "reduction": pl.String,
    "attempt": pl.UInt32,
    "answer": pl.String,
    "answer_key": pl.String,
    "is_correct": pl.Boolean,
    "value": pl.Float64,
    "status": pl.String,
    "n_attempts": pl.UInt32,
    "n_valid": pl.UInt32,
    "n_votes": pl.UInt32,
    "weight": pl.Float64,
    "agreement": pl.Float64,
})
"""Columns of `problems` behind those that name a problem."""

Picker: TypeAlias = Callable[[Ballots, int], Winners]
"""What picks; it is given the number of a reading."""


class Selector(NamedTuple):
    """One row of the registry.

    `weighs_votes`: `weights` says what a vote weighs; `reads_texts`: answers are compared by what
    they say, which the ballots must bring; `is_defined`: on which problems scores make sense, a
    matrix of them, None where any score does.
    """

    summary: str
    reads_score: bool
    weighs_votes: bool
    pick: Picker
    reads_texts: bool = False
    is_defined: Callable[[Ballots, int], Flags] | None = None


SELECTORS: Final[Mapping[SelectorName, Selector]] = MappingProxyType({
    "majority_vote": Selector(
        summary="the answer that most attempts gave (self-consistency, maj@n)",
        reads_score=False,
        weighs_votes=False,
        pick=pick_majority,
    ),
    "weighted_vote": Selector(
        summary="the answer whose attempts' scores add up to most",
        reads_score=True,
        weighs_votes=True,
        pick=pick_weighted,
        is_defined=Ballots.is_defined,
    ),
    "best_of_n": Selector(
        summary="the answer of the attempt with the highest score, if it has one (rm@n)",
        reads_score=True,
        weighs_votes=False,
        pick=pick_best,
    ),
    "borda_vote": Selector(
        summary="the answer with the most votes, of which better ranked attempts have more",
        reads_score=True,
        weighs_votes=False,
        pick=pick_borda,
    ),
    "confidence_vote": Selector(
        summary="the answer whose attempts have most of the softmax of the scores (CISC)",
        reads_score=True,
        weighs_votes=False,
        pick=pick_confident,
        is_defined=is_finite,
    ),
    "top_fraction_vote": Selector(
        summary="the weighted vote of the tenth of the attempts with the highest scores (DeepConf)",
        reads_score=True,
        weighs_votes=True,
        pick=pick_top_fraction,
        is_defined=Ballots.is_defined,
    ),
    "majority_of_the_bests": Selector(
        summary="the answer that the best of a few resampled attempts has most often (MoB)",
        reads_score=True,
        weighs_votes=False,
        pick=pick_majority_of_bests,
    ),
    "minimum_bayes_risk": Selector(
        summary="the answer whose text is most like those of all attempts (MBR)",
        reads_score=False,
        weighs_votes=False,
        pick=pick_least_risk,
        reads_texts=True,
    ),
    "first_valid": Selector(
        summary="the answer of the first attempt that has one",
        reads_score=False,
        weighs_votes=False,
        pick=pick_first_valid,
    ),
    "oracle": Selector(
        summary="a right answer if any attempt gave one (pass@n), else first_valid's",
        reads_score=False,
        weighs_votes=False,
        pick=pick_oracle,
    ),
})
"""Every selector: the registry that the command line, the charts and the tests read."""


class Pick(NamedTuple):
    """One selector with one reading of the scores, or with none.

    `picker` picks in place of the registry's, by parameters of its own.
    """

    selector: SelectorName
    reading: Reading | None
    picker: Picker | None = None

    @property
    def number(self) -> int:
        """Number of the reading; 0 where it does not matter."""
        return 0 if self.reading is None else self.reading.number

    def winners(self, ballots: Ballots) -> Winners:
        """Let the selector pick.

        Parameters
        ----------
        ballots
            The attempts.

        Returns
        -------
        Winners
            What it picks.
        """
        picker = self.picker or SELECTORS[self.selector].pick
        return picker(ballots, self.number)
