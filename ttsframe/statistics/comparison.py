"""Paired differences between selectors, models or runs on the same problems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, get_args

import polars as pl

from ttsframe._checks import check_choice, check_fraction, check_frame, check_names
from ttsframe._exprs import run_plan
from ttsframe._typing import ColumnNames, Correction, FrameT
from ttsframe.errors import ParameterError, ParameterTypeError
from ttsframe.schema import require_columns
from ttsframe.statistics.paired import with_adjusted
from ttsframe.statistics.pairing import both_sides, differences_of, pairs_of
from ttsframe.statistics.units import judged

__all__ = ["compare"]

_MATCHED: Final = ("selector", "reduction", "subsets", "budget_unit")
"""Columns of `problems` that must agree in a pair, unless they are what is compared."""

_STATISTICS: Final = (
    "n_pairs",
    "accuracy",
    "baseline_accuracy",
    "difference",
    "standard_error",
    "ci_low",
    "ci_high",
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
    "n_clusters",
}


def compare(
    problems: FrameT,
    /,
    *,
    column: str = "selector",
    baseline: str | float | bool = "majority_vote",
    by: ColumnNames = ("budget",),
    replicates: ColumnNames = (),
    cluster: str | None = None,
    confidence_level: float = 0.95,
    correction: Correction = "holm",
) -> FrameT:
    r"""Compare selectors, models or runs with a baseline, problem by problem.

    Two accuracies on the same problems share their hard and their easy ones. The difference of each
    pair leaves those out, so it shows effects that two overlapping intervals hide.

    Parameters
    ----------
    problems
        `problems`, one row per (by, replicates, `column`, `problem_id`, and `selector`,
        `reduction`, `subsets` where there), with `value` (Float64 in [0, 1]; null: none) and
        `status` (without the column all are "ok"), as `select_answers` makes it; or a table of an
        aggregator.
    column
        Column whose values are compared. Where it is none of these, a pair agrees in `selector`,
        `reduction` and `subsets`; where it is `selector`, a selector that reads no score is paired
        with every reduction of the other. A null in it is no value.
    baseline
        The value of `column` that the others are compared with.
    by
        Columns in which a pair agrees and that get rows of their own, such as the budget and the
        model.
    replicates
        Columns that number repetitions of one run, such as the seed: averaged per problem before
        anything else, since the problem is the unit.
    cluster
        Column that says which problems belong together, such as the text that they ask about: whole
        clusters are then the units of the standard error, and the test is the clustered one. None:
        problems are independent.
    confidence_level
        Coverage of each interval on its own, in (0, 1); it knows nothing of the correction.
    correction
        For the number of tests in the whole result: ``"holm"`` and ``"bonferroni"`` bound the
        chance of any false finding, ``"benjamini_hochberg"`` the expected share of false findings,
        ``"none"`` repeats the p-value. To correct within a budget, compare that budget alone.

    Returns
    -------
    FrameT
        One row per (by, `selector`, `reduction`, `subsets`, `column`), sorted, which has:

        - `baseline` (dtype of `column`); with `column` "selector" also `baseline_reduction`;
        - `n_pairs` (UInt32): problems on both sides whose status is "ok" on both; all that follows
          is over these;
        - `n_clusters` (UInt32): only with `cluster`;
        - `accuracy`, `baseline_accuracy`, `difference` (Float64): means, and the first less the
          second;
        - `standard_error` (Float64): of the difference, over problems or clusters;
        - `ci_low`, `ci_high` (Float64 in [-1, 1]): interval of the difference;
        - `test` (String): "mcnemar" (exact), "paired_t" or "clustered_t";
        - `p_value`, `p_adjusted` (Float64): two-sided, and corrected;
        - `n_wins`, `n_ties`, `n_losses` (UInt32): problems on which the value is higher than, equal
          to, lower than the baseline's; nearer than 1e-9 is equal;
        - `n_short`, `n_unscored`, `n_undefined`, `n_ungraded` (UInt32): problems left out, each
          under the worst status of its rows;
        - `n_unpaired` (UInt32): problems that only one side has.

        Numbers about spread are null below two pairs or clusters.

    Raises
    ------
    ColumnsError
        At once, when a column is missing.
    ParameterError
        At once, when a parameter is impossible, or a column is named twice.
    DataError
        On collection, when no row has the baseline, a problem has several rows on one side of a
        pair, or is in several clusters.

    Notes
    -----
    With differences :math:`d_q` over Q problems of mean :math:`\bar d`:

    - Values of 0 and 1 alone, such as single samples or a vote: McNemar's exact test, binomial with
      chance one half in the problems that differ. Its size is below the nominal level (2.4 to
      4.6 % at 5 % in the repository's ``benchmarks/results/interval_coverage.txt``). The interval
      is Bonett and Price's, with wins w and losses l, :math:`p = (w + 1)/(Q + 2)`,
      :math:`p' = (l + 1)/(Q + 2)`:
      :math:`p - p' \pm z \sqrt{(p + p' - (p - p')^2) / (Q + 2)}`; it has a width where no problem
      differs, and may hold 0 where the test rejects or the other way round.
    - Else the paired t: :math:`\bar d \pm t_{Q-1} \, \mathrm{sd}(d_q) / \sqrt{Q}`. Where few
      problems differ its p-value would be too small; it is never below :math:`2^{1-m}`, the
      smallest of a test by signs, with m problems (or clusters) that differ. Where m is below 6 the
      interval is Bonett and Price's with the sums of positive and of negative differences in place
      of w and l, which is then too wide rather than too narrow.
    - With clusters the t of the clustered standard error (see `standard_error`), with one degree of
      freedom less than there are clusters. It needs some tens of clusters.

    References
    ----------
    Miller (2024), Adding Error Bars to Evals, arXiv:2411.00640, section 4. McNemar (1947), Note on
    the sampling error of the difference between correlated proportions or percentages, Psychometrika
    12, 153-157. Bonett and Price (2012), Adjusted Wald confidence interval for a difference of
    binomial proportions based on paired data, Journal of Educational and Behavioral Statistics 37,
    479-488. Holm (1979), A simple sequentially rejective multiple test procedure, Scandinavian
    Journal of Statistics 6, 65-70. Benjamini and Hochberg (1995), Controlling the false discovery
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
    >>> table = tts.compare(problems, column="model", baseline="old", by=())
    >>> table.select("model", "baseline", "n_wins", "n_ties", "n_losses", "p_value").rows()
    [('new', 'old', 5, 1, 0, 0.0625)]
    """
    check_frame(problems, "problems")
    check_fraction(confidence_level, "confidence_level")
    check_choice(correction, "correction", get_args(Correction))
    compared: tuple[str, ...] = check_names(column, "column", taken=_TAKEN)
    groups: tuple[str, ...] = check_names(by, "by", taken=_TAKEN)
    repeats: tuple[str, ...] = check_names(replicates, "replicates", taken=_TAKEN)
    clusters: tuple[str, ...] = (
        () if cluster is None else check_names(cluster, "cluster", taken=_TAKEN)
    )
    named: list[str] = [*compared, *groups, *repeats, *clusters]
    if twice := sorted({name for name in named if named.count(name) > 1}):
        hint = " Hint: by=() to compare budgets." if column == "budget" else ""
        raise ParameterError(f"column, by, replicates and cluster name {twice} twice.{hint}")
    schema: pl.Schema = require_columns(
        problems,
        [*named, "problem_id", "value"],
        where="problems",
        hint="tts.select_answers(trajectories, budgets=[...], by=[...]) makes this table.",
    )
    level: pl.Expr = _level(baseline, schema[column], column)
    matched: list[str] = [
        *groups,
        *[name for name in _MATCHED if name in schema and name not in named],
    ]
    # A selector that reads no score has no reduction, and is compared with those of all.
    is_free: bool = column == "selector" and "reduction" in matched and "reduction" not in groups
    if is_free:
        matched.remove("reduction")
    # The caller's names come back at the end, so that none collides with a name used on the way.
    keys: dict[str, str] = {f"key{i}": name for i, name in enumerate(matched)}
    seeds: dict[str, str] = {f"seed{i}": name for i, name in enumerate(repeats)}
    reductions = {"reduction": "reduction", "baseline_reduction": "baseline_reduction"}
    line: dict[str, str] = {**keys, "level": column, **(reductions if is_free else {})}

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        graded = lazy if "status" in schema else lazy.with_columns(status=pl.lit("ok"))
        names = {**keys, **seeds, "level": column, "problem_id": "problem_id"}
        if is_free:
            names["reduction"] = "reduction"
        if cluster is not None:
            names["cluster"] = cluster
        rows = graded.select(*[pl.col(name).alias(key) for key, name in names.items()], **judged())
        both = both_sides(rows, level, [*keys], column, is_free=is_free)
        pairs = pairs_of(both, line, [*seeds], cluster)
        table = differences_of(pairs, [*line], confidence_level, is_clustered=cluster is not None)
        ordered: dict[str, str] = {key: line[key] for key in _first([*line], n_groups=len(groups))}
        shown = [pl.col(key).alias(name) for key, name in ordered.items()]
        shown.insert(1 + [*ordered].index("level" if not is_free else "reduction"), level)
        statistics = list(_STATISTICS)
        if cluster is not None:
            statistics.insert(1, "n_clusters")
        return with_adjusted(table, correction).sort(*ordered).select(*shown, *statistics)

    return run_plan(problems, plan)


def _level(baseline: str | float | bool, dtype: pl.DataType, column: str) -> pl.Expr:
    """Return the baseline as a value of the column that is compared, named as in the result."""
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


def _first(line: Sequence[str], *, n_groups: int) -> list[str]:
    """Return the columns of a line in the order of the result: by, what is compared, the others."""
    keys = [key for key in line if key.startswith("key")]
    others = [key for key in line if key not in keys]
    return [*keys[:n_groups], *others, *keys[n_groups:]]
