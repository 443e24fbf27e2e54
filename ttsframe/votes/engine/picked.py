"""The table of what selectors pick."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ttsframe._settings import BY, BY_FILE, VALIDATE
from ttsframe._typing import Weights
from ttsframe.errors import DataError
from ttsframe.votes.engine.ballots import NONE, Ballots
from ttsframe.votes.engine.pools import (
    UNGRADED,
    Block,
    Flags,
    Floats,
    Integers,
    Pools,
    name_problem,
)
from ttsframe.votes.engine.registry import PROBLEM_COLUMNS, SELECTORS, Pick

ALL_ATTEMPTS: Final = 2**32
"""The budget that includes every attempt, which are numbered in 32 bits."""

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
    "flaw": pl.String,
})
"""What is known of each pick, from which `judge` makes the columns of `problems`."""

_FLAWS: Final = (None, "short", "unscored", "undefined")


class _Chosen(NamedTuple):
    """What is known so far; arrays of (problem, budget), or of (problem, budget, pick).

    Problems stand in ascending order of what names them. `row` and `spelling` are rows of the
    pools, the winner's and the earliest with its answer.
    """

    n_attempts: Integers
    n_valid: Integers
    is_graded: Flags
    is_repeated: Flags
    row: Integers
    spelling: Integers
    n_votes: Integers
    weight: Floats
    flaw: npt.NDArray[np.int8]


def pick_winners(
    pools: Pools,
    picks: Sequence[Pick],
    budgets: tuple[int, ...] | None,
    weights: Weights,
    names: Sequence[str],
) -> pl.DataFrame:
    """Make the table of what each selector picks.

    Parameters
    ----------
    pools
        Attempts.
    picks
        What to choose by.
    budgets
        Ascending budgets, or None for all attempts.
    weights
        What a vote weighs.
    names
        The caller's names of the columns that name a problem.

    Returns
    -------
    pl.DataFrame
        `PICKED_COLUMNS` behind those that name a problem, one row per problem, budget and pick,
        sorted by the first two.
    """
    limits = np.array(budgets or (ALL_ATTEMPTS,))
    if any(SELECTORS[pick.selector].reads_texts for pick in picks):
        pools = pools.with_texts()
    chosen = _nothing(len(pools.order), len(limits), len(picks))

    def choose(block: Block) -> None:
        ballots = Ballots(block, limits, weights)
        if len(ballots.problems):
            live = pools.position[block.first_problem + ballots.problems]
            _choose(ballots, picks, chosen, live, block.first_row)

    pools.in_blocks(len(limits), choose)
    check_one_run(pools, chosen.n_attempts, chosen.is_repeated, limits, names)
    n_problems, n_budgets = chosen.n_attempts.shape
    n_picks = len(picks)
    of_slot = np.repeat(np.arange(n_problems * n_budgets), n_picks)
    row = _rows(chosen.row)
    key = pools.rows["key"].gather(row)
    text = key.cast(pl.String)
    if "answer" in pools.rows.columns:
        answer = pools.rows["answer"].gather(_rows(chosen.spelling)).cast(pl.String)
    else:
        answer = text
    selectors = pl.Series([pick.selector for pick in picks], dtype=pl.String)
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
        pl.Series("n_attempts", chosen.n_attempts.ravel()[of_slot]),
        pl.Series("n_valid", chosen.n_valid.ravel()[of_slot]),
        pl.Series("is_graded", chosen.is_graded.ravel()[of_slot]),
        pl.Series("n_votes", chosen.n_votes.ravel()),
        pl.Series("weight", chosen.weight.ravel(), nan_to_null=True),
        pl.Series(_FLAWS, dtype=pl.String).gather(chosen.flaw.ravel()).alias("flaw"),
    )


def _rows(rows: Integers) -> pl.Series:
    """Return rows as indices, null where there is none."""
    indices = pl.Series(rows.ravel(), dtype=pl.Int64)
    return indices.set(indices == NONE, None)


def _choose(
    ballots: Ballots, picks: Sequence[Pick], chosen: _Chosen, live: Integers, first_row: int
) -> None:
    """Let each selector pick; `live` is where the problems of these ballots stand in `chosen`."""
    n_attempts = ballots.n_attempts
    chosen.n_attempts[live] = n_attempts.T
    chosen.n_valid[live] = ballots.n_valid.T
    chosen.is_graded[live] = ballots.is_graded().T
    chosen.is_repeated[live] = ballots.is_repeated().T
    least = np.where(ballots.budgets == ALL_ATTEMPTS, 1, ballots.budgets)
    is_short = n_attempts < least[:, None]
    for i, pick in enumerate(picks):
        selector = SELECTORS[pick.selector]
        winners = pick.winners(ballots)
        is_picked = winners.row != NONE
        row = np.where(is_picked, winners.row, 0)
        answer = ballots.answer[row]
        has_answer = is_picked & ballots.is_answer[answer]
        n_votes = np.where(has_answer, np.take_along_axis(ballots.votes, answer, axis=1), 0)
        flaw = np.zeros(row.shape, np.int8)
        if selector.is_defined is not None:
            flaw = np.where(selector.is_defined(ballots, pick.number), flaw, 3)
        if selector.reads_score:
            flaw = np.where(ballots.is_scored(pick.number), flaw, 2)
        in_pools = ballots.row_in_block + first_row
        chosen.row[live, :, i] = np.where(is_picked, in_pools[row], NONE).T
        spelling = in_pools[ballots.first_row[answer]]
        chosen.spelling[live, :, i] = np.where(has_answer, spelling, NONE).T
        chosen.n_votes[live, :, i] = n_votes.T
        chosen.weight[live, :, i] = np.where(is_picked, winners.weight, np.nan).T
        chosen.flaw[live, :, i] = np.where(is_short, 1, flaw).T


def _nothing(n_problems: int, n_budgets: int, n_picks: int) -> _Chosen:
    """Return what is known where there are no attempts within any budget."""
    slots, lines = (n_problems, n_budgets), (n_problems, n_budgets, n_picks)
    return _Chosen(
        n_attempts=np.zeros(slots, np.int64),
        n_valid=np.zeros(slots, np.int64),
        is_graded=np.zeros(slots, bool),
        is_repeated=np.zeros(slots, bool),
        row=np.full(lines, NONE),
        spelling=np.full(lines, NONE),
        n_votes=np.zeros(lines, np.int64),
        weight=np.full(lines, np.nan),
        flaw=np.ones(lines, np.int8),
    )


def check_one_run(
    pools: Pools,
    n_attempts: Integers,
    is_repeated: Flags,
    budgets: Integers,
    names: Sequence[str],
) -> None:
    """Raise where attempts of several runs were taken for those of one.

    Parameters
    ----------
    pools
        Attempts.
    n_attempts
        Array of (problem, budget), in the order of `pools.order`.
    is_repeated
        Whether a number is there more than once, of the same shape.
    budgets
        Ascending budgets.
    names
        The caller's names of the columns that name a problem.

    Raises
    ------
    DataError
        When a problem has several rows with the same attempt within a budget.
    """
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
        f"{where}: {found}. Hint: rows of several runs, models or seeds are told apart with "
        f"{BY}, such as {BY_FILE} where files were read together; now {list(names[:-1])}; "
        f"{VALIDATE} lists repeated attempts, "
        "tts.renumber_attempts(trajectories) renumbers them."
    )


def judge() -> dict[str, pl.Expr]:
    """Turn what `pick_winners` makes into the columns of `problems`.

    Returns
    -------
    dict[str, pl.Expr]
        One expression per column.
    """
    is_shown = pl.col("flaw").is_null()
    is_wrong = pl.col("attempt").is_null() & pl.col("is_graded")
    is_correct = (
        pl
        .when(is_wrong)
        .then(pl.lit(value=False))
        .when(pl.col("grade") != UNGRADED)
        .then(pl.col("grade") == 1)
    )
    verdict = pl.when(is_correct.is_null()).then(pl.lit("ungraded")).otherwise(pl.lit("ok"))
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
        "status": pl.coalesce("flaw", verdict),
        "n_attempts": pl.col("n_attempts"),
        "n_valid": pl.col("n_valid"),
        **{name: pl.when(is_shown).then(expr) for name, expr in shown.items()},
    }
    # Keys are of the dtype that the caller gave them.
    return {
        name: columns[name] if name == "answer_key" else columns[name].cast(dtype)
        for name, dtype in PROBLEM_COLUMNS.items()
    }
