"""What a selector picks, and the rule by which the heaviest answer wins."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from ttsframe._typing import Flags, Floats, Integers
from ttsframe.votes.engine.ballots import NONE, Ballots

TIE_TOLERANCE: Final = 1e-9
"""Totals closer than this share of the sum of weights are a tie."""


class Winners(NamedTuple):
    """The picks of a selector: matrices of problems."""

    row: Integers
    """The picked attempt, `NONE` without one."""
    weight: Floats
    """The winner's total, NaN where the selector adds nothing up."""
    tied: Flags | None = None
    """The answers that win or tie, a matrix of answers; None where an attempt wins, not an answer."""
    is_voting: Flags | None = None
    """The rows that vote, or a line of them per budget; None: all."""


def pick_heaviest(
    ballots: Ballots, weights: Floats, first: Integers, is_voting: Flags | None = None
) -> Winners:
    """Pick the answer with the most weight; ties within the tolerance go to the earliest one."""
    # `weights` is a matrix of answers. `first` is the row that represents each answer, for all
    # budgets or per budget; an answer is a candidate only at budgets that include this row.
    beyond = len(ballots.attempt)
    starts, problem = ballots.answer_starts, ballots.answer_problem
    is_candidate = ballots.is_answer & ballots.is_within(first)
    of_candidates = np.where(is_candidate, weights, 0.0)
    with np.errstate(invalid="ignore"):
        highest = np.maximum.reduceat(np.where(is_candidate, weights, -np.inf), starts, axis=1)
        least = highest - TIE_TOLERANCE * np.add.reduceat(of_candidates, starts, axis=1)
        is_tied = is_candidate & (weights >= least[:, problem])
    row = np.minimum.reduceat(np.where(is_tied, first, beyond), starts, axis=1)
    is_picked = row < beyond
    answer = ballots.answer[np.where(is_picked, row, 0)]
    weight = np.take_along_axis(weights, answer, axis=1)
    return Winners(
        np.where(is_picked, row, NONE), np.where(is_picked, weight, np.nan), is_tied, is_voting
    )


def share_right(ballots: Ballots, winners: Winners) -> Floats:
    """Return the chance that a pick is right, as a matrix of problems: ties are shared equally."""
    if winners.tied is None:
        picked = np.where(winners.row == NONE, 0, winners.row)
        right: Flags = (winners.row != NONE) & (ballots.grade[picked] == 1)
        return right.astype(np.float64)
    is_right = ballots.grade == 1
    is_voting = True if winners.is_voting is None else winners.is_voting
    result = np.zeros(winners.row.shape)
    for budget, tied in enumerate(winners.tied):
        votes = (
            is_voting if isinstance(is_voting, bool) or is_voting.ndim == 1 else is_voting[budget]
        )
        # An answer is right as often as an attempt that voted for it.
        voters = np.flatnonzero((ballots.bucket <= budget) & votes)
        n_votes = np.bincount(ballots.answer[voters], minlength=ballots.n_answers)
        n_right = np.bincount(ballots.answer[voters], is_right[voters], ballots.n_answers)
        rate = np.where(tied, n_right / np.maximum(n_votes, 1), 0.0)
        n_tied = np.add.reduceat(tied.astype(np.int64), ballots.answer_starts)
        result[budget] = np.add.reduceat(rate, ballots.answer_starts) / np.maximum(n_tied, 1)
    return result
