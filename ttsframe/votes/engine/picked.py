"""The table of what selectors pick."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ttsframe._typing import Flags, Floats, Integers, Weights
from ttsframe.errors import DataError
from ttsframe.votes.engine.ballots import NONE, Ballots
from ttsframe.votes.engine.pools import UNGRADED, Block, Pools, name_problem
from ttsframe.votes.engine.registry import Pick

ALL_ATTEMPTS: Final = 2**32
"""The budget that includes every attempt, since attempts are numbered in 32 bits."""

PROBLEM_COLUMNS: Final[Mapping[str, type[pl.DataType]]] = MappingProxyType({
    "budget": pl.UInt32,
    "subsets": pl.String,
    "selector": pl.String,
    "reduction": pl.String,
    "attempt": pl.UInt32,
    "answer": pl.String,
    "answer_key": pl.String,
    "is_correct": pl.Boolean,
    "value": pl.Float64,
    "status": pl.String,
    "n_attempts": pl.UInt32,
    "n_valid": pl.UInt32,
    "n_votes": pl.UInt32,
    "weight": pl.Float64,
    "agreement": pl.Float64,
})
"""Columns of `problems` after those that identify a problem."""

PICKED_COLUMNS: Final[Mapping[str, type[pl.DataType]]] = MappingProxyType({
    "budget": pl.UInt32,
    "selector": pl.String,
    "reduction": pl.String,
    "attempt": pl.UInt32,
    "grade": pl.Int8,
    "answer_key": pl.String,
    "answer": pl.String,
    "n_attempts": pl.Int64,
    "n_valid": pl.Int64,
    "is_graded": pl.Boolean,
    "n_votes": pl.Int64,
    "weight": pl.Float64,
    "status": pl.String,
})
"""Columns of `pick_winners`, from which `problem_columns` makes those of `problems`."""

_STATUSES: Final = (None, "short", "unscored", "undefined")
_SHORT, _UNSCORED, _UNDEFINED = 1, 2, 3


class _Picked(NamedTuple):
    """Arrays of (problem, budget), or of (problem, budget, pick), with problems in sorted order."""

    n_attempts: Integers
    n_valid: Integers
    is_graded: Flags
    is_repeated: Flags
    row: Integers
    """The winner: a row of the pools."""
    spelling: Integers
    """The earliest row with the winner's answer."""
    n_votes: Integers
    weight: Floats
    status: npt.NDArray[np.int8]
    """Index in `_STATUSES`."""


def pick_winners(
    pools: Pools,
    picks: Sequence[Pick],
    budgets: tuple[int, ...] | None,
    weights: Weights,
    names: Sequence[str],
) -> pl.DataFrame:
    """Make the table of what each selector picks, sorted by problem and budget."""
    limits = np.array(budgets or (ALL_ATTEMPTS,))
    if any(pick.selector.reads_texts for pick in picks):
        pools = pools.with_texts()
    picked = _empty(len(pools.order), len(limits), len(picks))

    def pick(block: Block) -> None:
        ballots = Ballots(block, limits, weights)
        if len(ballots.problems):
            problem = pools.position[block.first_problem + ballots.problems]
            _fill(picked, problem, ballots, picks, block.first_row)

    is_own = any(pick.selector.is_own for pick in picks)
    pools.in_blocks(len(limits), pick, uses_polars=is_own)
    check_one_run(pools, picked.n_attempts, picked.is_repeated, limits, names)
    n_problems, n_budgets = picked.n_attempts.shape
    n_picks = len(picks)
    of_slot = np.repeat(np.arange(n_problems * n_budgets), n_picks)
    row = _rows(picked.row)
    key = pools.rows["key"].gather(row)
    text = key.cast(pl.String)
    if "answer" in pools.rows.columns:
        answer = pools.rows["answer"].gather(_rows(picked.spelling)).cast(pl.String)
    else:
        answer = text
    selectors = pl.Series([pick.name for pick in picks], dtype=pl.String)
    reductions = pl.Series([pick.reading and pick.reading.name for pick in picks], dtype=pl.String)
    line = np.tile(np.arange(n_picks), n_problems * n_budgets)
    problem = np.repeat(pools.order, n_budgets * n_picks)
    budget = pl.Series(budgets or [None], dtype=pl.UInt32)
    return pools.problems.select(pl.all().gather(problem)).with_columns(
        budget.gather(of_slot % n_budgets).alias("budget"),
        selectors.gather(line).alias("selector"),
        reductions.gather(line).alias("reduction"),
        pools.rows["attempt"].gather(row).alias("attempt"),
        pools.rows["grade"].gather(row).alias("grade"),
        (text if pools.key_dtype == pl.String else key).alias("answer_key"),
        answer.alias("answer"),
        pl.Series("n_attempts", picked.n_attempts.ravel()[of_slot]),
        pl.Series("n_valid", picked.n_valid.ravel()[of_slot]),
        pl.Series("is_graded", picked.is_graded.ravel()[of_slot]),
        pl.Series("n_votes", picked.n_votes.ravel()),
        pl.Series("weight", picked.weight.ravel(), nan_to_null=True),
        pl.Series(_STATUSES, dtype=pl.String).gather(picked.status.ravel()).alias("status"),
    )


def _rows(rows: Integers) -> pl.Series:
    """Return rows as indices, null for `NONE`."""
    indices = pl.Series(rows.ravel(), dtype=pl.Int64)
    return indices.set(indices == NONE, None)


def _fill(
    picked: _Picked, problem: Integers, ballots: Ballots, picks: Sequence[Pick], first_row: int
) -> None:
    """Write what each selector picks into the rows `problem` of the arrays."""
    n_attempts = ballots.n_attempts
    picked.n_attempts[problem] = n_attempts.T
    picked.n_valid[problem] = ballots.n_valid.T
    picked.is_graded[problem] = ballots.is_graded().T
    picked.is_repeated[problem] = ballots.is_repeated().T
    least = np.where(ballots.budgets == ALL_ATTEMPTS, 1, ballots.budgets)
    is_short = n_attempts < least[:, None]
    is_unanswerable = ballots.is_unanswerable()
    for i, pick in enumerate(picks):
        selector = pick.selector
        winners = pick.winners(ballots)
        is_picked = winners.row != NONE
        row = np.where(is_picked, winners.row, 0)
        answer = ballots.answer[row]
        has_answer = is_picked & ballots.is_answer[answer]
        n_votes = np.where(has_answer, np.take_along_axis(ballots.votes, answer, axis=1), 0)
        status = np.zeros(row.shape, np.int8)
        if selector.needs_answer:
            status = np.where(is_unanswerable, _UNDEFINED, status)
        kind = selector.weights_of(ballots.kind)
        if kind is not None:
            status = np.where(ballots.is_defined(pick.number, kind), status, _UNDEFINED)
        if selector.reads_score:
            status = np.where(ballots.is_scored(pick.number), status, _UNSCORED)
        row_in_pools = ballots.row_in_block + first_row
        picked.row[problem, :, i] = np.where(is_picked, row_in_pools[row], NONE).T
        spelling = row_in_pools[ballots.first_row[answer]]
        picked.spelling[problem, :, i] = np.where(has_answer, spelling, NONE).T
        picked.n_votes[problem, :, i] = n_votes.T
        picked.weight[problem, :, i] = np.where(is_picked, winners.weight, np.nan).T
        picked.status[problem, :, i] = np.where(is_short, _SHORT, status).T


def _empty(n_problems: int, n_budgets: int, n_picks: int) -> _Picked:
    """Return arrays for problems without any attempt."""
    slots, lines = (n_problems, n_budgets), (n_problems, n_budgets, n_picks)
    return _Picked(
        n_attempts=np.zeros(slots, np.int64),
        n_valid=np.zeros(slots, np.int64),
        is_graded=np.zeros(slots, bool),
        is_repeated=np.zeros(slots, bool),
        row=np.full(lines, NONE),
        spelling=np.full(lines, NONE),
        n_votes=np.zeros(lines, np.int64),
        weight=np.full(lines, np.nan),
        status=np.full(lines, _SHORT, np.int8),
    )


def check_one_run(
    pools: Pools,
    n_attempts: Integers,
    is_repeated: Flags,
    budgets: Integers,
    names: Sequence[str],
) -> None:
    """Raise if a problem has several rows with the same attempt number within a budget."""
    broken = np.argwhere((n_attempts > budgets) | is_repeated)
    if not len(broken):
        return
    problem, budget = broken[0]
    n = n_attempts[problem, budget]
    found = (
        "several rows with the same 'attempt', expected one"
        if n <= budgets[budget]
        else f"{n} rows with attempt < {budgets[budget]}, expected {budgets[budget]}"
    )
    where = name_problem(pools, int(pools.order[problem]), names)
    raise DataError(
        f"{where}: {found}. Hint: name the column that tells runs, models or seeds apart in "
        f"by=(...), such as by='source_file' for files read together; now {list(names[:-1])}; "
        "tts.validate_trajectories(trajectories) lists repeated attempts, "
        "tts.renumber_attempts(trajectories) renumbers them."
    )


def problem_columns() -> dict[str, pl.Expr]:
    """Build the columns of `problems` from those of `pick_winners`."""
    is_picked = pl.col("status").is_null()
    is_wrong = pl.col("attempt").is_null() & pl.col("is_graded")
    is_correct = (
        pl
        .when(is_wrong)
        .then(pl.lit(value=False))
        .when(pl.col("grade") != UNGRADED)
        .then(pl.col("grade") == 1)
    )
    status = pl.when(is_correct.is_null()).then(pl.lit("ungraded")).otherwise(pl.lit("ok"))
    has_answer = pl.col("answer_key").is_not_null()
    shown = {
        "attempt": pl.col("attempt"),
        "answer": pl.when(has_answer).then("answer"),
        "answer_key": pl.col("answer_key"),
        "is_correct": is_correct,
        "value": is_correct.cast(pl.Float64),
        "n_votes": pl.col("n_votes"),
        "weight": pl.col("weight"),
        "agreement": pl.col("n_votes") / pl.col("n_attempts"),
    }
    columns = {
        "budget": pl.col("budget"),
        "subsets": pl.lit("prefix"),
        "selector": pl.col("selector"),
        "reduction": pl.col("reduction"),
        "status": pl.coalesce("status", status),
        "n_attempts": pl.col("n_attempts"),
        "n_valid": pl.col("n_valid"),
        **{name: pl.when(is_picked).then(expr) for name, expr in shown.items()},
    }
    # Keys keep the dtype that the caller gave them.
    return {
        name: columns[name] if name == "answer_key" else columns[name].cast(dtype)
        for name, dtype in PROBLEM_COLUMNS.items()
    }
