"""The curve: accuracy, its interval and what was left out, at each budget."""

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
    describe_row,
    mean_interval,
    raise_if_repeated,
    value_and_severity,
)

__all__ = ["scaling_curve"]

_CURVE_COLUMNS: Final = (
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
)

_FEW: Final = 5.0
"""Below this sum of values, or of what they lack to 1, their spread says too little."""

_READ_COLUMNS: Final = ("problem_id", "budget", "selector", "reduction", "value", "status")


def scaling_curve(
    problems: FrameT,
    /,
    *,
    by: ColumnNames = (),
    replicates: ColumnNames = (),
    include: ProblemSet = "common",
    confidence_level: float = 0.95,
) -> FrameT:
    r"""Average problems into one row per budget, with an interval and the counts left out.

    Parameters
    ----------
    problems
        `problems`, one row per (by, replicates, `problem_id`, `budget`, `selector`, `reduction`),
        with `value` (Float64 in [0, 1], null: none) and `status`, as `select_answers` makes it.
    by
        Columns that get a curve each, such as the run or the model.
    replicates
        Columns that number repetitions of one run, such as the seed: averaged per problem before
        anything else, since the problem is the unit.
    include
        "common" averages the same problems at every budget: those with status "ok" throughout.
        "available" averages, at each budget, those with status "ok" there.
    confidence_level
        Coverage of the interval, in (0, 1).

    Returns
    -------
    FrameT
        `curve`, one row per (by, `selector`, `reduction`, `budget`, `subsets`), sorted:

        - `budget_unit` (String): "attempts", unless the column is already there;
        - `accuracy` (Float64 in [0, 1]): mean of `value` over problems, null without one;
        - `standard_error` (Float64): of that mean, over problems, null below two;
        - `ci_low`, `ci_high` (Float64 in [0, 1]): Wilson's interval where all values of the curve
          are 0 or 1, or where they add up to less than 5 or to within 5 of their number; else
          Student's t over problems, clipped; null below two problems;
        - `n_problems` (UInt32): problems averaged;
        - `n_short`, `n_unscored`, `n_undefined`, `n_ungraded` (UInt32): problems left out, each
          under its worst status (over all budgets where `problems` is "common"); one that has no
          row at a budget is short there.

    Raises
    ------
    ColumnsError
        At once, when a column is missing.
    ParameterError
        At once, when a parameter is impossible, a column is named in both `by` and `replicates`, or
        in either that the result has of its own.
    DataError
        On collection, when a problem has several rows on one curve at one budget: a run, model or
        seed is named neither in `by` nor in `replicates`.

    Notes
    -----
    With :math:`Q` problems of value :math:`x_q`, the standard error is
    :math:`\mathrm{sd}(x_q) / \sqrt{Q}` with one delta degree of freedom. Sampling noise within a
    problem is part of the spread of :math:`x_q` and is not added again.

    Fractional values near one end, such as pass@k of easy problems, are spread by a few problems
    alone, which a sample may not hold: Student's t covered 33 % in place of 95 % there. No value in
    [0, 1] varies more than a 0 or 1 of the same mean, so that Wilson's interval with the sum of
    values as the count is then too wide rather than too narrow.

    References
    ----------
    Miller, "Adding Error Bars to Evals", arXiv:2411.00640, section 2. Wilson, "Probable Inference,
    the Law of Succession, and Statistical Inference", JASA 22 (1927), 209-212.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> trajectories = pl.DataFrame({
    ...     "problem_id": ["a", "a", "b", "b"],
    ...     "attempt": [0, 1, 0, 1],
    ...     "answer_key": ["1", "2", "3", "4"],
    ...     "is_correct": [True, False, False, True],
    ... })
    >>> problems = tts.select_answers(trajectories, selectors=["oracle"], budgets=[1, 2])
    >>> curve = tts.scaling_curve(problems)
    >>> curve.select("selector", "budget", "accuracy", "n_problems")
    shape: (2, 4)
    ┌──────────┬────────┬──────────┬────────────┐
    │ selector ┆ budget ┆ accuracy ┆ n_problems │
    │ ---      ┆ ---    ┆ ---      ┆ ---        │
    │ str      ┆ u32    ┆ f64      ┆ u32        │
    ╞══════════╪════════╪══════════╪════════════╡
    │ oracle   ┆ 1      ┆ 0.5      ┆ 2          │
    │ oracle   ┆ 2      ┆ 1.0      ┆ 2          │
    └──────────┴────────┴──────────┴────────────┘
    """
    check_frame(problems, "problems")
    check_choice(include, "include", get_args(ProblemSet))
    check_fraction(confidence_level, "confidence_level")
    taken = {*_READ_COLUMNS, *_CURVE_COLUMNS}
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
        hint="tts.select_answers(trajectories, budgets=[...]) makes this table.",
    )
    constants = {
        name: value
        for name, value in (("subsets", "prefix"), ("budget_unit", "attempts"))
        if name not in schema
    }
    # The caller's names come back at the end, so that none collides with a name used on the way.
    keys: dict[str, str] = {f"key{i}": name for i, name in enumerate(groups)}
    seeds: dict[str, str] = {f"seed{i}": name for i, name in enumerate(repeats)}
    optional: list[str] = [name for name in ("subsets", "budget_unit") if name in schema]
    line: dict[str, str] = keys | {name: name for name in ("selector", "reduction", *optional)}

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        renamed = line | seeds | {name: name for name in _READ_COLUMNS}
        rows = lazy.select(pl.col(name).alias(key) for key, name in renamed.items())
        averaged = _averaged_over_replicates(rows, line, [*seeds], include)
        curve = _average_problems(_graded(averaged, line, include), [*line], confidence_level)
        if include == "common":
            curve = curve.filter(_same_problems(line))
        return (
            curve
            .with_columns(**{name: pl.lit(value) for name, value in constants.items()})
            .sort(*keys, "selector", "reduction", "budget", "subsets")
            .select(*[pl.col(key).alias(name) for key, name in keys.items()], *_CURVE_COLUMNS)
        )

    return run_plan(problems, plan)


def _averaged_over_replicates(
    lazy: pl.LazyFrame, line: Mapping[str, str], repeats: Sequence[str], include: ProblemSet
) -> pl.LazyFrame:
    """Return `value` and `severity` of each problem at each budget of each curve."""
    unit = [*line, "problem_id", "budget"]
    rows = lazy.select(*unit, *repeats, **value_and_severity())
    if not repeats:
        return rows
    averaged = rows.group_by(unit).agg(
        pl.len().alias("n_rows"),
        pl.struct(repeats).n_unique().alias("n_expected"),
        pl.col("value").mean(),
        # One replicate that is left out leaves the problem out, unless any will do.
        pl.col("severity").max() if include == "common" else pl.col("severity").min(),
    )
    return averaged.filter(
        raise_if_repeated({**line, "problem_id": "problem_id", "budget": "budget"})
    )


def _graded(rows: pl.LazyFrame, line: Mapping[str, str], include: ProblemSet) -> pl.LazyFrame:
    """Check that a problem has one row per budget, and judge it over its whole curve."""
    unit = [*line, "problem_id"]
    severity = pl.col("severity")
    of_problem = (
        rows
        .group_by(unit)
        .agg(
            pl.len().alias("n_rows"),
            pl.col("budget").n_unique().alias("n_expected"),
            pl.col("budget", "value"),
            severity.max() if include == "common" else severity,
        )
        .filter(raise_if_repeated({**line, "problem_id": "problem_id"}))
        .with_columns(n_units=pl.len().over([*line]))
    )
    if include == "available":
        return of_problem.explode("budget", "value", "severity", empty_as_null=False)
    most = pl.col("n_rows").max().over([*line])
    worst = pl.when(pl.col("n_rows") < most).then(SEVERITY["short"]).otherwise(severity)
    return of_problem.with_columns(severity=worst).explode("budget", "value", empty_as_null=False)


def _same_problems(line: Mapping[str, str]) -> pl.Expr:
    """Build the filter that raises where no set of problems has a row at every budget."""
    n_problems = pl.col("n_problems")
    differs = (n_problems != n_problems.max().over([*line])).alias("broken")
    described = pl.struct(differs, *line, "budget", "n_problems")
    return raise_where(described, lambda rows: _uncommon(rows, line))


def _uncommon(rows: pl.DataFrame, line: Mapping[str, str]) -> DataError:
    """Describe the first budget that has fewer problems than the others of its curve."""
    row = rows.sort([*line, "budget"]).row(0, named=True)
    return DataError(
        f"{describe_row(row, line)}: {row['n_problems']} problems at budget {row['budget']} and more at others, "
        "although each has the same number of budgets. Hint: select answers for all problems at "
        "the same budgets, or average what there is with include='available'."
    )


def _average_problems(
    units: pl.LazyFrame, line: Sequence[str], confidence_level: float
) -> pl.LazyFrame:
    """Average the problems that are left in, and count the others by status."""
    severity = pl.col("severity")
    value = pl.when(severity == 0).then("value")
    n_problems = value.count().cast(pl.Int64)
    averaged = (
        units
        .group_by(*line, "budget")
        .agg(
            value.mean().alias("accuracy"),
            value.std(ddof=1).alias("deviation"),
            value.sum().alias("total"),
            ((value != 0) & (value != 1)).any().alias("is_fractional"),
            n_problems.alias("n_problems"),
            *[
                (severity == level).sum().cast(pl.UInt32).alias(f"n_{status}")
                for status, level in SEVERITY.items()
                if level
            ],
            (pl.col("n_units").first() - pl.len()).cast(pl.UInt32).alias("n_absent"),
        )
        .with_columns(
            pl.col("n_short") + pl.col("n_absent"),
            standard_error=pl.col("deviation") / pl.col("n_problems").cast(pl.Float64).sqrt(),
            is_fractional=pl.col("is_fractional").any().over(line),
        )
    )
    interval = mean_interval("n_problems", confidence_level)
    return averaged.with_columns(
        pl.when(pl.col("n_problems") > 1).then(interval).struct.field("ci_low", "ci_high"),
        pl.col("n_problems").cast(pl.UInt32),
    )
