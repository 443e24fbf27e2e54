"""Exact statistics of attempts that stand in ascending order of their scores.

An attempt's tag is twice the number of its problem, and one more where the attempt is right.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ttsframe.votes.engine.runs import run_lengths, run_starts

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]


def count_by_problem(tags: Ints, n_problems: int) -> Ints:
    """Count wrong and right attempts at each problem.

    Parameters
    ----------
    tags
        Tags in any order.
    n_problems
        Number of problems that there may be.

    Returns
    -------
    Ints
        (n_found, 2): of each problem that has an attempt, by its number.
    """
    if n_problems > 2 * len(tags):
        number, codes = np.unique(tags >> 1, return_inverse=True)
        tags, n_problems = codes * 2 + (tags & 1), len(number)
    counts = np.bincount(tags, minlength=2 * n_problems).reshape(-1, 2)
    return counts[counts.any(axis=1)]


class RightRuns(NamedTuple):
    """Runs of equal scores in which some attempt is right, ascending; arrays are (n_runs,).

    - `first`: place at which the run begins;
    - `n_equal`, `n_right`: attempts in it, and right ones;
    - `n_right_before`: right ones before it;
    - `n`: number of all attempts.
    """

    first: Ints
    n_equal: Ints
    n_right: Ints
    n_right_before: Ints
    n: int


def area_under_roc(runs: RightRuns) -> float:
    """Give the chance that a right attempt outscores a wrong one; a tie counts one half.

    Parameters
    ----------
    runs
        Attempts of one kind of score.

    Returns
    -------
    float
        In [0, 1]; NaN where there is no pair.
    """
    n_right = int(runs.n_right.sum())
    n_pairs = n_right * (runs.n - n_right)
    # Twice the wrong ones below and one half of the equal ones, so that the sum is exact. What is
    # worked out in place is fast; fresh memory takes longer to get than to fill.
    twice = runs.first - runs.n_right_before
    twice *= 2
    twice += runs.n_equal
    twice -= runs.n_right
    twice *= runs.n_right
    return int(twice.sum()) / (2 * n_pairs) if n_pairs else float("nan")


def average_precision(runs: RightRuns) -> float:
    """Give the mean precision over right attempts, as the threshold falls past each.

    Parameters
    ----------
    runs
        Attempts of one kind of score.

    Returns
    -------
    float
        In (0, 1]; NaN where no attempt is right.
    """
    n_right = int(runs.n_right.sum())
    precision = np.subtract(n_right, runs.n_right_before, dtype=np.float64)
    precision /= runs.n - runs.first
    precision *= runs.n_right
    return float(precision.sum()) / n_right if n_right else float("nan")


def areas_within(tags: Ints, is_right: Flags, bounds: Ints | None, by_problem: Ints) -> Floats:
    """Give `area_under_roc` of each problem.

    Parameters
    ----------
    tags
        Tags in ascending order of scores.
    is_right
        What they say of attempts.
    bounds
        Where each distinct score begins, and the number of attempts; None: no two are equal.
    by_problem
        Wrong and right attempts at each problem, (n_problems, 2), by its number.

    Returns
    -------
    Floats
        (n_problems,), NaN where there is no pair.
    """
    n = len(tags)
    place = np.arange(n) if bounds is None else np.repeat(bounds[:-1], np.diff(bounds))
    # Integers sort several times faster than an order of them could be found.
    n_bits = n.bit_length()
    packed = tags >> 1
    packed <<= n_bits
    packed |= place
    packed <<= 1
    packed |= is_right
    packed.sort()
    n_wrong, n_right = by_problem.T
    before = np.cumsum(n_right) - n_right
    # A right one has as many wrong ones below it as places, less the right ones there.
    twice = -n_right * (2 * (np.cumsum(n_wrong) - n_wrong + before) + n_right - 1)
    if bounds is not None:
        # A tie counts there as one whole.
        starts = run_starts(packed >> 1)
        right = np.add.reduceat(packed & 1, starts)
        tied = right * (run_lengths(starts, n) - right)
        of_problem = packed[starts] >> (n_bits + 1)
        twice -= np.bincount(of_problem, tied, len(twice)).astype(np.int64)
    packed &= 1
    there = np.flatnonzero(n_right)
    places = np.flatnonzero(packed.astype(np.bool_))
    twice[there] += 2 * np.add.reduceat(places, before[there])
    with np.errstate(invalid="ignore"):
        areas: Floats = twice / (2 * n_right * n_wrong)
    return areas


def rank_correlation(codes: Ints, scores: Floats | None) -> float:
    """Give Spearman's rank correlation; ties have the mean of their ranks.

    Parameters
    ----------
    codes
        Whole numbers from 0, few different ones at best.
    scores
        What they are correlated with, in ascending order; None: no two are equal.

    Returns
    -------
    float
        In [-1, 1]; NaN where either does not vary.
    """
    n = len(codes)
    if not n or codes.min() == codes.max():
        return float("nan")
    code_counts = np.bincount(codes)
    if scores is None:
        ranks, squares = np.arange(1.0 - n, n, 2.0), n * (n * n - 1) / 3
    else:
        counts = run_lengths(run_starts(scores), n)
        of_run = _centred_ranks(counts)
        ranks, squares = np.repeat(of_run, counts), float((counts * of_run**2).sum())
    # What shares a code is summed before it is multiplied: whole numbers, in any order.
    sums = np.bincount(codes, ranks)
    code_ranks = _centred_ranks(code_counts)
    squares *= float((code_counts * code_ranks**2).sum())
    if not squares:
        return float("nan")
    return float(np.clip((sums * code_ranks).sum() / np.sqrt(squares), -1.0, 1.0))


def _centred_ranks(counts: Ints) -> Floats:
    """Return twice the mean rank of each value, less its mean."""
    ranks: Floats = 2.0 * np.cumsum(counts) - counts - counts.sum()
    return ranks


def ordinal_codes(values: Ints) -> Ints:
    """Give whole numbers from 0 in the order of some others, in a range fit for counting.

    Parameters
    ----------
    values
        Any whole numbers.

    Returns
    -------
    Ints
        Equal where they are equal, and smaller where they are smaller.
    """
    if not len(values):
        return values
    low = int(values.min())
    if int(values.max()) - low <= 4 * len(values) + 10_000:
        return values - low
    codes: Ints = np.unique(values, return_inverse=True)[1].astype(np.int64)
    return codes


def equal_width_starts(scores: Floats, n_bins: int, low: float, high: float) -> Ints:
    """Find where bins of equal width begin; each holds its upper end, the first its lower one too.

    Parameters
    ----------
    scores
        Ascending; those beyond an end go into the bin at that end.
    n_bins
        Number of bins.
    low
        Lower end of the first bin.
    high
        Upper end of the last bin.

    Returns
    -------
    Ints
        (n_bins + 1,): the place of the first score of each bin, and their number.
    """
    inner = np.searchsorted(scores, bin_edges(n_bins, low, high)[1:-1], side="right")
    return np.concatenate([[0], inner, [len(scores)]])


def equal_mass_starts(scores: Floats, n_bins: int) -> Ints:
    """Find where bins begin that hold as equally many as ties let them.

    Parameters
    ----------
    scores
        Ascending, at least one.
    n_bins
        Number of bins.

    Returns
    -------
    Ints
        (n_bins + 1,): the place of the first score of each bin, and their number. A score is in the
        bin of the middle one of its equals; a bin may stay empty.
    """
    n, inner = len(scores), np.arange(1, n_bins)
    # Only the score that spans an edge can be on either side of it.
    spanning = scores[n * inner // n_bins]
    first, end = (np.searchsorted(scores, spanning, side=side) for side in ("left", "right"))
    starts = np.where((first + end) * n_bins >= 2 * n * inner, first, end)
    return np.concatenate([[0], starts, [n]])


def bin_edges(n_bins: int, low: float, high: float) -> Floats:
    """Give the ends of bins of equal width.

    Parameters
    ----------
    n_bins
        Number of bins.
    low
        Lower end of the first.
    high
        Upper end of the last.

    Returns
    -------
    Floats
        (n_bins + 1,), ascending.
    """
    edges: Floats = low + (high - low) * np.arange(n_bins + 1) / n_bins
    return edges
