"""Ranks of a problem's answers by votes, by summed scores and by the best score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import polars as pl

from ttsframe._checks import check_frame, check_names
from ttsframe._exprs import from_safe, run_plan, safe_names
from ttsframe._typing import ColumnNames, FrameT, Reduction, Weights
from ttsframe.votes.engine.registry import SelectorName
from ttsframe.votes.engine.winners import TIE_TOLERANCE
from ttsframe.votes.selectors import SELECTORS, select_answers
from ttsframe.votes.tally import tally_votes

__all__ = ["rank_answers"]

_TOTALS: Final[Mapping[SelectorName, str]] = MappingProxyType({
    "majority_vote": "n_votes",
    "weighted_vote": "weight",
    "best_of_n": "top_score",
})
"""The column that each method ranks answers by."""

_VOTES: Final = (
    "problem_id",
    "budget",
    "reduction",
    "answer_key",
    "answer",
    "is_correct",
    "n_votes",
    "weight",
    "top_score",
    "first_attempt",
)


def rank_answers(
    trajectories: FrameT,
    /,
    *,
    reductions: Reduction | Sequence[Reduction] | None = None,
    budgets: int | Sequence[int] | None = None,
    weights: Weights = "score",
    by: ColumnNames = (),
) -> FrameT:
    r"""Rank the answers of each problem by votes, by summed scores and by the best score.

    One table shows where a verifier beats or loses to a plain majority vote. Math-Shepherd ranks
    solutions by their worst step (``reductions="min"``); self-consistency with a reward model groups
    solutions by answer and adds their scores.

    Parameters
    ----------
    trajectories
        One row per attempt, with `problem_id`, `attempt` (0..n-1 within `by` and problem),
        `answer_key` (null: no answer found) and `score` (number, higher is better) or
        `step_scores`. `answer` and `is_correct` are read if they exist.
    reductions
        Names in `STEP_REDUCTIONS`, each applied to `step_scores`; "min" is Math-Shepherd's. None
        reads the column `score`.
    budgets
        Numbers of attempts: the first `budget` attempts are ranked. None: all attempts, as one
        budget, which is null in the column `budget`.
    weights
        What an attempt adds to the `weight` of its answer: its "score" (must be >= 0), the "sigmoid"
        of the score, the "softmax" over the problem's scored attempts within the budget, or the "logit",
        as in `select_answers`.
    by
        Columns that tell runs, models or seeds apart; attempts never join across them.

    Returns
    -------
    FrameT
        `votes` as `tally_votes` makes it, one row per (by, `problem_id`, `budget`, `reduction`,
        `answer_key`), sorted by the first four and then by `first_attempt`, with

        - `rank_majority_vote` (UInt32): by `n_votes`;
        - `rank_weighted_vote` (UInt32): by `weight`, the sum of scores;
        - `rank_best_of_n` (UInt32): by `top_score`, the highest score of the answer's attempts.

        Rank 1 is the answer that `select_answers` picks. Among the others, ties go to the answer
        that came first. A rank is null where the method does not rank the row: rows without an answer
        in the two votes, rows without a score in the two methods that read scores, and all rows
        where the method picks nothing (too few attempts, or undefined weights).

    Raises
    ------
    ColumnsError
        At once, when a column is missing.
    ParameterError
        At once, when a budget, reduction or kind of weight is unknown or out of range, or `by` names
        a column of the result.
    DataError
        On collection, when a problem has more attempts below a budget than the budget, because runs
        were not told apart with `by`.

    See Also
    --------
    select_answers : Only the picks, of these and other methods.
    scaling_curve : The accuracy of the picks.

    References
    ----------
    Wang et al. (2024), Math-Shepherd: Verify and Reinforce LLMs Step-by-step without Human
    Annotations, arXiv:2312.08935, section 3.4: ranking for verification. Li et al. (2023), Making
    Language Models Better Reasoners with Step-Aware Verifier, arXiv:2206.02336, section 3.2, on
    summing rewards by answer.

    Examples
    --------
    The worst steps of three solutions with the answer 42 score 0.9, 0.8 and 0.7, and those of two
    solutions with 47 score 0.4 and 0.5, so the summed scores are 2.4 and 0.9:

    >>> import polars as pl
    >>> import ttsframe as tts
    >>> trajectories = pl.DataFrame({
    ...     "problem_id": ["p"] * 5,
    ...     "attempt": [0, 1, 2, 3, 4],
    ...     "answer_key": ["47", "42", "42", "47", "42"],
    ...     "step_scores": [[0.9, 0.4], [0.9, 0.95], [0.8], [0.5, 0.6], [1.0, 0.7]],
    ... })
    >>> ranked = tts.process.rank_answers(trajectories, reductions="min")
    >>> ranked.select("answer_key", "n_votes", pl.col("weight").round(6), "top_score")
    shape: (2, 4)
    ┌────────────┬─────────┬────────┬───────────┐
    │ answer_key ┆ n_votes ┆ weight ┆ top_score │
    │ ---        ┆ ---     ┆ ---    ┆ ---       │
    │ str        ┆ u32     ┆ f64    ┆ f64       │
    ╞════════════╪═════════╪════════╪═══════════╡
    │ 47         ┆ 2       ┆ 0.9    ┆ 0.5       │
    │ 42         ┆ 3       ┆ 2.4    ┆ 0.9       │
    └────────────┴─────────┴────────┴───────────┘
    >>> ranked.select(pl.col("^rank_.*$").last()).row(0)
    (1, 1, 1)
    """
    check_frame(trajectories, "trajectories")
    ranks: dict[SelectorName, str] = {selector: f"rank_{selector}" for selector in _TOTALS}
    names: tuple[str, ...] = check_names(by, "by", taken={*_VOTES, *ranks.values()})
    # The caller's names are restored at the end, so none collides with a name used here.
    keys: dict[str, str] = safe_names(names)
    slot = [*keys, "problem_id", "budget", "reduction"]

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        picks = select_answers(
            lazy,
            selectors=[*_TOTALS],
            reductions=reductions,
            budgets=budgets,
            weights=weights,
            by=names,
        ).rename(dict(zip(names, keys, strict=True)))
        ranked = tally_votes(
            lazy, reductions=reductions, budgets=budgets, weights=weights, by=names
        ).rename(dict(zip(names, keys, strict=True)))
        for selector, total in _TOTALS.items():
            # A method that does not read scores has one pick for all reductions.
            on = [name for name in slot if name != "reduction" or SELECTORS[selector].reads_score]
            picked = picks.filter(pl.col("selector") == selector).select(
                *on,
                pl.col("answer_key").alias("picked_key"),
                pl.col("attempt").is_not_null().alias("is_decided"),
            )
            ranked = (
                ranked
                .join(picked, on=on, how="left", nulls_equal=True, maintain_order="left")
                .with_columns(_rank(selector, total, slot).alias(ranks[selector]))
                .drop("picked_key", "is_decided")
            )
        return ranked.select(*from_safe(keys), *_VOTES, *ranks.values())

    return run_plan(trajectories, plan)


def _rank(selector: SelectorName, total: str, slot: Sequence[str]) -> pl.Expr:
    """Return the rank of each answer; the method's pick is first."""
    has_answer = pl.col("answer_key").is_not_null()
    is_ranked = pl.col("is_decided") & pl.col(total).is_not_null()
    if selector != "best_of_n":
        is_ranked &= has_answer
    is_pick = pl.col("answer_key").eq_missing(pl.col("picked_key"))
    # Unsigned counts have no negative.
    value = pl.when(is_ranked).then(pl.col(total).cast(pl.Float64))
    fall = -value
    if selector == "weighted_vote":
        # Sums that differ only by rounding are a tie.
        gap = value.shift(1) - value > TIE_TOLERANCE * value.sum()
        fall = gap.fill_null(value=False).cum_sum().over(slot, order_by=-value)
    order = [~is_ranked, ~is_pick, fall, pl.col("first_attempt")]
    return (
        pl
        .when(is_ranked)
        .then(1 + pl.int_range(pl.len()).over(slot, order_by=order))
        .cast(pl.UInt32)
    )
