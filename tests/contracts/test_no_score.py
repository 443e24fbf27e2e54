"""No score is a missing measurement: such an attempt abstains from selectors that read scores."""

from __future__ import annotations

import math
from typing import get_args

import polars as pl
import pytest
from contract_frames import one_problem, only

import ttsframe as tts
from ttsframe._typing import Weights

READ_SCORES = [name for name, selector in tts.SELECTORS.items() if selector.reads_score]
READ_NONE = [name for name, selector in tts.SELECTORS.items() if not selector.reads_score]
MISSING = [None, math.nan]


@pytest.mark.parametrize("missing", MISSING)
@pytest.mark.parametrize("selector", READ_SCORES)
def test_an_attempt_without_a_score_abstains(selector: str, missing: float | None) -> None:
    frame = one_problem(
        ["a", "a", "b"], is_correct=[True, True, False], scores=[missing, missing, 0.001]
    )
    row = only(tts.select_answers(frame, selectors=selector))
    assert (row["answer_key"], row["attempt"]) == ("b", 2)
    assert (row["is_correct"], row["status"]) == (False, "ok")
    # Of a single vote: the score itself, or one vote, all of the softmax, a certain best.
    own_score = {"weighted_vote", "best_of_n", "top_fraction_vote", "best_of_majority"}
    assert row["weight"] == (0.001 if selector in own_score else 1.0)


@pytest.mark.parametrize("missing", MISSING)
@pytest.mark.parametrize("weights", get_args(Weights))
@pytest.mark.parametrize("selector", READ_SCORES)
def test_without_any_score_within_the_budget_a_problem_is_unscored(
    selector: str, weights: Weights, missing: float | None
) -> None:
    frame = one_problem(["a", "b", "b"], is_correct=[True] * 3, scores=[missing, missing, 0.5])
    found = tts.select_answers(frame, selectors=selector, budgets=[2, 3], weights=weights)
    assert found["status"].to_list() == ["unscored", "ok"]
    row = found.row(0, named=True)
    nothing = ("attempt", "answer", "answer_key", "is_correct", "value", "n_votes", "weight")
    assert {row[name] for name in nothing} == {None}
    assert (row["n_attempts"], row["n_valid"], row["agreement"]) == (2, 2, None)


@pytest.mark.parametrize("selector", READ_NONE)
def test_selectors_that_read_no_score_do_not_miss_it(selector: str) -> None:
    keys, grades = ["a", "b", "b"], [True, False, False]
    without = tts.select_answers(one_problem(keys, is_correct=grades), selectors=selector)
    missing = one_problem(keys, is_correct=grades, scores=[None] * 3)
    assert without.equals(tts.select_answers(missing, selectors=selector))


@pytest.mark.parametrize("selector", READ_SCORES)
def test_a_run_without_scores_is_refused_at_once(selector: str) -> None:
    with pytest.raises(tts.TtsframeError, match=r"1 missing column .*'score'.*Hint: "):
        tts.select_answers(one_problem(["a"]).lazy(), selectors=selector)


def test_a_vote_of_scored_abstentions_alone_has_no_winner() -> None:
    frame = one_problem([None, "a"], is_correct=[False, True], scores=[0.9, None])
    row = only(tts.weighted_vote(frame))
    assert (row["answer_key"], row["is_correct"], row["status"]) == (None, False, "ok")


def test_reductions_are_read_side_by_side_and_appear_once_where_unread() -> None:
    frame = one_problem(["a", "b"], is_correct=[True, False]).with_columns(
        step_scores=pl.Series([[0.9, 0.1], [0.5, 0.5]])
    )
    found = tts.select_answers(
        frame, selectors=["majority_vote", "best_of_n"], reductions=["first", "last"]
    )
    assert found.select("selector", "reduction", "answer_key").rows() == [
        ("majority_vote", None, "a"),
        ("best_of_n", "first", "a"),
        ("best_of_n", "last", "b"),
    ]
