"""The scaling curve: accuracy, its interval and the problems left out, at each budget."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import get_args

import polars as pl

from ttsframe._checks import check_choice, check_fraction, check_frame, check_names
from ttsframe._exprs import from_safe, run_plan
from ttsframe._typing import ColumnNames, FrameT, IntervalTarget, ProblemSet
from ttsframe._wording import count_left_out, counted, is_minority, left_out
from ttsframe.curves.lines import LEFT_OUT, CurveLines, curve_lines, refuse_where
from ttsframe.curves.means import average_points
from ttsframe.errors import FewProblemsWarning, ParameterError
from ttsframe.schema import CURVE_SCHEMA
from ttsframe.statistics.problem_values import describe_row
from ttsframe.statistics.these_problems import ADDED, for_these_problems, sampling_columns

__all__ = ["scaling_curve"]


def scaling_curve(
    problems: FrameT,
    /,
    *,
    by: ColumnNames = (),
    replicates: ColumnNames = (),
    cluster: str | None = None,
    include: ProblemSet = "common",
    confidence_level: float = 0.95,
    target: IntervalTarget = "new_problems",
) -> FrameT:
    r"""Average problems into one row per budget, with an interval and the number left out.

    Parameters
    ----------
    problems
        `problems`, one row per (by, replicates, `problem_id`, `budget`, `selector`, `reduction`),
        with `value` (Float64 in [0, 1] or null) and `status`, as `select_answers` returns it; or the
        table of an aggregator such as `PassAtK`, whose rows all count where they have a value.
    by
        Columns that define separate curves, for example the run or the model.
    replicates
        Columns that number repetitions of one run, for example the seed. Repetitions are averaged
        per problem before anything else, because the problem is the unit.
    cluster
        Column that groups problems that were drawn together, such as the text that they ask about;
        clusters are then the units of the standard error and of the interval. None: problems are
        independent.
    include
        "common" averages the same problems at every budget: those with status "ok" at all budgets.
        "available" averages, at each budget, the problems with status "ok" at that budget. A budget
        that no problem reaches is left out of what "common" asks for: its row is null, with every
        problem in `n_short`. Where "common" averages fewer than half of the problems of a DataFrame,
        a `ttsframe.errors.FewProblemsWarning` says so; a LazyFrame is not collected to find out.
    confidence_level
        Coverage of the interval, in (0, 1).
    target
        Whose uncertainty the interval shows. "new_problems": that of other problems of the same
        kind. "these_problems": that of other attempts at the same problems, which is much smaller;
        it is known for pass@k (`oracle`) over all subsets, up to half of the attempts, and for every
        selector over all subsets at a budget of 1, where a value is a mean over attempts. Elsewhere
        it is null.

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
          without a row at a budget is short at that budget;
        - only for "these_problems": `share_from_samples` (Float64), the share of the variance for new
          problems that is due to sampling attempts, the rest being differences between problems;
          `interval_for` (String), the target; `reason` (String), why standard error and interval are
          null, null if they are known.
        - `n_clusters` (UInt32), `df` (Float64): number of clusters and degrees of freedom of the
          standard error; only with `cluster`.

    Raises
    ------
    ColumnsError
        At once, when a column is missing.
    ParameterError
        At once, when a parameter is out of range, when `replicates` are averaged for
        "these_problems", when `by` and `replicates` name the same column,
        or when either names a column that the result has of its own.
    DataError
        On collection, when a problem has several rows on one curve at one budget, because `by` and
        `replicates` do not name the column of the run, model or seed.

    Notes
    -----
    With :math:`Q` problems of value :math:`x_q`, the standard error is
    :math:`\mathrm{sd}(x_q) / \sqrt{Q}` with one delta degree of freedom. Sampling noise within a
    problem is part of the spread of :math:`x_q` and is not added again.

    With clusters, standard error and degrees of freedom are those of `standard_error` and
    `degrees_of_freedom`. Values of 0 and 1, and fractions of which few are right (or wrong), get
    Wilson's interval of :math:`n / e` values with the quantile of Student's t in place of the normal
    one. The design effect :math:`e` is :math:`d = \max(1, \mathrm{SE}^2 n / (m (1 - m)))` for a mean
    :math:`m`, plus :math:`0.3 / (0.3 + s)` of what it lacks to :math:`n \sum_g w_g^2`, the design effect of clusters that
    agree within themselves, with :math:`s = \min(m, 1 - m) \, n / d`: where few are right, few clusters
    hold them, and :math:`d` alone covered 88 to 92 % (`benchmarks/results/cluster_coverage.txt`).

    The spread of fractional values near 0 or 1, for example pass@k of easy problems, comes from a
    few problems that a sample may miss: Student's t covered 33 % instead of 95 % in that case. No
    value in [0, 1] varies more than a 0 or 1 with the same mean, so Wilson's interval with the sum
    of values as the count is too wide rather than too narrow.

    For these problems, with :math:`c_q` of :math:`n_q` attempts correct and
    :math:`\hat p_k(n, c)` the unbiased pass@k, the jackknife's variance over other attempts is

    .. math::

        \mathrm{SE}^2 = \frac{1}{Q^2} \sum_q \frac{n_q - 1}{n_q} \frac{c_q (n_q - c_q)}{n_q}
        \bigl( \hat p_k(n_q - 1, c_q) - \hat p_k(n_q - 1, c_q - 1) \bigr)^2

    which is :math:`p (1 - p) / (n - 1)` per problem at k = 1. The interval is
    :math:`\pm z \sqrt{\mathrm{SE}^2 + z^2 / (4 N^2)}` with N the sum of :math:`n_q / k`, so that it has
    a width where all attempts are right, or all wrong.

    References
    ----------
    Miller, "Adding Error Bars to Evals", arXiv:2411.00640, sections 2 and 3. Wang, "Measuring all the
    noises of LLM evals", arXiv:2512.21326, for the split into problems and samples. Efron and Stein,
    "The jackknife estimate of variance", Annals of Statistics 9 (1981), 586-596. Wilson, "Probable Inference,
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

    Whose uncertainty: new problems, or other attempts at these.

    >>> run = tts.simulate_trajectories(30, 16, seed=0, keys=True)
    >>> passes = tts.expected_accuracy(run, selectors="oracle", budgets=[1, 4])
    >>> for target in ("new_problems", "these_problems"):
    ...     width = pl.col("ci_high") - pl.col("ci_low")
    ...     tts.scaling_curve(passes, target=target).select(width.round(3)).to_series().to_list()
    [0.217, 0.247]
    [0.075, 0.091]
    """
    check_averages(include, confidence_level)
    check_choice(target, "target", get_args(IntervalTarget))
    is_inside = target == "these_problems"
    problems = with_problem_columns(problems)
    lines: CurveLines = curve_lines(
        problems, by=by, replicates=replicates, cluster=cluster, taken=ADDED if is_inside else ()
    )
    if is_inside and cluster is not None:
        raise ParameterError(
            f"cluster == {cluster!r} describes how problems were drawn, which target='these_problems' takes as "
            "fixed. Hint: leave out one of the two."
        )
    if is_inside and lines.seeds:
        raise ParameterError(
            "replicates are averaged, which target='these_problems' cannot read. Hint: number the "
            "attempts of all replicates as one run, and average their subsets with "
            "tts.expected_accuracy."
        )
    more: dict[str, pl.Expr] = sampling_columns(lines.schema) if is_inside else {}

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        rows = lines.select(lazy, **more)
        curve = average_lines(lines, rows, include, confidence_level, also=[*more])
        curve = curve.with_columns(**lines.defaults)
        if is_inside:
            curve = curve.with_columns(for_these_problems(confidence_level))
        added = ADDED if is_inside else lines.shown
        return curve.sort(*lines.groups, "selector", "reduction", "budget", "subsets").select(
            *from_safe(lines.groups), *CURVE_SCHEMA, *added
        )

    made = run_plan(problems, plan)
    if include == "common":
        _warn_of_few_problems(made, check_names(by, "by"))
    return made


def scaling_curve_with(
    problems: pl.LazyFrame,
    also: Mapping[str, pl.Expr],
    *,
    by: ColumnNames,
    replicates: ColumnNames,
    cluster: str | None,
    include: ProblemSet,
    confidence_level: float,
) -> pl.LazyFrame:
    """Plan `scaling_curve`, with further columns averaged over the same problems."""
    check_averages(include, confidence_level)
    lines: CurveLines = curve_lines(problems, by=by, replicates=replicates, cluster=cluster)
    rows = lines.select(problems, **also)
    curve = average_lines(lines, rows, include, confidence_level, also=[*also])
    return curve.with_columns(**lines.defaults).select(
        *from_safe(lines.groups), *CURVE_SCHEMA, *lines.shown, *also
    )


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
        f"half (left out: {row['reasons']}). {_advise(row)}",
        FewProblemsWarning,
        stacklevel=3,
    )


def _advise(row: Mapping[str, int]) -> str:
    """Say what would count the problems that are left out, by the most frequent reason."""
    most = max(LEFT_OUT, key=lambda count: row[count])
    if most == "n_ungraded":
        return "Hint: without gold answers ('gold') or grades nothing is right or wrong."
    if most == "n_undefined":
        return (
            "Hint: votes need answers, and weights that are not negative: weights='sigmoid' or "
            "weights='softmax' makes weights of logits."
        )
    return (
        "With include='common' a problem counts only if it has a result at every budget. Hint: "
        + ("leave out the budgets that few problems have, or " if row["n_short"] else "")
        + "average what each budget has with include='available'."
    )


def with_problem_columns(table: FrameT) -> FrameT:
    """Add the columns of `problems` that the table of an aggregator lacks altogether."""
    check_frame(table, "problems")
    schema = table.collect_schema()
    made = {"selector": pl.String, "reduction": pl.String, "status": pl.String}
    if "value" not in schema or any(name in schema for name in made):
        return table
    constants = [pl.lit(None, dtype).alias(name) for name, dtype in made.items()]
    constants[-1] = pl.lit("ok").alias("status")
    if "budget" not in schema:
        constants.append(pl.lit(None, pl.UInt32).alias("budget"))
    return run_plan(table, lambda lazy: lazy.with_columns(constants))


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
    curve = average_points(rows, lines, include, confidence_level, also=also)
    return curve.filter(_same_problems(lines.columns)) if include == "common" else curve


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
