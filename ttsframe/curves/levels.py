"""Difficulty levels of problems, halves of the attempts, and curves by level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

import polars as pl
from polars import selectors as cs

from ttsframe._checks import (
    check_choice,
    check_fraction,
    check_frame,
    check_names,
    check_positive,
)
from ttsframe._counts import read_counts
from ttsframe._exprs import from_safe, in_order, run_plan, safe_names, to_safe
from ttsframe._own import check_named
from ttsframe._typing import ColumnNames, FrameT, ProblemSet, Reduction
from ttsframe.curves.lines import (
    LEFT_OUT,
    LEVELS_HINT,
    CurveLines,
    check_same_dtypes,
    curve_lines,
    refuse_where,
)
from ttsframe.curves.means import average_points
from ttsframe.errors import ColumnsError, ParameterError
from ttsframe.schema import CURVE_SCHEMA, holds_counts, require_columns, require_kind
from ttsframe.steps import STEP_REDUCTIONS, reduce_steps

__all__ = ["difficulty_levels", "halve_attempts", "level_curve"]

DifficultyMetric: TypeAlias = Literal["pass_at_1", "mean_score"]
LevelEstimate: TypeAlias = Literal["cross_fitted", "same_sample"]
LevelRule: TypeAlias = Literal["middle_rank", "search_and_learn"]

_LEVEL_COLUMNS: Final = (
    "problem_id",
    "fold",
    "level",
    "difficulty",
    "n_used",
    "metric",
    "basis",
    "caveat",
    "n_levels",
    "n_empty_levels",
)

_FEW_ATTEMPTS: Final = 16
"""Below this number of attempts, levels are mostly noise."""

_HALVES: Final = (0, 1)

_COUNTS: Final = ("n_problems", *LEFT_OUT)


class _Source(NamedTuple):
    """How difficulty is estimated."""

    keys: dict[str, str]
    """Safe names of the columns that identify a problem."""
    value: pl.Expr
    """What an attempt contributes; higher is easier."""
    basis: str
    """As in the result."""
    of_counts: bool
    """Whether the table has counts in place of attempts."""

    @property
    def is_given(self) -> bool:
        """Whether a column states the difficulty."""
        return self.basis == "given"

    @property
    def is_halved(self) -> bool:
        """Whether each half of the attempts is used for the levels of the other."""
        return self.basis == "cross_fitted"


def difficulty_levels(
    trajectories: FrameT,
    /,
    *,
    reference: pl.DataFrame | pl.LazyFrame | None = None,
    metric: DifficultyMetric = "pass_at_1",
    reduction: Reduction | None = None,
    column: str | None = None,
    n_levels: int | None = 5,
    estimate: LevelEstimate = "cross_fitted",
    rule: LevelRule = "middle_rank",
    by: ColumnNames = (),
) -> FrameT:
    r"""Sort problems into levels of difficulty for a model, the last level hardest.

    Levels that are estimated and evaluated on the same attempts are biased, because the hardest
    level collects unlucky problems along with hard ones: with four attempts each at problems that
    are all solved half the time, the hardest of five levels looks solved 15 % of the time.
    Therefore the levels of each half of the attempts are estimated on the other half, unless
    another run is given.

    Parameters
    ----------
    trajectories
        One row per attempt, with `problem_id`, `attempt` (unique within `by` and problem), and the
        column that the metric reads: `is_correct` (Boolean), `score` (Float64, higher is better),
        `step_scores`, or the one named in `column`. For "pass_at_1" also a table of counts, with
        `n_attempts` and `n_correct`, whose levels need a `reference` or "same_sample".
    reference
        Another run on the same problems, on which difficulty is estimated instead, with the same
        columns. It may lack columns of `by`; then all values of `by` get the same difficulty. Its
        levels are for all attempts.
    metric
        "pass_at_1": the share of correct attempts (oracle levels; attempts without a grade are left
        out). "mean_score": the mean verifier score (predicted levels; null and NaN are left out).
    reduction
        Name in `STEP_REDUCTIONS`, or a function as `select_answers` takes it, that reduces `step_scores` to the score; None reads the column
        `score`.
    column
        Numeric column of `trajectories` with the difficulty of a problem (higher is harder), equal
        in all its attempts, used instead of an estimate; null and NaN are unknown.
    n_levels
        Number of levels; None, which needs `column`, makes each of its distinct values a level.
    estimate
        "cross_fitted": on the other half of the attempts, even against odd numbers of `attempt`.
        "same_sample": on all attempts, to describe a run but not to evaluate it by level.
        Ignored if `reference` or `column` is given.
    rule
        "middle_rank": problems are ranked and the ranks are cut evenly. Equally hard problems share
        the level that contains the middle of their ranks, the harder level if it is on an edge.
        "search_and_learn": cuts at interpolated percentiles of the metric; a problem on a cut gets
        the easier level, as in that tool.
    by
        Columns that identify a run; each run gets levels of its own.

    Returns
    -------
    FrameT
        `levels`, one row per (by, `problem_id`, `fold`), sorted:

        - `fold` (UInt32): the half of the attempts that the level is for, as `halve_attempts`
          numbers them (estimated on the other half); null: for all attempts;
        - `level` (UInt32): 1 (easiest) to `n_levels`; null where the difficulty is unknown;
        - `difficulty` (Float64): 1 minus the metric, or `column`; null if no attempt has a value;
        - `n_used` (UInt32): attempts used for the estimate;
        - `metric` (String): "pass_at_1" for oracle levels, "mean_score" for predicted levels, or
          "given";
        - `basis` (String): "cross_fitted", "reference", "same_sample" or "given";
        - `caveat` (String): "not_exchangeable" if the attempts come from a tree search, so they
          depend on each other and their share of correct ones is not a probability; otherwise
          "few_attempts" if fewer than 16 were used; otherwise null;
        - `n_levels`, `n_empty_levels` (UInt32): number of levels, and of levels without a problem.
          Levels are empty where many problems are equally hard; they are never merged.

    Raises
    ------
    ColumnsError
        At once, when a column is missing, is not numeric, or differs in dtype in `reference`.
    ParameterError
        At once, when a parameter is out of range or two contradict each other.
    DataError
        On collection, when an attempt at a problem appears twice (`by` does not name the column of
        the run), or a problem has several values of `column`.

    See Also
    --------
    halve_attempts : Number the halves that cross-fitted levels are for.
    level_curve : Average problems by level, over both halves if levels are cross-fitted.

    Notes
    -----
    With :math:`N` problems, average rank :math:`r_j` of problem j (ties share the mean rank, the
    easiest problem has rank 1) and :math:`L` levels, the level is
    :math:`\lfloor L (r_j - \tfrac12) / N \rfloor + 1`. Values equal to twelve decimals are ties.

    Snell et al. cut the pass@1 of 2,048 samples, or their mean final verifier score, into five
    quantiles. search-and-learn puts a problem without a metric in its easiest level; here it has no
    level under either rule.

    References
    ----------
    Snell et al., "Scaling LLM Test-Time Compute Optimally can be More Effective than Scaling Model
    Parameters", arXiv:2408.03314, section 3.2. Beeching et al., search-and-learn,
    `sal/utils/score.py` and the "Scaling test-time compute with open models" post.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> trajectories = pl.DataFrame({
    ...     "problem_id": ["a"] * 4 + ["b"] * 4,
    ...     "attempt": [0, 1, 2, 3] * 2,
    ...     "is_correct": [True, True, True, False, False, False, False, False],
    ... })
    >>> levels = tts.difficulty_levels(trajectories, n_levels=2)
    >>> levels.select("problem_id", "fold", "level", "difficulty", "n_used", "caveat")
    shape: (4, 6)
    ┌────────────┬──────┬───────┬────────────┬────────┬──────────────┐
    │ problem_id ┆ fold ┆ level ┆ difficulty ┆ n_used ┆ caveat       │
    │ ---        ┆ ---  ┆ ---   ┆ ---        ┆ ---    ┆ ---          │
    │ str        ┆ u32  ┆ u32   ┆ f64        ┆ u32    ┆ str          │
    ╞════════════╪══════╪═══════╪════════════╪════════╪══════════════╡
    │ a          ┆ 0    ┆ 1     ┆ 0.5        ┆ 2      ┆ few_attempts │
    │ a          ┆ 1    ┆ 1     ┆ 0.0        ┆ 2      ┆ few_attempts │
    │ b          ┆ 0    ┆ 2     ┆ 1.0        ┆ 2      ┆ few_attempts │
    │ b          ┆ 1    ┆ 2     ┆ 1.0        ┆ 2      ┆ few_attempts │
    └────────────┴──────┴───────┴────────────┴────────┴──────────────┘
    """
    check_frame(trajectories, "trajectories")
    check_choice(metric, "metric", get_args(DifficultyMetric))
    check_choice(estimate, "estimate", get_args(LevelEstimate))
    check_choice(rule, "rule", get_args(LevelRule))
    groups: tuple[str, ...] = check_names(by, "by", taken=(*_LEVEL_COLUMNS, "attempt"))
    _check_agreement(reference=reference, column=column, n_levels=n_levels)
    keys: dict[str, str] = safe_names([*groups, "problem_id"])
    schema: pl.Schema = require_columns(trajectories, [*keys.values()])
    if reference is None:
        run, run_schema, where = trajectories.lazy(), schema, "trajectories"
    else:
        check_frame(reference, "reference")
        run, run_schema, where = reference.lazy(), reference.collect_schema(), "reference"
        require_columns(reference, ["problem_id"], where="reference")
        both = [name for name in keys.values() if name in run_schema]
        check_same_dtypes(run_schema, both, "reference", schema, "trajectories")
    of_counts = metric == "pass_at_1" and column is None and holds_counts(run_schema)
    if of_counts and reference is None and estimate == "cross_fitted":
        raise ParameterError(
            "estimate == 'cross_fitted' halves the attempts, and the table holds only their numbers. Hint: "
            "estimate='same_sample' describes the run, and reference=... takes the levels of another one."
        )
    source: _Source = _Source(
        of_counts=of_counts,
        keys={key: name for key, name in keys.items() if name in run_schema},
        value=(
            pl.col("n_correct")
            if of_counts
            else _attempt_value(run_schema, metric, reduction, column, where)
        ),
        basis="given" if column else "reference" if reference is not None else estimate,
    )
    run_columns: list[str] = [*keys][: len(groups)]

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        if reference is None:
            estimates = _estimates(lazy, schema, source)
        else:
            estimates = (
                lazy
                .select(to_safe(keys))
                .unique()
                .join(
                    _estimates(run, run_schema, source),
                    on=[*source.keys],
                    how="left",
                    nulls_equal=True,
                )
            )
        return (
            _with_levels_of(estimates, [*run_columns, "fold"], n_levels, rule)
            .with_columns(
                difficulty=-pl.col("metric") if source.is_given else 1.0 - pl.col("metric"),
                metric=pl.lit("given" if source.is_given else metric),
                basis=pl.lit(source.basis),
                caveat=_caveat(source),
            )
            .sort(*keys, "fold")
            .select(*from_safe(keys), *_LEVEL_COLUMNS[1:])
        )

    return run_plan(trajectories, plan)


def _check_agreement(*, reference: object, column: str | None, n_levels: int | None) -> None:
    """Raise where parameters contradict each other."""
    if n_levels is not None:
        check_positive(n_levels, "n_levels")
    elif column is None:
        raise ParameterError(
            "n_levels is None, which needs a column whose values are the levels. Hint: "
            "column='level', or a number of levels."
        )
    if column is not None and reference is not None:
        raise ParameterError(
            f"column == {column!r} and reference are both given; difficulty is either a column of "
            "the trajectories or estimated on another run. Hint: omit one of them."
        )


def _attempt_value(
    schema: pl.Schema,
    metric: DifficultyMetric,
    reduction: Reduction | None,
    column: str | None,
    where: str,
) -> pl.Expr:
    """Return what an attempt contributes to the metric (higher is easier), null if nothing."""
    if reduction is not None:
        check_named(reduction, "reduction", STEP_REDUCTIONS)
    if column is not None:
        name, value = column, -pl.col(column).cast(pl.Float64)
    elif metric == "pass_at_1":
        name, value = "is_correct", pl.col("is_correct").cast(pl.Boolean).cast(pl.Float64)
    elif reduction is None:
        name, value = "score", pl.col("score").cast(pl.Float64)
    else:
        name, value = "step_scores", reduce_steps(reduction)
    require_columns(pl.LazyFrame(schema=schema), ["attempt", name], where=where)
    if column is not None or name == "score":
        hint = (
            f"pl.col({name!r}).cast(pl.Int64), after str.extract if the number is part of a text."
        )
        require_kind(schema, "a number", name, where=where, hint=hint)
    return value.fill_nan(None)


def _estimates(lazy: pl.LazyFrame, schema: pl.Schema, source: _Source) -> pl.LazyFrame:
    """Return `metric` and `n_used` of each problem, once per half that the estimate is for."""
    keys = source.keys
    if source.of_counts:
        return read_counts(lazy, keys).select(
            *keys,
            pl.lit(value=True).alias("is_independent"),
            pl.when(pl.col("n") > 0).then(pl.col("c") / pl.col("n")).alias("metric"),
            pl.col("n").alias("n_used"),
            pl.lit(None, pl.UInt32).alias("fold"),
        )
    is_independent = (
        pl.col("is_exchangeable") if "is_exchangeable" in schema else pl.lit(value=True)
    )
    attempt, value = pl.col("attempt"), pl.col("value")
    halves = [attempt % 2 != fold for fold in _HALVES] if source.is_halved else [pl.lit(value=True)]
    # Sorted, so that a float sum does not depend on the order of rows.
    means = [in_order(value.filter(half)).list.mean() for half in halves]
    counts = [value.filter(half).count() for half in halves]
    folds = pl.lit([*_HALVES] if source.is_halved else [None], pl.List(pl.UInt32))
    return (
        lazy
        .select(
            *to_safe(keys),
            "attempt",
            value=source.value,
            is_independent=is_independent.cast(pl.Boolean).fill_null(value=True),
        )
        .group_by(*keys)
        .agg(
            metric=pl.concat_list(means),
            n_used=pl.concat_list(counts),
            is_independent=pl.col("is_independent").all(),
            n_rows=pl.len(),
            n_attempts=attempt.n_unique(),
            n_values=value.drop_nulls().n_unique(),
        )
        .filter(
            refuse_where(
                pl.col("n_rows") > pl.col("n_attempts"),
                keys,
                "{n_rows} rows with {n_attempts} numbers of 'attempt', expected one row each. Hint: "
                "name the column that identifies the run in by=(...), or number attempts with "
                "tts.renumber_attempts(trajectories).",
                "n_rows",
                "n_attempts",
            ),
            refuse_where(
                (pl.col("n_values") > 1) & source.is_given,
                keys,
                "{n_values} different values of the column of difficulty, expected one. Hint: average "
                "it, or name the column of the run in by=(...).",
                "n_values",
            ),
        )
        .select(*keys, "is_independent", "metric", "n_used", fold=folds)
        .explode("metric", "n_used", "fold", empty_as_null=False)
    )


def _with_levels_of(
    estimates: pl.LazyFrame, groups: Sequence[str], n_levels: int | None, rule: LevelRule
) -> pl.LazyFrame:
    """Cut the problems of each group into levels, and count levels."""
    level = pl.col("level")
    counted = pl.lit(n_levels, pl.UInt32) if n_levels else level.max().over(groups).fill_null(0)
    n_filled = level.drop_nulls().n_unique().over(groups).cast(pl.Int64)
    return (
        estimates
        .with_columns(
            level=_level(groups, n_levels, rule),
            # Null for a problem that the reference lacks.
            n_used=pl.col("n_used").fill_null(0).cast(pl.UInt32),
        )
        .with_columns(n_levels=counted)
        .with_columns(n_empty_levels=(pl.col("n_levels") - n_filled).cast(pl.UInt32))
    )


def _level(groups: Sequence[str], n_levels: int | None, rule: LevelRule) -> pl.Expr:
    """Return the level of each problem among those of its group."""
    metric = pl.col("metric").round(12)
    if n_levels is None:
        return (-metric).rank("dense").over(groups).cast(pl.UInt32)
    if rule == "search_and_learn":
        cuts = [metric.quantile(i / n_levels, "linear").over(groups) for i in range(1, n_levels)]
        passed = [(metric >= cut).cast(pl.Int64) for cut in cuts]
        level = pl.sum_horizontal(pl.lit(0, pl.Int64), *passed)
        return pl.when(metric.is_not_null()).then(n_levels - level).cast(pl.UInt32)
    # Twice the rank is an integer, so that no edge is a matter of rounding.
    middle = (2 * (-metric).rank("average").over(groups)).cast(pl.Int64) - 1
    n_known = metric.count().over(groups).cast(pl.Int64)
    return (middle * n_levels // (2 * n_known) + 1).cast(pl.UInt32)


def _caveat(source: _Source) -> pl.Expr:
    """Return why a difficulty is unreliable."""
    if source.is_given:
        return pl.lit(None, pl.String)
    return (
        pl
        .when(~pl.col("is_independent"))
        .then(pl.lit("not_exchangeable"))
        .when(pl.col("n_used") < _FEW_ATTEMPTS)
        .then(pl.lit("few_attempts"))
    )


def halve_attempts(trajectories: FrameT, /, *, by: ColumnNames = ()) -> FrameT:
    """Split the attempts at each problem into the two halves that cross-fitted levels are for.

    Select answers with ``by="fold"`` afterwards: then no attempt is evaluated under a level that
    was estimated on it.

    Parameters
    ----------
    trajectories
        One row per attempt, with `attempt` (0..n-1 within `by` and problem).
    by
        Columns that identify a run. The half of an attempt follows from its number alone, so they
        are only checked.

    Returns
    -------
    FrameT
        The same rows, with `fold` (UInt32), 0 for even and 1 for odd attempts, and `attempt`
        (UInt32) numbered from 0 in each half, so that budgets go up to half the attempts.

    Raises
    ------
    ColumnsError
        At once, when `attempt` or a column of `by` is missing, or `fold` exists already.
    ParameterError
        At once, when `by` names `attempt` or `fold`.
    DataError
        On collection, when `is_exchangeable` is false in a row, as in tree search, whose attempts
        are not independent samples.

    See Also
    --------
    difficulty_levels : Levels for each half, estimated on the other.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> run = pl.DataFrame({"problem_id": ["a"] * 4, "attempt": [0, 1, 2, 3]})
    >>> tts.curves.halve_attempts(run).select("fold", "attempt").rows()
    [(0, 0), (1, 0), (0, 1), (1, 1)]
    """
    check_frame(trajectories, "trajectories")
    groups: tuple[str, ...] = check_names(by, "by", taken=("attempt", "fold"))
    schema: pl.Schema = require_columns(trajectories, [*groups, "attempt"])
    if "fold" in schema:
        raise ColumnsError(
            "trajectories: column 'fold' already exists and would be overwritten. Hint: these "
            "attempts may have been halved before; otherwise rename the column."
        )
    attempt = pl.col("attempt")

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        if "is_exchangeable" in schema:
            lazy = lazy.filter(
                refuse_where(
                    ~pl.col("is_exchangeable"),
                    {"attempt": "attempt"},
                    "is_exchangeable is false, expected true: attempts of a tree search depend on each "
                    "other, so half of them is not a run with half the budget. Hint: "
                    "tts.difficulty_levels(run, reference=...) estimates levels on independent "
                    "samples and needs no halves.",
                )
            )
        return lazy.with_columns(
            fold=(attempt % 2).cast(pl.UInt32), attempt=(attempt // 2).cast(pl.UInt32)
        )

    return run_plan(trajectories, plan)


def level_curve(
    problems: FrameT,
    /,
    *,
    levels: pl.DataFrame | pl.LazyFrame,
    by: ColumnNames = (),
    replicates: ColumnNames = (),
    cluster: str | None = None,
    include: ProblemSet = "common",
    confidence_level: float = 0.95,
) -> FrameT:
    r"""Average problems into one row per level of difficulty and budget.

    With cross-fitted levels, each half of the attempts is averaged by the levels that were
    estimated on the other half, and then the two means are averaged. A problem near an edge can
    therefore be in two levels, once per half.

    Parameters
    ----------
    problems
        `problems`, as in `scaling_curve`; for cross-fitted levels selected from halved attempts, with
        the column `fold`: ``select_answers(halve_attempts(run), by="fold")``.
    levels
        Table that `difficulty_levels` returns, of either kind of frame; those columns of `by` and
        `replicates` that it has are matched.
    by, replicates, cluster, include, confidence_level
        As in `scaling_curve`.

    Returns
    -------
    FrameT
        `curve`, one row per (by, `level`, `selector`, `reduction`, `budget`, `subsets`), sorted:

        - `level` (UInt32): from 1 to the number of levels, including empty levels; null for problems
          of unknown difficulty, last;
        - `accuracy` (Float64 in [0, 1]): mean of `value`, with halves the mean of their means; null
          if no problem counts;
        - `standard_error` (Float64): of that mean, over problems, null below two problems;
        - `ci_low`, `ci_high` (Float64 in [0, 1]): by the rules of `scaling_curve`; with halves
          Student's t, or Wilson's where the values add up to little or to nearly their number;
        - `n_problems` (UInt32): different problems averaged;
        - `n_short`, `n_unscored`, `n_undefined`, `n_ungraded` (UInt32): different problems left
          out, in one half or in both, each counted under its worst status in a half;
        - `budget_unit` (String): that of `problems`, "attempts" if it has none;
        - `basis` (String): as in `levels`;
        - `caveat` (String): the most serious caveat of a level averaged here; null: none;
        - `n_clusters`, `df`: as in `scaling_curve`, only with `cluster`.

    Raises
    ------
    ColumnsError
        At once, when a column is missing in either table.
    ParameterError
        At once, as `scaling_curve`.
    DataError
        On collection, when levels are cross-fitted but `problems` is not from halved attempts, and
        when a problem has several rows on one curve at one budget.

    See Also
    --------
    scaling_curve : Average problems of all levels.

    Notes
    -----
    Half :math:`f` has :math:`N_f` problems in the level, of values :math:`x_{qf}` and mean
    :math:`m_f`. The level depends on the other half alone, so each mean is an unbiased estimate for
    the problems of the level, and so is the mean :math:`m` of the :math:`F` means. With
    :math:`u_q = \sum_f (x_{qf} - m_f) / (F N_f)` for :math:`Q` different problems, the standard
    error is :math:`\sqrt{Q / (Q - 1) \sum_q u_q^2}`: both halves of a problem are one unit.
    With clusters, :math:`u_q` is summed by cluster, and the shares of `standard_error` are those of the
    mean.

    References
    ----------
    Snell et al., arXiv:2408.03314, sections 3.2 and 5.3. Miller, "Adding Error Bars to Evals",
    arXiv:2411.00640, sections 2 and 2.2, on units and clusters.

    Examples
    --------
    >>> import ttsframe as tts
    >>> run = tts.simulate_trajectories(200, 64, seed=1, keys=True)
    >>> levels = tts.difficulty_levels(run)
    >>> problems = tts.select_answers(
    ...     tts.curves.halve_attempts(run), selectors=["majority_vote"], budgets=[1, 32], by="fold"
    ... )
    >>> curve = tts.level_curve(problems, levels=levels)
    >>> curve.filter(budget=32).select("level", pl.col("accuracy").round(2), "n_problems").rows()
    [(1, 1.0, 48), (2, 1.0, 59), (3, 1.0, 53), (4, 0.77, 58), (5, 0.14, 50)]
    """
    return level_curve_with(
        problems,
        {},
        levels=levels,
        by=by,
        replicates=replicates,
        cluster=cluster,
        include=include,
        confidence_level=confidence_level,
    )


def level_curve_with(
    problems: FrameT,
    also: Mapping[str, pl.Expr],
    *,
    levels: pl.DataFrame | pl.LazyFrame,
    by: ColumnNames,
    replicates: ColumnNames,
    cluster: str | None,
    include: ProblemSet,
    confidence_level: float,
) -> FrameT:
    """Make `level_curve`, with further columns averaged over the same problems."""
    check_frame(levels, "levels")
    check_choice(include, "include", get_args(ProblemSet))
    check_fraction(confidence_level, "confidence_level")
    lines: CurveLines = curve_lines(
        problems,
        by=by,
        replicates=replicates,
        cluster=cluster,
        taken=("level", "basis", "caveat", "fold", "n_levels"),
        hint="tts.select_answers(tts.curves.halve_attempts(run), budgets=[...], by='fold') makes it.",
    )
    levels_schema: pl.Schema = require_columns(
        levels,
        ["problem_id", "fold", "level", "n_levels", "basis"],
        where="levels",
        hint=LEVELS_HINT,
    )
    line: list[str] = [*lines.columns]
    shared: dict[str, str] = shared_columns(lines.groups | lines.seeds, levels_schema, lines.schema)
    # The column where the table has it, otherwise null.
    fold = pl.col("fold") if "fold" in lines.schema else pl.lit(None)
    caveat = pl.col("caveat") if "caveat" in levels_schema else pl.lit(None)

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        of_problem = levels.lazy().select(
            *to_safe(shared),
            "problem_id",
            "level",
            level_fold=pl.col("fold"),
            caveat=caveat.cast(pl.String),
        )
        rows = with_levels(
            lines.select(lazy, fold=fold.cast(pl.UInt32), **also), of_problem, [*shared]
        )
        rows = rows.with_columns(pl.col("level").cast(pl.UInt32))
        averages = average_points(
            rows, lines, include, confidence_level, also=[*also], has_levels=True
        )
        sizes = levels.lazy().select(pl.col("n_levels", "basis").max())
        return (
            _with_empty_levels(averages, sizes, [*line, "budget"])
            .with_columns(**lines.defaults)
            .sort(
                *lines.groups,
                "level",
                "selector",
                "reduction",
                "budget",
                "subsets",
                nulls_last=True,
            )
            .select(
                *from_safe(lines.groups),
                "level",
                *CURVE_SCHEMA,
                "basis",
                "caveat",
                *lines.shown,
                *also,
            )
        )

    return run_plan(problems, plan)


def shared_columns(
    names: Mapping[str, str], levels: pl.Schema, problems: pl.Schema
) -> dict[str, str]:
    """Return the caller's columns that levels are given for too, not those that describe a level."""
    described = _LEVEL_COLUMNS[3:]
    shared = {key: name for key, name in names.items() if name in levels and name not in described}
    check_same_dtypes(levels, ["problem_id", *shared.values()], "levels", problems, "problems")
    return shared


def with_levels(rows: pl.LazyFrame, levels: pl.LazyFrame, shared: Sequence[str]) -> pl.LazyFrame:
    """Join each row with the level of its problem that is for its half of the attempts."""
    fold, level_fold = pl.col("fold"), pl.col("level_fold")
    is_halved = refuse_where(
        level_fold.is_not_null() & fold.is_null(),
        {"problem_id": "problem_id"},
        "its levels are cross-fitted, each for one half of the attempts (column 'fold'), but its "
        "answers were selected from all attempts. Hint: "
        "tts.select_answers(tts.curves.halve_attempts(run), by='fold', ...), or levels from another "
        "run: tts.difficulty_levels(run, reference=...).",
    )
    return rows.join(levels, on=[*shared, "problem_id"], how="left", nulls_equal=True).filter(
        is_halved, level_fold.is_null() | (level_fold == fold)
    )


def _with_empty_levels(
    averages: pl.LazyFrame, sizes: pl.LazyFrame, point: Sequence[str]
) -> pl.LazyFrame:
    """Add a row for each level without a problem."""
    all_levels = pl.int_ranges(1, pl.col("n_levels").cast(pl.Int64) + 1)
    grid = (
        averages
        .select(point)
        .unique()
        .join(sizes.select(level=all_levels), how="cross")
        .explode("level", empty_as_null=False)
        .with_columns(pl.col("level").cast(pl.UInt32))
    )
    return (
        grid
        .join(averages, on=[*point, "level"], how="full", coalesce=True, nulls_equal=True)
        .with_columns(
            pl.col(_COUNTS).fill_null(0), cs.by_name("n_clusters", require_all=False).fill_null(0)
        )
        .join(sizes.select("basis"), how="cross")
    )
