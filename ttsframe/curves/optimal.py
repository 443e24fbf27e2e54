"""Compute-optimal scaling: the best strategy for each level and budget, chosen on held-out problems."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any, Final, NamedTuple, get_args
from warnings import warn

import numpy as np
import polars as pl

from ttsframe._checks import (
    check_choice,
    check_fraction,
    check_frame,
    check_names,
    check_positive,
    check_seed,
)
from ttsframe._exprs import from_safe, in_order, n_distinct, run_plan, safe_names, to_safe
from ttsframe._typing import ColumnNames, FrameT, ProblemSet
from ttsframe.curves.levels import shared_columns, with_levels
from ttsframe.curves.lines import (
    DEFAULTS,
    LEFT_OUT,
    LEVELS_HINT,
    ORACLE,
    PROBLEM_COLUMNS,
    PROVENANCE,
    SELECT_HINT,
)
from ttsframe.curves.means import first_rows, has_repeated, number_rows
from ttsframe.curves.scaling import scaling_curve
from ttsframe.errors import ParameterError
from ttsframe.schema import CLUSTER_COLUMNS, require_columns, require_kind
from ttsframe.statistics.clusters import check_cluster
from ttsframe.statistics.problem_values import SEVERITY, raise_if_repeated, value_and_severity

__all__ = ["optimal_choices", "optimal_curve", "select_optimal"]

_STRATEGY: Final = ("selector", "reduction")
"""Columns that identify a strategy by default."""

_READ_COLUMNS: Final = ("problem_id", "budget", "value", "status")

_UNITS: Final = ("budget_unit", "subsets")
"""Columns that separate choices where `problems` has them."""

_CURVE_COLUMNS: Final = (
    "selector",
    "reduction",
    "subsets",
    "standard_error",
    "ci_low",
    "ci_high",
    *LEFT_OUT,
)

_CHOICE_COLUMNS: Final = (
    "accuracy_seen",
    "accuracy",
    "n_seen",
    "n_problems",
    "n_strategies",
    "n_tied",
)

_TIE: Final = 1e-9
"""Means, and relative costs, that differ by less than this are equal."""


class _Setting(NamedTuple):
    """The checked parameters of all functions of this module, the caller's columns under safe names."""

    groups: dict[str, str]
    """Columns of `by`."""
    line: dict[str, str]
    """`groups` and the other columns that separate choices."""
    seeds: dict[str, str]
    """Columns of `replicates`."""
    strategy: dict[str, str]
    """Columns that identify a strategy."""
    shared: list[str]
    """Those of `groups` that `levels` has too."""
    schema: pl.Schema
    """Schema of `problems`."""
    cost: str | None
    n_folds: int
    seed: int
    include: ProblemSet
    has_fold: bool
    """Whether `problems` is from halved attempts."""
    has_level_fold: bool
    """Whether a level is for one half of the attempts."""

    @property
    def is_common(self) -> bool:
        """Whether the same problems count at every budget."""
        return self.include == "common"


def optimal_curve(
    problems: FrameT,
    /,
    *,
    levels: pl.DataFrame | pl.LazyFrame,
    strategy: ColumnNames = _STRATEGY,
    by: ColumnNames = (),
    replicates: ColumnNames = (),
    cluster: str | None = None,
    cost: str | None = None,
    n_folds: int = 2,
    seed: int = 0,
    include: ProblemSet = "common",
    name: str = "compute_optimal",
    confidence_level: float = 0.95,
) -> FrameT:
    r"""Average the best strategy for each level of difficulty and budget.

    The best of several strategies looks better than it is on the problems that it was chosen on,
    more so with more strategies and with fewer problems in a level. Therefore the problems are
    divided into folds, and each is answered by the strategy that is best on the other folds of its
    level. A second line chooses and evaluates on the same problems, to show the bias.

    Parameters
    ----------
    problems
        `problems`, as `select_answers` or `expected_accuracy` returns it, one row per (by,
        replicates, `problem_id`, `budget`, strategy) with `value` (Float64 in [0, 1]) and `status`;
        for levels of halves from halved attempts, with the column `fold`. Rows of the selector
        `oracle` are a bound, not a strategy, and are ignored.
    levels
        One row per (by, `problem_id`), with `level` (any dtype that sorts), as `difficulty_levels`
        returns it, or one per half of the attempts, with `fold`. Those columns of `by` that it has
        are matched.
    strategy
        Columns that identify a strategy, for example ``("selector", "reduction", "search")``.
    by
        Columns that define separate curves, for example the run; "level" for a curve per level.
    replicates, cluster
        As in `scaling_curve`.
    cost
        Numeric column of `problems` with the cost of a row, for example `cost` from `add_costs`.
    n_folds
        Number of folds of problems, at least 2. Above 2 there is no interval, see the notes.
    seed
        Seed of the folds, which depend on it and on `levels` only.
    include
        "common" takes the same problems at every budget: those with status "ok" at all budgets and
        under all strategies. "available" takes, at each budget, the problems with status "ok" under
        all strategies at that budget. A problem without a row under one of the strategies is short.
    name
        Selector of the line in the result; the line chosen on all problems is called that and
        ``_in_sample``.
    confidence_level
        Coverage of the interval, in (0, 1).

    Returns
    -------
    FrameT
        `curve`, as in `scaling_curve`, with two rows per (by, `budget`, `subsets`): `selector` is
        `name`, or ``name_in_sample`` for the biased line; `reduction` is null. Problems without a
        level, and those of a level that lies in one fold, are counted in `n_undefined` of both. If
        `strategy` names `subsets`, `subsets` is null. Last come `basis` and `caveat` (String), the basis
        and the most serious caveat of the levels, as `difficulty_levels` gives them, null where
        `levels` lacks them.

    Raises
    ------
    ColumnsError
        At once, when a column is missing in either table, or has an unsuitable dtype.
    ParameterTypeError
        At once, when `n_folds` or `seed` is not an int.
    ParameterError
        At once, when a parameter is out of range, or a column has two uses.
    DataError
        On collection, when a problem has several rows of one strategy at one budget, or several
        levels, and when levels are for halves but `problems` is not from halved attempts.

    Warns
    -----
    UserWarning
        At once, where `n_folds` is above 2, that there is no interval.

    See Also
    --------
    optimal_choices : The strategies chosen.
    select_optimal : The rows averaged.
    difficulty_levels : Levels, by accuracy (oracle) or by the verifier (predicted).

    Notes
    -----
    For problem :math:`q` of level :math:`b` in fold :math:`f`, at budget :math:`N`,

    .. math:: \theta^*_f(b, N) = \arg\max_\theta \sum_{p \in b,\, f(p) \ne f} x_p(\theta, N)

    and the curve is the mean of :math:`x_q(\theta^*_{f}(b, N), N)` over problems. Ties go to the
    cheapest strategy, then, or if costs are unknown, to one that reads no score, and then to the
    first in the order of the columns of `strategy`.

    Strategies compete at equal `budget`. If an attempt of one costs more than an attempt of
    another, as between models, equal numbers of attempts favor the more expensive one. In that case
    set `budget` to what the rows spend, for example FLOPs on one grid for all, with `budget_unit`.

    The interval is that of the chosen strategies on held-out problems. It does not include the
    variation of the choice itself. Above two folds, any two folds chose on mostly the same problems,
    so they share the luck of the choice, which the spread between problems does not show (Bates et al.):
    standard error and interval of the held-out line are then null. Intervals that ignore this covered
    82.8 to 94.0 % at 3 to 10 folds, and 92.9 to 95.4 % at two
    (`benchmarks/results/optimal_folds.txt`).

    References
    ----------
    Snell et al., "Scaling LLM Test-Time Compute Optimally can be More Effective than Scaling Model
    Parameters", arXiv:2408.03314, section 3.1, equation 1, and section 3.2 on two folds. Liu et al.,
    "Can 1B LLM Surpass 405B LLM?", arXiv:2502.06703 (compute-optimal-tts), on strategies of several
    models and verifiers. Bates, Hastie and Tibshirani, "Cross-validation: what does it estimate and how
    well does it do it?", arXiv:2104.00673. Bengio and Grandvalet, "No unbiased estimator of the
    variance of K-fold cross-validation", Journal of Machine Learning Research 5 (2004), 1089-1105.

    Examples
    --------
    The majority is right on two easy problems, and the best-scored attempt on two hard ones:

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
    check_names(by, "by", taken=(*PROVENANCE, *CLUSTER_COLUMNS))
    optimal = _select_optimal(
        problems,
        name,
        is_sorted=False,
        levels=levels,
        strategy=strategy,
        by=by,
        replicates=replicates,
        cost=cost,
        n_folds=n_folds,
        seed=seed,
        include=include,
    )
    groups: list[str] = [group for group in check_names(by, "by") if group != "level"]
    has_halves = "fold" in optimal.collect_schema() and "fold" not in groups
    if n_folds > 2:
        warn(
            f"optimal_curve: no interval with n_folds == {n_folds}, because folds that chose on mostly "
            "the same problems share the luck of the choice. Hint: n_folds=2 has one.",
            stacklevel=2,
        )
    if cluster is not None:
        check_cluster(cluster, (*PROBLEM_COLUMNS, *_CURVE_COLUMNS), groups)
        optimal = _with_cluster(optimal, problems, [*groups, "problem_id"], cluster)
    curve = scaling_curve(
        optimal,
        by=by,
        replicates=["fold"] if has_halves else [],
        cluster=cluster,
        include=include,
        confidence_level=confidence_level,
    )
    has_interval = pl.lit(n_folds == 2) | (pl.col("selector") != name)
    shown = [
        pl.when(has_interval).then(column).alias(column)
        for column in ("standard_error", "ci_low", "ci_high")
    ]
    return run_plan(
        curve,
        lambda lazy: lazy.with_columns(shown).join(
            levels.lazy().select(_provenance(levels)), how="cross", maintain_order="left"
        ),
    )


def _provenance(levels: pl.DataFrame | pl.LazyFrame) -> list[pl.Expr]:
    """Return the basis of levels and their most serious caveat, which is last in the alphabet."""
    schema = levels.collect_schema()
    return [
        pl.col(name).cast(pl.String).max()
        if name in schema
        else pl.lit(None, pl.String).alias(name)
        for name in PROVENANCE
    ]


def _with_cluster(
    optimal: FrameT, problems: pl.DataFrame | pl.LazyFrame, unit: Sequence[str], cluster: str
) -> FrameT:
    """Add the cluster of each problem."""
    names: dict[str, str] = safe_names([*unit, cluster])
    key, value = [*names][:-1], [*names][-1]
    require_columns(problems, [cluster], where="problems", hint=SELECT_HINT)
    of_problem = problems.lazy().select(*to_safe(names)).unique()
    return run_plan(
        optimal,
        lambda lazy: lazy.join(
            of_problem, left_on=[*unit], right_on=key, how="left", nulls_equal=True
        ).rename({value: cluster}),
    )


def select_optimal(
    problems: FrameT,
    /,
    *,
    levels: pl.DataFrame | pl.LazyFrame,
    strategy: ColumnNames = _STRATEGY,
    by: ColumnNames = (),
    replicates: ColumnNames = (),
    cost: str | None = None,
    n_folds: int = 2,
    seed: int = 0,
    include: ProblemSet = "common",
    name: str = "compute_optimal",
) -> FrameT:
    """Answer each problem by the strategy that is best at its level, chosen on other problems.

    `optimal_curve` averages these rows. Use them to compare with another method problem by problem,
    or to average over cost.

    Parameters
    ----------
    problems, levels, strategy, by, replicates, cost, n_folds, seed, include
        As in `optimal_curve`.
    name
        Selector of the rows; the choice on all problems is called that and ``_in_sample``.

    Returns
    -------
    FrameT
        `problems`, two rows per (by, `problem_id`, `fold`, `budget`, `subsets`), sorted, with those
        of these columns that `problems` has, `budget_unit` if it has it, and

        - `selector` (String): `name`, or ``name_in_sample``; `reduction` (String): null;
        - `level`: of the problem, null if it is unknown;
        - `value` (Float64): of the strategy chosen, null where `status` is not "ok";
        - `status` (String): the worst of the problem under any strategy; "undefined" if it has no
          level, or its level lies in one fold;
        - `cost` (Float64), if `cost` is given, and `cost_unit`, if `problems` has it.

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
    optimal_curve : Average these rows.
    optimal_choices : The strategies chosen.

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
    return _select_optimal(
        problems,
        name,
        levels=levels,
        strategy=strategy,
        by=by,
        replicates=replicates,
        cost=cost,
        n_folds=n_folds,
        seed=seed,
        include=include,
    )


def _select_optimal(
    problems: FrameT,
    name: str,
    *,
    levels: pl.DataFrame | pl.LazyFrame,
    by: ColumnNames,
    cost: str | None,
    is_sorted: bool = True,
    **options: Any,  # noqa: ANN401 - the options of `_check`
) -> FrameT:
    """Return the rows of `select_optimal`, sorted where that is asked for."""
    if not name:
        raise ParameterError("name is empty, must be the selector of the line.")
    setting: _Setting = _check(problems, levels, by=_without_level(by), cost=cost, **options)
    return run_plan(
        problems,
        lambda lazy: _answer_rows(
            _values_by_level(lazy, levels.lazy(), setting), setting, name, is_sorted=is_sorted
        ),
    )


def _without_level(by: ColumnNames) -> tuple[str, ...]:
    """Check the columns of curves; there is one for each level anyway."""
    return tuple(name for name in check_names(by, "by", taken=_CURVE_COLUMNS) if name != "level")


def _answer_rows(
    values: pl.LazyFrame, setting: _Setting, name: str, *, is_sorted: bool
) -> pl.LazyFrame:
    """Return the rows of `select_optimal` from those of `_values_by_level`."""
    others: dict[str, str] = {
        key: own
        for key, own in setting.line.items()
        if key not in setting.groups and own in setting.schema
    }
    names = (name, f"{name}_in_sample")
    columns = [*from_safe(setting.groups), pl.col("problem_id")]
    if setting.has_fold:
        columns.append(pl.col("fold"))
    columns += [pl.col("budget"), *from_safe(others)]
    if "subsets" in setting.strategy.values():
        columns.append(pl.lit(None, pl.String).alias("subsets"))
    columns += [
        pl.col("name").alias("selector"),
        pl.lit(None, pl.String).alias("reduction"),
        pl.col("level", "value", "status"),
    ]
    if setting.cost is not None:
        columns.append(pl.col("cost"))
    rows = [
        _answers(_choose(values, setting, names), setting),
        _left_out(values, setting, names),
    ]
    answers = pl.concat(rows, how="diagonal")
    if is_sorted:
        answers = answers.sort(*setting.groups, "problem_id", "fold", "budget", "name", *others)
    return answers.select(columns)


def choose_and_answer(
    problems: pl.DataFrame, /, *, levels: pl.DataFrame, by: ColumnNames = ()
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the rows of `select_optimal`, in any order, and those of `optimal_choices`, from one pass."""
    setting = _check(
        problems,
        levels,
        strategy=_STRATEGY,
        by=_without_level(by),
        replicates=(),
        cost=None,
        n_folds=2,
        seed=0,
        include="common",
    )
    values = _values_by_level(problems.lazy(), levels.lazy(), setting).collect().lazy()
    answers = _answer_rows(values, setting, "compute_optimal", is_sorted=False)
    return answers.collect(), _choice_rows(values, setting).collect()


def optimal_choices(
    problems: FrameT,
    /,
    *,
    levels: pl.DataFrame | pl.LazyFrame,
    strategy: ColumnNames = _STRATEGY,
    by: ColumnNames = (),
    replicates: ColumnNames = (),
    cost: str | None = None,
    n_folds: int = 2,
    seed: int = 0,
    include: ProblemSet = "common",
) -> FrameT:
    """Return the strategy that is best for each level of difficulty and budget.

    There is one choice for each fold of problems, made on the other folds, which `optimal_curve`
    averages, and one choice on all problems, which is the one to use for new problems. If folds
    choose differently, these problems are too few to separate the strategies.

    Parameters
    ----------
    problems, levels, strategy, by, replicates, cost, n_folds, seed, include
        As in `optimal_curve`.

    Returns
    -------
    FrameT
        One row per (by, `level`, `budget`, `subsets`, `problem_fold`), sorted:

        - `problem_fold` (UInt32): the fold of problems that the choice is for; null: chosen and
          evaluated on all problems;
        - the columns of `strategy`: the strategy chosen;
        - `accuracy_seen` (Float64): its mean on the problems that it was chosen on;
        - `accuracy` (Float64): its mean on the problems that it is for;
        - `n_seen`, `n_problems` (UInt32): number of problems that it was chosen on, and is for;
        - `n_strategies`, `n_tied` (UInt32): number of strategies, and of those that tie for the
          best, at least 1;
        - `cost` (Float64), if `cost` is given: its mean on the problems that the choice is for,
          null if the cost of one of them is unknown.

        A level whose problems are all in one fold has no rows, since nothing can be chosen for it.

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
    optimal_curve : The accuracy of these choices on held-out problems.

    References
    ----------
    Snell et al., "Scaling LLM Test-Time Compute Optimally can be More Effective than Scaling Model
    Parameters", arXiv:2408.03314, sections 3.1 and 3.2.

    Examples
    --------
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
    >>> choices = tts.curves.optimal_choices(problems, levels=levels)
    >>> choices.filter(pl.col("problem_fold").is_null()).select(
    ...     "level", "budget", "selector", "accuracy", "n_problems", "n_tied"
    ... )
    shape: (2, 6)
    ┌───────┬────────┬───────────────┬──────────┬────────────┬────────┐
    │ level ┆ budget ┆ selector      ┆ accuracy ┆ n_problems ┆ n_tied │
    │ ---   ┆ ---    ┆ ---           ┆ ---      ┆ ---        ┆ ---    │
    │ i64   ┆ i64   ┆ str           ┆ f64      ┆ u32        ┆ u32    │
    ╞═══════╪════════╪═══════════════╪══════════╪════════════╪════════╡
    │ 1     ┆ 8      ┆ majority_vote ┆ 1.0      ┆ 2          ┆ 1      │
    │ 2     ┆ 8      ┆ best_of_n     ┆ 1.0      ┆ 2          ┆ 1      │
    └───────┴────────┴───────────────┴──────────┴────────────┴────────┘
    """
    setting: _Setting = _check(
        problems,
        levels,
        strategy=strategy,
        by=check_names(by, "by", taken=("level", "subsets")),
        replicates=replicates,
        cost=cost,
        n_folds=n_folds,
        seed=seed,
        include=include,
    )
    return run_plan(
        problems,
        lambda lazy: _choice_rows(_values_by_level(lazy, levels.lazy(), setting), setting),
    )


def _choice_rows(values: pl.LazyFrame, setting: _Setting) -> pl.LazyFrame:
    """Return the rows of `optimal_choices` from those of `_values_by_level`."""
    groups: dict[str, str] = setting.groups
    others: dict[str, str] = {key: name for key, name in setting.line.items() if key not in groups}
    names = ("held_out", "in_sample")
    is_held_out = pl.col("name") == names[0]
    units = [
        pl.col(name) if name in others else pl.lit(DEFAULTS[name]).alias(name)
        for name in _UNITS
        if name not in setting.strategy.values()
    ]
    columns = [
        *from_safe(groups),
        pl.col("level", "budget"),
        *units,
        *[pl.col(name) for name in others if name not in _UNITS],
        pl.col("problem_fold"),
        *from_safe(setting.strategy),
        pl.col(_CHOICE_COLUMNS),
    ]
    if setting.cost is not None:
        columns.append(pl.col("cost"))

    def evaluated(column: str) -> pl.Expr:
        """Return a sum over the problems that the choice is for."""
        return pl.when(is_held_out).then(column).otherwise(f"{column}_all")

    mean_cost = evaluated("cost") / evaluated("n")
    return (
        _choose(values, setting, names)
        .filter(pl.col("n_all") > pl.col("n"))
        .select(
            *setting.line,
            *setting.strategy,
            "level",
            "budget",
            problem_fold=pl.when(is_held_out).then("problem_fold"),
            accuracy_seen=pl.col("total_seen") / pl.col("n_seen"),
            accuracy=evaluated("total") / evaluated("n"),
            n_seen=pl.col("n_problems_seen").cast(pl.UInt32),
            n_problems=evaluated("n_problems").cast(pl.UInt32),
            n_strategies=pl.col("n_strategies"),
            n_tied=pl.col("n_tied"),
            cost=pl.when(mean_cost.is_finite()).then(mean_cost),
        )
        # A choice on all problems is the same for every fold.
        .unique([*setting.line, "level", "budget", "problem_fold"])
        .sort(*groups, "level", "budget", *others, "problem_fold", nulls_last=True)
        .select(columns)
    )


def _check(
    problems: pl.DataFrame | pl.LazyFrame,
    levels: pl.DataFrame | pl.LazyFrame,
    *,
    strategy: ColumnNames,
    by: tuple[str, ...],
    replicates: ColumnNames,
    cost: str | None,
    n_folds: int,
    seed: int,
    include: ProblemSet,
) -> _Setting:
    """Check the parameters that all functions of this module share."""
    check_frame(problems, "problems")
    check_frame(levels, "levels")
    check_choice(include, "include", get_args(ProblemSet))
    check_seed(seed)
    if check_positive(n_folds, "n_folds") < 2:
        raise ParameterError(
            f"n_folds == {n_folds}, must be at least 2. Hint: the result has a line that chooses and "
            "evaluates on all problems anyway."
        )
    uses = _checked_uses(strategy, by, replicates)
    costs = [] if cost is None else [cost]
    schema = require_columns(
        problems,
        [*_READ_COLUMNS, *itertools.chain(*uses.values()), *costs],
        where="problems",
        hint=f"{SELECT_HINT[:-1]}; name the columns that identify a strategy in strategy=(...).",
    )
    levels_schema = require_columns(
        levels, ["problem_id", "level"], where="levels", hint=LEVELS_HINT
    )
    if cost is not None:
        require_kind(schema, "a number", cost, where="problems")
    groups = safe_names(uses["by"])
    shared = [*shared_columns(groups, levels_schema, schema)]
    others = [name for name in _UNITS if name in schema and name not in uses["strategy"]]
    if cost is not None and "cost_unit" in schema:
        others.append("cost_unit")
    return _Setting(
        groups=groups,
        line=groups | {name: name for name in others},
        seeds=safe_names(uses["replicates"], "seed"),
        strategy=safe_names(uses["strategy"], "part"),
        shared=shared,
        schema=schema,
        cost=cost,
        n_folds=n_folds,
        seed=seed,
        include=include,
        has_fold="fold" in schema and "fold" not in by,
        has_level_fold="fold" in levels_schema and "fold" not in by,
    )


def _checked_uses(
    strategy: ColumnNames, by: Sequence[str], replicates: ColumnNames
) -> dict[str, tuple[str, ...]]:
    """Check that each of the caller's columns has one use, and return them by use."""
    taken = (*_READ_COLUMNS, *_CHOICE_COLUMNS, "level", "problem_fold", "cost")
    own_groups = [name for name in by if name != "level"]
    uses = {
        "strategy": check_names(strategy, "strategy", taken=(*taken, "budget_unit", "fold")),
        "by": check_names(own_groups, "by", taken=(*taken, "budget_unit")),
        "replicates": check_names(replicates, "replicates", taken=(*taken, "fold")),
    }
    if not uses["strategy"]:
        raise ParameterError("strategy is empty, must name the columns that identify a strategy.")
    for (use, names), (other_use, other_names) in itertools.combinations(uses.items(), 2):
        if both := sorted(set(names) & set(other_names)):
            raise ParameterError(
                f"{use} and {other_use} both name {both}; a column identifies a strategy (strategy), "
                "defines separate curves (by) or is averaged over (replicates)."
            )
    return uses


def _values_by_level(lazy: pl.LazyFrame, levels: pl.LazyFrame, setting: _Setting) -> pl.LazyFrame:
    """Return each value with its level, fold and severity, which is equal under all strategies."""
    if "selector" in setting.schema:
        lazy = lazy.filter(pl.col("selector").ne_missing(ORACLE))
    fold = pl.col("fold") if setting.has_fold else pl.lit(None)
    cost = pl.lit(None) if setting.cost is None else pl.col(setting.cost)
    rows = lazy.select(
        *to_safe(setting.line | setting.seeds | setting.strategy),
        "problem_id",
        "budget",
        **value_and_severity(),
        fold=fold.cast(pl.UInt32),
        cost=cost.cast(pl.Float64),
    )
    values = with_levels(_comparable(rows, setting), _folds(levels, setting), setting.shared)
    undefined = pl.when(pl.col("level").is_null()).then(SEVERITY["undefined"])
    return values.with_columns(severity=pl.max_horizontal("severity", undefined))


def _comparable(rows: pl.LazyFrame, setting: _Setting) -> pl.LazyFrame:
    """Average replicates, and leave a problem out of all strategies if one leaves it out."""
    if setting.seeds:
        rows = _average_replicates(rows, setting)
    return rows.map_batches(partial(_share_severity, setting=setting))


def _average_replicates(rows: pl.LazyFrame, setting: _Setting) -> pl.LazyFrame:
    """Average replicates, and raise where a problem has several rows of one."""
    severity = pl.col("severity")
    names = setting.line | {name: name for name in ("problem_id", "fold", "budget")}
    return (
        rows
        .group_by(*names, *setting.strategy)
        .agg(
            pl.len().alias("n_rows"),
            (n_distinct(setting.seeds) if setting.seeds else pl.lit(1)).alias("n_expected"),
            *[in_order(pl.col(name)).list.mean().alias(name) for name in ("value", "cost")],
            severity.max() if setting.is_common else severity.min(),
        )
        .filter(
            raise_if_repeated(
                names | setting.strategy,
                "of one strategy",
                "name the column that identifies the strategy in strategy=(...), the run in "
                "by=(...), and the seed in replicates=(...).",
            )
        )
        .drop("n_rows", "n_expected")
    )


def _share_severity(rows: pl.DataFrame, setting: _Setting) -> pl.DataFrame:
    """Give all rows of a problem the worst severity of any of them, or of the ones that it lacks."""
    # On arrays, because in Polars each row is a group of its own.
    if rows.is_empty():
        return rows
    cell = ["fold", "budget"]
    shared, own = ([], cell) if setting.is_common else (cell, [])
    group, n_groups = number_rows(rows, [*setting.line, *shared])
    point, n_points = number_rows(rows, [*own, *setting.strategy], group)
    unit, n_units = number_rows(rows, ["problem_id"], group)
    if has_repeated(unit * n_points + point):
        _average_replicates(rows.lazy(), setting).collect()
    n_expected = np.bincount(group[first_rows(point, n_points)], minlength=n_groups)
    worst = np.zeros(n_units, dtype=np.int8)
    np.maximum.at(worst, unit, rows["severity"].to_numpy())
    is_short = np.bincount(unit) < n_expected[group[first_rows(unit, n_units)]]
    worst[is_short] = SEVERITY["short"]
    return rows.with_columns(pl.Series("severity", worst[unit]))


def _folds(levels: pl.LazyFrame, setting: _Setting) -> pl.LazyFrame:
    """Return the fold of each problem, and its level for each half of the attempts."""
    level_fold = pl.col("fold") if setting.has_level_fold else pl.lit(None)
    shared = {key: setting.line[key] for key in setting.shared}
    names = shared | {"problem_id": "problem_id"}
    of_problem = (
        levels
        # A constant to group by, since there may be no shared column.
        .select(*to_safe(names), "level", level_fold=level_fold.cast(pl.UInt32), all=0)
        .group_by("all", *names)
        .agg(
            pl.col("level", "level_fold"),
            hardest=pl.col("level").max(),
            n_rows=pl.len(),
            n_expected=pl.col("level_fold").n_unique(),
        )
        .filter(
            raise_if_repeated(
                names, "of levels", "name the column of the run in by=(...), or filter it."
            )
        )
    )
    # Dealt in order of level, so that every fold gets its share of each. Both halves of a problem
    # are in one fold, because a choice on one half would know the other.
    order = [pl.col("hardest"), _hashed("problem_id", setting.seed), pl.col("problem_id")]
    position = pl.int_range(pl.len()).over("all", *shared, order_by=order)
    return (
        of_problem
        .with_columns(problem_fold=(position % setting.n_folds).cast(pl.UInt32))
        .select(*names, "problem_fold", "level", "level_fold")
        .explode("level", "level_fold", empty_as_null=False)
    )


def _choose(values: pl.LazyFrame, setting: _Setting, names: tuple[str, str]) -> pl.LazyFrame:
    """Choose a strategy for each level, budget and fold: on the other folds, and on all."""
    # `sums` are of a strategy in one fold, in all folds (`_all`) and in those that it was chosen on
    # (`_seen`). Each choice has two rows, under the first of the names and under the second.
    strategy = [*setting.strategy]
    level = [*setting.line, "level", "budget"]
    cell = [*level, "problem_fold", "name"]
    sums = ["n", "n_problems", "total", "cost"]
    value, cost = pl.col("value"), pl.col("cost").cast(pl.Float64).fill_nan(None)
    totals = (
        values
        .filter(pl.col("severity") == 0)
        .group_by(*level, "problem_fold", *strategy)
        .agg(
            n=pl.len().cast(pl.Int64),
            n_problems=pl.col("problem_id").n_unique().cast(pl.Int64),
            total=in_order(value).list.sum(),
            # An unknown cost is the highest.
            cost=pl
            .when(cost.count() == pl.len())
            .then(in_order(cost).list.sum())
            .otherwise(float("inf")),
            of_problem=pl.struct("problem_id", "fold", "value", "cost"),
        )
        .with_columns(in_order(pl.col(sums)).list.sum().over(*level, *strategy).name.suffix("_all"))
        .with_columns(name=pl.lit([*names], pl.List(pl.String)))
        .explode("name", empty_as_null=False)
    )
    is_held_out = pl.col("name") == names[0]
    seen = [
        pl.when(is_held_out).then(_of_others(name)).otherwise(f"{name}_all").alias(f"{name}_seen")
        for name in sums
    ]
    total, cost = pl.col("total_seen"), pl.col("cost_seen")
    # A strategy that reads no score needs no verifier, so it is cheaper if no cost is known.
    reads_score = [
        pl.col(key).is_not_null() for key, name in setting.strategy.items() if name == "reduction"
    ]
    return (
        totals
        .with_columns(seen)
        .with_columns(n_strategies=pl.len().over(cell))
        .filter(total >= total.max().over(cell) - _TIE * pl.col("n_seen"))
        .with_columns(n_tied=pl.len().over(cell))
        .filter(cost <= cost.min().over(cell) * (1.0 + _TIE))
        .sort(*reads_score, *strategy)
        .unique(cell, keep="first", maintain_order=True)
    )


def _of_others(name: str) -> pl.Expr:
    """Return a sum over the other folds; infinity minus infinity stays infinite."""
    of_all = pl.col(f"{name}_all")
    if name != "cost":
        return of_all - pl.col(name)
    return pl.when(of_all.is_infinite()).then(of_all).otherwise(of_all - pl.col(name))


def _hashed(name: str, seed: int) -> pl.Expr:
    """Return 64 bits for each name that depend on nothing but the name and the seed."""

    def digests(names: pl.Series) -> pl.Series:
        bits = [
            hashlib.blake2b(f"{seed} {value!r}".encode(), digest_size=8).digest() for value in names
        ]
        return pl.Series(names.name, [int.from_bytes(b, "little") for b in bits], pl.UInt64)

    return pl.col(name).map_batches(digests, return_dtype=pl.UInt64, is_elementwise=True)


def _answers(chosen: pl.LazyFrame, setting: _Setting) -> pl.LazyFrame:
    """Return the value of each problem under the strategy chosen for it."""
    is_in_one_fold = pl.col("n_all") == pl.col("n")
    status = pl.when(is_in_one_fold).then(pl.lit("undefined")).otherwise(pl.lit("ok"))
    return (
        chosen
        .select(*setting.line, "level", "budget", "name", "of_problem", status=status)
        .explode("of_problem", empty_as_null=False)
        .unnest("of_problem")
        .with_columns(pl.when(pl.col("status") == "ok").then(pl.col("value", "cost")))
    )


def _left_out(values: pl.LazyFrame, setting: _Setting, names: tuple[str, str]) -> pl.LazyFrame:
    """Return each problem without a value, once per name, with the reason."""
    statuses = {severity: status for status, severity in SEVERITY.items()}
    return (
        values
        .filter(pl.col("severity") > 0)
        .group_by(*setting.line, "problem_id", "fold", "budget")
        .agg(pl.col("level").first(), pl.col("severity").first())
        .with_columns(
            value=pl.lit(None, pl.Float64),
            cost=pl.lit(None, pl.Float64),
            status=pl.col("severity").replace_strict(statuses, return_dtype=pl.String),
            name=pl.lit([*names], pl.List(pl.String)),
        )
        .explode("name", empty_as_null=False)
    )
