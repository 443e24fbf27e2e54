"""The representative of a winning answer is its earliest attempt."""

from __future__ import annotations

import polars as pl
import pytest
from contract_frames import one_problem, only

import ttsframe as tts


def spelled() -> pl.DataFrame:
    """Return one answer under three spellings, graded differently by another tool."""
    return one_problem(
        ["x", "a", "a", "a"],
        is_correct=[False, True, False, None],
        scores=[0.1, 0.5, 0.9, 0.7],
    ).with_columns(answer=pl.Series(["x", "1/2", "0.5", r"\frac12"]))


@pytest.mark.parametrize(
    "selector",
    ["majority_vote", "weighted_vote", "borda_vote", "confidence_vote", "minimum_bayes_risk"],
)
def test_a_vote_reports_spelling_and_grade_of_the_earliest_attempt(selector: str) -> None:
    for seed in range(4):
        frame = spelled().sample(fraction=1.0, shuffle=True, seed=seed)
        row = only(tts.select_answers(frame, selectors=selector))
        assert (row["answer"], row["attempt"], row["is_correct"]) == ("1/2", 1, True)


def test_the_earliest_attempt_need_not_have_a_vote_that_weighs() -> None:
    frame = spelled().with_columns(
        score=pl.when(pl.col("attempt") != 1).then("score").otherwise(None)
    )
    row = only(tts.weighted_vote(frame))
    assert row["answer_key"] == "a"
    assert row["answer"] == "1/2"


def test_best_of_n_is_an_attempt_and_reports_its_own_grade() -> None:
    row = only(tts.best_of_n(spelled()))
    assert (row["attempt"], row["is_correct"], row["answer_key"]) == (2, False, "a")


def test_an_ungraded_representative_leaves_the_problem_ungraded() -> None:
    frame = one_problem(["a", "a"], is_correct=[None, True])
    row = only(tts.majority_vote(frame))
    assert (row["is_correct"], row["value"], row["status"]) == (None, None, "ungraded")


def test_votes_report_the_earliest_attempt_of_each_answer_at_each_budget() -> None:
    votes = tts.tally_votes(spelled(), budgets=[2, 4]).filter(pl.col("answer_key") == "a")
    assert votes.select("budget", "answer", "first_attempt", "is_correct", "n_votes").rows() == [
        (2, "1/2", 1, True, 1),
        (4, "1/2", 1, True, 3),
    ]
