"""Means over clusters of unequal size: CR2 standard error, its degrees of freedom, and intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from ttsframe._checks import check_names
from ttsframe._exprs import in_order, raise_where
from ttsframe._typing import Floats, Integers
from ttsframe.errors import DataError, ParameterError
from ttsframe.statistics.intervals import FEW, FLAT, student_t_interval, t_quantile, wilson_ends

_PRIOR: Final = 0.3
"""Weight of clusters that agree within themselves, in effective right (or wrong) values."""

_WEBB: Final[Floats] = np.sqrt([0.5, 1.0, 1.5])[[2, 1, 0, 0, 1, 2]] * np.repeat([-1.0, 1.0], 3)
"""Weights of clusters in the wild bootstrap, each with chance 1/6."""

_N_WILD: Final = 9_999
_DRAWN_AT_ONCE: Final = 1 << 20
_N_BISECTIONS: Final = 24


def cluster_statistics(total: pl.Expr, size: pl.Expr) -> dict[str, pl.Expr]:
    """Build the columns of `cluster_spread` from the sum and the number of values of clusters."""
    n = size.sum().cast(pl.Float64)
    return cluster_spread((total - in_order(total).list.sum() / n * size) / n, size / n)


def cluster_spread(pull: pl.Expr, share: pl.Expr) -> dict[str, pl.Expr]:
    """Build `standard_error` (CR2), `df` and `most_share`, aggregating clusters; null below two."""
    # `share` is of all values, and `pull` the deviation from the mean times that share. `most_share`
    # is the variance of values that are equal within clusters, as a share of that of one value.
    # Sums are of sorted terms, so that they do not depend on the order of rows.
    leverage = share**2 / (1.0 - share)
    squares = in_order(share**2).list.sum()
    spread = squares + in_order(leverage).list.sum() ** 2 - in_order(leverage**2).list.sum()
    has_two = (share > 0).sum() > 1
    return {
        "standard_error": pl.when(has_two).then(
            in_order(pull**2 / (1.0 - share)).list.sum().sqrt()
        ),
        "df": pl.when(has_two).then((1.0 / spread).clip(lower_bound=1.0)),
        "most_share": squares,
    }


class ClusterError(NamedTuple):
    """What `cluster_spread` aggregates, as numbers; NaN below two clusters."""

    standard_error: float
    df: float
    most_share: float


def sum_by_cluster(values: Floats, clusters: Integers) -> tuple[Floats, Floats]:
    """Return the sum and the number of the values of each cluster."""
    _, codes = np.unique(clusters, return_inverse=True)
    return np.bincount(codes, values).astype(np.float64), np.bincount(codes).astype(np.float64)


def cluster_error(totals: Floats, sizes: Floats) -> ClusterError:
    """Return the CR2 standard error of the mean over clusters and its degrees of freedom."""
    if len(sizes) < 2:
        return ClusterError(float("nan"), float("nan"), float("nan"))
    n = sizes.sum()
    # Sorted before each sum, because the last bits of a sum depend on its order.
    pull = totals - np.sort(totals).sum() / n * sizes
    error = np.sqrt(np.sort(pull**2 / (1.0 - sizes / n)).sum()) / n
    share = np.sort(sizes) / n
    leverage = share**2 / (1.0 - share)
    squares = float((share**2).sum())
    spread = squares + leverage.sum() ** 2 - (leverage**2).sum()
    return ClusterError(float(error), max(1.0, float(1.0 / spread)), squares)


def cluster_interval(
    n_values: str,
    confidence_level: float,
    *,
    mean: str = "accuracy",
    quantile: pl.Expr | None = None,
) -> pl.Expr:
    """Build the interval of a mean over clusters of values in [0, 1], with Student's quantile or a larger."""
    # Over the columns `accuracy`, `standard_error`, `df`, `most_share` and `is_fractional`, and
    # `n_values` values behind the mean. Where few are right, or wrong, few clusters hold them, and the
    # design effect is underestimated: it is drawn towards the largest possible.
    center, n = pl.col(mean), pl.col(n_values).cast(pl.Float64)
    variance = center * (1.0 - center) / n
    effect = pl.col("standard_error") ** 2 / variance
    effect = pl.when(variance > FLAT**2).then(effect).otherwise(1.0).clip(1.0)
    few = pl.min_horizontal(center, 1.0 - center).clip(0.0) * n / effect
    most = pl.max_horizontal(pl.col("most_share") * n, effect)
    n_effective = n / (effect + _PRIOR / (_PRIOR + few) * (most - effect))
    single = t_quantile(pl.col("df"), confidence_level)
    quantile = single if quantile is None else quantile
    low, high = wilson_ends(center * n_effective, n_effective, quantile)
    wilson = pl.struct(low.clip(0.0, 1.0).alias("ci_low"), high.clip(0.0, 1.0).alias("ci_high"))
    error = pl.col("standard_error") * (quantile / single)
    student = student_t_interval(mean, error, pl.col("df") + 1.0, confidence_level=confidence_level)
    # The tolerance keeps a mean on one side of the limit whatever its rounding is.
    is_many = few >= FEW - 1e-9
    interval = pl.when(pl.col("is_fractional") & is_many).then(student).otherwise(wilson)
    return pl.when(pl.col("df").is_not_null()).then(interval)


class WildTest(NamedTuple):
    """Webb's wild cluster bootstrap of a mean in [-1, 1]: p-value of a mean of 0, and interval."""

    p_value: float
    ci_low: float
    ci_high: float


def wild_test(totals: Floats, sizes: Floats, confidence_level: float) -> WildTest:
    """Test the mean over two clusters or more whose totals vary, with the hypothesis imposed."""
    order = np.lexsort((totals, sizes))
    totals, sizes = totals[order], sizes[order]
    mean = float(totals.sum() / sizes.sum())
    error = cluster_error(totals, sizes).standard_error
    # A mean m is tested on totals less m * sizes: the drawn mean is linear in m, its variance quadratic.
    shift, slope, square, product, square_of_slope = _draw_wild(totals, sizes)
    alpha = 1.0 - confidence_level

    def p_value(tested: float) -> float:
        variance = square - 2.0 * tested * product + tested**2 * square_of_slope
        # A drawn mean without a spread is at least as extreme as any, or 0.
        drawn = (shift - tested * slope) ** 2 / np.maximum(variance, FLAT**2)
        n_larger = int((drawn >= ((mean - tested) / error) ** 2 * (1.0 - 1e-9)).sum())
        return (1 + n_larger) / (len(shift) + 1)

    def end(bound: float) -> float:
        """Bisect between a mean that is rejected and one that is not."""
        inner, outer = mean, bound
        # Starting from 0, the interval holds 0 exactly where that is not rejected.
        if (mean > 0.0) == (bound < 0.0):
            inner, outer = (mean, 0.0) if p_value(0.0) < alpha else (0.0, bound)
        if outer == bound and p_value(bound) >= alpha:
            return bound
        for _ in range(_N_BISECTIONS):
            middle = (inner + outer) / 2.0
            inner, outer = (inner, middle) if p_value(middle) < alpha else (middle, outer)
        return (inner + outer) / 2.0

    return WildTest(p_value(0.0), end(-1.0), end(1.0))


def _draw_wild(totals: Floats, sizes: Floats) -> Floats:
    """Draw means of totals and of sizes times Webb's weights, and their squares and product by CR2."""
    n = sizes.sum()
    inverse = 1.0 / (1.0 - sizes / n) / n**2
    rng = np.random.default_rng(0)
    found = np.empty((5, _N_WILD))
    step = max(1, _DRAWN_AT_ONCE // len(sizes))
    for start in range(0, _N_WILD, step):
        part = found[:, start : start + step]
        weights = _WEBB[rng.integers(0, len(_WEBB), (part.shape[1], len(sizes)))]
        part[0], part[1] = weights @ totals / n, weights @ sizes / n
        pulls = weights * totals - part[0][:, None] * sizes
        slopes = (weights - part[1][:, None]) * sizes
        for row, terms in enumerate((pulls**2, pulls * slopes, slopes**2), start=2):
            part[row] = terms @ inverse
    return found


def in_one_cluster(unit: Mapping[str, str], cluster: str) -> pl.Expr:
    """Build a filter that raises if a problem is in several clusters."""

    def error(rows: pl.DataFrame) -> DataError:
        row = rows.sort([*unit]).row(0, named=True)
        named = ", ".join(
            f"{name} {row[key]!r}" for key, name in unit.items() if row[key] is not None
        )
        return DataError(
            f"{named}: in {row['n_clusters']} values of {cluster!r}, expected one. "
            "Hint: all rows of a problem must be in one cluster."
        )

    is_broken = (pl.col("n_clusters") > 1).alias("broken")
    return raise_where(pl.struct(is_broken, *unit, "n_clusters"), error, sees_all_rows=True)


def check_cluster(
    cluster: str | None, taken: Iterable[str], named: Sequence[str]
) -> tuple[str, ...]:
    """Check the column of clusters, and return its name, if there is one."""
    clusters: tuple[str, ...] = (
        () if cluster is None else check_names(cluster, "cluster", taken=taken)
    )
    if cluster in named:
        raise ParameterError(
            f"cluster names {cluster!r}, which another parameter names too; a column has one use."
        )
    return clusters
