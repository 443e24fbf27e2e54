"""Variance of a run's values, between problems and within them."""

from __future__ import annotations

from typing import Final

import polars as pl

from ttsframe._checks import check_frame, check_names
from ttsframe._counts import read_counts
from ttsframe._exprs import from_safe, in_order, run_plan, safe_names, to_safe
from ttsframe._typing import ColumnNames, FrameT
from ttsframe.schema import holds_counts, require_columns

__all__ = ["variance_components"]

_COLUMNS: Final = (
    "n_problems",
    "n_left_out",
    "n_attempts",
    "mean",
    "variance_between",
    "variance_within",
    "standard_error",
    "standard_error_double_attempts",
    "standard_error_double_problems",
    "standard_error_all_attempts",
)


def variance_components(
    trajectories: FrameT, /, *, value: str = "is_correct", by: ColumnNames = ()
) -> FrameT:
    r"""Split the variance of a run into variance between problems and within problems.

    More attempts at the same problems only reduce the part within. If most of the variance is
    between problems, only more problems shorten the error bars.

    Parameters
    ----------
    trajectories
        One row per attempt, with `problem_id` and the column `value`; or a table of counts, one row
        per problem with `n_attempts` and `n_correct`.
    value
        Boolean or numeric column; nulls and NaN are left out. Counts are of "is_correct".
    by
        Columns that tell runs apart; each run gets a row.

    Returns
    -------
    FrameT
        One row per combination of `by`, sorted:

        - `n_problems` (UInt32): problems with at least two values, the basis of the numbers below;
        - `n_left_out` (UInt32): problems with fewer values, whose variance within is unknown;
        - `n_attempts` (Float64): mean number of values per problem;
        - `mean` (Float64): mean over problems of each problem's mean;
        - `variance_between` (Float64): variance of the problems' true means; unbiased, so it can be
          negative if problems hardly differ;
        - `variance_within` (Float64): variance of one attempt around its problem's true mean,
          averaged over problems; unbiased;
        - `standard_error` (Float64): standard error of `mean` over independent problems;
        - `standard_error_double_attempts`, `standard_error_double_problems`,
          `standard_error_all_attempts` (Float64): the same with twice as many attempts at each
          problem, twice as many problems, or infinitely many attempts.

        `variance_between` and standard errors are null below two problems.

    Raises
    ------
    ParameterTypeError
        At once, if the argument is not a frame.
    ParameterError
        At once, if `by` names a column of the result.
    ColumnsError
        At once, if a column is missing.

    Notes
    -----
    Problem q has :math:`n_q` values of mean :math:`x_q` and variance :math:`s_q^2` (ddof 1; for
    grades :math:`p(1-p) \, n/(n-1)` with the estimated p). Over Q problems,

    .. math::

        \sigma^2 = \frac{1}{Q} \sum_q s_q^2, \qquad
        \omega^2 = \mathrm{var}(x_q) - \frac{1}{Q} \sum_q \frac{s_q^2}{n_q}, \qquad
        \mathrm{SE}^2 = \frac{\mathrm{var}(x_q)}{Q}

    where :math:`s_q^2 / n_q = p(1-p)/(n-1)` is an unbiased estimate of the variance of a problem's
    mean. Doubling the attempts halves the second sum, doubling the problems halves both.

    References
    ----------
    Miller (2024), Adding Error Bars to Evals, arXiv:2411.00640, section 3.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> run = tts.simulate_trajectories(300, 4, seed=1)
    >>> split = tts.statistics.variance_components(run, value="true_is_correct")
    >>> split.select(pl.col("variance_between", "variance_within").round(3)).row(0)
    (0.08, 0.17)
    """
    check_frame(trajectories, "trajectories")
    groups: tuple[str, ...] = check_names(by, "by", taken={*_COLUMNS, "problem_id", value})
    keys: dict[str, str] = safe_names(groups)
    of_counts: bool = value == "is_correct" and holds_counts(trajectories.collect_schema())
    if not of_counts:
        require_columns(trajectories, [*groups, "problem_id", value])

    def summarize_counts(lazy: pl.LazyFrame) -> pl.LazyFrame:
        n, mean = pl.col("n"), pl.col("mean")
        return (
            read_counts(lazy, keys | {"problem_id": "problem_id"})
            .with_columns(
                pl.lit(0).alias("run"), pl.when(n > 0).then(pl.col("c") / n).alias("mean")
            )
            .with_columns(pl.when(n > 1).then(mean * (1.0 - mean) * n / (n - 1)).alias("within"))
        )

    def summarize_attempts(lazy: pl.LazyFrame) -> pl.LazyFrame:
        values = pl.col(value).cast(pl.Float64).fill_nan(None)
        return (
            lazy
            .select(
                "problem_id",
                values.alias("value"),
                *to_safe(keys),
                pl.lit(0).alias("run"),
            )
            .group_by(*keys, "run", "problem_id")
            .agg(
                pl.col("value").count().cast(pl.Int64).alias("n"),
                in_order(pl.col("value")).list.mean().alias("mean"),
                in_order(pl.col("value")).list.var(ddof=1).alias("within"),
            )
        )

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        of_problem = (summarize_counts if of_counts else summarize_attempts)(lazy).with_columns(
            is_split=pl.col("n") > 1
        )
        is_split, n = pl.col("is_split"), pl.col("n")
        table = of_problem.group_by(*keys, "run").agg(
            is_split.sum().cast(pl.Int64).alias("n_problems"),
            (~is_split).sum().cast(pl.Int64).alias("n_left_out"),
            n.filter(is_split).mean().alias("n_attempts"),
            in_order(pl.col("mean").filter(is_split)).list.mean().alias("mean"),
            in_order(pl.col("mean").filter(is_split)).list.var(ddof=1).alias("total"),
            in_order(pl.col("within").filter(is_split)).list.mean().alias("variance_within"),
            in_order((pl.col("within") / n).filter(is_split)).list.mean().alias("sampling"),
        )
        total, sampling = pl.col("total"), pl.col("sampling")
        n_problems = pl.col("n_problems").cast(pl.Float64)

        def error(variance: pl.Expr) -> pl.Expr:
            return (variance.clip(lower_bound=0.0) / n_problems).sqrt()

        return (
            table
            .with_columns(
                pl.col("n_problems", "n_left_out").cast(pl.UInt32),
                variance_between=total - sampling,
                standard_error=error(total),
                standard_error_double_attempts=error(total - sampling / 2.0),
                standard_error_double_problems=error(total / 2.0),
                standard_error_all_attempts=error(total - sampling),
            )
            .sort(*keys, "run")
            .select(*from_safe(keys), *_COLUMNS)
        )

    return run_plan(trajectories, plan)
