"""Averages over subjects or benchmarks: each problem counts alike (micro), or each subject (macro)."""

from __future__ import annotations

from typing import Final

import polars as pl

from ttsframe._checks import check_names
from ttsframe._exprs import from_safe, in_order, run_plan
from ttsframe._typing import ColumnNames, FrameT, ProblemSet
from ttsframe.curves.lines import LEFT_OUT, CurveLines, curve_lines
from ttsframe.curves.scaling import check_averages
from ttsframe.schema import CURVE_SCHEMA, require_columns
from ttsframe.statistics.intervals import FEW, t_quantile, wilson_ends

__all__ = ["stratified_curve"]

_ADDED: Final = ("average", "n_strata", "df")


def stratified_curve(
    problems: FrameT,
    /,
    *,
    strata: str,
    by: ColumnNames = (),
    replicates: ColumnNames = (),
    include: ProblemSet = "common",
    confidence_level: float = 0.95,
) -> FrameT:
    r"""Average problems of several subjects or benchmarks, with each problem or each subject alike.

    The micro average is the accuracy over all problems, so that large subjects decide it; the macro
    average is the mean of the subjects' accuracies. The subjects are taken as fixed: the errors are over
    new problems of the same subjects.

    Parameters
    ----------
    problems
        `problems`, as in `scaling_curve`, with the column of the subject.
    strata
        Column of the subject, or of the benchmark; a null is a subject like any other.
    by, replicates, include, confidence_level
        As in `scaling_curve`.

    Returns
    -------
    FrameT
        `curve`, as in `scaling_curve`, two rows per (by, `selector`, `reduction`, `budget`, `subsets`),
        sorted, with

        - `average` (String): "macro" or "micro", behind the columns of `by`;
        - `standard_error` (Float64): stratified;
        - `ci_low`, `ci_high` (Float64 in [0, 1]): Wilson's interval with Student's quantile, see the
          notes; null below two problems;
        - `n_strata` (UInt32), `df` (Float64): subjects with a problem that counts, and the degrees of
          freedom of the standard error.

    Raises
    ------
    ColumnsError
        At once, when a column is missing.
    ParameterError
        At once, as `scaling_curve`.
    DataError
        On collection, as `scaling_curve`.

    See Also
    --------
    level_curve : A row per level in place of an average over them.

    Notes
    -----
    Subject s has :math:`n_s` of n problems, with mean :math:`m_s` and variance :math:`v_s`. With weights
    :math:`W_s = 1 / S` (macro) or :math:`n_s / n` (micro), the average is :math:`m = \sum W_s m_s`, and

    .. math:: \mathrm{SE}^2 = \sum_s W_s^2 v_s / n_s, \qquad
        \mathrm{df} = \mathrm{SE}^4 \Big/ \sum_s \frac{(W_s^2 v_s / n_s)^2}{n_s - 1}

    A subject with equal values, such as all right, has the variance of :math:`(n_s m_s + 1) / (n_s + 2)`
    right ones, and at least one degree of freedom. The interval is Wilson's of
    :math:`m (1 - m) / \mathrm{SE}^2` values with the quantile of t with df degrees of freedom; of
    :math:`1 / \sum W_s^2 / n_s` values at most where fewer than 5 of these are right, or wrong.

    References
    ----------
    Cochran (1977), Sampling Techniques, third edition, sections 5.3 and 5.4, on stratified means and
    their degrees of freedom. Satterthwaite (1946), An approximate distribution of estimates of variance
    components, Biometrics Bulletin 2, 110-114.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> problems = pl.DataFrame({
    ...     "problem_id": range(12),
    ...     "subject": ["algebra"] * 8 + ["geometry"] * 4,
    ...     "value": [1.0] * 6 + [0.0] * 2 + [1.0] + [0.0] * 3,
    ... }).with_columns(
    ...     budget=1, selector=pl.lit("majority_vote"), reduction=pl.lit(None), status=pl.lit("ok")
    ... )
    >>> curve = tts.curves.stratified_curve(problems, strata="subject")
    >>> curve.select("average", pl.col("accuracy", "standard_error").round(3), "n_problems").rows()
    [('macro', 0.5, 0.149, 12), ('micro', 0.583, 0.137, 12)]
    """
    check_averages(include, confidence_level)
    (stratum,) = check_names(strata, "strata", taken={*CURVE_SCHEMA, *_ADDED, "problem_id"})
    lines: CurveLines = curve_lines(problems, by=by, replicates=replicates, taken=_ADDED)
    require_columns(problems, [stratum], where="problems")

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        line: list[str] = [*lines.columns]
        units = lines.units(
            lines.select(lazy, stratum=pl.col(stratum)),
            include,
            n_units=pl.col("problem_id").n_unique().over(line),
            levels=["stratum"],
        )
        return (
            _average(units, [*line, "budget"], confidence_level)
            .with_columns(**lines.defaults)
            .sort(*lines.groups, "average", "selector", "reduction", "budget", "subsets")
            .select(*from_safe(lines.groups), "average", *CURVE_SCHEMA, "n_strata", "df")
        )

    return run_plan(problems, plan)


def _average(units: pl.LazyFrame, point: list[str], confidence_level: float) -> pl.LazyFrame:
    """Average each stratum, and then the strata with both kinds of weights."""
    severity = pl.col("severity")
    value = pl.when(severity == 0).then("value")
    n, mean = pl.col("n"), pl.col("mean")
    # Of a stratum of equal values, as if one more of each kind had been seen.
    smoothed = (n * mean + 1.0) / (n + 2.0)
    strata = (
        units
        .group_by(*point, "stratum")
        .agg(
            in_order(value).list.mean().alias("mean"),
            in_order(value).list.var(ddof=1).alias("variance"),
            value.count().cast(pl.Float64).alias("n"),
            *[(severity == rank).sum().alias(name) for name, rank in LEFT_OUT.items()],
            pl.len().alias("n_rows"),
            pl.col("n_units").first(),
        )
        .with_columns(
            variance=pl
            .when(pl.col("variance").fill_null(0.0) > 1e-12)
            .then("variance")
            .otherwise(smoothed * (1.0 - smoothed))
        )
        .with_columns(average=pl.lit(["macro", "micro"]))
        .explode("average")
    )
    weight = pl.when(pl.col("average") == "micro").then(n / n.sum()).otherwise(1.0 / (n > 0).sum())
    weight = pl.when(n > 0).then(weight)
    part = weight**2 * pl.col("variance") / n
    averaged = (
        strata
        .group_by(*point, "average")
        .agg(
            in_order(weight * mean).list.sum().alias("accuracy"),
            in_order(part).list.sum().alias("square"),
            in_order(part**2 / (n - 1.0).clip(1.0)).list.sum().alias("spread"),
            in_order(weight**2 / n).list.sum().alias("least_square"),
            (n > 0).sum().cast(pl.UInt32).alias("n_strata"),
            n.sum().cast(pl.UInt32).alias("n_problems"),
            *[pl.col(name).sum().cast(pl.UInt32) for name in LEFT_OUT],
            (pl.col("n_units").first() - pl.col("n_rows").sum()).cast(pl.UInt32).alias("n_absent"),
        )
        .with_columns(
            pl.when(pl.col("n_problems") > 0).then("accuracy"),
            pl.col("n_short") + pl.col("n_absent"),
            df=pl.when(pl.col("n_problems") > 1).then(
                (pl.col("square") ** 2 / pl.col("spread")).clip(1.0)
            ),
            standard_error=pl.when(pl.col("n_problems") > 1).then(pl.col("square").sqrt()),
        )
    )
    center = pl.col("accuracy").clip(0.0, 1.0)
    alike = 1.0 / pl.col("least_square")
    few = pl.min_horizontal(center, 1.0 - center) * alike
    as_measured = center * (1.0 - center) / pl.col("square")
    n_effective = (
        pl
        .when(few >= FEW)
        .then(as_measured)
        .otherwise(pl.when(few > 0.0).then(pl.min_horizontal(as_measured, alike)).otherwise(alike))
    )
    quantile = t_quantile(pl.col("df"), confidence_level)
    ends = wilson_ends(center * n_effective, n_effective, quantile)
    return averaged.with_columns(
        pl.when(pl.col("df").is_not_null()).then(end.clip(0.0, 1.0)).alias(name)
        for end, name in zip(ends, ("ci_low", "ci_high"), strict=True)
    )
