"""Counting over all subsets of k of a problem's n attempts, in floating point.

Binomials of large n overflow, and differences of their logarithms lose digits. So weights and tails
are products of ratios of neighboring counts: all terms are positive, none exceeds its total, and
terms that underflow are negligible.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ttsframe._typing import Flags, Floats, Integers

_NEGLIGIBLE: Final = 1e-18
"""Terms below this share of the largest one are ignored."""

_BLOCK: Final = 1 << 14
"""Number of tails computed at once, so that their terms stay in a core's cache."""

_TILE: Final = 64
"""Rows and columns of a tile; three tiles fit into a core's cache."""

_MAX_MATRICES: Final = 1 << 18
_MAX_VECTORS: Final = 9_000
"""Largest numbers of multiplications that OpenBLAS runs on the calling thread."""

_MAX_WEIGHTS: Final = 1 << 22
"""Number of weights in memory at a time, so that it does not grow with n times the number of k."""


def rank_weights(n: int, k: Integers) -> Floats:
    """Return the chance that the attempt of each rank is the best of k drawn ones: (n, n_k)."""
    # w[r] = C(n-1-r, k-1) / C(n, k), from w[0] = k/n and w[r+1] / w[r] = (n-k-r) / (n-1-r).
    rank = np.arange(n - 1)[:, None]
    weights = np.empty((n, len(k)))
    weights[0] = k / n
    np.divide(np.maximum(n - rank - k, 0), n - 1 - rank, out=weights[1:])
    return np.cumprod(weights, axis=0, out=weights)


def best_of_draws(
    value: Floats, score: Floats, ends: Integers, draws: Integers
) -> tuple[Floats, Flags]:
    """Return the mean value of the best-scored of k attempts: (n_k, n_groups), and where it is null."""
    # Each group's rows end at `ends`. An attempt with a NaN score never wins; a subset of such
    # attempts counts 0. The result is null if n < k or no attempt has a score.
    ascending = np.sort(draws)
    lengths = np.diff(ends, prepend=0)
    estimates = np.full((len(ends), len(draws)), np.nan)
    is_null = lengths[:, None] < ascending
    for n in np.unique(lengths[lengths >= ascending[0]]):
        members = np.flatnonzero(lengths == n)
        starts = (ends[members] - n)[:, None]
        value_by_rank, is_unscored = _by_rank(value, score, starts, n)
        is_null[members[is_unscored]] = True
        n_known, step = np.searchsorted(ascending, n, side="right"), max(_MAX_WEIGHTS // n, 1)
        for first in range(0, n_known, step):
            of_k = slice(first, min(first + step, n_known))
            estimates[members, of_k] = multiply(value_by_rank, rank_weights(n, ascending[of_k]))
    as_given = np.searchsorted(ascending, draws)
    return np.ascontiguousarray(estimates.T)[as_given], is_null.T[as_given]


def _by_rank(value: Floats, score: Floats, starts: Integers, n: int) -> tuple[Floats, Flags]:
    """Return values by falling score, (n_groups, n), and which groups have no score."""
    key = -score[starts + np.arange(n)]
    ranked = value[starts + np.argsort(key, axis=1)]
    # A tied attempt gets the mean value over its tie, an unscored one 0.
    key.sort(axis=1)
    is_missing = np.isnan(key)
    ranked[is_missing] = 0.0
    is_first = np.ones(key.shape, dtype=np.bool_)
    np.not_equal(key[:, 1:], key[:, :-1], out=is_first[:, 1:])
    if not is_first.all():
        first = np.flatnonzero(is_first)
        sizes = np.diff(first, append=is_first.size)
        means = np.add.reduceat(ranked.ravel(), first) / sizes
        ranked = np.repeat(means, sizes).reshape(ranked.shape)
    return ranked, is_missing[:, 0]


def mean_excess(
    n: Integers, c: Integers, k: Integers, *, above: Integers, most: Integers
) -> Floats:
    """Return the mean of min(max(J - above, 0), most), for J correct ones among k of n attempts."""
    # Terms of the hypergeometric distribution are taken relative to the mode, outwards until they
    # are negligible, and divided by their sum. The error is about 1e-13 of `most`.
    result = np.empty(len(n))
    for start in range(0, len(n), _BLOCK):
        part = slice(start, start + _BLOCK)
        result[part] = _mean_excess(n[part], c[part], k[part], above[part], most[part])
    return result


def _mean_excess(n: Integers, c: Integers, k: Integers, above: Integers, most: Integers) -> Floats:
    """Compute `mean_excess` for one block of rows."""
    mode = np.minimum((c + 1) * (k + 1) // (n + 2), np.minimum(c, k))
    spare = n - c - k
    total = np.ones(len(n))
    excess: Floats = np.clip(mode - above, 0, most).astype(np.float64)
    term, j = np.ones(len(n)), mode
    while np.max(term, initial=0.0) > _NEGLIGIBLE:
        term = term * ((c - j) * (k - j) / ((j + 1) * (spare + j + 1)))
        j = j + 1
        total += term
        excess += term * np.clip(j - above, 0, most)
    term, j = np.ones(len(n)), mode
    while np.max(term, initial=0.0) > _NEGLIGIBLE:
        term = term * (j * (spare + j) / ((c - j + 1) * (k - j + 1)))
        j = j - 1
        total += term
        excess += term * np.clip(j - above, 0, most)
    return excess / total


def multiply(left: Floats, right: Floats) -> Floats:
    """Multiply matrices on the calling thread, in tiles."""
    # OpenBLAS splits a larger product among threads that wait for each other in a loop. If Polars or
    # another process keeps the cores busy, a product of 0.1 ms then takes 30 ms. Tiles are too small
    # to be split; on idle cores they take twice as long.
    (n_rows, n), n_columns = left.shape, right.shape[1]
    height, width = min(n_rows, _TILE), min(n_columns, _TILE)
    depth = (_MAX_MATRICES if min(height, width) > 1 else _MAX_VECTORS) // (height * width)
    result = np.zeros((n_rows, n_columns))
    whole = n_rows - n_rows % height
    for start in range(0, n, depth):
        strip = left[:, start : start + depth]
        tiles = strip[:whole].reshape(-1, height, strip.shape[1])
        for first in range(0, n_columns, width):
            columns = slice(first, first + width)
            tile = right[start : start + depth, columns]
            result[:whole, columns] += (tiles @ tile).reshape(whole, -1)
            result[whole:, columns] += strip[whole:] @ tile
    return result
