"""Several selectors in one pass, at each budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import polars as pl

from ttsframe._checks import check_budgets, check_choice, check_choices, check_frame, check_names
from ttsframe._exprs import run_plan
from ttsframe._typing import ColumnNames, FrameT, SelectorName, StepReduction, Weights
from ttsframe.schema import require_columns
from ttsframe.votes.engine.picked import PICKED_COLUMNS, judge, pick_winners
from ttsframe.votes.engine.pools import key_dtype, make_readings, map_pools
from ttsframe.votes.engine.registry import PROBLEM_COLUMNS, SELECTORS, Pick, Picker

__all__ = ["pick_answers", "select_answers"]


def select_answers(
    trajectories: FrameT,
    /,
    *,
    selectors: SelectorName | Sequence[SelectorName] = (
        "majority_vote",
        "weighted_vote",
        "best_of_n",
    ),
    reductions: StepReduction | Sequence[StepReduction] | None = None,
    budgets: int | Sequence[int] | None = None,
    weights: Weights = "score",
    by: ColumnNames = (),
) -> FrameT:
    """Pick an answer per problem and budget under several selectors, in one pass over attempts.

    Parameters
    ----------
    trajectories
        One row per attempt, with `problem_id`, `attempt` (0..n-1 within `by` and problem) and
        `answer_key` (null: no answer found); `is_correct` and `answer` where they are there; and
        `score` (Float64, higher is better) or `step_scores` for selectors that read a score.
    selectors
        Names in `SELECTORS`.
    reductions
        Names in `STEP_REDUCTIONS`, each applied to `step_scores`; None reads the column `score`.
    budgets
        Numbers of attempts: a selector sees the first `budget` attempts. None: all attempts, as
        one budget, which the column `budget` shows as null.
    weights
        What a vote weighs in `weighted_vote` and `top_fraction_vote`: "score" as it is (must be
        >= 0), "sigmoid" of it, or "softmax" of it over the problem's scored attempts within the
        budget.
    by
        Columns that tell runs, models or seeds apart; attempts never join across them.

    Returns
    -------
    FrameT
        `problems`, one row per (by, `problem_id`, `budget`, `selector`, `reduction`):

        - `subsets` (String): "prefix", the first attempts;
        - `attempt` (UInt32), `is_correct` (Boolean): the attempt that stands for the winner, and
          its grade: the earliest that voted for it, in best_of_n the one with the highest score;
        - `answer`, `answer_key` (String): the winning answer in its earliest spelling, null for no
          answer;
        - `value` (Float64): `is_correct` as 0 or 1; null unless `status` is "ok";
        - `status` (String): "ok"; "short", fewer attempts than the budget; "unscored", no attempt
          has a score; "undefined", a weight is negative or not finite; "ungraded", nothing to
          grade against;
        - `n_attempts`, `n_valid` (with an answer), `n_votes` (with the winning answer) (UInt32);
        - `weight` (Float64): the winner's total: votes, weights, probability or utility, or its
          score in best_of_n;
        - `agreement` (Float64 in [0, 1]): `n_votes / n_attempts`.

        `reduction` is null, and the row appears once, for selectors that read no score.

    Raises
    ------
    ColumnsError
        At once, when a column is missing.
    ParameterError
        At once, when a selector, reduction, budget or kind of weight is impossible, or `by` names a
        column of the result.
    DataError
        On collection, when a problem has more attempts below a budget than the budget: rows of
        several runs were not told apart with `by`.

    Notes
    -----
    Attempts without an answer abstain from votes; in best_of_n they can be picked, and are wrong.
    Attempts without a score (null or NaN) abstain from selectors that read one. Ties go to the
    answer, or attempt, that comes earliest; totals within 1e-9 of the sum of weights are a tie.

    References
    ----------
    Majority: Wang et al., "Self-Consistency Improves Chain of Thought Reasoning in Language
    Models", arXiv:2203.11171. Weighted vote: Li et al., "Making Large Language Models Better
    Reasoners with Step-Aware Verifier", arXiv:2206.02336, section 3.2. Best-of-N: Cobbe et al.,
    "Training Verifiers to Solve Math Word Problems", arXiv:2110.14168, section 4. The others name
    their sources themselves; they run here with the defaults of their own parameters.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> trajectories = pl.DataFrame({
    ...     "problem_id": ["p"] * 4,
    ...     "attempt": [0, 1, 2, 3],
    ...     "answer_key": ["42", "47", "42", None],
    ...     "is_correct": [False, True, False, False],
    ...     "score": [0.25, 0.75, 0.25, 0.5],
    ... })
    >>> problems = tts.select_answers(trajectories, budgets=[1, 4])
    >>> problems.select("budget", "selector", "answer_key", "is_correct", "n_votes", "weight")
    shape: (6, 6)
    ┌────────┬───────────────┬────────────┬────────────┬─────────┬────────┐
    │ budget ┆ selector      ┆ answer_key ┆ is_correct ┆ n_votes ┆ weight │
    │ ---    ┆ ---           ┆ ---        ┆ ---        ┆ ---     ┆ ---    │
    │ u32    ┆ str           ┆ str        ┆ bool       ┆ u32     ┆ f64    │
    ╞════════╪═══════════════╪════════════╪════════════╪═════════╪════════╡
    │ 1      ┆ majority_vote ┆ 42         ┆ false      ┆ 1       ┆ 1.0    │
    │ 1      ┆ weighted_vote ┆ 42         ┆ false      ┆ 1       ┆ 0.25   │
    │ 1      ┆ best_of_n     ┆ 42         ┆ false      ┆ 1       ┆ 0.25   │
    │ 4      ┆ majority_vote ┆ 42         ┆ false      ┆ 2       ┆ 2.0    │
    │ 4      ┆ weighted_vote ┆ 47         ┆ true       ┆ 1       ┆ 0.75   │
    │ 4      ┆ best_of_n     ┆ 47         ┆ true       ┆ 1       ┆ 0.75   │
    └────────┴───────────────┴────────────┴────────────┴─────────┴────────┘
    """
    return pick_answers(
        trajectories,
        selectors=selectors,
        reductions=reductions,
        budgets=budgets,
        weights=weights,
        by=by,
    )


def pick_answers(
    trajectories: FrameT,
    /,
    *,
    selectors: SelectorName | Sequence[SelectorName],
    reductions: StepReduction | Sequence[StepReduction] | None = None,
    budgets: int | Sequence[int] | None,
    weights: Weights = "score",
    by: ColumnNames,
    picker: Picker | None = None,
) -> FrameT:
    """Pick as `select_answers` does, or by a picker with parameters of its own.

    Parameters
    ----------
    trajectories, selectors, reductions, budgets, weights, by
        As for `select_answers`.
    picker
        Picks in place of the registry's, where there is but one selector.

    Returns
    -------
    FrameT
        `problems`.
    """
    check_frame(trajectories, "trajectories")
    chosen = check_choices(selectors, "selectors", SELECTORS)
    checked = check_budgets(budgets)
    check_choice(weights, "weights", get_args(Weights))
    names: tuple[str, ...] = check_names(by, "by", taken=("problem_id", *PROBLEM_COLUMNS))
    schema = require_columns(trajectories, [*names, "problem_id", "attempt", "answer_key"])
    readings = (
        make_readings(schema, reductions, is_score_needed=True)
        if any(SELECTORS[name].reads_score for name in chosen)
        else ()
    )
    picks = [
        Pick(name, reading, picker)
        for name in chosen
        for reading in (readings if SELECTORS[name].reads_score else (None,))
    ]

    keys = [*names, "problem_id"]

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        return map_pools(
            lazy,
            schema,
            keys=keys,
            readings=readings,
            work=lambda pools: pick_winners(pools, picks, checked, weights, keys),
            made={**PICKED_COLUMNS, "answer_key": key_dtype(schema)},
            result=judge(),
        )

    return run_plan(trajectories, plan)
