"""No answer is the model's failure: it abstains from votes, never wins one, and is wrong."""

from __future__ import annotations

import polars as pl
import pytest
from contract_frames import one_problem, only

import ttsframe as tts

VOTES = [name for name in tts.SELECTORS if name != "best_of_n"]


@pytest.mark.parametrize("selector", VOTES)
def test_an_abstention_never_wins(selector: str) -> None:
    frame = one_problem(
        [None, None, None, "a"], is_correct=[False] * 4, scores=[1.0, 1.0, 1.0, 0.1]
    )
    row = only(tts.select_answers(frame, selectors=selector))
    assert (row["answer_key"], row["attempt"], row["n_votes"]) == ("a", 3, 1)
    assert (row["n_attempts"], row["n_valid"], row["agreement"]) == (4, 1, 0.25)


def test_best_of_n_picks_the_top_scored_attempt_even_without_an_answer() -> None:
    frame = one_problem([None, "a"], is_correct=[False, True], scores=[0.9, 0.8])
    row = only(tts.best_of_n(frame))
    assert (row["answer_key"], row["answer"], row["attempt"]) == (None, None, 0)
    assert (row["is_correct"], row["value"], row["status"]) == (False, 0.0, "ok")
    assert (row["n_votes"], row["weight"]) == (0, 0.9)


@pytest.mark.parametrize("selector", tts.SELECTORS)
def test_all_abstain_is_wrong_where_the_problem_can_be_graded(selector: str) -> None:
    frame = one_problem([None, None], is_correct=[False, False], scores=[0.5, 0.5])
    row = only(tts.select_answers(frame, selectors=selector))
    assert (row["answer_key"], row["answer"]) == (None, None)
    assert (row["is_correct"], row["value"], row["status"]) == (False, 0.0, "ok")
    assert row["n_valid"] == 0


@pytest.mark.parametrize("selector", tts.SELECTORS)
def test_all_abstain_is_ungraded_where_the_problem_cannot_be(selector: str) -> None:
    frame = one_problem([None, None], is_correct=[None, None], scores=[0.5, 0.5])
    row = only(tts.select_answers(frame, selectors=selector))
    assert (row["answer_key"], row["is_correct"], row["value"]) == (None, None, None)
    assert row["status"] == "ungraded"


@pytest.mark.parametrize("selector", tts.SELECTORS)
def test_a_run_without_grades_is_picked_from_and_not_graded(selector: str) -> None:
    frame = one_problem(["a", "b", "a"], scores=[0.1, 0.2, 0.3])
    row = only(tts.select_answers(frame, selectors=selector))
    assert row["answer_key"] in {"a", "b"}
    assert (row["is_correct"], row["value"], row["status"]) == (None, None, "ungraded")


@pytest.mark.parametrize("selector", tts.SELECTORS)
def test_a_run_without_spellings_shows_keys(selector: str) -> None:
    frame = one_problem(["a", "b", "a"], is_correct=[True, False, True], scores=[0.1, 0.2, 0.3])
    row = only(tts.select_answers(frame, selectors=selector))
    assert row["answer"] == row["answer_key"]


def test_votes_show_the_abstentions_in_a_row_of_their_own() -> None:
    frame = one_problem([None, "a", None], is_correct=[False, True, False], scores=[0.5, 0.1, 0.2])
    votes = tts.tally_votes(frame)
    abstained = only(votes.filter(pl.col("answer_key").is_null()))
    assert (abstained["n_votes"], abstained["first_attempt"], abstained["answer"]) == (2, 0, None)
    assert abstained["top_score"] == 0.5


def test_no_answer_is_graded_false_where_a_gold_answer_is_known() -> None:
    frame = pl.DataFrame({
        "problem_id": ["p", "p", "q"],
        "attempt": [0, 1, 0],
        "completion": [r"\boxed{}", r"\boxed{1}", r"\boxed{1}"],
        "gold": ["1", "1", None],
    })
    scored = tts.score_trajectories(frame)
    assert scored["answer"].to_list() == [None, "1", "1"]
    assert scored["is_correct"].to_list() == [False, True, None]
