"""Picks of the selectors whose votes depend on an attempt's rank among the scores of its problem.

Every attempt that joins changes the ranks, so nothing cumulates over budgets. Attempts are sorted by
score once, within the largest budget; for each smaller budget the attempts beyond it are dropped,
which keeps the others sorted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from ttsframe._typing import Flags, Floats, Integers
from ttsframe.votes.engine.ballots import LATER, NONE, Ballots, weigh
from ttsframe.votes.engine.runs import run_lengths, run_starts
from ttsframe.votes.engine.winners import Winners, pick_heaviest


class _Ranked(NamedTuple):
    """Attempts within a budget, by problem and then by rising score."""

    budget: int
    row: Integers
    share: Floats
    """What each attempt gets for its rank; equal scores get the mean over their ranks."""


def pick_borda(ballots: Ballots, reading: int, *, power: float = 0.5) -> Winners:
    """Pick the answer with the most votes: an attempt has its rank from the worst, to a power."""
    return _most_shares(ballots, reading, lambda n: np.arange(1, n + 1, dtype=np.float64) ** power)


def pick_majority_of_bests(
    ballots: Ballots, reading: int, *, subset_size: int | None = None
) -> Winners:
    """Pick the answer that is most often the best of `subset_size` resampled attempts."""

    def chances(n: int) -> Floats:
        size = math.isqrt(n) if subset_size is None else subset_size
        below = (np.arange(n + 1) / n) ** size
        return np.diff(below)

    return _most_shares(ballots, reading, chances)


def pick_top_fraction(ballots: Ballots, reading: int, *, fraction: float = 0.1) -> Winners:
    """Pick the answer with the most weight among the attempts with the highest scores."""

    def is_kept(n: int) -> Floats:
        # The percentile lies between this rank and the one below; the fraction may be rounded.
        least = n - 1 - math.floor((n - 1) * fraction + 1e-9)
        return (np.arange(n) >= least).astype(np.float64)

    score = ballots.scores[reading]
    is_voting = ~np.isnan(score) & ballots.is_answer[ballots.answer]
    shape = len(ballots.budgets), ballots.n_answers
    totals, first = np.zeros(shape), np.full(shape, LATER)
    is_kept_within = np.zeros((len(ballots.budgets), len(score)), bool)
    for budget, row, share in _ranked(ballots, reading, is_voting, is_kept):
        # Equal scores are kept together.
        kept = row[share > 0.0]
        is_kept_within[budget, kept] = True
        answer = ballots.answer[kept]
        weight = _weights(ballots, reading, kept)
        totals[budget] = np.bincount(answer, weight, ballots.n_answers)
        latest_first = np.sort(kept)[::-1]
        # The last assignment to an answer wins: its earliest attempt.
        first[budget, ballots.answer[latest_first]] = latest_first
    if ballots.kind == "softmax":
        with np.errstate(invalid="ignore"):
            totals /= ballots.sum_answers(totals)[:, ballots.answer_problem]
    return pick_heaviest(ballots, totals, first, is_kept_within)


def pick_best_of_majority(ballots: Ballots, reading: int, *, least_share: float = 0.1) -> Winners:
    """Pick the highest score among the answers that enough of the attempts gave."""
    starts, problem = ballots.answer_starts, ballots.answer_problem
    score, tops = ballots.scores[reading], ballots.top_scores(reading)
    is_scored = ballots.is_answer & ~np.isnan(tops)
    share = ballots.votes / np.maximum(ballots.n_attempts, 1)[:, problem]
    largest = np.maximum.reduceat(np.where(is_scored, share, 0.0), starts, axis=1)
    is_candidate = is_scored & (share >= np.minimum(largest, least_share)[:, problem])
    highest = np.fmax.reduceat(np.where(is_candidate, tops, np.nan), starts, axis=1)
    tied = is_candidate & (tops == highest[:, problem])
    row = np.full(highest.shape, NONE)
    is_top = np.zeros((len(highest), len(score)), bool)
    for budget, of_budget in enumerate(tied):
        is_top[budget] = of_budget[ballots.answer] & (score == highest[budget][ballots.problem])
        is_top[budget] &= ballots.bucket <= budget
        first = np.where(is_top[budget], np.arange(len(score)), LATER)
        row[budget] = np.minimum.reduceat(first, ballots.problem_starts)
    row[row == LATER] = NONE
    return Winners(row, highest, tied, is_top)


def _weights(ballots: Ballots, reading: int, rows: Integers) -> Floats:
    """Return the weights of rows that are sorted by problem and then by rising score."""
    if ballots.kind != "softmax":
        return weigh(ballots.scores[reading], ballots.kind)[rows]
    score, starts = ballots.scores[reading][rows], run_starts(ballots.problem[rows])
    lengths = run_lengths(starts, len(rows))
    highest = np.repeat(score[starts + lengths - 1], lengths)
    with np.errstate(invalid="ignore", over="ignore"):
        weight: Floats = np.exp(score - highest)
    return weight


def _most_shares(ballots: Ballots, reading: int, shares: Callable[[int], Floats]) -> Winners:
    """Pick the answer whose attempts get the most for their ranks."""
    is_ranked = ~np.isnan(ballots.scores[reading])
    totals = np.zeros((len(ballots.budgets), ballots.n_answers))
    for budget, row, share in _ranked(ballots, reading, is_ranked, shares):
        totals[budget] = np.bincount(ballots.answer[row], share, ballots.n_answers)
    return pick_heaviest(ballots, totals, ballots.first_scored(reading), is_ranked)


def _ranked(
    ballots: Ballots, reading: int, is_ranked: Flags, shares: Callable[[int], Floats]
) -> Iterator[_Ranked]:
    """Rank the attempts of each problem within each budget, from the largest budget down."""
    # `shares` returns, for a number of attempts, what each rank gets from the lowest score up.
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
    """Return numbers of problems in the type that sorts fastest."""
    return problem.astype(np.uint16) if problem.max(initial=0) < 1 << 16 else problem
