"""Weights of a vote are at least 0; logits become weights by name; all zero is a tie."""

from __future__ import annotations

import math

import pytest
from contract_frames import one_problem, only

import ttsframe as tts

KEYS = ["a", "b", "b", None]
GRADES = [True, False, False, False]


@pytest.mark.parametrize("score", [-1e-300, -0.5, -math.inf, math.inf])
@pytest.mark.parametrize("position", range(4))
def test_a_weight_that_is_none_makes_the_vote_undefined(position: int, score: float) -> None:
    scores = [0.5] * 4
    scores[position] = score
    frame = one_problem(KEYS, is_correct=GRADES, scores=scores)
    row = only(tts.weighted_vote(frame))
    assert row["status"] == "undefined"
    nothing = ("attempt", "answer", "answer_key", "is_correct", "value", "n_votes", "weight")
    assert {row[name] for name in nothing} == {None}


def test_a_negative_weight_beyond_the_budget_does_not_matter() -> None:
    frame = one_problem(KEYS, is_correct=GRADES, scores=[0.5, 0.1, 0.1, -1.0])
    assert tts.weighted_vote(frame, budgets=[3, 4])["status"].to_list() == ["ok", "undefined"]


def test_weights_that_overflow_are_undefined_not_infinite() -> None:
    frame = one_problem(["a", "a", "b"], scores=[1e308, 1e308, 1.0])
    assert only(tts.weighted_vote(frame))["status"] == "undefined"


def test_negative_scores_rank_like_any_other_in_best_of_n() -> None:
    frame = one_problem(["a", "b", "c"], is_correct=[False, True, False], scores=[-3.0, -1.0, -2.0])
    row = only(tts.best_of_n(frame))
    assert (row["answer_key"], row["weight"], row["status"]) == ("b", -1.0, "ok")


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_all_weights_zero_is_a_tie(zero: float) -> None:
    frame = one_problem(["b", "a", "a"], is_correct=[True, False, False], scores=[zero] * 3)
    row = only(tts.weighted_vote(frame))
    assert (row["answer_key"], row["weight"], row["status"]) == ("b", 0.0, "ok")
    assert math.copysign(1.0, row["weight"]) == 1.0


@pytest.mark.parametrize("weights", ["sigmoid", "softmax"])
def test_logits_become_weights_by_name(weights: str) -> None:
    logits = [2.0, -1.0, 0.5, 1.0]
    shares = [1 / (1 + math.exp(-logit)) for logit in logits]
    if weights == "softmax":
        total = math.fsum(math.exp(logit) for logit in logits)
        shares = [math.exp(logit) / total for logit in logits]
    frame = one_problem(["a", "b", "b", None], scores=logits)
    votes = tts.tally_votes(frame, weights=weights)
    expected = {"a": shares[0], "b": shares[1] + shares[2], None: shares[3]}
    for key, weight in votes.select("answer_key", "weight").rows():
        assert weight == pytest.approx(expected[key], rel=1e-12)
    winner = max(["a", "b"], key=lambda key: expected[key])
    assert only(tts.weighted_vote(frame, weights=weights))["answer_key"] == winner


@pytest.mark.parametrize("weights", ["sigmoid", "softmax"])
@pytest.mark.parametrize("shift", [-5_000.0, 0.0, 5_000.0])
def test_extreme_logits_give_finite_weights(weights: str, shift: float) -> None:
    frame = one_problem(["a", "b", "b"], scores=[shift + 9.0, shift, shift])
    row = only(tts.weighted_vote(frame, weights=weights))
    assert math.isfinite(row["weight"])
    if weights == "softmax":
        assert row["answer_key"] == "a"
        assert row["weight"] == pytest.approx(1 / (1 + 2 * math.exp(-9.0)), rel=1e-12)


def test_a_softmax_is_over_the_attempts_within_each_budget() -> None:
    frame = one_problem(["a", "b", "b"], scores=[0.0, 0.0, 900.0])
    found = tts.weighted_vote(frame, budgets=[1, 2, 3], weights="softmax")
    assert found["weight"].to_list() == [1.0, 0.5, 1.0]
    assert found["answer_key"].to_list() == ["a", "a", "b"]


def test_scores_are_not_taken_for_logits_by_guess() -> None:
    frame = one_problem(["a", "b"], scores=[7.0, 9.0])
    assert only(tts.weighted_vote(frame))["weight"] == 9.0


@pytest.mark.parametrize("score", [-1e-9, 1.0 + 1e-9])
def test_log_odds_of_what_is_no_chance_are_undefined(score: float) -> None:
    row = only(tts.weighted_vote(one_problem(["a", "b"], scores=[0.9, score]), weights="logit"))
    assert (row["status"], row["answer_key"]) == ("undefined", None)


def test_log_odds_weigh_sure_attempts_more_and_a_coin_toss_nothing() -> None:
    frame = one_problem(["a", "b", "b", "c"], scores=[0.9, 0.7, 0.7, 0.5])
    assert only(tts.weighted_vote(frame))["answer_key"] == "b"
    row = only(tts.weighted_vote(frame, weights="logit"))
    assert row["answer_key"] == "a"
    assert row["weight"] == pytest.approx(math.log(9.0), rel=1e-12)
    votes = tts.tally_votes(one_problem(["a", "b"], scores=[1.0, 0.2]), weights="logit")
    assert votes["weight"].to_list() == pytest.approx([math.log(999.0), 0.0], rel=1e-12)


def test_an_unknown_kind_of_weight_is_refused_at_once() -> None:
    with pytest.raises(tts.TtsframeError, match=r"weights == 'exp', must be one of 'score', "):
        tts.weighted_vote(one_problem(["a"], scores=[1.0]).lazy(), weights="exp")  # type: ignore[arg-type]
