"""What policies compute over many problems at once, on arrays whose rows of one group are adjacent."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ttsframe._draws import Bits, bits_at, uniforms
from ttsframe._typing import Flags, Floats, Integers

_TIE: float = 1e-9
"""Relative distance from an integer below which a share counts as this integer."""


class Groups(NamedTuple):
    """Rows in groups, adjacent and in order."""

    of_row: Integers
    """Number of the group of each row, from 0."""
    starts: Integers
    sizes: Integers

    @property
    def position(self) -> Integers:
        """Position of each row in its group."""
        return np.arange(len(self.of_row)) - self.starts[self.of_row]

    def first(self, values: Integers) -> Integers:
        """Return the value of each group's first row."""
        return values[self.starts]


def make_groups(*keys: Integers) -> Groups:
    """Group adjacent rows with equal keys."""
    n_rows = len(keys[0])
    is_start = np.ones(n_rows, dtype=np.bool_)
    if n_rows:
        is_start[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    starts = np.flatnonzero(is_start)
    sizes = np.diff(np.append(starts, n_rows))
    return Groups(np.cumsum(is_start) - 1, starts, sizes)


def ranks(groups: Groups, scores: Floats, *, prefers_later: bool = False) -> Integers:
    """Rank the rows of each group from 0 for the highest score; NaN ranks last, ties go by position."""
    tie = groups.position
    order = np.lexsort((-tie if prefers_later else tie, -scores, groups.of_row))
    found = np.empty(len(order), dtype=np.int64)
    found[order] = np.arange(len(order)) - groups.starts[groups.of_row[order]]
    return found


def softmax_weights(groups: Groups, scores: Floats, temperature: float) -> Floats:
    """Return exp(score / temperature), shifted by the group's maximum."""
    # A row without a score weighs nothing, unless no row of its group has one: then all weigh the same.
    if not len(scores):
        return scores
    known = np.where(np.isnan(scores), -np.inf, scores)
    top = np.maximum.reduceat(known, groups.starts)
    is_unscored = np.isneginf(top)[groups.of_row]
    shift = np.where(np.isneginf(top), 0.0, top)[groups.of_row]
    with np.errstate(over="ignore"):
        weights = np.exp((known - shift) / temperature)
    return np.where(is_unscored, 1.0, weights)


def allocate_ceil(groups: Groups, weights: Floats, order: Integers, widths: Integers) -> Integers:
    """Give each group's width to its rows, best first, each its share of the rest, rounded up."""
    # The shares are taken of suffix sums, so that the last row's is exactly the whole rest: the sum is
    # exactly the width, whatever the weights.
    sorted_weights = _padded(groups, weights, order)
    rest = np.cumsum(sorted_weights[:, ::-1], axis=1)[:, ::-1]
    left = np.maximum(widths, 0).astype(np.float64)
    given = np.zeros_like(sorted_weights)
    for rank in range(sorted_weights.shape[1]):
        weight, total = sorted_weights[:, rank], rest[:, rank]
        share = left * np.divide(weight, total, out=np.zeros_like(total), where=total > 0)
        # A share that is an integer but for the rounding of floats must not become one more.
        n = np.minimum(np.ceil(share * (1.0 - _TIE)), left)
        given[:, rank] = n
        left -= n
        if not left.any():
            break
    return given[groups.of_row, order].astype(np.int64)


def allocate_round(groups: Groups, weights: Floats, order: Integers, widths: Integers) -> Integers:
    """Give each row its share of the width, rounded to the nearest integer, half to even."""
    # The list of copies, in row order, is cut to the width or repeated up to it. If every share rounds
    # to 0, the best rows get one each.
    positions = groups.position
    by_row = _padded(groups, weights, positions)
    ranked = _padded(groups, order.astype(np.float64), positions, fill=np.inf)
    width = np.maximum(widths, 0)[:, None]
    counts = np.rint(by_row / by_row.sum(axis=1, keepdims=True) * width).astype(np.int64)
    is_empty = counts.sum(axis=1, keepdims=True) == 0
    counts = np.where(is_empty, ranked < width, counts).astype(np.int64)
    ends = np.cumsum(counts, axis=1)
    total = np.maximum(ends[:, -1:], 1)
    n_lists, tail = width // total, width % total
    counts = counts * n_lists + np.minimum(ends, tail) - np.minimum(ends - counts, tail)
    return np.asarray(counts[groups.of_row, positions], dtype=np.int64)


def spread(groups: Groups, is_kept: Flags, order: Integers, widths: Integers) -> Integers:
    """Spread each group's width evenly over its kept rows; what is left over goes by `order`."""
    n_kept = np.add.reduceat(is_kept.astype(np.int64), groups.starts)
    width = np.maximum(widths, 0)
    n_each, n_over = np.divmod(width, np.maximum(n_kept, 1))
    position = _rank_among(groups, is_kept, order)
    found = n_each[groups.of_row] + (position < n_over[groups.of_row])
    return np.where(is_kept, found, 0)


def resample(
    groups: Groups, weights: Floats, widths: Integers, draws: Bits, *, is_systematic: bool = False
) -> Integers:
    """Draw each group's width with replacement, in proportion to the weights; return the counts."""
    padded = _padded(groups, weights, groups.position)
    ends = np.cumsum(padded, axis=1)
    ends /= ends[:, -1:]
    n_slots = int(widths.max(initial=0))
    slots = np.arange(n_slots)
    if is_systematic:
        start = uniforms(bits_at(draws, np.array([0])))[:, None]
        points = (slots[None, :] + start) / np.maximum(widths, 1)[:, None]
    else:
        points = uniforms(bits_at(draws[:, None], slots[None, :]))
    points = np.where(slots[None, :] < widths[:, None], points, 2.0)
    counts = np.zeros(ends.shape, dtype=np.int64)
    below = np.zeros(len(ends), dtype=np.int64)
    for column in range(ends.shape[1]):
        n = (points < ends[:, column : column + 1]).sum(axis=1)
        counts[:, column] = n - below
        below = n
    return counts[groups.of_row, groups.position]


def _padded(groups: Groups, values: Floats, columns: Integers, *, fill: float = 0.0) -> Floats:
    """Put values into a matrix with one row per group; each goes to its column."""
    matrix = np.full((len(groups.sizes), int(groups.sizes.max(initial=0))), fill)
    matrix[groups.of_row, columns] = values
    return matrix


def _rank_among(groups: Groups, is_kept: Flags, order: Integers) -> Integers:
    """Rank the kept rows of each group by `order`."""
    sorting = np.lexsort((order, ~is_kept, groups.of_row))
    found = np.empty(len(order), dtype=np.int64)
    found[sorting] = np.arange(len(order)) - groups.starts[groups.of_row[sorting]]
    return found
