"""Difficulty levels: how hard each problem is for a model, measured where it biases nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

import polars as pl

from ttsframe._checks import check_choice, check_frame, check_names, check_positive
from ttsframe._exprs import raise_where, run_plan
from ttsframe._typing import ColumnNames, FrameT, StepReduction
from ttsframe.errors import ColumnsError, DataError, ParameterError
from ttsframe.schema import require_columns
from ttsframe.statistics.problem_values import describe_row
from ttsframe.steps import STEP_REDUCTIONS

__all__ = ["difficulty_levels"]

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

_FEW: Final = 16
"""Below this number of attempts, levels are mostly luck."""

_HALVES: Final = (0, 1)


class _Source(NamedTuple):
    """Where difficulties come from: rows named by `keys`, their metric, and how they are used."""

    keys: list[str]
    value: pl.Expr
    is_given: bool
    is_halved: bool
    basis: str


def difficulty_levels(
    trajectories: FrameT,
    /,
    *,
    reference: pl.DataFrame | pl.LazyFrame | None = None,
    by_metric: DifficultyMetric = "pass_at_1",
    reduction: StepReduction | None = None,
    column: str | None = None,
    n_levels: int | None = 5,
    estimate: LevelEstimate = "cross_fitted",
    rule: LevelRule = "middle_rank",
    by: ColumnNames = (),
) -> FrameT:
    r"""Sort problems into levels of difficulty for a model, the last level hardest.

    A level that is estimated from the attempts it is then used to judge picks out unlucky problems
    along with hard ones: with four attempts each at problems that are all solved half the time, the
    hardest of five levels looks solved 15 % of the time. So each half of the attempts gets the levels that
    the other half says, unless another run says them.

    Parameters
    ----------
    trajectories
        One row per attempt, with `problem_id`, `attempt` (a number of its own within `by` and
        problem), and what the metric reads: `is_correct` (Boolean), `score` (Float64, higher is
        better), `step_scores`, or the column named in `column`.
    reference
        Another run on the same problems, to estimate difficulty on in place of `trajectories`, with
        the same columns; those of `by` that it lacks are not told apart. Its levels are for all
        attempts.
    by_metric
        "pass_at_1": the share of right attempts (oracle levels; attempts without a grade are left
        out). "mean_score": the mean verifier score (predicted levels; null and NaN are left out).
    reduction
        Name in `STEP_REDUCTIONS` that makes scores of `step_scores`; None reads `score`.
    column
        Numeric column of `trajectories` that says how hard a problem is (higher is harder), the
        same in all its attempts, in place of an estimate; null and NaN are unknown.
    n_levels
        Number of levels; None, which needs `column`, makes each of its distinct values a level.
    estimate
        "cross_fitted": on the other half of the attempts, even against odd numbers of `attempt`.
        "same_sample": on all attempts, for pictures of a run but not for judging it by level.
        Without a meaning where `reference` or `column` is given.
    rule
        "middle_rank": problems are ranked and the ranks cut evenly. Equally hard problems share a
        level, the one in which the middle of their ranks lies, and the harder one on an edge.
        "search_and_learn": cuts at percentiles of the metric, interpolated, and a problem on a cut
        goes to the easier side, as that tool does.
    by
        Columns that tell runs apart; each run's problems are cut into levels of their own.

    Returns
    -------
    FrameT
        `levels`, one row per (by, `problem_id`, `fold`), sorted:

        - `fold` (UInt32): the half of the attempts that the level is for, as `halve_attempts`
          numbers them, which is not the half that it was estimated on; null: for all attempts;
        - `level` (UInt32): 1 (easiest) to `n_levels`; null where the difficulty is unknown;
        - `difficulty` (Float64): 1 minus the metric, or `column`; null where no attempt says it;
        - `n_used` (UInt32): attempts that it was estimated on;
        - `metric` (String): `by_metric`, "pass_at_1" for oracle levels and "mean_score" for predicted
          ones, or "given";
        - `basis` (String): "cross_fitted", "reference", "same_sample" or "given";
        - `caveat` (String): "not_exchangeable", attempts of a tree search depend on each other, so
          that halves share their luck and a share of right ones is no chance; else "few_attempts",
          fewer than 16 were used; else null;
        - `n_levels`, `n_empty_levels` (UInt32): levels that there are, and those of them that no
          problem is in, which happens where many are equally hard; they are never merged.

    Raises
    ------
    ColumnsError
        At once, when a column is missing, is not of numbers, or differs in dtype in `reference`.
    ParameterError
        At once, when a parameter is impossible or two contradict each other.
    DataError
        On collection, when a problem has an attempt twice (rows of several runs were not told apart
        with `by`), or several values of `column`.

    See Also
    --------
    halve_attempts : Tells the halves apart that cross-fitted levels are for.
    level_curve : Averages problems by level, and both halves where there are two.

    Notes
    -----
    With :math:`N` problems, of which the j-th hardest has the average rank :math:`r_j` among equal
    ones, and :math:`L` levels, the level is
    :math:`\lfloor L (r_j - \tfrac12) / N \rfloor + 1`. Equal to twelve decimals is equal.

    Snell et al. cut the pass@1 of 2,048 samples, or the mean final verifier score of them, into five
    quantiles. search-and-learn leaves a problem without a metric in its easiest level; here it is in
    none under either rule.

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
    check_choice(by_metric, "by_metric", get_args(DifficultyMetric))
    check_choice(estimate, "estimate", get_args(LevelEstimate))
    check_choice(rule, "rule", get_args(LevelRule))
    groups: tuple[str, ...] = check_names(by, "by", taken=(*_LEVEL_COLUMNS, "attempt"))
    _check_agreement(reference=reference, column=column, n_levels=n_levels)
    keys: list[str] = [*groups, "problem_id"]
    schema: pl.Schema = require_columns(trajectories, keys)
    of_run: pl.Schema = schema
    if reference is not None:
        check_frame(reference, "reference")
        of_run = reference.collect_schema()
        _check_same_dtypes(schema, of_run, keys)
    value = _metric_of(of_run, by_metric, reduction, column, is_reference=reference is not None)
    basis = "given" if column else "reference" if reference is not None else estimate
    source = _Source(
        keys=[name for name in keys if name in of_run],
        value=value,
        is_given=column is not None,
        is_halved=basis == "cross_fitted",
        basis=basis,
    )
    # The caller's names come back at the end, so that none collides with a name used on the way.
    inner: dict[str, str] = {name: f"key{i}" for i, name in enumerate(keys)}

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        estimates = _estimates(lazy if reference is None else reference.lazy(), of_run, source)
        if reference is not None:
            shared = [inner[name] for name in source.keys]
            problems = lazy.select(pl.col(name).alias(inner[name]) for name in keys).unique()
            estimates = problems.join(
                estimates.rename({f"part{i}": key for i, key in enumerate(shared)}),
                on=shared,
                how="left",
                nulls_equal=True,
            )
        else:
            estimates = estimates.rename({f"part{i}": f"key{i}" for i in range(len(keys))})
        ranked = [*[inner[name] for name in groups], "fold"]
        named = [pl.col(key).alias(name) for name, key in inner.items() if name != "problem_id"]
        return (
            estimates
            .with_columns(level=_level(ranked, n_levels, rule), n_used=_count("n_used"))
            .with_columns(
                n_levels=pl.lit(n_levels, pl.UInt32)
                if n_levels
                else pl.col("level").max().over(ranked),
                n_filled=pl.col("level").drop_nulls().n_unique().over(ranked).cast(pl.Int64),
            )
            .with_columns(
                pl.col("n_levels").fill_null(0),
                problem_id=pl.col(inner["problem_id"]),
                difficulty=-pl.col("metric") if source.is_given else 1.0 - pl.col("metric"),
                metric=pl.lit("given" if source.is_given else by_metric),
                basis=pl.lit(basis),
                caveat=_caveat(source),
            )
            .with_columns(n_empty_levels=(pl.col("n_levels") - pl.col("n_filled")).cast(pl.UInt32))
            .sort(*inner.values(), "fold")
            .select(*named, *_LEVEL_COLUMNS)
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
            "the trajectories or estimated on another run. Hint: leave one out."
        )


def _check_same_dtypes(schema: pl.Schema, of_run: pl.Schema, keys: Sequence[str]) -> None:
    """Raise unless the reference names problems as the run does."""
    require_columns(pl.LazyFrame(schema=of_run), ["problem_id"], where="reference")
    differing = [name for name in keys if name in of_run and of_run[name] != schema[name]]
    if differing:
        name = differing[0]
        raise ColumnsError(
            f"reference: {name!r} is {of_run[name]}, must be {schema[name]} as in trajectories. "
            "Hint: cast it."
        )


def _metric_of(
    schema: pl.Schema,
    by_metric: DifficultyMetric,
    reduction: StepReduction | None,
    column: str | None,
    *,
    is_reference: bool,
) -> pl.Expr:
    """Return what an attempt says of its problem, higher is easier, null where it says nothing."""
    where = "reference" if is_reference else "trajectories"
    if reduction is not None:
        check_choice(reduction, "reduction", STEP_REDUCTIONS)
    if column is not None:
        name, value = column, -pl.col(column).cast(pl.Float64)
    elif by_metric == "pass_at_1":
        name, value = "is_correct", pl.col("is_correct").cast(pl.Boolean).cast(pl.Float64)
    elif reduction is None:
        name, value = "score", pl.col("score").cast(pl.Float64)
    else:
        name, value = "step_scores", STEP_REDUCTIONS[reduction]("step_scores")
    require_columns(pl.LazyFrame(schema=schema), ["attempt", name], where=where)
    dtype = schema[name]
    if name not in {"is_correct", "step_scores"} and not (dtype.is_numeric() or dtype == pl.Null):
        raise ColumnsError(
            f"{where}: {name!r} is {dtype}, must be numbers. Hint: pl.col({name!r}).cast(pl.Int64), "
            "after str.extract where digits stand in a text."
        )
    return value.fill_nan(None)


def _estimates(lazy: pl.LazyFrame, schema: pl.Schema, source: _Source) -> pl.LazyFrame:
    """Return `metric` and `n_used` of each problem, once per half that it is estimated for."""
    parts = {f"part{i}": name for i, name in enumerate(source.keys)}
    is_alone = pl.col("is_exchangeable") if "is_exchangeable" in schema else pl.lit(value=True)
    attempt, value = pl.col("attempt"), pl.col("value")
    halves = [attempt % 2 != fold for fold in _HALVES] if source.is_halved else [pl.lit(value=True)]
    # Sorted, so that a float sum does not depend on the order of rows.
    means = [value.filter(half).sort().mean() for half in halves]
    counts = [value.filter(half).count() for half in halves]
    folds = pl.lit([*_HALVES] if source.is_halved else [None], pl.List(pl.UInt32))
    return (
        lazy
        .select(
            *[pl.col(name).alias(part) for part, name in parts.items()],
            "attempt",
            value=source.value,
            is_alone=is_alone.cast(pl.Boolean).fill_null(value=True),
        )
        .group_by(*parts)
        .agg(
            metric=pl.concat_list(means),
            n_used=pl.concat_list(counts),
            is_alone=pl.col("is_alone").all(),
            n_rows=pl.len(),
            n_attempts=attempt.n_unique(),
            n_values=value.drop_nulls().n_unique(),
        )
        .filter(_one_run(parts), _one_value(parts, is_given=source.is_given))
        .select(*parts, "is_alone", "metric", "n_used", fold=folds)
        .explode("metric", "n_used", "fold", empty_as_null=False)
    )


def _count(name: str) -> pl.Expr:
    """Return a count, 0 for a problem that the reference lacks."""
    return pl.col(name).fill_null(0).cast(pl.UInt32)


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
    # Twice the ranks are whole numbers, so that no edge is a matter of rounding.
    middle = (2 * (-metric).rank("average").over(groups)).cast(pl.Int64) - 1
    n_known = metric.count().over(groups).cast(pl.Int64)
    return (middle * n_levels // (2 * n_known) + 1).cast(pl.UInt32)


def _caveat(source: _Source) -> pl.Expr:
    """Say what a difficulty should not be trusted for."""
    if source.is_given:
        return pl.lit(None, pl.String)
    return (
        pl
        .when(~pl.col("is_alone"))
        .then(pl.lit("not_exchangeable"))
        .when(pl.col("n_used") < _FEW)
        .then(pl.lit("few_attempts"))
    )


def _one_run(parts: dict[str, str]) -> pl.Expr:
    """Build the filter that raises where a problem has an attempt twice."""

    def describe(rows: pl.DataFrame) -> DataError:
        row = rows.sort(*parts).row(0, named=True)
        return DataError(
            f"{describe_row(row, parts)}: {row['n_rows']} rows with {row['n_attempts']} numbers of 'attempt', "
            "expected one row each. Hint: name the column that tells runs apart in by=(...), or "
            "number attempts with tts.renumber_attempts(trajectories)."
        )

    is_repeated = pl.col("n_rows") > pl.col("n_attempts")
    return raise_where(
        pl.struct(is_repeated.alias("broken"), *parts, "n_rows", "n_attempts"), describe
    )


def _one_value(parts: dict[str, str], *, is_given: bool) -> pl.Expr:
    """Build the filter that raises where a given difficulty differs within a problem."""

    def describe(rows: pl.DataFrame) -> DataError:
        row = rows.sort(*parts).row(0, named=True)
        return DataError(
            f"{describe_row(row, parts)}: {row['n_values']} different values of the column that says how hard "
            "the problem is, expected one. Hint: average it, or name the runs in by=(...)."
        )

    differs = (pl.col("n_values") > 1) & is_given
    return raise_where(pl.struct(differs.alias("broken"), *parts, "n_values"), describe)
