"""Bootstrap distribution of a mean over units, and its intervals."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np

from ttsframe._typing import Floats, Integers

BootstrapMethod: TypeAlias = Literal["bca", "percentile"]

_BATCH: Final = 1 << 21
"""Number of draws in memory at a time."""
_COPIES_PER_COUNT: Final = 8
"""A binomial draw takes about as long as this many draws of a unit."""


class Units(NamedTuple):
    """Distinct units, sorted: a problem, or a cluster of them."""

    sums: Floats
    """Sum of the values of a unit."""
    sizes: Floats
    """Number of values of a unit."""
    copies: Integers
    """Units that have this sum and this size."""


def units_of(values: Floats, clusters: Integers | None) -> Units:
    """Sum values by cluster and count equal units, which drops the order of rows."""
    if clusters is None:
        distinct, copies = np.unique(values, return_counts=True)
        return Units(distinct, np.ones_like(distinct), copies.astype(np.int64))
    # Summed in sorted order, so that rounding does not depend on the order of rows.
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
    """Return the ends of the bootstrap interval of the mean over at least two units."""
    mean = float(units.copies @ units.sums / (units.copies @ units.sizes))
    means = _resampled_means(units, n_resamples, rng)
    tails = np.array([(1.0 - confidence_level) / 2.0, (1.0 + confidence_level) / 2.0])
    if method == "bca":
        tails = _bca_tails(tails, means, mean, units)
    low, high = np.quantile(means, tails)
    return min(float(low), mean), max(float(high), mean)


def _resampled_means(units: Units, n_resamples: int, rng: np.random.Generator) -> Floats:
    """Return means over as many units as given, drawn with replacement."""
    n_units, n_distinct = int(units.copies.sum()), units.sums.size
    # With few distinct units, such as 0 and 1, draw how often each of them occurs.
    has_few = n_distinct * _COPIES_PER_COUNT < n_units
    width = n_distinct if has_few else n_units
    sums = units.sums if has_few else np.repeat(units.sums, units.copies)
    sizes = units.sizes if has_few else np.repeat(units.sizes, units.copies)
    shares = units.copies / n_units
    means = np.empty(n_resamples)
    step = max(1, _BATCH // width)
    for start in range(0, n_resamples, step):
        part = means[start : start + step]
        if has_few:
            counts = rng.multinomial(n_units, shares, size=part.size)
            part[:] = (counts @ sums) / (counts @ sizes)
        else:
            drawn = rng.integers(0, n_units, (part.size, n_units))
            part[:] = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    return means


def _bca_tails(tails: Floats, means: Floats, mean: float, units: Units) -> Floats:
    """Correct the levels of both tails for bias and acceleration."""
    from scipy.special import ndtr, ndtri

    # Means that differ from the mean by rounding only count half below.
    tolerance = 1e-12 * max(1.0, abs(mean))
    below = ((means < mean - tolerance).mean() + (means <= mean + tolerance).mean()) / 2.0
    edge = 0.5 / means.size
    bias = ndtri(min(max(below, edge), 1.0 - edge))
    total, size = units.copies @ units.sums, units.copies @ units.sizes
    without = (total - units.sums) / (size - units.sizes)
    deviation = units.copies @ without / units.copies.sum() - without
    spread = float(units.copies @ deviation**2)
    acceleration = float(units.copies @ deviation**3) / (6.0 * spread**1.5) if spread > 0.0 else 0.0
    shifted = bias + ndtri(tails)
    corrected: Floats = ndtr(bias + shifted / (1.0 - acceleration * shifted))
    return corrected
