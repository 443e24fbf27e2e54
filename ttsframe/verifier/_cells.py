"""Exact counts behind the statistics of a verifier: how many right and wrong ones share a score."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]


class Cells(NamedTuple):
    """Attempts that agree in a group and in a place within it, counted.

    Sorted by group and place; all arrays are (n_cells,).
    """

    group: Ints
    n_right: Ints
    n_wrong: Ints


def count_cells(group: Ints, place: Ints, is_correct: Flags) -> Cells:
    """Count right and wrong attempts per group and place.

    Parameters
    ----------
    group
        Group of each attempt, (n_attempts,), from 0.
    place
        Place of each attempt within its group, from 0.
    is_correct
        Grade of each attempt.

    Returns
    -------
    Cells
        Those that hold an attempt.
    """
    # Integers sort several times faster than an order of them could be found.
    n_bits = int(place.max(initial=0)).bit_length()
    packed = group << n_bits
    packed |= place
    packed <<= 1
    packed |= is_correct
    packed.sort()
    n_right_before = np.cumsum(packed & 1)
    packed >>= 1
    last = np.flatnonzero(packed[1:] != packed[:-1])
    last = np.append(last, len(packed) - 1) if len(packed) else last
    n_right = np.diff(n_right_before[last], prepend=0)
    return Cells(packed[last] >> n_bits, n_right, np.diff(last, prepend=-1) - n_right)


def area_under_roc(n_right: Ints, n_wrong: Ints) -> float:
    """Give the chance that a right attempt outscores a wrong one; a tie counts one half.

    Parameters
    ----------
    n_right
        Right attempts of each distinct score, in ascending order of scores.
    n_wrong
        Wrong ones.

    Returns
    -------
    float
        In [0, 1]; NaN where there is no pair.
    """
    n_pairs = int(n_right.sum()) * int(n_wrong.sum())
    below = np.cumsum(n_wrong) - n_wrong
    # Halves are counted twice over, so that the sum is exact.
    twice = int(n_right @ (2 * below + n_wrong))
    return twice / (2 * n_pairs) if n_pairs else float("nan")


def areas_within(cells: Cells, n_groups: int) -> tuple[Floats, Ints, Ints]:
    """Give `area_under_roc` of each group of cells, whose places are ranks of scores.

    Parameters
    ----------
    cells
        Counts per group and distinct score.
    n_groups
        Number of groups.

    Returns
    -------
    tuple[Floats, Ints, Ints]
        (n_groups,) each: the area, NaN where there is no pair; right attempts; wrong attempts.
    """
    right = np.bincount(cells.group, cells.n_right, minlength=n_groups)
    wrong = np.bincount(cells.group, cells.n_wrong, minlength=n_groups)
    before = np.cumsum(cells.n_wrong) - cells.n_wrong
    below = before - (np.cumsum(wrong) - wrong)[cells.group]
    pairs = cells.n_right * (2 * below + cells.n_wrong)
    twice = np.bincount(cells.group, pairs, minlength=n_groups)
    with np.errstate(invalid="ignore"):
        areas = twice / (2 * right * wrong)
    return areas, right.astype(np.int64), wrong.astype(np.int64)


def average_precision(n_right: Ints, n_wrong: Ints) -> float:
    """Give the mean precision over right attempts, as the threshold falls past each.

    Parameters
    ----------
    n_right
        Right attempts of each distinct score, in ascending order of scores.
    n_wrong
        Wrong ones.

    Returns
    -------
    float
        In (0, 1]; NaN where no attempt is right.
    """
    falling = n_right[::-1]
    if not falling.any():
        return float("nan")
    found = np.cumsum(falling)
    kept = found + np.cumsum(n_wrong[::-1])
    return float((falling * (found / kept)).sum() / found[-1])


def rank_correlations(x: Ints, y: Ints, x_counts: Ints, y_counts: Ints) -> Floats:
    """Give Spearman's rank correlation within some groups; ties have the mean of their ranks.

    Parameters
    ----------
    x
        Place of each one's value and group in `x_counts`, flattened, (n,).
    y
        The same in `y_counts`.
    x_counts
        How often each value occurs in each group, (n_values, n_groups), values ascending; few
        values at best.
    y_counts
        The same of y.

    Returns
    -------
    Floats
        (n_groups,), each in [-1, 1]; NaN where either does not vary.
    """
    x_ranks, y_ranks = _centred_ranks(x_counts), _centred_ranks(y_counts)
    # What shares a value of x is summed before it is multiplied.
    sums = np.bincount(x, y_ranks.ravel()[y], minlength=x_ranks.size).reshape(x_ranks.shape)
    squares = [
        (counts * ranks**2).sum(axis=0)
        for counts, ranks in ((x_counts, x_ranks), (y_counts, y_ranks))
    ]
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = (sums * x_ranks).sum(axis=0) / np.sqrt(squares[0] * squares[1])
    correlations: Floats = np.clip(shares, -1.0, 1.0)
    return correlations


def _centred_ranks(counts: Ints) -> Floats:
    """Return twice the mean rank of each value in each group, less its mean over the group."""
    ranks: Floats = 2.0 * np.cumsum(counts, axis=0) - counts - counts.sum(axis=0)
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
    if int(values.max()) - low <= 4 * len(values) + 1_000_000:
        return values - low
    codes: Ints = np.unique(values, return_inverse=True)[1].astype(np.int64)
    return codes


def equal_width_starts(values: Floats, n_bins: int, low: float, high: float) -> Ints:
    """Find where bins of equal width begin; each holds its upper end, the first its lower one too.

    Parameters
    ----------
    values
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
        (n_bins + 1,): the place of the first value of each bin, and their number.
    """
    inner = np.searchsorted(values, bin_edges(n_bins, low, high)[1:-1], side="right")
    return np.concatenate([[0], inner, [len(values)]])


def equal_mass_starts(counts: Ints, n_bins: int) -> Ints:
    """Find where bins begin that hold as equally many as ties let them.

    Parameters
    ----------
    counts
        How often each distinct value occurs, in ascending order of values.
    n_bins
        Number of bins.

    Returns
    -------
    Ints
        (n_bins + 1,): the place of the first value of each bin, and their number. A value is in the
        bin of the middle one of its equals; a bin may stay empty.
    """
    twice_middle = 2 * np.cumsum(counts) - counts
    # Value v is in bin b where b N <= n_bins middle < (b + 1) N, which is whole numbers throughout.
    total = int(counts.sum())
    edges = -(-2 * total * np.arange(n_bins + 1) // n_bins)
    edges[-1] = 2 * total + 1
    starts: Ints = np.searchsorted(twice_middle, edges, side="left")
    return starts


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
