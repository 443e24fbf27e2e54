"""What is asked of strategies: columns checked and named, and values put at their levels."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, get_args

import polars as pl

from ttsframe._checks import check_choice, check_frame, check_names, check_positive, check_seed
from ttsframe._typing import ColumnNames, ProblemSet
from ttsframe.curves.optimal.choosing import Columns, Folding, levels_of, placed_problems
from ttsframe.errors import ColumnsError, ParameterError
from ttsframe.schema import require_columns

_BOUND: Final = "oracle"
"""What no method reaches, and so no strategy."""

_READ_COLUMNS: Final = ("problem_id", "budget", "value", "status")

STRATEGY: Final = ("selector", "reduction")
"""Columns that tell strategies apart, unless others are named."""

CHOICE_COLUMNS: Final = (
    "accuracy_seen",
    "accuracy",
    "n_seen",
    "n_problems",
    "n_strategies",
    "n_tied",
)


class Question(NamedTuple):
    """What is asked, checked: names of columns, folds, and what the tables have."""

    columns: Columns
    folding: Folding
    strategy: tuple[str, ...]
    cost: str | None
    has_half: bool
    has_fold: bool
    has_selector: bool
    constants: dict[str, str]


def asked(
    problems: pl.DataFrame | pl.LazyFrame,
    levels: pl.DataFrame | pl.LazyFrame,
    *,
    strategy: ColumnNames,
    by: tuple[str, ...],
    replicates: ColumnNames,
    cost: str | None,
    folding: Folding,
) -> Question:
    """Check what every function of strategies is given, and name the columns.

    Parameters
    ----------
    problems
        The caller's `problems`.
    levels
        The caller's `levels`.
    strategy
        Columns that tell strategies apart.
    by
        Columns that get choices of their own; "level" is one of the result anyway.
    replicates
        Columns that number repetitions.
    cost
        Column of costs, if there is one.
    folding
        How to deal problems into folds, and which count.

    Returns
    -------
    Question
        What is asked.

    Raises
    ------
    ParameterError
        When a parameter is impossible.
    """
    check_frame(problems, "problems")
    check_frame(levels, "levels")
    check_choice(folding.include, "include", get_args(ProblemSet))
    check_seed(folding.seed)
    if check_positive(folding.n_folds, "n_folds") < 2:
        raise ParameterError(
            f"n_folds == {folding.n_folds}, must be at least 2. Hint: the line that chooses and "
            "judges on all problems stands beside the other anyway."
        )
    taken = {*_READ_COLUMNS, *CHOICE_COLUMNS, "level", "problem_fold", "cost"}
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
        problems,
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
    own += ["cost_unit"] * (cost is not None and "cost_unit" in schema)
    return Question(
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


def placed_at_levels(lazy: pl.LazyFrame, levels: pl.LazyFrame, question: Question) -> pl.LazyFrame:
    """Name the columns of both tables as on the way, and put values at their levels.

    Parameters
    ----------
    lazy
        The caller's `problems`.
    levels
        The caller's `levels`.
    question
        What is asked.

    Returns
    -------
    pl.LazyFrame
        What `placed_problems` gives.
    """
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


def renamed_back(columns: Mapping[str, str]) -> list[pl.Expr]:
    """Give columns the names that the caller gave them.

    Parameters
    ----------
    columns
        Names on the way, with the caller's.

    Returns
    -------
    list[pl.Expr]
        The columns.
    """
    return [pl.col(key).alias(name) for key, name in columns.items()]
