"""Selectors whose votes weigh by what a score, or the other answers, say."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import get_args

from ttsframe._checks import check_between, check_choice
from ttsframe._typing import ColumnNames, FrameT, StepReduction, Utility, Weights
from ttsframe.errors import ParameterError
from ttsframe.votes.engine.plain import pick_confident
from ttsframe.votes.engine.risk import pick_least_risk
from ttsframe.votes.selectors.select import pick_answers, select_answers

__all__ = ["confidence_vote", "minimum_bayes_risk", "weighted_vote"]


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


def confidence_vote(
    trajectories: FrameT,
    /,
    *,
    budgets: int | Sequence[int] | None = None,
    reductions: StepReduction | Sequence[StepReduction] | None = None,
    temperature: float = 1.0,
    by: ColumnNames = (),
) -> FrameT:
    r"""Pick the answer whose attempts have most of the softmax of the scores.

    Confidence-informed self-consistency (CISC). Scores may be of any sign; what counts is how far
    they are apart within a problem.

    Parameters
    ----------
    trajectories
        One row per attempt, as for `select_answers`.
    budgets
        Numbers of attempts; None: all attempts, as one budget.
    reductions
        Names in `STEP_REDUCTIONS`, each applied to `step_scores`; None reads the column `score`.
    temperature
        What scores are divided by, finite and above 0: the smaller it is, the nearer the vote comes
        to best_of_n, the larger, to a majority vote of the scored attempts. Worth tuning: it is on
        the scale of the scores.
    by
        Columns that tell runs, models or seeds apart.

    Returns
    -------
    FrameT
        `problems`, as `select_answers` makes it; `weight` is the winner's share, in [0, 1].

    Raises
    ------
    ParameterError
        At once, when `temperature` is not above 0 and finite.

    See Also
    --------
    select_answers : Several selectors in one pass; states errors and rules.
    weighted_vote : With weights="softmax", the same at temperature 1.

    Notes
    -----
    The weight of attempt i, with score s, among those with a score within the budget:

    .. math:: w_i = \frac{\exp(s_i / T)}{\sum_j \exp(s_j / T)}

    A problem with an infinite score within the budget is "undefined".

    References
    ----------
    Taubenfeld et al., "Confidence Improves Self-Consistency in LLMs", arXiv:2502.06233, section 3.

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
    >>> chosen = tts.confidence_vote(trajectories)
    >>> chosen.select("answer_key", pl.col("weight").round(4)).row(0)
    ('47', 0.5267)
    >>> tts.confidence_vote(trajectories, temperature=0.1)["answer_key"].item()
    '42'
    """
    if check_between(temperature, "temperature", 0.0, math.inf) == 0.0:
        raise ParameterError("temperature == 0.0, must be above 0. Hint: best_of_n is its limit.")
    if temperature == math.inf:
        raise ParameterError(
            "temperature == inf, must be finite. Hint: majority_vote is its limit."
        )
    return pick_answers(
        trajectories,
        selectors=["confidence_vote"],
        reductions=reductions,
        budgets=budgets,
        by=by,
        picker=partial(pick_confident, temperature=temperature),
    )


def minimum_bayes_risk(
    trajectories: FrameT,
    /,
    *,
    budgets: int | Sequence[int] | None = None,
    utility: Utility = "token_f1",
    by: ColumnNames = (),
) -> FrameT:
    r"""Pick the answer whose text is most like those of all attempts.

    Answers that agree in part support each other here, which in a majority vote they do not: for
    long answers, of which hardly two are equal.

    Parameters
    ----------
    trajectories
        One row per attempt, as for `select_answers`.
    budgets
        Numbers of attempts; None: all attempts, as one budget.
    utility
        What an answer is worth where another is right: "token_f1", the harmonic mean of precision
        and recall of its tokens; or "equality", 1 for the same key and 0 for others, which makes it
        a majority vote.
    by
        Columns that tell runs, models or seeds apart.

    Returns
    -------
    FrameT
        `problems`, as `select_answers` makes it; `weight` is the winner's total utility.

    Raises
    ------
    ParameterError
        At once, when `utility` is unknown.

    See Also
    --------
    select_answers : Several selectors in one pass; states errors and rules.
    majority_vote : Answers count only for themselves.

    Notes
    -----
    With :math:`c(y)` attempts for each answer y within the budget, the winner is

    .. math:: \arg\max_y \sum_{y'} c(y') \, u(y, y'), \quad
        u(y, y') = \frac{2 \, |y \cap y'|}{|y| + |y'|}

    over the multisets of their tokens: LaTeX commands, words, numbers and other single characters,
    as in the earliest spelling in the column `answer`, without it in the key; at most the first 256
    of an answer. Answers with one key are one answer, with all their attempts. No score is read.

    References
    ----------
    Bertsch et al., "It's MBR All the Way Down: Modern Generation Techniques Through the Lens of
    Minimum Bayes Risk", arXiv:2310.01387, section 2; token F1: Rajpurkar et al., "SQuAD: 100,000+
    Questions for Machine Comprehension of Text", arXiv:1606.05250, section 6.1.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> trajectories = pl.DataFrame({
    ...     "problem_id": ["p"] * 4,
    ...     "attempt": [0, 1, 2, 3],
    ...     "answer_key": ["9", "x^2 - 1", "x^2 + 1", "x^2 + x"],
    ... })
    >>> chosen = tts.minimum_bayes_risk(trajectories)
    >>> chosen.select("answer_key", "n_votes", pl.col("weight").round(4)).row(0)
    ('x^2 + 1', 1, 2.6)
    >>> tts.minimum_bayes_risk(trajectories, utility="equality")["answer_key"].item()
    '9'
    """
    check_choice(utility, "utility", get_args(Utility))
    return pick_answers(
        trajectories,
        selectors=["minimum_bayes_risk"],
        budgets=budgets,
        by=by,
        picker=partial(pick_least_risk, utility=utility),
    )
