"""Counting over all subsets of k of a problem's n attempts, in floating point.

Binomials of large n overflow, and differences of their logarithms lose digits. Weights and tails are
products of ratios of neighbouring counts instead: all terms are positive, none is above its total,
and what underflows is too small to matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

Bools: TypeAlias = npt.NDArray[np.bool_]
Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

_NEGLIGIBLE: Final = 1e-18
"""Share of the largest term of a sum at which the rest no longer counts."""

_BLOCK: Final = 1 << 14
"""How many tails are computed at once, so that their terms stay in a core's cache."""

_TILE: Final = 64
"""Rows and columns of a tile: three tiles fit into a core's cache."""

_MAX_MATRICES: Final = 1 << 18
_MAX_VECTORS: Final = 9_000
"""How many multiplications OpenBLAS keeps on the thread that asks for them."""

_MAX_WEIGHTS: Final = 1 << 22
"""How many weights are held at once, so that memory does not grow with n times the number of k."""


def rank_weights(n: int, k: Ints) -> Floats:
    """Give the chance that an attempt is the best of k drawn ones, by its rank."""
    rank = np.arange(n - 1)[:, None]
    weights = np.empty((n, len(k)))
    weights[0] = k / n
    np.divide(np.maximum(n - rank - k, 0), n - 1 - rank, out=weights[1:])
    return np.cumprod(weights, axis=0, out=weights)


def best_of_draws(value: Floats, score: Floats, ends: Ints, draws: Ints) -> tuple[Floats, Bools]:
    """Give the mean value of the best-scored of k attempts, over all subsets of k."""
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
            estimates[members, of_k] = product(value_by_rank, rank_weights(n, ascending[of_k]))
    as_given = np.searchsorted(ascending, draws)
    return np.ascontiguousarray(estimates.T)[as_given], is_null.T[as_given]


def _by_rank(value: Floats, score: Floats, starts: Ints, n: int) -> tuple[Floats, Bools]:
    """Return values by falling score, (n_groups, n), and which groups have no score at all."""
    key = -score[starts + np.arange(n)]
    ranked = value[starts + np.argsort(key, axis=1)]
    # In place of its own value, a tied attempt has the mean over its tie, an unscored one 0.
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


def mean_excess(n: Ints, c: Ints, k: Ints, *, above: Ints, most: Ints) -> Floats:
    """Give the mean, over all subsets, of the correct attempts in excess of a number."""
    result = np.empty(len(n))
    for start in range(0, len(n), _BLOCK):
        part = slice(start, start + _BLOCK)
        result[part] = _mean_excess(n[part], c[part], k[part], above[part], most[part])
    return result


def _mean_excess(n: Ints, c: Ints, k: Ints, above: Ints, most: Ints) -> Floats:
    """Return `mean_excess` of rows that fit into memory several times."""
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


def product(left: Floats, right: Floats) -> Floats:
    """Multiply matrices on the calling thread."""
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


def series_of_draws(
    name: str, values: Floats, is_null: Bools, fields: Sequence[str] | None
) -> pl.Series:
    """Return estimates as a column."""
    columns = [pl.Series(name, of_k) for of_k in values]
    for column, missing in zip(columns, is_null, strict=True):
        if missing.any():
            column[missing.nonzero()[0]] = None
    if fields is None:
        return columns[0]
    return pl.DataFrame(dict(zip(fields, columns, strict=True))).to_struct(name)
