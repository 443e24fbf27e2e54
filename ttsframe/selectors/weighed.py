"""Selectors whose votes weigh what a score says."""

from __future__ import annotations

from collections.abc import Sequence

from ttsframe._typing import ColumnNames, FrameT, StepReduction, Weights
from ttsframe.selectors.select import select_answers

__all__ = ["weighted_vote"]


def weighted_vote(
    trajectories: FrameT,
    /,
    *,
    budgets: int | Sequence[int] | None = None,
    reductions: StepReduction | Sequence[StepReduction] | None = None,
    weights: Weights = "score",
    by: ColumnNames = (),
) -> FrameT:
    """Pick the answer whose attempts' scores add up to most.

    Totals within 1e-9 of the sum of weights are a tie, which goes to the answer that came first.

    Parameters
    ----------
    trajectories
        One row per attempt, as for `select_answers`.
    budgets
        Numbers of attempts; None: all attempts, as one budget.
    reductions
        Names in `STEP_REDUCTIONS`, each applied to `step_scores`; None reads the column `score`.
    weights
        "score" as it is (must be >= 0), "sigmoid" or "softmax" of it.
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
    >>> tts.weighted_vote(trajectories)["answer_key"].to_list()
    ['42']
    """
    return select_answers(
        trajectories,
        selectors=["weighted_vote"],
        budgets=budgets,
        reductions=reductions,
        weights=weights,
        by=by,
    )
