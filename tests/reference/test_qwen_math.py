"""A run with recorded grades and scalar rewards that are logits, counted again in plain Python."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ttsframe as tts


@pytest.fixture(scope="module")
def rows(shared_data: Path) -> list[dict[str, Any]]:
    with (shared_data / "qwen_math" / "math_cot_50.jsonl").open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def scored(shared_data: Path) -> pl.DataFrame:
    path = shared_data / "qwen_math" / "math_cot_50.jsonl"
    return tts.read_trajectories(path).pipe(tts.score_trajectories)


def accuracy_of(problems: pl.DataFrame) -> float:
    return tts.scaling_curve(problems)["accuracy"].item()


def graded_by_hand(row: dict[str, Any], totals: dict[str, float]) -> bool:
    """Return the grade of the first spelling of the answer with the largest total."""
    winner = max(totals, key=lambda answer: totals[answer])
    return row["score"][row["pred"].index(winner)]


def test_recorded_answers_and_grades_are_kept(
    rows: list[dict[str, Any]], scored: pl.DataFrame
) -> None:
    assert scored["is_correct"].to_list() == [grade for row in rows for grade in row["score"]]
    assert scored["answer"].to_list() == [answer for row in rows for answer in row["pred"]]
    assert scored["score"].to_list() == [score for row in rows for (score,) in row["pred_score"]]


def test_rm_at_8(rows: list[dict[str, Any]], scored: pl.DataFrame) -> None:
    grades = []
    for row in rows:
        rewards = [reward for (reward,) in row["pred_score"]]
        grades.append(row["score"][rewards.index(max(rewards))])

    problems = tts.best_of_n(scored, budgets=[8]).sort("problem_id")

    assert problems["is_correct"].to_list() == grades
    assert accuracy_of(problems) == sum(grades) / 50 == 0.92


def test_maj_at_8(rows: list[dict[str, Any]], scored: pl.DataFrame) -> None:
    grades = [graded_by_hand(row, Counter(row["pred"])) for row in rows]

    problems = tts.majority_vote(scored, budgets=[8]).sort("problem_id")

    assert problems["is_correct"].to_list() == grades
    assert accuracy_of(problems) == sum(grades) / 50 == 0.9


@pytest.mark.parametrize("weights", ["sigmoid", "softmax"])
def test_weighted_vote_with_named_weights(
    rows: list[dict[str, Any]], scored: pl.DataFrame, weights: str
) -> None:
    grades, totals = [], []
    for row in rows:
        rewards = [reward for (reward,) in row["pred_score"]]
        if weights == "sigmoid":
            masses = [1 / (1 + math.exp(-reward)) for reward in rewards]
        else:
            shares = [math.exp(reward) for reward in rewards]
            masses = [share / math.fsum(shares) for share in shares]
        by_answer: dict[str, float] = {}
        for answer, mass in zip(row["pred"], masses, strict=True):
            by_answer[answer] = by_answer.get(answer, 0.0) + mass
        grades.append(graded_by_hand(row, by_answer))
        totals.append(max(by_answer.values()))

    # Grouped by their strings, so that the totals are those of the same groups.
    by_string = scored.with_columns(answer_key=pl.col("answer"))
    problems = tts.weighted_vote(by_string, budgets=[8], weights=weights).sort("problem_id")

    assert problems["status"].to_list() == ["ok"] * 50
    assert problems["is_correct"].to_list() == grades
    assert problems["weight"].to_list() == pytest.approx(totals, rel=1e-12)


def test_negative_rewards_leave_a_weighted_vote_undefined(
    rows: list[dict[str, Any]], scored: pl.DataFrame
) -> None:
    has_negative = [any(reward < 0 for (reward,) in row["pred_score"]) for row in rows]

    problems = tts.weighted_vote(scored, budgets=[8]).sort("problem_id")

    assert any(has_negative)
    assert not all(has_negative)
    assert (problems["status"] == "undefined").to_list() == has_negative
    assert problems["answer"].is_null().to_list() == has_negative
    curve = tts.scaling_curve(problems)
    assert curve["n_undefined"].item() == sum(has_negative)
    assert curve["n_problems"].item() == 50 - sum(has_negative)


def test_validation_says_that_the_scores_are_logits(shared_data: Path) -> None:
    trajectories = tts.read_trajectories(shared_data / "qwen_math" / "math_cot_50.jsonl")

    findings = {
        finding.code: finding for finding in tts.validate_trajectories(trajectories).findings
    }

    assert "logit_scores" in findings
    assert "weights='sigmoid'" in findings["logit_scores"].hint
