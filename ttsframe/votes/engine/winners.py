"""What a selector picks, and the rule by which the heaviest answer wins."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from ttsframe._typing import Floats, Integers
from ttsframe.votes.engine.ballots import NONE, Ballots

TIE_TOLERANCE: Final = 1e-9
"""Totals closer than this share of the sum of weights are a tie."""


class Winners(NamedTuple):
    """The picks of a selector: matrices of problems."""

    row: Integers
    """The picked attempt, `NONE` without one."""
    weight: Floats
    """The winner's total, NaN where the selector adds nothing up."""


def pick_heaviest(ballots: Ballots, weights: Floats, first: Integers) -> Winners:
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
    return Winners(np.where(is_picked, row, NONE), np.where(is_picked, weight, np.nan))
