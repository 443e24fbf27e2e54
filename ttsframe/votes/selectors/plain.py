"""Selectors that take an attempt as it is, or count votes."""

from __future__ import annotations

from collections.abc import Sequence

from ttsframe._typing import ColumnNames, FrameT, StepReduction
from ttsframe.votes.selectors.select import select_answers

__all__ = ["best_of_n", "first_valid", "majority_vote", "oracle"]


def majority_vote(
    trajectories: FrameT,
    /,
    *,
    budgets: int | Sequence[int] | None = None,
    by: ColumnNames = (),
) -> FrameT:
    """Pick the answer that most attempts gave.

    Self-consistency, or maj@n; a tie goes to the answer that came first.

    Parameters
    ----------
    trajectories
        One row per attempt, as for `select_answers`.
    budgets
        Numbers of attempts; None: all attempts, as one budget.
    by
        Columns that tell runs, models or seeds apart.

    Returns
    -------
    FrameT
        `problems`, as `select_answers` makes it.

    See Also
    --------
    select_answers : Several selectors in one pass; states errors and rules.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> trajectories = pl.DataFrame({
    ...     "problem_id": ["p"] * 3,
    ...     "attempt": [0, 1, 2],
    ...     "answer_key": [None, "47", "42"],
    ...     "is_correct": [False, False, True],
    ...     "score": [0.25, 0.5, 0.75],
    ... })
    >>> tts.majority_vote(trajectories)["answer_key"].to_list()
    ['47']
    """
    return select_answers(trajectories, selectors=["majority_vote"], budgets=budgets, by=by)


def best_of_n(
    trajectories: FrameT,
    /,
    *,
    budgets: int | Sequence[int] | None = None,
    reductions: StepReduction | Sequence[StepReduction] | None = None,
    by: ColumnNames = (),
) -> FrameT:
    """Pick the answer of the attempt with the highest score.

    Also called rm@n. The attempt is picked whether or not it has an answer; without one it is wrong.

    Parameters
    ----------
    trajectories
        One row per attempt, as for `select_answers`.
    budgets
        Numbers of attempts; None: all attempts, as one budget.
    reductions
        Names in `STEP_REDUCTIONS`, each applied to `step_scores`; None reads the column `score`.
    by
        Columns that tell runs, models or seeds apart.

    Returns
    -------
    FrameT
        `problems`, as `select_answers` makes it.

    See Also
    --------
    select_answers : Several selectors in one pass; states errors and rules.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> trajectories = pl.DataFrame({
    ...     "problem_id": ["p"] * 3,
    ...     "attempt": [0, 1, 2],
    ...     "answer_key": [None, "47", "42"],
    ...     "is_correct": [False, False, True],
    ...     "score": [0.25, 0.5, 0.75],
    ... })
    >>> tts.best_of_n(trajectories)["answer_key"].to_list()
    ['42']
    """
    return select_answers(
        trajectories, selectors=["best_of_n"], budgets=budgets, reductions=reductions, by=by
    )


def first_valid(
    trajectories: FrameT,
    /,
    *,
    budgets: int | Sequence[int] | None = None,
    by: ColumnNames = (),
) -> FrameT:
    """Pick the answer of the first attempt that has one.

    What a run without any verifier and with one retry per failure to answer would report.

    Parameters
    ----------
    trajectories
        One row per attempt, as for `select_answers`.
    budgets
        Numbers of attempts; None: all attempts, as one budget.
    by
        Columns that tell runs, models or seeds apart.

    Returns
    -------
    FrameT
        `problems`, as `select_answers` makes it.

    See Also
    --------
    select_answers : Several selectors in one pass; states errors and rules.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> trajectories = pl.DataFrame({
    ...     "problem_id": ["p"] * 3,
    ...     "attempt": [0, 1, 2],
    ...     "answer_key": [None, "47", "42"],
    ...     "is_correct": [False, False, True],
    ...     "score": [0.25, 0.5, 0.75],
    ... })
    >>> tts.first_valid(trajectories)["answer_key"].to_list()
    ['47']
    """
    return select_answers(trajectories, selectors=["first_valid"], budgets=budgets, by=by)


def oracle(
    trajectories: FrameT,
    /,
    *,
    budgets: int | Sequence[int] | None = None,
    by: ColumnNames = (),
) -> FrameT:
    """Pick a right answer if any attempt gave one, else the answer of `first_valid`.

    The upper bound of every selector; its accuracy is pass@n.

    Parameters
    ----------
    trajectories
        One row per attempt, as for `select_answers`.
    budgets
        Numbers of attempts; None: all attempts, as one budget.
    by
        Columns that tell runs, models or seeds apart.

    Returns
    -------
    FrameT
        `problems`, as `select_answers` makes it.

    See Also
    --------
    select_answers : Several selectors in one pass; states errors and rules.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> trajectories = pl.DataFrame({
    ...     "problem_id": ["p"] * 3,
    ...     "attempt": [0, 1, 2],
    ...     "answer_key": [None, "47", "42"],
    ...     "is_correct": [False, False, True],
    ...     "score": [0.25, 0.5, 0.75],
    ... })
    >>> tts.oracle(trajectories)["answer_key"].to_list()
    ['42']
    """
    return select_answers(trajectories, selectors=["oracle"], budgets=budgets, by=by)
