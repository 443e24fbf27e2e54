"""What a selector picks, and the rule by which the answer with the most weight wins."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from ttsframe.votes.engine.ballots import NONE, Ballots
from ttsframe.votes.engine.pools import Floats, Integers

TIE_TOLERANCE: Final = 1e-9
"""Totals nearer than this share of the sum of weights are a tie."""


class Winners(NamedTuple):
    """What a selector picked; matrices with a row per budget and a column per problem.

    - `row`: the attempt that stands for the pick, `NONE` where nothing was picked;
    - `weight`: its total, NaN where the selector weighs nothing.
    """

    row: Integers
    weight: Floats


def lead(ballots: Ballots, weights: Floats, first: Integers) -> Winners:
    """Pick the answer with the most weight; ties within the tolerance go to the earliest.

    Parameters
    ----------
    ballots
        The attempts.
    weights
        Matrix of answers.
    first
        The attempt that stands for each answer, at all budgets or as a matrix of answers; until
        its turn comes, the answer is not running.

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
