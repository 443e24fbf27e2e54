"""Paired differences between selectors, models or runs on the same problems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, get_args

import polars as pl

from ttsframe._checks import (
    check_choice,
    check_fraction,
    check_frame,
    check_names,
    near_names,
)
from ttsframe._exprs import from_safe, in_order, raise_where, run_plan, safe_names, to_safe
from ttsframe._settings import setting
from ttsframe._typing import ClusterTest, ColumnNames, Correction, FrameT, IntervalTarget, McNemar
from ttsframe.errors import DataError, ParameterError, ParameterTypeError
from ttsframe.schema import CLUSTER_COLUMNS, require_columns
from ttsframe.statistics.clusters import cluster_statistics, in_one_cluster
from ttsframe.statistics.paired import TIE, paired_inference, wild_tests, with_adjusted
from ttsframe.statistics.problem_values import (
    SEVERITY,
    raise_if_repeated,
    value_and_severity,
)
from ttsframe.statistics.these_problems import pairs_of_these_problems, sampling_columns

__all__ = ["compare"]

_MATCHED: Final = ("selector", "reduction", "subsets", "budget_unit")
"""Columns of `problems` that a pair agrees in, as in `budget`, unless they are compared."""

_STATISTICS: Final = (
    "n_pairs",
    "accuracy",
    "baseline_accuracy",
    "difference",
    "standard_error",
    "ci_low",
    "ci_high",
    "interval",
    "test",
    "p_value",
    "p_adjusted",
    "n_wins",
    "n_ties",
    "n_losses",
    "n_short",
    "n_unscored",
    "n_undefined",
    "n_ungraded",
    "n_unpaired",
)

_TAKEN: Final = {
    *_STATISTICS,
    "problem_id",
    "value",
    "status",
    "baseline",
    "baseline_reduction",
    *CLUSTER_COLUMNS,
    "interval_for",
    "reason",
}


def compare(
    problems: FrameT,
    /,
    *,
    column: str = "selector",
    baseline: str | float | bool = "majority_vote",
    by: ColumnNames = (),
    replicates: ColumnNames = (),
    cluster: str | None = None,
    confidence_level: float = 0.95,
    correction: Correction = "holm",
    mcnemar: McNemar = "mid_p",
    cluster_test: ClusterTest = "t",
    target: IntervalTarget = "new_problems",
) -> FrameT:
    r"""Compare selectors, models or runs with a baseline, problem by problem.

    Two accuracies on the same problems share their hard and easy problems. The difference of each
    pair removes this common part, so it shows effects that two overlapping intervals hide.

    Parameters
    ----------
    problems
        `problems`, as `select_answers` makes it, with `value` (Float64 in [0, 1]; null: no value)
        and `status` (without this column all are "ok"); or a table of an aggregator.
    column
        Column whose values are compared. The two rows of a pair agree in `budget`, `selector`,
        `reduction`, `subsets` and `budget_unit` if present, except for the column compared. If it is
        `selector`, a selector that reads no score is paired with every reduction of the other. Rows
        with a null in it are left out.
    baseline
        The value of `column` that the others are compared with.
    by
        Further columns that a pair agrees in, such as the model. Each combination gets rows of its
        own.
    replicates
        Columns that number repetitions of one run, such as the seed. They are averaged per problem
        first, since the problem is the unit.
    cluster
        Column that groups dependent problems, such as the text that they ask about. Clusters are
        then the units of the standard error and of the test. None: problems are independent.
    confidence_level
        Coverage of each single interval, in (0, 1); `correction` does not change it.
    correction
        Correction for the number of tests in the result: "holm" and "bonferroni" bound the chance of
        any false finding, "benjamini_hochberg" the expected share of false findings, "none" repeats
        the p-value. To correct within a budget, pass only rows of that budget.
    mcnemar
        P-value of McNemar's test, which values of 0 and 1 have: "mid_p", or "exact", which never
        exceeds its size and finds fewer differences. Choose before looking at the data.
    cluster_test
        With `cluster`: "t" with the clustered standard error, or "wild_bootstrap", which holds its size
        better where clusters are very unequal and shift together. Choose before looking at the data.
    target
        Whose uncertainty standard error, interval and p-value show, as in `scaling_curve`: that for
        "new_problems", or for other attempts at "these_problems" (test "sampling_z"). The latter is
        null where both sides read the same attempts, as two selectors of one run do.

    Returns
    -------
    FrameT
        One row per (by, `budget`, `column`, `selector`, `reduction`, `subsets`), sorted:

        - `baseline` (dtype of `column`); with `column` "selector" also `baseline_reduction`;
        - `n_pairs` (UInt32): problems whose status is "ok" on both sides, the basis of the numbers
          below;
        - `n_clusters` (UInt32), `df` (Float64): number of clusters and degrees of freedom of the
          test; only with `cluster`;
        - `accuracy`, `baseline_accuracy`, `difference` (Float64): means, and the first minus the
          second;
        - `standard_error` (Float64): of the difference, over problems or clusters;
        - `ci_low`, `ci_high` (Float64 in [-1, 1]): interval of the difference;
        - `interval` (String): method of the interval, "student_t", "clustered_t", "clustered_wild",
          "sampling_z" or "bonett_price"; the last can disagree with the p-value on whether 0 is plausible, the others
          never do;
        - `test` (String): "mcnemar_mid_p", "mcnemar_exact", "paired_t", "clustered_t",
          "clustered_wild" or "sampling_z";
        - `p_value`, `p_adjusted` (Float64): two-sided, and corrected;
        - `n_wins`, `n_ties`, `n_losses` (UInt32): problems on which the value is higher than, equal
          to (within 1e-9), or lower than the baseline's;
        - `n_short`, `n_unscored`, `n_undefined`, `n_ungraded` (UInt32): problems left out, each
          under the worst status of its rows;
        - `n_unpaired` (UInt32): problems that only one side has;
        - only for "these_problems": `interval_for` (String) and `reason` (String), why the inference
          is null, as in `scaling_curve`.

        Standard error, interval and p-value are null below two pairs or clusters.

    Raises
    ------
    ColumnsError
        At once, if a column is missing.
    ParameterError
        At once, if a parameter is invalid, or a column is named twice.
    DataError
        On collection, if no row has the baseline, or a problem has several rows on one side of a
        pair or is in several clusters.

    Notes
    -----
    With differences :math:`d_q` over Q problems of mean :math:`\bar d`:

    - For values of 0 and 1 only, such as those of a vote or of one attempt: McNemar's test, binomial
      with probability one half in the m problems that differ. With the fewer c of wins and losses, the
      mid-p value is :math:`F(c) + F(c - 1)` and the exact one :math:`2 F(c)`, both at most 1, with the
      binomial distribution function F. By enumeration, the size of mid-p at 5 % is at most .050 where
      up to seven in ten problems differ, .057 at 95 in 100, and .077 where all differ
      (`benchmarks/results/mcnemar.txt`); that of the exact test is at most .05. The interval is
      Bonett and Price's, with wins w and losses l, :math:`p = (w + 1)/(Q + 2)`,
      :math:`p' = (l + 1)/(Q + 2)`:
      :math:`p - p' \pm z \sqrt{(p + p' - (p - p')^2) / (Q + 2)}`; it has a width even if no
      problem differs, and can disagree with the test on whether 0 is plausible.
    - Otherwise the paired t-test: :math:`\bar d \pm t_{Q-1} \, \mathrm{sd}(d_q) / \sqrt{Q}`. If few
      problems differ its p-value would be too small, so it is at least :math:`2^{1-m}`, the smallest
      of a sign test, with m problems (or clusters) that differ. If m is below 6 the interval is
      Bonett and Price's with the sums of positive and of negative differences in place of w and l;
      it is then rather too wide than too narrow.
    - With clusters, the t-test with the clustered standard error and its degrees of freedom (see
      `standard_error` and `degrees_of_freedom`). Where clusters are very unequal and shift together, it
      rejects too often, up to 10 % at 10 and 20 and 9 % at 40 clusters
      (`benchmarks/results/cluster_coverage.txt`).
    - The wild bootstrap compares the t statistic with those of 9,999 draws, in which the differences
      of each cluster are multiplied by one of Webb's six weights :math:`\pm\sqrt{1/2}, \pm 1,
      \pm\sqrt{3/2}`. The interval holds the means that are not rejected when they are subtracted first.
      In the same simulation it rejects 4.1 to 6.5 %.
    - Where all differences are equal there is no spread to go by, and the interval is Bonett and
      Price's too, of clusters if they are named. It always contains the difference.
    - For these problems: :math:`\bar d \pm z \sqrt{\mathrm{SE}^2 + z^2 (N_a^{-2} + N_b^{-2}) / 4}` with the
      sum of both sides' variances in `scaling_curve` as :math:`\mathrm{SE}^2`, and a normal test with
      the same standard deviation.

    References
    ----------
    Miller (2024), Adding Error Bars to Evals, arXiv:2411.00640, section 4. McNemar (1947), Note on
    the sampling error of the difference between correlated proportions or percentages, Psychometrika
    12, 153-157. Bonett and Price (2012), Adjusted Wald confidence interval for a difference of
    binomial proportions based on paired data, Journal of Educational and Behavioral Statistics 37,
    479-488. Fagerland, Lydersen and Laake (2013), The McNemar test for binary matched-pairs data: mid-p
    and asymptotic are better than exact conditional, BMC Medical Research Methodology 13, 91. Cameron,
    Gelbach and Miller (2008), Bootstrap-based improvements for inference with clustered errors, Review
    of Economics and Statistics 90, 414-427. Webb (2014), Reworking wild bootstrap based inference for
    clustered errors, Queen's Economics Department Working Paper 1315. Holm (1979), A simple sequentially
    rejective multiple test procedure, Scandinavian Journal of Statistics 6, 65-70. Benjamini and Hochberg (1995), Controlling the false discovery
    rate, Journal of the Royal Statistical Society B 57, 289-300.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> problems = pl.DataFrame({
    ...     "problem_id": [1, 2, 3, 4, 5, 6] * 2,
    ...     "model": ["old"] * 6 + ["new"] * 6,
    ...     "value": [0.0, 0.0, 0.0, 0.0, 0.0, 1.0] + [1.0] * 6,
    ... })
    >>> table = tts.compare(problems, column="model", baseline="old")
    >>> table.select("model", "baseline", "n_wins", "n_ties", "n_losses", "p_value").rows()
    [('new', 'old', 5, 1, 0, 0.03125)]
    """
    check_frame(problems, "problems")
    check_fraction(confidence_level, "confidence_level")
    check_choice(correction, "correction", get_args(Correction))
    _check_tests(mcnemar, cluster_test, cluster)
    is_inside: bool = _is_for_these_problems(target, cluster, replicates)
    compared: tuple[str, ...] = check_names(column, "column", taken=_TAKEN)
    groups: tuple[str, ...] = check_names(by, "by", taken=_TAKEN)
    repeats: tuple[str, ...] = check_names(replicates, "replicates", taken=_TAKEN)
    clusters: tuple[str, ...] = (
        () if cluster is None else check_names(cluster, "cluster", taken=_TAKEN)
    )
    named: list[str] = [*compared, *groups, *repeats, *clusters]
    if twice := sorted({name for name in named if named.count(name) > 1}):
        raise ParameterError(
            f"column, by, replicates and cluster name {twice} twice, must name different columns."
        )
    schema: pl.Schema = require_columns(
        problems,
        [*named, "problem_id", "value"],
        where="problems",
        hint="tts.select_answers(trajectories, budgets=[...], by=[...]) makes this table.",
    )
    if "budget" in schema and "budget" not in named:
        groups = (*groups, "budget")
        named.append("budget")
    level: pl.Expr = _as_value(baseline, schema[column], column)
    matched: list[str] = [
        *groups,
        *[name for name in _MATCHED if name in schema and name not in named],
    ]
    # A selector that reads no score has a null reduction, and is compared with every reduction.
    is_free: bool = column == "selector" and "reduction" in matched and "reduction" not in groups
    if is_free:
        matched.remove("reduction")
    keys: dict[str, str] = safe_names(matched)
    seeds: dict[str, str] = safe_names(repeats, "seed")
    reductions = {"reduction": "reduction", "baseline_reduction": "baseline_reduction"}
    line: dict[str, str] = {**keys, "level": column, **(reductions if is_free else {})}

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        graded = lazy if "status" in schema else lazy.with_columns(status=pl.lit("ok"))
        names = {**keys, **seeds, "level": column, "problem_id": "problem_id"}
        if is_free:
            names["reduction"] = "reduction"
        if cluster is not None:
            names["cluster"] = cluster
        more = sampling_columns(schema) if is_inside else {}
        rows = graded.select(*to_safe(names), **value_and_severity(), **more)
        both = _both_sides(rows, level, [*keys], column, is_free=is_free)
        pairs = _pair_problems(both, line, [*seeds], cluster)
        table = _with_inference(
            _sum_differences(pairs, [*line], is_clustered=cluster is not None),
            confidence_level,
            is_clustered=cluster is not None,
            mcnemar=mcnemar,
            cluster_test=cluster_test,
        )
        if is_inside:
            table = pairs_of_these_problems(
                table,
                both,
                pairs,
                [*line],
                confidence_level=confidence_level,
                is_shared=column in _MATCHED,
            )
        ordered: dict[str, str] = {key: line[key] for key in _in_order([*line], len(groups))}
        shown = from_safe(ordered)
        shown.insert(1 + [*ordered].index("level" if not is_free else "reduction"), level)
        statistics = list(_STATISTICS)
        if cluster is not None:
            statistics[1:1] = CLUSTER_COLUMNS
        if is_inside:
            statistics += ["interval_for", "reason"]
        return with_adjusted(table, correction).sort(*ordered).select(*shown, *statistics)

    return run_plan(problems, plan)


def _check_tests(mcnemar: McNemar, cluster_test: ClusterTest, cluster: str | None) -> None:
    check_choice(mcnemar, "mcnemar", get_args(McNemar))
    check_choice(cluster_test, "cluster_test", get_args(ClusterTest))
    if cluster_test == "wild_bootstrap" and cluster is None:
        raise ParameterError(
            f"{setting('cluster_test', 'wild_bootstrap')} draws clusters, but none are named. Hint: "
            f"{setting('cluster')} names their column."
        )


def _is_for_these_problems(
    target: IntervalTarget, cluster: str | None, replicates: ColumnNames
) -> bool:
    """Return whether the target is these problems, and check what it excludes."""
    check_choice(target, "target", get_args(IntervalTarget))
    is_inside: bool = target == "these_problems"
    if is_inside and (cluster is not None or replicates):
        raise ParameterError(
            "target='these_problems' with cluster or replicates, must be without them: problems and "
            "seeds are then fixed. Hint: number the attempts of all replicates as one run."
        )
    return is_inside


def _as_value(baseline: str | float | bool, dtype: pl.DataType, column: str) -> pl.Expr:
    """Return the baseline as a value of the compared column, named as in the result."""
    if not isinstance(baseline, str | int | float):
        raise ParameterTypeError(
            f"baseline is a {type(baseline).__name__}, must be a value of the column {column!r}."
        )
    try:
        value = pl.Series("baseline", [baseline]).cast(dtype)
    except pl.exceptions.PolarsError:
        raise ParameterError(
            f"baseline == {baseline!r}, must be a value of the column {column!r}, which is {dtype}."
        ) from None
    return pl.lit(value.item(), dtype).alias("baseline")


def _in_order(line: Sequence[str], n_groups: int) -> list[str]:
    """Return the columns of a line in the order of the result: groups, the compared one, others."""
    keys = [key for key in line if key.startswith("key")]
    others = [key for key in line if key not in keys]
    return [*keys[:n_groups], *others, *keys[n_groups:]]


def _both_sides(
    rows: pl.LazyFrame, level: pl.Expr, keys: Sequence[str], column: str, *, is_free: bool
) -> pl.LazyFrame:
    """Assign rows to lines of the result; rows of the baseline are repeated for each of their lines."""
    reductions = ["reduction"] if is_free else []
    is_baseline = pl.col("level") == level
    lines = (
        rows
        .select(*keys, "level", *reductions)
        .unique()
        # Collected here, since Polars moves the filters below before the check.
        .with_columns(has_baseline=is_baseline.any(), levels=pl.col("level").unique().implode())
        .filter(
            raise_where(
                pl.struct(~pl.col("has_baseline").alias("broken"), "levels"),
                lambda found: _no_baseline(found, level, column),
            )
        )
    )
    renamed = {"reduction": "baseline_reduction"} if is_free else {}
    baselines = lines.filter(is_baseline).select(*keys, *reductions).rename(renamed)
    contenders = lines.filter(~is_baseline).select(*keys, "level", *reductions)
    # A constant key makes the join work without any other key.
    on = [*keys, "all"]
    lines = contenders.with_columns(all=0).join(
        baselines.with_columns(all=0), on=on, how="left", nulls_equal=True
    )
    if is_free:
        contender, base = pl.col("reduction"), pl.col("baseline_reduction")
        lines = lines.filter(contender.is_null() | base.is_null() | (contender == base))
    lines = lines.drop("all")
    contender_rows = rows.join(lines, on=[*keys, "level", *reductions], nulls_equal=True)
    baseline_rows = (
        rows
        .filter(is_baseline)
        .drop("level")
        .rename(renamed)
        .with_columns(all=0)
        .join(
            lines.with_columns(all=0),
            on=[*on, *renamed.values()],
            nulls_equal=True,
        )
        .drop("all")
    )
    return pl.concat(
        [
            contender_rows.with_columns(is_baseline=pl.lit(value=False)),
            baseline_rows.with_columns(is_baseline=pl.lit(value=True)),
        ],
        how="diagonal",
    )


def _pair_problems(
    rows: pl.LazyFrame, line: Mapping[str, str], seeds: Sequence[str], cluster: str | None
) -> pl.LazyFrame:
    """Return the difference of each problem of each line, or the severity that rules it out."""
    is_contender = ~pl.col("is_baseline")
    n_clusters = pl.col("cluster").n_unique().alias("n_clusters")
    unit = {**line, "problem_id": "problem_id"}
    pairs = (
        rows
        .group_by([*unit])
        .agg(
            pl.len().alias("n_rows"),
            pl.struct("is_baseline", *seeds).n_unique().alias("n_expected"),
            in_order(pl.when(is_contender).then("value")).list.mean().alias("value"),
            in_order(pl.when(~is_contender).then("value")).list.mean().alias("baseline_value"),
            pl.col("severity").max(),
            (is_contender.any() & ~is_contender.all()).alias("is_pair"),
            *([] if cluster is None else [pl.col("cluster").first(), n_clusters]),
        )
        .filter(raise_if_repeated(unit, "on one side of a pair"))
    )
    if cluster is not None:
        pairs = pairs.filter(in_one_cluster(unit, cluster))
    is_counted = pl.col("is_pair") & (pl.col("severity") == 0)
    difference = pl.col("value") - pl.col("baseline_value")
    return pairs.with_columns(
        is_counted=is_counted,
        difference=pl.when(is_counted).then(
            pl.when(difference.abs() > TIE).then(difference).otherwise(0.0)
        ),
    )


def _sum_differences(
    pairs: pl.LazyFrame, line: Sequence[str], *, is_clustered: bool
) -> pl.LazyFrame:
    """Sum pairs by unit and units by line, as `paired_inference` needs them."""
    difference, is_counted = pl.col("difference"), pl.col("is_counted")
    counts = {
        "n_pairs": is_counted,
        "n_wins": difference > 0.0,
        "n_ties": difference == 0.0,
        "n_losses": difference < 0.0,
        **{
            f"n_{status}": pl.col("is_pair") & (pl.col("severity") == severity)
            for status, severity in SEVERITY.items()
            if severity
        },
        "n_unpaired": ~pl.col("is_pair"),
    }
    sums = {
        "difference": difference,
        "gained": difference.clip(lower_bound=0.0),
        "lost": -difference.clip(upper_bound=0.0),
        "value": pl.when(is_counted).then("value"),
        "baseline_value": pl.when(is_counted).then("baseline_value"),
    }
    fractions = [
        ((pl.col(name) != 0.0) & (pl.col(name) != 1.0)) for name in ("value", "baseline_value")
    ]
    # Selected first, so that a sum can have the name of its terms.
    units = pairs.select(
        *line,
        *(["cluster"] if is_clustered else []),
        *[value.cast(pl.Int64).fill_null(0).alias(name) for name, value in counts.items()],
        *[value.fill_null(0.0).alias(name) for name, value in sums.items()],
        is_fractional=is_counted & pl.any_horizontal(fractions),
    )
    if is_clustered:
        units = units.group_by(*line, "cluster").agg(
            pl.col(*counts).sum(),
            in_order(pl.col(*sums)).list.sum(),
            pl.col("is_fractional").any(),
        )
    n_pairs = pl.col("n_pairs")
    n_units, size = pl.col("n_units").cast(pl.Float64), n_pairs.cast(pl.Float64)
    mean = in_order(difference).list.sum() / n_pairs.sum()
    is_unit = n_pairs > 0
    spread = {"pulls": in_order((difference - mean * n_pairs) ** 2).list.sum()}
    if is_clustered:
        spread = cluster_statistics(difference, n_pairs)
        spread |= {
            "totals": difference.filter(is_unit),
            "sizes": n_pairs.filter(is_unit).cast(pl.Float64),
        }
    summed = (
        units
        .group_by(line)
        .agg(
            *[pl.col(name).sum() for name in counts],
            *[in_order(pl.col(name)).list.sum() for name in sums if name != "difference"],
            pl.col("is_fractional").any(),
            is_unit.sum().cast(pl.Int64).alias("n_units"),
            (is_unit & (difference.abs() > TIE)).sum().cast(pl.Int64).alias("n_unequal"),
            mean.alias("difference"),
            **spread,
        )
        .with_columns(
            pl.when(n_pairs > 0).then("difference"),
            accuracy=pl.when(n_pairs > 0).then(pl.col("value") / size),
            baseline_accuracy=pl.when(n_pairs > 0).then(pl.col("baseline_value") / size),
        )
    )
    if not is_clustered:
        error = (pl.col("pulls") * (n_units / (n_units - 1.0))).sqrt() / size
        summed = summed.with_columns(standard_error=pl.when(n_units > 1.0).then(error))
    return summed.with_columns(
        pl.col(*counts).cast(pl.UInt32), n_clusters=pl.col("n_units").cast(pl.UInt32)
    )


def _with_inference(
    summed: pl.LazyFrame,
    confidence_level: float,
    *,
    is_clustered: bool,
    mcnemar: McNemar,
    cluster_test: ClusterTest,
) -> pl.LazyFrame:
    """Add interval and test of each line."""
    if cluster_test == "wild_bootstrap":
        summed = summed.with_columns(wild=wild_tests(confidence_level))
    inference = paired_inference(
        confidence_level=confidence_level,
        is_clustered=is_clustered,
        mcnemar=mcnemar,
        cluster_test=cluster_test,
    )
    return summed.with_columns(**inference)


def _no_baseline(found: pl.DataFrame, level: pl.Expr, column: str) -> DataError:
    """Describe a missing baseline, with the values of the column."""
    values, asked = found["levels"][0].sort().to_list(), pl.select(level).item()
    near = near_names(str(asked), map(str, values), least=0.4)
    meant = f"did you mean {' or '.join(map(repr, near))}? Else, " if near else ""
    return DataError(
        f"no row of problems has {column} == {asked!r}, the baseline; found: {values}. Hint: {meant}"
        f"{setting('baseline')} names another."
    )
