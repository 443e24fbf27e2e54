"""Votes: the number of attempts with each answer of a problem and their weight, per budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple, get_args

import numpy as np
import polars as pl

from ttsframe._checks import check_budgets, check_choice, check_frame, check_names
from ttsframe._exprs import run_plan
from ttsframe._typing import ColumnNames, Flags, Floats, FrameT, Integers, Reduction, Weights
from ttsframe.schema import require_columns
from ttsframe.votes.engine.ballots import Ballots
from ttsframe.votes.engine.picked import ALL_ATTEMPTS, check_one_run
from ttsframe.votes.engine.pools import (
    UNGRADED,
    Block,
    Pools,
    Reading,
    key_dtype,
    make_readings,
    map_pools,
)
from ttsframe.votes.engine.runs import stable_order
from ttsframe.votes.engine.searches import refuse_prefixes

__all__ = ["tally_votes"]

_VOTE_COLUMNS: Final[Mapping[str, type[pl.DataType]]] = MappingProxyType({
    "budget": pl.UInt32,
    "reduction": pl.String,
    "answer_key": pl.String,
    "answer": pl.String,
    "n_votes": pl.UInt32,
    "weight": pl.Float64,
    "top_score": pl.Float64,
    "first_attempt": pl.UInt32,
    "is_correct": pl.Boolean,
})


def tally_votes(
    trajectories: FrameT,
    /,
    *,
    budgets: int | Sequence[int] | None = None,
    reductions: Reduction | Sequence[Reduction] | None = None,
    weights: Weights = "score",
    by: ColumnNames = (),
) -> FrameT:
    """Count votes and add up weights per distinct answer of each problem, at each budget.

    All selectors pick from this table. It shows why an answer won.

    Parameters
    ----------
    trajectories
        One row per attempt, with `problem_id`, `attempt` (0..n-1 within `by` and problem) and
        `answer_key` (null: no answer found). `answer`, `is_correct` and `score` are read if
        present.
    budgets
        As in `select_answers`.
    reductions
        As in `select_answers`; without the column `score`, None counts votes only.
    weights
        Weight of an attempt's vote, as in `select_answers`.
    by
        As in `select_answers`.

    Returns
    -------
    FrameT
        `votes`, one row per (by, `problem_id`, `budget`, `reduction`, `answer_key`), sorted by the
        first four and then by `first_attempt`: `answer` (String, the earliest spelling), `n_votes`
        (UInt32), `weight` (Float64, null if no attempt with this answer has a score or a weight is
        negative or not finite), `top_score` (Float64, null if none has a score), `first_attempt`
        (UInt32) and its `is_correct`. The row with a null `answer_key` counts the attempts that
        abstain.

    Raises
    ------
    ColumnsError
        At once, if a column is missing.
    ParameterError
        At once, if a budget, reduction or kind of weight is invalid, or `by` names a column of the
        result.
    DataError
        On collection, if a problem has more attempts below a budget than the budget: `by` does not
        name the column that tells runs apart.

    See Also
    --------
    select_answers : Picks the winners of this table.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> trajectories = pl.DataFrame({
    ...     "problem_id": ["p"] * 4,
    ...     "attempt": [0, 1, 2, 3],
    ...     "answer_key": ["42", "47", "42", None],
    ...     "score": [0.25, 0.75, 0.25, 0.5],
    ... })
    >>> votes = tts.tally_votes(trajectories, budgets=[2, 4])
    >>> votes.select("budget", "answer_key", "n_votes", "weight", "first_attempt")
    shape: (5, 5)
    ┌────────┬────────────┬─────────┬────────┬───────────────┐
    │ budget ┆ answer_key ┆ n_votes ┆ weight ┆ first_attempt │
    │ ---    ┆ ---        ┆ ---     ┆ ---    ┆ ---           │
    │ u32    ┆ str        ┆ u32     ┆ f64    ┆ u32           │
    ╞════════╪════════════╪═════════╪════════╪═══════════════╡
    │ 2      ┆ 42         ┆ 1       ┆ 0.25   ┆ 0             │
    │ 2      ┆ 47         ┆ 1       ┆ 0.75   ┆ 1             │
    │ 4      ┆ 42         ┆ 2       ┆ 0.5    ┆ 0             │
    │ 4      ┆ 47         ┆ 1       ┆ 0.75   ┆ 1             │
    │ 4      ┆ null       ┆ 1       ┆ 0.5    ┆ 3             │
    └────────┴────────────┴─────────┴────────┴───────────────┘
    """
    check_frame(trajectories, "trajectories")
    checked = check_budgets(budgets)
    check_choice(weights, "weights", get_args(Weights))
    names: tuple[str, ...] = check_names(by, "by", taken=("problem_id", *_VOTE_COLUMNS))
    schema = require_columns(trajectories, [*names, "problem_id", "attempt", "answer_key"])
    readings = make_readings(schema, reductions, is_score_needed=False)

    keys = [*names, "problem_id"]

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        return map_pools(
            refuse_prefixes(lazy, schema, keys, checked),
            schema,
            keys=keys,
            readings=readings,
            work=lambda pools: _count(pools, readings, checked, weights, keys),
            made={**_VOTE_COLUMNS, "answer_key": key_dtype(schema)},
        )

    return run_plan(trajectories, plan)


class _Counted(NamedTuple):
    """Votes of a block: an entry per answer and budget with a vote.

    `problem` and `first` number problems and rows of the pools. `weight` and `top_score` have a
    column per reading, NaN for none. The last two arrays are of (problem, budget).
    """

    problem: Integers
    budget: Integers
    first: Integers
    n_votes: Integers
    weight: Floats
    top_score: Floats
    n_attempts: Integers
    is_repeated: Flags


def _count(
    pools: Pools,
    readings: Sequence[Reading],
    budgets: tuple[int, ...] | None,
    weights: Weights,
    names: Sequence[str],
) -> pl.DataFrame:
    """Make the table of votes."""
    limits = np.array(budgets or (ALL_ATTEMPTS,))
    blocks = pools.in_blocks(
        len(limits), lambda block: _count_block(block, len(readings), limits, weights)
    )
    if not blocks:
        return pl.DataFrame(schema={**pools.problems.schema, **_VOTE_COLUMNS})
    counted = _Counted(*[np.concatenate(parts) for parts in zip(*blocks, strict=True)])
    check_one_run(
        pools, counted.n_attempts[pools.order], counted.is_repeated[pools.order], limits, names
    )
    n_lines = max(len(readings), 1)
    line = np.tile(np.arange(n_lines), len(counted.first))
    entry = np.repeat(np.arange(len(counted.first)), n_lines)
    # Answers of a block are in order of their first attempts.
    slot = pools.position[counted.problem] * len(limits) + counted.budget
    order = stable_order(slot[entry] * n_lines + _ranks(readings)[line])
    line, entry = line[order], entry[order]
    first = pl.Series(counted.first[entry])
    grade = pools.rows["grade"].gather(first)
    key = pools.rows["key"].gather(first)
    spelling = pools.rows["answer"].gather(first) if "answer" in pools.rows.columns else key
    table = pools.problems.select(pl.all().gather(counted.problem[entry])).with_columns(
        pl.Series(budgets or [None], dtype=pl.UInt32).gather(counted.budget[entry]).alias("budget"),
        pl
        .Series([reading.name for reading in readings] or [None], dtype=pl.String)
        .gather(line)
        .alias("reduction"),
        key.cast(pools.key_dtype).alias("answer_key"),
        spelling.cast(pl.String).set(key.is_null(), None).alias("answer"),
        pl.Series("n_votes", counted.n_votes[entry]).cast(pl.UInt32),
        pl.Series("weight", counted.weight[entry, line], nan_to_null=True),
        pl.Series("top_score", counted.top_score[entry, line], nan_to_null=True),
        pools.rows["attempt"].gather(first).alias("first_attempt"),
        (grade == 1).set(grade == UNGRADED, None).alias("is_correct"),
    )
    return table.select(*pools.problems.columns, *_VOTE_COLUMNS)


def _ranks(readings: Sequence[Reading]) -> Integers:
    """Return the rank of each reading in order of names."""
    names = [reading.name for reading in readings] or [""]
    return np.array([sorted(names).index(name) for name in names])


def _count_block(block: Block, n_readings: int, budgets: Integers, weights: Weights) -> _Counted:
    """Count the votes of a block."""
    ballots = Ballots(block, budgets, weights)
    budget, answer = np.nonzero(ballots.votes)
    n_problems = len(block.starts) - 1
    n_attempts = np.zeros((n_problems, len(budgets)), np.int64)
    is_repeated = np.zeros((n_problems, len(budgets)), bool)
    shape = (len(answer), max(n_readings, 1))
    weight, top_score = np.full(shape, np.nan), np.full(shape, np.nan)
    if len(answer):
        n_attempts[ballots.problems] = ballots.n_attempts.T
        is_repeated[ballots.problems] = ballots.is_repeated().T
    for i in range(n_readings if len(answer) else 0):
        is_scored = ballots.is_within(ballots.first_scored(i))
        total = np.where(is_scored, ballots.weights(i), np.nan)
        weight[:, i] = np.where(np.isfinite(total), total, np.nan)[budget, answer]
        top_score[:, i] = ballots.top_scores(i)[budget, answer]
    return _Counted(
        problem=block.first_problem + ballots.problems[ballots.answer_problem[answer]],
        budget=budget,
        first=block.first_row + ballots.row_in_block[ballots.first_row[answer]],
        n_votes=ballots.votes[budget, answer],
        weight=weight,
        top_score=top_score,
        n_attempts=n_attempts,
        is_repeated=is_repeated,
    )
