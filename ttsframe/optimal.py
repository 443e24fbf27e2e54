"""Compute-optimal scaling: the best strategy for each difficulty, chosen where it is not judged."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, get_args

import polars as pl

from ttsframe._checks import (
    check_choice,
    check_fraction,
    check_frame,
    check_names,
    check_positive,
    check_seed,
)
from ttsframe._choices import Columns, Folding, choose, levels_of, placed_problems
from ttsframe._exprs import run_plan
from ttsframe._typing import ColumnNames, FrameT, ProblemSet
from ttsframe._units import SEVERITY
from ttsframe.errors import ColumnsError, ParameterError
from ttsframe.scaling import scaling_curve
from ttsframe.schema import require_columns

__all__ = ["compute_optimal_choices", "compute_optimal_curve"]

_BOUND: Final = "oracle"
"""What no method reaches, and so no strategy."""

_READ_COLUMNS: Final = ("problem_id", "budget", "value", "status")

_CHOICE_COLUMNS: Final = (
    "level",
    "problem_fold",
    "accuracy_seen",
    "accuracy",
    "n_seen",
    "n_problems",
    "n_strategies",
    "n_tied",
)

_CURVE_COLUMNS: Final = (
    "selector",
    "reduction",
    "subsets",
    "standard_error",
    "ci_low",
    "ci_high",
    *[f"n_{status}" for status in SEVERITY if SEVERITY[status]],
)

_STRATEGY: Final = ("selector", "reduction")


class _Question(NamedTuple):
    """What is asked, checked: names of columns, folds, and what the tables have."""

    columns: Columns
    folding: Folding
    strategy: tuple[str, ...]
    cost: str | None
    has_half: bool
    has_fold: bool
    has_selector: bool
    constants: dict[str, str]


def compute_optimal_curve(
    selected: FrameT,
    /,
    *,
    levels: pl.DataFrame | pl.LazyFrame,
    strategy: ColumnNames = _STRATEGY,
    by: ColumnNames = (),
    replicates: ColumnNames = (),
    cost: str | None = None,
    n_folds: int = 2,
    seed: int = 0,
    problems: ProblemSet = "common",
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
    selected
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
        Numeric column of `selected`: what a row cost, such as tokens or FLOPs.
    n_folds
        Number of folds of problems, at least 2; each is judged by what was chosen on the others.
    seed
        Seed of the folds, which depend on it and on the table of levels alone.
    problems
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
        levels, and when levels are of halves and `selected` is not.

    See Also
    --------
    compute_optimal_choices : What was chosen.
    difficulty_levels : Levels, by accuracy (oracle) or by the verifier (predicted).

    Notes
    -----
    For problem :math:`q` of level :math:`b` in fold :math:`f`, at budget :math:`N`,

    .. math:: \theta^*_f(b, N) = \arg\max_\theta \sum_{p \in b,\, f(p) \ne f} x_p(\theta, N)

    and the curve is the mean of :math:`x_q(\theta^*_{f}(b, N), N)` over problems. Of strategies that
    are equally good the cheapest is chosen; where that does not decide, or no cost is known, one
    that reads no score, and then the first in the order of the columns of `strategy`.

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
    >>> curve = tts.compute_optimal_curve(problems, levels=levels)
    >>> curve.select("selector", "budget", "accuracy", "n_problems").rows()
    [('compute_optimal', 8, 1.0, 4), ('compute_optimal_in_sample', 8, 1.0, 4)]
    """
    check_fraction(confidence_level, "confidence_level")
    if not name:
        raise ParameterError("name is empty, must say what to call the line.")
    groups: tuple[str, ...] = check_names(by, "by", taken=_CURVE_COLUMNS)
    question: _Question = _asked(
        selected,
        levels,
        strategy=strategy,
        by=groups,
        replicates=replicates,
        cost=cost,
        folding=Folding(n_folds, seed, problems),
    )
    repeats: list[str] = [] if "fold" in groups else ["fold"]
    lines = (name, f"{name}_in_sample")

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        placed = _placed(lazy, levels.lazy(), question)
        chosen = choose(placed, question.columns, lines)
        rows = pl.concat([_answered(chosen), _left_out(placed, question, lines)], how="diagonal")
        return scaling_curve(
            rows.select(
                *_named(question.columns.line),
                *[pl.lit(None, pl.String).alias("subsets")] * ("subsets" in question.strategy),
                *[pl.col("half").alias("fold")] * len(repeats),
                *["level", "problem_id", "budget", "value", "status"],
                selector="name",
                reduction=pl.lit(None, pl.String),
            ),
            by=groups,
            replicates=repeats,
            problems=problems,
            confidence_level=confidence_level,
        )

    return run_plan(selected, plan)


def compute_optimal_choices(
    selected: FrameT,
    /,
    *,
    levels: pl.DataFrame | pl.LazyFrame,
    strategy: ColumnNames = _STRATEGY,
    by: ColumnNames = (),
    replicates: ColumnNames = (),
    cost: str | None = None,
    n_folds: int = 2,
    seed: int = 0,
    problems: ProblemSet = "common",
) -> FrameT:
    """Say which strategy is best for each level of difficulty and budget, and by how much.

    What `compute_optimal_curve` averages: one choice for each fold of problems, made on the others,
    and the choice on all problems, which is the one to use from now on. Folds that choose
    differently are strategies that these problems cannot tell apart.

    Parameters
    ----------
    selected
        `problems`, as in `compute_optimal_curve`.
    levels
        One row per (by, `problem_id`), with `level`, or per half of the attempts.
    strategy
        Columns that tell strategies apart.
    by
        Columns that get choices of their own, such as the run.
    replicates
        Columns that number repetitions of one run, averaged per problem before anything else.
    cost
        Numeric column of `selected`: what a row cost, such as tokens or FLOPs.
    n_folds
        Number of folds of problems, at least 2.
    seed
        Seed of the folds.
    problems
        "common" takes the same problems at every budget, "available" those that are there.

    Returns
    -------
    FrameT
        One row per (by, `level`, `budget`, `subsets`, `problem_fold`), sorted:

        - `problem_fold` (UInt32): the fold of problems that the choice is for; null: chosen on all
          problems, and judged on the same;
        - the columns of `strategy`: what was chosen;
        - `accuracy_seen` (Float64): its mean on the problems that it was chosen on;
        - `accuracy` (Float64): its mean on those that it is for;
        - `n_seen`, `n_problems` (UInt32): how many these are;
        - `n_strategies`, `n_tied` (UInt32): strategies there were, and those of them that were
          equally good, at least 1;
        - `cost` (Float64), if there is one: the mean of it on the problems that the choice is for,
          null where it is not known of all.

        A level whose problems are all in one fold has no rows: nothing can be chosen for it.

    Raises
    ------
    ColumnsError
        At once, as `compute_optimal_curve`.
    ParameterTypeError
        At once, as `compute_optimal_curve`.
    ParameterError
        At once, as `compute_optimal_curve`.
    DataError
        On collection, as `compute_optimal_curve`.

    See Also
    --------
    compute_optimal_curve : The accuracy of what was chosen.

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
    >>> choices = tts.compute_optimal_choices(problems, levels=levels)
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
    groups: tuple[str, ...] = check_names(by, "by", taken=("level",))
    question: _Question = _asked(
        selected,
        levels,
        strategy=strategy,
        by=groups,
        replicates=replicates,
        cost=cost,
        folding=Folding(n_folds, seed, problems),
    )
    line: dict[str, str] = question.columns.line
    parts: dict[str, str] = question.columns.parts
    keys = [key for key, own in line.items() if own in groups]
    others = [key for key in line if key not in keys]

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        lines = ("held_out", "in_sample")
        chosen = choose(_placed(lazy, levels.lazy(), question), question.columns, lines)
        is_held_out = pl.col("name") == lines[0]

        def own(column: str) -> pl.Expr:
            return pl.when(is_held_out).then(column).otherwise(f"{column}_all")

        cost_of = own("cost") / own("n")
        return (
            chosen
            .filter(pl.col("n_all") > pl.col("n"))
            .select(
                *line,
                *parts,
                *["level", "budget"],
                problem_fold=pl.when(is_held_out).then("problem_fold"),
                accuracy_seen=pl.col("total_seen") / pl.col("n_seen"),
                accuracy=own("total") / own("n"),
                n_seen=pl.col("n_problems_seen").cast(pl.UInt32),
                n_problems=own("n_problems").cast(pl.UInt32),
                n_strategies=pl.col("n_strategies"),
                n_tied=pl.col("n_tied"),
                cost=pl.when(cost_of.is_finite()).then(cost_of),
            )
            # Chosen on all, a strategy is the same for every fold.
            .unique([*line, "level", "budget", "problem_fold"])
            .sort(*keys, "level", "budget", *others, "problem_fold", nulls_last=True)
            .select(
                *_named({key: line[key] for key in keys}),
                *["level", "budget"],
                *_named({key: line[key] for key in others}),
                "problem_fold",
                *_named(parts),
                *_CHOICE_COLUMNS[2:],
                *["cost"] * (cost is not None),
            )
        )

    return run_plan(selected, plan)


def _asked(
    selected: pl.DataFrame | pl.LazyFrame,
    levels: pl.DataFrame | pl.LazyFrame,
    *,
    strategy: ColumnNames,
    by: tuple[str, ...],
    replicates: ColumnNames,
    cost: str | None,
    folding: Folding,
) -> _Question:
    """Check what both functions are given, and name the columns."""
    check_frame(selected, "selected")
    check_frame(levels, "levels")
    check_choice(folding.problems, "problems", get_args(ProblemSet))
    check_seed(folding.seed)
    if check_positive(folding.n_folds, "n_folds") < 2:
        raise ParameterError(
            f"n_folds == {folding.n_folds}, must be at least 2. Hint: the line that chooses and "
            "judges on all problems stands beside the other anyway."
        )
    taken = {*_READ_COLUMNS, *_CHOICE_COLUMNS}
    uses: dict[str, tuple[str, ...]] = {
        "strategy": check_names(strategy, "strategy", taken=(*taken, "budget_unit", "fold")),
        "by": check_names(
            tuple(name for name in by if name != "level"), "by", taken=(*taken, "budget_unit")
        ),
        "replicates": check_names(replicates, "replicates", taken=(*taken, "fold")),
    }
    if not uses["strategy"]:
        raise ParameterError("strategy is empty, must name the columns that tell strategies apart.")
    _check_apart(uses)
    costs = [] if cost is None else [cost]
    schema = require_columns(
        selected,
        [*_READ_COLUMNS, *itertools.chain(*uses.values()), *costs],
        where="problems",
        hint="tts.select_answers(trajectories, budgets=[...]) makes this table; name the columns of "
        "yours that tell strategies apart in strategy=(...).",
    )
    of_levels = require_columns(
        levels,
        ["problem_id", "level"],
        where="levels",
        hint="tts.difficulty_levels(trajectories) makes this table.",
    )
    _check_dtypes(schema, of_levels, uses["by"], costs)
    constants = {
        name: value
        for name, value in (("subsets", "prefix"), ("budget_unit", "attempts"))
        if name not in schema
    }
    keys = {f"key{i}": name for i, name in enumerate(uses["by"])}
    own = [name for name in ("budget_unit", "subsets") if name not in uses["strategy"]]
    return _Question(
        columns=Columns(
            line=keys | {name: name for name in own},
            seeds={f"seed{i}": name for i, name in enumerate(uses["replicates"])},
            parts={f"part{i}": name for i, name in enumerate(uses["strategy"])},
            shared=[key for key, name in keys.items() if name in of_levels],
        ),
        folding=folding,
        strategy=uses["strategy"],
        cost=cost,
        has_half="fold" in schema and "fold" not in by,
        has_fold="fold" in of_levels and "fold" not in by,
        has_selector="selector" in schema,
        constants=constants,
    )


def _check_apart(uses: Mapping[str, tuple[str, ...]]) -> None:
    """Raise where a column has two uses."""
    for (one, names), (other, others) in itertools.combinations(uses.items(), 2):
        if both := sorted(set(names) & set(others)):
            raise ParameterError(
                f"{one} and {other} both name {both}; a column tells strategies apart (strategy), "
                "gets curves of its own (by) or is averaged over (replicates)."
            )


def _check_dtypes(
    schema: pl.Schema, of_levels: pl.Schema, by: Sequence[str], costs: Sequence[str]
) -> None:
    """Raise where a cost is no number, or the tables name problems in different dtypes."""
    for cost in costs:
        if not (schema[cost].is_numeric() or schema[cost] == pl.Null):
            raise ColumnsError(f"problems: {cost!r} is {schema[cost]}, must be a number.")
    for name in ["problem_id", *[name for name in by if name in of_levels]]:
        if of_levels[name] != schema[name]:
            raise ColumnsError(
                f"levels: {name!r} is {of_levels[name]}, must be {schema[name]} as in problems. Hint: "
                "cast it."
            )


def _placed(lazy: pl.LazyFrame, levels: pl.LazyFrame, question: _Question) -> pl.LazyFrame:
    """Name the columns of both tables as on the way, and put values at their levels."""
    columns = question.columns
    if question.has_selector:
        lazy = lazy.filter(pl.col("selector").ne_missing(_BOUND))
    renamed = columns.line | columns.seeds | columns.parts
    cost = pl.lit(None, pl.Float64) if question.cost is None else pl.col(question.cost)
    rows = lazy.with_columns(**{
        name: pl.lit(value) for name, value in question.constants.items()
    }).select(
        *[pl.col(name).alias(key) for key, name in renamed.items()],
        *_READ_COLUMNS,
        half=pl.col("fold").cast(pl.UInt32) if question.has_half else pl.lit(None, pl.UInt32),
        cost=cost.cast(pl.Float64),
    )
    return placed_problems(
        rows,
        levels_of(levels, columns, question.folding, has_fold=question.has_fold),
        columns,
        question.folding,
    )


def _answered(chosen: pl.LazyFrame) -> pl.LazyFrame:
    """Return each problem's value under the strategy that was chosen for it."""
    is_alone = pl.col("n_all") == pl.col("n")
    status = pl.when(is_alone).then(pl.lit("undefined")).otherwise(pl.lit("ok"))
    return (
        chosen
        .with_columns(status=status)
        .explode("of_problem", empty_as_null=False)
        .unnest("of_problem")
    )


def _left_out(placed: pl.LazyFrame, question: _Question, lines: tuple[str, str]) -> pl.LazyFrame:
    """Return each problem that has no value, once per line, with the reason."""
    statuses = {severity: status for status, severity in SEVERITY.items()}
    return (
        placed
        .filter(pl.col("severity") > 0)
        .group_by(*question.columns.line, "problem_id", "half", "budget")
        .agg(pl.col("level").first(), pl.col("severity").first())
        .with_columns(
            value=pl.lit(None, pl.Float64),
            status=pl.col("severity").replace_strict(statuses, return_dtype=pl.String),
            name=pl.lit([*lines], pl.List(pl.String)),
        )
        .explode("name", empty_as_null=False)
    )


def _named(columns: Mapping[str, str]) -> list[pl.Expr]:
    """Give columns the names that the caller gave them."""
    return [pl.col(key).alias(name) for key, name in columns.items()]
