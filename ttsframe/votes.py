"""Votes: how often each answer of a problem was given, and with what weight, per budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, get_args

import polars as pl

from ttsframe._checks import check_budgets, check_choice, check_frame, check_names
from ttsframe._exprs import run_plan
from ttsframe._packing import attempt_of, is_correct_of
from ttsframe._tally import Reading, Tally, make_readings, of_line, tally_attempts
from ttsframe._typing import ColumnNames, FrameT, StepReduction, Weights
from ttsframe.schema import require_columns

__all__ = ["tally_votes"]

_VOTE_COLUMNS: Final = (
    "budget",
    "reduction",
    "answer_key",
    "answer",
    "n_votes",
    "weight",
    "top_score",
    "first_attempt",
    "is_correct",
)


def tally_votes(
    trajectories: FrameT,
    /,
    *,
    budgets: int | Sequence[int] | None = None,
    reductions: StepReduction | Sequence[StepReduction] | None = None,
    weights: Weights = "score",
    by: ColumnNames = (),
) -> FrameT:
    """Count votes and add up weights per distinct answer of each problem, at each budget.

    This is the table that all selectors pick from. It shows why an answer won.

    Parameters
    ----------
    trajectories
        One row per attempt, with `problem_id`, `attempt` (0..n-1 within `by` and problem) and
        `answer_key` (null: no answer found). `answer`, `is_correct` and `score` are read where
        they are there.
    budgets
        Numbers of attempts: the first `budget` attempts of each problem. None: all attempts, as
        one budget, which the column `budget` shows as null.
    reductions
        Names in `STEP_REDUCTIONS`: reduce `step_scores`. None: use the column `score`, named
        "score" in the column `reduction`; without that column, votes are counted alone.
    weights
        What an attempt's vote weighs: "score" as it is (must be >= 0), "sigmoid" of it, or
        "softmax" of it over the scored attempts of the problem within the budget.
    by
        Columns that tell runs, models or seeds apart; attempts never join across them.

    Returns
    -------
    FrameT
        `votes`, one row per (by, `problem_id`, `budget`, `reduction`, `answer_key`), sorted by the
        first four and then by `first_attempt`: `answer` (String, the earliest spelling), `n_votes`
        (UInt32), `weight` (Float64, null where no attempt with this answer has a score or a weight
        is negative or not finite), `top_score` (Float64, null where none has a score),
        `first_attempt` (UInt32) and its `is_correct`. The row with a null `answer_key` counts the
        attempts that abstain.

    Raises
    ------
    ColumnsError
        At once, when a column is missing.
    ParameterError
        At once, when a budget, reduction or kind of weight is impossible, or `by` names a column of
        the result.
    DataError
        On collection, when a problem has more attempts below a budget than the budget: rows of
        several runs were not told apart with `by`.

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

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        tally = tally_attempts(
            lazy,
            schema,
            readings=readings,
            budgets=checked,
            weights=weights,
            keys=[*names, "problem_id"],
        )
        return _votes(tally).sort(*names, "problem_id", "budget", "reduction", "first_attempt")

    return run_plan(trajectories, plan)


def _votes(tally: Tally) -> pl.LazyFrame:
    """Name the rows of the tally, once per reading."""
    readings = tally.readings or (None,)
    return (
        tally.rows
        .rename({"n": "n_votes", "first": "first_packed"})
        .with_columns(
            *[pl.col(name).sum().over("slot") for name in tally.checked],
            n_attempts=pl.col("n_votes").sum().over("slot"),
            first=pl.col("first_packed").min().over("slot"),
            line=pl.lit(list(range(len(readings)))),
        )
        .pipe(tally.name_slots)
        .filter(pl.col("n_votes") > 0)
        .explode("line")
        .pipe(tally.name_answers)
        .with_columns(
            pl.col("n_votes").cast(pl.UInt32),
            reduction=of_line([pl.lit(r and r.name, pl.String) for r in readings]),
            weight=of_line([_weight(reading) for reading in readings]),
            top_score=of_line([_top_score(reading) for reading in readings]),
            first_attempt=attempt_of(pl.col("first_packed")),
            is_correct=is_correct_of(pl.col("first_packed")),
        )
        .select(*tally.named_keys, *_VOTE_COLUMNS)
    )


def _weight(reading: Reading | None) -> pl.Expr:
    """Return the total weight of an answer, null where none of its attempts has a weight."""
    if reading is None:
        return pl.lit(None, pl.Float64)
    weight = pl.col(f"weight{reading.number}")
    is_voting = pl.col(f"first{reading.number}").is_not_null() & weight.is_finite()
    return pl.when(is_voting).then(weight)


def _top_score(reading: Reading | None) -> pl.Expr:
    """Return the highest score of an answer."""
    return pl.lit(None, pl.Float64) if reading is None else pl.col(f"top_score{reading.number}")
