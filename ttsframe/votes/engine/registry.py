"""Every selector: one row says its name, what it reads, how it picks, and how it is averaged.

To add a selector, add its name to `SelectorName` and a row to `SELECTORS`. The command line, batch
jobs, charts, reports and contract tests read this registry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np
import polars as pl

from ttsframe._own import check_named, name_of
from ttsframe._typing import Floats, Integers, OwnSelector, Reduction, Weights
from ttsframe.votes.engine.ballots import NONE, Ballots
from ttsframe.votes.engine.own import OwnPicker, make_own
from ttsframe.votes.engine.pools import Block, Reading, make_readings
from ttsframe.votes.engine.ranked import (
    pick_best_of_majority,
    pick_borda,
    pick_majority_of_bests,
    pick_top_fraction,
)
from ttsframe.votes.engine.risk import pick_least_risk
from ttsframe.votes.engine.winners import Winners, pick_heaviest

SelectorName: TypeAlias = Literal[
    "majority_vote",
    "weighted_vote",
    "best_of_n",
    "borda_vote",
    "confidence_vote",
    "top_fraction_vote",
    "majority_of_the_bests",
    "best_of_majority",
    "minimum_bayes_risk",
    "first_valid",
    "oracle",
]

AnySelector: TypeAlias = SelectorName | OwnSelector
"""A selector: a name, or a function of the user."""

Picker: TypeAlias = Callable[[Ballots, int], Winners]
"""Picks an attempt of each problem at each budget; the number is that of the reading of scores."""


class Selector(NamedTuple):
    """One row of the registry."""

    summary: str
    pick: Picker
    reads_score: bool = False
    needs_answer: bool = True
    """Picks no attempt without an answer."""
    weighs_votes: bool = False
    """The parameter `weights` says what a vote weighs."""
    takes_softmax: bool = False
    """A vote weighs a softmax of the scores, which must be finite."""
    reads_texts: bool = False
    """Answers are compared by their texts."""
    counts_votes: bool = False
    """A subset is won by the answer with the most votes, or weight with `weighs_votes`."""
    best_of_k: Callable[[Block, int], Floats] | None = None
    """The score of which this selector is best-of-k: its expectation has a closed form."""
    is_own: bool = False
    """A function of the user, which picks by Polars."""
    columns: tuple[str, ...] = ()
    """Columns that only this selector reads."""

    def weights_of(self, weights: Weights) -> Weights | None:
        """Return what a vote weighs, given the parameter `weights`; None if any score will do."""
        if self.weighs_votes:
            return weights
        return "softmax" if self.takes_softmax else None


def pick_majority(ballots: Ballots, _: int) -> Winners:
    """Pick the answer with the most votes."""
    return pick_heaviest(ballots, ballots.votes.astype(np.float64), ballots.first_row)


def pick_weighted(ballots: Ballots, reading: int) -> Winners:
    """Pick the answer with the most weight."""
    is_scored = ~np.isnan(ballots.scores[reading])
    return pick_heaviest(
        ballots, ballots.weights(reading), ballots.first_scored(reading), is_scored
    )


def pick_confident(ballots: Ballots, reading: int, *, temperature: float = 1.0) -> Winners:
    """Pick the answer with the largest share of a softmax of the scores."""
    shares = ballots.softmax(reading, temperature)
    is_scored = ~np.isnan(ballots.scores[reading])
    return pick_heaviest(ballots, shares, ballots.first_scored(reading), is_scored)


def pick_best(ballots: Ballots, reading: int) -> Winners:
    """Pick the attempt with the highest score."""
    return Winners(*ballots.highest(reading))


def pick_first_valid(ballots: Ballots, _: int) -> Winners:
    """Pick the first attempt that has an answer."""
    return _without_weight(ballots.first_where(ballots.is_answer[ballots.answer]))


def pick_oracle(ballots: Ballots, _: int) -> Winners:
    """Pick the first correct attempt, else the first that has an answer."""
    right = ballots.first_where(ballots.grade == 1)
    return _without_weight(np.where(right == NONE, pick_first_valid(ballots, 0).row, right))


def _without_weight(row: Integers) -> Winners:
    return Winners(row, np.full(row.shape, np.nan))


def _any_valid(attempts: Block, _: int) -> Floats:
    """Score all attempts with an answer alike: in random order each is first equally often."""
    return np.where(attempts.key > 0, 0.0, np.nan)


SELECTORS: Final[Mapping[SelectorName, Selector]] = MappingProxyType({
    "majority_vote": Selector(
        summary="the answer that most attempts gave (self-consistency, maj@n)",
        pick=pick_majority,
        counts_votes=True,
    ),
    "weighted_vote": Selector(
        summary="the answer whose attempts have the highest sum of scores",
        pick=pick_weighted,
        reads_score=True,
        weighs_votes=True,
        counts_votes=True,
    ),
    "best_of_n": Selector(
        summary="the answer of the attempt with the highest score, if it has one (rm@n)",
        pick=pick_best,
        reads_score=True,
        needs_answer=False,
        best_of_k=lambda attempts, reading: attempts.scores[reading],
    ),
    "borda_vote": Selector(
        summary="the answer with the most votes, where attempts of higher score have more votes",
        pick=pick_borda,
        reads_score=True,
    ),
    "confidence_vote": Selector(
        summary="the answer with the largest share of the softmax of the scores (CISC)",
        pick=pick_confident,
        reads_score=True,
        takes_softmax=True,
    ),
    "top_fraction_vote": Selector(
        summary="the weighted vote of the tenth of the attempts with the highest scores (DeepConf)",
        pick=pick_top_fraction,
        reads_score=True,
        weighs_votes=True,
    ),
    "majority_of_the_bests": Selector(
        summary="the answer that is most often the best of a few resampled attempts (MoB)",
        pick=pick_majority_of_bests,
        reads_score=True,
    ),
    "best_of_majority": Selector(
        summary="the answer with the highest score among those that a tenth of the attempts gave (BoM)",
        pick=pick_best_of_majority,
        reads_score=True,
    ),
    "minimum_bayes_risk": Selector(
        summary="the answer whose text is most similar to those of all attempts (MBR)",
        pick=pick_least_risk,
        reads_texts=True,
    ),
    "first_valid": Selector(
        summary="the answer of the first attempt that has one",
        pick=pick_first_valid,
        best_of_k=_any_valid,
    ),
    "oracle": Selector(
        summary="a correct answer if any attempt gave one (pass@n), else first_valid's",
        pick=pick_oracle,
        needs_answer=False,
        # A perfect scorer makes best-of-k pass@k.
        best_of_k=lambda attempts, _: attempts.grade.astype(np.float64),
    ),
})
"""Every selector by name."""


def check_selectors(selectors: AnySelector | Sequence[AnySelector]) -> tuple[AnySelector, ...]:
    """Return names and functions as a tuple, in the order given, each once."""
    return check_named(selectors, "selectors", SELECTORS)


def selector_of(selector: AnySelector) -> Selector:
    """Return what a selector reads and how it picks."""
    if isinstance(selector, str):
        return SELECTORS[selector]
    own = make_own(selector)
    return Selector(
        summary=name_of(selector),
        pick=own,
        reads_score="score" in own.reads,
        needs_answer="answer_key" in own.reads,
        is_own=True,
        columns=own.columns,
    )


def in_order(selectors: Iterable[AnySelector]) -> tuple[AnySelector, ...]:
    """Sort selectors as tables show them: in the order of the registry, functions last."""
    ranks: dict[str, int] = {name: rank for rank, name in enumerate(SELECTORS)}
    return tuple(
        sorted(selectors, key=lambda one: ranks[one] if isinstance(one, str) else len(ranks))
    )


class Pick(NamedTuple):
    """One selector with one reading of the scores, or with none if it reads no score."""

    name: str
    selector: Selector
    reading: Reading | None
    picker: Picker | None = None
    """Replaces the selector's, by one with other parameters."""

    @property
    def number(self) -> int:
        """Number of the reading; 0 where it does not matter."""
        return 0 if self.reading is None else self.reading.number

    def winners(self, ballots: Ballots) -> Winners:
        """Let the selector pick."""
        return (self.picker or self.selector.pick)(ballots, self.number)


def make_picks(
    selectors: Sequence[AnySelector],
    schema: pl.Schema,
    reductions: Reduction | Sequence[Reduction] | None,
    picker: Picker | None = None,
) -> tuple[tuple[Pick, ...], tuple[Reading, ...]]:
    """Pair each selector that reads a score with each reading; return the pairs and the readings."""
    # `picker` replaces that of a single selector, by one with other parameters.
    chosen = {name_of(one): selector_of(one) for one in selectors}
    reads_score = any(selector.reads_score for selector in chosen.values())
    readings = make_readings(schema, reductions, is_score_needed=True) if reads_score else ()
    for selector in chosen.values():
        if isinstance(selector.pick, OwnPicker):
            selector.pick.check(schema)
    picks = tuple(
        Pick(name, selector, reading, picker)
        for name, selector in chosen.items()
        for reading in (readings if selector.reads_score else (None,))
    )
    return picks, readings


def columns_read(picks: Sequence[Pick]) -> tuple[str, ...]:
    """Return the columns that only selectors of the user read."""
    return tuple(dict.fromkeys(name for pick in picks for name in pick.selector.columns))
