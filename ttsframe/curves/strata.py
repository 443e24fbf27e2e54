"""Averages over subjects or benchmarks: each problem counts alike (micro), or each subject (macro)."""

from __future__ import annotations

from functools import partial
from typing import Final

import polars as pl

from ttsframe._checks import check_names
from ttsframe._exprs import from_safe, in_order, raise_where, run_plan
from ttsframe._typing import ColumnNames, FrameT, ProblemSet
from ttsframe.curves.lines import LEFT_OUT, CurveLines, curve_lines
from ttsframe.curves.scaling import check_averages
from ttsframe.errors import DataError
from ttsframe.schema import CURVE_SCHEMA, require_columns
from ttsframe.statistics.clusters import cluster_interval, cluster_statistics
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
    cluster: str | None = None,
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
    by, replicates
        As in `scaling_curve`.
    cluster
        As in `scaling_curve`; each cluster lies in one subject.
    include, confidence_level
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
          freedom of the standard error;
        - `n_clusters` (UInt32): only with `cluster`.

    Raises
    ------
    ColumnsError
        At once, when a column is missing.
    ParameterError
        At once, as `scaling_curve`.
    DataError
        On collection, as `scaling_curve`, and when a cluster lies in several subjects.

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

    With clusters, :math:`v_s / n_s` is the squared `standard_error` of the subject's mean, and
    :math:`n_s - 1` its `degrees_of_freedom`. In a subject of one cluster, or of equal values, k stands for
    :math:`n_s`, where :math:`1 / k` is the sum of the squared shares of its clusters. The interval is that
    of `scaling_curve` with clusters, for :math:`1 / \sum W_s^2 / n_s` values.

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
    lines: CurveLines = curve_lines(
        problems, by=by, replicates=replicates, cluster=cluster, taken=(*_ADDED, stratum)
    )
    require_columns(problems, [stratum], where="problems")
    n_clusters: tuple[str, ...] = () if cluster is None else ("n_clusters",)

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        line: list[str] = [*lines.columns]
        units = lines.units(
            lines.select(lazy, stratum=pl.col(stratum)),
            include,
            n_units=pl.col("problem_id").n_unique().over(line),
            levels=["stratum"],
        )
        if cluster is not None:
            units = units.filter(_in_one_stratum([*line, "cluster"], cluster, stratum))
        point = [*line, "budget"]
        strata = _strata(units, point, is_clustered=cluster is not None)
        interval = _interval if cluster is None else partial(cluster_interval, "n_alike")
        ends = interval(confidence_level).struct.field("ci_low", "ci_high")
        return (
            _average(strata, point)
            .with_columns(ends, **lines.defaults)
            .sort(*lines.groups, "average", "selector", "reduction", "budget", "subsets")
            .select(
                *from_safe(lines.groups), "average", *CURVE_SCHEMA, "n_strata", "df", *n_clusters
            )
        )

    return run_plan(problems, plan)


def _in_one_stratum(cluster_of_line: list[str], cluster: str, stratum: str) -> pl.Expr:
    """Build a filter that raises if a cluster lies in several strata."""
    n_strata = pl.col("stratum").n_unique().over(cluster_of_line)

    def error(rows: pl.DataFrame) -> DataError:
        row = rows.sort("cluster").row(0, named=True)
        return DataError(
            f"{cluster} {row['cluster']!r}: in {row['n_strata']} values of {stratum!r}, expected one. Hint: "
            f"problems that share a cluster must share the {stratum}; if numbers of clusters begin anew in "
            f"each {stratum}, join both names to one column."
        )

    described = pl.struct((n_strata > 1).alias("broken"), "cluster", n_strata=n_strata)
    return raise_where(described, error, sees_all_rows=True)


def _strata(units: pl.LazyFrame, point: list[str], *, is_clustered: bool) -> pl.LazyFrame:
    """Return the mean of each stratum, its `square` (of the standard error) and its `df`."""
    severity = pl.col("severity")
    value = pl.when(severity == 0).then("value")
    stratum = [*point, "stratum"]
    strata = units.group_by(stratum).agg(
        in_order(value).list.mean().alias("mean"),
        in_order(value).list.var(ddof=1).alias("variance"),
        value.count().cast(pl.Float64).alias("n"),
        ((value != 0.0) & (value != 1.0)).any().alias("is_fractional"),
        *[(severity == rank).sum().alias(name) for name, rank in LEFT_OUT.items()],
        pl.len().alias("n_rows"),
        pl.col("n_units").first(),
    )
    n = pl.col("n")
    found = {
        "square": pl.col("variance") / n,
        "df": n - 1.0,
        "most_share": 1.0 / n,
        "n_clusters": pl.col("n"),
    }
    if is_clustered:
        spread = (
            units
            .group_by(*stratum, "cluster")
            .agg(in_order(value).list.sum().alias("total"), value.count().alias("size"))
            .group_by(stratum)
            .agg(
                **cluster_statistics(pl.col("total"), pl.col("size")),
                n_clusters=(pl.col("size") > 0).sum(),
            )
        )
        strata = strata.join(spread, on=stratum, nulls_equal=True)
        found = {"square": pl.col("standard_error") ** 2}
    # Of a stratum without a spread, as if one more of each kind had been seen, alike within clusters.
    n_alike = 1.0 / pl.col("most_share")
    smoothed = (n_alike * pl.col("mean") + 1.0) / (n_alike + 2.0)
    is_flat = pl.col("square").fill_null(0.0) <= 1e-12 / n
    return strata.with_columns(**found).with_columns(
        square=pl
        .when(is_flat)
        .then(smoothed * (1.0 - smoothed) * pl.col("most_share"))
        .otherwise("square"),
        df=pl.col("df").fill_null(1.0).clip(1.0),
    )


def _average(strata: pl.LazyFrame, point: list[str]) -> pl.LazyFrame:
    """Average the strata with both kinds of weights."""
    n = pl.col("n")
    weight = pl.when(pl.col("average") == "micro").then(n / n.sum()).otherwise(1.0 / (n > 0).sum())
    weight = pl.when(n > 0).then(weight)
    part = weight**2 * pl.col("square")
    alike = in_order(weight**2 / n).list.sum()
    has_two = pl.col("n_problems") > 1
    return (
        strata
        .with_columns(average=pl.lit(["macro", "micro"]))
        .explode("average", empty_as_null=False)
        .group_by(*point, "average")
        .agg(
            in_order(weight * pl.col("mean")).list.sum().alias("accuracy"),
            in_order(part).list.sum().alias("square"),
            in_order(part**2 / pl.col("df")).list.sum().alias("spread"),
            (1.0 / alike).alias("n_alike"),
            in_order(weight**2 * pl.col("most_share")).list.sum().alias("most_share"),
            pl.col("is_fractional").any(),
            (n > 0).sum().cast(pl.UInt32).alias("n_strata"),
            n.sum().cast(pl.UInt32).alias("n_problems"),
            pl.col("n_clusters").sum().cast(pl.UInt32),
            *[pl.col(name).sum().cast(pl.UInt32) for name in LEFT_OUT],
            (pl.col("n_units").first() - pl.col("n_rows").sum()).cast(pl.UInt32).alias("n_absent"),
        )
        .with_columns(
            pl.when(pl.col("n_problems") > 0).then("accuracy"),
            pl.col("n_short") + pl.col("n_absent"),
            df=pl.when(has_two).then((pl.col("square") ** 2 / pl.col("spread")).clip(1.0)),
            standard_error=pl.when(has_two).then(pl.col("square").sqrt()),
        )
    )


def _interval(confidence_level: float) -> pl.Expr:
    """Build Wilson's interval with Student's quantile."""
    center = pl.col("accuracy").clip(0.0, 1.0)
    few = pl.min_horizontal(center, 1.0 - center) * pl.col("n_alike")
    as_measured = center * (1.0 - center) / pl.col("square")
    n_effective = (
        pl
        .when(few >= FEW)
        .then(as_measured)
        .when(few > 0.0)
        .then(pl.min_horizontal(as_measured, "n_alike"))
        .otherwise("n_alike")
    )
    low, high = wilson_ends(
        center * n_effective, n_effective, t_quantile(pl.col("df"), confidence_level)
    )
    interval = pl.struct(low.clip(0.0, 1.0).alias("ci_low"), high.clip(0.0, 1.0).alias("ci_high"))
    return pl.when(pl.col("df").is_not_null()).then(interval)
