from __future__ import annotations

import polars as pl
import pytest
from contract_frames import one_problem
from contract_registry import run

import ttsframe as tts


def test_votes_are_sorted_by_problem_budget_reduction_and_first_attempt() -> None:
    votes = tts.tally_votes(run(), budgets=[8, 1], reductions=["min", "last"])
    order = ["problem_id", "budget", "reduction", "first_attempt"]
    assert votes.equals(votes.sort(order))


def test_votes_of_a_budget_add_up_to_it() -> None:
    votes = tts.tally_votes(run(), budgets=[1, 4, 8])
    totals = votes.group_by("problem_id", "budget").agg(pl.col("n_votes").sum())
    assert totals.filter(pl.col("n_votes") != pl.col("budget")).is_empty()


def test_without_scores_votes_are_counted_alone() -> None:
    votes = tts.tally_votes(one_problem(["a", "b", "a"]))
    assert votes.select("answer_key", "reduction", "n_votes", "weight", "top_score").rows() == [
        ("a", None, 2, None, None),
        ("b", None, 1, None, None),
    ]


def test_an_answer_that_no_scored_attempt_gave_has_no_weight() -> None:
    votes = tts.tally_votes(one_problem(["a", "b"], scores=[None, 0.0]))
    assert votes.select("answer_key", "weight", "top_score").rows() == [
        ("a", None, None),
        ("b", 0.0, 0.0),
    ]


@pytest.mark.parametrize("score", [-0.5, float("inf"), float("-inf")])
def test_a_weight_that_is_none_is_null_and_its_score_is_shown(score: float) -> None:
    votes = tts.tally_votes(one_problem(["a", "b"], scores=[score, 0.5]))
    assert votes.select("weight", "top_score").rows() == [(None, score), (0.5, 0.5)]


def test_reductions_stand_below_each_other() -> None:
    frame = one_problem(["a", "a"]).with_columns(
        step_scores=pl.Series([[0.5, 0.25], [1.0]], dtype=pl.List(pl.Float64))
    )
    votes = tts.tally_votes(frame, reductions=["last", "sum", "min"])
    assert votes.select("reduction", "weight", "top_score").rows() == [
        ("last", 1.25, 1.0),
        ("min", 1.25, 1.0),
        ("sum", 1.75, 1.0),
    ]


def test_a_budget_beyond_all_attempts_shows_what_there_is() -> None:
    votes = tts.tally_votes(one_problem(["a", "b"]), budgets=[16])
    assert votes.select("budget", "answer_key", "n_votes").rows() == [(16, "a", 1), (16, "b", 1)]


def test_an_unknown_reduction_is_refused_at_once() -> None:
    with pytest.raises(tts.TtsframeError, match="reductions == 'median', must be one of 'last'"):
        tts.tally_votes(run().lazy(), reductions=["median"])  # type: ignore[list-item]


def test_reductions_need_step_scores() -> None:
    frame = one_problem(["a"], scores=[0.5]).lazy()
    with pytest.raises(
        tts.TtsframeError, match=r"1 missing column .*: 'step_scores'.*reductions=None"
    ):
        tts.tally_votes(frame, reductions="last")
