"""Selectors for which an attempt's place among the scores of its problem counts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ttsframe._checks import check_between, check_positive
from ttsframe._typing import ColumnNames, FrameT, StepReduction, Weights
from ttsframe.errors import ParameterError
from ttsframe.votes.engine.ranked import pick_borda, pick_majority_of_bests, pick_top_fraction
from ttsframe.votes.selectors.select import pick_answers

__all__ = ["borda_vote", "majority_of_the_bests", "top_fraction_vote"]


def borda_vote(
    trajectories: FrameT,
    /,
    *,
    budgets: int | Sequence[int] | None = None,
    reductions: StepReduction | Sequence[StepReduction] | None = None,
    power: float = 0.5,
    by: ColumnNames = (),
) -> FrameT:
    """Pick the answer with the most votes, where a better ranked attempt has more of them.

    Scores only rank attempts here, so that their scale does not matter: log-probabilities and other
    confidences of no fixed range can vote without being made into weights.

    Parameters
    ----------
    trajectories
        One row per attempt, as for `select_answers`.
    budgets
        Numbers of attempts; None: all attempts, as one budget.
    reductions
        Names in `STEP_REDUCTIONS`, each applied to `step_scores`; None reads the column `score`.
    power
        Power p of the number of votes, in [0, 50]: 0 gives every scored attempt one vote; the
        larger it is, the nearer the vote comes to best_of_n.
    by
        Columns that tell runs, models or seeds apart.

    Returns
    -------
    FrameT
        `problems`, as `select_answers` makes it; `weight` is the winner's votes.

    Raises
    ------
    ParameterError
        At once, when `power` is not in [0, 50].

    See Also
    --------
    select_answers : Several selectors in one pass; states errors and rules.
    confidence_vote : Votes weigh by the scores themselves.

    Notes
    -----
    Of N attempts with a score within the budget, the one of rank r (1 for the highest score) has

    .. math:: v(r) = (N - r + 1)^p

    votes for its answer. Equal scores share the mean of the votes of their ranks, so that no order
    of the attempts favours one of them. Attempts without a score have no rank; those without an
    answer keep theirs, and do not vote.

    References
    ----------
    Kang, Zhao and Song, "Scalable Best-of-N Selection for Large Language Models via
    Self-Certainty", arXiv:2502.18581, equation 11; its code takes p = 0.5.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> trajectories = pl.DataFrame({
    ...     "problem_id": ["p"] * 4,
    ...     "attempt": [0, 1, 2, 3],
    ...     "answer_key": ["42", "42", "47", "47"],
    ...     "score": [0.9, 0.3, 0.8, 0.7],
    ... })
    >>> chosen = tts.borda_vote(trajectories)  # 47 has the ranks 2 and 3: roots of 3 and 2 votes
    >>> chosen.select("answer_key", pl.col("weight").round(4)).row(0)
    ('47', 3.1463)
    >>> tts.borda_vote(trajectories, power=2.0).select("answer_key", "weight").row(0)
    ('42', 17.0)
    """
    # Beyond, the votes of some thousand attempts no longer fit a float.
    check_between(power, "power", 0.0, 50.0)
    return pick_answers(
        trajectories,
        selectors=["borda_vote"],
        reductions=reductions,
        budgets=budgets,
        by=by,
        picker=partial(pick_borda, power=power),
    )


def top_fraction_vote(
    trajectories: FrameT,
    /,
    *,
    budgets: int | Sequence[int] | None = None,
    reductions: StepReduction | Sequence[StepReduction] | None = None,
    fraction: float = 0.1,
    weights: Weights = "score",
    by: ColumnNames = (),
) -> FrameT:
    """Pick by a weighted vote among the attempts with the highest scores.

    DeepConf's filter for finished runs: attempts of low confidence are left out of the vote.

    Parameters
    ----------
    trajectories
        One row per attempt, as for `select_answers`.
    budgets
        Numbers of attempts; None: all attempts, as one budget.
    reductions
        Names in `STEP_REDUCTIONS`, each applied to `step_scores`; None reads the column `score`.
    fraction
        Share of the attempts that vote, in (0, 1]; 1 is `weighted_vote`.
    weights
        "score" as it is (must be >= 0), "sigmoid" or "softmax" of it.
    by
        Columns that tell runs, models or seeds apart.

    Returns
    -------
    FrameT
        `problems`, as `select_answers` makes it; `weight` is the total of the winner's weights.

    Raises
    ------
    ParameterError
        At once, when `fraction` is not in (0, 1], or `weights` is unknown.

    See Also
    --------
    select_answers : Several selectors in one pass; states errors and rules.
    weighted_vote : All attempts vote.

    Notes
    -----
    Of the attempts within the budget that have an answer and a score, those vote whose score is at
    least the (1 - fraction) percentile, interpolated linearly as by numpy: of N with different
    scores the best floor((N - 1) * fraction) + 1, of equal scores all or none. A negative score
    within the budget makes "score" undefined even where it is filtered out: a scale that has
    negative numbers does not say what a vote weighs.

    References
    ----------
    Fu et al., "Deep Think with Confidence", arXiv:2508.15260, section 3.2; percentile and vote as
    in its published analysis of finished runs, where the fraction is 0.1 or 0.9.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> trajectories = pl.DataFrame({
    ...     "problem_id": ["p"] * 4,
    ...     "attempt": [0, 1, 2, 3],
    ...     "answer_key": ["42", "42", "47", "47"],
    ...     "score": [0.9, 0.3, 0.8, 0.7],
    ... })
    >>> chosen = tts.top_fraction_vote(trajectories, fraction=0.5)  # 0.9 against 0.8
    >>> chosen.select("answer_key", "weight").row(0)
    ('42', 0.9)
    >>> tts.top_fraction_vote(trajectories, fraction=0.9)["answer_key"].item()
    '47'
    """
    if check_between(fraction, "fraction", 0.0, 1.0) == 0.0:
        raise ParameterError("fraction == 0.0, must be above 0: nobody would vote.")
    return pick_answers(
        trajectories,
        selectors=["top_fraction_vote"],
        reductions=reductions,
        budgets=budgets,
        weights=weights,
        by=by,
        picker=partial(pick_top_fraction, fraction=fraction),
    )


def majority_of_the_bests(
    trajectories: FrameT,
    /,
    *,
    budgets: int | Sequence[int] | None = None,
    reductions: StepReduction | Sequence[StepReduction] | None = None,
    subset_size: int | None = None,
    by: ColumnNames = (),
) -> FrameT:
    r"""Pick the answer that the best of a few resampled attempts has most often.

    The best of all attempts is a single draw, decided by one score that may be wrong; this is the
    most likely answer of best-of-m, estimated from all attempts.

    Parameters
    ----------
    trajectories
        One row per attempt, as for `select_answers`.
    budgets
        Numbers of attempts; None: all attempts, as one budget.
    reductions
        Names in `STEP_REDUCTIONS`, each applied to `step_scores`; None reads the column `score`.
    subset_size
        Number m of attempts that are resampled; 1 is a majority vote of the scored attempts, and
        the larger it is, the nearer it comes to best_of_n. None: the square root of the number of
        scored attempts within the budget, rounded down.
    by
        Columns that tell runs, models or seeds apart.

    Returns
    -------
    FrameT
        `problems`, as `select_answers` makes it; `weight` is the winner's probability.

    Raises
    ------
    ParameterError
        At once, when `subset_size` is below 1.
    ParameterTypeError
        At once, when it is not an int.

    See Also
    --------
    select_answers : Several selectors in one pass; states errors and rules.
    best_of_n : The best of all attempts.

    Notes
    -----
    Of m attempts drawn with replacement from the N that have a score, the best is the one of rank r
    (1 for the highest score) with probability

    .. math:: \left( \frac{N - r + 1}{N} \right)^m - \left( \frac{N - r}{N} \right)^m

    and an answer has the sum over its attempts: what the paper's bootstrap estimates by many draws,
    without drawing. Equal scores share the mean of their probabilities. An attempt without an
    answer can be the best, and no answer wins by it.

    References
    ----------
    Rakhsha et al., "Majority of the Bests: Improving Best-of-N via Bootstrapping",
    arXiv:2511.18630, equations 5 and 6; the square root is its fixed schedule, section 4.2.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> trajectories = pl.DataFrame({
    ...     "problem_id": ["p"] * 4,
    ...     "attempt": [0, 1, 2, 3],
    ...     "answer_key": ["42", "42", "47", "47"],
    ...     "score": [0.9, 0.3, 0.8, 0.7],
    ... })
    >>> chosen = tts.majority_of_the_bests(trajectories)  # the best of two, drawn from four
    >>> chosen.select("answer_key", "weight").row(0)
    ('42', 0.5)
    >>> tts.majority_of_the_bests(trajectories, subset_size=3)["weight"].item()
    0.59375
    """
    if subset_size is not None:
        check_positive(subset_size, "subset_size")
    return pick_answers(
        trajectories,
        selectors=["majority_of_the_bests"],
        reductions=reductions,
        budgets=budgets,
        by=by,
        picker=partial(pick_majority_of_bests, subset_size=subset_size),
    )
