"""Bootstrap distributions of a mean over units, and the intervals read off them."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

BootstrapMethod: TypeAlias = Literal["bca", "percentile"]
Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

_BATCH: Final = 1 << 21
"""Draws held in memory at a time."""
_COPIES_PER_COUNT: Final = 8
"""One binomial draw costs about as much as this many draws of a unit's number."""


class Units(NamedTuple):
    """Distinct units, sorted: a problem, or a cluster of them."""

    sums: Floats
    """Sum of the values of a unit."""
    sizes: Floats
    """Number of values of a unit."""
    copies: Ints
    """Units that have this sum and this size."""


def units_of(values: Floats, clusters: Ints | None) -> Units:
    """Sum values by cluster and count equal units, so that the order of rows is forgotten."""
    if clusters is None:
        distinct, copies = np.unique(values, return_counts=True)
        return Units(distinct, np.ones_like(distinct), copies.astype(np.int64))
    # Summed in order of size, so that rounding is the same under any order of rows.
    order = np.lexsort((values, clusters))
    sums = np.bincount(clusters[order], weights=values[order])
    sizes = np.bincount(clusters).astype(np.float64)
    rows, copies = np.unique(np.column_stack([sums, sizes]), axis=0, return_counts=True)
    return Units(rows[:, 0], rows[:, 1], copies.astype(np.int64))


def bootstrap_ends(
    units: Units,
    *,
    method: BootstrapMethod,
    n_resamples: int,
    confidence_level: float,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Give the ends of the bootstrap interval of the mean."""
    mean = float(units.copies @ units.sums / (units.copies @ units.sizes))
    means = _resampled_means(units, n_resamples, rng)
    tails = np.array([(1.0 - confidence_level) / 2.0, (1.0 + confidence_level) / 2.0])
    if method == "bca":
        tails = _bca_tails(tails, means, mean, units)
    low, high = np.quantile(means, tails)
    return float(low), float(high)


def _resampled_means(units: Units, n_resamples: int, rng: np.random.Generator) -> Floats:
    """Draw as many units as there are, with replacement, and average; many times."""
    n_units, n_distinct = int(units.copies.sum()), units.sums.size
    # Values of few kinds, such as 0 and 1: what counts is how often each kind is drawn.
    is_lumpy = n_distinct * _COPIES_PER_COUNT < n_units
    width = n_distinct if is_lumpy else n_units
    sums = units.sums if is_lumpy else np.repeat(units.sums, units.copies)
    sizes = units.sizes if is_lumpy else np.repeat(units.sizes, units.copies)
    shares = units.copies / n_units
    means = np.empty(n_resamples)
    step = max(1, _BATCH // width)
    for start in range(0, n_resamples, step):
        part = means[start : start + step]
        if is_lumpy:
            counts = rng.multinomial(n_units, shares, size=part.size)
            part[:] = (counts @ sums) / (counts @ sizes)
        else:
            drawn = rng.integers(0, n_units, (part.size, n_units))
            part[:] = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    return means


def _bca_tails(tails: Floats, means: Floats, mean: float, units: Units) -> Floats:
    """Shift the tails by the median's bias and by how the spread grows with the mean."""
    from scipy.special import ndtr, ndtri

    # Means that equal the mean but for rounding are neither above nor below.
    tolerance = 1e-12 * max(1.0, abs(mean))
    below = ((means < mean - tolerance).mean() + (means <= mean + tolerance).mean()) / 2.0
    edge = 0.5 / means.size
    bias = ndtri(min(max(below, edge), 1.0 - edge))
    total, size = units.copies @ units.sums, units.copies @ units.sizes
    without = (total - units.sums) / (size - units.sizes)
    pull = units.copies @ without / units.copies.sum() - without
    spread = float(units.copies @ pull**2)
    acceleration = float(units.copies @ pull**3) / (6.0 * spread**1.5) if spread > 0.0 else 0.0
    shifted = bias + ndtri(tails)
    corrected: Floats = ndtr(bias + shifted / (1.0 - acceleration * shifted))
    return corrected
