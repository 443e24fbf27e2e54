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
    place: Ints
    n_right: Ints
    n_wrong: Ints


def count_cells(group: Ints, place: Ints, n_places: int, is_correct: Flags) -> Cells:
    """Count right and wrong attempts per group and place.

    Parameters
    ----------
    group
        Group of each attempt, (n_attempts,), from 0.
    place
        Place of each attempt within its group, in [0, n_places).
    n_places
        Number of places.
    is_correct
        Grade of each attempt.

    Returns
    -------
    Cells
        Those that hold an attempt.
    """
    # Integers sort several times faster than an order of them could be found.
    packed = np.sort((group * n_places + place) * 2 + is_correct)
    cell, is_right = packed >> 1, packed & 1
    first = np.flatnonzero(np.diff(cell, prepend=-1))
    if not len(first):
        return Cells(first, first, first, first)
    n_right = np.add.reduceat(is_right, first)
    return Cells(
        cell[first] // n_places,
        cell[first] % n_places,
        n_right,
        np.diff(first, append=len(packed)) - n_right,
    )


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


def rank_correlation(x: Ints, y: Ints) -> float:
    """Give Spearman's rank correlation; ties have the mean of their ranks.

    Parameters
    ----------
    x
        Whole numbers at least 0 in the order of the values, (n,).
    y
        Others.

    Returns
    -------
    float
        In [-1, 1]; NaN where either does not vary.
    """
    if not len(x):
        return float("nan")
    u, v = _centred_ranks(x), _centred_ranks(y)
    scale = np.sqrt((u @ u) * (v @ v))
    return float(np.clip((u @ v) / scale, -1.0, 1.0)) if scale > 0 else float("nan")


def _centred_ranks(codes: Ints) -> Floats:
    """Return twice the mean rank of each value, less its mean: whole numbers."""
    counts = np.bincount(codes)
    ranks = 2 * np.cumsum(counts) - counts - len(codes)
    centred: Floats = ranks.astype(np.float64)[codes]
    return centred


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


def equal_width_bins(values: Floats, n_bins: int, low: float, high: float) -> Ints:
    """Put values into bins of equal width; each holds its upper end.

    Parameters
    ----------
    values
        Sorted; those beyond an end go into the bin at that end.
    n_bins
        Number of bins.
    low
        Lower end of the first bin, which that bin holds too.
    high
        Upper end of the last bin.

    Returns
    -------
    Ints
        Bin of each, from 0.
    """
    edges = bin_edges(n_bins, low, high)
    return np.searchsorted(edges[1:-1], values, side="left").astype(np.int64)


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


def equal_mass_bins(counts: Ints, n_bins: int) -> Ints:
    """Put distinct values into bins that hold as equally many as ties let them.

    Parameters
    ----------
    counts
        How often each distinct value occurs, in ascending order of values.
    n_bins
        Number of bins.

    Returns
    -------
    Ints
        Bin of each value, from 0: that of the middle one of its equals; a bin may stay empty.
    """
    total = int(counts.sum())
    middle = 2 * np.cumsum(counts) - counts
    return middle * n_bins // (2 * max(total, 1))
