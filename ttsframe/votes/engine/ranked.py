"""Picks of the selectors whose votes depend on an attempt's place among the scores of a problem.

A place changes with every attempt that joins, so that nothing cumulates over budgets. Attempts are
sorted by score once, among all within the last budget; those within a smaller one stay sorted when
the others are taken out, from budget to budget downwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from ttsframe.votes.engine.ballots import NEVER, Ballots
from ttsframe.votes.engine.pools import Flags, Floats, Integers
from ttsframe.votes.engine.runs import run_lengths, run_starts
from ttsframe.votes.engine.winners import Winners, lead


class _Ranked(NamedTuple):
    """Attempts within a budget, by problem and then by rising score; arrays of (n_rows,).

    `row`; and what each attempt gets for its place, equal scores the mean of what they would get.
    """

    budget: int
    row: Integers
    share: Floats


def pick_borda(ballots: Ballots, reading: int, *, power: float = 0.5) -> Winners:
    """Pick the answer with the most votes, of which better ranked attempts have more.

    Parameters
    ----------
    ballots
        The attempts.
    reading
        Number of the reading.
    power
        Power of the place, counted from the worst, that is the number of votes.

    Returns
    -------
    Winners
        The earliest attempts that voted for these answers, and their votes.
    """
    return _most_shares(ballots, reading, lambda n: np.arange(1, n + 1, dtype=np.float64) ** power)


def pick_majority_of_bests(
    ballots: Ballots, reading: int, *, subset_size: int | None = None
) -> Winners:
    """Pick the answer that the best of some resampled attempts has most often.

    Parameters
    ----------
    ballots
        The attempts.
    reading
        Number of the reading.
    subset_size
        How many are resampled; None: the square root of their number.

    Returns
    -------
    Winners
        The earliest attempts that voted for these answers, and their probabilities.
    """

    def chances(n: int) -> Floats:
        size = math.isqrt(n) if subset_size is None else subset_size
        below = (np.arange(n + 1) / n) ** size
        return np.diff(below)

    return _most_shares(ballots, reading, chances)


def pick_top_fraction(ballots: Ballots, reading: int, *, fraction: float = 0.1) -> Winners:
    """Pick the answer with the most weight among the attempts with the highest scores.

    Parameters
    ----------
    ballots
        The attempts.
    reading
        Number of the reading.
    fraction
        Share of the attempts with an answer and a score that vote.

    Returns
    -------
    Winners
        The earliest attempts that voted for these answers, and their weights.
    """

    def is_kept(n: int) -> Floats:
        # The percentile lies between this place and the one below; the fraction may be rounded.
        least = n - 1 - math.floor((n - 1) * fraction + 1e-9)
        return (np.arange(n) >= least).astype(np.float64)

    score = ballots.scores[reading]
    is_voting = ~np.isnan(score) & ballots.is_answer[ballots.answer]
    shape = len(ballots.budgets), ballots.n_answers
    totals, first = np.zeros(shape), np.full(shape, NEVER)
    for budget, row, share in _ranked(ballots, reading, is_voting, is_kept):
        # Of equal scores, all are kept if one is.
        kept = row[share > 0.0]
        answer = ballots.answer[kept]
        weight = _weights(ballots, reading, kept)
        totals[budget] = np.bincount(answer, weight, ballots.n_answers)
        latest_first = np.sort(kept)[::-1]
        # Of several attempts the last assignment stays: the earliest.
        first[budget, ballots.answer[latest_first]] = latest_first
    if ballots.kind == "softmax":
        with np.errstate(invalid="ignore"):
            totals /= ballots.sum_answers(totals)[:, ballots.answer_problem]
    return lead(ballots, totals, first)


def _weights(ballots: Ballots, reading: int, rows: Integers) -> Floats:
    """Return what the votes of some attempts weigh, by problem and then by rising score."""
    if ballots.kind != "softmax":
        return ballots.row_weights(reading)[rows]
    score, starts = ballots.scores[reading][rows], run_starts(ballots.problem[rows])
    lengths = run_lengths(starts, len(rows))
    highest = np.repeat(score[starts + lengths - 1], lengths)
    with np.errstate(invalid="ignore", over="ignore"):
        weight: Floats = np.exp(score - highest)
    return weight


def _most_shares(ballots: Ballots, reading: int, shares: Callable[[int], Floats]) -> Winners:
    """Pick the answer whose attempts get most for their places."""
    is_ranked = ~np.isnan(ballots.scores[reading])
    totals = np.zeros((len(ballots.budgets), ballots.n_answers))
    for budget, row, share in _ranked(ballots, reading, is_ranked, shares):
        totals[budget] = np.bincount(ballots.answer[row], share, ballots.n_answers)
    return lead(ballots, totals, ballots.first_scored(reading))


def _ranked(
    ballots: Ballots, reading: int, is_ranked: Flags, shares: Callable[[int], Floats]
) -> Iterator[_Ranked]:
    """Rank attempts among those of their problem within each budget.

    `shares` says what the places get, from the lowest score to the highest, by their number.
    """
    row = np.flatnonzero(is_ranked)
    row = row[np.argsort(ballots.scores[reading][row])]
    row = row[np.argsort(_narrow(ballots.problem[row]), kind="stable")]
    for budget in reversed(range(len(ballots.budgets))):
        is_within = ballots.bucket[row] <= budget
        if not is_within.all():
            row = row[is_within]
        if not len(row):
            return
        problem, score = ballots.problem[row], ballots.scores[reading][row]
        starts = run_starts(problem)
        lengths = run_lengths(starts, len(row))
        numbers, which = np.unique(lengths, return_inverse=True)
        table = np.concatenate([shares(number) for number in numbers.tolist()])
        table_starts = np.append(0, np.cumsum(numbers)[:-1])
        share = table[np.arange(len(row)) + np.repeat(table_starts[which] - starts, lengths)]
        is_first = np.ones(len(row), bool)
        is_first[1:] = (score[1:] != score[:-1]) | (problem[1:] != problem[:-1])
        if not is_first.all():
            ties = np.flatnonzero(is_first)
            sizes = run_lengths(ties, len(row))
            share = np.repeat(np.add.reduceat(share, ties) / sizes, sizes)
        yield _Ranked(budget, row, share)


def _narrow(problem: Integers) -> Integers:
    """Return numbers of problems in as few bits as sort fastest."""
    return problem.astype(np.uint16) if problem.max(initial=0) < 1 << 16 else problem
