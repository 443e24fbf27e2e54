"""The scaling curve: accuracy, its interval and the problems left out, at each budget."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import get_args

import polars as pl

from ttsframe._checks import check_choice, check_fraction, check_names
from ttsframe._exprs import from_safe, run_plan
from ttsframe._typing import ColumnNames, FrameT, ProblemSet
from ttsframe._wording import count_left_out, counted, is_minority, left_out
from ttsframe.curves.lines import LEFT_OUT, CurveLines, curve_lines, refuse_where
from ttsframe.errors import FewProblemsWarning
from ttsframe.schema import CURVE_SCHEMA
from ttsframe.statistics.problem_values import describe_row, mean_interval

__all__ = ["scaling_curve"]


def scaling_curve(
    problems: FrameT,
    /,
    *,
    by: ColumnNames = (),
    replicates: ColumnNames = (),
    include: ProblemSet = "common",
    confidence_level: float = 0.95,
) -> FrameT:
    r"""Average problems into one row per budget, with an interval and the number left out.

    Parameters
    ----------
    problems
        `problems`, one row per (by, replicates, `problem_id`, `budget`, `selector`, `reduction`),
        with `value` (Float64 in [0, 1] or null) and `status`, as `select_answers` returns it.
    by
        Columns that define separate curves, for example the run or the model.
    replicates
        Columns that number repetitions of one run, for example the seed. Repetitions are averaged
        per problem before anything else, because the problem is the unit.
    include
        "common" averages the same problems at every budget: those with status "ok" at all budgets.
        "available" averages, at each budget, the problems with status "ok" at that budget. A budget
        that no problem reaches is left out of what "common" asks for: its row is null, with every
        problem in `n_short`. Where "common" averages fewer than half of the problems of a DataFrame,
        a `ttsframe.errors.FewProblemsWarning` says so; a LazyFrame is not collected to find out.
    confidence_level
        Coverage of the interval, in (0, 1).

    Returns
    -------
    FrameT
        `curve`, one row per (by, `selector`, `reduction`, `budget`, `subsets`), sorted:

        - `budget_unit` (String): that of `problems`, "attempts" if it has none;
        - `accuracy` (Float64 in [0, 1]): mean of `value` over problems, null if there are none;
        - `standard_error` (Float64): of that mean, over problems, null below two problems;
        - `ci_low`, `ci_high` (Float64 in [0, 1]): Wilson's interval where all values of the curve
          are 0 or 1, where they add up to less than 5, and where the sum is within 5 of their
          number; otherwise Student's t over problems, clipped; null below two problems;
        - `n_problems` (UInt32): problems averaged;
        - `n_short`, `n_unscored`, `n_undefined`, `n_ungraded` (UInt32): problems left out, each
          counted under its worst status (over all budgets if `include` is "common"). A problem
          without a row at a budget is short at that budget.

    Raises
    ------
    ColumnsError
        At once, when a column is missing.
    ParameterError
        At once, when a parameter is out of range, when `by` and `replicates` name the same column,
        or when either names a column that the result has of its own.
    DataError
        On collection, when a problem has several rows on one curve at one budget, because `by` and
        `replicates` do not name the column of the run, model or seed.

    Notes
    -----
    With :math:`Q` problems of value :math:`x_q`, the standard error is
    :math:`\mathrm{sd}(x_q) / \sqrt{Q}` with one delta degree of freedom. Sampling noise within a
    problem is part of the spread of :math:`x_q` and is not added again.

    The spread of fractional values near 0 or 1, for example pass@k of easy problems, comes from a
    few problems that a sample may miss: Student's t covered 33 % instead of 95 % in that case. No
    value in [0, 1] varies more than a 0 or 1 with the same mean, so Wilson's interval with the sum
    of values as the count is too wide rather than too narrow.

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
    curve = scaling_curve_with(
        problems,
        by=by,
        replicates=replicates,
        include=include,
        confidence_level=confidence_level,
    )
    if include == "common":
        _warn_of_few_problems(curve, check_names(by, "by"))
    return curve


def _warn_of_few_problems(curve: pl.DataFrame | pl.LazyFrame, by: Sequence[str]) -> None:
    """Warn of the line that averages the smallest share of its problems, if that is below a half."""
    if isinstance(curve, pl.LazyFrame):
        return
    few = curve.filter(is_minority()).with_columns(count_left_out(), reasons=left_out())
    if few.is_empty():
        return
    row = few.sort(pl.col("n_problems") / pl.col("n_left_out")).row(0, named=True)
    line = describe_row(row, {name: name for name in (*by, "selector", "reduction")})
    n_problems, n_left_out = row["n_problems"], row["n_left_out"]
    warnings.warn(
        f"{line}: averages {n_problems:,} of {counted([n_problems + n_left_out], 'problem')}, fewer than "
        f"half (left out: {row['reasons']}). With include='common' a problem counts only if it has a "
        "result at every budget. Hint: "
        + ("leave out the budgets that few problems have, or " if row["n_short"] else "")
        + "average what each budget has with include='available'.",
        FewProblemsWarning,
        stacklevel=3,
    )


def scaling_curve_with(
    problems: FrameT,
    /,
    *,
    by: ColumnNames,
    replicates: ColumnNames,
    include: ProblemSet,
    confidence_level: float,
    also: Mapping[str, pl.Expr] = MappingProxyType({}),
) -> FrameT:
    """Make a scaling curve, with the means of further values over the same problems."""
    check_averages(include, confidence_level)
    lines: CurveLines = curve_lines(problems, by=by, replicates=replicates)

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        rows = lines.select(lazy, **also)
        return (
            average_lines(lines, rows, include, confidence_level, also=[*also])
            .with_columns(**lines.defaults)
            .sort(*lines.groups, "selector", "reduction", "budget", "subsets")
            .select(*from_safe(lines.groups), *CURVE_SCHEMA, *also)
        )

    return run_plan(problems, plan)


def check_averages(include: ProblemSet, confidence_level: float) -> None:
    """Check the parameters of `average_lines`."""
    check_choice(include, "include", get_args(ProblemSet))
    check_fraction(confidence_level, "confidence_level")


def average_lines(
    lines: CurveLines,
    rows: pl.LazyFrame,
    include: ProblemSet,
    confidence_level: float,
    also: Sequence[str] = (),
) -> pl.LazyFrame:
    """Average the rows of `CurveLines.select` on each line, and the columns `also` over the same problems."""
    line = lines.columns
    units = lines.units(rows, include, n_units=pl.len().over([*line]), also=also)
    curve = _average(units, [*line], confidence_level, also)
    return curve.filter(_same_problems(line)) if include == "common" else curve


def _same_problems(line: Mapping[str, str]) -> pl.Expr:
    """Build the filter that raises where no set of problems has a row at every budget."""
    n_problems = pl.col("n_problems")
    n_most = n_problems.max().over([*line]).alias("n_most")
    others = pl.sum_horizontal([name for name in LEFT_OUT if name != "n_short"])
    is_unreached = (n_problems == 0) & (others == 0)
    return refuse_where(
        (n_problems != n_most) & ~is_unreached,
        line,
        "the number of problems with rows is {n_problems} at budget {budget} and {n_most} at another. "
        "Hint: select answers for all problems at the same budgets, or average the problems "
        "available at each budget with include='available'.",
        "budget",
        "n_problems",
        n_most,
    )


def _average(
    units: pl.LazyFrame, line: Sequence[str], confidence_level: float, also: Sequence[str]
) -> pl.LazyFrame:
    """Average the problems that count, and count the others by status."""
    severity = pl.col("severity")
    value = pl.when(severity == 0).then("value")
    # Sums are of lists in ascending order: those of a group_by differ in the last bits from run to run.
    values = pl.col("values").list
    others = [pl.when(severity == 0).then(name).sort().alias(name) for name in also]
    averaged = (
        units
        .group_by(*line, "budget")
        .agg(
            value.sort().alias("values"),
            *others,
            ((value != 0) & (value != 1)).any().alias("is_fractional"),
            value.count().cast(pl.Int64).alias("n_problems"),
            *[
                (severity == rank).sum().cast(pl.UInt32).alias(name)
                for name, rank in LEFT_OUT.items()
            ],
            (pl.col("n_units").first() - pl.len()).cast(pl.UInt32).alias("n_absent"),
        )
        .with_columns(
            pl.col("n_short") + pl.col("n_absent"),
            accuracy=values.mean(),
            standard_error=values.std(ddof=1) / pl.col("n_problems").cast(pl.Float64).sqrt(),
            **{name: pl.col(name).list.mean() for name in also},
            total=values.sum(),
            is_fractional=pl.col("is_fractional").any().over(line),
        )
    )
    interval = mean_interval("n_problems", confidence_level)
    return averaged.drop("values").with_columns(
        pl.when(pl.col("n_problems") > 1).then(interval).struct.field("ci_low", "ci_high"),
        pl.col("n_problems").cast(pl.UInt32),
    )
