"""Every selector: how it picks an attempt of each problem at each budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from ttsframe._ballots import NONE, Ballots
from ttsframe._pools import Floats, Integers, Reading
from ttsframe._typing import SelectorName

TIE_TOLERANCE: Final = 1e-9
"""Totals nearer than this share of the sum of weights are a tie."""

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


class Winners(NamedTuple):
    """What a selector picked; matrices with a row per budget and a column per problem.

    - `row`: the attempt that stands for the pick, `NONE` where nothing was picked;
    - `weight`: its total, NaN where the selector weighs nothing.
    """

    row: Integers
    weight: Floats


class Selector(NamedTuple):
    """One row of the registry; `pick` is given the number of a reading."""

    summary: str
    reads_score: bool
    weighs_votes: bool
    pick: Callable[[Ballots, int], Winners]


def _majority(ballots: Ballots, _: int) -> Winners:
    # The low bits prefer the answer with the smallest number, which came first.
    bits = ballots.n_answers.bit_length()
    earliness = ballots.n_answers - np.arange(ballots.n_answers)
    votes = np.where(ballots.is_answer, ballots.votes, 0)
    rank = np.where(votes > 0, votes << bits | earliness, 0)
    best = np.maximum.reduceat(rank, ballots.answer_starts, axis=1)
    answer = ballots.n_answers - (best & ((1 << bits) - 1))
    row = np.where(best > 0, ballots.first_row[answer % ballots.n_answers], NONE)
    return Winners(row, (best >> bits).astype(np.float64))


def _weighted(ballots: Ballots, reading: int) -> Winners:
    first = ballots.first_scored(reading)
    return lead(ballots, ballots.weights(reading), first)


def lead(ballots: Ballots, weights: Floats, first: Integers) -> Winners:
    """Pick the answer with the most weight; ties within the tolerance go to the earliest.

    Parameters
    ----------
    ballots
        The attempts.
    weights
        Matrix of answers.
    first
        The attempt that stands for each answer; until its turn comes, the answer is not running.

    Returns
    -------
    Winners
        `NONE` where no answer is running.
    """
    beyond = len(ballots.attempt)
    starts, problem = ballots.answer_starts, ballots.answer_problem
    is_running = ballots.is_answer & ballots.is_within(first)
    running = np.where(is_running, weights, 0.0)
    with np.errstate(invalid="ignore"):
        highest = np.maximum.reduceat(np.where(is_running, weights, -np.inf), starts, axis=1)
        least = highest - TIE_TOLERANCE * np.add.reduceat(running, starts, axis=1)
        is_leading = is_running & (weights >= least[:, problem])
    row = np.minimum.reduceat(np.where(is_leading, first, beyond), starts, axis=1)
    is_picked = row < beyond
    answer = ballots.answer[np.where(is_picked, row, 0)]
    weight = np.take_along_axis(weights, answer, axis=1)
    return Winners(np.where(is_picked, row, NONE), np.where(is_picked, weight, np.nan))


def _best(ballots: Ballots, reading: int) -> Winners:
    return Winners(*ballots.highest(reading))


def _first_valid(ballots: Ballots, _: int) -> Winners:
    return _unweighed(ballots.first_where(ballots.is_answer[ballots.answer]))


def _oracle(ballots: Ballots, _: int) -> Winners:
    right = ballots.first_where(ballots.grade == 1)
    return _unweighed(np.where(right == NONE, _first_valid(ballots, 0).row, right))


def _unweighed(row: Integers) -> Winners:
    return Winners(row, np.full(row.shape, np.nan))


SELECTORS: Final[Mapping[SelectorName, Selector]] = MappingProxyType({
    "majority_vote": Selector(
        summary="the answer that most attempts gave (self-consistency, maj@n)",
        reads_score=False,
        weighs_votes=False,
        pick=_majority,
    ),
    "weighted_vote": Selector(
        summary="the answer whose attempts' scores add up to most",
        reads_score=True,
        weighs_votes=True,
        pick=_weighted,
    ),
    "best_of_n": Selector(
        summary="the answer of the attempt with the highest score, if it has one (rm@n)",
        reads_score=True,
        weighs_votes=False,
        pick=_best,
    ),
    "first_valid": Selector(
        summary="the answer of the first attempt that has one",
        reads_score=False,
        weighs_votes=False,
        pick=_first_valid,
    ),
    "oracle": Selector(
        summary="a right answer if any attempt gave one (pass@n), else first_valid's",
        reads_score=False,
        weighs_votes=False,
        pick=_oracle,
    ),
})
"""Every selector: the registry that the command line, the charts and the tests read."""


class Pick(NamedTuple):
    """One selector with one reading of the scores, or with none."""

    selector: SelectorName
    reading: Reading | None

    @property
    def number(self) -> int:
        """Number of the reading; 0 where it does not matter."""
        return 0 if self.reading is None else self.reading.number
