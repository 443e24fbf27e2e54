"""Confidence intervals of an accuracy, as expressions over a table of counts or means."""

from __future__ import annotations

from statistics import NormalDist
from typing import Final

import polars as pl

from ttsframe._checks import check_fraction
from ttsframe._exprs import into_expr, keep_name
from ttsframe._typing import IntoExprColumn

__all__ = ["normal_interval", "student_t_interval", "wilson_interval"]

FLAT: Final = 1e-12
"""A standard error below this share of the range of values is that of equal values, but for rounding."""

FEW: Final = 5.0
"""Below this sum of values, or of 1 - value, their spread is too small for Student's interval."""


def wilson_interval(
    n_correct: IntoExprColumn, n: IntoExprColumn, *, confidence_level: float = 0.95
) -> pl.Expr:
    r"""Return the Wilson score interval of a proportion.

    It stays within [0, 1], has a width even if none or all are correct, and its coverage is close to
    nominal from a handful of problems on. The normal interval has none of these properties.

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
        Struct with the fields `ci_low` and `ci_high`, Float64, elementwise, named as
        `n_correct`; both null if a count is null or n is below 1.

    Notes
    -----
    With z the normal quantile at (1 + confidence_level) / 2 and c correct ones of n,

    .. math::

        \frac{c + z^2/2 \pm z \sqrt{c (n - c) / n + z^2/4}}{n + z^2}

    The lower end is computed as the product of both ends over the upper one, which avoids
    cancellation: it is exactly 0 at c = 0, and the upper end exactly 1 at c = n.

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
    total = into_expr(n, "n").cast(pl.Float64)
    low, high = wilson_ends(source.cast(pl.Float64), total, pl.lit(z))
    return keep_name(_interval(total >= 1.0, low, high, bounds=(0.0, 1.0)), source)


def wilson_ends(correct: pl.Expr, total: pl.Expr, z: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """Build both ends of Wilson's interval, for a quantile z."""
    wrong = total - correct
    spread = z * (correct * wrong / total + z * z / 4.0).sqrt() + z * z / 2.0
    low = correct * correct / total / (correct + spread)
    return low, 1.0 - wrong * wrong / total / (wrong + spread)


def student_t_interval(
    mean: IntoExprColumn,
    standard_error: IntoExprColumn,
    n: IntoExprColumn,
    *,
    confidence_level: float = 0.95,
    bounds: tuple[float, float] | None = (0.0, 1.0),
) -> pl.Expr:
    r"""Return the Student-t interval of a mean, clipped to the range of its values.

    For values that are not all 0 or 1, such as means over seeds or expectations over subsets; for
    counts use `wilson_interval`.

    Parameters
    ----------
    mean
        Float64 column, (n_rows,), mean over n independent units, each within `bounds`.
    standard_error
        Float64 column, (n_rows,), standard error of the mean: standard deviation with ddof 1 over
        the square root of n.
    n
        Numeric column, (n_rows,), number of independent units; n - 1 degrees of freedom. For means
        over clusters, one more than their `degrees_of_freedom`.
    confidence_level
        Nominal coverage, strictly between 0 and 1.
    bounds
        Smallest and largest value that a unit can have; None for unbounded values, such as logits.

    Returns
    -------
    pl.Expr
        Struct with the fields `ci_low` and `ci_high`, Float64, elementwise, named as `mean`;
        both null if an input is null or n is below 2, and where the standard error is 0 without
        bounds.

    Notes
    -----
    .. math:: \bar x \pm t_{n-1,\,(1+\gamma)/2} \, \mathrm{SE}

    where :math:`\gamma` is the confidence level. A standard error of 0, of n equal values, does not
    mean that the mean is known: three problems at 100 % say little about the next. The interval is
    then Wilson's, of n :math:`\bar x` right ones among n on the scale of the bounds: values in [0, 1]
    of mean :math:`\mu` have a variance of at most :math:`\mu (1 - \mu)`, which is what Wilson's
    interval assumes. It is rather too wide than too narrow.

    References
    ----------
    Miller (2024), Adding Error Bars to Evals, arXiv:2411.00640, section 2. The bound on the variance:
    Bhatia and Davis (2000), A better bound on the variance, The American Mathematical Monthly 107,
    353-357, doi:10.1080/00029890.2000.12005203.

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
    source = into_expr(mean, "mean")
    degrees = into_expr(n, "n").cast(pl.Float64) - 1.0
    half = into_expr(standard_error, "standard_error").cast(pl.Float64) * t_quantile(
        degrees, confidence_level
    )
    center = source.cast(pl.Float64)
    low, high = center - half, center + half
    least, most = (0.0, 1.0) if bounds is None else bounds
    is_flat = into_expr(standard_error, "standard_error") <= FLAT * (most - least)
    flat: tuple[pl.Expr, pl.Expr] = (pl.lit(None), pl.lit(None))
    if bounds is not None:
        share = ((center - least) / (most - least)).clip(0.0, 1.0)
        z = pl.lit(NormalDist().inv_cdf(upper))
        wilson = wilson_ends(share * (degrees + 1.0), degrees + 1.0, z)
        flat = (least + (most - least) * wilson[0], least + (most - least) * wilson[1])
    ends = [
        pl.when(is_flat).then(of_flat).otherwise(end)
        for of_flat, end in zip(flat, (low, high), strict=True)
    ]
    return keep_name(_interval(degrees >= 1.0, ends[0], ends[1], bounds=bounds), source)


def t_quantile(degrees: pl.Expr, confidence_level: float) -> pl.Expr:
    """Build the quantile of Student's t for a two-sided interval."""

    def quantiles(degrees: pl.Series) -> pl.Series:
        from scipy.special import stdtrit

        upper = (1.0 + confidence_level) / 2.0
        return pl.Series(degrees.name, stdtrit(degrees.to_numpy(), upper), dtype=pl.Float64)

    return degrees.map_batches(quantiles, return_dtype=pl.Float64, is_elementwise=True)


def normal_interval(
    mean: IntoExprColumn,
    standard_error: IntoExprColumn,
    *,
    confidence_level: float = 0.95,
    bounds: tuple[float, float] | None = (0.0, 1.0),
) -> pl.Expr:
    r"""Return the normal interval of a mean, clipped to the range of its values.

    Most papers print this interval, plus or minus 1.96 standard errors; it is here for comparison.
    Below a few hundred problems `student_t_interval` has better coverage, and for counts
    `wilson_interval` has.

    Parameters
    ----------
    mean, standard_error, confidence_level, bounds
        As in `student_t_interval`.

    Returns
    -------
    pl.Expr
        As in `student_t_interval`, for any n; both ends null where the standard error is 0, because
        without n nothing is known of the width.

    Notes
    -----
    .. math:: \bar x \pm z_{(1+\gamma)/2} \, \mathrm{SE}

    where :math:`\gamma` is the confidence level.

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
    center = source.cast(pl.Float64)
    ends = (center - half, center + half)
    least, most = (0.0, 1.0) if bounds is None else bounds
    is_known = half > z * FLAT * (most - least)
    return keep_name(_interval(is_known, *ends, bounds=bounds), source)


def _interval(
    is_known: pl.Expr, low: pl.Expr, high: pl.Expr, *, bounds: tuple[float, float] | None
) -> pl.Expr:
    """Return both ends, clipped to the bounds, null if either is unknown."""
    is_known &= low.is_not_null() & high.is_not_null()
    if bounds is not None:
        low, high = low.clip(*bounds), high.clip(*bounds)
    return pl.struct(
        pl.when(is_known).then(low).alias("ci_low"), pl.when(is_known).then(high).alias("ci_high")
    )
