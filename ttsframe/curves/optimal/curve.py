"""Compute-optimal scaling: the best strategy for each difficulty, chosen where it is not judged."""

from __future__ import annotations

from typing import Final

import polars as pl

from ttsframe._checks import check_fraction, check_names
from ttsframe._exprs import run_plan
from ttsframe._typing import ColumnNames, FrameT, ProblemSet
from ttsframe.curves.optimal.choosing import Folding, choose
from ttsframe.curves.optimal.strategies import (
    STRATEGY,
    Question,
    asked,
    placed_at_levels,
    renamed_back,
)
from ttsframe.curves.scaling import scaling_curve
from ttsframe.errors import ParameterError
from ttsframe.statistics.problem_values import SEVERITY

__all__ = ["optimal_curve", "select_optimal"]

_CURVE_COLUMNS: Final = (
    "selector",
    "reduction",
    "subsets",
    "standard_error",
    "ci_low",
    "ci_high",
    *[f"n_{status}" for status in SEVERITY if SEVERITY[status]],
)


def select_optimal(
    problems: FrameT,
    /,
    *,
    levels: pl.DataFrame | pl.LazyFrame,
    strategy: ColumnNames = STRATEGY,
    by: ColumnNames = (),
    replicates: ColumnNames = (),
    cost: str | None = None,
    n_folds: int = 2,
    seed: int = 0,
    include: ProblemSet = "common",
    name: str = "compute_optimal",
) -> FrameT:
    """Answer each problem by the strategy that is best at its level, chosen on other problems.

    What `optimal_curve` averages, to be compared with any other method problem by problem,
    or averaged by what it cost.

    Parameters
    ----------
    problems
        `problems`, as in `optimal_curve`.
    levels
        One row per (by, `problem_id`), with `level`, or per half of the attempts.
    strategy
        Columns that tell strategies apart.
    by
        Columns that get choices of their own, such as the run.
    replicates
        Columns that number repetitions of one run, averaged per problem before anything else.
    cost
        Numeric column of `problems`: what a row cost, such as `add_costs` adds.
    n_folds
        Number of folds of problems, at least 2.
    seed
        Seed of the folds.
    include
        "common" takes the same problems at every budget, "available" those that are there.
    name
        What to call the selector; the choice on all problems is called that and ``_in_sample``.

    Returns
    -------
    FrameT
        `problems`, two rows per (by, `problem_id`, `fold`, `budget`, `subsets`), sorted, with those
        of these columns that `problems` has, and `budget_unit` if there:

        - `selector` (String): `name`, or ``name_in_sample``; `reduction` (String): null;
        - `level`: of the problem, null where it is unknown;
        - `value` (Float64): of the strategy that was chosen, null where `status` is not "ok";
        - `status` (String): the worst that the problem has under any strategy; "undefined" where it
          has no level, or no problem of its level is in another fold;
        - `cost` (Float64), if there is one, and `cost_unit`, if there: of the same strategy.

    Raises
    ------
    ColumnsError
        At once, as `optimal_curve`.
    ParameterTypeError
        At once, as `optimal_curve`.
    ParameterError
        At once, as `optimal_curve`.
    DataError
        On collection, as `optimal_curve`.

    See Also
    --------
    optimal_curve : Averages these rows.
    optimal_choices : What was chosen.

    References
    ----------
    Snell et al., "Scaling LLM Test-Time Compute Optimally can be More Effective than Scaling Model
    Parameters", arXiv:2408.03314, sections 3.1 and 3.2.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> run = tts.simulate_trajectories(200, 96, seed=0, keys=True)
    >>> known = run.filter(pl.col("attempt") >= 32)
    >>> run = run.filter(pl.col("attempt") < 32)
    >>> levels = tts.difficulty_levels(run, reference=known)
    >>> problems = tts.select_answers(run, budgets=32)
    >>> optimal = tts.curves.select_optimal(problems, levels=levels)
    >>> both = pl.concat([problems, optimal], how="diagonal")
    >>> paired = tts.compare(both, column="selector", baseline="majority_vote")
    >>> paired.filter(selector="compute_optimal").select("difference", "n_pairs").rows()
    [(0.13, 200)]
    """
    if not name:
        raise ParameterError("name is empty, must say what to call the line.")
    groups: tuple[str, ...] = tuple(
        each for each in check_names(by, "by", taken=_CURVE_COLUMNS) if each != "level"
    )
    question: Question = asked(
        problems,
        levels,
        strategy=strategy,
        by=groups,
        replicates=replicates,
        cost=cost,
        folding=Folding(n_folds, seed, include),
    )
    line: dict[str, str] = question.columns.line
    keys = {key: own for key, own in line.items() if own in groups}
    others = {
        key: own for key, own in line.items() if own not in groups and own not in question.constants
    }
    names = (name, f"{name}_in_sample")
    no_text = pl.lit(None, pl.String)

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        placed = placed_at_levels(lazy, levels.lazy(), question)
        answered = _answered(choose(placed, question.columns, names), question)
        return (
            pl
            .concat([answered, _left_out(placed, question, names)], how="diagonal")
            .sort(*keys, "problem_id", "half", "budget", "name", *others)
            .select(
                *renamed_back(keys),
                "problem_id",
                *[pl.col("half").alias("fold")] * question.has_half,
                "budget",
                *renamed_back(others),
                *[no_text.alias("subsets")] * ("subsets" in question.strategy),
                pl.col("name").alias("selector"),
                no_text.alias("reduction"),
                *["level", "value", "status"],
                *["cost"] * (cost is not None),
            )
        )

    return run_plan(problems, plan)


def optimal_curve(
    problems: FrameT,
    /,
    *,
    levels: pl.DataFrame | pl.LazyFrame,
    strategy: ColumnNames = STRATEGY,
    by: ColumnNames = (),
    replicates: ColumnNames = (),
    cost: str | None = None,
    n_folds: int = 2,
    seed: int = 0,
    include: ProblemSet = "common",
    name: str = "compute_optimal",
    confidence_level: float = 0.95,
) -> FrameT:
    r"""Give the accuracy of the best strategy for each level of difficulty and budget.

    The best of several strategies on some problems looks better there than it is, the more so the
    more strategies and the fewer problems of a level there are. So problems are dealt into folds,
    and each is answered by the strategy that is best on the others of its level. The line of
    choosing and judging on the same problems stands beside it, to show what that would have won.

    Parameters
    ----------
    problems
        `problems`, as `select_answers` or `expected_accuracy` makes it, one row per (by,
        replicates, `problem_id`, `budget`, strategy) with `value` (Float64 in [0, 1]) and `status`;
        for levels of halves, from halved attempts, with the column `fold`. Rows of the selector
        `oracle` are the bound, no strategy, and are passed over.
    levels
        One row per (by, `problem_id`), with `level` (any dtype that sorts), as `difficulty_levels`
        makes it, or per half of the attempts, `fold`; columns of `by` that it has are matched.
    strategy
        Columns that tell strategies apart, such as ``("selector", "reduction", "search", "model")``.
    by
        Columns that get a curve each, such as the run; "level" for a curve per level.
    replicates
        Columns that number repetitions of one run, such as the seed: averaged per problem before
        anything else.
    cost
        Numeric column of `problems`: what a row cost, such as tokens or FLOPs.
    n_folds
        Number of folds of problems, at least 2; each is judged by what was chosen on the others.
    seed
        Seed of the folds, which depend on it and on the table of levels alone.
    include
        "common" takes the same problems at every budget: those with status "ok" throughout, under
        all strategies. "available" takes, at each budget, those with it there under all of them.
        One that has no row under a strategy that others have is short.
    name
        What to call the line, to tell levels apart where tables are put together; the other one is
        called that and ``_in_sample``.
    confidence_level
        Coverage of the interval, in (0, 1).

    Returns
    -------
    FrameT
        `curve`, as `scaling_curve` makes it, with two rows per (by, `budget`, `subsets`): `selector`
        is `name`, or ``name_in_sample`` for the line that is too good; `reduction` is null. A
        problem without a level, or alone in its level with its fold, is counted in `n_undefined` of
        both. Where `strategy` names `subsets`, `subsets` is null.

    Raises
    ------
    ColumnsError
        At once, when a column is missing in either table, or is of a dtype that does not fit.
    ParameterTypeError
        At once, when `n_folds` or `seed` is not an int.
    ParameterError
        At once, when a parameter is impossible, or a column has two uses.
    DataError
        On collection, when a problem has several rows of one strategy at one budget, or several
        levels, and when levels are of halves and `problems` is not.

    See Also
    --------
    optimal_choices : What was chosen.
    select_optimal : The rows that are averaged.
    difficulty_levels : Levels, by accuracy (oracle) or by the verifier (predicted).

    Notes
    -----
    For problem :math:`q` of level :math:`b` in fold :math:`f`, at budget :math:`N`,

    .. math:: \theta^*_f(b, N) = \arg\max_\theta \sum_{p \in b,\, f(p) \ne f} x_p(\theta, N)

    and the curve is the mean of :math:`x_q(\theta^*_{f}(b, N), N)` over problems. Of strategies that
    are equally good the cheapest is chosen; where that does not decide, or no cost is known, one
    that reads no score, and then the first in the order of the columns of `strategy`.

    Strategies compete at equal `budget`. Where an attempt of one is dearer than that of another, as
    between models, equal numbers of attempts favour the dearer: give rows the budget that they spend
    in place of attempts, such as FLOPs on one grid for all (any number, with its `budget_unit`).

    The interval is that of the strategies that were chosen, on problems that had no part in the
    choice. It does not say what other problems would have chosen.

    References
    ----------
    Snell et al., "Scaling LLM Test-Time Compute Optimally can be More Effective than Scaling Model
    Parameters", arXiv:2408.03314, section 3.1, equation 1, and section 3.2 on two folds. Liu et al.,
    "Can 1B LLM Surpass 405B LLM?", arXiv:2502.06703 (compute-optimal-tts), on strategies of several
    models and verifiers.

    Examples
    --------
    Of four problems two are easy, where the majority is right, and two are hard, where the best-
    scored attempt is:

    >>> import polars as pl
    >>> import ttsframe as tts
    >>> problems = pl.DataFrame({
    ...     "problem_id": ["a", "b", "c", "d"] * 2,
    ...     "budget": [8] * 8,
    ...     "selector": ["majority_vote"] * 4 + ["best_of_n"] * 4,
    ...     "reduction": [None] * 4 + ["last"] * 4,
    ...     "value": [1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0],
    ...     "status": ["ok"] * 8,
    ... })
    >>> levels = pl.DataFrame({"problem_id": ["a", "b", "c", "d"], "level": [1, 1, 2, 2]})
    >>> curve = tts.optimal_curve(problems, levels=levels)
    >>> curve.select("selector", "budget", "accuracy", "n_problems").rows()
    [('compute_optimal', 8, 1.0, 4), ('compute_optimal_in_sample', 8, 1.0, 4)]
    """
    check_fraction(confidence_level, "confidence_level")
    optimal = select_optimal(
        problems,
        levels=levels,
        strategy=strategy,
        by=by,
        replicates=replicates,
        cost=cost,
        n_folds=n_folds,
        seed=seed,
        include=include,
        name=name,
    )
    has_halves = "fold" in optimal.collect_schema() and "fold" not in check_names(by, "by")
    return scaling_curve(
        optimal,
        by=by,
        replicates=["fold"] if has_halves else [],
        include=include,
        confidence_level=confidence_level,
    )


def _answered(chosen: pl.LazyFrame, question: Question) -> pl.LazyFrame:
    """Return each problem's value under the strategy that was chosen for it."""
    is_alone = pl.col("n_all") == pl.col("n")
    status = pl.when(is_alone).then(pl.lit("undefined")).otherwise(pl.lit("ok"))
    return (
        chosen
        .select(*question.columns.line, "level", "budget", "name", "of_problem", status=status)
        .explode("of_problem", empty_as_null=False)
        .unnest("of_problem")
        .with_columns(pl.when(pl.col("status") == "ok").then(pl.col("value", "cost")))
    )


def _left_out(placed: pl.LazyFrame, question: Question, lines: tuple[str, str]) -> pl.LazyFrame:
    """Return each problem that has no value, once per line, with the reason."""
    statuses = {severity: status for status, severity in SEVERITY.items()}
    return (
        placed
        .filter(pl.col("severity") > 0)
        .group_by(*question.columns.line, "problem_id", "half", "budget")
        .agg(pl.col("level").first(), pl.col("severity").first())
        .with_columns(
            value=pl.lit(None, pl.Float64),
            cost=pl.lit(None, pl.Float64),
            status=pl.col("severity").replace_strict(statuses, return_dtype=pl.String),
            name=pl.lit([*lines], pl.List(pl.String)),
        )
        .explode("name", empty_as_null=False)
    )
