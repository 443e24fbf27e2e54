"""Standard error and bootstrap interval of a mean over problems, as aggregating expressions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, get_args

import numpy as np
import polars as pl

from ttsframe._checks import check_choice, check_fraction, check_positive, check_seed
from ttsframe._exprs import in_order, into_expr, keep_name
from ttsframe._typing import Floats, IntoExprColumn
from ttsframe.statistics.clusters import cluster_error
from ttsframe.statistics.intervals import FLAT, student_t_interval
from ttsframe.statistics.resampling import BootstrapMethod, bootstrap_ends, units_of

__all__ = ["bootstrap_interval", "degrees_of_freedom", "standard_error"]

_ENDS: Final = pl.Struct({"ci_low": pl.Float64(), "ci_high": pl.Float64()})


def standard_error(value: IntoExprColumn, *, cluster: IntoExprColumn | None = None) -> pl.Expr:
    r"""Return the standard error of the mean over problems, or over clusters of problems.

    The spread between problems already includes the sampling noise within them. Problems that were
    drawn together, such as questions about one text, are not independent; name their `cluster`.

    Parameters
    ----------
    value
        Numeric or Boolean column, one row per problem; nulls are left out.
    cluster
        Column of any dtype, the cluster of each problem; a null is a cluster like any other. None:
        problems are independent.

    Returns
    -------
    pl.Expr
        Float64, aggregating, named as `value`; null below two problems or clusters, NaN if a value
        is NaN.

    Notes
    -----
    With n values of mean :math:`\bar x`, :math:`n_g` of them in cluster g,

    .. math::

        \mathrm{SE}^2 = \frac{1}{n^2} \sum_g
        \frac{\big(\sum_{i \in g} (x_i - \bar x)\big)^2}{1 - n_g / n}

    This is the CR2 estimator of Bell and McCaffrey, which does not depend on equal sizes of clusters
    as the usual factor G / (G - 1) does. With clusters of one problem it is the standard deviation
    (ddof 1) over the square root of n. Intervals from it need `degrees_of_freedom`.

    References
    ----------
    Miller (2024), Adding Error Bars to Evals, arXiv:2411.00640, sections 2 and 2.2. Bell and McCaffrey
    (2002), Bias reduction in standard errors for linear regression with multi-stage samples, Survey
    Methodology 28, 169-181.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({"text": ["a", "a", "b", "b"], "value": [1.0, 1.0, 0.0, 0.5]})
    >>> frame.select(tts.standard_error("value").round(4)).item()
    0.2394
    >>> frame.select(tts.standard_error("value", cluster="text").round(4)).item()
    0.375
    """
    source = into_expr(value, "value")
    if cluster is None:
        values = source.cast(pl.Float64)
        return keep_name(
            in_order(values).list.std(ddof=1) / values.count().cast(pl.Float64).sqrt(), source
        )

    return _over_clusters(
        source, cluster, lambda totals, sizes: cluster_error(totals, sizes).standard_error
    )


def degrees_of_freedom(value: IntoExprColumn, *, cluster: IntoExprColumn | None = None) -> pl.Expr:
    r"""Return the degrees of freedom of the standard error of a mean over clusters of problems.

    With unequal clusters the largest decide the mean, so that there are fewer degrees of freedom than
    clusters less one.

    Parameters
    ----------
    value, cluster
        As in `standard_error`.

    Returns
    -------
    pl.Expr
        Float64, aggregating, named as `value`, at least 1; null below two problems or clusters.

    Notes
    -----
    Bell and McCaffrey match the first two moments of :math:`\mathrm{SE}^2` for independent values of
    equal variance. With the shares :math:`w_g = n_g / n` and :math:`a_g = w_g^2 / (1 - w_g)`,

    .. math::

        \mathrm{df} = \Big( \sum_g w_g^2 + \big(\sum_g a_g\big)^2 - \sum_g a_g^2 \Big)^{-1}

    which is the number of clusters less one where they are equal.

    References
    ----------
    Bell and McCaffrey (2002), Bias reduction in standard errors for linear regression with multi-stage
    samples, Survey Methodology 28, 169-181. Imbens and Kolesar (2016), Robust standard errors in small
    samples: some practical advice, Review of Economics and Statistics 98, 701-712. Pustejovsky and
    Tipton (2018), Small-sample methods for cluster-robust variance estimation and hypothesis testing in
    fixed effects models, Journal of Business & Economic Statistics 36, 672-683.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({"text": ["a"] * 6 + ["b", "c"], "value": [1.0] * 4 + [0.0] * 4})
    >>> df = tts.statistics.degrees_of_freedom("value", cluster="text")
    >>> frame.select(df.round(2)).item()
    1.32
    """
    source = into_expr(value, "value")
    if cluster is None:
        n = source.count().cast(pl.Float64)
        return keep_name(pl.when(n > 1.0).then(n - 1.0), source)
    return _over_clusters(source, cluster, lambda totals, sizes: cluster_error(totals, sizes).df)


def _over_clusters(
    source: pl.Expr, cluster: IntoExprColumn, number: Callable[[Floats, Floats], float]
) -> pl.Expr:
    """Compute a number from the sums and sizes of clusters."""

    def compute(rows: pl.Series) -> pl.Series:
        units = (
            rows.struct
            .unnest()
            .drop_nulls("value")
            .group_by("cluster")
            .agg(
                in_order(pl.col("value")).list.sum().alias("total"),
                pl.len().cast(pl.Float64).alias("size"),
            )
            .sort("size", "total")
        )
        if units.height < 2:
            return pl.Series(rows.name, [None], dtype=pl.Float64)
        found = number(units["total"].to_numpy(), units["size"].to_numpy())
        return pl.Series(rows.name, [found], dtype=pl.Float64)

    return keep_name(
        _problems(source, cluster).map_batches(
            compute, return_dtype=pl.Float64, returns_scalar=True
        ),
        source,
    )


def bootstrap_interval(
    value: IntoExprColumn,
    *,
    cluster: IntoExprColumn | None = None,
    method: BootstrapMethod = "bca",
    n_resamples: int = 10_000,
    confidence_level: float = 0.95,
    seed: int = 0,
) -> pl.Expr:
    r"""Return the bootstrap interval of the mean over problems, or over clusters of problems.

    Problems are drawn with replacement, never attempts: the problem is the unit. Values are sorted
    first, so the order of rows does not matter; each group of a `group_by` gets the same random
    numbers.

    It needs some tens of problems. For values of 0 and 1 `wilson_interval` has better coverage. Equal
    values give equal resamples, which say nothing about the mean: the interval of values in [0, 1] is
    then that of `student_t_interval` for a standard error of 0, of other values unknown.

    Parameters
    ----------
    value
        Numeric or Boolean column, one row per problem; nulls are left out.
    cluster
        As in `standard_error`; whole clusters are drawn.
    method
        ``"percentile"``: quantiles of the resampled means. ``"bca"``: quantiles at levels corrected
        for bias and skewness, with coverage closer to nominal if values are skewed.
    n_resamples
        Number of resamples, at least 1.
    confidence_level
        Nominal coverage, strictly between 0 and 1.
    seed
        Seed of numpy's default generator, whose draws may differ in a later version of numpy.

    Returns
    -------
    pl.Expr
        Struct with the fields `ci_low` and `ci_high`, Float64, aggregating, named as `value`;
        both null below two problems or clusters, and where all resamples agree on a mean outside
        [0, 1]; NaN if a value is NaN. The mean is always between them.

    Raises
    ------
    ParameterTypeError
        At once, if `n_resamples` or `seed` is not an int, or a column is not a column.
    ParameterError
        At once, if a parameter is invalid.

    Notes
    -----
    BCa takes the quantiles of the resampled means at

    .. math:: \Phi\Big(z_0 + \frac{z_0 + z_\alpha}{1 - a (z_0 + z_\alpha)}\Big)

    where :math:`\Phi(z_0)` is the share of resampled means below the mean, equal ones by half, and
    the acceleration a comes from leaving one unit out at a time.

    References
    ----------
    Efron (1987), Better bootstrap confidence intervals, Journal of the American Statistical
    Association 82, 171-185, doi:10.1080/01621459.1987.10478410.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({"value": [0.0, 0.25, 0.5, 1.0, 1.0, 0.75]})
    >>> interval = frame.select(tts.bootstrap_interval("value", seed=1)).unnest("value")
    >>> interval.select(pl.all().round(2)).row(0)
    (0.25, 0.88)
    """
    check_choice(method, "method", get_args(BootstrapMethod))
    check_positive(n_resamples, "n_resamples")
    level = check_fraction(confidence_level, "confidence_level")
    check_seed(seed)

    def ends(rows: pl.Series) -> pl.Series:
        known = rows.struct.unnest().drop_nulls("value")
        clusters = None
        if cluster is not None:
            known = known.sort("cluster")
            clusters = known["cluster"].rle_id().cast(pl.Int64).to_numpy()
        values = known["value"].to_numpy()
        n_units = values.size if clusters is None else np.unique(clusters).size
        interval: dict[str, float] | None = None
        if np.isnan(values).any():
            interval = {"ci_low": math.nan, "ci_high": math.nan}
        elif n_units > 1:
            low, high = bootstrap_ends(
                units_of(values, clusters),
                method=method,
                n_resamples=n_resamples,
                confidence_level=level,
                rng=np.random.default_rng(seed),
            )
            interval = {"ci_low": low, "ci_high": high}
            if high - low <= FLAT * max(1.0, abs(low)):
                interval = _interval_of_equal(low, n_units, level)
        return pl.Series(rows.name, [interval], dtype=_ENDS)

    source = into_expr(value, "value")
    rows = _problems(source, cluster)
    return keep_name(rows.map_batches(ends, return_dtype=_ENDS, returns_scalar=True), source)


def _interval_of_equal(
    mean: float, n_units: int, confidence_level: float
) -> dict[str, float] | None:
    """Return the interval of a mean on which all resamples agree."""
    if not -FLAT <= mean <= 1.0 + FLAT:
        return None
    flat = pl.DataFrame({"mean": [mean], "error": [0.0], "n": [n_units]})
    ends = student_t_interval("mean", "error", "n", confidence_level=confidence_level)
    interval: dict[str, float] = flat.select(ends).item()
    return interval


def _problems(value: pl.Expr, cluster: IntoExprColumn | None) -> pl.Expr:
    """Combine values and clusters into one struct column."""
    fields = [value.cast(pl.Float64).alias("value")]
    if cluster is not None:
        fields.append(into_expr(cluster, "cluster").alias("cluster"))
    return pl.struct(fields)
