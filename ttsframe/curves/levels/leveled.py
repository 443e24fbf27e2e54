"""Accuracy by level of difficulty, judged on attempts that did not decide the level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, get_args

import polars as pl

from ttsframe._checks import check_choice, check_fraction, check_frame, check_names
from ttsframe._exprs import raise_where, run_plan
from ttsframe._typing import ColumnNames, FrameT, ProblemSet
from ttsframe.errors import DataError, ParameterError
from ttsframe.schema import require_columns
from ttsframe.statistics.problem_values import (
    SEVERITY,
    mean_interval,
    raise_if_repeated,
    value_and_severity,
)

__all__ = ["level_curve"]

_CURVE_COLUMNS: Final = (
    "level",
    "selector",
    "reduction",
    "budget",
    "budget_unit",
    "subsets",
    "accuracy",
    "standard_error",
    "ci_low",
    "ci_high",
    "n_problems",
    "n_short",
    "n_unscored",
    "n_undefined",
    "n_ungraded",
    "basis",
    "caveat",
)

_READ_COLUMNS: Final = ("problem_id", "budget", "selector", "reduction", "value", "status")

_COUNTS: Final = ("n_problems", *[f"n_{status}" for status in SEVERITY if SEVERITY[status]])


def level_curve(
    problems: FrameT,
    /,
    *,
    levels: pl.DataFrame | pl.LazyFrame,
    by: ColumnNames = (),
    replicates: ColumnNames = (),
    include: ProblemSet = "common",
    confidence_level: float = 0.95,
) -> FrameT:
    r"""Average problems into one row per level of difficulty and budget.

    With cross-fitted levels each half of the attempts is averaged under the levels that the other
    half says, and then both: a problem near an edge may well be in two levels, once per half.

    Parameters
    ----------
    problems
        `problems`, as `select_answers` or `expected_accuracy` makes it; with cross-fitted levels
        from halved attempts, with the column `fold`: ``select_answers(halve_attempts(run),
        by="fold")``.
    levels
        Table that `difficulty_levels` makes, of either kind of frame; columns of `by` and
        `replicates` that it has are matched.
    by
        Columns that get a curve each, such as the run or the model.
    replicates
        Columns that number repetitions of one run, such as the seed: averaged per problem first.
    include
        "common" averages the same problems at every budget: those with status "ok" throughout.
        "available" averages, at each budget, those with status "ok" there.
    confidence_level
        Coverage of the interval, in (0, 1).

    Returns
    -------
    FrameT
        `curve`, one row per (by, `level`, `selector`, `reduction`, `budget`, `subsets`), sorted:

        - `level` (UInt32): each from 1 to the number of levels, also those that no problem is in;
          null for problems of unknown difficulty, last;
        - `accuracy` (Float64 in [0, 1]): mean of `value`, over halves the mean of their means; null
          without a problem;
        - `standard_error` (Float64): of that mean, over problems, null below two;
        - `ci_low`, `ci_high` (Float64 in [0, 1]): by the rules of `scaling_curve`; with halves
          Student's t, or Wilson's where values add up to little or nearly all;
        - `n_problems` (UInt32): different problems averaged;
        - `n_short`, `n_unscored`, `n_undefined`, `n_ungraded` (UInt32): different problems left
          out, in one half or in both, each under its worst status there;
        - `budget_unit` (String): "attempts", unless the column is already there;
        - `basis` (String): what the levels were estimated on;
        - `caveat` (String): the weightiest that the level of a problem averaged here has, such as
          "few_attempts"; null: none.

    Raises
    ------
    ColumnsError
        At once, when a column is missing in either table.
    ParameterError
        At once, when a parameter is impossible, a column is named in both `by` and `replicates`, or
        in either that the result has of its own.
    DataError
        On collection, when levels are cross-fitted and `problems` is not from halved attempts, and
        when a problem has several rows on one curve at one budget.

    See Also
    --------
    scaling_curve : The same over all levels.

    Notes
    -----
    Half :math:`f` has :math:`N_f` problems in the level, of values :math:`x_{qf}` and mean
    :math:`m_f`. Which problems these are depends on the other half alone, so each mean is unbiased
    for problems that look so hard, and so is the mean :math:`m` of the :math:`F` of them. With
    :math:`u_q = \sum_f (x_{qf} - m_f) / (F N_f)` of :math:`Q` different problems the standard error
    is :math:`\sqrt{Q / (Q - 1) \sum_q u_q^2}`, that is, both halves of a problem are one unit.

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
    check_frame(problems, "problems")
    check_frame(levels, "levels")
    check_choice(include, "include", get_args(ProblemSet))
    check_fraction(confidence_level, "confidence_level")
    taken = {*_READ_COLUMNS, *_CURVE_COLUMNS, "fold", "n_levels"}
    groups: tuple[str, ...] = check_names(by, "by", taken=taken)
    repeats: tuple[str, ...] = check_names(replicates, "replicates", taken=taken)
    if both := set(groups) & set(repeats):
        raise ParameterError(
            f"by and replicates both name {sorted(both)}; a column either gets curves of its own "
            "(by) or is averaged over (replicates)."
        )
    schema: pl.Schema = require_columns(
        problems,
        [*groups, *repeats, *_READ_COLUMNS],
        where="problems",
        hint="tts.select_answers(tts.curves.halve_attempts(run), budgets=[...], by='fold') makes it.",
    )
    of_levels: pl.Schema = require_columns(
        levels,
        ["problem_id", "fold", "level", "n_levels", "basis"],
        where="levels",
        hint="tts.difficulty_levels(trajectories) makes this table.",
    )
    # The caller's names come back at the end, so that none collides with a name used on the way.
    keys: dict[str, str] = {f"key{i}": name for i, name in enumerate(groups)}
    seeds: dict[str, str] = {f"seed{i}": name for i, name in enumerate(repeats)}
    own: list[str] = [
        name for name in ("selector", "reduction", "subsets", "budget_unit") if name in schema
    ]
    line: dict[str, str] = keys | {name: name for name in own}
    shared: dict[str, str] = {
        key: name for key, name in (keys | seeds).items() if name in of_levels
    }
    constants: dict[str, pl.Expr] = {
        name: pl.lit(value)
        for name, value in (("subsets", "prefix"), ("budget_unit", "attempts"))
        if name not in schema
    }

    no_text = pl.lit(None, pl.String)

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        rows = lazy.select(
            *[pl.col(name).alias(key) for key, name in (line | seeds).items()],
            *["problem_id", "budget"],
            **value_and_severity(),
            fold=pl.col("fold").cast(pl.UInt32) if "fold" in schema else pl.lit(None, pl.UInt32),
        )
        named = levels.lazy().select(
            *[pl.col(name).alias(key) for key, name in shared.items()],
            *["problem_id", "level"],
            level_fold=pl.col("fold"),
            caveat=pl.col("caveat").cast(pl.String) if "caveat" in of_levels else no_text,
        )
        units = _units(_with_levels(rows, named, [*shared]), line, [*seeds], include)
        stats = _averages(units, [*line], confidence_level)
        about = levels.lazy().select(pl.col("n_levels", "basis").max())
        return (
            _with_empty_levels(stats, about, [*line, "budget"])
            .with_columns(**constants)
            .sort(*keys, "level", "selector", "reduction", "budget", "subsets", nulls_last=True)
            .select(*[pl.col(key).alias(name) for key, name in keys.items()], *_CURVE_COLUMNS)
        )

    return run_plan(problems, plan)


def _with_levels(rows: pl.LazyFrame, levels: pl.LazyFrame, shared: Sequence[str]) -> pl.LazyFrame:
    """Give each row the level of its problem that is for its half."""
    joined = rows.join(levels, on=[*shared, "problem_id"], how="left", nulls_equal=True)
    fold, for_fold = pl.col("fold"), pl.col("level_fold")
    is_whole = for_fold.is_not_null() & fold.is_null()
    described = pl.struct(is_whole.alias("broken"), "problem_id")
    return joined.filter(
        raise_where(described, _not_halved), for_fold.is_null() | (for_fold == fold)
    ).with_columns(pl.col("level").cast(pl.UInt32))


def _units(
    rows: pl.LazyFrame, line: Mapping[str, str], seeds: Sequence[str], include: ProblemSet
) -> pl.LazyFrame:
    """Return `value` and `severity` of each problem and half at each budget of each curve."""
    place = {**line, "fold": "fold", "problem_id": "problem_id"}
    unit = [*place, "level"]
    severity = pl.col("severity")
    if seeds:
        rows = (
            rows
            .group_by(*unit, "budget")
            .agg(
                pl.len().alias("n_rows"),
                pl.struct(seeds).n_unique().alias("n_expected"),
                pl.col("value").mean(),
                pl.col("caveat").max(),
                severity.max() if include == "common" else severity.min(),
            )
            .filter(raise_if_repeated({**place, "budget": "budget"}))
        )
    of_problem = (
        rows
        .group_by(unit)
        .agg(
            pl.len().alias("n_rows"),
            pl.col("budget").n_unique().alias("n_expected"),
            pl.col("budget", "value"),
            # In the order of letters the weightier comes last.
            pl.col("caveat").max(),
            severity.max() if include == "common" else severity,
        )
        .filter(raise_if_repeated(place))
        .with_columns(n_units=pl.col("problem_id").n_unique().over(*line, "level"))
    )
    if include == "available":
        return of_problem.explode("budget", "value", "severity", empty_as_null=False)
    most = pl.col("n_rows").max().over([*line])
    worst = pl.when(pl.col("n_rows") < most).then(SEVERITY["short"]).otherwise(severity)
    return of_problem.with_columns(severity=worst).explode("budget", "value", empty_as_null=False)


def _averages(units: pl.LazyFrame, line: Sequence[str], confidence_level: float) -> pl.LazyFrame:
    """Average halves and then both, with an interval, and count problems left out by status."""
    point = [*line, "level", "budget"]
    severity, value, problem = pl.col("severity"), pl.col("value"), pl.col("problem_id")
    half = pl.col("value").count().over(*point, "fold").cast(pl.Float64)
    n_halves = pl.col("fold").filter(pl.col("value").is_not_null()).n_unique().over(point)
    per_problem = (
        units
        .with_columns(value=pl.when(severity == 0).then("value"))
        .with_columns(share=1.0 / (half * n_halves), n_halves=n_halves)
        .with_columns(pull=pl.col("share") * (value - value.mean().over(*point, "fold")))
        .group_by(*point, "problem_id")
        .agg(
            (pl.col("share") * value).sum().alias("part"),
            pl.col("pull").sum(),
            pl.col("n_halves").max(),
            value.count().alias("n_values"),
            ((value != 0) & (value != 1)).any().alias("is_fractional"),
            pl.col("n_units", "caveat").max(),
            *[(severity == rank).any().alias(f"n_{s}") for s, rank in SEVERITY.items() if rank],
        )
    )
    is_in = pl.col("n_values") > 0
    # Shares of one may add up to a rounding more; costs, which are averaged so too, to any number.
    total = pl.col("part").sum()
    accuracy = pl.when((total - 1.0).abs() < 1e-12).then(1.0).otherwise(total)
    n_problems = pl.col("n_problems").cast(pl.Float64)
    averaged = (
        per_problem
        .group_by(point)
        .agg(
            pl.when(is_in.any()).then(accuracy).alias("accuracy"),
            pl.col("pull").pow(2).sum(),
            is_in.sum().cast(pl.UInt32).alias("n_problems"),
            pl.col("caveat").filter(is_in).max(),
            (pl.col("n_values").sum() / pl.col("n_halves").max()).alias("n_each"),
            ((pl.col("n_halves") > 1) | pl.col("is_fractional")).any().alias("is_fractional"),
            (pl.col("n_units").max() - problem.n_unique()).cast(pl.UInt32).alias("n_absent"),
            *[pl.col(name).sum().cast(pl.UInt32) for name in _COUNTS[1:]],
        )
        .with_columns(
            pl.col("n_short") + pl.col("n_absent"),
            total=pl.col("accuracy") * pl.col("n_each"),
            is_fractional=pl.col("is_fractional").any().over(*line, "level"),
            standard_error=pl.when(n_problems > 1).then(
                (n_problems / (n_problems - 1.0) * pl.col("pull")).sqrt()
            ),
        )
    )
    interval = mean_interval("n_each", confidence_level)
    return averaged.with_columns(
        pl.when(pl.col("n_problems") > 1).then(interval).struct.field("ci_low", "ci_high")
    )


def _with_empty_levels(
    stats: pl.LazyFrame, about: pl.LazyFrame, place: Sequence[str]
) -> pl.LazyFrame:
    """Add a row without problems for each level that no problem is in."""
    every = pl.int_ranges(1, pl.col("n_levels").cast(pl.Int64) + 1)
    grid = (
        stats
        .select(place)
        .unique()
        .join(about.select(level=every), how="cross")
        .explode("level", empty_as_null=False)
        .with_columns(pl.col("level").cast(pl.UInt32))
    )
    return (
        grid
        .join(stats, on=[*place, "level"], how="full", coalesce=True, nulls_equal=True)
        .with_columns(pl.col(_COUNTS).fill_null(0))
        .join(about.select("basis"), how="cross")
    )


def _not_halved(rows: pl.DataFrame) -> DataError:
    """Describe answers that were picked among the attempts that decided the level."""
    problem = rows.sort("problem_id")["problem_id"][0]
    return DataError(
        f"problem_id {problem!r}: levels are cross-fitted, each for one half of the attempts, and the "
        "answers were picked among both. Hint: tts.select_answers(tts.curves.halve_attempts(run), "
        "by='fold', ...), or levels from another run: tts.difficulty_levels(run, reference=...)."
    )
