"""No answer is the model's failure: it abstains from votes, never wins one, and is wrong."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest
from contract_frames import one_problem, only

import ttsframe as tts

VOTES = [name for name in tts.SELECTORS if name != "best_of_n"]
VOTES_ON_ANSWERS = [name for name in VOTES if name != "oracle"]


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


def test_a_best_attempt_without_an_answer_is_wrong_in_every_function() -> None:
    # Every grade of the winner, and of the other attempt, with and without a gold answer.
    cases = itertools.product([None, False, True], [None, False, True], [None, "7"])
    frame = pl.concat([
        one_problem([None, "a"], is_correct=grades, scores=[0.9, 0.8], problem_id=f"{i:02}")
        .cast({"is_correct": pl.Boolean})
        .with_columns(gold=pl.lit(gold, pl.String))
        for i, (*grades, gold) in enumerate(cases)
    ])
    picked = tts.best_of_n(frame, budgets=[2])
    # It is right only where no gold answer says otherwise, ungraded only where nothing is graded.
    assert picked["value"].to_list() == [
        *[None, None, 0.0, 0.0, 0.0, 0.0],
        *[0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        *[1.0, 0.0, 1.0, 0.0, 1.0, 0.0],
    ]
    for problem_id, value in picked.select("problem_id", "value").rows():
        attempts = frame.filter(problem_id=problem_id)
        grades = tts.grade_failures("is_correct", "answer_key")
        is_kept = attempts["is_correct"][1] is not None or attempts["is_correct"][0] is None
        if is_kept:
            expected = only(tts.expected_accuracy(attempts, selectors="best_of_n", budgets=2))
            assert expected["value"] == value
            if attempts["gold"][0] is None:
                assert attempts.select(tts.best_of_k(grades, "score", 2)).item() == value
        if value is not None:
            # Two problems, since a curve needs them.
            twice = pl.concat([attempts, attempts.with_columns(problem_id=pl.lit("again"))])
            report = tts.verifier_report(twice, budgets=[2]).over_optimization
            assert report is not None
            assert report["accuracy"].to_list() == [value]


@pytest.mark.parametrize("selector", tts.SELECTORS)
def test_all_abstain_is_wrong_where_the_problem_can_be_graded(selector: str) -> None:
    frame = one_problem([None, None], is_correct=[False, False], scores=[0.5, 0.5])
    for gold in ("gold", "gold_key"):
        graded = frame.with_columns(pl.lit("7").alias(gold))
        row = only(tts.select_answers(graded, selectors=selector))
        assert (row["answer_key"], row["answer"]) == (None, None)
        assert (row["is_correct"], row["value"], row["status"]) == (False, 0.0, "ok")
        assert row["n_valid"] == 0


@pytest.mark.parametrize("selector", VOTES_ON_ANSWERS)
@pytest.mark.parametrize("grades", [[False, False], [True, False], [False, None]])
def test_a_vote_without_any_answers_to_vote_on_is_undefined_and_never_0(
    selector: str, grades: list[bool | None]
) -> None:
    # As in code and proofs, which a test or a checker grades.
    frame = one_problem([None, None], is_correct=grades, scores=[0.5, 0.6])
    for lacking in (frame, frame.with_columns(gold=pl.lit(None, pl.String))):
        row = only(tts.select_answers(lacking, selectors=selector))
        assert (row["status"], row["is_correct"], row["value"]) == ("undefined", None, None)
        found = tts.expected_accuracy(lacking, selectors=selector, budgets=[1, 2])
        assert found.select("status", "value").rows() == [("undefined", None)] * 2
        curve = tts.scaling_curve(tts.select_answers(lacking, selectors=selector))
        assert curve.select("accuracy", "n_problems", "n_undefined").row(0) == (None, 0, 1)


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


def test_an_attempt_without_an_answer_is_wrong_over_the_grade_of_another_tool() -> None:
    frame = pl.DataFrame({
        "problem_id": ["p", "p", "p", "q", "q"],
        "attempt": [0, 1, 2, 0, 1],
        "completion": ["I pass.", "I pass.", r"\boxed{2}", "I pass.", "def f(): ..."],
        "gold": ["1", "1", "1", None, None],
        "is_correct": [True, None, True, True, None],
    })
    scored = tts.score_trajectories(frame)
    assert scored["is_correct"].to_list() == [False, None, True, True, None]
    assert scored["is_correct_recorded"].to_list() == frame["is_correct"].to_list()
    assert tts.score_trajectories(scored).equals(scored)
    parts = [tts.score_trajectories(part) for part in frame.iter_slices(2)]
    assert pl.concat(parts).equals(scored)


def test_grades_that_are_made_anew_keep_those_of_the_other_tool() -> None:
    frame = pl.DataFrame({"answer": ["1", "2"], "gold": ["1", "1"], "is_correct": [False, True]})
    scored = tts.score_trajectories(frame, overwrite=["is_correct"])
    assert scored["is_correct"].to_list() == [True, False]
    assert scored["is_correct_recorded"].to_list() == [False, True]
    again = tts.score_trajectories(scored, overwrite=["is_correct"])
    assert again.equals(scored)


def test_a_run_with_grades_alone_can_be_scored() -> None:
    frame = pl.DataFrame({"problem_id": ["p"] * 2, "attempt": [0, 1], "is_correct": [True, False]})
    scored = tts.score_trajectories(frame)
    assert scored.equals(frame.with_columns(answer_key=pl.lit(None, pl.String)))
    row = only(tts.oracle(scored))
    assert (row["is_correct"], row["status"]) == (True, "ok")
    assert only(tts.majority_vote(scored))["status"] == "undefined"


def test_grades_lost_for_lack_of_an_answer_are_counted() -> None:
    frame = pl.DataFrame({
        "problem_id": ["p", "p", "q", "q"],
        "attempt": [0, 1, 0, 1],
        "completion": ["I pass.", r"\boxed{1}", "I pass.", "I pass."],
        "gold": ["1", "1", "1", None],
        "is_correct": [True, True, False, True],
    })
    for table in (
        tts.score_trajectories(frame),
        frame.with_columns(answer=pl.lit(None))[[0, 2, 3]],
    ):
        found = {finding.code: finding for finding in tts.validate_trajectories(table).findings}
        lost = found["lost_grades"]
        assert (lost.count, lost.severity) == (1, "warning")
        assert [*lost.examples] == [{"problem_id": "p", "attempt": 0}]
        assert "extract again" in lost.hint
    kept = tts.score_trajectories(frame).filter(pl.col("answer").is_not_null())
    codes = [finding.code for finding in tts.validate_trajectories(kept).findings]
    assert "lost_grades" not in codes


# ---- one attempt ---------------------------------------------------------------------------------------

RUNS: list[tuple[str | None, list[tuple[str | None, bool | None]]]] = [
    (gold, [*attempts])
    for gold in ("a", None)
    for n in (1, 2, 3)
    for attempts in itertools.product(
        [(None, None), (None, True), (None, False), ("a", None), ("a", True), ("b", False)],
        repeat=n,
    )
]
"""Every problem of up to three attempts: (gold answer, [(answer, recorded grade)])."""


def settled(gold: str | None, attempts: Sequence[tuple[str | None, bool | None]]) -> list[Any]:
    """Grade attempts by the rule, one after the other."""
    is_gradable = any(grade is not None for _, grade in attempts)
    settled_grades: list[Any] = []
    for answer, grade in attempts:
        is_failure = answer is None and (is_gradable if grade is None else gold is not None)
        settled_grades.append(False if is_failure else grade)
    return settled_grades


def test_at_one_attempt_all_that_is_defined_agrees() -> None:
    frame = pl.concat([
        one_problem(
            [answer for answer, _ in attempts],
            is_correct=[grade for _, grade in attempts],
            scores=[1.0 - 0.25 * i for i in range(len(attempts))],
            problem_id=f"{number:04}",
        ).with_columns(answer=pl.col("answer_key"), gold=pl.lit(gold, pl.String))
        for number, (gold, attempts) in enumerate(RUNS)
    ])
    scored = tts.score_trajectories(frame.drop("answer_key"))
    graded = tts.grade_failures("is_correct", "answer_key")
    grades = scored.group_by("problem_id", maintain_order=True).agg(
        graded.alias("settled"),
        tts.pass_at_k(graded, k=1).alias("pass@1"),
        tts.best_of_k(graded, "score", k=1).alias("best_of@1"),
    )
    truth = [settled(gold, attempts) for gold, attempts in RUNS]
    assert grades["settled"].to_list() == truth

    budgets: dict[str, Any] = {"selectors": list(tts.SELECTORS), "budgets": 1}
    first = tts.select_answers(scored, **budgets)
    every = tts.expected_accuracy(scored, **budgets, n_subsets=2)
    n_ok = dict.fromkeys(tts.SELECTORS, 0)
    for row in first.iter_rows(named=True):
        number = int(row["problem_id"])
        grade = truth[number][0]
        if row["status"] == "ok":
            n_ok[row["selector"]] += 1
            assert row["value"] == float(grade), (RUNS[number], row)
        else:
            assert row["status"] == ("ungraded" if grade is None else "undefined")
            assert row["value"] is None
            answers = [answer for answer, _ in RUNS[number][1]]
            assert grade is None or answers[0] is None
            assert row["selector"] not in {"oracle", "best_of_n"} or grade is None
    assert min(n_ok.values()) > 100

    for row in every.filter(selector="oracle").iter_rows(named=True):
        known = [grade for grade in truth[int(row["problem_id"])] if grade is not None]
        mean = math.fsum(known) / len(known) if known else None
        found = grades.row(int(row["problem_id"]), named=True)
        for value in (row["value"], found["pass@1"], found["best_of@1"]):
            assert value == (None if mean is None else pytest.approx(mean, abs=1e-12))
    # A vote of a random attempt is drawn here, so it equals the mean where all attempts agree.
    exact = {"majority_vote", "best_of_n", "first_valid", "oracle"}
    means = dict(grades.select("problem_id", "pass@1").iter_rows())
    for row in every.filter(pl.col("selector").is_in(exact), status="ok").iter_rows(named=True):
        assert row["value"] == pytest.approx(means[row["problem_id"]], abs=1e-12), row
