"""Picks of the selectors that take an attempt as it is, or add up what each attempt weighs."""

from __future__ import annotations

import numpy as np

from ttsframe.votes.engine.ballots import NONE, Ballots
from ttsframe.votes.engine.pools import Flags, Integers
from ttsframe.votes.engine.winners import Winners, lead


def pick_majority(ballots: Ballots, _: int) -> Winners:
    """Pick the answer that most attempts gave.

    Parameters
    ----------
    ballots
        The attempts.

    Returns
    -------
    Winners
        The earliest attempts with these answers, and their votes.
    """
    # The low bits prefer the answer with the smallest number, which came first.
    bits = ballots.n_answers.bit_length()
    earliness = ballots.n_answers - np.arange(ballots.n_answers)
    votes = np.where(ballots.is_answer, ballots.votes, 0)
    rank = np.where(votes > 0, votes << bits | earliness, 0)
    best = np.maximum.reduceat(rank, ballots.answer_starts, axis=1)
    answer = ballots.n_answers - (best & ((1 << bits) - 1))
    row = np.where(best > 0, ballots.first_row[answer % ballots.n_answers], NONE)
    return Winners(row, (best >> bits).astype(np.float64))


def pick_weighted(ballots: Ballots, reading: int) -> Winners:
    """Pick the answer whose attempts' weights add up to most.

    Parameters
    ----------
    ballots
        The attempts.
    reading
        Number of the reading.

    Returns
    -------
    Winners
        The earliest attempts that voted for these answers, and their weights.
    """
    return lead(ballots, ballots.weights(reading), ballots.first_scored(reading))


def pick_confident(ballots: Ballots, reading: int, *, temperature: float = 1.0) -> Winners:
    """Pick the answer whose attempts have most of a softmax of the scores.

    Parameters
    ----------
    ballots
        The attempts.
    reading
        Number of the reading.
    temperature
        What scores are divided by.

    Returns
    -------
    Winners
        The earliest attempts that voted for these answers, and their shares.
    """
    return lead(ballots, ballots.softmax(reading, temperature), ballots.first_scored(reading))


def is_finite(ballots: Ballots, reading: int) -> Flags:
    """Return whether all scores are finite, so that there is a softmax of them.

    Parameters
    ----------
    ballots
        The attempts.
    reading
        Number of the reading.

    Returns
    -------
    Flags
        Matrix of problems.
    """
    is_finite: Flags = ballots.first_where(np.isinf(ballots.scores[reading])) == NONE
    return is_finite


def pick_best(ballots: Ballots, reading: int) -> Winners:
    """Pick the attempt with the highest score.

    Parameters
    ----------
    ballots
        The attempts.
    reading
        Number of the reading.

    Returns
    -------
    Winners
        The attempts and their scores.
    """
    return Winners(*ballots.highest(reading))


def pick_first_valid(ballots: Ballots, _: int) -> Winners:
    """Pick the first attempt that has an answer.

    Parameters
    ----------
    ballots
        The attempts.

    Returns
    -------
    Winners
        The attempts, without weights.
    """
    return _unweighed(ballots.first_where(ballots.is_answer[ballots.answer]))


def pick_oracle(ballots: Ballots, _: int) -> Winners:
    """Pick the first right attempt, else the first that has an answer.

    Parameters
    ----------
    ballots
        The attempts.

    Returns
    -------
    Winners
        The attempts, without weights.
    """
    right = ballots.first_where(ballots.grade == 1)
    return _unweighed(np.where(right == NONE, pick_first_valid(ballots, 0).row, right))


def _unweighed(row: Integers) -> Winners:
    """Return winners that weigh nothing."""
    return Winners(row, np.full(row.shape, np.nan))
