"""Selectors as functions: several in one pass, or one with parameters of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import get_args

import polars as pl

from ttsframe._checks import (
    check_between,
    check_budgets,
    check_choice,
    check_frame,
    check_names,
    check_positive,
)
from ttsframe._exprs import run_plan
from ttsframe._typing import ColumnNames, FrameT, Reduction, Utility, Weights
from ttsframe.errors import ParameterError
from ttsframe.schema import require_columns
from ttsframe.votes.engine.picked import (
    PICKED_COLUMNS,
    PROBLEM_COLUMNS,
    pick_winners,
    problem_columns,
)
from ttsframe.votes.engine.pools import key_dtype, map_pools
from ttsframe.votes.engine.ranked import (
    pick_best_of_majority,
    pick_borda,
    pick_majority_of_bests,
    pick_top_fraction,
)
from ttsframe.votes.engine.registry import (
    SELECTORS,
    AnySelector,
    Picker,
    check_selectors,
    columns_read,
    make_picks,
    pick_confident,
)
from ttsframe.votes.engine.risk import pick_least_risk
from ttsframe.votes.engine.searches import refuse_prefixes

__all__ = [
    "SELECTORS",
    "best_of_majority",
    "best_of_n",
    "borda_vote",
    "confidence_vote",
    "first_valid",
    "majority_of_the_bests",
    "majority_vote",
    "minimum_bayes_risk",
    "oracle",
    "select_answers",
    "top_fraction_vote",
    "weighted_vote",
]


def select_answers(
    trajectories: FrameT,
    /,
    *,
    selectors: AnySelector | Sequence[AnySelector] = (
        "majority_vote",
        "weighted_vote",
        "best_of_n",
    ),
    reductions: Reduction | Sequence[Reduction] | None = None,
    budgets: int | Sequence[int] | None = None,
    weights: Weights = "score",
    by: ColumnNames = (),
) -> FrameT:
    r"""Pick an answer per problem and budget with several selectors, in one pass over attempts.

    Parameters
    ----------
    trajectories
        One row per attempt, with `problem_id`, `attempt` (0..n-1 within `by` and problem) and
        `answer_key` (null: no answer found). `is_correct`, `answer` and `gold_key` or `gold` are
        read if present.
        Selectors that read a score need `score` (Float64, higher is better) or `step_scores`.
    selectors
        Names in `SELECTORS`, or functions of your own: without parameters, each returns the expression
        of the `attempt` to pick; see the notes.
    reductions
        Where scores come from: names in `STEP_REDUCTIONS`, each applied to `step_scores` and with
        rows of its own; functions of your own, which get the lists of scores as an expression and
        return that of one score per list; or None for the column `score`, named "score" in the column `reduction`.
        `score_trajectories` makes this column with its single `reduction`.
    budgets
        Numbers of attempts: a selector sees the first `budget` attempts. None: all attempts, as
        one budget, which is null in the column `budget`. Solutions of `tts.search` that depend on each
        other have no smaller budgets: there a number below all of them is an error.
    weights
        Weight of a vote in `weighted_vote` and `top_fraction_vote`: the "score" itself (must be
        >= 0), its "sigmoid", its "softmax" over the problem's scored attempts within the budget (in
        `top_fraction_vote`, over those that vote), or its "logit", the log-odds of a score that is a
        chance in [0, 1], see the notes.
    by
        Columns that tell runs, models or seeds apart; attempts never join across them.

    Returns
    -------
    FrameT
        `problems`, one row per (by, `problem_id`, `budget`, `selector`, `reduction`):

        - `subsets` (String): "prefix", the first attempts;
        - `attempt` (UInt32), `is_correct` (Boolean): the attempt that represents the winner, and
          its grade. It is the earliest that voted for the winner, in best_of_n the one with the
          highest score;
        - `answer`, `answer_key` (String): the winning answer in its earliest spelling, null for no
          answer;
        - `value` (Float64): `is_correct` as 0 or 1; null unless `status` is "ok";
        - `status` (String): "ok"; "short", fewer attempts than the budget; "unscored", no attempt
          has a score; "undefined", a weight is negative or not finite, or there is no answer to
          vote on (see Notes); "ungraded", nothing to grade against;
        - `n_attempts`, `n_valid` (with an answer), `n_votes` (with the winning answer) (UInt32);
        - `weight` (Float64): the winner's total of votes, weights, probability or utility; in
          best_of_n its score;
        - `agreement` (Float64 in [0, 1]): `n_votes / n_attempts`.

        Selectors that read no score have one row, with a null `reduction`.

    Raises
    ------
    ColumnsError
        At once, if a column is missing.
    ParameterError
        At once, if a selector, reduction, budget or kind of weight is invalid, or `by` names a
        column of the result.
    DataError
        On collection, if a problem has more attempts below a budget than the budget: `by` does not
        name the column that tells runs apart.

    Notes
    -----
    Attempts without an answer abstain from votes; best_of_n and oracle can pick them. They are wrong
    where the problem has a gold answer (a non-null `gold_key`, or `gold` without this column),
    whatever `is_correct` says, and where they have no grade and another attempt has one. If all
    within the budget abstain, the result is wrong; but it is "undefined" for all selectors except
    best_of_n and oracle where something else than answers is graded (code, proofs): no attempt at the
    problem has an answer and there is no gold answer, or an attempt without an answer is right.
    Attempts without a score (null or NaN) abstain from selectors that read one. Ties go to the
    earliest answer or attempt; totals within 1e-9 of the sum of weights are tied.

    The weight "logit" of a score p is :math:`\log(p / (1 - p))` with p clipped to [0.5, 0.999]. It
    is the best weight of independent voters who are right with chance p, if there are two answers;
    scores of at most one half weigh nothing, and a problem with a score outside [0, 1] is "undefined".

    The expression of a selector of your own is computed over the attempts at one problem within one
    budget, sorted by `attempt`, as ``group_by("problem_id").agg(...)`` would: it gives the picked
    `attempt`, or null for no pick. It can read all columns but grades and gold answers. `score` is the
    column or the reduced step scores, null where it is missing; a selector that reads it has rows for
    each reduction, and none of its picks counts where no attempt has a score. The column `selector`
    holds the name of the function. `ttsframe.testing.check_selector` checks that it keeps the rules.
    It takes as long as its expression in a `group_by` over the attempts, once per budget: picking the
    shortest of 256, 0.2 s of processor time at 1 million attempts and 9 budgets. A vote with
    weights of your own needs no selector: make the weights the column `score`, or a reduction.

    References
    ----------
    Majority: Wang et al., "Self-Consistency Improves Chain of Thought Reasoning in Language
    Models", arXiv:2203.11171. Weighted vote: Li et al., "Making Large Language Models Better
    Reasoners with Step-Aware Verifier", arXiv:2206.02336, section 3.2. Log-odds as weights: Nitzan and
    Paroush (1982), Optimal decision rules in uncertain dichotomous choice situations, International
    Economic Review 23, 289-297. Best-of-N: Cobbe et al.,
    "Training Verifiers to Solve Math Word Problems", arXiv:2110.14168, section 4. The functions of
    the other selectors name their sources; here they run with their default parameters.

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

    A selector of your own, which picks the shortest attempt that has an answer:

    >>> def shortest() -> pl.Expr:
    ...     has_none = pl.col("answer_key").is_null()
    ...     return pl.col("attempt").sort_by(has_none, "n_tokens", "attempt").first()
    >>> counted = trajectories.with_columns(n_tokens=pl.Series([90, 60, 80, 20]))
    >>> tts.select_answers(counted, selectors=shortest, budgets=[1, 4])["attempt"].to_list()
    [0, 1]
    """
    return _select(
        trajectories,
        selectors,
        reductions=reductions,
        budgets=budgets,
        weights=weights,
        by=by,
    )


def _select(
    trajectories: FrameT,
    selectors: AnySelector | Sequence[AnySelector],
    *,
    budgets: int | Sequence[int] | None,
    reductions: Reduction | Sequence[Reduction] | None = None,
    weights: Weights = "score",
    by: ColumnNames,
    picker: Picker | None = None,
) -> FrameT:
    """Pick as `select_answers` does; `picker` replaces that of a single selector."""
    check_frame(trajectories, "trajectories")
    chosen = check_selectors(selectors)
    checked = check_budgets(budgets)
    check_choice(weights, "weights", get_args(Weights))
    names: tuple[str, ...] = check_names(by, "by", taken=("problem_id", *PROBLEM_COLUMNS))
    schema = require_columns(trajectories, [*names, "problem_id", "attempt", "answer_key"])
    picks, readings = make_picks(chosen, schema, reductions, picker)
    keys = [*names, "problem_id"]

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        return map_pools(
            refuse_prefixes(lazy, schema, keys, checked),
            schema,
            keys=keys,
            readings=readings,
            work=lambda pools: pick_winners(pools, picks, checked, weights, keys),
            made={**PICKED_COLUMNS, "answer_key": key_dtype(schema)},
            result=problem_columns(),
            read=columns_read(picks),
        )

    return run_plan(trajectories, plan)


def majority_vote(
    trajectories: FrameT,
    /,
    *,
    budgets: int | Sequence[int] | None = None,
    by: ColumnNames = (),
) -> FrameT:
    """Pick the answer that most attempts gave.

    Also called self-consistency, or maj@n.

    Parameters
    ----------
    trajectories, budgets, by
        As in `select_answers`.

    Returns
    -------
    FrameT
        `problems`, as in `select_answers`.

    See Also
    --------
    select_answers : Runs several selectors in one pass; documents errors and rules.

    References
    ----------
    Wang et al., "Self-Consistency Improves Chain of Thought Reasoning in Language Models",
    arXiv:2203.11171.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> trajectories = pl.DataFrame({
    ...     "problem_id": ["p"] * 3,
    ...     "attempt": [0, 1, 2],
    ...     "answer_key": [None, "47", "42"],
    ... })
    >>> tts.majority_vote(trajectories)["answer_key"].to_list()
    ['47']
    """
    return _select(trajectories, "majority_vote", budgets=budgets, by=by)


def weighted_vote(
    trajectories: FrameT,
    /,
    *,
    budgets: int | Sequence[int] | None = None,
    reductions: Reduction | Sequence[Reduction] | None = None,
    weights: Weights = "score",
    by: ColumnNames = (),
) -> FrameT:
    """Pick the answer whose attempts have the highest sum of scores.

    Parameters
    ----------
    trajectories, budgets, reductions, weights, by
        As in `select_answers`.

    Returns
    -------
    FrameT
        `problems`, as in `select_answers`.

    See Also
    --------
    select_answers : Runs several selectors in one pass; documents errors and rules.

    References
    ----------
    Li et al., "Making Large Language Models Better Reasoners with Step-Aware Verifier",
    arXiv:2206.02336, section 3.2.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> trajectories = pl.DataFrame({
    ...     "problem_id": ["p"] * 3,
    ...     "attempt": [0, 1, 2],
    ...     "answer_key": [None, "47", "42"],
    ...     "score": [0.25, 0.5, 0.75],
    ... })
    >>> tts.weighted_vote(trajectories)["answer_key"].to_list()
    ['42']
    """
    return _select(
        trajectories,
        "weighted_vote",
        budgets=budgets,
        reductions=reductions,
        weights=weights,
        by=by,
    )


def best_of_n(
    trajectories: FrameT,
    /,
    *,
    budgets: int | Sequence[int] | None = None,
    reductions: Reduction | Sequence[Reduction] | None = None,
    by: ColumnNames = (),
) -> FrameT:
    """Pick the answer of the attempt with the highest score.

    Also called rm@n. An attempt without an answer can be picked too, and is then wrong.

    Parameters
    ----------
    trajectories, budgets, reductions, by
        As in `select_answers`.

    Returns
    -------
    FrameT
        `problems`, as in `select_answers`.

    See Also
    --------
    select_answers : Runs several selectors in one pass; documents errors and rules.
    best_of_k : Estimates the accuracy of the best of k attempts, as an expression.

    References
    ----------
    Cobbe et al., "Training Verifiers to Solve Math Word Problems", arXiv:2110.14168, section 4.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> trajectories = pl.DataFrame({
    ...     "problem_id": ["p"] * 3,
    ...     "attempt": [0, 1, 2],
    ...     "answer_key": [None, "47", "42"],
    ...     "score": [0.25, 0.5, 0.75],
    ... })
    >>> tts.best_of_n(trajectories)["answer_key"].to_list()
    ['42']
    """
    return _select(trajectories, "best_of_n", budgets=budgets, reductions=reductions, by=by)


def first_valid(
    trajectories: FrameT,
    /,
    *,
    budgets: int | Sequence[int] | None = None,
    by: ColumnNames = (),
) -> FrameT:
    """Pick the answer of the first attempt that has one.

    This is the result of a run without a verifier that retries whenever no answer is found.

    Parameters
    ----------
    trajectories, budgets, by
        As in `select_answers`.

    Returns
    -------
    FrameT
        `problems`, as in `select_answers`.

    See Also
    --------
    select_answers : Runs several selectors in one pass; documents errors and rules.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> trajectories = pl.DataFrame({
    ...     "problem_id": ["p"] * 3,
    ...     "attempt": [0, 1, 2],
    ...     "answer_key": [None, "47", "42"],
    ... })
    >>> tts.first_valid(trajectories)["answer_key"].to_list()
    ['47']
    """
    return _select(trajectories, "first_valid", budgets=budgets, by=by)


def oracle(
    trajectories: FrameT,
    /,
    *,
    budgets: int | Sequence[int] | None = None,
    by: ColumnNames = (),
) -> FrameT:
    """Pick a correct answer if any attempt gave one, else the answer of `first_valid`.

    The upper bound of every selector; its accuracy is pass@n.

    Parameters
    ----------
    trajectories, budgets, by
        As in `select_answers`.

    Returns
    -------
    FrameT
        `problems`, as in `select_answers`.

    See Also
    --------
    select_answers : Runs several selectors in one pass; documents errors and rules.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> trajectories = pl.DataFrame({
    ...     "problem_id": ["p"] * 3,
    ...     "attempt": [0, 1, 2],
    ...     "answer_key": [None, "47", "42"],
    ...     "is_correct": [False, False, True],
    ... })
    >>> tts.oracle(trajectories)["answer_key"].to_list()
    ['42']
    """
    return _select(trajectories, "oracle", budgets=budgets, by=by)


def borda_vote(
    trajectories: FrameT,
    /,
    *,
    budgets: int | Sequence[int] | None = None,
    reductions: Reduction | Sequence[Reduction] | None = None,
    power: float = 0.5,
    by: ColumnNames = (),
) -> FrameT:
    """Pick the answer with the most votes, where attempts of higher score have more votes.

    Scores are used only to rank attempts, so their scale does not matter: log-probabilities and
    other unbounded confidences can vote without being turned into weights.

    Parameters
    ----------
    trajectories, budgets, reductions
        As in `select_answers`.
    power
        Exponent p of the number of votes, in [0, 50]. 0 gives every scored attempt one vote; a
        larger power brings the vote closer to best_of_n.
    by
        As in `select_answers`.

    Returns
    -------
    FrameT
        `problems`, as in `select_answers`; `weight` is the winner's number of votes.

    Raises
    ------
    ParameterError
        At once, if `power` is not in [0, 50].

    See Also
    --------
    select_answers : Runs several selectors in one pass; documents errors and rules.
    confidence_vote : Weighs votes by the scores themselves.

    Notes
    -----
    Of N attempts with a score within the budget, the one of rank r (1 for the highest score) has

    .. math:: v(r) = (N - r + 1)^p

    votes for its answer. Equal scores share the mean of the votes of their ranks, so the order of
    attempts does not matter. Attempts without a score have no rank; those without an answer have a
    rank but do not vote.

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
    # With larger powers the votes of a few thousand attempts overflow.
    check_between(power, "power", 0.0, 50.0)
    return _select(
        trajectories,
        "borda_vote",
        reductions=reductions,
        budgets=budgets,
        by=by,
        picker=partial(pick_borda, power=power),
    )


def confidence_vote(
    trajectories: FrameT,
    /,
    *,
    budgets: int | Sequence[int] | None = None,
    reductions: Reduction | Sequence[Reduction] | None = None,
    temperature: float = 1.0,
    by: ColumnNames = (),
) -> FrameT:
    r"""Pick the answer with the largest share of the softmax of the scores.

    Confidence-informed self-consistency (CISC). Scores may have any sign; only their differences
    within a problem matter.

    Parameters
    ----------
    trajectories, budgets, reductions
        As in `select_answers`.
    temperature
        Divisor of the scores, finite and greater than 0. A small one brings the vote closer to
        best_of_n, a large one to a majority vote of the scored attempts. Worth tuning, since it is
        on the scale of the scores.
    by
        As in `select_answers`.

    Returns
    -------
    FrameT
        `problems`, as in `select_answers`; `weight` is the winner's share, in [0, 1].

    Raises
    ------
    ParameterError
        At once, if `temperature` is not finite and greater than 0.

    See Also
    --------
    select_answers : Runs several selectors in one pass; documents errors and rules.
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
        raise ParameterError(
            "temperature == 0.0, must be greater than 0. Hint: best_of_n is its limit."
        )
    if temperature == math.inf:
        raise ParameterError(
            "temperature == inf, must be finite. Hint: majority_vote is its limit."
        )
    return _select(
        trajectories,
        "confidence_vote",
        reductions=reductions,
        budgets=budgets,
        by=by,
        picker=partial(pick_confident, temperature=temperature),
    )


def top_fraction_vote(
    trajectories: FrameT,
    /,
    *,
    budgets: int | Sequence[int] | None = None,
    reductions: Reduction | Sequence[Reduction] | None = None,
    fraction: float = 0.1,
    weights: Weights = "score",
    by: ColumnNames = (),
) -> FrameT:
    """Pick by a weighted vote among the attempts with the highest scores.

    DeepConf's filter for finished runs: attempts of low confidence do not vote.

    Parameters
    ----------
    trajectories, budgets, reductions
        As in `select_answers`.
    fraction
        Share of the attempts that vote, in (0, 1]; 1 is `weighted_vote`.
    weights, by
        As in `select_answers`.

    Returns
    -------
    FrameT
        `problems`, as in `select_answers`; `weight` is the total of the winner's weights.

    Raises
    ------
    ParameterError
        At once, if `fraction` is not in (0, 1], or `weights` is unknown.

    See Also
    --------
    select_answers : Runs several selectors in one pass; documents errors and rules.
    weighted_vote : Lets all attempts vote.

    Notes
    -----
    Of the attempts within the budget that have an answer and a score, those vote whose score is at
    least the (1 - fraction) percentile, interpolated linearly as in numpy. Of N different scores
    these are the best floor((N - 1) * fraction) + 1; equal scores vote together or not at all. A
    negative score within the budget makes the problem "undefined" with weights="score", even if
    that attempt does not vote.

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
        raise ParameterError("fraction == 0.0, must be greater than 0.")
    return _select(
        trajectories,
        "top_fraction_vote",
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
    reductions: Reduction | Sequence[Reduction] | None = None,
    subset_size: int | None = None,
    by: ColumnNames = (),
) -> FrameT:
    r"""Pick the answer that is most often the best of a few resampled attempts.

    The best of all attempts depends on a single score, which may be wrong. This is the most likely
    answer of best-of-m, estimated from all attempts.

    Parameters
    ----------
    trajectories, budgets, reductions
        As in `select_answers`.
    subset_size
        Number m of resampled attempts. 1 is a majority vote of the scored attempts; a larger number
        brings the vote closer to best_of_n. None: the square root of the number of scored attempts
        within the budget, rounded down.
    by
        As in `select_answers`.

    Returns
    -------
    FrameT
        `problems`, as in `select_answers`; `weight` is the winner's probability.

    Raises
    ------
    ParameterError
        At once, if `subset_size` is below 1.
    ParameterTypeError
        At once, if it is not an int.

    See Also
    --------
    select_answers : Runs several selectors in one pass; documents errors and rules.
    best_of_n : Picks the best of all attempts.

    Notes
    -----
    Of m attempts drawn with replacement from the N that have a score, the best is the one of rank r
    (1 for the highest score) with probability

    .. math:: \left( \frac{N - r + 1}{N} \right)^m - \left( \frac{N - r}{N} \right)^m

    and an answer has the sum over its attempts. This is the exact value of what the paper estimates
    by bootstrap. Equal scores share the mean of their probabilities. The best may be an attempt
    without an answer; this probability goes to no answer.

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
    return _select(
        trajectories,
        "majority_of_the_bests",
        reductions=reductions,
        budgets=budgets,
        by=by,
        picker=partial(pick_majority_of_bests, subset_size=subset_size),
    )


def best_of_majority(
    trajectories: FrameT,
    /,
    *,
    budgets: int | Sequence[int] | None = None,
    reductions: Reduction | Sequence[Reduction] | None = None,
    least_share: float = 0.1,
    by: ColumnNames = (),
) -> FrameT:
    r"""Pick the answer with the highest score among those that enough of the attempts gave.

    The score decides only between answers that the model gives often, so that one wrong answer with a
    high score, which becomes likely with many attempts, does not win.

    Parameters
    ----------
    trajectories, budgets, reductions
        As in `select_answers`.
    least_share
        Share of the attempts within the budget that must give an answer, in [0, 1]. 0 is best_of_n of
        the attempts with an answer; 1 is a majority vote of the scored answers, with ties by score.
    by
        As in `select_answers`.

    Returns
    -------
    FrameT
        `problems`, as in `select_answers`; `attempt` is the one with the highest score, `weight` this
        score.

    Raises
    ------
    ParameterError
        At once, if `least_share` is not in [0, 1].

    See Also
    --------
    select_answers : Runs several selectors in one pass; documents errors and rules.
    best_of_n : Lets every attempt win.

    Notes
    -----
    With a share :math:`\hat\pi(y)` of the N attempts for answer y, and scores r, the winner is

    .. math:: \arg\max_{i :\, \hat\pi(y_i) \ge \alpha} r_i

    where :math:`\alpha` is `least_share`, or the largest share of an answer with a score where none
    reaches it. Attempts without a score count for the share of their answer. The paper derives the
    threshold from a coverage coefficient that is unknown in practice; the default of a tenth is a choice
    of this package.

    References
    ----------
    Di et al., "Best-of-Majority: Minimax-Optimal Strategy for Pass@k Inference Scaling",
    arXiv:2510.03199, with one answer to submit (k = 1).

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> trajectories = pl.DataFrame({
    ...     "problem_id": ["p"] * 5,
    ...     "attempt": [0, 1, 2, 3, 4],
    ...     "answer_key": ["42", "42", "47", "47", "5"],
    ...     "score": [0.6, 0.3, 0.8, 0.7, 0.9],
    ... })
    >>> tts.best_of_majority(trajectories, least_share=0.4).select("answer_key", "weight").row(0)
    ('47', 0.8)
    >>> tts.best_of_n(trajectories)["answer_key"].item()
    '5'
    """
    check_between(least_share, "least_share", 0.0, 1.0)
    return _select(
        trajectories,
        "best_of_majority",
        reductions=reductions,
        budgets=budgets,
        by=by,
        picker=partial(pick_best_of_majority, least_share=least_share),
    )


def minimum_bayes_risk(
    trajectories: FrameT,
    /,
    *,
    budgets: int | Sequence[int] | None = None,
    utility: Utility = "token_f1",
    by: ColumnNames = (),
) -> FrameT:
    r"""Pick the answer whose text is most similar to those of all attempts.

    Answers that agree in part support each other, unlike in a majority vote. This suits long
    answers, which are rarely equal.

    Parameters
    ----------
    trajectories, budgets
        As in `select_answers`.
    utility
        Similarity of two answers: "token_f1", the harmonic mean of precision and recall of tokens;
        or "equality", 1 for the same key and 0 for others, which makes it a majority vote.
    by
        As in `select_answers`.

    Returns
    -------
    FrameT
        `problems`, as in `select_answers`; `weight` is the winner's total utility.

    Raises
    ------
    ParameterError
        At once, if `utility` is unknown.

    See Also
    --------
    select_answers : Runs several selectors in one pass; documents errors and rules.
    majority_vote : Counts equal answers only.

    Notes
    -----
    With :math:`c(y)` attempts for each answer y within the budget, the winner is

    .. math:: \arg\max_y \sum_{y'} c(y') \, u(y, y'), \quad
        u(y, y') = \frac{2 \, |y \cap y'|}{|y| + |y'|}

    over the multisets of their tokens: LaTeX commands, words, numbers and other single characters
    of the earliest spelling in the column `answer`, or of the key without this column; at most the
    first 256 tokens of an answer. Answers with one key are one answer. No score is read.

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
    return _select(
        trajectories,
        "minimum_bayes_risk",
        budgets=budgets,
        by=by,
        picker=partial(pick_least_risk, utility=utility),
    )
