"""Standard errors and confidence intervals of a mean over problems, as expressions.

Those with a closed form take a table of counts or means, a row each; the standard error and the
bootstrap take the values themselves, a group each.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Final, get_args

import numpy as np
import polars as pl

from ttsframe._checks import check_choice, check_fraction, check_positive, check_seed
from ttsframe._exprs import into_expr, keep_name
from ttsframe._resampling import BootstrapMethod, bootstrap_ends, units_of
from ttsframe._typing import IntoExprColumn

__all__ = [
    "bootstrap_interval",
    "normal_interval",
    "standard_error",
    "student_t_interval",
    "wilson_interval",
]

_ENDS: Final = pl.Struct({"ci_low": pl.Float64(), "ci_high": pl.Float64()})


def wilson_interval(
    n_correct: IntoExprColumn, n: IntoExprColumn, *, confidence_level: float = 0.95
) -> pl.Expr:
    r"""Give the Wilson score interval of a proportion.

    It stays within [0, 1], has a width where none or all are correct, and its coverage is close to
    the nominal one from a handful of problems on; the interval of plain mean plus or minus standard
    error has none of the three.

    Parameters
    ----------
    n_correct
        Numeric column, (n_rows,), number of correct ones, each in [0, n].
    n
        Numeric column, (n_rows,), number of independent units, such as problems.
    confidence_level
        Nominal coverage, strictly between 0 and 1.

    Returns
    -------
    pl.Expr
        Struct with the fields ``ci_low`` and ``ci_high``, Float64, elementwise, named as
        ``n_correct``; both null where a count is null or n is below 1.

    Notes
    -----
    With z the normal quantile at (1 + confidence_level) / 2 and c correct ones of n,

    .. math::

        \frac{c + z^2/2 \pm z \sqrt{c (n - c) / n + z^2/4}}{n + z^2}

    The lower end is computed as the quotient of the product of both ends by the upper one, which
    does not cancel: it is exactly 0 at c = 0, and the upper end exactly 1 at c = n.

    References
    ----------
    Wilson (1927), Probable inference, the law of succession, and statistical inference, Journal of
    the American Statistical Association 22, 209-212, doi:10.1080/01621459.1927.10502953.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({"n_correct": [0, 7], "n": [10, 10]})
    >>> interval = tts.wilson_interval("n_correct", "n").struct
    >>> frame.select(interval.field("ci_low").round(4), interval.field("ci_high").round(4)).rows()
    [(0.0, 0.2775), (0.3968, 0.8922)]
    """
    z = NormalDist().inv_cdf((1.0 + check_fraction(confidence_level, "confidence_level")) / 2.0)
    source = into_expr(n_correct, "n_correct")
    correct = source.cast(pl.Float64)
    total = into_expr(n, "n").cast(pl.Float64)
    wrong = total - correct
    spread = z * (correct * wrong / total + z * z / 4.0).sqrt() + z * z / 2.0
    is_known = total >= 1.0
    low = correct * correct / total / (correct + spread)
    high = 1.0 - wrong * wrong / total / (wrong + spread)
    return keep_name(_interval(is_known, low, high, bounds=(0.0, 1.0)), source)


def student_t_interval(
    mean: IntoExprColumn,
    standard_error: IntoExprColumn,
    n: IntoExprColumn,
    *,
    confidence_level: float = 0.95,
    bounds: tuple[float, float] | None = (0.0, 1.0),
) -> pl.Expr:
    r"""Give the Student-t interval of a mean, clipped to the range of its values.

    For values that are not all 0 or 1, such as a mean over seeds or an expectation over subsets;
    counts have `wilson_interval`.

    Parameters
    ----------
    mean
        Float64 column, (n_rows,), mean over n independent units, each within `bounds`.
    standard_error
        Float64 column, (n_rows,), standard error of the mean: standard deviation with ddof 1 over
        the square root of n.
    n
        Numeric column, (n_rows,), number of independent units; n - 1 degrees of freedom.
    confidence_level
        Nominal coverage, strictly between 0 and 1.
    bounds
        Smallest and largest value that a unit can have; None where there are none, such as for
        scores that are logits.

    Returns
    -------
    pl.Expr
        Struct with the fields ``ci_low`` and ``ci_high``, Float64, elementwise, named as ``mean``;
        both null where an input is null or n is below 2. A standard error of 0 gives an interval
        of width 0.

    Notes
    -----
    .. math:: \bar x \pm t_{n-1,\,(1+\gamma)/2} \, \mathrm{SE}

    with gamma the confidence level.

    References
    ----------
    Miller (2024), Adding Error Bars to Evals, arXiv:2411.00640, section 2.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({"accuracy": [0.5, 0.9], "standard_error": [0.1, 0.1], "n": [10, 3]})
    >>> interval = tts.student_t_interval("accuracy", "standard_error", "n").struct
    >>> frame.select(interval.field("ci_low").round(4), interval.field("ci_high").round(4)).rows()
    [(0.2738, 0.7262), (0.4697, 1.0)]
    """
    upper = (1.0 + check_fraction(confidence_level, "confidence_level")) / 2.0

    def quantiles(degrees: pl.Series) -> pl.Series:
        from scipy.special import stdtrit

        return pl.Series(degrees.name, stdtrit(degrees.to_numpy(), upper), dtype=pl.Float64)

    source = into_expr(mean, "mean")
    degrees = into_expr(n, "n").cast(pl.Float64) - 1.0
    half = into_expr(standard_error, "standard_error").cast(pl.Float64) * degrees.map_batches(
        quantiles, return_dtype=pl.Float64, is_elementwise=True
    )
    centre = source.cast(pl.Float64)
    ends = (centre - half, centre + half)
    return keep_name(_interval(degrees >= 1.0, *ends, bounds=bounds), source)


def normal_interval(
    mean: IntoExprColumn,
    standard_error: IntoExprColumn,
    *,
    confidence_level: float = 0.95,
    bounds: tuple[float, float] | None = (0.0, 1.0),
) -> pl.Expr:
    r"""Give the normal interval of a mean, clipped to the range of its values.

    What most papers print as plus or minus 1.96 standard errors, kept to be compared with: below a
    few hundred problems `student_t_interval` covers better at the same cost, and for counts
    `wilson_interval` does.

    Parameters
    ----------
    mean
        Float64 column, (n_rows,), mean over independent units, each within `bounds`.
    standard_error
        Float64 column, (n_rows,), standard error of the mean, such as `standard_error` gives.
    confidence_level
        Nominal coverage, strictly between 0 and 1.
    bounds
        Smallest and largest value that a unit can have; None where there are none, such as for
        scores that are logits.

    Returns
    -------
    pl.Expr
        Struct with the fields ``ci_low`` and ``ci_high``, Float64, elementwise, named as ``mean``;
        both null where an input is null. A standard error of 0 gives an interval of width 0.

    Notes
    -----
    .. math:: \bar x \pm z_{(1+\gamma)/2} \, \mathrm{SE}

    with gamma the confidence level.

    References
    ----------
    Miller (2024), Adding Error Bars to Evals, arXiv:2411.00640, section 2.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> frame = pl.DataFrame({"accuracy": [0.5, 0.9], "standard_error": [0.1, 0.1]})
    >>> interval = tts.normal_interval("accuracy", "standard_error").struct
    >>> frame.select(interval.field("ci_low").round(4), interval.field("ci_high").round(4)).rows()
    [(0.304, 0.696), (0.704, 1.0)]
    """
    z = NormalDist().inv_cdf((1.0 + check_fraction(confidence_level, "confidence_level")) / 2.0)
    source = into_expr(mean, "mean")
    half = z * into_expr(standard_error, "standard_error").cast(pl.Float64)
    centre = source.cast(pl.Float64)
    ends = (centre - half, centre + half)
    return keep_name(_interval(pl.lit(value=True), *ends, bounds=bounds), source)


def standard_error(value: IntoExprColumn, *, cluster: IntoExprColumn | None = None) -> pl.Expr:
    r"""Give the standard error of the mean over problems, or over clusters of problems.

    The spread between problems already holds the sampling noise within them. Problems that were
    drawn together, such as questions about one text, are no independent units: named as clusters
    they get the standard error that such a sample has.

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
        Float64, aggregating, named as ``value``; null below two problems or clusters, NaN where a
        value is.

    Notes
    -----
    With n values of mean :math:`\bar x` in G clusters,

    .. math::

        \mathrm{SE} = \frac{1}{n}
        \sqrt{\frac{G}{G-1} \sum_g \Big(\sum_{i \in g} (x_i - \bar x)\Big)^2}

    which for clusters of one is the standard deviation with ddof 1 over the square root of n.

    References
    ----------
    Miller (2024), Adding Error Bars to Evals, arXiv:2411.00640, sections 2 and 2.2.

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
        return keep_name(values.std(ddof=1) / values.count().cast(pl.Float64).sqrt(), source)

    def clustered(rows: pl.Series) -> pl.Series:
        units = (
            rows.struct
            .unnest()
            .drop_nulls("value")
            .group_by("cluster")
            .agg(pl.col("value").sum().alias("total"), pl.len().cast(pl.Float64).alias("size"))
        )
        mean = pl.col("total").sum() / pl.col("size").sum()
        pulls = ((pl.col("total") - mean * pl.col("size")) ** 2).sum()
        n_units = units.height
        if n_units < 2:
            return pl.Series(rows.name, [None], dtype=pl.Float64)
        error = (pulls * (n_units / (n_units - 1))).sqrt() / pl.col("size").sum()
        return units.select(error).to_series()

    return keep_name(
        _problems(source, cluster).map_batches(
            clustered, return_dtype=pl.Float64, returns_scalar=True
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
    r"""Give the bootstrap interval of the mean over problems, or over clusters of problems.

    Problems are drawn with replacement, never attempts: the problem is the unit. Drawing is over
    the sorted values, so the order of rows does not matter; each group of a ``group_by`` gets the
    same stream of random numbers.

    It needs some tens of problems, and cannot see a kind of problem that is not among them: where
    all values are equal its width is 0. For 0 and 1 `wilson_interval` covers better.

    Parameters
    ----------
    value
        Numeric or Boolean column, one row per problem; nulls are left out.
    cluster
        Column of any dtype, the cluster of each problem: whole clusters are drawn. A null is a
        cluster like any other. None: problems are independent.
    method
        ``"percentile"``: quantiles of the resampled means; ``"bca"``: at levels corrected for bias
        and skewness, which is closer to the nominal coverage where values are skewed.
    n_resamples
        Number of resamples, at least 1.
    confidence_level
        Nominal coverage, strictly between 0 and 1.
    seed
        Seed of the random numbers, which are those of numpy's default generator; a later version of
        numpy may draw others.

    Returns
    -------
    pl.Expr
        Struct with the fields ``ci_low`` and ``ci_high``, Float64, aggregating, named as ``value``;
        both null below two problems or clusters, NaN where a value is.

    Raises
    ------
    ParameterTypeError
        At once, when ``n_resamples`` or ``seed`` is not an int, or a column is no column.
    ParameterError
        At once, when a parameter is impossible.

    Notes
    -----
    BCa takes the quantiles of the resampled means at

    .. math:: \Phi\Big(z_0 + \frac{z_0 + z_\alpha}{1 - a (z_0 + z_\alpha)}\Big)

    with :math:`\Phi(z_0)` the share of resampled means below the mean, equal ones by half, and the
    acceleration a from leaving one unit out at a time.

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
        low: float | None = None
        high: float | None = None
        n_units = values.size if clusters is None else np.unique(clusters).size
        if np.isnan(values).any():
            low = high = math.nan
        elif n_units > 1:
            low, high = bootstrap_ends(
                units_of(values, clusters),
                method=method,
                n_resamples=n_resamples,
                confidence_level=level,
                rng=np.random.default_rng(seed),
            )
        return pl.Series(rows.name, [{"ci_low": low, "ci_high": high}], dtype=_ENDS)

    source = into_expr(value, "value")
    rows = _problems(source, cluster)
    return keep_name(rows.map_batches(ends, return_dtype=_ENDS, returns_scalar=True), source)


def _problems(value: pl.Expr, cluster: IntoExprColumn | None) -> pl.Expr:
    """Bring values and clusters into one column, which a function can then read."""
    fields = [value.cast(pl.Float64).alias("value")]
    if cluster is not None:
        fields.append(into_expr(cluster, "cluster").alias("cluster"))
    return pl.struct(fields)


def _interval(
    is_known: pl.Expr, low: pl.Expr, high: pl.Expr, *, bounds: tuple[float, float] | None
) -> pl.Expr:
    """Return both ends, clipped to the bounds, null where either is unknown."""
    is_known &= low.is_not_null() & high.is_not_null()
    if bounds is not None:
        low, high = low.clip(*bounds), high.clip(*bounds)
    return pl.struct(
        pl.when(is_known).then(low).alias("ci_low"), pl.when(is_known).then(high).alias("ci_high")
    )
